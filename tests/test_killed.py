"""Test a killed tournament that is continued; test_train and test_alphazero test killed runs."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def results(folder: Path) -> tuple[dict[Any, Any], Any]:
    """Return the results of a tournament by unit, and its table."""
    parts = {}
    for file in (folder / "results").rglob("*.json"):
        record = json.loads(file.read_text())
        parts[file.relative_to(folder)] = record["points"], record["plies"]
    return parts, json.loads((folder / "table.json").read_text())["pairings"]


@pytest.mark.slow
def test_killed_and_continued_gives_the_same_results(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)

    def kept() -> int:
        return len(list((tmp_path / "killed").rglob("results/*/*.json")))

    def play(folder: str) -> subprocess.Popen[bytes]:
        players = ["random", "greedy", "mcts:8"]
        options = ["--pairs", "120", "--seed", str(seed), "--threads", "2"]
        command = [sys.executable, "-m", "bao_training", "tournament", *players, *options]
        return subprocess.Popen(
            [*command, "--out", str(tmp_path / folder)],
            cwd=ROOT,
            stderr=subprocess.DEVNULL,
        )

    assert play("alone").wait() == 0
    for how in SIGNALS:
        process = play("killed")
        before = kept()
        while process.poll() is None and kept() == before:
            time.sleep(0.005)
        time.sleep(rng.expovariate(20.0))
        process.send_signal(how)
        process.wait(60)
    assert play("killed").wait() == 0
    assert results(tmp_path / "alone") == results(tmp_path / "killed")
