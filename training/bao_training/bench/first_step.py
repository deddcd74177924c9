"""Measure what compiling costs before the first step.

    bao bench first-step

Each case runs in its own process with an empty cache, as on a new machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

from bao_agents.cli.options import Run

CASES = {
    "raw_env()": "env.step(int(env.last()[0]['action_mask'].argmax()))",
    "BaoEnv('greedy', observation='replies')": "env.step(int(env.action_masks().argmax()))",
    "BaoVectorEnv(1024, opponent=None)": "env.step(env.sample_legal_actions())",
    "BaoVectorEnv(1024, observation='replies')": "env.step(env.sample_legal_actions())",
}
"""Environments, each with a first step."""

_PROGRAM = """
import time
from numba.core import event
import bao_env

class Count(event.Listener):
    functions = 0
    def on_start(self, event):
        Count.functions += 1
    def on_end(self, event):
        pass

event.register("numba:compile", Count())
env = bao_env.{}
env.reset(seed=1)
{}
print(time.process_time(), Count.functions)
"""


def measure(way: str, step: str) -> tuple[float, int]:
    """Return the processor seconds of a first reset and step with an empty cache, which include
    importing packages, and the number of functions compiled."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM.format(way, step)],
            env=os.environ | {"NUMBA_CACHE_DIR": cache, "BAO_ENV_QUIET": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
    seconds, functions = done.stdout.split()
    return float(seconds), int(functions)


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao bench first-step``: measure what compiling costs before the first step."""
    return _run


def _run(args: argparse.Namespace) -> None:
    print(f"{'reset and step, empty cache':44}{'processor seconds':>18}{'functions':>11}")
    for way, step in CASES.items():
        seconds, functions = measure(way, step)
        print(f"{way:44}{seconds:>18.1f}{functions:>11}", flush=True)
