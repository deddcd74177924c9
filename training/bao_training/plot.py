"""Show the curves of runs, or of settings over several seeds, as a picture and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bao_agents.arena.report import markdown_table
from bao_agents.support.figures import line_style
from bao_env.suggestions import did_you_mean
from bao_training.curves import Curve, curve_of, difference_of, is_percentage, metrics_of
from bao_training.run_tables import Line

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


class Curves:
    """Curves of metrics, as a picture and as a table; see :func:`~bao_training.curves.curve_of`.

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
        panels = {}
        missing = []
        for metric in metrics or CURVES:
            curves = [curve_of(line, metric, x) for line in lines]
            if all(curve.is_empty for curve in curves):
                missing.append(metric)
            else:
                panels[metric] = curves
        if missing and (metrics or not panels):
            choices = [metric for metric in metrics_of(lines[0]) if metric not in X_AXES]
            advice = f"; --metrics may draw {', '.join(choices)}" if choices else ""
            raise ValueError(
                f"{next(iter(lines[0].runs))} has nothing to draw: expected numbers in the columns "
                f"{x} and {missing[0]}{did_you_mean(missing[0], choices)}{advice}"
            )
        self._notes = [
            note for curves in panels.values() for curve in curves for note in curve.notes
        ]
        """Notes on what is not drawn."""
        # Panels of single points say no more than the table, so they come last.
        self._panels = dict(
            sorted(panels.items(), key=lambda item: all(len(curve.x) < 2 for curve in item[1]))
        )

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
            differences = [_difference_cells(metric, curves[0], curve) for curve in curves[1:]]
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


def _difference_cells(metric: str, first: Curve, second: Curve) -> list[str] | None:
    """Return the table cells for the difference of two means; None if they have none."""
    difference = difference_of(first, second)
    if difference is None:
        return None
    return [
        f"{second.line.name} - {first.line.name}",
        f"{len(second.runs)}, {len(first.runs)}",
        f"{difference.x:,.0f}",
        _with_interval(metric, difference.mean, difference.low, difference.high),
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
    elif is_percentage(metric):
        decimals = 1
    else:  # three digits
        decimals = max(0, 2 - int(np.floor(np.log10(max(abs(value), 1e-9)))))
    interval = f" ({low:z.{decimals}f} to {high:z.{decimals}f})" if np.isfinite(low + high) else ""
    return f"{value:z.{decimals}f}{interval}"


_FEW_LINES = 3
"""Up to this many lines have intervals drawn as bands; more lines have bars, which hide less."""
_BARS = 6
"""The most bars of a line."""


def _draw(axes: Axes, curve: Curve, i: int, lines: int) -> None:
    """Draw the curve of line i of a panel."""
    style = line_style(i)
    axes.plot([], [], label=_plain(curve.line.name), **style)
    for bound in curve.bounds:
        axes.plot(bound.x, bound.value, **style | {"marker": "^" if bound.is_lower else "v"})
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
