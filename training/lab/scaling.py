"""Measure how speed grows with batch, threads and processes, and what a million positions cost.

    python -m training.lab.scaling

It prints two tables: random games a second of the engine; and self-play training by each method,
with different numbers of workers, in one process or in several under torchrun.
``training/RESULTS.md`` keeps the tables of one run.
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
from tabulate import tabulate
from tqdm import tqdm

from agents.arena.executors import end_with_parent
from bao_env.engine.batch import Engine
from bao_env.engine.sampling import random_states
from bao_env.signature import machine
from training.train import load_config

ROOT = Path(__file__).parents[2]
CONFIGS = (ROOT / "configs" / "quick.toml", ROOT / "configs" / "zanzibar.toml")
"""One for each training method."""
BATCHES = (1, 16, 256, 4096, 65536)


def play(batch: int, threads: int, seconds: float, start: Barrier | None = None) -> float:
    """Random games a second that the engine plays to their ends, ``batch`` at once."""
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
    end_with_parent()
    _START = start


def play_in_processes(batch: int, processes: int, seconds: float) -> float:
    """:func:`play` in several processes of one thread, which begin together; games a second."""
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(processes)
    with context.Pool(processes, initializer=_join, initargs=(start,)) as pool:
        return sum(pool.map(_play, [(batch, 1, seconds)] * processes, chunksize=1))


def train(config: Path, workers: int, processes: int, updates: int) -> tuple[float, float]:
    """Time and memory of a short run of a configuration.

    Returns:
        steps a second (median of the updates without the first third), and the largest resident
        memory of a process in MiB.

    Raises:
        CalledProcessError: the run failed.
    """
    steps = updates * load_config(config)[0].steps_per_update
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m"]
        if processes > 1:
            command += ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
            command += ["-m", "--"]
        command += ["training.train", "--config", str(config), "--runs", folder, "--run", "r"]
        for setting in (
            f"workers={workers}",
            f"steps={steps}",
            "evaluate_every=0",
            "evaluate_pairs=1",
            "keep_every=0",
        ):
            command += ["--set", setting]
        child = subprocess.Popen(
            command,
            cwd=ROOT,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        )
        _, status, usage = os.wait4(child.pid, 0)  # of the child and those that it waited for
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise subprocess.CalledProcessError(child.returncode, command)
        with open(Path(folder) / "r" / "metrics.csv", newline="") as file:
            rates = [float(row["steps_per_second"]) for row in csv.DictReader(file)]
    kib = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)  # bytes there
    return statistics.median(rates[updates // 3 :]), kib / 1024


def _markdown(rows: list[list[str]], head: list[str]) -> str:
    """Return a Markdown table, its first column aligned to the left."""
    align = ["left"] + ["right"] * (len(head) - 1)
    return tabulate(rows, head, tablefmt="github", disable_numparse=True, colalign=align)


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.lab.scaling``."""
    cores = os.cpu_count() or 1
    parser = argparse.ArgumentParser(
        prog="python -m training.lab.scaling",
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
    rows = []
    for batch in tqdm(BATCHES, desc="engine", unit="batch"):
        rates = [play(batch, n, args.seconds) for n in args.workers]
        rates += [play_in_processes(batch, n, args.seconds) for n in args.workers]
        rows.append([f"{batch:,}", *(f"{rate / 1e3:.2f}" for rate in rates)])
    head = ["thousand games a second, batch"]
    head += [f"{n} {name}" for name in ("threads", "processes") for n in args.workers]
    print(_markdown(rows, head), end="\n\n", flush=True)
    cases = [
        (config, n, processes)
        for config in CONFIGS
        for n in args.workers
        for processes in sorted({1, n})
    ]
    rows = []
    for config, workers, processes in tqdm(cases, desc="training", unit="run"):
        rate, memory = train(config, workers, processes, args.updates)
        name = f"{load_config(config)[0].method}, `configs/{config.name}`"
        cells = [f"{rate:,.0f}", f"{1e6 / rate:.0f}", f"{memory:,.0f}"]
        rows.append([name, str(workers), str(processes), *cells])
    head = ["method", "workers", "processes", "steps/s", "seconds a million", "MiB a process"]
    print(_markdown(rows, head))
    return 0


if __name__ == "__main__":
    sys.exit(main())
