"""Plot runs, and tables of ratings: single runs, or settings over several seeds."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bao_agents.arena.report import markdown_table
from bao_agents.support.array_types import Float64Array
from bao_agents.support.figures import line_style
from bao_env.files import read_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVES = {
    "score_against_greedy": "points against greedy, %",
    "score_against_alphabeta:2": "points against alphabeta:2, %",
    "score_against_alphabeta:4": "points against alphabeta:4, %",
    "guided_score_against_alphabeta:2000n": "points of guided alpha-beta against plain, %",
    "value_loss": "value loss",
    "policy_loss": "policy loss",
    "entropy": "entropy of the policy",
    "explained_variance": "explained variance of the returns",
    "blunders": "won games given away, %",
    "elo": "Elo",
}
"""The columns that are drawn by default, with their titles."""
X_AXES = ("steps", "seconds")
"""The columns that the x axis may show."""
_PERCENT = ("score_against_", "guided_score_against_", "blunders")
_LARGEST = 1e100
"""Larger numbers count as missing: no axis can show them."""
_CHECKPOINT = r"step-\d+(\.safetensors)?|final\.safetensors|\d+[^\d/]*$"
"""What tells a checkpoint from the others of its run, in the name of a player."""

Rows = Sequence[Mapping[str, str]]
"""The rows of a table; the cells of each by their columns."""


class Line(NamedTuple):
    """A line of the picture."""

    name: str
    runs: Mapping[str, Rows]
    """The table of each of its runs, by where it comes from."""


def read_lines(words: Sequence[str]) -> list[Line]:
    """Return the lines of a picture.

    Args:
        words: a run's folder or a CSV file, or ``NAME=PATTERN`` for the mean over the runs that
            match. The name of a folder or file that exists is never a pattern.

    Raises:
        OSError, ValueError: a word names no run, or a file cannot be read.
    """
    lines = []
    for word in words:
        name, equals, pattern = word.partition("=")
        if not equals or os.path.exists(word):
            name, pattern = "", word
        found = [pattern] if os.path.exists(pattern) else []
        with suppress(RecursionError):  # glob calls itself for every slash
            found = found or sorted(glob(pattern))
        if not found:
            raise ValueError(
                f"{word!r:.200}: no such run, or it cannot be read; expected its folder or CSV"
            )
        runs = {source: rows for one in found for source, rows in read_runs(Path(one)).items()}
        lines += [Line(name, runs)] if name else [Line(run, {run: runs[run]}) for run in runs]
    return lines


def read_runs(path: Path) -> dict[str, Rows]:
    """Return the table of a run's folder, or of each run in a CSV file of ratings.

    The ratings of ``runs/a/step-2000`` and ``runs/a/step-4000`` are one table, and so are those of
    ``mine:player@weights/9.pt`` and ``mine:player@weights/12.pt``.

    Raises:
        OSError, ValueError: the file cannot be read, or is not a CSV table in UTF-8.
    """
    file = path / "metrics.csv" if path.is_dir() else path
    runs: dict[str, list[dict[str, str]]] = {}
    try:
        for row in csv.DictReader(read_text(file).splitlines()):
            player = row.get("spec") or row.get("player") or ""
            runs.setdefault(re.sub(_CHECKPOINT, "", player, count=1), []).append(row)
    except csv.Error as error:
        raise ValueError(f"{file} is not a CSV table ({error!s:.100})") from error
    if len(runs) < 2:
        return {str(path): rows for rows in runs.values() or [[]]}
    return {f"{path}, {name.rstrip('/@-_')}": rows for name, rows in runs.items()}


def draw_curves(
    lines: Sequence[Line], metrics: Sequence[str] = (), x: str = "steps"
) -> tuple[Figure, str]:
    """Draw metrics of runs into one picture.

    The line of a run has the 95% intervals in its columns ``METRIC_low`` and ``METRIC_high``. The
    line of several runs is their mean over the steps that all of them have, and its band reaches
    from the lowest run to the highest. A rating that is only a bound is an arrow.

    Args:
        lines: the lines.
        metrics: columns of the CSV files; by default those of :data:`CURVES` that the runs have.
        x: the column of the x axis, one of :data:`X_AXES`.

    Returns:
        the picture; and the last values as a Markdown table, with a line for all that was left out.

    Raises:
        ValueError: there is no such metric to draw.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    tables = [rows for line in lines for rows in line.runs.values()]
    has = [m for m in metrics or CURVES if any(len(_points(rows, x, m)) for rows in tables)]
    if not has or len(has) < len(metrics):
        missing = next(name for name in metrics or CURVES if name not in has)
        raise ValueError(
            f"{next(iter(lines[0].runs))} has nothing to draw against {x}: expected numbers in "
            f"columns {x} and {missing}"
        )
    columns = min(2, len(has))
    height = -(-len(has) // columns)
    figure = Figure(figsize=(5 * columns, 3.2 * height + 0.4), layout="constrained")
    cells: list[list[str]] = []
    bands: dict[str, None] = {}
    notes: list[str] = []
    for number, metric in enumerate(has, 1):
        axes = figure.add_subplot(height, columns, number)
        title = CURVES.get(metric, metric)
        for i, line in enumerate(lines):
            last, band = _draw(axes, line, x, metric, line_style(i), notes)
            cells.append([title, line.name, str(len(line.runs)), *last])
            bands |= {band: None} if band else {}
        axes.set_title(_plain(title), size=10)
        axes.set_xlabel(x, size=9)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        if "score_against_" in metric:
            axes.axhline(50, color="0.5", linestyle="--", linewidth=1)  # equal play
            axes.set_ylim(-3, 103)  # dots at 0 and 100% stay whole
        axes.grid(alpha=0.3)
        if len(lines) > 1:
            axes.legend(fontsize=8)
    name = _plain(lines[0].name) if len(lines) == 1 else f"{len(lines)} lines"
    figure.suptitle(f"{name}; band: {' or '.join(bands)}" if bands else name)
    table = markdown_table(["metric", "line", "runs", x, "last"], cells)
    return figure, "\n".join([table, "", *dict.fromkeys(notes)]).strip()


def _number(cell: str | None) -> float:
    """Return the number in a cell, and NaN if no axis can show it."""
    try:
        number = float(cell or "nan")
    except ValueError:
        return np.nan
    return number if abs(number) <= _LARGEST else np.nan


def _points(rows: Rows, x: str, metric: str) -> Float64Array:
    """Return float64[N, 4] with the place, the value and both ends of its interval, in order.

    What is missing is NaN; each row has a place, and a value or an end.
    """
    names = (x, metric, f"{metric}_low", f"{metric}_high")
    points = np.array([[_number(row.get(name)) for name in names] for row in rows]).reshape(-1, 4)
    points[:, 1:] *= 100 if metric.startswith(_PERCENT) else 1
    points = points[np.isfinite(points[:, 0]) & np.isfinite(points[:, 1:]).any(axis=1)]
    return points[np.argsort(points[:, 0], kind="stable")]


def _draw(
    axes: Axes, line: Line, x: str, metric: str, style: dict[str, Any], notes: list[str]
) -> tuple[list[str], str]:
    """Draw a line, and add to ``notes`` what is left out.

    Returns:
        its last place and value, and what its band shows; they are empty if it has none.
    """
    axes.plot([], [], label=_plain(line.name), **style)
    runs = {}
    for source, rows in line.runs.items():
        points = _points(rows, x, metric)
        for at, value, low, high in points:
            if np.isnan(value):
                side, bound, marker = (
                    ("above", low, "^") if np.isnan(high) else ("below", high, "v")
                )
                axes.plot(at, bound, **style | {"marker": marker})
                notes.append(f"only a bound at {at:,.0f} {x}, {side} {bound:.4g}: {source}")
        points = points[np.isfinite(points[:, 1])]
        if len(points):
            runs[source] = points.T
        else:
            notes.append(f"no {metric}: {source}")
    if not runs:
        return [], ""
    places, mean, low, high = next(iter(runs.values()))
    if len(runs) > 1:
        places = np.unique(np.concatenate([*runs.values()], axis=1)[0])
        values = np.array(
            [np.interp(places, run[0], run[1], left=np.nan, right=np.nan) for run in runs.values()]
        )
        for source, run in runs.items():
            if (run[0, 0], run[0, -1]) != (places[0], places[-1]):
                notes.append(f"only from {run[0, 0]:,.0f} to {run[0, -1]:,.0f} {x}: {source}")
        mean, low, high = values.mean(axis=0), values.min(axis=0), values.max(axis=0)
    axes.plot(places, mean, **style | ({"marker": ""} if len(places) > 50 else {}))
    known = np.isfinite(low + high)
    if known.sum() == 1:
        arms = np.abs([low - mean, high - mean])
        axes.errorbar(places, mean, arms, linestyle="", color=style["color"], capsize=3)
    else:
        axes.fill_between(places, low, high, color=style["color"], alpha=0.2, linewidth=0)
    shown = np.flatnonzero(np.isfinite(mean))
    if not len(shown):
        notes.append(f"no {x} that all runs of {line.name} have")
        return [], ""
    last = shown[-1]
    digits = ".0f" if metric == "elo" else ".4g"
    interval = f" ({low[last]:{digits}} to {high[last]:{digits}})" if known[last] else ""
    kind = "95% interval of the games" if len(line.runs) == 1 else "lowest to highest run"
    cells = [f"{places[last]:,.0f}", f"{mean[last]:{digits}}{interval}"]
    return cells, kind if known.sum() > 1 else ""


def _plain(text: str) -> str:
    """Return a text that matplotlib takes as it is: no formula, and shown in a legend."""
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")
