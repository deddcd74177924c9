"""Report the results of an event: one set of columns for its tables, JSON and CSV, and a plot."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import tabulate

from bao_agents.arena.elo import finite
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.plan import of_player
from bao_agents.arena.ratings import rate
from bao_agents.players import registry
from bao_agents.support.figures import errorbars, look
from bao_agents.support.provenance import current_commit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

tabulate.MIN_PADDING = 0  # the tables have to fit a terminal of 80 columns

HEADS = {
    "player": "player",
    "opponent": "opponent",
    "opponent_elo": "its Elo",
    "steps": "steps",
    "elo": "Elo",
    "games": "games",
    "won": "won",
    "drawn": "drawn",
    "lost": "lost",
    "score": "score, %",
    "expected": "expected, %",
    "los": "LOS, %",
    "ms_a_move": "ms a move",
    "opponent_ms_a_move": "its ms",
}
"""The columns of tables, by their names in JSON and CSV. Shares are 0..1 there. An interval of
``elo`` or ``score`` has its ends in ``elo_low`` and ``elo_high``; None is infinite, or unknown if
both are None."""

LEAST_TIME = 0.1
"""The least share of its time limit that a player uses on an idle machine, averaged over its moves.

Forced moves, proved wins and settled choices need little of it: guided alpha-beta uses 30 % in
zanzibar.
"""


def notes(name: str, spec: str, ms_a_move: float, faults: Sequence[str]) -> list[str]:
    """Return what a reader must know about a player's games: its faults, and too little time.

    Args:
        name: the player's name.
        spec: the player for :func:`bao_agents.players.registry.load`.
        ms_a_move: its average milliseconds of processor time per move.
        faults: the causes of the faults by which it lost games.
    """
    found = []
    if faults:
        games = "1 game" if len(faults) == 1 else f"{len(faults)} games"
        found.append(f"{name} lost {games} by faults: {faults[0]}")
    player = registry.parse(spec)
    asked = 1000.0 * (player.limit.seconds or 0.0)
    # A solver stops as soon as it has a proof.
    if player.kind.name != "solver" and ms_a_move < LEAST_TIME * asked:
        found.append(
            f"{name} had {ms_a_move:.1f} of its {asked:g} ms a move: if the machine was busy, it "
            "plays better on an idle one; use fewer --threads, or a limit of nodes"
        )
    return found


def commit_notes(pairs: Pairs) -> list[str]:
    """Return a note if some games were played by another commit of the code."""
    others = sorted(pairs.commits - {current_commit()})
    return others and [f"some results come from commit {', '.join(others)}, not {current_commit()}"]


# --- rows -----------------------------------------------------------------------------------------


def result(pairs: Pairs) -> dict[str, Any]:
    """Return the results of the first player as plain values."""
    score = pairs.score
    return {
        "games": score.games,
        "won": score.wins,
        "drawn": score.draws,
        "lost": score.losses,
        "score": score.rate,
        "ms_a_move": float(pairs.ms_a_move[0]),
        "mean_plies": float(pairs.plies.mean()),
        "pairs_by_points": score.pair_counts,
        "faults": pairs.faults[0],
    }


def match_row(player: str, opponent: str, pairs: Pairs) -> dict[str, Any]:
    """Return the results of two players as plain values; ``elo`` is their difference."""
    score = pairs.score
    elo, low, high = map(finite, score.elo)
    return {
        "player": player,
        "opponent": opponent,
        "elo": elo,
        "elo_low": low,
        "elo_high": high,
        **result(pairs),
        "score_low": score.low,
        "score_high": score.high,
        "los": score.los,
        "opponent_ms_a_move": float(pairs.ms_a_move[1]),
        "opponent_faults": pairs.faults[1],
    }


def standings(
    results: Mapping[tuple[str, str], Pairs], anchor: str | None = None
) -> list[dict[str, Any]]:
    """Return the rating and the results of each player of a round robin, strongest first.

    Args:
        results: the results of each pairing.
        anchor: the player with Elo 0; by default the mean is 0.
    """
    ratings = rate({names: pairs.points for names, pairs in results.items()}, anchor=anchor)
    return [
        {
            "player": name,
            "elo": finite(ratings.elo[i]),
            "elo_low": finite(ratings.low[i]),
            "elo_high": finite(ratings.high[i]),
            **result(of_player(name, results)),
        }
        for i, name in enumerate(ratings.names)
    ]


# --- texts ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    """The results of an event, and how they were made."""

    results: Sequence[Mapping[str, Any]]
    """The rows."""
    columns: Sequence[str]
    """The columns of a table for people, of :data:`HEADS`."""
    source: Mapping[str, Any]
    """How the results were made, in a few words: columns of CSV, comments of LaTeX."""
    facts: Mapping[str, Any]
    """The same and more, for JSON."""

    def table(self, style: str = "simple") -> str:
        """Return the rows as a table for people, in a style of :func:`markdown_table`."""
        return table(self.results, self.columns, style)

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps({**self.facts, "results": self.results}, indent=2, allow_nan=False) + "\n"

    def to_csv(self) -> str:
        """Return the rows as CSV; see :func:`to_csv`."""
        return to_csv(self.results, self.source)

    def formatted(self, style: str) -> str:
        """Return the table in a style of :func:`formatted`."""
        head = [HEADS[name] for name in self.columns]
        return formatted(style, head, _cells(self.results, self.columns), self.source)


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], style: str = "simple") -> str:
    """Return a table of some columns of :data:`HEADS`, in a style of :func:`markdown_table`."""
    return markdown_table([HEADS[name] for name in columns], _cells(rows, columns), style)


def _cells(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[list[str]]:
    return [[_cell(row, name) for name in columns] for row in rows]


def _cell(row: Mapping[str, Any], name: str) -> str:
    """Return a value as text; its interval is a second line."""
    value, low, high = (row.get(key) for key in (name, f"{name}_low", f"{name}_high"))
    if name == "elo" and value is None:
        bound = (
            f"above {low:.0f}" if low is not None else "" if high is None else f"below {high:.0f}"
        )
        return bound or str(row.get("rating", ""))
    if value is None:
        return ""
    if name in ("player", "opponent"):
        return str(value)
    if "ms_a_move" in name:
        return f"{value:.{3 if value < 1 else 1}f}"
    if isinstance(value, int):
        return f"{value:,}"
    scale, digits = (1, 0) if "elo" in name else (100, 1)
    text = f"{scale * value:.{digits}f}"
    if low is not None and high is not None and low < high:
        text += f"\n{scale * low:.{digits}f} to {scale * high:.{digits}f}"
    return text


def crosstable(rows: Sequence[Mapping[str, Any]], pairings: Sequence[Mapping[str, Any]]) -> str:
    """Return the points of the row against the column, in percent, as Markdown."""
    names = [row["player"] for row in rows]
    points = np.full((len(names), len(names)), np.nan)
    for pairing in pairings:
        first, second = names.index(pairing["player"]), names.index(pairing["opponent"])
        points[first, second] = 100 * pairing["score"]
        points[second, first] = 100 * (1.0 - pairing["score"])
    # Numbers as column heads: names would make it too wide for a terminal.
    cells = [
        [f"{i} {name}", *("" if np.isnan(value) else f"{value:.1f}" for value in line)]
        for i, (name, line) in enumerate(zip(names, points, strict=True), 1)
    ]
    return markdown_table(["", *map(str, range(1, len(names) + 1))], cells)


def escaped(text: object) -> str:
    """Return a text for Markdown, in which a player's name can neither end a cell nor add HTML."""
    return str(text).replace("|", r"\|").replace("<", "&lt;")


def markdown_table(head: list[str], rows: Sequence[Sequence[object]], style: str = "pipe") -> str:
    """Return a table whose first column is aligned to the left, and the others to the right.

    Args:
        head: the head of each column.
        rows: the cells. A second line comes in brackets, except in the style ``simple``.
        style: a format of tabulate; Markdown by default.
    """
    if style != "simple":
        rows = [[re.sub(r"\n(.+)", r" (\1)", str(cell)) for cell in row] for row in rows]
    if style == "pipe":
        rows = [[escaped(cell) for cell in row] for row in rows]
    align = ["left"] + ["right"] * (len(head) - 1)
    return tabulate.tabulate(rows, head, tablefmt=style, colalign=align, disable_numparse=True)


def formatted(
    style: str, head: list[str], rows: Sequence[Sequence[object]], source: Mapping[str, Any]
) -> str:
    """Return a table as ``markdown``, or as ``latex`` with a comment for each entry of ``source``.

    Args:
        style: the format.
        head, rows: as for :func:`markdown_table`.
        source: how the results were made.
    """
    if style == "markdown":
        return markdown_table(head, rows)
    comments = [f"% {name}: {' '.join(str(value).split())}" for name, value in source.items()]
    return "\n".join([*comments, markdown_table(head, rows, "latex_booktabs")])


def to_csv(rows: Sequence[Mapping[str, Any]], source: Mapping[str, Any]) -> str:
    """Return rows as CSV.

    There is a column for each of their names and numbers, and for each entry of ``source``: other
    programs do not expect comments there.
    """
    values = [{**row, **source} for row in rows]
    columns = [name for name, v in values[0].items() if not isinstance(v, dict | list | tuple)]
    file = io.StringIO()
    writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(values)
    return file.getvalue()


def plot(report: Report, title: str, zero: str) -> Figure:
    """Plot the Elo of each row with its interval; of a bound, the known end."""
    from matplotlib.figure import Figure

    elos = []
    for row in report.results:
        known = [row[key] for key in ("elo", "elo_low", "elo_high")]
        bound = next((value for value in known if value is not None), np.nan)
        elos.append([bound if value is None else value for value in known])
    figure = Figure(figsize=(6, 1.6 + 0.5 * len(elos)), layout="constrained")
    axes = figure.subplots()
    errorbars(axes, range(len(elos)), elos, **look(0) | {"linestyle": ""})
    axes.set_yticks(range(len(elos)), [row[report.columns[0]] for row in report.results])
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel(f"Elo, 95 % intervals; 0 is {zero}")
    figure.suptitle(title, size=11)
    return figure
