"""Test training in two processes under torchrun: the same run, and what happens if one dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from bao_agents.nets import checkpoint
from bao_training import train
from bao_training.config import ConfigError
from bao_training.trainer import pick_device
from tests.conftest import Says
from tests.processes import ROOT
from tests.training.runs import metrics, options

SMALL = "hidden=[16] envs=32 rollout=8 minibatch=256 evaluate_pairs=2 "
SEARCH = "method=search_guided max_plies=100 search_guided.nodes=20 search_guided.buffer=4000 "


def command(folder: Path, settings: str) -> str:
    """Return the command line of a run of two workers."""
    return f"train --out {folder} --run r {options(SMALL + settings)}"


def launch(line: str) -> subprocess.Popen[str]:
    """Start such a run on two processes."""
    words = f"-m torch.distributed.run --nproc-per-node=2 --standalone -m -- bao_agents {line}"
    return subprocess.Popen(
        [sys.executable, *words.split()], cwd=ROOT, text=True, stderr=subprocess.PIPE
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["td", "search_guided"])
def test_two_processes_are_one_run(tmp_path: Path, method: str, says: Says) -> None:
    settings = "steps=4096 evaluate_every=2048 " + (SEARCH if method == "search_guided" else "")
    says(command(tmp_path / "1", settings))
    done = launch(command(tmp_path / "2", settings))
    _, errors = done.communicate(timeout=200)
    assert done.returncode == 0, errors
    assert metrics(tmp_path / "1") == metrics(tmp_path / "2")
    alone, shared = (
        checkpoint.load(tmp_path / n / "r" / "last.safetensors", arrays=True) for n in "12"
    )
    np.testing.assert_equal(shared.arrays, alone.arrays)


@pytest.mark.slow
def test_resume_after_a_process_died(tmp_path: Path) -> None:
    """The other process stops, and the run can be resumed."""
    running = launch(command(tmp_path, "steps=200000 checkpoint_every=0 evaluate_every=0"))
    last = tmp_path / "r" / "last.safetensors"
    while not last.exists():
        assert running.poll() is None
        time.sleep(0.1)
    children = subprocess.run(
        ["pgrep", "-P", str(running.pid)], capture_output=True, text=True, check=True
    )
    os.kill(max(map(int, children.stdout.split())), signal.SIGKILL)
    _, errors = running.communicate(timeout=120)
    assert running.returncode != 0
    assert "another process of this run is gone" in errors or "stopped; continue with" in errors
    saved = checkpoint.load(last).info["steps"]
    assert 0 < saved < 200000
    resumed = train.resume_run(tmp_path / "r")
    assert resumed.steps == saved and len(resumed.workers) == 2
    resumed.train_update()


def test_more_processes_than_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """More processes than GPUs are refused, unless the run is on the CPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    for device in ("cuda", "auto"):
        with pytest.raises(ConfigError, match="device='cuda': more processes than GPUs"):
            pick_device(device)
    assert pick_device("cpu").type == "cpu"
