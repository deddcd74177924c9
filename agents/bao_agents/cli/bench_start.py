"""Measure the first minute: what it costs to start, before and after numba has compiled.

    bao bench start
    bao bench start match --compilations

Each case runs in a new process, first with an empty cache of compiled functions (cold), then again
(warm). Its cost is the processor time of that process and of all that it starts.

``--compilations`` prints instead what a case compiles when it is cold: each function with the types
of its arguments and its *own* seconds. Numba compiles the functions that it calls in between; their
seconds are not included. A second table has the seconds of each part of numba, and of LLVM.
"""

from __future__ import annotations

import argparse
import atexit
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable

from numba.core import event
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

_LISTEN = "from bao_agents.cli.bench_start import list_compilations; list_compilations()\n"


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


class OwnSeconds(event.Listener):
    """Add up the processor seconds of nested events, each without those of the events inside it."""

    def __init__(self, name: Callable[[event.Event], str]) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        """By the name of the event."""
        self._name = name
        self._open: list[str] = []
        self._since = 0.0

    def on_start(self, event: event.Event) -> None:
        """Stop the clock of the event around this one, and start its own."""
        self._count()
        self._open.append(self._name(event))

    def on_end(self, event: event.Event) -> None:
        """Stop the clock of this event, and start again that of the event around it."""
        self._count()
        self._open.pop()

    def _count(self) -> None:
        now = time.process_time()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now


def list_compilations() -> None:
    """Print, when this process ends, what it has compiled; see the module."""

    def function(event: event.Event) -> str:
        compiled = event.data["dispatcher"].py_func
        types = ", ".join(map(str, event.data["args"]))
        return f"{compiled.__module__}.{compiled.__name__}({types})"

    def part(event: event.Event) -> str:
        return "LLVM" if event.data is None else event.data["name"].partition(" ")[0]

    functions, parts = OwnSeconds(function), OwnSeconds(part)
    event.register("numba:compile", functions)
    event.register("numba:run_pass", parts)
    event.register("numba:llvm_lock", parts)

    def show() -> None:
        for listener, head in ((functions, "function"), (parts, "part of numba")):
            seconds = listener.seconds
            print(f"\n{'seconds':>7}  {head}")
            for name, spent in sorted(seconds.items(), key=lambda one: -one[1]):
                print(f"{spent:7.2f}  {name:.200}")
            print(f"{sum(seconds.values()):7.2f}  all {len(seconds)}", flush=True)

    atexit.register(show)


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao bench start``: processor seconds to start, cold and warm."""
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help=f"some of {', '.join(CASES)} (default: all)"
    )
    parser.add_argument(
        "--compilations", action="store_true", help="print instead what each case compiles"
    )
    return _run


def _run(args: argparse.Namespace) -> None:
    for unknown in set(args.cases) - CASES.keys():
        raise ValueError(f"there is no case {unknown:.80}: expected some of {', '.join(CASES)}")
    rows = []
    for case in args.cases or CASES:
        with tempfile.TemporaryDirectory() as cache:
            if args.compilations:
                print(f"\n{case}", flush=True)
                run(_LISTEN + CASES[case], cache)
            else:
                rows.append((case, run(CASES[case], cache), run(CASES[case], cache)))
    if rows:
        where = machine()
        print(f"{where['cpu']}, Python {where['python']}")
        print(tabulate(rows, ("processor seconds", "cold", "warm"), floatfmt=".1f"))
