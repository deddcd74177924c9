"""Report the results of a tournament: tables as Markdown and JSON, and a plot."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tabulate

from bao_agents.arena.elo import FEW_PAIRS, finite
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.ratings import rate
from bao_agents.players import registry
from bao_agents.support.array_types import Float64Array
from bao_agents.support.figures import errorbars, look, save_figure
from bao_agents.support.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

tabulate.MIN_PADDING = 0  # the tables have to fit a terminal of 80 columns

LEAST_TIME = 0.4
"""Share of its time limit that a player uses on an idle machine at least, on average over moves.

Forced moves and proved wins need little of it: alpha-beta uses 45 % in kujifunza, 70 % in zanzibar.
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


def all_notes(report: Mapping[str, Any]) -> list[str]:
    """Return the :func:`notes` about all players of a tournament's report."""
    specs = report["settings"]["players"]
    return [
        note
        for row in report["players"]
        for note in notes(row["player"], specs[row["player"]], row["ms_a_move"], row["faults"])
    ]


def to_dict(
    results: Mapping[tuple[str, str], Pairs],
    settings: Mapping[str, Any],
    anchor: str | None = None,
) -> dict[str, Any]:
    """Return the results and the ratings as plain values, for ``table.json`` and the tables.

    Args:
        results: the results of each pairing.
        settings: the tournament's settings.
        anchor: the player with Elo 0; by default the mean is 0.

    Returns:
        ``elo``, ``elo_low`` and ``elo_high`` are None where they are infinite.
    """
    ratings = rate({names: pairs.points for names, pairs in results.items()}, anchor=anchor)
    everything = sum(results.values(), Pairs())
    players = []
    for i, name in enumerate(ratings.names):
        own = Pairs()
        for names, pairs in results.items():
            if name in names:
                own += pairs if name == names[0] else pairs.swapped()
        players.append(
            {
                "player": name,
                "elo": finite(ratings.elo[i]),
                "elo_low": finite(ratings.low[i]),
                "elo_high": finite(ratings.high[i]),
                "score": float(ratings.score[i]),
                "games": int(ratings.games[i]),
                "ms_a_move": float(own.ms_a_move[0]),
                "faults": own.faults[0],
            }
        )
    pairings = [
        {"first": first, "second": second} | pairs.score.to_dict()
        for (first, second), pairs in results.items()
    ]
    return {
        "settings": dict(settings),
        "anchor": anchor,
        "players": players,
        "pairings": pairings,
        "mean_plies": float(everything.plies.mean()),
        "commits": sorted(everything.commits),
    }


def elos_of(report: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return the Elo of each player and both ends of its interval; infinite ones as the other."""
    found = {}
    for row in report["players"]:
        values = [row[key] for key in ("elo", "elo_low", "elo_high")]
        bound = next((value for value in values if value is not None), math.nan)
        found[row["player"]] = [bound if value is None else value for value in values]
    return found


def _elo(value: float | None, infinite: str) -> str:
    return infinite if value is None else f"{value:+.0f}"


def _zero(report: Mapping[str, Any]) -> str:
    """Return what has Elo 0."""
    swept = any(row["elo"] is None for row in report["players"])
    mean = "the mean of the finite ones" if swept else "the mean of all"
    return report["anchor"] or mean


def _games(report: Mapping[str, Any]) -> int:
    return sum(pairing["games"] for pairing in report["pairings"])


def _crosstable(report: Mapping[str, Any]) -> Float64Array:
    """Return the points of the row against the column, in percent; NaN if they did not meet."""
    names = [player["player"] for player in report["players"]]
    table = np.full((len(names), len(names)), np.nan)
    for pairing in report["pairings"]:
        first, second = names.index(pairing["first"]), names.index(pairing["second"])
        table[first, second] = 100 * pairing["score"]
        table[second, first] = 100 * (1.0 - pairing["score"])
    return table


def standings(report: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the table of players."""
    rows = [
        [
            row["player"],
            _elo(row["elo"], "+inf" if row["elo_high"] is None else "-inf"),
            ""
            if row["player"] == report["anchor"]
            else f"{_elo(row['elo_low'], '-inf')} to {_elo(row['elo_high'], '+inf')}",
            f"{100 * row['score']:.1f}",
            f"{row['games']:,}",
            f"{row['ms_a_move']:.{3 if row['ms_a_move'] < 1 else 1}f}",
        ]
        for row in report["players"]
    ]
    return ["player", "Elo", "95 % interval", "score, %", "games", "ms a move"], rows


def markdown(report: Mapping[str, Any]) -> str:
    """Return the tables of a report (:func:`to_dict`), and a line about their sources."""
    settings, players = report["settings"], report["players"]
    zero = _zero(report)
    # Numbers as column heads: names would make it too wide for a terminal.
    against = [
        [f"{i} {row['player']}", *("" if np.isnan(points) else f"{points:.1f}" for points in line)]
        for i, (row, line) in enumerate(zip(players, _crosstable(report), strict=True), 1)
    ]
    paragraphs = [
        f"Rule set {settings['ruleset']['name']}; {_games(report):,} games in pairs, each opening "
        f"of {settings['opening_plies']} random plies from both seats;\nseed {settings['seed']}; "
        f"{report['mean_plies']:.1f} plies a game. Elo 0 is {zero}.",
        markdown_table(*standings(report)),
        "Score of the row against the column, in percent:",
        markdown_table(["", *map(str, range(1, len(players) + 1))], against),
    ]
    if any(row["elo"] is None for row in players):
        paragraphs.append("A player who won or lost all games has no rating, only a bound.")
    if _games(report) < 2 * FEW_PAIRS:
        paragraphs.append("These games are too few for 95 % intervals: take them as a rough guide.")
    paragraphs += map(escaped, all_notes(report))
    return "\n\n".join(paragraphs) + "\n"


def escaped(text: object) -> str:
    """Return a text for Markdown, in which a player's name can neither end a cell nor add HTML."""
    return str(text).replace("|", r"\|").replace("<", "&lt;")


def markdown_table(head: list[str], rows: Sequence[Sequence[object]], style: str = "pipe") -> str:
    """Return a table whose first column is aligned to the left, and the others to the right.

    Args:
        head: the head of each column.
        rows: the cells.
        style: a format of tabulate; Markdown by default.
    """
    if style == "pipe":
        rows = [[escaped(cell) for cell in row] for row in rows]
    align = ["left"] + ["right"] * (len(head) - 1)
    return tabulate.tabulate(rows, head, tablefmt=style, colalign=align, disable_numparse=True)


def result_table(
    style: str,
    head: list[str],
    rows: Sequence[Sequence[str]],
    values: Sequence[Mapping[str, Any]],
    source: Mapping[str, Any],
) -> str:
    """Return the results of a command as one table.

    Args:
        style: ``markdown``, ``latex`` or ``csv``.
        head, rows: the table for people; a cell's second line comes in brackets.
        values: the same results as for JSON; CSV has a column for each of their names and numbers.
        source: how the results were made. LaTeX has a comment for each entry; CSV has a column,
            because other programs do not expect comments there.
    """
    if style == "csv":
        values = [{**source, **row, **source} for row in values]
        columns = [
            name for name, value in values[0].items() if not isinstance(value, dict | list | tuple)
        ]
        file = io.StringIO()
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(values)
        return file.getvalue().rstrip()
    lines = [[re.sub(r"\n(.+)", r" (\1)", cell) for cell in row] for row in rows]
    table = markdown_table(head, lines, {"markdown": "pipe", "latex": "latex_booktabs"}[style])
    if style == "markdown":
        return table
    comments = [f"% {name}: {' '.join(str(value).split())}" for name, value in source.items()]
    return "\n".join([*comments, table])


def plot(report: Mapping[str, Any]) -> Figure:
    """Plot Elo with intervals."""
    from matplotlib.figure import Figure

    elos = elos_of(report)
    names, count = list(elos), len(elos)
    figure = Figure(figsize=(6, 1.6 + 0.5 * count), layout="constrained")
    axes = figure.subplots()
    style = look(0) | {"linestyle": ""}
    errorbars(axes, range(count), list(elos.values()), **style)
    axes.set_yticks(range(count), names)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel(f"Elo, 95 % intervals; 0 is {_zero(report)}")
    title = f"Bao, {report['settings']['ruleset']['name']}: {_games(report):,} games"
    figure.suptitle(title, size=11)
    return figure


def write_report(report: Mapping[str, Any], folder: Path) -> str:
    """Write ``table.md``, ``table.json`` and ``elo.png`` into a folder; return the tables."""
    text = markdown(report)
    save_figure(plot(report), folder / "elo.png")
    write_atomically(folder / "table.json", json.dumps(report, indent=2, allow_nan=False) + "\n")
    write_atomically(folder / "table.md", text)
    return text
