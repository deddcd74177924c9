"""Write the tables of the documents from the JSON files that hold their figures.

    bao lab tables            # rewrite them
    bao lab tables --check    # exit with 1 if one is out of date

A tournament writes ``table.json``. The published one is ``training/ladder.json``; its Elo table
is in ``training/RESULTS.md``, between ``<!-- ladder -->`` and ``<!-- /ladder -->``. To publish a
new tournament, copy its ``table.json`` and ``elo.png`` over ``ladder.json`` and
``ladder.png``, and run this command. In the same way ``training/lab/BENCHMARK.md`` has the table of
``training/lab/benchmark.json``, which ``bao lab benchmark`` writes with ``benchmark.png``, and
the card of the shipped networks, ``agents/checkpoints/README.md``, has the tables that
``bao lab card`` measures.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from agents.arena.ratings import Ratings
from agents.arena.report import Standing, markdown
from bao_env.cli import Run
from bao_env.files import write_atomically
from training.lab import card
from training.lab.benchmark import summary

LAB: Final = Path(__file__).resolve().parent
TRAINING: Final = LAB.parent
LADDER: Final = TRAINING / "ladder.json"
RESULTS: Final = TRAINING / "RESULTS.md"
RUNS: Final = LAB / "benchmark.json"
BENCHMARK: Final = LAB / "BENCHMARK.md"
NETWORKS: Final = card.CARD.with_name("README.md")


def points_of(pairs_by_points: list[int]) -> npt.NDArray[np.float64]:
    """Return the points of a match, float64[pairs, 2], from its numbers of pairs by points.

    Args:
        pairs_by_points: numbers of pairs whose two games brought 0, 0.5, 1, 1.5 and 2 points.
            The split of a pair's points between its games is unknown; both get half.
    """
    halves = np.repeat(np.arange(5) / 4, pairs_by_points)
    return np.stack([halves, halves], axis=1)


def ladder_tables(report: dict[str, Any]) -> str:
    """Return the Elo table and the crosstable of a tournament's ``table.json`` as Markdown.

    Raises:
        KeyError: ``report`` is not the JSON of a tournament.
    """
    players = report["players"]
    standing = Standing(
        results={
            (pairing["first"], pairing["second"]): points_of(pairing["pairs_by_points"])
            for pairing in report["pairings"]
        },
        milliseconds={player["player"]: player["ms_a_move"] for player in players},
        mean_plies=report["mean_plies"],
    )
    ratings = Ratings(
        names=tuple(player["player"] for player in players),
        elo=np.array([player["elo"] for player in players]),
        low=np.array([player["elo_low"] for player in players]),
        high=np.array([player["elo_high"] for player in players]),
        anchor=report["anchor"],
        score=np.array([player["score"] for player in players]),
        games=np.array([player["games"] for player in players]),
    )
    text = markdown(standing, ratings, report["settings"])
    return text.partition("\n\nPoints of the row against the column")[0]


def tables() -> list[tuple[Path, str, str]]:
    """Return each document with a table, its mark there, and the table."""
    ladder = ladder_tables(json.loads(LADDER.read_text(encoding="utf-8")))
    runs = summary.RUNS.validate_json(RUNS.read_bytes())
    networks = card.measured()
    return [
        (RESULTS, "ladder", ladder),
        (BENCHMARK, "benchmark", summary.table(runs)),
        (NETWORKS, "networks", card.networks_table(networks)),
        (NETWORKS, "games", card.games_table(networks)),
    ]


def replace_between(text: str, name: str, part: str) -> str:
    """Return ``text`` with ``part`` between its lines ``<!-- name -->`` and ``<!-- /name -->``.

    Raises:
        ValueError: the text does not have both lines, once each, in this order.
    """
    start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->\n"
    head, found_start, rest = text.partition(start)
    _, found_end, tail = rest.partition(end)
    if not (found_start and found_end) or start in rest or end in tail:
        raise ValueError(f"expected one line {start.strip()} and, after it, one {end.strip()}")
    return head + start + "\n" + part.strip() + "\n\n" + end + tail


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao lab tables``: write the tables of the documents from the JSON files."""
    parser.add_argument("--check", action="store_true", help="write nothing; check")
    return _run


def _run(args: argparse.Namespace) -> int:
    for document, name, part in tables():
        old = document.read_text(encoding="utf-8")
        new = replace_between(old, name, part)
        if args.check and new != old:
            print(f"{document} is out of date: run bao lab tables", file=sys.stderr)
            return 1
        if new != old:
            write_atomically(document, new)
    return 0
