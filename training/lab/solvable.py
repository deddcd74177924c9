"""Measure how early positions can be solved: the share of games whose winner is proved, by ply.

    python -m training.lab.solvable --out runs/solvable

Positions of games after 8, 12, ... 60 plies are given to the solver
(:mod:`agents.search.solver.solver`), each with an empty table of 96 MiB. Limits are numbers of
visited positions, so that results do not depend on the machine; :data:`NODES_A_SECOND` of them take
about a second on one core. It starts with late plies and ends where none is solved.

The folder gets a file for each cell, with which a stopped run continues; ``tables.md``; and
``solvable.png``.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import product
from pathlib import Path
from typing import Any, Final

from agents import registry
from agents.arena.report import markdown_table
from agents.files import write_atomically
from agents.search.solver.solver import Solver
from bao_env.engine.ruleset import RULESETS
from training.plot import errorbars
from training.resumable import Resumable
from training.sampling import games
from training.shares import Share

NODES_A_SECOND: Final = 800_000
"""Positions that the solver visits in a second, on one core of an AMD EPYC."""
PLIES: Final = tuple(range(8, 61, 4))
RANDOM_PLIES: Final = 8
"""Random plies that open each game."""
PLAYERS: Final = ("random", "alphabeta:2")
SAMPLES: Final = {1: 16, 60: 8}
"""Positions of a cell, by limit in seconds."""
ENOUGH: Final = 0.9
"""Above this share of solved positions, the longer limit is not tried."""
TABLE_BITS: Final = 20
SEED: Final = 1

Cell = dict[str, list[bool]]
"""For each limit in seconds, which positions are solved; without the limits that were not tried."""


def search(ruleset: str, player: str, ply: int) -> Cell:
    """Solve positions of games that a player plays against itself.

    Returns:
        the cell; empty if too few games last that long.
    """
    agent = registry.load(player, ruleset=ruleset, seed=SEED, threads=1)
    opening, plies = (RANDOM_PLIES, RANDOM_PLIES), (ply, ply)
    try:
        sample = games(
            ruleset,
            agent,
            agent,
            max(SAMPLES.values()),
            opening_plies=opening,
            plies=plies,
            seed=SEED,
        )
    except ValueError:
        return {}
    cell: Cell = {}
    for seconds, count in SAMPLES.items():
        solver = Solver(ruleset, nodes=seconds * NODES_A_SECOND, table_bits=TABLE_BITS)
        cell[str(seconds)] = []
        for i in range(count):
            solver.clear()
            values, _ = solver.values(sample.positions[i : i + 1], sample.masks[i : i + 1])
            cell[str(seconds)].append(bool(values[0]))
        if not 0 < sum(cell[str(seconds)]) < ENOUGH * count:
            break
    return cell


def measure(folder: Resumable) -> dict[tuple[str, str, int], Cell]:
    """Search the cells that are missing; return all by rule set, player and ply."""
    cells = {}
    for ruleset, player in product(RULESETS, PLAYERS):
        for ply in reversed(PLIES):
            name = f"{ruleset}-{player.replace(':', '')}-{ply}.json"
            cell: Cell = folder.part(
                name,
                lambda path: json.loads(path.read_bytes()),
                lambda path, key=(ruleset, player, ply): write_atomically(  # type: ignore[misc]
                    path, json.dumps(search(*key)) + "\n"
                ),
            )
            cells[ruleset, player, ply] = cell
            if cell and not any(cell["1"]):
                break
    return cells


def shares(
    cells: dict[tuple[str, str, int], Cell], player: str, seconds: int
) -> dict[str, dict[int, Share]]:
    """Return the share that a limit solves, by rule set and ply, where it was tried."""
    found: dict[str, dict[int, Share]] = {ruleset: {} for ruleset in RULESETS}
    for (ruleset, of, ply), cell in sorted(cells.items()):
        solved = cell.get(str(seconds), [])
        share = Share.of(sum(solved), len(solved))
        if of == player and share:
            found[ruleset][ply] = share
    return found


def tables(cells: dict[tuple[str, str, int], Cell]) -> str:
    """Return the shares in percent with their 95 % intervals as Markdown."""
    parts = []
    for player, seconds in product(PLAYERS, SAMPLES):
        found = shares(cells, player, seconds)
        rows = [
            [
                str(ply),
                *(
                    "{:.0f} ({:.0f} to {:.0f})".format(*(100 * rate for rate in column[ply]))
                    if ply in column
                    else ""
                    for column in found.values()
                ),
            ]
            for ply in PLIES
            if any(ply in column for column in found.values())
        ]
        if rows:
            parts.append(markdown_table([f"{player}, {seconds} s", *found], rows))
    return "\n\n".join(parts) + "\n"


def plot(cells: dict[tuple[str, str, int], Cell], path: Path) -> None:
    """Draw the shares against plies, a panel for each player."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * len(PLAYERS), 3.8), layout="constrained")
    panels = figure.subplots(1, len(PLAYERS), sharey=True)
    for axes, player in zip(panels, PLAYERS, strict=True):
        for seconds, fmt in zip(SAMPLES, ("o-", "^:"), strict=True):
            for place, (ruleset, column) in enumerate(shares(cells, player, seconds).items()):
                x = [ply + 0.3 * (place - 2) for ply in column]  # beside each other
                style: dict[str, Any] = {"fmt": fmt, "color": f"C{place}", "markersize": 3}
                style |= {"linewidth": 1, "elinewidth": 0.4, "label": f"{ruleset}, {seconds} s"}
                if x:
                    scores = [[100 * rate for rate in share] for share in column.values()]
                    errorbars(axes, x, scores, **style)
        axes.set_title(f"games of {player}", size=10)
        axes.set_xlabel("plies played")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("games still going that are solved, %")
    panels[0].legend(fontsize=7)
    figure.savefig(path, dpi=90)


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.lab.solvable``."""
    parser = argparse.ArgumentParser(
        prog="python -m training.lab.solvable",
        description="Measure how early in a game its winner can be proved.",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    args = parser.parse_args(argv)
    settings = {"nodes_a_second": NODES_A_SECOND, "samples": SAMPLES, "seed": SEED}
    try:
        with Resumable(args.out, settings) as folder:
            cells = measure(folder)
            text = tables(cells)
            write_atomically(args.out / "tables.md", text)
            plot(cells, args.out / "solvable.png")
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command continues", file=sys.stderr)
        return 130
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
