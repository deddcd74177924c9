"""Share what the commands that play events need: players with names, options, and the results."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bao_agents.arena.event import Event, file_name
from bao_agents.arena.openings import (
    BALANCE,
    OPENING_PLIES,
    MatchOpenings,
    draw_openings,
    read_openings,
)
from bao_agents.arena.report import Report, plot
from bao_agents.arena.scheduler import Workers
from bao_agents.cli.options import (
    add_options,
    add_player_options,
    at_least,
    new_file,
    refuse_unused,
    warn,
    write_text,
)
from bao_agents.players import registry
from bao_agents.players.fingerprint import fingerprint
from bao_agents.support.figures import save_figure
from bao_agents.support.files import hold, write_atomically
from bao_env.engine.ruleset import Ruleset
from bao_env.envs.openings import MAX_OPENING_PLIES
from bao_env.notation.positions import NotationError
from bao_env.notation.transcript import Transcript, format_transcript

NAMED = "PLAYER or NAME=PLAYER"
"""The help for players."""


def add_openings(parser: argparse.ArgumentParser, pairs: int, balance: float | None) -> None:
    """Add the options of events whose openings are drawn, with some of their defaults."""
    parser.add_argument(
        "--pairs",
        type=at_least(1),
        default=pairs,
        help="openings of two players, each played from both seats (default: %(default)s)",
    )
    parser.add_argument(
        "--opening-plies",
        type=at_least(0, most=MAX_OPENING_PLIES),
        default=OPENING_PLIES,
        help="random plies per opening (default: %(default)s)",
    )
    parser.add_argument(
        "--balance",
        type=float,
        default=balance,
        help="largest value of an opening for either side, in logits (default: "
        f"{BALANCE}{'' if balance else ' if a player searches, else any'})",
    )
    parser.add_argument(
        "--openings",
        metavar="FILE",
        help="draw the openings from this file instead; balanced names the shipped one",
    )


def add_event(parser: argparse.ArgumentParser, out: Path | None = None) -> None:
    """Add the options of all events; ``out`` is the default folder."""
    parser.add_argument(
        "--ray",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help="play on the cores of a Ray cluster: the one at ADDRESS (host:port; 'local' starts "
        "one here), or the one that Ray finds; all its machines must have this package and the "
        "players' files at the same paths (pip install ray)",
    )
    parser.add_argument(
        "--games", type=new_file, metavar="FILE", help="also write every game as a transcript"
    )
    add_options(parser, "seed", "threads", "json", "csv", "format", out=out)
    add_player_options(parser)


def check_event(args: argparse.Namespace, players: Mapping[str, str]) -> None:
    """Refuse what would only fail, or change nothing, after the games.

    Raises:
        ValueError: the message says what.
    """
    if "-" in (args.json, args.csv):
        refuse_unused(args, "with --json - or --csv -", "format")
    if args.json == args.csv == "-":
        raise ValueError("--json - and --csv - together: only one of them can be printed")
    if args.games:
        check_names(*players)


def openings_of(args: argparse.Namespace, ruleset: Ruleset) -> tuple[MatchOpenings, str]:
    """Return the openings that the options of :func:`add_openings` ask for, and a description.

    Raises:
        OSError, ValueError: there are too few, or the file is wrong.
    """
    if args.openings:
        refuse_unused(args, "with --openings", "opening_plies", "balance")
        return read_openings(args.openings, ruleset, args.pairs, args.seed), args.openings
    plies, balance = args.opening_plies, args.balance
    text = f"random, --opening-plies {plies}"
    text += "" if balance is None else f" --balance {balance:g}"
    return draw_openings(ruleset, args.pairs, plies, args.seed, balance), text


def settings_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the openings for JSON."""
    drawn = not args.openings
    return {
        "pairs": args.pairs,
        "opening_plies": args.opening_plies if drawn else None,
        "balance": args.balance if drawn else None,
        "openings": args.openings,
        "seed": args.seed,
    }


def make_event(
    args: argparse.Namespace,
    players: Mapping[str, str],
    ruleset: Ruleset,
    openings: MatchOpenings,
    keys: Mapping[str, tuple[int, ...]] | None = None,
) -> Event:
    """Return an event as the options of :func:`add_event` ask for.

    Raises:
        ValueError: a player is unknown or unusable.
    """
    known = {}
    for spec in players.values():  # refuses a wrong one before the games
        player = registry.load(spec, ruleset=ruleset, seed=args.seed, threads=args.threads)
        if args.out:
            known[spec] = fingerprint(spec, player, ruleset)
    changing = [name for name, spec in players.items() if args.out and known[spec] is None]
    if changing and (args.out / "results").exists():
        warn(
            [
                f"note: games of {', '.join(changing)} are played again, because the player may "
                "have changed: give its agent a string `fingerprint` that changes with its play"
            ]
        )
    keep = bool(args.games)
    return Event(players, ruleset, openings, args.seed, keys or {}, known, keep, args.out)


@contextmanager
def playing(args: argparse.Namespace) -> Iterator[Workers]:
    """Hold the folder of an event, and have workers, until the end of the block.

    Raises:
        HeldError: another process plays in the folder.
        OSError: it cannot be written, or there is no Ray cluster.
        KeyboardInterrupt: as in the block; says how to continue.
    """
    with ExitStack() as stack:
        workers = stack.enter_context(Workers(args.threads, args.ray))
        if args.out:
            stack.enter_context(hold(args.out))
        try:
            yield workers
        except KeyboardInterrupt as stop:
            if str(stop) or not args.out:
                raise
            raise KeyboardInterrupt(f"run the same command to continue from {args.out}") from None


def show(
    args: argparse.Namespace,
    report: Report,
    text: Callable[[str], str],
    notes: Sequence[str],
    games: Sequence[str],
    zero: str,
    style: str = "simple",
) -> None:
    """Write the files that the options name, and print the results.

    Args:
        args: the arguments.
        report: the results.
        text: returns all that people read, with tables in a style of tabulate.
        notes: what else a reader must know.
        games: the transcripts.
        zero: what has Elo 0.
        style: the style on a terminal.
    """
    with ExitStack() as last:  # in the opposite order, and each even if another one fails
        if "-" in (args.json, args.csv):
            last.callback(warn, notes)
        elif args.format:
            last.callback(warn, notes)
            last.callback(print, report.formatted(args.format))
        else:
            last.callback(print, "\n".join([text(style), *([""] if notes else []), *notes]))
        last.callback(write_text, args.csv, report.to_csv())
        last.callback(write_text, args.json, report.to_json())
        if args.games:
            last.callback(write_atomically, args.games, "\n".join(games))
        if args.out:
            whole = "\n\n".join([text("pipe"), *notes]) + "\n"
            title = f"Bao, {report.source['ruleset']}"
            picture = args.out / "elo.png"
            last.callback(lambda: save_figure(plot(report, title, zero), picture))
            last.callback(write_atomically, args.out / "table.md", whole)
            last.callback(write_atomically, args.out / "table.json", report.to_json())


def parse_player(word: str) -> tuple[str, str]:
    """Return the name and the specification of a player on the command line.

    Without a name of its own, a checkpoint is called by its run or file, and any other player by
    what was typed.

    Raises:
        ValueError: the player is unknown, or the name cannot be shown.
    """
    name, equals, spec = word.partition("=")
    if not equals or _is_player(word):
        name, spec = registry.parse(word).title, word
    if not name or not spec or not name.isprintable() or {*name} & {*",|"}:
        raise ValueError(
            f"player {word[:80]!r}: expected PLAYER or NAME=PLAYER; a name must not contain "
            "a comma, a bar or a control character"
        )
    return name, spec


def parse_players(words: Sequence[str]) -> dict[str, str]:
    """Return the specification of each player on the command line by its name.

    Raises:
        ValueError: two players have the same name, or see :func:`parse_player`.
    """
    players: dict[str, str] = {}
    for name, spec in map(parse_player, words):
        if file_name(name) in map(file_name, players):
            raise ValueError(f"two players are called {name!r}: give one as NAME=PLAYER")
        players[name] = spec
    return players


def _is_player(word: str) -> bool:
    """Return whether a whole word is a player, although it has an equals sign."""
    try:
        registry.parse(word)
    except ValueError:
        return False
    return True


def check_names(*names: str) -> None:
    """Check that a transcript can hold the names of players; called before the games.

    Raises:
        ValueError: it cannot hold one, for example because of a line break.
    """
    for name in names:
        try:
            format_transcript(Transcript({"south": name}))
        except NotationError as error:
            raise ValueError(f"no transcript can name a player {name!r:.80}: {error}") from error
