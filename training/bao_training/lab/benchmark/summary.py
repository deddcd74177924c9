"""Sum up the runs of the benchmark in a table and a plot."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bao_agents.arena.report import markdown_table, png
from pydantic import TypeAdapter

from bao_env.files import write_atomically
from bao_training.lab.benchmark.learners import ENCODINGS, LEARNERS, OBSERVATIONS
from bao_training.lab.benchmark.runs import BOTS, Point, Run, load

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ORDER = (*OBSERVATIONS, *ENCODINGS)
COLORS = {
    "board": "C7",
    "captures": "C0",
    "replies": "C3",
    "planes": "C2",
    "own-board": "C1",
    "moves": "C4",
    "own-replies": "C5",
}
AXES = {"steps": "steps", "seconds": "processor seconds of training"}
"""Labels of the x axes, by field of :class:`~.runs.Point`."""
ACROSS = 4
"""Learners beside each other in the plot."""
Groups = dict[tuple[str, str], list[Run]]
"""The runs of each learner and observation, in the order of the table."""
RUNS = TypeAdapter(list[Run])
"""Type of the file of all runs."""


def load_runs(folder: Path) -> list[Run]:
    """Read all runs in a folder.

    Raises:
        ValueError: there are none, or a file is something else.
        OSError: one cannot be read.
    """
    runs = [load(path) for path in sorted(folder.glob("*-*-*.json"))]
    if not runs:
        raise ValueError(f"{folder} holds no finished run: expected one at least; train first")
    return runs


def grouped(runs: Iterable[Run]) -> Groups:
    """Group runs that differ in the seed alone."""
    groups: Groups = defaultdict(list)
    for run in runs:
        groups[run.learner, run.observation].append(run)
    names = list(LEARNERS)
    return dict(
        sorted(groups.items(), key=lambda item: (names.index(item[0][0]), ORDER.index(item[0][1])))
    )


def _spread(values: Sequence[float], form: str) -> str:
    """Format the median, and the range in parentheses."""
    middle, low, high = (format(f(values), form) for f in (median, min, max))
    return middle if low == high else f"{middle} ({low} to {high})"


def table(runs: Sequence[Run]) -> str:
    """Return a Markdown table of medians and ranges over seeds by learner and observation."""
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
    text = markdown_table(head, rows, texts=2)
    missing = absent(runs)
    return f"{text}\n\nNot trained: {'; '.join(missing)}." if missing else text


def absent(runs: Sequence[Run]) -> list[str]:
    """Return learners with the observations that no run has, as Markdown."""
    done = grouped(runs)
    missing = {
        name: [f"`{kind}`" for kind in learner.observations if (name, kind) not in done]
        for name, learner in LEARNERS.items()
    }
    return [f"`{name}` with {', '.join(kinds)}" for name, kinds in missing.items() if kinds]


def plot(runs: Iterable[Run], path: Path) -> None:
    """Draw rating against steps, and below it against seconds, for each learner, as a PNG.

    Raises:
        OSError: it cannot be written.
    """
    from matplotlib.figure import Figure

    groups = grouped(runs)
    learners = list(dict.fromkeys(learner for learner, _ in groups))
    rows, columns = math.ceil(len(learners) / ACROSS), min(len(learners), ACROSS)
    figure = Figure(figsize=(0.6 + 2.8 * columns, 4.8 * rows), layout="constrained")
    grid = figure.subplots(2 * rows, columns, sharey=True, squeeze=False)
    for place, learner in enumerate(learners):
        row, column = divmod(place, ACROSS)
        pair = grid[2 * row : 2 * row + 2, column]
        pair[0].set_title(LEARNERS[learner].title.replace(", ", ",\n"), size=9)
        for axes, first, (x, label) in zip(pair, grid[:2, 0], AXES.items(), strict=True):
            if axes is not first:
                axes.sharex(first)
            for (name, observation), group in groups.items():
                if name == learner:
                    _line(axes, group, observation, x)
            axes.set_xscale("log")
            axes.set_xlabel(label, size=8)
            axes.set_ylabel("Elo (random: 0)" if column == 0 else None, size=8)
            axes.tick_params(labelsize=8)
            axes.grid(alpha=0.3)
    for place in range(len(learners), rows * columns):
        for axes in grid[-2:, place % ACROSS]:
            axes.set_visible(False)
    lines = {line.get_label(): line for axes in figure.axes for line in axes.get_lines()}
    shown = [kind for kind in ORDER if kind in lines]
    figure.legend(
        [lines[kind] for kind in shown],
        shown,
        loc="outside upper center",
        ncols=len(shown),
        fontsize=8,
    )
    write_atomically(path, png(figure, dpi=100))


def _line(axes: Axes, group: list[Run], observation: str, x: str) -> None:
    """Draw the median rating of some runs over ``x``, a field of their points, with its shade."""
    points = list(zip(*(run.points for run in group), strict=True))
    places = [median(getattr(point, x) for point in same) for same in points]
    middles = [median(point.elo for point in same) for same in points]
    lows, highs = zip(*map(_shade, points), strict=True)
    color = COLORS[observation]
    axes.plot(places, middles, "o-", ms=3, color=color, label=observation)
    axes.fill_between(places, lows, highs, color=color, alpha=0.15, linewidth=0)


def _shade(same: Sequence[Point]) -> tuple[float, float]:
    """Return the range of ratings at the same point; of a single one its 95 % interval."""
    if len(same) > 1:
        return min(point.elo for point in same), max(point.elo for point in same)
    elo, low, high = same[0].elo, same[0].low, same[0].high
    return elo if low is None else low, elo if high is None else high


def write(folder: Path) -> str:
    """Write ``table.md``, ``benchmark.png`` and, with all runs, ``benchmark.json`` into a folder of
    runs; return the table.

    Raises:
        ValueError, OSError: see :func:`load_runs`.
    """
    runs = load_runs(folder)
    text = table(runs)
    write_atomically(folder / "table.md", text + "\n")
    write_atomically(folder / "benchmark.json", RUNS.dump_json(runs, indent=1) + b"\n")
    plot(runs, folder / "benchmark.png")
    return text
