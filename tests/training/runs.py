"""Make small runs of training and compare them.

Settings are given as words, such as ``method=td envs=16``.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from bao_training.run_settings import load_config
from bao_training.train import make_trainer


def make(settings: str) -> Any:
    """Make the trainer of a run."""
    return make_trainer(*load_config(None, settings.split()))


def options(settings: str) -> str:
    """Return settings as words of the command line."""
    return " ".join(f"--set {setting}" for setting in settings.split())


def weights(trainer: Any) -> bytes:
    """Return all weights of a trainer's model."""
    return b"".join(t.numpy().tobytes() for t in trainer.model.state_dict().values())


def without_times(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of metrics without times and shares of time."""
    return {name: row[name] for name in row if "second" not in name and "share" not in name}


def metrics(folder: Path) -> list[dict[str, str]]:
    """Return the rows of the metrics of the run ``r`` in a folder, without times."""
    with (folder / "r" / "metrics.csv").open(newline="") as file:
        return [without_times(row) for row in csv.DictReader(file)]


def check_resumed(settings: str, path: Path, before: int, after: int) -> Any:
    """Check that a resumed run equals the run that was not interrupted, and return its trainer.

    Args:
        settings: the settings of the run.
        path: the path of the checkpoint.
        before: the number of updates before the checkpoint is written.
        after: the number of updates after it.
    """
    straight, resumed = make(settings), make(settings)
    for _ in range(before):
        straight.train_update()
    straight.save(path)
    resumed.restore(path)
    for _ in range(after):
        row, resumed_row = (
            without_times(trainer.train_update()) for trainer in (straight, resumed)
        )
        np.testing.assert_equal(row, resumed_row)
    assert weights(resumed) == weights(straight)
    return straight
