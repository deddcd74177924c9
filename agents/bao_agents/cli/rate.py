"""Rate a player on a ladder: one number for its strength.

    bao rate runs/quick
    bao rate mine:fullest --path FOLDER_OF_MINE > card.md

The player meets the ladder's anchors, bots of fixed ratings, from the ladder's openings, each from
both seats, until its 95 % interval is short enough (:mod:`bao_agents.arena.placement`). Elo 0 is
the random player. Ctrl-C prints the rating so far.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Any

from bao_agents.arena.elo import expected_score, finite, score_pairs
from bao_agents.arena.games import faults_text
from bao_agents.arena.ladder import DEFAULT, Ladder, load_ladder, shipped
from bao_agents.arena.placement import Result, rate_player
from bao_agents.arena.report import markdown_table, result_table
from bao_agents.cli.options import (
    Run,
    add_options,
    add_player_options,
    at_least,
    write_json,
)
from bao_agents.exact.blunders import Blunders
from bao_agents.exact.solved_positions import shipped_won_positions
from bao_agents.players import registry
from bao_agents.players.fingerprint import fingerprint
from bao_agents.support.provenance import provenance

BLUNDER_SECONDS = 10.0
"""Time that a player gets for won positions."""


def to_dict(player: str, ladder: Ladder, result: Result) -> dict[str, Any]:
    """Return the rating and its games as plain values for JSON.

    Args:
        player: its name on the command line.
        ladder: the ladder of the rating.
        result: the result of the rating.

    Returns:
        ``elo``, ``low`` and ``high`` are None where they are infinite.
    """
    found = result.session.placement()
    made_with = ladder.tournament["made_with"]
    rows = []
    for i, anchor in enumerate(ladder.anchors):
        points = result.session.points_against(i)
        if len(points):
            expected = expected_score(found.elo - anchor.elo)
            row = {"opponent": anchor.player, "elo": anchor.elo, "expected": expected}
            rows.append(row | score_pairs(points).to_dict())
    return {
        "player": registry.parse(player).title,
        "spec": player,
        "rating": str(found),
        "elo": finite(found.elo),
        "low": finite(found.low),
        "high": finite(found.high),
        "ladder": ladder.name,
        "ruleset": ladder.ruleset.to_dict(),
        "games": 2 * result.session.pairs,
        "opening_plies": ladder.tournament["opening_plies"],
        "seed": result.session.seed,
        "ended": result.ended,
        "ms_a_move": result.ms_a_move,
        "faults": result.faults,
        "against": rows,
        "made_with": provenance(ladder.ruleset),
        "ladder_made_with": made_with,
    }


def ask_blunders(player: str, ladder: Ladder, ms_a_move: float) -> Blunders | None:
    """Count how often a player gives won games away in shipped positions.

    It gets as many as it can answer in :data:`BLUNDER_SECONDS`. Return None if there are none for
    the ladder's rules, or after Ctrl-C.

    Args:
        player: its name on the command line.
        ladder: ladder of the rating.
        ms_a_move: its milliseconds per move.

    Raises:
        ValueError: it chooses an illegal action.
    """
    won = shipped_won_positions(ladder.ruleset)
    if won is None:
        return None
    won = won[: max(1, int(1000 * BLUNDER_SECONDS / max(ms_a_move, 0.001)))]
    try:
        return Blunders.count(won, won.mistakes(ladder.load(player)))
    except KeyboardInterrupt:
        return None


def rating_table(report: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return head and row of a table of the rating in a report of :func:`to_dict`."""
    row = [
        *(report["player"], report["rating"]),
        *(f"{report['games']:,}", f"{report['ms_a_move']:.3f}"),
    ]
    return ["player", "rating", "games", "CPU ms a move"], [row]


def card(report: dict[str, Any], command: str) -> str:
    """Format the result of :func:`to_dict` as Markdown.

    Args:
        report: the result.
        command: the command that made it.
    """
    rows = [
        [
            row["opponent"],
            f"{row['elo']:.0f}",
            *map(str, (row["games"], row["wins"], row["draws"], row["losses"])),
            f"{row['score']:.1%}",
            f"{row['expected']:.1%}",
        ]
        for row in report["against"]
    ]
    head = ["opponent", "Elo", "games", "won", "drawn", "lost", "points", "expected"]
    made_with, ladder = report["made_with"], report["ladder_made_with"]
    packages = ", ".join(f"{name} {number}" for name, number in made_with["packages"].items())
    facts = {
        "ladder": f"{report['ladder']}, anchors rated with commit {ladder['commit']}",
        "rules": f"{report['ruleset']['name']}, version {made_with['rules_version']}, engine "
        f"{made_with['engine_signature']}",
        "games": f"{report['games']}, openings of {report['opening_plies']} random plies from both "
        f"seats, seed {report['seed']}; ended: {report['ended']}",
        **({"fingerprint": report["fingerprint"]} if report["fingerprint"] else {}),
        **({"faults": faults_text(report["faults"])} if report["faults"] else {}),
        "commit": made_with["commit"],
        "versions": packages,
        "command": f"`{command}`",
    }
    if report["blunders"]:
        moves, choices = (report["blunders"][of] for of in ("of_moves", "of_choices"))
        facts["gives won games away"] = (
            f"by {moves['rate']:.1%} (95 % interval {moves['low']:.1%} to {moves['high']:.1%}) of "
            f"{report['blunders']['moves']} moves from won positions"
            + (f", {choices['rate']:.1%} of those that could" if choices else "")
        )
    if report["changed_anchors"]:
        facts["anchors that now play otherwise"] = ", ".join(report["changed_anchors"])
    return "\n\n".join(
        [
            f"# {report['player']}: {report['rating']}, {report['ms_a_move']:.3f} CPU ms a move",
            markdown_table(head, rows),
            "\n".join(f"- {name}: {text}" for name, text in facts.items()),
        ]
    )


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao rate``: rate a player on a ladder of bots with fixed ratings."""
    parser.add_argument("player", metavar="PLAYER", help="a checkpoint's path or name, or a bot")
    parser.add_argument(
        "--ladder",
        default=DEFAULT,
        metavar="LADDER",
        help=f"{', '.join(shipped())}, or a file (default: {DEFAULT})",
    )
    parser.add_argument(
        "--precision",
        type=at_least(0.1, float),
        default=30.0,
        metavar="ELO",
        help="play until the rating is known to +-ELO (default: 30)",
    )
    parser.add_argument(
        "--seconds",
        type=at_least(0.001, float),
        default=100.0,
        help=f"time limit (default: 100); then up to {BLUNDER_SECONDS:g} more in won positions",
    )
    add_options(parser, "seed", "threads", "json", "format")
    add_player_options(parser)
    return _run


def _run(args: argparse.Namespace) -> int:
    ladder = load_ladder(args.ladder)
    mark = fingerprint(args.player, ladder.load(args.player), ladder.ruleset)
    changed = ladder.changed()
    result = rate_player(
        args.player,
        ladder,
        precision=args.precision,
        seconds=args.seconds,
        seed=args.seed,
        processes=args.threads,
    )
    if not result.session.pairs:
        raise KeyboardInterrupt("before the first games had ended")
    report = to_dict(args.player, ladder, result)
    stopped = result.ended == "stopped"
    blunders = None if stopped else ask_blunders(args.player, ladder, result.ms_a_move)
    report |= {
        "fingerprint": mark,
        "changed_anchors": changed,
        "blunders": blunders and blunders.to_dict(),
    }
    command = ["bao", "rate", args.player, "--ladder", args.ladder, "--seed", f"{args.seed}"]
    command += ["--precision", f"{args.precision:g}", "--seconds", f"{args.seconds:g}"]
    command += ["--threads", f"{args.threads}", *(f"--path={folder}" for folder in args.path)]
    try:  # what cannot be written can be printed, and the other way round
        write_json(args.json, report)
    finally:
        if args.format:
            print(result_table(args.format, *rating_table(report), [report]))
        elif args.json != "-":
            print(card(report, shlex.join(command)))
    if result.ended in ("time is up", "no openings left"):
        more = "--seconds" if result.ended == "time is up" else "--precision"
        print(
            f"note: {result.ended} before +-{args.precision:g} Elo was reached: give a larger "
            f"{more}",
            file=sys.stderr,
        )
    return 0
