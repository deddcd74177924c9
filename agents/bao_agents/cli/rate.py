"""Rate players on a ladder: one number for the strength of each.

    bao rate runs/quick
    bao rate mine:fullest --path FOLDER_OF_MINE > card.md
    bao rate 'runs/quick/step-*.safetensors' --csv elo.csv

A player meets the ladder's anchors, bots of fixed ratings, from the ladder's openings, each from
both seats, until its 95 % interval is short enough (:mod:`bao_agents.arena.placement`). Elo 0 is
the random player. One player gets a card, several a table. Ctrl-C prints the ratings so far.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from glob import glob
from typing import Any

from bao_agents.arena.elo import FEW_PAIRS, expected_score, finite
from bao_agents.arena.ladder import DEFAULT, Ladder, load_ladder, shipped
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.placement import OnLadder
from bao_agents.arena.plan import Part, pairings
from bao_agents.arena.report import Report, commit_notes, escaped, notes, result, table
from bao_agents.arena.scheduler import Workers, play
from bao_agents.cli.games import (
    NAMED,
    add_event,
    check_event,
    make_event,
    parse_players,
    playing,
    show,
)
from bao_agents.cli.options import Run, at_least
from bao_agents.players import registry
from bao_agents.players.fingerprint import fingerprint
from bao_agents.support.progress import Progress
from bao_agents.support.provenance import provenance

COLUMNS = ("player", "steps", "elo", "games", "won", "drawn", "lost", "score", "ms_a_move")


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


def to_dict(name: str, plan: OnLadder, results: Mapping[Part, Pairs], ended: str) -> dict[str, Any]:
    """Return a rating and its games as plain values.

    Args:
        name: the player's name.
        plan: the plan of the games.
        results: the games.
        ended: why they ended.

    Returns:
        ``elo``, ``elo_low`` and ``elo_high`` are None where they are infinite, and all of them
        after too few games; ``steps`` is None if unknown.
    """
    total, found = sum(results.values(), Pairs()), plan.placement(results)
    text, elos = str(found), [found.elo, found.low, found.high]
    if len(total) < FEW_PAIRS:
        text, elos = f"{total.points.size} games are too few", 3 * [float("nan")]
    against = []
    for anchor in plan.ladder.anchors:
        pairs = pairings(results).get((plan.player, anchor.player))
        if pairs is not None:
            expected = expected_score(found.elo - anchor.elo)
            row = {"opponent": anchor.player, "opponent_elo": anchor.elo, "expected": expected}
            against.append(row | result(pairs))
    return {
        "player": name,
        "steps": steps_of(plan.player),
        "rating": text,
        **dict(zip(("elo", "elo_low", "elo_high"), map(finite, elos), strict=True)),
        **result(total),
        "ended": ended,
        "spec": plan.player,
        "against": against,
    }


def card(report: Report, row: Mapping[str, Any], command: str, style: str) -> str:
    """Format a rating as Markdown.

    Args:
        report: the report.
        row: its row, of :func:`to_dict`.
        command: the command that made it.
        style: the style of the table.
    """
    columns = ("opponent", "opponent_elo", "games", "won", "drawn", "lost", "score", "expected")
    of_report = report.facts
    made_with, ladder = of_report["made_with"], of_report["ladder_made_with"]
    packages = ", ".join(f"{name} {number}" for name, number in made_with["packages"].items())
    facts = {
        "ladder": f"{of_report['ladder']}, anchors rated with commit {ladder['commit']}",
        "rules": f"{of_report['ruleset']['name']}, version {made_with['rules_version']}, engine "
        f"{made_with['engine_signature']}",
        "games": f"{row['games']}, openings of {of_report['opening_plies']} random plies from both "
        f"seats, seed {of_report['seed']}; ended: {row['ended']}",
        **({"fingerprint": row["fingerprint"]} if row["fingerprint"] else {}),
        "commit": made_with["commit"],
        "versions": packages,
        "command": f"`{command}`",
    }
    if of_report["changed_anchors"]:
        facts["anchors that now play otherwise"] = ", ".join(of_report["changed_anchors"])
    lines = [f"- {name}: {text}" for name, text in facts.items()]
    lines += [f"- note: {escaped(note)}" for note in notes_of(row)]
    return "\n\n".join(
        [
            f"# {row['player']}: {row['rating']}, {row['ms_a_move']:.3f} CPU ms a move",
            table(row["against"], columns, style),
            "\n".join(lines),
        ]
    )


def notes_of(row: Mapping[str, Any]) -> list[str]:
    """Return what a reader must know about a player's games."""
    return notes(row["player"], row["spec"], row["ms_a_move"], row["faults"])


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
        help=f"{', '.join(shipped())}, or a file; it has the rules (default: {DEFAULT})",
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
        help="time limit of a player's games (default: 100)",
    )
    add_event(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    ladder = load_ladder(args.ladder)
    players = parse_players([*expand(args.players)])
    check_event(args, players)
    marks = {
        name: fingerprint(spec, ladder.load(spec), ladder.ruleset) for name, spec in players.items()
    }
    changed = ladder.changed()
    rows: list[dict[str, Any]] = []
    total = Pairs()
    try:
        with playing(args) as workers:
            for name, spec in players.items():
                plan = OnLadder(ladder, spec, args.precision, args.seed)
                results: dict[Part, Pairs] = {}
                ended = _rate(args, name, plan, workers, results)
                if results:
                    row = to_dict(name, plan, results, ended)
                    rows.append(row | {"fingerprint": marks[name]})
                    total += sum(results.values(), Pairs())
                if not results or (ended == "stopped" and len(players) > 1):
                    raise KeyboardInterrupt(f"{len(rows)} of {len(players)} players are rated")
    finally:  # ratings from before an error or Ctrl-C are shown anyway
        if rows:
            _report(args, ladder, players, rows, total, changed)


def _rate(
    args: argparse.Namespace,
    name: str,
    plan: OnLadder,
    workers: Workers,
    results: dict[Part, Pairs],
) -> str:
    """Play the games of a rating; return why they ended."""
    specs = [*(anchor.player for anchor in plan.ladder.anchors), plan.player]
    players, ladder = {spec: spec for spec in specs}, plan.ladder
    event = make_event(args, players, ladder.ruleset, ladder.starts, plan.keys)
    try:
        with Progress(unit="game", desc=name) as bar:
            play(event, plan, workers, bar, results, args.seconds)
    except TimeoutError:
        return "time is up"
    except KeyboardInterrupt:
        return "stopped"
    return "precise" if plan.is_precise(results) else "no openings left"


def _report(
    args: argparse.Namespace,
    ladder: Ladder,
    players: Mapping[str, str],
    rows: list[dict[str, Any]],
    total: Pairs,
    changed: list[str],
) -> None:
    """Write the files that the options name, and print the ratings."""
    made_with = provenance(ladder.ruleset)
    report = Report(
        rows,
        COLUMNS,
        {
            "ladder": ladder.name,
            "ruleset": ladder.ruleset.name,
            "seed": args.seed,
            "commit": made_with["commit"],
        },
        {
            "made_with": made_with,
            "players": players,
            "ladder": ladder.name,
            "ladder_made_with": ladder.tournament["made_with"],
            "ruleset": ladder.ruleset.to_dict(),
            "opening_plies": ladder.tournament["opening_plies"],
            "seed": args.seed,
            "changed_anchors": changed,
        },
    )
    said = [
        f"note: {row['player']}: {row['ended']} before +-{args.precision:g} Elo was reached: give "
        f"a larger {'--seconds' if row['ended'] == 'time is up' else '--precision'}"
        for row in rows
        if row["ended"] in ("time is up", "no openings left")
    ]
    if len(players) > 1 or args.format:
        said += [note for row in rows for note in notes_of(row)]

    def text(style: str) -> str:
        return report.table(style) if len(players) > 1 else card(report, rows[0], again, style)

    again = _command(args)
    show(args, report, text, said + commit_notes(total), total.games, "random", "pipe")


def _command(args: argparse.Namespace) -> str:
    """Return the command that rates the players again."""
    words = ["bao", "rate", *args.players, "--ladder", args.ladder, "--seed", str(args.seed)]
    words += ["--precision", f"{args.precision:g}", "--seconds", f"{args.seconds:g}"]
    words += ["--threads", str(args.threads)]
    return shlex.join([*words, *(word for folder in args.path for word in ("--path", folder))])
