"""Play events: their options, their openings, and their games, even after Ctrl-C."""

from __future__ import annotations

import argparse
import json
import math
import shlex
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bao_agents.arena.event import Event
from bao_agents.arena.openings import (
    ANY_BALANCE,
    BALANCE,
    OPENING_PLIES,
    MatchOpenings,
    draw_openings,
    read_openings,
)
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.plan import Part, Plan
from bao_agents.arena.report import limit_ms
from bao_agents.arena.scheduler import Workers, play
from bao_agents.cli.event_report import Report, record_of, show
from bao_agents.cli.options import (
    add_options,
    add_player_options,
    at_least,
    new_file,
    refuse_unused,
)
from bao_agents.cli.player_arguments import add_player, check_name, is_name
from bao_agents.players import registry
from bao_agents.players.fingerprint import fingerprint
from bao_agents.search.limits import Clock
from bao_agents.support.files import hold, printable
from bao_agents.support.interrupts import signals_interrupt
from bao_agents.support.output import say
from bao_agents.support.progress import Progress
from bao_env.engine.ruleset import Ruleset
from bao_env.envs.openings import MAX_OPENING_PLIES
from bao_env.files import read_text

_GAMES_FILES = f"results/*--*/*-{'[0-9a-f]' * 16}.json"
"""The games in the folder ``--out``, as a pattern (:mod:`bao_agents.arena.resumable`)."""
_REPORTS = "table.json", "table.md", "elo.png"
"""The reports in that folder."""


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
        f"this, in logits; {ANY_BALANCE:g} leaves out none (default: {BALANCE}"
        f"{'' if balance else f' if a player searches, else {ANY_BALANCE:g}'})",
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
    parser.set_defaults(reports=_REPORTS)


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
    _check_folder(args.out)
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
            "whenever its play does; a program writes it as its `version`."
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


def _check_folder(folder: Path | None) -> None:
    """Check that an event may replace the reports in its folder.

    Raises:
        ValueError: the folder holds a file with the name of a report, but neither games nor a
            report of an event. Files of others in a folder called ``results`` are no games.
    """
    if folder is None or any(folder.glob(_GAMES_FILES)):
        return
    foreign = [file for name in _REPORTS if (file := folder / name).exists()]
    with suppress(OSError, ValueError):
        if '"made_with"' in read_text(folder / _REPORTS[0]):
            return
    if foreign:
        raise ValueError(f"{foreign[0]} exists, but {folder} holds no games: choose another --out")


def _note_earlier_report(args: argparse.Namespace) -> None:
    """Say that the reports of another command in the folder ``--out`` will be replaced."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        report = json.loads(read_text(Path(args.out, _REPORTS[0])))
        earlier = str(report["made_with"]["command"])
        if earlier != shlex.join(["bao", *args.words]):
            say(
                f"note: these reports replace those in {args.out} of `{printable(earlier):.300}`; "
                "its games stay, so that command can make its reports again"
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


@signals_interrupt()
def play_plans(
    args: argparse.Namespace,
    events: Mapping[str, tuple[Event, Plan]],
    report: Callable[[dict[str, Played]], Report | None],
    seconds: float = math.inf,
) -> None:
    """Play plans one after another, then report the games, even after a signal or an error.

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
        KeyboardInterrupt: a signal came, such as Ctrl-C; the message says how to continue.
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
                stack.enter_context(hold(args.out, _GAMES_FILES, *_REPORTS))
                _note_earlier_report(args)
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
