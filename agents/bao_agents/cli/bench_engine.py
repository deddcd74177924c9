"""Measure the engine: random legal play with auto-reset, in plies per second.

Every case plays the same kind of game: draw a uniformly random legal action, play it, find the
legal actions of the new position, and restart ended games.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from gymnasium.vector import AutoresetMode

from bao_agents.cli.benchmark import Case, add_rounds, measure, print_facts
from bao_agents.cli.options import Run, add_options, at_least, write_json
from bao_agents.support.provenance import provenance
from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import Ruleset
from bao_env.engine.sampling import random_states
from bao_env.envs.aec import raw_env
from bao_env.envs.vector import BaoVectorEnv

BATCHES = (1, 64, 1024, 16384)


def kernel_case(ruleset: Ruleset, batch: int, threads: int) -> Case:
    """Make the case of the engine alone, with legal actions as bits and without observations."""
    engine = Engine(ruleset, threads)
    games, rng = engine.new_games(batch), random_states(batch, 1)

    def play(calls: int) -> int:
        engine.play_random(*games, rng, calls)
        return calls * batch

    return Case("kernel", batch, threads, play)


VECTOR_CASES = (
    (np.float32, AutoresetMode.SAME_STEP),
    (np.float32, AutoresetMode.NEXT_STEP),
    (np.uint8, AutoresetMode.NEXT_STEP),
)


def vector_case(
    ruleset: Ruleset, batch: int, threads: int, dtype: type, mode: AutoresetMode
) -> Case:
    """Make a case of the vector environment, which returns fresh arrays at each step."""
    env = BaoVectorEnv(
        batch,
        opponent=None,
        ruleset=ruleset,
        threads=threads,
        dtype=dtype,
        autoreset_mode=mode,
    )
    env.reset(seed=1)

    def play(calls: int) -> int:
        for _ in range(calls):
            env.step(env.sample_legal_actions())
        return calls * batch

    return Case(f"vector {np.dtype(dtype)}, {mode.name}", batch, threads, play)


def aec_case(ruleset: Ruleset) -> Case:
    """Make the case of PettingZoo's loop over ``raw_env``: last(), a random action, step()."""
    env = raw_env(ruleset=ruleset)
    env.reset(seed=1)
    rng = np.random.default_rng(1)

    def play(calls: int) -> int:
        for draw in rng.random(calls):
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                env.reset()
                observation, _, _, _, _ = env.last()
            legal = observation["action_mask"].nonzero()[0]
            env.step(int(legal[int(draw * len(legal))]))
        return calls

    return Case("AEC raw_env", 1, 1, play)


def all_cases(ruleset: Ruleset, batches: Sequence[int], threads: Sequence[int]) -> list[Case]:
    """Make the cases of the engine and of every environment."""
    sizes = [(batch, count) for count in threads for batch in batches]
    return [
        *(kernel_case(ruleset, *size) for size in sizes),
        *(vector_case(ruleset, *size, *kind) for size in sizes for kind in VECTOR_CASES),
        aec_case(ruleset),
    ]


def command(parser: argparse.ArgumentParser) -> Run:
    """Define ``bao bench engine``: plies a second of random legal play."""
    add_options(parser, "ruleset", "json")
    add_rounds(parser, seconds=0.5)
    parser.add_argument(
        "--batches",
        type=at_least(1),
        nargs="+",
        default=BATCHES,
        metavar="B",
        help=f"games side by side (default: {' '.join(map(str, BATCHES))})",
    )
    parser.add_argument(
        "--threads", type=at_least(1), nargs="+", default=(1, 2), metavar="N", help="cores to use"
    )
    return _run


def _run(args: argparse.Namespace) -> None:
    cases = all_cases(args.ruleset, args.batches, args.threads)
    measure(cases, args.rounds, args.seconds)
    record = provenance(args.ruleset, command=["bao", *args.words])
    rows = [
        {
            "name": case.name,
            "batch": case.batch,
            "threads": case.threads,
            "plies_per_second": case.rate,
            "plies_per_cpu_second": case.cpu_rate,
        }
        for case in cases
    ]
    write_json(args.json, {"made_with": record, "cases": rows})
    if args.json == "-":
        return
    print_facts(record)
    print(f"{'million plies a second':28}{'batch':>7}{'threads':>8}{'rate':>9}{'per core':>10}")
    for case in cases:
        print(
            f"{case.name:28}{case.batch:>7}{case.threads:>8}"
            f"{case.rate / 1e6:>9.3f}{case.cpu_rate / 1e6:>10.3f}"
        )
