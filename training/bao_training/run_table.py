"""Read a run's table of metrics: that of a run here, of another library, or as Excel saves it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bao_agents.support.array_types import Float64Array

LARGEST = 1e100
"""Larger numbers count as not finite: no axis can show them."""


@dataclass
class RunTable:
    """The rows of a run that are still valid."""

    run: Path
    """The run's folder, or its CSV file."""
    columns: list[str]
    rows: list[dict[str, str]]
    """An entry for each filled cell of a known column."""
    overtaken: int = 0
    """Rows left out, because the run was restarted from before them."""
    not_finite: set[str] = field(default_factory=set)
    """Columns that were read with values left out, because they are not finite."""

    @property
    def file(self) -> Path:
        """The CSV file."""
        return metrics_file(self.run)

    def values(self, *names: str) -> Float64Array:
        """Return columns where all of them are filled and finite, float64[rows, columns].

        They are sorted by the first one; of rows that are equal there, the last counts.

        Raises:
            ValueError: an entry is not a number.
        """
        found: dict[float, list[float]] = {}
        for row in self.rows:
            if any(name not in row for name in names):
                continue
            try:
                numbers = [float(row[name]) for name in names]
            except ValueError as error:
                raise ValueError(f"{self.file}, column {', '.join(names)}: {error}") from error
            if all(abs(number) <= LARGEST for number in numbers):  # NaN is not, either
                found[numbers[0]] = numbers
            else:
                self.not_finite.add(names[1])
        return np.array([found[x] for x in sorted(found)], float).reshape(-1, len(names))


def metrics_file(run: Path) -> Path:
    """Return the CSV file of a run: ``metrics.csv`` in its folder, or the file itself."""
    return run / "metrics.csv" if run.is_dir() else run


def read_cells(file: Path) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a CSV file.

    The columns are separated by commas, or by semicolons or tabs; then a comma in a number is a
    decimal point. A byte order mark is left out.

    Raises:
        OSError: the file cannot be read, or is a device or a pipe.
        ValueError: it is not a table in UTF-8.
    """
    if file.exists() and not file.is_file():
        raise OSError(f"{file} is not a regular file: expected a CSV file")
    try:
        text = file.read_text(encoding="utf-8-sig")
        first = text.partition("\n")[0]
        separator = max(",;\t", key=first.count)
        head, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not UTF-8 text: save it as CSV in UTF-8") from error
    except csv.Error as error:
        raise ValueError(f"{file} is not a CSV table ({error!s:.100})") from error
    except ValueError:  # an empty file has no head
        return [], []
    if separator != ",":
        rows = [[cell.replace(",", ".") for cell in row] for row in rows]
    return head, [row for row in rows if row]


def read_run(run: Path) -> RunTable:
    """Read the table of a run.

    Rows whose steps (without steps, seconds) are below those of earlier rows were written after a
    restart. They replace the rows that they overtake. Rows with equal steps complete each other.

    Args:
        run: its folder, or a CSV file.

    Raises:
        OSError, ValueError: as for :func:`read_cells`.
    """
    head, lines = read_cells(metrics_file(run))
    rows = [
        {name: cell.strip() for name, cell in zip(head, line, strict=False) if cell.strip()}
        for line in lines
    ]
    order = "steps" if "steps" in head else "seconds"
    table = RunTable(run, head, [])
    places: list[float] = []
    for row in rows:
        place = _number(row.get(order, ""))
        place = place if place is not None else (places[-1] if places else -np.inf)
        if places and place < places[-1]:
            left = sum(before < place for before in places)
            table.overtaken += len(places) - left
            del places[left:], table.rows[left:]
        places.append(place)
        table.rows.append(row)
    return table


def number_columns(tables: Iterable[RunTable]) -> list[str]:
    """Return the columns of the tables that hold nothing but numbers, and one at least."""
    names: dict[str, bool] = {}
    for table in tables:
        for name in table.columns:
            cells = [_number(row[name]) for row in table.rows if name in row]
            if cells:
                names[name] = names.get(name, True) and None not in cells
    return [name for name, numbers in names.items() if numbers]


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
