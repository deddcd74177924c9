"""What compiling costs before the first step: ``bao bench first-step``.

Each case runs in a process of its own with an empty cache, as on a new machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from typing import Final

from bao_env.cli import Run, add_options, write_json

CASES: Final = {
    "raw_env()": "env = bao_env.raw_env()\n"
    "env.reset(seed=1)\n"
    "env.step(int(env.last()[0]['action_mask'].argmax()))",
    "BaoEnv('greedy', observation='replies')": "env = bao_env.BaoEnv('greedy', "
    "observation='replies')\n"
    "_, info = env.reset(seed=1)\n"
    "env.step(int(info['action_mask'].argmax()))",
    "BaoVectorEnv(1024)": "envs = bao_env.BaoVectorEnv(1024)\n"
    "envs.reset(seed=1)\n"
    "envs.step(envs.sample_legal_actions())",
    "BaoVectorEnv(1024, observation='replies')": "envs = bao_env.BaoVectorEnv(1024, "
    "observation='replies')\n"
    "envs.reset(seed=1)\n"
    "envs.step(envs.sample_legal_actions())",
}
"""Ways in, each with its first reset and step."""

_COUNT: Final = """
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
"""


def measure(code: str) -> tuple[float, int]:
    """Return the processor seconds of a program with an empty cache, and the functions that it
    compiles; importing Python's packages counts, too."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-c", f"{_COUNT}{code}\nprint(time.process_time(), Count.functions)"],
            env=os.environ | {"NUMBA_CACHE_DIR": cache, "BAO_ENV_QUIET": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
    seconds, functions = done.stdout.split()
    return float(seconds), int(functions)


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao bench first-step``: measure what compiling costs before the first step."""
    add_options(parser, "json")
    return _run


def _run(args: argparse.Namespace) -> None:
    rows = {}
    if args.json != "-":
        print(f"{'reset and step, empty cache':44}{'processor seconds':>18}{'functions':>11}")
    for name, code in CASES.items():
        seconds, functions = measure(code)
        rows[name] = {"seconds": seconds, "functions": functions}
        if args.json != "-":
            print(f"{name:44}{seconds:>18.1f}{functions:>11}", flush=True)
    write_json(args.json, rows)
