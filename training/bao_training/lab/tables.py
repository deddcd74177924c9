"""Write the tables of the documents from the JSON files that hold their figures.

    bao lab tables            # rewrite them
    bao lab tables --check    # exit with 1 if one is out of date

A tournament writes ``table.json``. The published one is ``training/ladder.json``; its Elo table
is in ``training/RESULTS.md``, between ``<!-- ladder -->`` and ``<!-- /ladder -->``. To publish a
new tournament, copy its ``table.json`` and ``elo.png`` over ``ladder.json`` and
``ladder.png``, and run this command. In the same way ``training/bao_training/lab/BENCHMARK.md`` has
the table of ``training/bao_training/lab/benchmark.json``, which ``bao lab benchmark`` writes with
``benchmark.png``, and the card of the shipped networks, ``agents/MODELS.md``, has the tables that
``bao lab card`` measures.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from bao_agents.arena.report import markdown

from bao_env.files import write_atomically
from bao_env.options import Run
from bao_training.lab import card
from bao_training.lab.benchmark import summary

LAB = Path(__file__).resolve().parent
TRAINING = LAB.parent
LADDER = TRAINING / "ladder.json"
RESULTS = TRAINING / "RESULTS.md"
RUNS = LAB / "benchmark.json"
BENCHMARK = LAB / "BENCHMARK.md"
NETWORKS = card.CARD.with_name("README.md")


def tables() -> list[tuple[Path, str, str]]:
    """Return each document with a table, its mark there, and the table."""
    ladder = markdown(json.loads(LADDER.read_bytes()))
    runs = summary.RUNS.validate_json(RUNS.read_bytes())
    networks = card.measured()
    return [
        (RESULTS, "ladder", ladder.partition("\n\nPoints of the row against the column")[0]),
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
