"""Report the results of an event as tables, JSON, CSV and a plot, all with the same columns."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import tabulate

from bao_agents.arena.elo import FEW_PAIRS
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.plan import of_player
from bao_agents.arena.ratings import rate
from bao_agents.players import registry
from bao_agents.search.limits import Clock
from bao_agents.support.figures import errorbars, line_style
from bao_agents.support.provenance import current_commit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

tabulate.MIN_PADDING = 0  # the tables have to fit a terminal of 80 columns

Row: TypeAlias = Mapping[str, Any]
"""The results of a player as plain values."""
Table: TypeAlias = tuple[list[str], list[list[str]]]
"""The heads of the columns, and the rows of cells."""

HEADS = {
    "opponent_elo": "its Elo",
    "elo": "Elo",
    "score": "score, %",
    "expected": "expected, %",
    "los": "LOS, %",
    "ms_a_move": "ms a move",
    "opponent_ms_a_move": "its ms",
}
"""Heads of table columns, by the columns' names in JSON and CSV, if the two differ.

In JSON and CSV, shares are 0..1. The ends of the interval of ``elo`` are ``elo_low`` and
``elo_high``, and in the same way for ``score``. None means infinite or, if both ends are None,
unknown."""

ENDS = ("elo", "elo_low", "elo_high")
"""The columns of an Elo and the ends of its 95% interval."""

CROSSTABLE = "Score of the row against the column, in percent"
"""The caption of a :func:`crosstable`."""

STYLES = {"markdown": "pipe", "latex": "latex_booktabs"}
"""Tabulate's name for each format of a table."""

LEAST_TIME = 0.1
"""A player gets a warning if it uses less than this share of its time limit.

The share is an average over its moves. On an idle machine, every player but the solver uses more.
Forced moves, proven wins and settled choices take little time: guided alpha-beta uses 30% of its
limit in zanzibar.
"""

# --- rows -----------------------------------------------------------------------------------------


def rating(elo: float, low: float, high: float) -> dict[str, float | None]:
    """Return an Elo and its interval as plain values; values that are not finite become None."""
    ends = zip(ENDS, (elo, low, high), strict=True)
    return {name: float(end) if np.isfinite(end) else None for name, end in ends}


def result(pairs: Pairs) -> dict[str, Any]:
    """Return the results of the player named first as plain values."""
    score = pairs.score
    return {
        "games": score.games,
        "won": score.wins,
        "drawn": score.draws,
        "lost": score.losses,
        "score": score.rate,
        "ms_a_move": float(pairs.ms_a_move[0]),
        **summary(pairs),
        "pairs_by_points": score.pair_counts,
        "faults": pairs.faults[0],
    }


def summary(games: Pairs) -> dict[str, Any]:
    """Return the mean length of some games and South's share of the points, as plain values."""
    south = games.south
    return {
        "mean_plies": float(games.plies.mean()),
        "south_score": south.rate,
        "south_score_low": south.low,
        "south_score_high": south.high,
    }


def in_words(games: Pairs) -> str:
    """Return :func:`summary` in words."""
    south = games.south
    return (
        f"{games.plies.mean():.1f} plies a game; South scores {100 * south.rate:.1f}% "
        f"({100 * south.low:.1f} to {100 * south.high:.1f})"
    )


def match_row(player: str, opponent: str, pairs: Pairs) -> dict[str, Any]:
    """Return the result of a match as a dictionary of plain values.

    ``elo`` is the rating of ``player`` minus the rating of ``opponent``.
    """
    score = pairs.score
    return {
        "player": player,
        "opponent": opponent,
        **rating(*score.elo),
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
        anchor: the player whose Elo is 0; by default the mean is 0.
    """
    rated = rate({names: pairs.points for names, pairs in results.items()}, anchor=anchor)
    return [
        {"player": name, **rating(*ends), **result(of_player(name, results))}
        for name, *ends in zip(rated.names, rated.elo, rated.low, rated.high, strict=True)
    ]


# --- notes ----------------------------------------------------------------------------------------


def notes(
    rows: Sequence[Row], limits: Mapping[str, float], commits: frozenset[str]
) -> Iterator[str]:
    """Yield warnings for a reader: faults, too little time, games played by other code.

    Args:
        rows: the rows of the results.
        limits: the result of :func:`limit_ms` for each player, by name.
        commits: the commits of the code that played the games.
    """
    for row in rows:
        against = f"against {row['opponent']}, " if "opponent" in row else ""
        for name, side in (("player", ""), ("opponent", "opponent_")):
            if name in row:
                faults, ms_a_move = row[f"{side}faults"], row[f"{side}ms_a_move"]
                for note in notes_of(row[name], limits[row[name]], ms_a_move, faults):
                    yield against + note
    rated = [row for row in rows if any(row[end] is not None for end in ENDS)]
    few = [row.get("opponent", row["player"]) for row in rated if row["games"] < 2 * FEW_PAIRS]
    if few:
        yield f"Too few games for a reliable 95% interval: {', '.join(few)}."
    if any(row["elo"] is None for row in rated):
        yield (
            "A player who won or lost all games against those with a rating has only a lower or an "
            "upper bound."
        )
    if other_commits := sorted(commits - {current_commit()}):
        yield (
            f"Some games were played by other versions of the code, {', '.join(other_commits)}; "
            f"this is {current_commit()}."
        )


def limit_ms(spec: str, clock: Clock | None) -> float:
    """Return the milliseconds that a player should use for a move; 0 if there is no such limit.

    Args:
        spec: the player's specification, for :func:`bao_agents.players.registry.load`.
        clock: the clock of its games, which replaces the limit in its name.
    """
    player = registry.parse(spec)
    if clock is not None or player.kind.name == "solver":  # it stops as soon as it has a proof
        return 0.0
    return 1000.0 * (player.limit.seconds or 0.0)


def notes_of(name: str, limit: float, ms_a_move: float, faults: Sequence[str]) -> Iterator[str]:
    """Yield warnings about a player's games: its faults, and too little time.

    Args:
        name: the player's name.
        limit: the result of :func:`limit_ms`.
        ms_a_move: its average milliseconds of processor time per move.
        faults: the cause of each fault by which it lost a game.
    """
    if faults:
        games = "1 game" if len(faults) == 1 else f"{len(faults)} games"
        yield f"{name} lost {games} by faults: {faults[0]}"
    if ms_a_move < LEAST_TIME * limit:
        yield (
            f"{name} used only {ms_a_move:.1f} of its {limit:g} ms a move. If other programs "
            "took the rest, it played too weakly: use an idle machine, fewer --threads, or a limit "
            "of nodes."
        )


# --- texts ----------------------------------------------------------------------------------------


def cells(rows: Sequence[Row], columns: Sequence[str]) -> Table:
    """Return the heads and the rows of a table with the given columns."""
    return [HEADS.get(name, name) for name in columns], [
        [_cell(row, name) for name in columns] for row in rows
    ]


def _cell(row: Row, name: str) -> str:
    """Return a value as text, with its interval, if any, in a second line."""
    value, low, high = (row.get(key) for key in (name, f"{name}_low", f"{name}_high"))
    if value is None and low is not None:
        return f"above {low:z.0f}"
    if value is None and high is not None:
        return f"below {high:z.0f}"
    if value is None:
        return str(row.get("rating", "")) if name == "elo" else ""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if "ms_a_move" in name:
        return f"{value:.{3 if value < 1 else 1}f}"
    scale, digits = (1, 0) if "elo" in name else (100, 1)
    text = f"{scale * value:z.{digits}f}"
    if low is not None and high is not None and low < high:
        text += f"\n{scale * low:z.{digits}f} to {scale * high:z.{digits}f}"
    return text


def crosstable(rows: Sequence[Row], pairings: Sequence[Row]) -> Table:
    """Return the table of each player's score against each other player, in percent."""
    names = [row["player"] for row in rows]
    points = {(row["player"], row["opponent"]): row["score"] for row in pairings}
    points |= {names[::-1]: 1.0 - score for names, score in points.items()}
    # The column heads are numbers: names would make the table too wide for a terminal.
    lines = [
        [
            f"{i} {name}",
            *(f"{100 * points[name, b]:.1f}" if (name, b) in points else "" for b in names),
        ]
        for i, name in enumerate(names, 1)
    ]
    return ["", *map(str, range(1, len(names) + 1))], lines


def escaped(text: object) -> str:
    """Escape a text for Markdown, so that a player's name can neither end a cell nor add HTML."""
    return str(text).replace("|", r"\|").replace("<", "&lt;")


def markdown_table(head: list[str], rows: Sequence[Sequence[object]], style: str = "pipe") -> str:
    """Return a table whose first column is aligned to the left, and the others to the right.

    Args:
        head: the head of each column.
        rows: the cells. A cell's second line is put in brackets, except in the style ``simple``.
        style: a format of tabulate; Markdown by default.
    """
    if style != "simple":
        rows = [[re.sub(r"\n(.+)", r" (\1)", str(cell)) for cell in row] for row in rows]
    if style == "pipe":
        rows = [[escaped(cell) for cell in row] for row in rows]
    align = ["left"] + ["right"] * (len(head) - 1)
    return tabulate.tabulate(rows, head, tablefmt=style, colalign=align, disable_numparse=True)


def heading(style: str, caption: str, source: Mapping[str, str]) -> str:
    """Return the text above a table: its caption, and how the results were made.

    Args:
        style: the format, a key of :data:`STYLES`.
        caption: whose results these are, under which rules, and what the numbers mean.
        source: how the results were made.
    """
    lines = [f"{key}: {' '.join(text.split())}" for key, text in source.items() if text]
    if style == "latex":
        return "\n".join(f"% {line}" for line in [caption, *lines, r"needs: \usepackage{booktabs}"])
    comment = "\n".join(line.replace(">", "&gt;") for line in lines)
    return f"{escaped(caption)}\n\n<!--\n{comment}\n-->\n"


def formatted(
    style: str,
    head: list[str],
    rows: Sequence[Sequence[object]],
    caption: str,
    source: Mapping[str, str],
    cross: Table | None = None,
) -> str:
    """Return a table in Markdown or LaTeX, below its :func:`heading`.

    Args:
        style: the format, a key of :data:`STYLES`.
        head, rows: as for :func:`markdown_table`.
        caption, source: as for :func:`heading`.
        cross: a :func:`crosstable` to put below the table.
    """
    text = f"{heading(style, caption, source)}\n{markdown_table(head, rows, STYLES[style])}"
    if cross is None:
        return text
    cross_caption = f"% {CROSSTABLE}" if style == "latex" else f"{CROSSTABLE}\n"
    return f"{text}\n\n{cross_caption}\n{markdown_table(*cross, STYLES[style])}"


def to_csv(rows: Sequence[Row], source: Mapping[str, str]) -> str:
    """Return rows as CSV.

    There is a column for each text or number of a row, and one for each entry of ``source``,
    because other programs do not expect comments in CSV.
    """
    values = [{**row, **source} for row in rows]
    columns = [name for name, v in values[0].items() if not isinstance(v, dict | list | tuple)]
    file = io.StringIO()
    writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(values)
    return file.getvalue()


def plot(rows: Sequence[Row], column: str, title: str, zero: str) -> Figure:
    """Plot the Elo of each row with its interval; a bound becomes a point without an interval.

    Args:
        rows: the rows of the results.
        column: the column with the players' names.
        title: the title of the picture.
        zero: who or what has Elo 0.
    """
    from matplotlib.figure import Figure

    elos = []
    for row in rows:
        ends = [row[end] for end in ENDS]
        bound = next((value for value in ends if value is not None), np.nan)
        elos.append([bound if value is None else value for value in ends])
    figure = Figure(figsize=(6, 1.6 + 0.5 * len(elos)), layout="constrained")
    axes = figure.subplots()
    errorbars(axes, range(len(elos)), elos, **line_style(0) | {"linestyle": ""})
    axes.set_yticks(range(len(elos)), [row[column] for row in rows])
    axes.set_ylim(len(elos) - 0.5, -0.5)  # the first row on top, and no point on the frame
    axes.grid(axis="x", alpha=0.3)
    above = " above the opponent" if zero == "the opponent" else f"; 0 is {zero}"
    axes.set_xlabel(f"Elo{above} (95% intervals)")
    figure.suptitle(title, size=11)
    return figure
