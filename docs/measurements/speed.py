"""Measure speed, and the seconds of a first minute with the package."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from docs.measurements.parts import Part, json_of, rows_of

SPEEDS = {
    "engine, batch 1": ("kernel", 1),
    "engine, batch 1,024": ("kernel", 1024),
    "engine, batch 16,384": ("kernel", 16384),
    "`BaoVectorEnv`, 16,384 games, float32, `SAME_STEP`": ("vector float32, SAME_STEP", 16384),
    "the same, `NEXT_STEP`, uint8": ("vector uint8, NEXT_STEP", 16384),
    "PettingZoo `raw_env`": ("AEC raw_env", 1),
}
"""The names and batches of the benchmark's cases, by the first cell of a row."""


def speed_parts() -> tuple[Part, ...]:
    """Return the benchmark of the engine."""
    line = "bao bench engine --batches 1 1024 16384 --threads 1 2"
    return (Part(line, 2, lambda folder: json_of(line, folder)),)


def speed_lines(results: list[Any]) -> list[list[str]]:
    """Return the cells of the table of the engine's speed."""
    million = {
        (case["name"], case["batch"], case["threads"]): case["plies_per_second"] / 1e6
        for case in results[0]["cases"]
    }
    lines = [["million plies a second", "1 thread", "2 threads"]]
    for row, case in SPEEDS.items():
        speeds = [million.get((*case, threads)) for threads in (1, 2)]
        lines.append([row, *("" if speed is None else f"{speed:.2g}" for speed in speeds)])
    return lines


STARTS = {
    "`BaoEnv()`, one step": "env = bao_env.BaoEnv(); observation, _ = env.reset(seed=1); "
    'env.step(int(observation["action_mask"].argmax()))',
    "`raw_env()`, one step": "env = bao_env.raw_env(); env.reset(seed=1); "
    'env.step(int(env.last()[0]["action_mask"].argmax()))',
    '`BaoVectorEnv(1024, opponent="greedy")`, one step': "envs = bao_env.BaoVectorEnv(1024, "
    'opponent="greedy"); envs.reset(seed=1); envs.step(envs.sample_legal_actions())',
    "`bao match greedy random --pairs 10`": "",
    "`bao match guided:1000n greedy --pairs 10`": "",
    "`bao train quick --set steps=32768`": "",
}
"""Python after ``import bao_env``, or nothing for a command, by the first cell of a row."""


def _start(row: str, statements: str) -> Part:
    """Return a part that times a program in a new process, without compiled code and with it."""
    program = f"import bao_env; {statements}"
    words = ["-c", program] if statements else ["-m", "bao_agents", *shlex.split(row[1:-1])[1:]]

    def seconds(folder: Path) -> list[str]:
        spent = []
        with tempfile.TemporaryDirectory() as cache:
            environment = os.environ | {"NUMBA_CACHE_DIR": cache, "BAO_ENV_QUIET": "1"}
            for _ in range(2):
                before = os.times()
                with tempfile.TemporaryDirectory() as empty:
                    command = [sys.executable, *words]
                    subprocess.run(command, cwd=empty, env=environment, check=True, stdout=2)
                after = os.times()
                spent.append(sum(after[2:4]) - sum(before[2:4]))
        return [f"{cold_or_warm:.1f}" for cold_or_warm in spent]

    return Part(f"python -c {shlex.quote(program)}" if statements else row[1:-1], 1, seconds)


def start_parts() -> tuple[Part, ...]:
    """Return a part for each program of :data:`STARTS`."""
    return tuple(_start(*row) for row in STARTS.items())


def start_lines(results: list[Any]) -> list[list[str]]:
    """Return the cells of the table of the first minute."""
    return [["", "cold", "warm"], *rows_of(STARTS, results)]
