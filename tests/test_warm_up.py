"""What is said while functions compile, and compiling beforehand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

SLOW_FUNCTIONS = """
import sys, time
from numba.core import event
import bao_env.engine.compile as c

def start(function):
    event.start_event("numba:compile", {"dispatcher": function})

def end(function):
    event.end_event("numba:compile", {"dispatcher": function})

c._PATIENCE = 0.05
"""
"""A process in which a test pretends that functions compile."""

PLAY = """
from numba.core import event
import bao_env

class Count(event.Listener):
    def on_start(self, event):
        print(event.data["dispatcher"])
    def on_end(self, event):
        pass

event.register("numba:compile", Count())
env = bao_env.env()
env.reset(seed=1)
env.step(int(env.last()[0]["action_mask"].argmax()))
envs = bao_env.BaoVectorEnv(8, opponent="greedy", observation="replies", threads=2)
envs.reset(seed=1)
envs.step(envs.sample_legal_actions())
"""
"""Prints what it compiles."""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, in which nothing is quiet."""
    inherited = {key: text for key, text in os.environ.items() if key != "BAO_ENV_QUIET"}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=True,
    )


PRETEND = (
    SLOW_FUNCTIONS
    + """
@c.jit
def mine(x):
    return x

def theirs(x):
    return x

class Theirs:
    py_func = theirs

for outer in (Theirs, mine, mine):
    start(outer); time.sleep(0.1); start(Theirs); end(Theirs); end(outer)
    print(outer is mine, file=sys.stderr)

"""
)


def test_a_long_compilation_is_mentioned_once_and_only_ours(tmp_path: Path) -> None:
    path = tmp_path / "pretend.py"
    path.write_text(PRETEND)
    code = f"import runpy; runpy.run_path({str(path)!r})"
    first, *lines = run(code).stderr.splitlines()
    assert first == "False"
    assert "compiling the engine (once, then it is kept; python -m bao_env.warm_up" in lines[0]
    assert lines[1:] == ["True", "True"]
    assert "compiling" not in run(code, BAO_ENV_QUIET="1").stderr


@pytest.mark.slow
def test_after_warming_up_nothing_is_compiled(tmp_path: Path) -> None:
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = run("from bao_env.warm_up import main; main([])", **cache)
    assert "single games: " in done.stdout and "many games: " in done.stdout
    assert done.stderr == ""
    played = run(PLAY, **cache)
    assert (played.stdout, played.stderr) == ("", "")
