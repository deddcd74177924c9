"""Measure the engine: random legal play with exact masks and auto-reset, in plies a second.

Every case plays the same kind of game: draw a uniformly random legal action, play it, compute the
exact legal mask of the new position, restart ended games. Cases run in turn, round after round, so
a machine whose speed drifts slows all of them alike. The table shows medians over the rounds, and
ratios to the peers of the same run.

The signature is a hash over fixed games. It changes if, and only if, the rules or the action
encoding behave differently.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from bao_env.engine.batch import Engine, random_states
from bao_env.engine.position import NO_WINNER
from bao_env.engine.ruleset import Ruleset
from bao_env.envs.aec import raw_env
from bao_env.envs.vector import BaoVectorEnv
from bao_env.rule_files import RULESET_HELP, ruleset_argument

BATCHES = (1, 64, 1024, 16384)
_FLOOR_SECONDS = 0.05


@dataclass
class Case:
    """One thing to measure."""

    name: str
    batch: int
    threads: int
    play: Callable[[int], int]
    """Plays the given number of calls; returns the number of plies played."""
    calls: int = 1
    rates: list[float] = field(default_factory=list)
    """Plies a second of each round."""
    cpu_rates: list[float] = field(default_factory=list)
    """Plies a second of processor time (summed over the threads) of each round."""

    def calibrate(self, seconds: float) -> None:
        """Warm up, and choose ``calls`` so that a round takes about ``seconds``."""
        self.play(1)
        while True:
            start = time.perf_counter()
            self.play(self.calls)
            spent = time.perf_counter() - start
            if spent >= _FLOOR_SECONDS:
                self.calls = max(1, round(self.calls * seconds / spent))
                return
            self.calls *= 4

    def measure(self) -> None:
        """One round."""
        cpu, start = time.process_time(), time.perf_counter()
        plies = self.play(self.calls)
        self.rates.append(plies / (time.perf_counter() - start))
        self.cpu_rates.append(plies / max(time.process_time() - cpu, 1e-9))

    @property
    def rate(self) -> float:
        """Median plies a second."""
        return statistics.median(self.rates)

    @property
    def cpu_rate(self) -> float:
        """Median plies a second of processor time."""
        return statistics.median(self.cpu_rates)


def kernel_case(ruleset: Ruleset, batch: int, threads: int) -> Case:
    """The engine alone: masks as 64-bit words, no observations."""
    engine = Engine(ruleset, threads)
    opening, mask = engine.opening()
    positions, masks = np.tile(opening, (batch, 1)), np.full(batch, mask)
    winners, rng = np.full(batch, NO_WINNER, np.int8), random_states(batch, 1)

    def play(calls: int) -> int:
        engine.play_random(positions, masks, winners, rng, calls)
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
    """The public vector environment: observations and masks written to fresh arrays each step."""
    env = BaoVectorEnv(
        batch, ruleset=ruleset, threads=threads, observation_dtype=dtype, autoreset_mode=mode
    )
    env.reset(seed=1)

    def play(calls: int) -> int:
        for _ in range(calls):
            env.step(env.sample_legal_actions())
        return calls * batch

    return Case(f"vector {np.dtype(dtype)}, {mode.name}", batch, threads, play)


def aec_case(ruleset: Ruleset) -> Case:
    """PettingZoo's loop over ``raw_env``: last(), a random legal action, step()."""
    env = raw_env(ruleset=ruleset)
    env.reset(seed=1)
    rng = np.random.default_rng(1)

    def play(calls: int) -> int:
        draws = rng.random(calls)
        for i in range(calls):
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                env.reset()
                observation, _, _, _, _ = env.last()
            legal = observation["action_mask"].nonzero()[0]
            env.step(int(legal[int(draws[i] * len(legal))]))
        return calls

    return Case("AEC raw_env", 1, 1, play)


def signature(ruleset: str | Ruleset, games: int = 256, plies: int = 200) -> str:
    """Hash over every position, mask and result of fixed random games."""
    engine = Engine(ruleset)
    opening, mask = engine.opening()
    positions, masks = np.tile(opening, (games, 1)), np.full(games, mask)
    winners, rng = np.full(games, NO_WINNER, np.int8), random_states(games, 20260101)
    digest = hashlib.sha256()
    for _ in range(plies):
        ended = engine.play_random(positions, masks, winners, rng, 1)
        digest.update(positions.tobytes() + masks.tobytes() + ended.to_bytes(4, "little"))
    return digest.hexdigest()[:16]


def machine() -> dict[str, Any]:
    """The processor, its cores and the Python that this runs on."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            model = next(line.split(":")[1].strip() for line in info if "model name" in line)
    except (OSError, StopIteration):
        pass
    return {"cpu": model, "cores": os.cpu_count(), "python": platform.python_version()}


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m bao_env.bench``."""
    parser = argparse.ArgumentParser(
        prog="python -m bao_env.bench",
        description="Plies a second of random legal play with exact masks, beside installed peers.",
        epilog="Peers measured when installed: pgx (connect_four, othello), open_spiel (mancala).",
    )
    parser.add_argument(
        "--ruleset", type=ruleset_argument, default="zanzibar", metavar="RULES", help=RULESET_HELP
    )
    parser.add_argument("--rounds", type=int, default=5, help="rounds over all cases (default 5)")
    parser.add_argument("--seconds", type=float, default=0.5, help="a case and round (0.5)")
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES, metavar="B")
    parser.add_argument("--threads", type=int, nargs="+", default=(1, 2), metavar="N")
    parser.add_argument("--no-peers", action="store_true", help="leave the peers out")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    args = parser.parse_args(argv)
    if args.rounds < 1 or args.seconds <= 0 or min(args.batches) < 1 or min(args.threads) < 1:
        parser.error("rounds, seconds, batches and threads must be positive")

    cases = [
        kernel_case(args.ruleset, batch, threads)
        for threads in args.threads
        for batch in args.batches
    ]
    cases += [
        vector_case(args.ruleset, batch, threads, *kind)
        for threads in args.threads
        for batch in args.batches
        for kind in VECTOR_CASES
    ]
    cases.append(aec_case(args.ruleset))
    ours = len(cases)
    if not args.no_peers:
        try:
            from training.lab.peers import PEERS  # in a checkout
        except ImportError:
            PEERS = {}
        for name, make in PEERS.items():
            try:
                play, batch = make()
            except ImportError:
                print(f"peer {name}: not installed", file=sys.stderr)
                continue
            cases.append(Case(name, batch, os.cpu_count() or 1, play))
    for i, case in enumerate(cases):
        print(f"\rcalibrating {i + 1}/{len(cases)}", end="", file=sys.stderr)
        case.calibrate(args.seconds)
    for i in range(args.rounds):
        print(f"\rround {i + 1}/{args.rounds}        ", end="", file=sys.stderr, flush=True)
        for case in cases:
            case.measure()
    print("\r" + " " * 30 + "\r", end="", file=sys.stderr)

    peers = cases[ours:]
    report = {
        "ruleset": args.ruleset.name,
        "signature": signature(args.ruleset),
        "machine": machine(),
        "cases": [
            {
                "name": case.name,
                "batch": case.batch,
                "threads": case.threads,
                "plies_per_second": case.rate,
                "plies_per_cpu_second": case.cpu_rate,
                "ratios_per_cpu_second": {p.name: case.cpu_rate / p.cpu_rate for p in peers},
            }
            for case in cases
        ],
    }
    if args.json:
        print(json.dumps(report, indent=2))
        return 0
    where = report["machine"]
    print(f"rule set {args.ruleset.name}, signature {report['signature']}")
    print(f"{where['cpu']}, {where['cores']} cores, Python {where['python']}")
    head = f"{'million plies a second':28}{'batch':>7}{'threads':>8}{'rate':>9}{'per core':>10}"
    print(head + "".join(f"{'vs ' + p.name:>24}" for p in peers))
    for case in cases:
        line = f"{case.name:28}{case.batch:>7}{case.threads:>8}"
        line += f"{case.rate / 1e6:>9.3f}{case.cpu_rate / 1e6:>10.3f}"
        print(line + "".join(f"{case.cpu_rate / p.cpu_rate:>23.1f}x" for p in peers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
