"""Share what the commands that play events need: players with names, options, and the results."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
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
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.plan import Part, Plan
from bao_agents.arena.report import (
    Row,
    cells,
    escaped,
    formatted,
    markdown_table,
    notes,
    plot,
    to_csv,
)
from bao_agents.arena.scheduler import Workers, play
from bao_agents.cli.options import (
    add_options,
    add_player_options,
    at_least,
    new_file,
    refuse_unused,
    warn,
    write_json,
    write_text,
)
from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint import Checkpoint
from bao_agents.players import registry
from bao_agents.players.fingerprint import fingerprint
from bao_agents.support.figures import try_to_save_figure
from bao_agents.support.files import hold, write_atomically
from bao_agents.support.output import say
from bao_agents.support.progress import Progress
from bao_agents.support.provenance import provenance
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
        "--games", type=new_file, metavar="FILE", help="also write every game as a transcript"
    )
    add_options(parser, "seed", "threads", "ray", "json", "csv", "format", out=out)
    add_player_options(parser)


def make_event(
    args: argparse.Namespace,
    players: Mapping[str, str],
    ruleset: Ruleset,
    openings: MatchOpenings | None = None,
) -> Event:
    """Return an event as the options of :func:`add_event` ask for.

    What would only fail, or change nothing, after the games is refused before them.

    Args:
        args: the arguments.
        players: the players by name.
        ruleset: the rules.
        openings: the openings; None draws them as the options of :func:`add_openings` ask.

    Raises:
        OSError: a file of openings cannot be read.
        ValueError: a player is unknown or unusable, an option is useless, or there are too few
            openings.
    """
    if "-" in (args.json, args.csv):
        refuse_unused(args, "with --json - or --csv -", "format")
    if args.json == args.csv == "-":
        raise ValueError("--json - and --csv - together: only one of them can be printed")
    known = {}
    for name, spec in players.items():
        if args.games:
            check_name(name)
        player = registry.load(spec, ruleset=ruleset, seed=args.seed, threads=args.threads)
        known[spec] = fingerprint(spec, player, ruleset)
    changing = [name for name, spec in players.items() if known[spec] is None]
    if changing and args.out and (args.out / "results").exists():
        say(
            f"note: games of {', '.join(changing)} are played again, because the player may have "
            "changed: give its agent a string `fingerprint` that changes with its play"
        )
    openings = openings or _openings(args, ruleset)
    return Event(
        players,
        ruleset,
        openings,
        args.seed,
        known=known,
        keep_games=bool(args.games),
        folder=args.out,
    )


def _openings(args: argparse.Namespace, ruleset: Ruleset) -> MatchOpenings:
    """Return the openings that the options of :func:`add_openings` ask for."""
    if args.openings:
        refuse_unused(args, "with --openings", "opening_plies", "balance")
        args.opening_plies = args.balance = None  # they depend on the file
        return read_openings(args.openings, ruleset, args.pairs, args.seed)
    return draw_openings(ruleset, args.pairs, args.opening_plies, args.seed, args.balance)


def described(args: argparse.Namespace) -> str:
    """Return in words which openings the options of :func:`add_openings` ask for."""
    balance = "" if args.balance is None else f" --balance {args.balance:g}"
    return args.openings or f"random, --opening-plies {args.opening_plies}{balance}"


def settings_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of :func:`add_openings` for JSON."""
    return {name: getattr(args, name) for name in ("pairs", "opening_plies", "balance", "openings")}


@dataclass
class Played:
    """The games of a plan."""

    results: dict[Part, Pairs] = field(default_factory=dict)
    ended: str = "stopped"
    """Why they ended; ``finished`` at the end of the plan."""

    @property
    def total(self) -> Pairs:
        """All of the games."""
        return sum(self.results.values(), Pairs())


def play_plans(
    args: argparse.Namespace,
    events: Mapping[str, tuple[Event, Plan]],
    report: Callable[[dict[str, Played]], None],
    seconds: float = math.inf,
) -> None:
    """Play plans one after another, and report what was played, whatever ends it.

    Args:
        args: the arguments.
        events: each event with its plan, by the name that the progress shows.
        report: reports the games by those names; it is called if there are any.
        seconds: the time limit of each plan.

    Raises:
        HeldError: another process plays in the folder.
        OSError: it cannot be written, or there is no Ray cluster.
        KeyboardInterrupt: as in the games; says how to continue.
    """
    played: dict[str, Played] = {}
    try:
        with ExitStack() as stack:
            workers = stack.enter_context(Workers(args.threads, args.ray))
            if args.out:
                stack.enter_context(hold(args.out))
            for name, (event, plan) in events.items():
                one = played[name] = Played()
                try:
                    with Progress(unit="game", desc=name) as bar:
                        play(event, plan, workers, bar, one.results, seconds)
                    one.ended = "finished"
                except TimeoutError:
                    one.ended = "time is up"
    except KeyboardInterrupt:
        how = f"run the same command to continue from {args.out}" if args.out else ""
        raise KeyboardInterrupt(how) from None
    finally:
        played = {name: one for name, one in played.items() if one.results}
        if played:
            report(played)


def show(
    args: argparse.Namespace,
    event: Event,
    played: Mapping[str, Played],
    rows: Sequence[Row],
    columns: Sequence[str],
    *,
    before: str,
    after: str = "",
    said: Sequence[str] = (),
    table: tuple[list[str], list[list[str]]] | None = None,
    style: str = "simple",
    zero: str,
    source: Row,
    **facts: Any,
) -> None:
    """Write the files that the options name, and print the results.

    Args:
        args: the arguments.
        event: the event.
        played: its games.
        rows: the results.
        columns: those of a table for people.
        before, after: what people read before and after the table.
        said: what else they must know.
        table: the table; by default that of all rows.
        style: its style on a terminal, a format of tabulate.
        zero: what has Elo 0.
        source: what CSV and LaTeX say of how the results were made, beside rules, seed and commit.
        facts: more for JSON.
    """
    total = sum((one.total for one in played.values()), Pairs())
    commits = sorted(total.commits)
    made = {
        "ruleset": event.ruleset.name,
        **source,
        "seed": args.seed,
        "commit": ", ".join(commits),
    }
    whole = {
        "made_with": provenance(event.ruleset),
        "players": dict(event.players),
        "ruleset": event.ruleset.to_dict(),
        "seed": args.seed,
        "commits": commits,
        **facts,
        "results": rows,
    }
    words = [*said, *notes(rows, event.players, total.commits)]

    def text(style: str) -> str:
        shown = markdown_table(*(table or cells(rows, columns)), style)
        last = "\n".join(words if style == "simple" else map(escaped, words))
        return "\n\n".join(filter(None, [before, shown, after, last]))

    with ExitStack() as last:  # in the opposite order, and each even if another one fails
        if args.out:
            draw = partial(plot, rows, columns[0], f"Bao, {event.ruleset.name}", zero)
            last.callback(try_to_save_figure, draw, args.out / "elo.png")
        if "-" in (args.json, args.csv):
            last.callback(warn, words)
        elif args.format:
            last.callback(warn, words)
            last.callback(print, formatted(args.format, *cells(rows, columns), made))
        else:
            last.callback(print, text(style))
        last.callback(write_text, args.csv, to_csv(rows, made))
        last.callback(write_json, args.json, whole)
        if args.games:
            last.callback(write_atomically, args.games, "\n".join(total.games))
        if args.out:
            last.callback(write_atomically, args.out / "table.md", text("pipe") + "\n")
            last.callback(write_json, str(args.out / "table.json"), whole)


def parse_player(word: str) -> tuple[str, str]:
    """Return the name and the specification of a player on the command line.

    Without a name of its own, a checkpoint is called by its run or file, and any other player by
    what was typed.

    Raises:
        ValueError: the player is unknown, or the name cannot be shown.
    """
    try:
        name, spec = registry.parse(word).title, word
    except ValueError:
        name, equals, spec = word.partition("=")
        if not equals:
            raise
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


def checkpoint_of(spec: str) -> Checkpoint | None:
    """Return the checkpoint of a network; None for another player.

    Raises:
        CheckpointError: the file is not a usable checkpoint.
    """
    path = registry.parse(spec).path
    return None if path is None else checkpoint.load(path)


def check_name(name: str) -> None:
    """Check that a transcript can hold the name of a player; called before the games.

    Raises:
        ValueError: it cannot, for example because of a line break.
    """
    try:
        format_transcript(Transcript({"south": name}))
    except NotationError as error:
        raise ValueError(f"no transcript can name a player {name!r:.80}: {error}") from error
