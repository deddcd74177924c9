"""Measure the searches on one core: nodes and playouts per second.

    bao bench search

The positions come from random games that are not over: a quarter each after 8, 16, 32 and 40 plies.
"""

from __future__ import annotations

import argparse

import numpy as np
from tabulate import tabulate

from bao_agents.cli.benchmark import Case, add_rounds, measure, print_facts
from bao_agents.cli.options import Run, add_options, at_least, write_json
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.limits import Limit
from bao_agents.search.mcts import MctsAgent
from bao_agents.search.player import has_choice
from bao_agents.support.provenance import provenance
from bao_env.engine.batch import Engine
from bao_env.engine.position import PackedPositions
from bao_env.engine.ruleset import Ruleset
from bao_env.envs.openings import Openings

PLIES = (8, 16, 32, 40)
DEPTHS = (4, 6, 8, 10)
PLAYOUTS = 1000


def sample(ruleset: Ruleset, count: int) -> PackedPositions:
    """Draw positions uint64[count, 6] of random games, early and late."""
    rng = np.random.default_rng(0)
    parts = [Openings(ruleset, (plies, plies)).draw(count // 4, rng)[0] for plies in PLIES]
    return np.concatenate(parts)


def alphabeta_case(ruleset: Ruleset, positions: PackedPositions, depth: int) -> Case:
    """Make the case of alpha-beta search to a depth; it counts nodes."""
    agent = AlphaBetaAgent(ruleset, Limit(plies=depth), threads=1)

    def play(calls: int) -> int:
        return sum(agent.search(position).nodes for _ in range(calls) for position in positions)

    return Case(f"alphabeta:{depth}, nodes", len(positions), 1, play)


def mcts_case(ruleset: Ruleset, positions: PackedPositions) -> Case:
    """Make the case of Monte Carlo tree search; it counts playouts."""
    agent = MctsAgent(ruleset, Limit(nodes=PLAYOUTS), threads=1)
    legal = np.empty(len(positions), np.uint64)
    Engine(ruleset).find_legal(positions, legal, np.empty(len(positions), np.int8))
    searched = has_choice(legal)

    def play(calls: int) -> int:
        for _ in range(calls):
            agent.act(positions[searched], legal[searched])
        return calls * PLAYOUTS * len(searched)

    return Case("mcts, random playouts", len(positions), 1, play)


def command(parser: argparse.ArgumentParser) -> Run:
    """Define ``bao bench search``: nodes and playouts per second of the searches, on one core."""
    add_options(parser, "ruleset", "json")
    parser.add_argument(
        "--positions", type=at_least(4), default=100, help="positions to search (default: 100)"
    )
    add_rounds(parser, seconds=1.0)
    return _run


def _run(args: argparse.Namespace) -> None:
    ruleset = args.ruleset
    positions = sample(ruleset, args.positions)
    cases = [
        *(alphabeta_case(ruleset, positions, depth) for depth in DEPTHS),
        mcts_case(ruleset, positions),
    ]
    measure(cases, args.rounds, args.seconds)
    rates = {case.name: case.rate for case in cases}
    record = provenance(ruleset, command=["bao", *args.words])
    write_json(args.json, {"made_with": record, "per_second": rates})
    if args.json == "-":
        return
    print_facts(record)
    print(f"one core, {len(positions)} positions")
    print(tabulate(rates.items(), ("case", "a second"), floatfmt=",.0f"))
