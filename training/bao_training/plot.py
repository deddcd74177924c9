"""Plots: scores with error bars, and the curves of runs."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bao_agents.arena.report import png
from matplotlib.figure import Figure

from bao_env.files import write_atomically

CURVES = {
    "score_against_greedy": "points against greedy",
    "score_against_alphabeta:2": "points against alphabeta:2",
    "score_against_alphabeta:4": "points against alphabeta:4",
    "value_loss": "value loss",
    "policy_loss": "policy loss",
    "entropy": "entropy of the policy",
    "explained_variance": "explained variance of the returns",
    "blunders": "share of won games given away",
}
"""The columns of ``metrics.csv`` that :func:`draw_curves` draws."""


def draw_curves(runs: Sequence[Path], file: Path) -> None:
    """Draw the metrics of several runs into one picture, over the millions of steps.

    Args:
        runs: their folders, each with a ``metrics.csv``.
        file: a PNG.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: there is no metric to draw.
    """
    tables = {}
    for run in runs:
        with open(run / "metrics.csv", newline="", encoding="utf-8") as rows:
            tables[run.name or str(run)] = list(csv.DictReader(rows))
    found = [
        name for name in CURVES if any(row.get(name) for table in tables.values() for row in table)
    ]
    if not found:
        raise ValueError(f"{runs[0] / 'metrics.csv'} has no metric to draw yet")
    columns = min(2, len(found))
    lines = -(-len(found) // columns)
    figure = Figure(figsize=(5.5 * columns, 3.2 * lines), layout="constrained")
    for i, name in enumerate(found):
        axes = figure.add_subplot(lines, columns, i + 1)
        for run_name, table in tables.items():
            points = [(float(r["steps"]) / 1e6, float(r[name])) for r in table if r.get(name)]
            x, y = zip(*points, strict=True) if points else ((), ())
            axes.plot(x, y, label=run_name, marker="." if len(points) < 50 else None)
        axes.set_title(CURVES[name], size=10)
        axes.set_xlabel("million steps", size=9)
        axes.grid(alpha=0.3)
        if name.startswith("score"):
            axes.set_ylim(0, 1)
    figure.axes[0].legend(fontsize=8)
    write_atomically(file, png(figure, dpi=100))


def reference_lines(axes: Any, levels: Mapping[str, float]) -> None:
    """Draw a horizontal line at each level; its label is left out with a line outside the axes."""
    style: dict[str, Any] = {"color": "grey", "clip_on": True}
    for name, level in levels.items():
        axes.axhline(level, linewidth=0.8, linestyle="--", **style)
        edge = axes.get_yaxis_transform()
        axes.text(0.01, level, name, transform=edge, va="bottom", size=8, **style)
