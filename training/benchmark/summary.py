"""What the runs of the benchmark show: a table and a plot."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from tabulate import tabulate

from agents.files import write_atomically
from training.benchmark.learners import ENCODINGS, LEARNERS, OBSERVATIONS
from training.benchmark.runs import BOTS, Run, load

ORDER: Final = (*OBSERVATIONS, *ENCODINGS)
COLORS: Final = dict(zip(ORDER, ("C7", "C4", "C0", "C3", "C0", "C3"), strict=True))
Groups = dict[tuple[str, str], list[Run]]
"""The runs of each learner and observation, in the order of the table."""


def load_runs(folder: Path) -> list[Run]:
    """All runs in a folder.

    Raises:
        ValueError: there are none, or a file is something else.
        OSError: one cannot be read.
    """
    runs = [load(path) for path in sorted(folder.glob("*.json"))]
    if not runs:
        raise ValueError(f"{folder} holds no finished run: expected one at least; train first")
    return runs


def grouped(runs: Iterable[Run]) -> Groups:
    """Runs that differ in the seed alone, together."""
    groups: Groups = defaultdict(list)
    for run in runs:
        groups[run.learner, run.observation].append(run)
    names = list(LEARNERS)
    return dict(
        sorted(groups.items(), key=lambda item: (names.index(item[0][0]), ORDER.index(item[0][1])))
    )


def _spread(values: Sequence[float], form: str) -> str:
    """Median, and the range in parentheses."""
    middle, low, high = (format(f(values), form) for f in (median, min, max))
    return middle if low == high else f"{middle} ({low} to {high})"


def table(runs: Iterable[Run]) -> str:
    """A row for each learner and observation, as Markdown: medians, with the ranges over seeds."""
    rows = []
    for (learner, observation), group in grouped(runs).items():
        last = [run.points[-1] for run in group]
        rows.append(
            [
                f"{LEARNERS[learner].title} (`{learner}`)",
                f"`{observation}`",
                len(group),
                format(last[0].steps, ","),
                _spread([point.seconds for point in last], ".0f"),
                _spread([point.elo for point in last], ".0f"),
                *(
                    _spread([100 * run.scores[bot]["score"] for run in group], ".1f")
                    for bot in BOTS
                ),
            ]
        )
    head = ["learner", "reads", "seeds", "steps", "seconds", "Elo", *(f"{bot} %" for bot in BOTS)]
    align = ["left", "left", *["right"] * (len(head) - 2)]
    return tabulate(rows, head, tablefmt="github", disable_numparse=True, colalign=align)


def plot(runs: Iterable[Run], path: Path) -> None:
    """Rating against steps and against seconds, a column for each learner, as PNG.

    Raises:
        OSError: it cannot be written.
    """
    from matplotlib.figure import Figure

    groups = grouped(runs)
    learners = [name for name in LEARNERS if any(learner == name for learner, _ in groups)]
    figure = Figure(figsize=(1.2 + 2.4 * len(learners), 5.6), layout="constrained")
    grid = figure.subplots(2, len(learners), sharey=True, squeeze=False)
    for column, name in enumerate(learners):
        for (learner, observation), group in groups.items():
            if learner == name:
                _line(grid[0][column], group, observation, lambda run: _steps(run))
                _line(grid[1][column], group, observation, lambda run: _seconds(run))
        grid[0][column].set_title(LEARNERS[name].title.replace(", ", ",\n"), size=9)
        grid[1][column].legend(fontsize=7, loc="lower right")
        for row, label in enumerate(("steps", "processor seconds of training")):
            axes = grid[row][column]
            axes.set_xscale("log")
            axes.grid(alpha=0.3)
            axes.set_xlabel(label, size=8)
            axes.tick_params(labelsize=8)
    for row in grid:
        row[0].set_ylabel("Elo on bao-ladder-1", size=8)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=90)
    write_atomically(path, file.getvalue())


def _steps(run: Run) -> list[float]:
    return [point.steps for point in run.points]


def _seconds(run: Run) -> list[float]:
    return [point.seconds for point in run.points]


def _line(axes, group: list[Run], observation: str, where: Callable[[Run], list[float]]) -> None:
    """The median of the ratings of some runs, and their range."""
    x = [median(values) for values in zip(*map(where, group), strict=True)]
    ratings = list(zip(*([point.elo for point in run.points] for run in group), strict=True))
    color = COLORS[observation]
    axes.plot(x, [median(elo) for elo in ratings], "o-", ms=3, color=color, label=observation)
    axes.fill_between(
        x, [min(elo) for elo in ratings], [max(elo) for elo in ratings], color=color, alpha=0.2
    )


def write(folder: Path) -> str:
    """Write ``table.md`` and ``benchmark.png`` of the runs in a folder; returns the table.

    Raises:
        ValueError, OSError: see :func:`load_runs`.
    """
    runs = load_runs(folder)
    text = table(runs)
    write_atomically(folder / "table.md", text + "\n")
    plot(runs, folder / "benchmark.png")
    return text
