"""Measure the searches on one core: nodes, playouts and depth a second.

    python -m agents.speed

The positions come from random games, a quarter each after 8, 16, 32 and 48 plies; none is over. If
OpenSpiel is installed (``pip install open_spiel``), its C++ search of mancala with random playouts
is timed in the same rounds, as a yardstick.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.arena.openings import draw_openings
from agents.search.alphabeta.player import AlphaBetaAgent
from agents.search.mcts import MctsAgent
from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import Ruleset
from bao_env.rule_files import RULESET_HELP, ruleset_argument
from bao_env.signature import machine

DEPTHS = (4, 6, 8, 10)
SIMULATIONS = 1000

Work = Callable[[], int]


def sample(ruleset: Ruleset, count: int) -> npt.NDArray[np.uint64]:
    """Positions uint64[count, 6] of random games, early and late."""
    parts = [draw_openings(ruleset, count // 4, plies, 0, None) for plies in (8, 16, 32, 48)]
    return np.concatenate([part.positions for part in parts])


def open_spiel(simulations: int) -> Work:
    """A search of mancala by OpenSpiel's C++ UCT with random playouts.

    Raises:
        ImportError: OpenSpiel is not installed.
    """
    import pyspiel

    game = pyspiel.load_game("mancala")
    evaluator = pyspiel.RandomRolloutEvaluator(n_rollouts=1, seed=1)
    bot = pyspiel.MCTSBot(game, evaluator, 1.2, simulations, 1000, False, 1, False)
    state = game.new_initial_state()

    def work() -> int:
        bot.mcts_search(state)
        return simulations

    return work


def cases(ruleset: Ruleset, positions: npt.NDArray[np.uint64]) -> dict[str, Work]:
    """What is timed: functions that search once and return their nodes or playouts."""
    masks = np.empty(len(positions), np.uint64)
    Engine(ruleset).legal_masks(positions, masks, np.empty(len(positions), np.int8))
    found: dict[str, Work] = {}

    def alphabeta(depth: int) -> Work:
        agent = AlphaBetaAgent(ruleset, depth=depth, threads=1)
        return lambda: sum(agent.search(words).nodes for words in positions)

    def mcts(greedy: bool) -> Work:
        agent = MctsAgent(ruleset, simulations=SIMULATIONS, greedy=greedy, threads=1)
        has_choice = (masks & (masks - np.uint64(1))) != 0  # it searches only these

        def work() -> int:
            agent.act(positions[has_choice], masks[has_choice])
            return SIMULATIONS * int(has_choice.sum())

        return work

    for depth in DEPTHS:
        found[f"alphabeta:{depth}, nodes"] = alphabeta(depth)
    found["mcts, random playouts"] = mcts(False)
    found["mcts, greedy playouts"] = mcts(True)
    try:
        found["OpenSpiel mancala mcts, random playouts"] = open_spiel(SIMULATIONS)
    except ImportError:
        print("OpenSpiel is not installed: no peer is measured", file=sys.stderr)
    return found


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m agents.speed``."""
    parser = argparse.ArgumentParser(
        prog="python -m agents.speed",
        description="Nodes and playouts a second of the searches, on one core.",
    )
    parser.add_argument("--ruleset", type=ruleset_argument, default="zanzibar", help=RULESET_HELP)
    parser.add_argument("--positions", type=int, default=100, help="positions to search (100)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds; medians are printed (5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a timed search (1)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    args = parser.parse_args(argv)
    if args.positions < 4 or args.rounds < 1:
        parser.error("--positions must be at least 4, --rounds at least 1")
    ruleset = args.ruleset
    positions = sample(ruleset, args.positions)
    works = cases(ruleset, positions)
    rates: dict[str, list[float]] = {name: [] for name in works}
    done: dict[str, int] = {}
    for current in range(args.rounds + 1):
        for name, work in works.items():
            start = time.perf_counter()
            done[name] = work()
            if current:  # the first round compiles
                rates[name].append(done[name] / (time.perf_counter() - start))
    rows: list[dict[str, Any]] = [
        {"case": name, "per_second": statistics.median(rates[name])} for name in works
    ]
    for row in rows:
        if row["case"].startswith("alphabeta"):
            row["nodes_a_position"] = done[row["case"]] / len(positions)
    timed = AlphaBetaAgent(ruleset, seconds=args.seconds, threads=1)
    found = [timed.search(words) for words in positions[:: max(1, len(positions) // 12)]]
    open_ended = [result for result in found if result.depth < 60 and abs(result.value) < 30_000]
    depths = [result.depth for result in open_ended]
    deep = {
        "seconds": args.seconds,
        "searches": len(depths),
        "median_depth": statistics.median(depths) if depths else None,
        "nodes_per_second": sum(result.nodes for result in open_ended)
        / (args.seconds * max(1, len(open_ended))),
    }
    where = machine()
    if args.json:
        print(json.dumps({"machine": where, "cases": rows, "timed": deep}, indent=2))
        return 0
    print(f"{where['cpu']}, one core; rule set {ruleset.name}, {len(positions)} positions")
    peer = next((row["per_second"] for row in rows if row["case"].startswith("OpenSpiel")), None)
    for row in rows:
        ratio = (
            f"  {row['per_second'] / peer:5.2f} x peer" if peer and "mcts" in row["case"] else ""
        )
        nodes = f"  {row['nodes_a_position']:9,.0f} a position" if "nodes_a_position" in row else ""
        print(f"{row['case']:42}{row['per_second']:>12,.0f} /s{ratio}{nodes}")
    print(
        f"alphabeta, {args.seconds:g} s a search: median depth {deep['median_depth']} over "
        f"{deep['searches']} undecided positions, {deep['nodes_per_second']:,.0f} nodes/s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
