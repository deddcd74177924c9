"""Compiling beforehand, and the notice while functions compile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

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

import bao_agents
from bao_agents.registry import PLAYERS
from bao_training.train import load_config, make_trainer
board = bao_env.Board()
board.move_text("A7L")
for name in PLAYERS:
    if not name.startswith(("runs/", "chat:", "pipe:", "package.")):
        bao_agents.load(name).choose(board)
settings = load_config("configs/quick.toml", ["envs=64", "minibatch=64", "hidden=[8]"])
make_trainer(*settings).train_update()
"""
"""Prints what it compiles."""


def run(code: str, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, which prints notices."""
    inherited = {key: text for key, text in os.environ.items() if key != "BAO_ENV_QUIET"}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent.parent,
        env=inherited | {"NUMBA_CACHE_DIR": str(cache)} | environment,
        capture_output=True,
        text=True,
        check=True,
    )


def test_compiling_prints_notices(tmp_path: Path) -> None:
    code = "import bao_env; bao_env.Board().push('A6L')"
    cold, warm = (run(code, tmp_path / "cache").stderr for _ in range(2))
    first, *others = cold.splitlines()
    assert first.startswith("bao_env: compiling the engine (once")
    counts = [int(line.split()[2]) for line in others]
    assert others == [f"bao_env: compiling, {count} functions so far" for count in counts]
    assert counts and counts == sorted(counts)
    assert warm == ""
    assert run(code, tmp_path / "other cache", BAO_ENV_QUIET="1").stderr == ""


def test_after_warming_up_nothing_is_compiled(tmp_path: Path) -> None:
    done = run("from bao_training.cli import main; main(['warm-up'])", tmp_path)
    assert "single games: " in done.stdout and "many games: " in done.stdout
    assert done.stderr == ""
    played = run(PLAY, tmp_path)
    assert (played.stdout, played.stderr) == ("", "")
