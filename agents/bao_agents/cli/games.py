"""Parse players, add options and report results, for all commands that play events."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

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
    CROSSTABLE,
    Row,
    Table,
    cells,
    escaped,
    formatted,
    limit_ms,
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
from bao_agents.search.limits import Clock
from bao_agents.support.figures import try_to_save_figure
from bao_agents.support.files import hold, write_atomically
from bao_agents.support.output import say
from bao_agents.support.progress import Progress
from bao_agents.support.provenance import facts, provenance
from bao_env.engine.ruleset import Ruleset
from bao_env.envs.openings import MAX_OPENING_PLIES
from bao_env.notation.positions import NotationError
from bao_env.notation.transcript import Transcript, format_transcript

_OUT_FILES = "results/*/*.json", "table.*", "elo.png"
"""The files of the folder ``--out``, as patterns."""
NAMED = "PLAYER or NAME=PLAYER"
"""How help texts describe a player on the command line."""


def add_openings(parser: argparse.ArgumentParser, pairs: int, balance: float | None) -> None:
    """Add the options of events whose openings are drawn.

    Args:
        parser: the command's parser.
        pairs: the default of ``--pairs``.
        balance: the default of ``--balance``.
    """
    parser.add_argument(
        "--pairs",
        type=at_least(1),
        default=pairs,
        help="openings for each pair of players; each opening is played from both seats "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--opening-plies",
        type=at_least(0, highest=MAX_OPENING_PLIES),
        default=OPENING_PLIES,
        help="random plies per opening (default: %(default)s)",
    )
    parser.add_argument(
        "--balance",
        type=float,
        default=balance,
        help="leave out openings in which a search gives either side a larger advantage than "
        "this, in logits; 100 leaves out none "
        f"(default: {BALANCE}{'' if balance else ' if a player searches, else 100'})",
    )
    parser.add_argument(
        "--openings",
        metavar="FILE",
        help="draw the openings from this file; balanced is the shipped file",
    )
    parser.add_argument(
        "--clock",
        type=_clock,
        metavar="TIME",
        help="each player's time for a game, and optionally an increment for each move, such as "
        "10s+0.1s or 2m; it replaces time limits in players' names, and a player who uses it up "
        "loses the game",
    )


def add_event(parser: argparse.ArgumentParser, out: Path | None = None) -> None:
    """Add the options of all events; ``out`` is the default folder."""
    parser.add_argument(
        "--games",
        type=new_file,
        metavar="FILE",
        help="also write every game as a transcript to FILE",
    )
    add_options(parser, "seed", "threads", "ray", "json", "csv", "format", out=out)
    add_player_options(parser)


def _clock(text: str) -> Clock:
    try:
        return Clock.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def make_event(
    args: argparse.Namespace,
    players: Mapping[str, str],
    ruleset: Ruleset,
    openings: MatchOpenings | None = None,
) -> Event:
    """Return the event that the options of :func:`add_event` ask for.

    Options that have no effect, or would fail only after the games, raise an error now. A program
    that has no name on the command line gets the name that it reports.

    Args:
        args: the command's arguments.
        players: each player's specification, by name.
        ruleset: the rules.
        openings: the openings; None draws them by the options of :func:`add_openings`.

    Raises:
        OSError: a file of openings cannot be read.
        ValueError: a player is unknown or unusable, an option has no effect, or there are too few
            openings.
    """
    if "-" in (args.json, args.csv):
        refuse_unused(args, "with --json - or --csv -", "format")
    if args.json == args.csv == "-":
        raise ValueError("--json - and --csv - exclude each other: only one of them can be printed")
    named: dict[str, str] = {}
    fingerprints = {}
    for title, spec in players.items():
        player = registry.load(spec, ruleset=ruleset, seed=args.seed, threads=args.threads)
        fingerprints[spec] = fingerprint(spec, player, ruleset)
        is_typed = title == registry.parse(spec).title
        says_name = not player.name.startswith("pipe:") and is_name(player.name)
        add_player(named, player.name if is_typed and says_name else title, spec)
    changing = [name for name, spec in named.items() if fingerprints[spec] is None]
    for name in named if args.games else ():
        check_name(name)
    if changing and args.out and (args.out / "results").exists():
        say(
            f"note: earlier games of {', '.join(changing)} are played again, because the player "
            "may have changed. To keep them, give its agent a string `fingerprint` that changes "
            "whenever its play does."
        )
    openings = openings or _openings(args, ruleset)
    return Event(
        named,
        ruleset,
        openings,
        args.seed,
        fingerprints=fingerprints,
        clock=vars(args).get("clock"),
        keep_games=bool(args.games),
        folder=args.out,
    )


def _openings(args: argparse.Namespace, ruleset: Ruleset) -> MatchOpenings:
    """Draw the openings that the options of :func:`add_openings` ask for."""
    if args.openings:
        refuse_unused(args, "with --openings", "opening_plies", "balance")
        args.opening_plies = args.balance = None  # they depend on the file
        return read_openings(args.openings, ruleset, args.pairs, args.seed)
    return draw_openings(ruleset, args.pairs, args.opening_plies, args.seed, args.balance)


def described(args: argparse.Namespace) -> str:
    """Describe the openings and the clock that the options of :func:`add_openings` ask for."""
    balance = "" if args.balance is None else f" --balance {args.balance:g}"
    clock = f" --clock {args.clock}" if args.clock else ""
    return (args.openings or f"random, --opening-plies {args.opening_plies}{balance}") + clock


def settings_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the values of the options of :func:`add_openings`, for JSON."""
    settings = {
        name: getattr(args, name) for name in ("pairs", "opening_plies", "balance", "openings")
    }
    return settings | ({"clock": str(args.clock)} if args.clock else {})


@dataclass
class Played:
    """The games of a plan."""

    results: dict[Part, Pairs] = field(default_factory=dict)
    ended: str = "stopped"
    """Why the games ended: ``finished``, ``time is up`` or ``stopped``."""

    @property
    def total(self) -> Pairs:
        """All of the games."""
        return sum(self.results.values(), Pairs())


class Report(NamedTuple):
    """A command's report on the games that were played."""

    subject: str
    """The start of the table's caption: who is measured, or on which ladder."""
    rows: Sequence[Row]
    """The results."""
    columns: Sequence[str]
    """The table's columns, by their keys in the rows; the first column has the players."""
    zero: str
    """The player or average that has Elo 0, in words."""
    source: Mapping[str, str]
    """How the results were made, in addition to the provenance."""
    facts: Mapping[str, Any]
    """More entries for JSON."""
    before: str
    """The text above the table."""
    after: str = ""
    """The text below the table."""
    cross: Table | None = None
    """The scores of all players against each other, to show below the table."""
    remarks: Sequence[str] = ()
    """Warnings and notes for a reader."""
    table: Table | None = None
    """The table to show; by default the columns of all rows."""
    style: str = "simple"
    """The table's style on a terminal, a format of tabulate."""


def play_plans(
    args: argparse.Namespace,
    events: Mapping[str, tuple[Event, Plan]],
    report: Callable[[dict[str, Played]], Report | None],
    seconds: float = math.inf,
) -> None:
    """Play plans one after another, then report the games, even after Ctrl-C or an error.

    Args:
        args: the command's arguments.
        events: each event with its plan, by the name that the progress bar shows.
        report: makes the report from the games by these names, or returns None for no report. It is
            called only if there are games.
        seconds: the time limit of each plan.

    Raises:
        HeldError: another process plays in the folder.
        OSError: the folder or a file cannot be written, or there is no Ray cluster.
        ValueError: see :meth:`~bao_agents.arena.event.Event.play`.
        KeyboardInterrupt: Ctrl-C was pressed; the message says how to continue.
    """
    played: dict[str, Played] = {}
    event, _ = next(iter(events.values()))  # bao rate has many plans, but one event
    # Now, because files of players may change or disappear while they play.
    record = record_of(args, event)
    limits = {name: limit_ms(spec, event.clock) for name, spec in event.players.items()}
    try:
        with ExitStack() as stack:
            workers = stack.enter_context(Workers(args.threads, args.ray))
            if args.out:
                stack.enter_context(hold(args.out, *_OUT_FILES))
            for name, (event, plan) in events.items():
                games = played[name] = Played()
                try:
                    with Progress(unit="game", desc=name) as bar:
                        play(event, plan, workers, bar, games.results, seconds)
                    games.ended = "finished"
                except TimeoutError:
                    games.ended = "time is up"
    except KeyboardInterrupt:
        advice = f"run the same command to continue from {args.out}" if args.out else ""
        raise KeyboardInterrupt(advice) from None
    finally:
        played = {name: games for name, games in played.items() if games.results}
        if played and (reported := report(played)):
            total = sum((games.total for games in played.values()), Pairs())
            show(args, event, total, reported, record, limits)


def show(
    args: argparse.Namespace,
    event: Event,
    games: Pairs,
    report: Report,
    record: dict[str, Any],
    limits: Mapping[str, float],
) -> None:
    """Write the files that the options name, and print the results.

    Args:
        args: the command's arguments.
        event: the event.
        games: all games that were played.
        report: the report on these games.
        record: the provenance of the games of all players.
        limits: the result of :func:`limit_ms` for each player, by name.
    """
    names = {row[name] for row in report.rows for name in ("player", "opponent") if name in row}
    players = {name: spec for name, spec in event.players.items() if name in names}
    record = of_players(record, players)
    source = {
        **report.source,
        "zero": report.zero,
        "ruleset": event.ruleset.name,
        **facts(record),
        "commit": ", ".join(sorted(games.commits)),
    }
    document = {
        "made_with": record,
        "players": players,
        "ruleset": event.ruleset.to_dict(),
        "seed": args.seed,
        "commits": sorted(games.commits),
        "zero": report.zero,
        **report.facts,
        "results": report.rows,
    }
    title = f"{report.subject}, {event.ruleset.name}"
    table = cells(report.rows, report.columns)
    remarks = [*report.remarks, *notes(report.rows, limits, games.commits)]

    def text(style: str) -> str:
        shown_table = markdown_table(*(report.table or table), style)
        cross = [f"{CROSSTABLE}:", markdown_table(*report.cross, style)] if report.cross else []
        lines = "\n".join(remarks if style == "simple" else map(escaped, remarks))
        return "\n\n".join(filter(None, [report.before, shown_table, report.after, *cross, lines]))

    with ExitStack() as steps:  # run in reverse order, each even if another one fails
        if args.out:
            draw = partial(plot, report.rows, report.columns[0], title, report.zero)
            steps.callback(try_to_save_figure, draw, args.out / "elo.png", title, source)
        if "-" in (args.json, args.csv):
            steps.callback(warn, remarks)
        elif args.format:
            steps.callback(warn, remarks)
            caption = f"{title}; Elo 0 is {report.zero}"
            steps.callback(print, formatted(args.format, *table, caption, source, report.cross))
        else:
            steps.callback(print, text(report.style))
        steps.callback(write_text, args.csv, to_csv(report.rows, source))
        steps.callback(write_json, args.json, document)
        if args.games:
            steps.callback(write_atomically, args.games, "\n".join(games.games))
        if args.out:
            steps.callback(write_atomically, args.out / "table.md", text("pipe") + "\n")
            steps.callback(write_json, str(args.out / "table.json"), document)


def record_of(args: argparse.Namespace, event: Event) -> dict[str, Any]:
    """Return the provenance of an event's games, with the networks as their files are now."""
    rules = event.ruleset
    files = {name: registry.parse(spec).file(rules) for name, spec in event.players.items()}
    networks = {name: file for name, file in files.items() if file}
    return provenance(rules, networks=networks, seed=args.seed, command=["bao", *args.words])


def of_players(record: dict[str, Any], names: Container[str]) -> dict[str, Any]:
    """Return a provenance without the networks of other players."""
    networks = {name: mark for name, mark in record.get("networks", {}).items() if name in names}
    anonymous = {key: entry for key, entry in record.items() if key != "networks"}
    return anonymous | ({"networks": networks} if networks else {})


def parse_player(word: str) -> tuple[str, str]:
    """Return the name and the specification of a player on the command line.

    A player given without ``NAME=`` is named as it was typed; a checkpoint is named after its run
    or file.

    Raises:
        ValueError: the player is unknown, or a table cannot show the name.
    """
    try:
        name, spec = registry.parse(word).title, word
    except ValueError:
        name, equals, spec = word.partition("=")
        if not equals:
            raise
    if not spec or not is_name(name):
        raise ValueError(
            f"player {word[:80]!r}: expected PLAYER or NAME=PLAYER; a name must not contain "
            "a comma, a vertical bar or a control character"
        )
    return name, spec


def is_name(text: str) -> bool:
    """Return whether tables can show a text as a player's name."""
    return bool(text) and text.isprintable() and not {*text} & {*",|"}


def parse_players(words: Sequence[str]) -> dict[str, str]:
    """Return the specification of each player on the command line, by name.

    Raises:
        ValueError: two players have the same name, or as in :func:`parse_player`.
    """
    players: dict[str, str] = {}
    for name, spec in map(parse_player, words):
        add_player(players, name, spec)
    return players


def add_player(players: dict[str, str], name: str, spec: str) -> None:
    """Add a player to ``players``.

    Raises:
        ValueError: another player there has the same name.
    """
    if file_name(name) in map(file_name, players):
        raise ValueError(f"two players are called {name!r}: rename one of them, as NAME=PLAYER")
    players[name] = spec


def checkpoint_of(spec: str) -> Checkpoint | None:
    """Return the checkpoint that a player's name contains; None if it contains none.

    Raises:
        CheckpointError: the file is not a usable checkpoint.
    """
    path = registry.parse(spec).path
    return None if path is None else checkpoint.load(path)


def check_name(name: str) -> None:
    """Check, before the games, that a transcript can hold the name of a player.

    Raises:
        ValueError: it cannot hold the name, for example because of a line break.
    """
    try:
        format_transcript(Transcript({"south": name}))
    except NotationError as error:
        raise ValueError(
            f"a transcript cannot hold the player's name {name!r:.80}: {error}"
        ) from error
