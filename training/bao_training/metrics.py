"""Write the metrics of a run: a CSV file for people and scripts, and TensorBoard's log."""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from bao_agents.support.files import write_atomically


class MetricsError(ValueError):
    """A run's ``metrics.csv`` is not a table of metrics."""


class Metrics:
    """Write one row per update to ``metrics.csv`` and to TensorBoard.

    Args:
        folder: the folder of the run.
        columns: the columns of the file, ``update`` first.
        update: the update from which the run continues. Later rows, which an earlier process wrote
            after its last checkpoint, are dropped.

    Raises:
        MetricsError: ``metrics.csv`` cannot be read as a table.
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: Path, columns: Sequence[str], update: int) -> None:
        self._path = folder / "metrics.csv"
        kept: list[dict[str, str]] = []
        if self._path.exists():
            try:
                with open(self._path, newline="", encoding="utf-8") as old:
                    kept = [row for row in csv.DictReader(old) if _update_of(row) <= update]
            except (UnicodeDecodeError, csv.Error) as error:
                raise MetricsError(
                    f"{self._path} is not a metrics table ({error!s:.100}): fix it or move it away"
                ) from error
        table = io.StringIO(newline="")
        writer = csv.DictWriter(table, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(kept)
        write_atomically(self._path, table.getvalue())
        self._file = open(self._path, "a", newline="", encoding="utf-8")  # noqa: SIM115
        self._writer = csv.DictWriter(self._file, columns)
        # TensorBoard's steps are environment steps, as in other libraries.
        steps = int(kept[-1].get("steps") or -1) if kept else -1
        self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=steps + 1)
        self._hook, threading.excepthook = threading.excepthook, _report

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a row; missing columns stay empty.

        Raises:
            OSError: this row or an earlier one cannot be written.
        """
        self._writer.writerow(
            {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
        )
        self._file.flush()
        for name, value in row.items():
            if name != "update":
                self._board.add_scalar(f"{_group(name)}/{name}", value, row["steps"])

    def close(self) -> None:
        """Flush and close both.

        Raises:
            OSError: the last rows cannot be written.
        """
        try:
            self._file.close()
        finally:
            self._board.close()
            threading.excepthook = self._hook


def _group(name: str) -> str:
    """Return the group of a metric in TensorBoard."""
    if "score_against_" in name or name == "blunders":
        return "eval"
    return "loss" if name.endswith("loss") else "train"


def _report(error: threading.ExceptHookArgs) -> None:
    """Print the error that ended a thread, except an OSError.

    TensorBoard's thread raises that again in the next :meth:`Metrics.write`.
    """
    if not issubclass(error.exc_type, OSError):
        threading.__excepthook__(error)


def _update_of(row: Mapping[str, str | None]) -> int:
    """Return the update of a row; a row that a killed process cut short counts as the latest."""
    try:
        return 1 << 62 if None in row.values() else int(row["update"] or "")
    except (KeyError, ValueError):
        return 1 << 62
