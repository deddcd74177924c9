"""Plot runs, and tables of ratings: single runs, or settings over several seeds."""

from __future__ import annotations

import csv
import os
import re
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
from bao_env.files import read_text

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
_PERCENT = ("score_against_", "guided_score_against_", "blunders")
_LARGEST = 1e100
"""Larger numbers count as missing: no axis can show them."""
X_AXES = {"steps": (1e6, "million steps"), "seconds": (60, "minutes of training")}
"""What the x axis may show: a column, its unit, and its title."""


class Group(NamedTuple):
    """Runs that are one line of the picture."""

    name: str
    runs: list[Path]
    """Their folders, or CSV files of ``bao rate``."""


class Line(NamedTuple):
    """A line of the picture: a table for each of its runs."""

    name: str
    tables: list[dict[str, Float64Array]]
    """The columns of each run, float64[rows]; NaN where a cell holds no finite number."""
    sources: list[str]
    """Where each table comes from, for messages."""


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


def draw_curves(
    groups: Sequence[Group], metrics: Sequence[str] = (), x: str = "steps"
) -> tuple[Figure, str]:
    """Draw metrics of runs into one picture.

    The line of a run has the 95 % intervals in its columns ``METRIC_low`` and ``METRIC_high``. The
    line of a group is its mean over the steps that all its runs have, and its band reaches from the
    lowest run to the highest. A table of ratings has a line for each run in it; a rating that is
    only a bound is an arrow.

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
    lines = [line for group in groups for line in _read(group, x)]
    tables = [table for line in lines for table in line.tables]
    has = [name for name in (metrics or CURVES) if any(len(_points(t, x, name)) for t in tables)]
    found = list(dict.fromkeys(metrics)) or has
    if missing := [name for name in found or [*CURVES][:1] if name not in has]:
        raise ValueError(
            f"{lines[0].sources[0]} has nothing to draw against {x}: expected numbers in columns "
            f"{x} and {', '.join(missing)}"
        )
    columns = min(2, len(found))
    rows = -(-len(found) // columns)
    figure = Figure(figsize=(5 * columns, 3.2 * rows + 0.4), layout="constrained")
    texts, bands = [], set()
    notes: dict[str, list[str]] = defaultdict(list)
    for number, metric in enumerate(found):
        axes = figure.add_subplot(rows, columns, number + 1)
        cells = []
        for i, line in enumerate(lines):
            cell, band, words = _draw_line(axes, i, line, metric, x)
            cells.append(cell)
            bands |= band
            for text in words:
                notes[text].append(metric)
        _dress(axes, metric, x)
        labels = axes.get_legend_handles_labels()[1]
        if len(labels) > 1 or (labels and len(lines) > 1):
            axes.legend(fontsize=8)
        texts.append(f"{CURVES.get(metric, metric)}:\n\n{_last_values(cells, x)}")
    name = _plain(groups[0].name) if len(groups) == 1 else f"{len(lines)} lines"
    figure.suptitle("; band: ".join([name, *([" or ".join(sorted(bands))] if bands else [])]))
    said = [
        text if len(where) == len(found) else f"{', '.join(where)}: {text}"
        for text, where in notes.items()
    ]
    return figure, "\n\n".join([*texts, *(["\n".join(said)] if said else [])])


def _read(group: Group, x: str) -> list[Line]:
    """Return the lines of a group: one, or one for each run in a table of ratings.

    Raises:
        OSError, ValueError: a file cannot be read, or is not a CSV table in UTF-8.
    """
    tables = []
    for run in group.runs:
        file = run / "metrics.csv" if run.is_dir() else run
        try:
            rows = list(csv.DictReader(read_text(file).splitlines()))
        except csv.Error as error:
            raise ValueError(f"{file} is not a CSV table ({error!s:.100})") from error
        parts: dict[str, list[dict[str, str]]] = defaultdict(list)
        for row in rows:
            # "runs/a/step-200000" and "mine:player@weights/9.pt" are rows of one run each.
            player = row.get("spec") or row.get("player") or ""
            name = re.sub("(step-)?[0-9]+[^0-9/]*$|final.safetensors$", "", player)
            parts[name.rstrip("/@-_") or player].append(row)
        for name, part in (parts or {"": []}).items():
            source = f"{file}, {name}" if len(parts) > 1 else str(file)
            tables.append((name, source, _columns(part)))
    if len(group.runs) > 1 or len(tables) == 1:
        return [Line(group.name, [table for *_, table in tables], [one for _, one, _ in tables])]
    return [Line(name, [table], [source]) for name, source, table in tables]


def _columns(rows: Sequence[dict[str, str]]) -> dict[str, Float64Array]:
    """Return the columns of a table; see :class:`Line`."""

    def number(cell: str | None) -> float:
        with suppress(ValueError):
            if abs(found := float(cell or "nan")) <= _LARGEST:
                return found
        return np.nan

    names = [name for name in (rows[0] if rows else ()) if name]
    return {name: np.array([number(row[name]) for row in rows]) for name in names}


def _points(table: dict[str, Float64Array], x: str, metric: str) -> Float64Array:
    """Return float64[N, 4] with the place, the value and both ends of its interval, in order.

    What is missing is NaN; each row has a place, and a value or an end.
    """
    names = (x, metric, f"{metric}_low", f"{metric}_high")
    nothing = np.full(len(next(iter(table.values()), [])), np.nan)
    points = np.stack([table.get(name, nothing) for name in names], axis=1)
    points[:, 1:] *= 100.0 if metric.startswith(_PERCENT) else 1.0
    points = points[np.isfinite(points[:, 0]) & np.isfinite(points[:, 1:]).any(axis=1)]
    return points[np.argsort(points[:, 0], kind="stable")]


def _draw_line(
    axes: Axes, number: int, line: Line, metric: str, x: str
) -> tuple[list[str], set[str], list[str]]:
    """Draw a line.

    Returns:
        its row of the table, what its band shows, and a note for all that is cut or left out.
    """
    digits = ".1f" if metric.startswith(_PERCENT) else ".0f" if metric == "elo" else ".3g"
    unit, style = X_AXES[x][0], look(number)
    notes, curves = [], []
    for source, table in zip(line.sources, line.tables, strict=True):
        points = _points(table, x, metric)
        bounds = points[np.isnan(points[:, 1])]
        for at, _, low, high in bounds:
            words = f"above {low:{digits}}" if np.isfinite(low) else f"below {high:{digits}}"
            notes.append(f"only a bound at {at:,.0f} {x}, {words}: {source}")
        if len(line.tables) == 1:
            for end, marker in ((2, "^"), (3, "v")):
                arrows = style | {"marker": marker, "linestyle": ""}
                axes.plot(bounds[:, 0] / unit, bounds[:, end], **arrows)
        points = points[np.isfinite(points[:, 1])]
        if len(points):
            curves.append((source, points))
        elif not len(bounds):
            notes.append(f"no values: {source}")
    nothing = [line.name, "0", "", ""]
    if not curves:
        return nothing, set(), notes
    start, end = max(c[0, 0] for _, c in curves), min(c[-1, 0] for _, c in curves)
    for source, c in curves:
        if c[-1, 0] == end and any(other[-1, 0] > end for _, other in curves):
            notes.append(f"ends at {end:,.0f} {x}: {source}")
        if c[0, 0] == start and any(other[0, 0] < start for _, other in curves):
            notes.append(f"begins at {start:,.0f} {x}: {source}")
    if start > end:
        return nothing, set(), [*notes, f"no {x} that all runs of {line.name} have"]
    at = np.unique([place for _, c in curves for place in c[:, 0] if start <= place <= end])
    values = np.array([np.interp(at, c[:, 0], c[:, 1]) for _, c in curves])
    mean = values.mean(axis=0)
    dots = style | ({"marker": ""} if len(at) > 50 else {})
    axes.plot(at / unit, mean, label=_plain(line.name), **dots)
    band, kind = np.stack([at, values.min(axis=0), values.max(axis=0)]), "lowest to highest run"
    if len(curves) == 1:
        band, kind = curves[0][1][:, [0, 2, 3]].T, "95 % interval of the games"
        band = band[:, np.isfinite(band).all(axis=0)]
    said = f"{mean[-1]:{digits}}"
    if band.size and band[0, -1] == end:
        said += f" ({band[1, -1]:{digits}} to {band[2, -1]:{digits}})"
    if len(at) == 1 and band.size:
        arms = np.abs(band[1:, -1:] - mean)
        axes.errorbar(at / unit, mean, arms, color=style["color"], capsize=3)
    elif band.size:
        axes.fill_between(band[0] / unit, *band[1:], color=style["color"], alpha=0.2, linewidth=0)
    drawn = {kind} if len(at) > 1 and band.size else set()
    return [line.name, str(len(curves)), f"{end:,.0f}", said], drawn, notes


def _dress(axes: Axes, metric: str, x: str) -> None:
    """Give the axes of a metric their title, limits and baseline."""
    axes.set_title(_plain(CURVES.get(metric, metric)), size=10)
    axes.set_xlabel(X_AXES[x][1], size=9)
    axes.set_xlim(left=0)
    axes.locator_params(axis="x", nbins=5)
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
