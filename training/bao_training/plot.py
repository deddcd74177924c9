"""Plot runs from their CSV files: single runs, or settings over several seeds."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from glob import glob
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bao_agents.arena.report import markdown_table
from bao_agents.support.array_types import Float64Array
from bao_agents.support.figures import look
from bao_training.run_table import RunTable, number_columns, read_run

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
}
"""The columns of ``metrics.csv`` that are drawn by default, with their titles."""
_PERCENT = ("score_against_", "guided_score_against_", "blunders")
_ENDS = ("_low", "_high")
"""What the names of the columns with the ends of an interval add to that of the metric."""
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
            match. The name of a folder or file that exists is never a pattern.

    Raises:
        ValueError: a word names no run.
    """
    groups = []
    for word in words:
        name, equals, pattern = word.partition("=")
        if not equals or os.path.exists(word):
            name, pattern = "", word
        runs = [Path(pattern)] if os.path.exists(pattern) else []
        if not runs:
            with suppress(RecursionError):  # glob calls itself for every slash
                runs = [Path(found) for found in sorted(glob(pattern))]
        if not runs:
            raise ValueError(
                f"{word!r:.200}: no such run, or it cannot be read; expected its folder or CSV"
            )
        groups += [Group(name, runs)] if name else [Group("", [run]) for run in runs]
    # Folders with the same name are told apart by the part of their paths that differs.
    alone = [str(group.runs[0].resolve()) for group in groups if not group.name]
    shared = os.path.commonpath([str(Path(run).parent) for run in alone]) if alone else ""
    return [
        group if group.name else group._replace(name=os.path.relpath(group.runs[0], shared))
        for group in groups
    ]


class _Curve(NamedTuple):
    """The values of one metric of one run."""

    table: RunTable
    at: Float64Array
    """float64[N], places on the x axis, rising."""
    values: Float64Array
    """float64[N]."""
    interval: Float64Array
    """float64[M, 3], places and both ends of the 95 % interval; M is 0 if the run has none."""


def draw_curves(
    groups: Sequence[Group], metrics: Sequence[str] = (), x: str = "steps"
) -> tuple[Figure, str]:
    """Draw metrics of runs into one picture.

    The line of a run has the band of the 95 % intervals in its columns ``METRIC_low`` and
    ``METRIC_high``. The line of a group is its mean over the steps that all its runs have, and its
    band reaches from the lowest run to the highest.

    Args:
        groups: the lines.
        metrics: columns of the CSV files; by default those of :data:`CURVES` that the runs have.
        x: the column of the x axis, one of :data:`X_AXES`.

    Returns:
        the picture; and the last values as Markdown tables, with a line for all that was left out.

    Raises:
        OSError: a file cannot be read.
        ValueError: there is no such metric to draw.
    """
    tables = {run: read_run(run) for group in groups for run in group.runs}
    found, left = _metrics(list(tables.values()), metrics, x)
    columns = min(2, len(found))
    lines = -(-len(found) // columns)
    figure = Figure(figsize=(5 * columns, 3.2 * lines + 0.4), layout="constrained")
    texts = []
    notes: dict[str, list[str]] = defaultdict(list)
    for number, metric in enumerate(found):
        axes = figure.add_subplot(lines, columns, number + 1)
        rows = []
        for i, group in enumerate(groups):
            curves = [_curve(tables[run], x, metric) for run in group.runs]
            row, words = _draw_line(axes, i, group, curves, x)
            rows.append(row)
            for text in words:
                notes[text].append(metric)
        _dress(axes, metric, x)
        labels = axes.get_legend_handles_labels()[1]
        if len(labels) > 1 or (labels and len(groups) > 1):
            axes.legend(fontsize=8)
        texts.append(f"{CURVES.get(metric, metric)}:\n\n{_last_values(rows, x)}")
    several = any(len(group.runs) > 1 for group in groups)
    bands = "lowest to highest run" if several else "95 % interval of the games"
    name = _plain(groups[0].name) if len(groups) == 1 else f"{len(groups)} lines"
    figure.suptitle(f"{name}; band: {bands}", size=10)
    for table in tables.values():
        if table.overtaken:
            notes[f"{table.overtaken} rows overtaken after a restart: {table.run}"] = found
        for metric in table.not_finite & {*found}:
            notes[f"values that are not finite are left out: {table.run}"].append(metric)
    if left:
        notes[f"not drawn (--metrics draws them): {', '.join(left)}"] = found
    words = [
        text if len(where) == len(found) else f"{', '.join(where)}: {text}"
        for text, where in notes.items()
    ]
    return figure, "\n\n".join([*texts, *(["\n".join(words)] if words else [])])


def _metrics(
    tables: Sequence[RunTable], wanted: Sequence[str], x: str
) -> tuple[list[str], list[str]]:
    """Return the columns to draw, and those that nobody asked for and that are not drawn.

    Raises:
        ValueError: a wanted column, or any column, is missing in all tables.
    """
    has = [y for y in _columns(tables) if any(len(table.values(x, y)) for table in tables)]
    if wanted:
        if missing := [y for y in wanted if y not in has]:
            for table in tables:  # an entry that is not a number has its own message
                for y in missing:
                    table.values(x, y)
            names = ", ".join(map(repr, missing))
            raise ValueError(f"{tables[0].file} has no numbers in a column {names}")
        return list(dict.fromkeys(wanted)), []
    found = [y for y in CURVES if y in has] or has[:_AT_MOST]
    if not found:
        raise ValueError(
            f"{tables[0].file} has no metric to draw against {x} yet: expected a column {x} and "
            "another of numbers"
        )
    return found, [y for y in has if y not in found]


def _columns(tables: Sequence[RunTable]) -> list[str]:
    """Return the columns of numbers that are neither an axis nor the end of an interval."""
    names = number_columns(tables)
    ends = {name + end for name in names for end in _ENDS}
    return [name for name in names if name not in ends and name not in (*X_AXES, "update")]


def _curve(table: RunTable, x: str, metric: str) -> _Curve:
    scale = 100.0 if metric.startswith(_PERCENT) else 1.0
    at, values = table.values(x, metric).T
    interval = table.values(x, *(metric + end for end in _ENDS)) * [1.0, scale, scale]
    return _Curve(table, at, scale * values, interval)


def _draw_line(
    axes: Axes, number: int, group: Group, curves: Sequence[_Curve], x: str
) -> tuple[list[str], list[str]]:
    """Draw a group's line.

    Returns:
        its row of the table, and a note for each run that is cut or left out.
    """
    notes = [f"no values: {curve.table.run}" for curve in curves if not len(curve.at)]
    curves = [curve for curve in curves if len(curve.at)]
    nothing = [group.name, "0", "", ""]
    if not curves:
        return nothing, notes
    start, end = max(c.at[0] for c in curves), min(c.at[-1] for c in curves)
    notes += [
        f"ends at {c.at[-1]:,.0f} {x}: {c.table.run}"
        for c in curves
        if c.at[-1] == end and any(other.at[-1] > end for other in curves)
    ]
    notes += [
        f"begins at {c.at[0]:,.0f} {x}: {c.table.run}"
        for c in curves
        if c.at[0] == start and any(other.at[0] < start for other in curves)
    ]
    if start > end:
        return nothing, [*notes, f"no {x} that all runs of {group.name} have"]
    unit = X_AXES[x][0]
    at = np.unique([place for c in curves for place in c.at if start <= place <= end])
    values = np.array([np.interp(at, c.at, c.values) for c in curves])
    style = look(number) | ({"marker": ""} if len(at) > 50 else {})
    axes.plot(at / unit, values.mean(axis=0), label=_plain(group.name), **style)
    last = values[:, -1]
    ends = ""
    if len(curves) > 1:
        band = at, values.min(axis=0), values.max(axis=0)
        ends = f" ({last.min():.3g} to {last.max():.3g})"
    else:
        band = tuple(curves[0].interval.T)
        if len(band[0]) and band[0][-1] == at[-1]:
            ends = f" ({band[1][-1]:.3g} to {band[2][-1]:.3g})"
    if len(band[0]):
        axes.fill_between(band[0] / unit, *band[1:], color=style["color"], alpha=0.2, linewidth=0)
    return [group.name, str(len(curves)), f"{end:,.0f}", f"{last.mean():.3g}{ends}"], notes


def _dress(axes: Axes, metric: str, x: str) -> None:
    """Give the axes of a metric their title, limits and baseline."""
    axes.set_title(_plain(CURVES.get(metric, metric)), size=10)
    axes.set_xlabel(X_AXES[x][1], size=9)
    axes.set_xlim(left=0)
    if "score_against_" in metric:
        axes.axhline(50, color="0.5", linestyle="--", linewidth=1, label="equal play, 50 %")
        axes.set_ylim(-3, 103)  # dots at 0 and 100 % stay whole
    axes.grid(alpha=0.3)


def _last_values(rows: Sequence[Sequence[str]], x: str) -> str:
    """Return a table of at most 80 columns; of a long name its end stays."""
    heads = ["line", "runs", x, "last"]
    room = 80 - 13 - sum(max(len(row[i]) for row in [heads, *rows]) for i in range(1, len(heads)))
    room = max(room, 8)
    short = [
        [name if len(name) <= room else "…" + name[1 - room :], *cells] for name, *cells in rows
    ]
    return markdown_table(heads, short)


def _plain(text: str) -> str:
    """Return a text that matplotlib takes as it is: no formula, and shown in a legend."""
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")
