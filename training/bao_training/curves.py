"""Compute the curves of metrics: of one run, or the mean over several with its 95% interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bao_agents.support.array_types import Float64Array
from bao_training.run_tables import Line, Rows

_PERCENT = ("score_against_", "guided_score_against_", "blunders")
_LARGEST = 1e100
"""Larger numbers count as missing: no axis can show them."""


class Bound(NamedTuple):
    """A rating of which only one end of its interval is known."""

    x: float
    """The place on the x axis."""
    value: float
    """The end that is known."""
    is_lower: bool
    """Whether the rating lies above the value; otherwise it lies below."""


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
    bounds: list[Bound]
    """Ratings of which only a bound is known."""
    notes: list[str]
    """What the curve leaves out, in words."""

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

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not (len(self.x) or self.bounds)


def curve_of(line: Line, metric: str, x: str) -> Curve:
    """Return the curve of a metric for a line.

    The curve of a run has the 95% intervals in its columns ``METRIC_low`` and ``METRIC_high``. The
    curve of several runs is their mean over the steps that all of them have, with the 95% interval
    of the mean over the runs (Student's t).

    Args:
        line: the line.
        metric: a column of its tables, whose shares become percent if :func:`is_percentage`.
        x: the column of the x axis.
    """
    bounds: list[Bound] = []
    notes: list[str] = []
    tables: dict[str, Float64Array] = {}
    for source, rows in line.runs.items():
        points = _points(rows, x, metric)
        if lost := sum(_has(row, metric) for row in rows) - len(points):
            notes.append(f"{source}: {lost} {'row' if lost == 1 else 'rows'} without {x} left out")
        is_bound = np.isnan(points[:, 1])
        for bound in map(_bound, points[is_bound]):
            bounds.append(bound)
            notes.append(
                f"{source}: at {bound.x:,.0f} {x} only a bound is known, "
                f"{'above' if bound.is_lower else 'below'} {bound.value:.4g}"
            )
        if is_bound.all():
            notes.append(f"{source}: no {metric}")
        else:
            tables[source] = points[~is_bound].T
    if not tables:
        nothing = np.empty(0)
        return Curve(line, nothing, nothing, nothing, nothing, np.empty((0, 0)), bounds, notes)
    if len(tables) == 1:
        [(places, mean, low, high)] = tables.values()
        return Curve(line, places, mean, low, high, mean[None], bounds, notes)
    places = np.unique(np.concatenate([*tables.values()], axis=1)[0])
    runs = np.array(
        [np.interp(places, run[0], run[1], left=np.nan, right=np.nan) for run in tables.values()]
    )
    for source, run in tables.items():
        if (run[0, 0], run[0, -1]) != (places[0], places[-1]):
            notes.append(f"{source}: only from {run[0, 0]:,.0f} to {run[0, -1]:,.0f} {x}")
    mean = runs.mean(axis=0)
    arm = student_t(len(runs) - 1) * runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    if not np.isfinite(mean).any():
        notes.append(f"{line.name}: its runs have no {x} in common, so it has no mean")
    return Curve(line, places, mean, mean - arm, mean + arm, runs, bounds, notes)


class Difference(NamedTuple):
    """The difference of two means at a place on the x axis, with its 95% interval."""

    x: float
    mean: float
    low: float
    high: float


def difference_of(first: Curve, second: Curve) -> Difference | None:
    """Return the second mean minus the first, at the last x that both have (Welch's t-test).

    Return None unless both are means over several runs and have an x in common.
    """
    if min(len(first.runs), len(second.runs)) < 2 or min(first.last, second.last) < 0:
        return None
    x = min(first.x[first.last], second.x[second.last])
    values = [
        np.array([np.interp(x, curve.x, run) for run in curve.runs]) for curve in (first, second)
    ]
    parts = [value.var(ddof=1) / len(value) for value in values]
    difference, arm = values[1].mean() - values[0].mean(), 0.0
    if (error := sum(parts)) > 0:
        shares = [part**2 / (len(value) - 1) for part, value in zip(parts, values, strict=True)]
        arm = student_t(error**2 / sum(shares)) * float(np.sqrt(error))
    if not np.isfinite(difference):
        return None
    return Difference(x, difference, difference - arm, difference + arm)


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


def metrics_of(line: Line) -> list[str]:
    """Return the columns of a line's tables that have numbers, without the ends of intervals."""
    rows = [row for table in line.runs.values() for row in table]
    columns = dict.fromkeys(column for row in rows for column in row)
    return [
        column
        for column in columns
        if column and not column.endswith(("_low", "_high"))  # cells beyond the head have no column
        if any(np.isfinite(_number(row.get(column))) for row in rows)
    ]


def is_percentage(metric: str) -> bool:
    """Return whether a metric is shown in percent; its columns have shares."""
    return metric.startswith(_PERCENT)


def _bound(point: Float64Array) -> Bound:
    """Return the bound of a point without a value: x, NaN, and one or both ends."""
    x, _, low, high = point.tolist()
    is_lower = bool(np.isnan(high))
    return Bound(x, low if is_lower else high, is_lower)


def _points(rows: Rows, x: str, metric: str) -> Float64Array:
    """Return float64[N, 4], x, the value and both ends of its interval, in ascending order of x.

    Missing numbers are NaN. Rows without x, or with neither a value nor ends, are left out.
    """
    columns = (x, *_ends(metric))
    points = np.array([[_number(row.get(name)) for name in columns] for row in rows])
    points = points.reshape(-1, 4)
    points[:, 1:] *= 100 if is_percentage(metric) else 1
    points = points[np.isfinite(points[:, 0]) & np.isfinite(points[:, 1:]).any(axis=1)]
    return points[np.argsort(points[:, 0], kind="stable")]


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
