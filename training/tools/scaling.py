"""Measure how speed grows with batch, threads and processes, and what a million positions cost.

    python -m training.tools.scaling

Two tables: random games a second of the engine, and self-play training by each method, on as
many workers as there are threads and processes together (torchrun where there are several).
``training/SCALING.md`` keeps a run of it.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
from tqdm import tqdm

from bao_env.bench import machine
from bao_env.engine.batch import Engine, random_states

ROOT = Path(__file__).parent.parent
BATCHES = (1, 16, 256, 4096, 65536)


def play(batch: int, threads: int, seconds: float, start: Barrier | None = None) -> float:
    """Random games a second that the engine plays to their end, with ``batch`` at once."""
    engine = Engine("zanzibar", threads)
    opening, mask = engine.opening()
    positions, masks = np.tile(opening, (batch, 1)), np.full(batch, mask)
    winners, rng = np.full(batch, -1, np.int8), random_states(batch, os.getpid())
    steps = max(1, 65536 // batch)
    engine.play_random(positions, masks, winners, rng, max(100, steps))  # games of all lengths
    if start is not None:
        start.wait()
    games, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        games += engine.play_random(positions, masks, winners, rng, steps)
    return games / (time.perf_counter() - begun)


def _play(arguments: tuple[int, int, float]) -> float:
    return play(*arguments, start=_START)


_START: Barrier | None = None


def _join(start: Barrier) -> None:
    global _START
    _START = start


def play_in_processes(batch: int, processes: int, seconds: float) -> float:
    """The same, each process with games and one thread of its own; they begin together."""
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(processes)
    with context.Pool(processes, initializer=_join, initargs=(start,)) as pool:
        return sum(pool.map(_play, [(batch, 1, seconds)] * processes, chunksize=1))


def train(method: str, workers: int, processes: int, updates: int) -> tuple[float, float]:
    """Steps a second (median of the updates but the first few), and the largest resident memory
    of a process in MiB, of a short run of a method's configuration."""
    config = {"ppo": "configs/quick.toml", "gumbel": "configs/zanzibar.toml"}[method]
    size = {"ppo": 2048 * 32, "gumbel": 1024 * 16}[method]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m"]
        if processes > 1:
            command += ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
            command += ["-m", "--"]
        command += ["training.train", "--config", config, "--runs", folder, "--run", "r"]
        for setting in (
            f"workers={workers}",
            f"steps={updates * size}",
            "evaluate_every=0",
            "evaluate_pairs=1",
            "keep_every=0",
        ):
            command += ["--set", setting]
        memory = Path(folder) / "memory"
        timed = ["/usr/bin/env", "python3", "-c", _WATCH, str(memory), *command]
        subprocess.run(
            timed,
            cwd=ROOT,
            check=True,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        )
        with open(Path(folder) / "r" / "metrics.csv", newline="") as file:
            rates = [float(row["steps_per_second"]) for row in csv.DictReader(file)]
        return statistics.median(rates[updates // 3 :]), int(memory.read_text()) / 1024


_WATCH = (
    "import resource, subprocess, sys; code = subprocess.call(sys.argv[2:]);"
    "open(sys.argv[1], 'w').write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss));"
    "sys.exit(code)"
)


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.tools.scaling``."""
    cores = os.cpu_count() or 1
    parser = argparse.ArgumentParser(
        prog="python -m training.tools.scaling",
        description="Speed against batch, threads and processes; time and memory of training.",
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="for each engine case (2)")
    parser.add_argument("--updates", type=int, default=12, help="of each training run (12)")
    parser.add_argument("--workers", type=int, nargs="+", default=sorted({1, cores}))
    args = parser.parse_args(argv)
    if args.seconds <= 0 or args.updates < 6 or min(args.workers) < 1:
        parser.error("--seconds and --workers must be positive, --updates at least 6")
    where = machine()
    print(f"{where['cpu']}, {where['cores']} cores, Python {where['python']}\n")
    head = [f"{n} {name}" for name in ("threads", "processes") for n in args.workers]
    print(f"| thousand games a second, batch | {' | '.join(head)} |\n|---:|{'---:|' * len(head)}")
    for batch in BATCHES:
        rates = [play(batch, n, args.seconds) for n in args.workers]
        rates += [play_in_processes(batch, n, args.seconds) for n in args.workers]
        print(f"| {batch:,} | {' | '.join(f'{rate / 1e3:.2f}' for rate in rates)} |", flush=True)
    print("\n| method | workers | processes | steps/s | seconds a million | MiB a process |")
    print("|---|---:|---:|---:|---:|---:|")
    cases = [
        (method, n, processes)
        for method in ("ppo", "gumbel")
        for n in args.workers
        for processes in sorted({1, n})
    ]
    for method, workers, processes in tqdm(cases, desc="training", unit="run"):
        rate, memory = train(method, workers, processes, args.updates)
        row = f"| {method} | {workers} | {processes} | {rate:,.0f} | {1e6 / rate:.0f} |"
        tqdm.write(f"{row} {memory:,.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
