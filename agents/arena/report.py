"""Report the results of a tournament: tables as Markdown and JSON, and a plot."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tabulate import tabulate

from agents.arena.elo import score_pairs
from agents.arena.ratings import Ratings, cycles, rate
from bao_env.files import write_atomically


@dataclass(frozen=True)
class Standing:
    """The results of a tournament, complete or so far."""

    results: Mapping[tuple[str, str], npt.NDArray[np.float64]]
    """For each pairing float64[pairs, 2], the points of its first player in each game."""
    milliseconds: Mapping[str, float]
    """Average time a move of each player, measured on one core while the others were busy."""
    mean_plies: float
    """Average length of a game."""
    commits: Sequence[str] = ()
    """Commits of the code that played the games."""


def _score(standing: Standing, row: str, column: str) -> tuple[float, int] | None:
    """Return the points a game of one player against another, and the number of games."""
    if (row, column) in standing.results:
        points = standing.results[row, column]
        return float(points.mean()), points.size
    if (column, row) in standing.results:
        points = standing.results[column, row]
        return 1.0 - float(points.mean()), points.size
    return None


def _time(milliseconds: float) -> str:
    return f"{milliseconds:.3f}" if milliseconds < 1 else f"{milliseconds:.1f}"


def markdown(standing: Standing, ratings: Ratings, settings: Mapping[str, Any]) -> str:
    """Return the tables, and a line about their sources."""
    games = sum(points.size for points in standing.results.values())
    zero = "the mean of all" if ratings.anchor is None else ratings.anchor
    players = [
        [
            name,
            f"{ratings.elo[i]:+.0f}",
            "" if name == ratings.anchor else f"{ratings.low[i]:+.0f} to {ratings.high[i]:+.0f}",
            f"{ratings.score[i]:.1%}",
            f"{ratings.games[i]:,}",
            _time(standing.milliseconds[name]),
        ]
        for i, name in enumerate(ratings.names)
    ]
    against = []
    for row in ratings.names:
        scores = [_score(standing, row, column) for column in ratings.names]
        against.append([row, *("" if s is None else f"{100 * s[0]:.1f}" for s in scores)])
    paragraphs = [
        f"Rule set {settings['ruleset']['name']}; {games:,} games in pairs, each opening of "
        f"{settings['opening_plies']} random plies from both seats; seed {settings['seed']}; "
        f"{standing.mean_plies:.1f} plies a game. Elo 0 is {zero}.",
        markdown_table(["player", "Elo", "95 % interval", "points", "games", "ms a move"], players),
        "Points of the row against the column, in percent:",
        markdown_table(["", *ratings.names], against),
    ]
    found = cycles(standing.results)
    if found:
        paragraphs.append("Cycles: " + "; ".join(" beats ".join([*c, c[0]]) for c in found) + ".")
    return "\n\n".join(paragraphs) + "\n"


def markdown_table(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table with all columns but the first aligned to the right."""
    align = ["left", *["right"] * (len(head) - 1)]
    return tabulate(rows, head, tablefmt="pipe", colalign=align, disable_numparse=True)


def to_dict(standing: Standing, ratings: Ratings, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables as plain values, for JSON."""
    pairings = [
        {"first": first, "second": second} | score_pairs(points).to_dict()
        for (first, second), points in standing.results.items()
    ]
    players = [
        {
            "player": name,
            "elo": float(ratings.elo[i]),
            "elo_low": float(ratings.low[i]),
            "elo_high": float(ratings.high[i]),
            "score": float(ratings.score[i]),
            "games": int(ratings.games[i]),
            "ms_a_move": standing.milliseconds[name],
        }
        for i, name in enumerate(ratings.names)
    ]
    return {
        "settings": dict(settings),
        "anchor": ratings.anchor,
        "players": players,
        "pairings": pairings,
        "mean_plies": standing.mean_plies,
        "commits": list(standing.commits),
        "cycles": cycles(standing.results),
    }


def plot(standing: Standing, ratings: Ratings, title: str) -> bytes:
    """Plot Elo with intervals beside the crosstable, as a PNG."""
    from matplotlib.figure import Figure

    count = len(ratings.names)
    figure = Figure(figsize=(6 + 0.7 * count, 1.6 + 0.5 * count), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.2))
    rows = np.arange(count)
    errors = np.maximum(0, [ratings.elo - ratings.low, ratings.high - ratings.elo])
    left.errorbar(ratings.elo, rows, xerr=errors, fmt="o", color="tab:brown", capsize=3)
    left.set_yticks(rows, ratings.names)
    left.invert_yaxis()
    left.grid(axis="x", alpha=0.3)
    left.set_xlabel("Elo, 95 % intervals")
    table = np.full((count, count), np.nan)
    for i, row in enumerate(ratings.names):
        for j, column in enumerate(ratings.names):
            score = _score(standing, row, column)
            if score is not None:
                table[i, j] = 100 * score[0]
                colour = "white" if abs(score[0] - 0.5) > 0.35 else "black"
                right.text(
                    j, i, f"{100 * score[0]:.0f}", ha="center", va="center", color=colour, size=8
                )
    right.imshow(table, cmap="RdBu", vmin=0, vmax=100, aspect="auto")
    right.set_xticks(rows, ratings.names, rotation=45, ha="right")
    right.set_yticks(rows, ratings.names)
    right.set_title("points of the row against the column, %", size=10)
    figure.suptitle(title, size=11)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    return picture.getvalue()


def write_report(
    standing: Standing, settings: Mapping[str, Any], folder: Path, anchor: str | None
) -> str:
    """Write ``table.md``, ``table.json`` and ``elo.png`` into a folder; return the tables."""
    ratings = rate(standing.results, anchor=anchor)
    text = markdown(standing, ratings, settings)
    report = to_dict(standing, ratings, settings)
    games = sum(points.size for points in standing.results.values())
    title = f"Bao, {settings['ruleset']['name']}: {games:,} games"
    write_atomically(folder / "elo.png", plot(standing, ratings, title))
    write_atomically(folder / "table.json", json.dumps(report, indent=2) + "\n")
    write_atomically(folder / "table.md", text)
    return text
