"""Write the metrics of a run: a CSV file for people and scripts, and TensorBoard's log."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from bao_agents.support.files import write_atomically
from bao_env.files import read_text


class Metrics:
    """Write one row per update to ``metrics.csv`` and to TensorBoard.

    Args:
        folder: the folder of the run.
        columns: the columns of the file, ``update`` first; other columns of an old file stay.
        update: the update from which the run continues. Later rows, which an earlier process wrote
            after its last checkpoint, are dropped. 0, for no checkpoint, drops all rows.
        steps: the steps up to that update. Later points in TensorBoard's log are dropped.

    Raises:
        ValueError: ``metrics.csv`` cannot be read as a table of updates.
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: Path, columns: Sequence[str], update: int, steps: int) -> None:
        self._path = folder / "metrics.csv"
        old_columns, old_rows = _rows_until(self._path, update) if update else ([], [])
        columns = list(dict.fromkeys([*columns, *old_columns]))
        self.seconds: float = 0.0
        """The seconds in the last row that is kept; 0 if no row is kept."""
        with suppress(KeyError, IndexError, ValueError):
            self.seconds = float(old_rows[-1]["seconds"])
        table = io.StringIO(newline="")
        writer = csv.DictWriter(table, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(old_rows)
        write_atomically(self._path, table.getvalue())
        self._file = self._path.open("a", newline="", encoding="utf-8")
        self._writer = csv.DictWriter(self._file, columns)
        # TensorBoard's steps are environment steps, as in other libraries.
        first_step = steps + 1 if update else 0
        self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=first_step)

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
        """Flush and close the file and TensorBoard's log.

        Raises:
            OSError: the last rows cannot be written.
        """
        try:
            self._file.close()
        finally:
            self._board.close()


def _rows_until(file: Path, update: int) -> tuple[Sequence[str], list[dict[str, str]]]:
    """Return the columns of a metrics table, and its rows up to an update.

    A killed process may leave an incomplete last row, which is left out.

    Raises:
        ValueError: the table cannot be read, so its rows would be lost.
    """
    if not file.exists():
        return [], []
    table = csv.DictReader(read_text(file).splitlines())
    try:
        rows = [row for row in table if None not in row.values() and int(row["update"]) <= update]
    except (ValueError, KeyError, csv.Error) as error:
        raise ValueError(
            f"{file} is not a metrics table, so no rows can be added to it ({error!r:.80}): repair "
            "or move the file"
        ) from error
    return table.fieldnames or [], rows


def _group(name: str) -> str:
    """Return the group of a metric in TensorBoard."""
    if "score_against_" in name or name.startswith("blunders"):
        return "eval"
    return "loss" if name.endswith("loss") else "train"
