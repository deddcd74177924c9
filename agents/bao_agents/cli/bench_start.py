"""Measure the first minute: what it costs to start, before and after numba has compiled.

    bao bench start

Each case runs in a new process, first with an empty cache of compiled functions (cold), then again
(warm). Its cost is the processor time of that process and of all that it starts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

from tabulate import tabulate

from bao_agents.cli.bench_engine import machine
from bao_agents.cli.options import Run

_RUN = "from bao_agents.cli.main import main; raise SystemExit(main({}))"

CASES = {
    "gymnasium": """
from bao_env import BaoEnv
env = BaoEnv()
info = env.reset(seed=1)[1]
env.step(int(info["action_mask"].argmax()))
""",
    "pettingzoo": """
from bao_env import raw_env
env = raw_env()
env.reset(seed=1)
env.step(int(env.last()[0]["action_mask"].argmax()))
""",
    "vector": """
from bao_env import BaoVectorEnv
envs = BaoVectorEnv(1024, opponent="greedy")
envs.reset(seed=1)
envs.step(envs.sample_legal_actions())
""",
    "match": _RUN.format(["match", "greedy", "random", "--pairs", "10"]),
    "guided": _RUN.format(["match", "guided:1000n", "greedy", "--pairs", "10"]),
    "train": _RUN.format(["train", "quick", "--set", "steps=32768"]),
    "play": """
import asyncio
from bao_agents.play.api import Tables, bot
from bao_agents.play.roster import Roster
from bao_agents.play.server import create_app
create_app(Roster())
tables = Tables(Roster())
game = tables.new_game("me", ["greedy", "human"])
asyncio.run(bot(tables, "me", {"name": game["id"], "ply": 0}))
""",
}
"""What a newcomer does first, each as a program. ``play`` is the server of the board up to the
first move of the bot that the page offers first."""


def run(program: str, cache: str) -> float:
    """Run a program in a new process; return the processor seconds of it and of all it starts.

    Args:
        program: the Python program.
        cache: the folder in which numba keeps compiled functions.

    Raises:
        CalledProcessError: the program fails.
    """
    quiet = {"NUMBA_CACHE_DIR": cache, "BAO_ENV_QUIET": "1", "TQDM_DISABLE": "1"}
    before = os.times()
    with tempfile.TemporaryDirectory() as folder:  # of the files that it writes
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | quiet,
            cwd=folder,
            check=True,
        )
    after = os.times()
    spent = after.children_user + after.children_system
    return spent - before.children_user - before.children_system


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao bench start``: processor seconds to start, cold and warm."""
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help=f"some of {', '.join(CASES)} (default: all)"
    )
    return _run


def _run(args: argparse.Namespace) -> None:
    for unknown in set(args.cases) - CASES.keys():
        raise ValueError(f"there is no case {unknown:.80}: expected some of {', '.join(CASES)}")
    rows = []
    for case in args.cases or CASES:
        with tempfile.TemporaryDirectory() as cache:
            rows.append((case, run(CASES[case], cache), run(CASES[case], cache)))
    where = machine()
    print(f"{where['cpu']}, Python {where['python']}")
    print(tabulate(rows, ("processor seconds", "cold", "warm"), floatfmt=".1f"))
