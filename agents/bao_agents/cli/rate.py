"""Rate players on a ladder: one number for the strength of each.

    bao rate runs/quick
    bao rate mine:fullest --path FOLDER_OF_MINE > card.md
    bao rate 'runs/quick/step-*.safetensors' --format csv > elo.csv

A player meets the ladder's anchors, bots of fixed ratings, from the ladder's openings, each from
both seats, until its 95 % interval is short enough (:mod:`bao_agents.arena.placement`). Elo 0 is
the random player. One player gets a card, several a table. Ctrl-C prints the ratings so far.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from glob import glob
from typing import Any

from bao_agents.arena.elo import expected_score, finite
from bao_agents.arena.ladder import DEFAULT, Ladder, load_ladder, shipped
from bao_agents.arena.placement import Session, rate_player
from bao_agents.arena.report import escaped, markdown_table, notes, result_table
from bao_agents.cli.games import NAMED, parse_players
from bao_agents.cli.options import (
    Run,
    add_options,
    add_player_options,
    at_least,
    warn,
    write_json,
)
from bao_agents.exact.blunders import Blunders
from bao_agents.exact.solved_positions import shipped_won_positions
from bao_agents.players import registry
from bao_agents.players.fingerprint import fingerprint
from bao_agents.support.provenance import provenance

BLUNDER_SECONDS = 10.0
"""Time that a player gets for won positions."""


def expand(words: Iterable[str]) -> Iterator[str]:
    """Yield the words, and for a pattern such as ``runs/x/step-*.safetensors`` its files.

    They come in the order of the numbers in their names. A file of that very name is no pattern.
    ``module:function@PATTERN`` is one too.
    """
    for word in words:
        code, at, pattern = word.rpartition("@")
        files = [] if os.path.exists(pattern) else glob(pattern)
        files.sort(key=lambda file: [*map(int, re.findall("[0-9]+", file))])
        yield from [f"{code}{at}{file}" for file in files] or [word]


def steps_of(spec: str) -> int | None:
    """Return the environment steps for which a player has been trained, if known.

    Its checkpoint says it, or the last number in the name of the file after ``@``.
    """
    path = registry.parse(spec).path
    if path is None:
        numbers = re.findall("[0-9]+", os.path.basename(spec.partition("@")[2]))
        return int(numbers[-1]) if numbers else None
    from bao_agents.nets import checkpoint

    return checkpoint.load(path).info.get("steps")


def to_dict(name: str, session: Session) -> dict[str, Any]:
    """Return a rating and its games as plain values for JSON.

    Args:
        name: the player's name.
        session: the games that rate it.

    Returns:
        ``elo``, ``low`` and ``high`` are None where they are infinite; ``steps`` is None if
        unknown.
    """
    ladder, total, found = session.ladder, session.total, session.placement()
    rows = []
    for anchor in ladder.anchors:
        pairs = session.against(anchor.player)
        if len(pairs):
            expected = expected_score(found.elo - anchor.elo)
            row = {"opponent": anchor.player, "elo": anchor.elo, "expected": expected}
            rows.append(row | pairs.score.to_dict())
    made_with = provenance(ladder.ruleset)
    return {
        "player": name,
        "spec": session.player,
        "steps": steps_of(session.player),
        "rating": str(found),
        "elo": finite(found.elo),
        "low": finite(found.low),
        "high": finite(found.high),
        "ladder": ladder.name,
        "ruleset": ladder.ruleset.to_dict(),
        "games": total.points.size,
        "opening_plies": ladder.tournament["opening_plies"],
        "seed": session.seed,
        "ended": session.ended,
        "ms_a_move": float(total.ms_a_move[0]),
        "faults": total.faults[0],
        "against": rows,
        "made_with": made_with,
        "commit": made_with["commit"],
        "ladder_made_with": ladder.tournament["made_with"],
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


def table(reports: Iterable[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of a table of the ratings in reports of :func:`to_dict`."""
    rows = [
        [
            report["player"],
            "" if report["steps"] is None else f"{report['steps']:,}",
            report["rating"],
            f"{report['games']:,}",
            f"{report['ms_a_move']:.3f}",
        ]
        for report in reports
    ]
    return ["player", "steps", "rating", "games", "ms a move"], rows


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
            f"{100 * row['score']:.1f}",
            f"{100 * row['expected']:.1f}",
        ]
        for row in report["against"]
    ]
    head = ["opponent", "Elo", "games", "won", "drawn", "lost", "score, %", "expected, %"]
    made_with, ladder = report["made_with"], report["ladder_made_with"]
    packages = ", ".join(f"{name} {number}" for name, number in made_with["packages"].items())
    facts = {
        "ladder": f"{report['ladder']}, anchors rated with commit {ladder['commit']}",
        "rules": f"{report['ruleset']['name']}, version {made_with['rules_version']}, engine "
        f"{made_with['engine_signature']}",
        "games": f"{report['games']}, openings of {report['opening_plies']} random plies from both "
        f"seats, seed {report['seed']}; ended: {report['ended']}",
        **({"fingerprint": report["fingerprint"]} if report["fingerprint"] else {}),
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
    lines = [f"- {name}: {text}" for name, text in facts.items()]
    lines += [f"- note: {escaped(note)}" for note in notes_of(report)]
    return "\n\n".join(
        [
            f"# {report['player']}: {report['rating']}, {report['ms_a_move']:.3f} CPU ms a move",
            markdown_table(head, rows),
            "\n".join(lines),
        ]
    )


def notes_of(report: dict[str, Any]) -> list[str]:
    """Return what a reader must know about a player's games."""
    return notes(report["player"], report["spec"], report["ms_a_move"], report["faults"])


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao rate``: rate players on a ladder of bots with fixed ratings."""
    parser.add_argument(
        "players",
        nargs="+",
        metavar="PLAYER",
        help=f"{NAMED}, or a pattern of checkpoints, 'runs/x/step-*.safetensors'",
    )
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
        help="play until a rating is known to +-ELO (default: 30)",
    )
    parser.add_argument(
        "--seconds",
        type=at_least(0.001, float),
        default=100.0,
        help="time limit of a player (default: 100); then up to "
        f"{BLUNDER_SECONDS:g} more in won positions",
    )
    add_options(parser, "seed", "threads", "json", "format")
    add_player_options(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    ladder = load_ladder(args.ladder)
    players = parse_players([*expand(args.players)])
    marks = {
        name: fingerprint(spec, ladder.load(spec), ladder.ruleset) for name, spec in players.items()
    }
    changed = ladder.changed()
    reports: list[dict[str, Any]] = []
    try:
        for name, spec in players.items():
            session = rate_player(
                spec,
                ladder,
                precision=args.precision,
                seconds=args.seconds,
                seed=args.seed,
                processes=args.threads,
            )
            stopped = session.ended == "stopped"
            if session.played:
                report = to_dict(name, session)
                blunders = None if stopped else ask_blunders(spec, ladder, report["ms_a_move"])
                report |= {
                    "fingerprint": marks[name],
                    "changed_anchors": changed,
                    "blunders": blunders and blunders.to_dict(),
                }
                reports.append(report)
            if (stopped and len(players) > 1) or not session.played:
                raise KeyboardInterrupt(f"{len(reports)} of {len(players)} players are rated")
    finally:  # ratings from before an error or Ctrl-C are shown anyway
        if reports:
            _report(args, players, reports)


def _report(
    args: argparse.Namespace, players: dict[str, str], reports: list[dict[str, Any]]
) -> None:
    """Write the file that the options name, and print the ratings."""
    said = [
        f"note: {report['player']}: {report['ended']} before +-{args.precision:g} Elo was reached: "
        f"give a larger {'--seconds' if report['ended'] == 'time is up' else '--precision'}"
        for report in reports
        if report["ended"] in ("time is up", "no openings left")
    ]
    if args.format:
        source = {
            key: ", ".join({str(report[key]): None for report in reports})
            for key in ("ladder", "seed", "commit")
        }
        source["ruleset"] = reports[0]["ruleset"]["name"]
        text = result_table(args.format, *table(reports), reports, source)
    elif len(players) == 1:
        text = card(reports[0], _command(args))
    else:
        text = markdown_table(*table(reports))
    if args.format or len(players) > 1:
        said += [note for report in reports for note in notes_of(report)]
    with ExitStack() as last:  # in the opposite order, and each even if another one fails
        last.callback(warn, said)
        if args.format or args.json != "-":
            last.callback(print, text)
        write_json(args.json, {"results": reports})


def _command(args: argparse.Namespace) -> str:
    """Return the command that rates the players again."""
    words = ["bao", "rate", *args.players, "--ladder", args.ladder, "--seed", str(args.seed)]
    words += ["--precision", f"{args.precision:g}", "--seconds", f"{args.seconds:g}"]
    words += ["--threads", str(args.threads)]
    return shlex.join([*words, *(word for folder in args.path for word in ("--path", folder))])
