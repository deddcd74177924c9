"""How early positions can be solved: the share of games whose winner a search proves, by ply.

    python -m training.lab.solvable --out runs/solvable

It plays games, takes the position of each that still goes on after 8, 12, ... 60 plies, and gives
it to the solver (:mod:`agents.search.solver.solver`) with an empty table of 96 MiB. Limits are
numbers of positions visited, so that results do not depend on the machine; :data:`NODES_A_SECOND`
of them are about a second of one core. From late plies it goes to early ones, until it solves none.

The folder gets ``searches.csv``, one row a position, which lets a stopped run continue;
``tables.md``; and ``solvable.png``.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from tabulate import tabulate
from tqdm import tqdm

from agents import registry
from agents.arena.elo import wilson_interval
from agents.files import hold, write_atomically
from agents.search.solver.solver import Solver
from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import RULESETS
from bao_env.envs.openings import Openings

NODES_A_SECOND: Final = 800_000
"""Positions that the solver visits in a second, on one core of an AMD EPYC."""
PLIES: Final = tuple(range(8, 61, 4))
"""After how many plies positions are taken."""
RANDOM_PLIES: Final = 8
"""Random plies that open each game."""
SHORT: Final = 1
"""The limit for every position, in seconds."""
LONG: Final = 60
"""The limit for some of a cell where the short one solves a part."""
ENOUGH: Final = 0.9
"""Where the short limit solves this share, the long one is not tried."""
TABLE_BITS: Final = 20
"""Size of the solver's table of positions, as a power of two."""
_GAMES: Final = 512
"""Games played at a time."""
_ROUNDS: Final = 200
"""How often so many games are played at most, to find positions after late plies."""


class Cell(NamedTuple):
    """Where positions come from."""

    seed: int
    ruleset: str
    player: str
    ply: int


class Search(NamedTuple):
    """One position's search."""

    limit: int
    """Nodes allowed."""
    value: int
    """1 if the player to move wins, -1 if they lose, 0 if that was not found out."""
    nodes: int
    """Nodes visited."""
    seconds: float
    """Processor time."""

    def solves_within(self, seconds: int) -> bool | None:
        """Whether a limit of so many seconds suffices; None if that was not tried."""
        limit = seconds * NODES_A_SECOND
        if self.value and self.nodes <= limit:
            return True
        return False if self.limit >= limit else None


Results = dict[tuple[Cell, int], Search]
"""By cell and number of the position in it."""
_COLUMNS: Final = (*Cell._fields, "sample", *Search._fields)


def positions_of_games(
    ruleset: str, player: str, plies: Sequence[int], count: int, seed: int
) -> dict[int, npt.NDArray[np.uint64]]:
    """Positions of games that a player plays against itself, from random openings.

    Args:
        ruleset: the rules.
        player: any player's name.
        plies: after how many plies positions are taken, at least :data:`RANDOM_PLIES`.
        count: how many at each; fewer only if hardly any game goes on for so long.
        seed: of the openings, and of the player.

    Returns:
        by ply, positions uint64[up to count, 6], each of another game.
    """
    engine, agent = Engine(ruleset), registry.load(player, ruleset=ruleset, seed=seed, threads=1)
    openings = Openings(engine.ruleset, (RANDOM_PLIES, RANDOM_PLIES))
    rng = np.random.default_rng(seed)
    found = {ply: np.empty((0, 6), np.uint64) for ply in plies}
    for _ in range(_ROUNDS):
        if all(len(part) >= count for part in found.values()):
            break
        positions, masks = openings.draw(_GAMES, rng)
        winners = np.full(_GAMES, -1, np.int8)
        for ply in range(RANDOM_PLIES, max(plies) + 1):
            if ply in found:
                found[ply] = np.concatenate([found[ply], positions[masks != 0]])[:count]
            engine.step(positions, agent.act(positions, masks), masks, winners)
    return found


def solved(results: Results, cell: Cell, seconds: int, samples: dict[int, int]) -> tuple[int, int]:
    """How many of a cell's first positions a limit solves, and how many were searched.

    Args:
        results: the searches.
        cell: where the positions come from.
        seconds: the limit.
        samples: positions a cell, by limit in seconds.

    Returns:
        both numbers; zeros if the limit was not tried on all of them. Those that a lower limit
        solves would be no fair sample.
    """
    searches = [results[cell, i] for i in range(samples[seconds]) if (cell, i) in results]
    tried = [search.solves_within(seconds) for search in searches]
    if None in tried or (seconds > SHORT and not worth_more(results, cell, samples)):
        return 0, 0
    return sum(map(bool, tried)), len(tried)


def worth_more(results: Results, cell: Cell, samples: dict[int, int]) -> bool:
    """Whether the short limit solves some of a cell's positions, but not almost all."""
    good, tried = solved(results, cell, SHORT, samples)
    return 0 < good < ENOUGH * tried


def search_cell(
    results: Results, cell: Cell, positions: npt.NDArray[np.uint64], seconds: int
) -> Iterator[bool]:
    """Search a cell's positions that were not searched with this limit, into ``results``.

    Args:
        results: gets a search a position.
        cell: where the positions come from.
        positions: uint64[B, 6].
        seconds: the limit.

    Yields:
        after each position, whether it had to be searched.
    """
    limit = seconds * NODES_A_SECOND
    solver = Solver(cell.ruleset, nodes=limit, table_bits=TABLE_BITS)
    for i, words in enumerate(positions):
        known = results.get((cell, i))
        if known is not None and known.solves_within(seconds) is not None:
            yield False
            continue
        solver.clear()
        begun = time.process_time()
        values, nodes = solver.values(words[None], np.ones(1, np.uint64))
        spent = round(time.process_time() - begun, 4)
        results[cell, i] = Search(limit, int(values[0]), int(nodes[0]), spent)
        yield True


# --- files --------------------------------------------------------------------------------------


def read(path: Path) -> Results:
    """The searches of a file; none if it does not exist.

    Raises:
        ValueError: it is no such file.
    """
    if not path.exists():
        return {}
    try:
        with open(path, newline="", encoding="utf-8") as file:
            return {
                (
                    Cell(int(row["seed"]), row["ruleset"], row["player"], int(row["ply"])),
                    int(row["sample"]),
                ): Search(
                    int(row["limit"]), int(row["value"]), int(row["nodes"]), float(row["seconds"])
                )
                for row in csv.DictReader(file)
            }
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: expected the columns {', '.join(_COLUMNS)} ({error}): "
            "delete the file or choose another folder"
        ) from None


def write(results: Results, path: Path) -> None:
    """Write all searches, sorted."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows((*cell, i, *search) for (cell, i), search in sorted(results.items()))
    write_atomically(path, out.getvalue())


def tables(results: Results, cells: Sequence[Cell], samples: dict[int, int]) -> str:
    """Tables of shares, with their 95 % intervals, in Markdown.

    Args:
        results: the searches.
        cells: those to show.
        samples: positions a cell, by limit in seconds.
    """
    parts = []
    rulesets = list(dict.fromkeys(cell.ruleset for cell in cells))
    for player, seconds in product(dict.fromkeys(cell.player for cell in cells), samples):
        rows: dict[int, list[str]] = {}
        for cell in sorted(cells, key=lambda cell: (cell.ply, rulesets.index(cell.ruleset))):
            if cell.player == player:
                found = solved(results, cell, seconds, samples)
                rows.setdefault(cell.ply, [str(cell.ply)]).append(_share(*found))
        head = [f"{player}, {seconds} s", *rulesets]
        shown = [row for row in rows.values() if any(row[1:])]
        if shown:
            parts.append(tabulate(shown, head, tablefmt="github", disable_numparse=True))
    return "\n\n".join(parts) + "\n"


def _share(good: int, tried: int) -> str:
    """A share and its interval in percent; nothing if none was tried."""
    if tried == 0:
        return ""
    low, high = wilson_interval(good / tried, tried)
    return f"{good} of {tried} ({100 * low:.0f} to {100 * high:.0f} %)"


def plot(results: Results, cells: Sequence[Cell], samples: dict[int, int], path: Path) -> None:
    """Shares against plies, a panel for each player; :func:`tables` has the arguments."""
    from matplotlib.figure import Figure

    players = list(dict.fromkeys(cell.player for cell in cells))
    rulesets = list(dict.fromkeys(cell.ruleset for cell in cells))
    figure = Figure(figsize=(4.6 * len(players), 3.8), layout="constrained")
    panels = figure.subplots(1, len(players), sharey=True, squeeze=False)[0]
    for axes, player in zip(panels, players, strict=True):
        for (place, ruleset), seconds in product(enumerate(rulesets), samples):
            chosen = [cell for cell in cells if (cell.ruleset, cell.player) == (ruleset, player)]
            points = _points(results, chosen, seconds, samples)
            if not points:
                continue
            ply, rate, low, high = np.array(points).T
            axes.errorbar(
                ply + 0.3 * (place - 2),  # beside each other
                rate,
                yerr=[np.maximum(rate - low, 0), np.maximum(high - rate, 0)],
                color=f"C{place}",
                linestyle="-" if seconds == SHORT else ":",
                marker="o" if seconds == SHORT else "^",
                markersize=3,
                linewidth=1,
                elinewidth=0.4,
                label=f"{ruleset}, {seconds} s",
            )
        axes.set_title(f"games of {player}", size=10)
        axes.set_xlabel("plies played")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("games still going that are solved, %")
    fullest = max(panels, key=lambda axes: len(axes.containers))
    if fullest.containers:
        fullest.legend(fontsize=7)
    figure.savefig(path, dpi=90)


def _points(
    results: Results, cells: Sequence[Cell], seconds: int, samples: dict[int, int]
) -> list[tuple[float, ...]]:
    """By ply, the share of each cell that a limit solves and its interval, in percent."""
    points = []
    for cell in cells:
        good, tried = solved(results, cell, seconds, samples)
        if tried:
            rates = (good / tried, *wilson_interval(good / tried, tried))
            points.append((cell.ply, *(100 * rate for rate in rates)))
    return sorted(points)


# --- the command --------------------------------------------------------------------------------


def measure(
    results: Results,
    seed: int,
    pairs: Sequence[tuple[str, str]],
    plies: Sequence[int],
    samples: dict[int, int],
    keep: Callable[[], None],
) -> None:
    """Search what is not in ``results`` yet.

    Args:
        results: the searches, filled in place.
        seed: of the games.
        pairs: rule sets and players.
        plies: at which positions are taken.
        samples: positions a cell, by limit in seconds.
        keep: called after each search, to save the results.
    """
    for seconds, count in samples.items():
        for ruleset, player in pairs:
            positions = positions_of_games(ruleset, player, plies, max(samples.values()), seed)
            with tqdm(total=len(plies) * count, desc=f"{ruleset}, {player}, {seconds} s") as bar:
                for ply in sorted(plies, reverse=True):
                    cell = Cell(seed, ruleset, player, ply)
                    if seconds > SHORT and not worth_more(results, cell, samples):
                        continue
                    for searched in search_cell(results, cell, positions[ply][:count], seconds):
                        bar.update()
                        if searched:
                            keep()
                    if solved(results, cell, seconds, samples)[0] == 0:
                        break


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m training.lab.solvable",
        description="Measure how early in a game its winner can be proved.",
        epilog="players: " + registry.KNOWN,
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="a stopped run continues there")
    parser.add_argument(
        "--rulesets",
        nargs="+",
        default=list(RULESETS),
        choices=list(RULESETS),
        metavar="RULESET",
        help=f"some of {', '.join(RULESETS)} (default all)",
    )
    parser.add_argument(
        "--players",
        nargs="+",
        default=["random", "alphabeta:2"],
        metavar="PLAYER",
        help="whose games (default random alphabeta:2)",
    )
    parser.add_argument(
        "--plies",
        nargs="+",
        type=int,
        default=list(PLIES),
        metavar="N",
        help="after how many plies positions are taken (default 8 12 ... 60)",
    )
    parser.add_argument(
        "--samples", type=int, default=24, metavar="N", help=f"positions, {SHORT} s each (24)"
    )
    parser.add_argument(
        "--long",
        type=int,
        default=8,
        metavar="N",
        help=f"of these with {LONG} s, where that may help (8)",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the games (default 1)")
    args = parser.parse_args(argv)
    if args.samples < 1 or not 0 <= args.long <= args.samples or args.seed < 0:
        parser.error("--samples must be positive, --long from 0 to that, --seed not negative")
    if min(args.plies) < RANDOM_PLIES:
        parser.error(f"--plies: games begin with {RANDOM_PLIES} random ones: expected no fewer")
    return args


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.lab.solvable``."""
    args = arguments(argv)
    out, plies = Path(args.out), sorted(set(args.plies))
    samples = {SHORT: args.samples} | ({LONG: args.long} if args.long else {})
    pairs = list(dict.fromkeys(product(args.rulesets, args.players)))
    cells = [Cell(args.seed, *pair, ply) for pair in pairs for ply in plies]
    stopped = False
    try:
        with hold(out):
            path = out / "searches.csv"
            results = read(path)
            try:
                measure(results, args.seed, pairs, plies, samples, lambda: write(results, path))
            except KeyboardInterrupt:
                stopped = True
            text = tables(results, cells, samples)
            write_atomically(out / "tables.md", text)
            plot(results, cells, samples, out / "solvable.png")
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(text)
    spent = sum(search.seconds for search in results.values())
    rate = sum(search.nodes for search in results.values()) / max(spent, 1e-9)
    print(f"{len(results):,} searches, {spent:,.0f} processor seconds, {rate:,.0f} nodes a second")
    if stopped:
        print("stopped; the same command continues", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
