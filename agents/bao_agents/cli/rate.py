"""Rate players on a ladder: one number for the strength of each.

    bao rate runs/quick
    bao rate mine:fullest --path FOLDER_OF_MINE > card.md
    bao rate 'runs/quick/step-*.safetensors' --csv elo.csv

A player meets the ladder's anchors, which are bots with fixed ratings. It plays each of the
ladder's openings from both seats, until its 95% interval is short enough
(:mod:`bao_agents.arena.placement`). Elo 0 is the random player. The command prints a card for one
player, and a table for several. Ctrl-C prints the ratings so far.
"""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from glob import glob
from itertools import islice
from typing import Any

from bao_agents.arena.elo import FEW_PAIRS, expected_score
from bao_agents.arena.event import Event
from bao_agents.arena.ladder import DEFAULT, Ladder, LadderError, load_ladder, shipped
from bao_agents.arena.placement import OnLadder
from bao_agents.arena.plan import pairings
from bao_agents.arena.report import Row, cells, rating, result
from bao_agents.cli.event_report import Report, of_players, record_of
from bao_agents.cli.games import Played, add_event, make_event, play_plans
from bao_agents.cli.options import Run, at_least
from bao_agents.cli.player_arguments import NAMED, checkpoint_of, parse_players
from bao_agents.nets.checkpoint import OtherRulesError
from bao_agents.support.provenance import facts

AGAINST = ("opponent", "opponent_elo", "games", "won", "drawn", "lost", "score", "expected")
COLUMNS = ("player", "steps", "elo", "games", "won", "drawn", "lost", "score", "ms_a_move")


def expand(words: Iterable[str]) -> Iterator[str]:
    """Yield each word, but replace patterns such as ``runs/x/step-*.safetensors`` by their files.

    The files of a pattern come in the order of the numbers in their names. A word that names an
    existing file is no pattern. In ``module:function@PATTERN``, the text after ``@`` is a pattern.
    """
    for word in words:
        code, at, pattern = word.rpartition("@")
        files = [] if os.path.exists(pattern) else glob(pattern)
        files.sort(key=lambda file: [*map(int, re.findall("[0-9]+", file))])
        yield from [f"{code}{at}{file}" for file in files] or [word]


def steps_of(spec: str) -> int | None:
    """Return the number of environment steps of a player's training; None if it is unknown.

    The number comes from the player's checkpoint or, for a file after ``@``, from the last number
    in the file's name.
    """
    if trained := checkpoint_of(spec):
        steps = trained.info.get("steps")
        return steps if type(steps) is int else None
    numbers = re.findall("[0-9]+", os.path.basename(spec.partition("@")[2]))
    return int(numbers[-1]) if numbers else None


def to_dict(name: str, plan: OnLadder, played: Played, steps: int | None) -> dict[str, Any]:
    """Return a rating and its games as plain values.

    Args:
        name: the player's name.
        plan: the plan of the games.
        played: the games.
        steps: the result of :func:`steps_of` before the games.

    Returns:
        ``elo``, ``elo_low`` and ``elo_high`` are None where they are infinite; after too few games
        all three are None. ``scale_low`` and ``scale_high`` are the interval that includes the
        errors of the ladder's ratings; they are None after too few games or a clean sweep.
    """
    total, placement = played.total, plan.placement(played.results)
    in_words, ends = str(placement), (placement.elo, placement.low, placement.high)
    scale = plan.scale_interval(played.results)
    if len(total) < FEW_PAIRS:
        in_words, ends = f"{total.points.size} games are too few", (math.nan, math.nan, math.nan)
        scale = None
    ended = "no openings left" if played.ended == "finished" else played.ended
    if plan.is_precise(played.results):  # even if the time was up at the last game
        ended = "precise"
    matches = pairings(played.results)
    return {
        "player": name,
        "steps": steps,
        "rating": in_words,
        **rating(*ends),
        "scale_low": scale[0] if scale else None,
        "scale_high": scale[1] if scale else None,
        **result(total),
        "ended": ended,
        "spec": plan.spec,
        "against": [
            {
                "opponent": anchor.player,
                "opponent_elo": anchor.elo,
                "expected": expected_score(placement.elo - anchor.elo),
                **result(matches[plan.player, anchor.player]),
            }
            for anchor in plan.ladder.anchors
            if (plan.player, anchor.player) in matches
        ],
    }


def card_of(
    row: Row, ladder: Ladder, changed: Sequence[str], record: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the card of a rating: its table, and the texts before and after it.

    Args:
        row: the result of :func:`to_dict`, with the player's fingerprint.
        ladder: the ladder.
        changed: the anchors that now play differently than when they were rated.
        record: the provenance of the rating.
    """
    lines = {
        "ladder": f"{ladder.name}, anchors rated with commit "
        f"{ladder.tournament['made_with']['commit']}",
        "games": f"{row['games']}, openings of {ladder.tournament['opening_plies']} random plies "
        f"from both seats; ended: {row['ended']}",
        **facts(record),
        "fingerprint": row["fingerprint"],
        "anchors that play differently now": ", ".join(changed),
    }
    lines["command"] = f"`{lines['command']}`"
    before = f"# {row['player']}: {row['rating']}, {row['ms_a_move']:.3f} CPU ms a move"
    if row["scale_low"] is not None:
        before += (
            "\n\nThe interval takes the ladder's ratings as exact. If it includes their errors, "
            "relative to the player at 0, it is "
            f"{row['scale_low']:z.0f} to {row['scale_high']:z.0f}."
        )
    return {
        "before": before,
        "table": cells(row["against"], AGAINST),
        "after": "\n".join(f"- {name}: {text}" for name, text in lines.items() if text),
    }


def command(parser: argparse.ArgumentParser) -> Run:
    """Define ``bao rate``: rate players on a ladder of bots with fixed ratings."""
    parser.add_argument(
        "players",
        nargs="+",
        metavar="PLAYER",
        help=f"{NAMED}, or a pattern of checkpoints, such as 'runs/x/step-*.safetensors'",
    )
    parser.add_argument(
        "--ladder",
        default=DEFAULT,
        metavar="LADDER",
        help=f"{', '.join(shipped())}, or a ladder's file; the ladder also sets the rules "
        f"(default: {DEFAULT})",
    )
    parser.add_argument(
        "--precision",
        type=at_least(0.1, float),
        default=30.0,
        metavar="ELO",
        help="play until the 95%% interval of a rating is at most +-ELO wide (default: 30)",
    )
    parser.add_argument(
        "--seconds",
        type=at_least(0.001, float),
        default=100.0,
        help="time limit for all games of a player (default: 100)",
    )
    parser.add_argument("--ruleset", help=argparse.SUPPRESS)  # other commands have this option
    add_event(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    named = parse_players([*expand(args.players)])  # before the ladder's check compiles the engine
    ladder = load_ladder(args.ladder)
    event, players = _event(args, ladder, named)
    plans = {
        name: OnLadder(ladder, name, spec, args.precision, args.seed)
        for name, spec in players.items()
    }
    changed = ladder.changed()
    record = record_of(args, event)
    steps = {name: steps_of(spec) for name, spec in players.items()}

    def report(played: dict[str, Played]) -> Report:
        rows = [
            to_dict(name, plans[name], games, steps[name])
            | {"fingerprint": event.fingerprints[players[name]]}
            for name, games in played.items()
        ]
        remarks = _remarks(rows, args.precision)
        if len(players) > 1:
            remarks.append(
                "The intervals take the ladder's ratings as exact; --json also writes intervals "
                "that include their errors."
            )
        card: dict[str, Any] = {"before": ""}
        if len(players) == 1:
            card = card_of(rows[0], ladder, changed, of_players(record, players))
        return Report(
            ladder.name,
            rows,
            COLUMNS,
            zero="random",
            source={"ladder": ladder.name},
            facts={
                "ladder": ladder.name,
                "ladder_made_with": ladder.tournament["made_with"],
                "opening_plies": ladder.tournament["opening_plies"],
                "changed_anchors": changed,
            },
            **card,
            remarks=remarks,
            style="pipe",
        )

    events = {name: (replace(event, keys=plan.keys), plan) for name, plan in plans.items()}
    play_plans(args, events, report, args.seconds)


def _event(
    args: argparse.Namespace, ladder: Ladder, players: Mapping[str, str]
) -> tuple[Event, dict[str, str]]:
    """Return the event of the players and the anchors, and each player's specification by name.

    Raises:
        LadderError: ``--ruleset`` is given, or a player cannot play the ladder's rules.
        OSError, ValueError: see :func:`~bao_agents.cli.games.make_event`; or a player has the name
            of an anchor.
    """
    rules = f"{ladder.name} is for {ladder.ruleset.name}"
    remark = f"{rules}; bao tournament compares players under any rules"
    if args.ruleset is not None:
        raise LadderError(
            f"bao rate has no --ruleset, because the ladder sets the rules ({remark})"
        )
    anchors = {anchor.player: anchor.player for anchor in ladder.anchors}
    for name, spec in players.items():
        if anchors.get(name, spec) != spec:
            raise ValueError(
                f"an anchor of the ladder is called {name!r}: give {spec} another name, as "
                "NAME=PLAYER"
            )
    try:
        event = make_event(args, {**players, **anchors}, ladder.ruleset, ladder.starts)
    except OtherRulesError as error:
        raise LadderError(f"{error} ({remark})") from error
    return event, dict(islice(event.players.items(), len(players)))  # with the programs' names


def _remarks(rows: Sequence[Row], precision: float) -> list[str]:
    """Return a note for each rating that is less precise than asked for, +-``precision`` Elo."""
    return [
        f"note: the rating of {row['player']} is less precise than +-{precision:g} Elo "
        f"({row['ended']}): give a larger "
        f"{'--seconds' if row['ended'] == 'time is up' else '--precision'}"
        for row in rows
        if row["ended"] in ("time is up", "no openings left")
    ]
