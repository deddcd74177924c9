"""Plot runs, and tables of ratings: single runs, or settings over several seeds."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bao_agents.arena.report import markdown_table
from bao_agents.support.array_types import Float64Array
from bao_agents.support.figures import line_style
from bao_env.files import read_text
from bao_training.run_settings import read_note

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
"""Pattern of the part of a player's name that differs between the checkpoints of a run."""

Rows = Sequence[Mapping[str, str]]
"""The rows of a table, each a mapping from column names to cells."""


class Line(NamedTuple):
    """A line of the picture."""

    name: str
    runs: Mapping[str, Rows]
    """The table of each run. The key is the path that it was read from, with a player's name if the
    file has several players."""


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
        paths = [pattern] if os.path.exists(pattern) else []
        with suppress(RecursionError):  # glob calls itself for every slash
            paths = paths or sorted(glob(pattern))
        if not paths:
            raise ValueError(
                f"{word!r:.200}: no such run, or it cannot be read; expected a folder or a CSV file"
            )
        runs = {source: rows for path in paths for source, rows in read_runs(Path(path)).items()}
        lines += [Line(name, runs)] if name else [Line(run, {run: runs[run]}) for run in runs]
    return lines


def read_runs(path: Path) -> dict[str, Rows]:
    """Return the table of a run's folder, with its rules, or of each run in a CSV file of ratings.

    The ratings of ``runs/a/step-2000`` and ``runs/a/step-4000`` are one table, and so are those of
    ``mine:player@weights/9.pt`` and ``mine:player@weights/12.pt``.

    Raises:
        OSError, ValueError: the file cannot be read, or is not a CSV table in UTF-8.
    """
    file = path / "metrics.csv" if path.is_dir() else path
    rules = _rules_of(path)
    runs: dict[str, list[dict[str, str]]] = {}
    try:
        for row in csv.DictReader(read_text(file).splitlines()):
            row |= {"ruleset": rules} if rules else {}
            player = row.get("spec") or row.get("player") or ""
            runs.setdefault(re.sub(_CHECKPOINT, "", player, count=1), []).append(row)
    except csv.Error as error:
        raise ValueError(f"{file} is not a CSV table ({error!s:.100})") from error
    if len(runs) < 2:
        return {str(path): rows for rows in runs.values() or [[]]}
    return {f"{path}, {name.rstrip('/@-_')}": rows for name, rows in runs.items()}


def _rules_of(folder: Path) -> str:
    """Return the rules of a run, by its run.json; an empty string if it does not say."""
    with suppress(ValueError, TypeError, KeyError, AttributeError):
        config = read_note(folder)["config"]
        own_rules = f"{config['ruleset']} with changes" if config["rules"] else config["ruleset"]
        return str(config["rules"].get("name", own_rules))
    return ""


class Curve(NamedTuple):
    """The values of one metric for a line."""

    line: Line
    x: Float64Array
    """float64[N], the places on the x axis, in ascending order."""
    mean: Float64Array
    """float64[N], the mean over the runs; NaN where a run has no value."""
    low: Float64Array
    """float64[N], the lower ends of the 95% intervals; NaN where there is none."""
    high: Float64Array
    """float64[N], the upper ends."""
    runs: Float64Array
    """float64[R, N], the values of each run that has the metric."""
    bounds: list[tuple[float, float, str]]
    """Ratings of which only a bound is known: place on the x axis, bound, and marker."""

    @property
    def last(self) -> int:
        """The index of the last point with a mean; -1 if there is none."""
        return int(max(np.flatnonzero(np.isfinite(self.mean)), default=-1))

    @property
    def interval(self) -> str:
        """What the intervals are taken over, in words; an empty string without intervals."""
        if not np.isfinite(self.low + self.high).any():
            return ""
        return f"95% interval {'over the seeds' if len(self.runs) > 1 else 'of the games'}"


class Curves:
    """Curves of metrics, as a picture and as a table.

    The curve of a run has the 95% intervals in its columns ``METRIC_low`` and ``METRIC_high``. The
    curve of several runs is their mean over the steps that all of them have, with the 95% interval
    of the mean over the runs (Student's t).

    Args:
        lines: the lines.
        metrics: columns of the CSV files; by default those of :data:`CURVES` that the runs have.
        x: the column of the x axis, one of :data:`X_AXES`.

    Raises:
        ValueError: there is no such metric to draw.
    """

    def __init__(
        self, lines: Sequence[Line], metrics: Sequence[str] = (), x: str = "steps"
    ) -> None:
        self._lines, self._x = lines, x
        self._notes: list[str] = []
        """Notes on what is not drawn."""
        tables = [rows for line in lines for rows in line.runs.values()]
        drawn = [m for m in metrics or CURVES if any(len(_points(rows, x, m)) for rows in tables)]
        if not drawn or len(drawn) < len(metrics):
            missing = next(name for name in metrics or CURVES if name not in drawn)
            raise ValueError(
                f"{next(iter(lines[0].runs))} has nothing to draw: expected numbers in the columns "
                f"{x} and {missing}"
            )
        panels = {metric: [self._curve(line, metric) for line in lines] for metric in drawn}
        # Panels of single points say no more than the table, so they come last.
        self._panels = dict(
            sorted(panels.items(), key=lambda item: all(len(curve.x) < 2 for curve in item[1]))
        )

    def _curve(self, line: Line, metric: str) -> Curve:
        """Return the curve of a metric for a line; add notes on what is left out."""
        tables, bounds = {}, []
        for source, rows in line.runs.items():
            points = _points(rows, self._x, metric)
            if lost := sum(_has(row, metric) for row in rows) - len(points):
                self._notes.append(
                    f"{source}: {lost} {'row' if lost == 1 else 'rows'} without {self._x} left out"
                )
            for position, value, low, high in points:
                if np.isnan(value):
                    is_low = np.isnan(high)
                    bound, side = (low, "above") if is_low else (high, "below")
                    bounds.append((position, bound, "^" if is_low else "v"))
                    self._notes.append(
                        f"{source}: at {position:,.0f} {self._x} only a bound is known, {side} "
                        f"{bound:.4g}"
                    )
            points = points[np.isfinite(points[:, 1])]
            if len(points):
                tables[source] = points.T
            else:
                self._notes.append(f"{source}: no {metric}")
        if not tables:
            nothing = np.empty(0)
            return Curve(line, nothing, nothing, nothing, nothing, np.empty((0, 0)), bounds)
        if len(tables) == 1:
            [(x, mean, low, high)] = tables.values()
            return Curve(line, x, mean, low, high, mean[None], bounds)
        x = np.unique(np.concatenate([*tables.values()], axis=1)[0])
        runs = np.array(
            [np.interp(x, run[0], run[1], left=np.nan, right=np.nan) for run in tables.values()]
        )
        for source, run in tables.items():
            if (run[0, 0], run[0, -1]) != (x[0], x[-1]):
                self._notes.append(
                    f"{source}: only from {run[0, 0]:,.0f} to {run[0, -1]:,.0f} {self._x}"
                )
        mean = runs.mean(axis=0)
        arm = student_t(len(runs) - 1) * runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
        if not np.isfinite(mean).any():
            self._notes.append(
                f"{line.name}: its runs have no {self._x} in common, so it has no mean"
            )
        return Curve(line, x, mean, mean - arm, mean + arm, runs, bounds)

    def table(self) -> str:
        """Return the last values as a Markdown table, followed by notes on what was left out.

        If lines are means over seeds, the table also has the difference of each from the first
        line, with the 95% interval of Welch's t-test.
        """
        cells = []
        for metric, curves in self._panels.items():
            title = CURVES.get(metric, metric)
            for curve in curves:
                last = _last_cells(metric, curve) if curve.last >= 0 else ["", ""]
                cells.append([title, curve.line.name, str(len(curve.line.runs)), *last])
            differences = [_difference(metric, curves[0], curve) for curve in curves[1:]]
            cells += [[title, *difference] for difference in differences if difference]
        table = markdown_table(["metric", "line", "runs", self._x, "last"], cells)
        return "\n".join([table, "", *dict.fromkeys(self._notes)]).strip()

    def draw(self) -> Figure:
        """Draw all curves in one picture. An arrow is a rating of which only a bound is known."""
        from matplotlib.figure import Figure
        from matplotlib.ticker import EngFormatter

        columns = min(2, len(self._panels))
        height = -(-len(self._panels) // columns)
        figure = Figure(figsize=(5 * columns, 3.2 * height + 0.4), layout="constrained")
        for number, (metric, curves) in enumerate(self._panels.items(), 1):
            axes = figure.add_subplot(height, columns, number)
            for i, curve in enumerate(curves):
                _draw(axes, curve, i, len(curves))
            axes.set_title(_plain(CURVES.get(metric, metric)), size=10)
            axes.set_xlabel(self._x, size=9)
            axes.set_xlim(left=0)
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))
            if "score_against_" in metric:
                axes.axhline(50, color="0.5", linestyle="--", linewidth=1)  # equal play
                axes.set_ylim(-3, 103)  # dots at 0 and 100% stay whole
            else:
                _limit(axes, curves)
            axes.grid(alpha=0.3)
            if len(self._lines) > 1:
                axes.legend(fontsize=8)
        figure.suptitle(self._headline())
        return figure

    def _headline(self) -> str:
        """Return the title: what the lines have in common, and what their intervals are over."""
        rows = [row for line in self._lines for table in line.runs.values() for row in table]
        names = [self._lines[0].name] if len(self._lines) == 1 else []
        for column, text in (("ruleset", "{}"), ("ladder", "Elo on {}")):
            values = {row[column] for row in rows if row.get(column)}
            names += [text.format(*values)] if len(values) == 1 else []
        heading = ", ".join(names) or f"{len(self._lines)} lines"
        intervals = {curve.interval for curves in self._panels.values() for curve in curves} - {""}
        return _plain("; ".join([heading, *sorted(intervals)]))


def student_t(freedom: float) -> float:
    """Return the t for which 95% of Student's distribution lies between -t and t.

    Args:
        freedom: the degrees of freedom, at least 1.
    """
    # With t = sqrt(freedom) * tan(angle) its density is cos(angle) ** (freedom - 1).
    angles = np.linspace(0, np.pi / 2, 100_001)
    density = np.cos(angles) ** (freedom - 1)
    share = np.cumsum(density[1:] + density[:-1])
    angle = np.interp(0.95 * share[-1], share, angles[1:])
    return float(np.sqrt(freedom) * np.tan(angle))


def _difference(metric: str, first: Curve, second: Curve) -> list[str] | None:
    """Return the table cells for the difference of two means, at the last x that both have.

    Return None unless both are means over several runs and have an x in common.
    """
    if min(len(first.runs), len(second.runs)) < 2 or min(first.last, second.last) < 0:
        return None
    last_x = min(first.x[first.last], second.x[second.last])
    values = [
        np.array([np.interp(last_x, curve.x, run) for run in curve.runs])
        for curve in (first, second)
    ]
    parts = [value.var(ddof=1) / len(value) for value in values]
    difference, arm = values[1].mean() - values[0].mean(), 0.0
    if (error := sum(parts)) > 0:
        shares = [part**2 / (len(value) - 1) for part, value in zip(parts, values, strict=True)]
        arm = student_t(error**2 / sum(shares)) * float(np.sqrt(error))
    if not np.isfinite(difference):
        return None
    return [
        f"{second.line.name} - {first.line.name}",
        f"{len(values[1])}, {len(values[0])}",
        f"{last_x:,.0f}",
        _with_interval(metric, difference, difference - arm, difference + arm),
    ]


def _last_cells(metric: str, curve: Curve) -> list[str]:
    """Return the table cells for the last x of a curve, and for its value and interval there."""
    last = curve.last
    text = _with_interval(metric, curve.mean[last], curve.low[last], curve.high[last])
    return [f"{curve.x[last]:,.0f}", text]


def _with_interval(metric: str, value: float, low: float, high: float) -> str:
    """Return a value and its interval with the same number of decimals."""
    if metric == "elo":
        decimals = 0
    elif metric.startswith(_PERCENT):
        decimals = 1
    else:  # three digits
        decimals = max(0, 2 - int(np.floor(np.log10(max(abs(value), 1e-9)))))
    interval = f" ({low:z.{decimals}f} to {high:z.{decimals}f})" if np.isfinite(low + high) else ""
    return f"{value:z.{decimals}f}{interval}"


def _number(cell: str | None) -> float:
    """Return the number in a cell; NaN if there is none or no axis can show it."""
    try:
        number = float(cell or "nan")
    except ValueError:
        return np.nan
    return number if abs(number) <= _LARGEST else np.nan


def _ends(metric: str) -> tuple[str, str, str]:
    """Return the names of the columns of a metric and of the ends of its interval."""
    return metric, f"{metric}_low", f"{metric}_high"


def _has(row: Mapping[str, str], metric: str) -> bool:
    """Return whether a row has a metric, or an end of its interval."""
    return any(np.isfinite(_number(row.get(column))) for column in _ends(metric))


def _points(rows: Rows, x: str, metric: str) -> Float64Array:
    """Return float64[N, 4], x, the value and both ends of its interval, in ascending order of x.

    Missing numbers are NaN. Rows without x, or with neither a value nor ends, are left out.
    """
    columns = (x, *_ends(metric))
    points = np.array([[_number(row.get(name)) for name in columns] for row in rows])
    points = points.reshape(-1, 4)
    points[:, 1:] *= 100 if metric.startswith(_PERCENT) else 1
    points = points[np.isfinite(points[:, 0]) & np.isfinite(points[:, 1:]).any(axis=1)]
    return points[np.argsort(points[:, 0], kind="stable")]


_FEW_LINES = 3
"""Up to this many lines have intervals drawn as bands; more lines have bars, which hide less."""
_BARS = 6
"""The most bars of a line."""


def _draw(axes: Axes, curve: Curve, i: int, lines: int) -> None:
    """Draw the curve of line i of a panel."""
    style = line_style(i)
    axes.plot([], [], label=_plain(curve.line.name), **style)
    for position, bound, marker in curve.bounds:
        axes.plot(position, bound, **style | {"marker": marker})
    axes.plot(curve.x, curve.mean, **style | ({"marker": ""} if len(curve.x) > 50 else {}))
    with_interval = np.flatnonzero(np.isfinite(curve.low + curve.high))
    if len(with_interval) > 1 and lines <= _FEW_LINES:
        axes.fill_between(
            curve.x, curve.low, curve.high, color=style["color"], alpha=0.2, linewidth=0
        )
    elif len(with_interval):
        step = max(lines, -(-len(with_interval) // _BARS))
        bars = with_interval[::-1][
            i % min(step, len(with_interval)) :: step
        ]  # each line has its bars at other places
        arms = np.abs([curve.low[bars] - curve.mean[bars], curve.high[bars] - curve.mean[bars]])
        axes.errorbar(
            curve.x[bars], curve.mean[bars], arms, linestyle="", color=style["color"], capsize=3
        )


def _limit(axes: Axes, curves: Sequence[Curve]) -> None:
    """Limit the y axis, so that the wide intervals of few seeds do not flatten the curves."""
    values = np.concatenate([curve.runs.ravel() for curve in curves])
    values = values[np.isfinite(values)]
    if any(len(curve.runs) > 1 for curve in curves) and len(values) and np.ptp(values):
        low, high = axes.get_ylim()
        reach = np.ptp(values)
        axes.set_ylim(max(low, values.min() - reach), min(high, values.max() + reach))


def _plain(text: str) -> str:
    """Escape a text so that matplotlib shows it as it is, also in a legend."""
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")
