"""Plot runs from their CSV files: single runs, or settings over several seeds."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from contextlib import suppress
from glob import glob
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from bao_agents.arena.report import markdown_table
from bao_agents.support.array_types import Float64Array
from bao_agents.support.figures import look, save_figure

CURVES = {
    "score_against_greedy": "points against greedy, %",
    "score_against_alphabeta:2": "points against alphabeta:2, %",
    "score_against_alphabeta:4": "points against alphabeta:4, %",
    "score_against_alphabeta:2000n": "points of guided alpha-beta against plain, 2,000 nodes, %",
    "value_loss": "value loss",
    "policy_loss": "policy loss",
    "entropy": "entropy of the policy",
    "explained_variance": "explained variance of the returns",
    "blunders": "won games given away, %",
}
"""The columns of ``metrics.csv`` that are drawn by default, with their titles."""
_PERCENT = ("score_against_", "blunders")
_AT_MOST = 8
"""Columns that are drawn by default if a CSV has none of these."""
X_AXES = {"steps": (1e6, "million steps"), "seconds": (60, "minutes of training")}
"""What the x axis may show: a column, its unit, and its title."""


class Group(NamedTuple):
    """Runs that are one line of the picture."""

    name: str
    runs: list[Path]
    """Their folders, or CSV files."""


def read_groups(words: Sequence[str]) -> list[Group]:
    """Return the lines of a picture.

    Args:
        words: a run's folder or a CSV file, or ``NAME=PATTERN`` for the mean over the runs that
            match.

    Raises:
        ValueError: a word names no run.
    """
    groups = []
    for word in words:
        name, equals, pattern = word.partition("=")
        if not equals or Path(word).exists():
            name, pattern = "", word
        runs = []
        with suppress(RecursionError):  # glob calls itself for every slash
            runs = [Path(found) for found in sorted(glob(pattern))]
        if not runs:
            raise ValueError(f"{word!r:.200}: there is no such run; expected its folder or CSV")
        groups += [Group(name, runs)] if name else [Group("", [run]) for run in runs]
    # Folders with the same name are told apart by the part of their paths that differs.
    alone = [str(group.runs[0].resolve()) for group in groups if not group.name]
    shared = os.path.commonpath([str(Path(run).parent) for run in alone]) if alone else ""
    return [
        group if group.name else group._replace(name=os.path.relpath(group.runs[0], shared))
        for group in groups
    ]


def metrics_file(run: Path) -> Path:
    """Return the CSV file of a run: ``metrics.csv`` in its folder, or the file itself."""
    return run / "metrics.csv" if run.is_dir() else run


def read_curve(run: Path, x: str, y: str) -> tuple[Float64Array, Float64Array]:
    """Return two columns of a run's metrics, where both are filled; empty without them.

    Raises:
        OSError: the run has no CSV file.
        ValueError: an entry is not a number.
    """
    with open(metrics_file(run), newline="", encoding="utf-8") as rows:
        found = [(row[x], row[y]) for row in csv.DictReader(rows) if row.get(x) and row.get(y)]
    try:
        points = np.array(found, float).reshape(-1, 2)
    except ValueError as error:
        raise ValueError(f"{metrics_file(run)}, columns {x} and {y}: {error}") from error
    return points[:, 0], points[:, 1]


def _default_metrics(runs: Sequence[Path], x: str) -> list[str]:
    """Return the columns to draw: ours, or the first ones of another library's file."""
    found = [y for y in CURVES if any(len(read_curve(run, x, y)[0]) for run in runs)]
    if not found:
        with open(metrics_file(runs[0]), newline="", encoding="utf-8") as rows:
            columns = csv.DictReader(rows).fieldnames or []
        found = [y for y in columns if y not in X_AXES and len(read_curve(runs[0], x, y)[0])]
    return found[:_AT_MOST]


def draw_curves(
    groups: Sequence[Group], file: Path, metrics: Sequence[str] = (), x: str = "steps"
) -> str:
    """Draw metrics of runs into one picture; a group's line is its mean, and its band the range.

    Args:
        groups: the lines.
        file: a PNG, PDF or SVG.
        metrics: columns of the CSV files; by default those of :data:`CURVES` that the runs have.
        x: the column of the x axis, one of :data:`X_AXES`.

    Returns:
        the last values as a Markdown table: the mean, the lowest and the highest of each group.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: there is no such metric to draw.
    """
    unit, title = X_AXES[x]
    runs = [run for group in groups for run in group.runs]
    found = [y for y in metrics if any(len(read_curve(run, x, y)[0]) for run in runs)]
    found = found if metrics else _default_metrics(runs, x)
    if not found or len(found) < len(metrics):
        missing = ", ".join(repr(metric) for metric in metrics if metric not in found)
        wanted = f"numbers in a column {missing}" if missing else f"metric to draw against {x} yet"
        raise ValueError(f"{metrics_file(runs[0])} has no {wanted}")
    columns = min(2, len(found))
    lines = -(-len(found) // columns)
    figure = Figure(figsize=(5 * columns, 3.2 * lines), layout="constrained")
    table = [[group.name, str(len(group.runs))] for group in groups]
    for number, metric in enumerate(found):
        axes = figure.add_subplot(lines, columns, number + 1)
        scale = 100 if metric.startswith(_PERCENT) else 1
        for i, group in enumerate(groups):
            curves = [read_curve(run, x, metric) for run in group.runs]
            curves = [(at / unit, scale * values) for at, values in curves if len(at)]
            if not curves:
                table[i].append("")
                continue
            end = min(at[-1] for at, _ in curves)
            at = np.unique([place for places, _ in curves for place in places if place <= end])
            values = np.array([np.interp(at, *curve) for curve in curves])
            style = look(i) | ({"marker": ""} if len(at) > 50 else {})
            axes.plot(at, values.mean(axis=0), label=group.name, **style)
            if len(curves) > 1:
                band = values.min(axis=0), values.max(axis=0)
                axes.fill_between(at, *band, color=style["color"], alpha=0.2, linewidth=0)
            last = values[:, -1]
            spread = f" ({last.min():.3g} to {last.max():.3g})" if len(last) > 1 else ""
            table[i].append(f"{last.mean():.3g}{spread}")
        axes.set_title(CURVES.get(metric, metric), size=10)
        axes.set_xlabel(title, size=9)
        axes.set_xlim(left=0)
        if metric.startswith("score_against_"):
            axes.set_ylim(0, 100)
        axes.grid(alpha=0.3)
    if len(groups) > 1:
        figure.axes[0].legend(fontsize=8)
    save_figure(figure, file)
    heads = [CURVES.get(metric, metric) for metric in found]
    return markdown_table(["runs", "seeds", *heads], table)
