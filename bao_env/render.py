"""Pictures of a position: plain characters, and a carved wooden board as SVG.

A picture is first a short list of circles, rectangles and texts (:func:`drawing`), so that
other formats can be made from the same list.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from bao_env.engine.layout import HOUSE, NORTH, SOUTH
from bao_env.engine.position import Position
from bao_env.game import SEAT_NAMES, stage_of
from bao_env.notation import hole_name

_ROWS: Final = ((NORTH, 8), (NORTH, 0), (SOUTH, 0), (SOUTH, 8))
"""The four rows from the top: seat, and the first of their pits."""


def _row(seat: int, first: int) -> list[int]:
    """The pits of a row as they lie on the board, left to right as South sees it."""
    pits = list(range(first, first + 8))
    return pits if seat == SOUTH else pits[::-1]


def status_line(position: Position) -> str:
    """Who is to move, and in which stage."""
    return f"{SEAT_NAMES[position.mover]} to move, {stage_of(position).value}"


def _notes(position: Position) -> list[str]:
    """What the board itself doesn't show."""
    notes = []
    if position.barred is not None:
        notes.append(f"takasia bars {hole_name(position.mover, position.barred)}")
    if position.pending is not None:
        notes.append(f"the capture at {hole_name(position.mover, position.pending)} waits")
    return notes


# --- plain characters -------------------------------------------------------------------------


def ascii_board(position: Position, *, status: str | None = None) -> str:
    """The board in plain characters, North on top, no line break at the end.

    ``[6]`` is an owned house, ``(3)`` a hole that takasia bars, ``<4>`` one whose capture waits
    for its side.

    Args:
        position: what to show.
        status: the last line, if it is to be other than who moves in which stage.
    """
    lines = ["       8    7    6    5    4    3    2    1"]
    for seat, first in _ROWS:
        cells = [_cell(position, seat, pit) for pit in _row(seat, first)]
        line = f"  {hole_name(seat, first)[0]}  {' '.join(cells)}"
        if first:
            line += f"    {SEAT_NAMES[seat]}, {position.store[seat]} in store"
        lines.append(line.rstrip())
    lines.append("       1    2    3    4    5    6    7    8")
    lines.append("  " + "; ".join([status or status_line(position), *_notes(position)]))
    return "\n".join(lines)


def _cell(position: Position, seat: int, pit: int) -> str:
    brackets = "  "
    if pit == HOUSE and position.owns_house[seat]:
        brackets = "[]"
    if seat == position.mover and pit == position.barred:
        brackets = "()"
    if seat == position.mover and pit == position.pending:
        brackets = "<>"
    count = f"{brackets[0]}{position.pits(seat)[pit]}{brackets[1]}"
    return count.rjust(4) if position.pits(seat)[pit] < 10 else count.ljust(4)


# --- pictures ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Circle:
    """A filled circle, with an outline if ``width`` is not 0."""

    x: float
    y: float
    radius: float
    fill: str
    outline: str = "none"
    width: float = 0


@dataclass(frozen=True)
class Rect:
    """A filled rectangle with rounded corners, outlined if ``width`` is not 0."""

    x: float
    y: float
    w: float
    h: float
    corner: float
    fill: str
    outline: str = "none"
    width: float = 0


@dataclass(frozen=True)
class Text:
    """A text centred at ``x``, its middle at ``y``."""

    x: float
    y: float
    text: str
    size: float
    fill: str


Shape = Circle | Rect | Text

_PIT: Final = 64.0
"""Distance from pit to pit."""
_RADIUS: Final = 27.0
_STORE: Final = 82.0
"""Width of a store."""
_LEFT: Final = 72.0 + _STORE
_TOP: Final = 60.0
_MIDDLE: Final = 12.0
"""Gap between the two sides."""
_BOTTOM: Final = _TOP + 4 * _PIT + _MIDDLE
WIDTH: Final = 2 * _LEFT + 8 * _PIT
"""Width of a drawing, in its own units."""
HEIGHT: Final = _BOTTOM + 78
"""Height of a drawing, in its own units."""

_WOOD: Final = "#8a5a33"
_WOOD_LIGHT: Final = "#a8713f"
_WOOD_DARK: Final = "#5e3a1e"
_GRAIN: Final = ("#83552f", "#916039")
_HOLLOW: Final = ("#4a2c15", "#563419", "#623c1e", "#6c4423")
_INK: Final = "#2e1a0c"
_PALE: Final = "#f3e3c3"
_SEEDS: Final = ("#b9c0b4", "#a3aca3", "#c9c7b5", "#95a19b")
_SEED_EDGE: Final = "#4f5752"
_MARK: Final = "#f2c14e"
_BAR: Final = "#d0492f"


def drawing(
    position: Position,
    *,
    marked: Iterable[tuple[int, int]] = (),
    status: str | None = None,
) -> list[Shape]:
    """The board as shapes, painted first to last on WIDTH x HEIGHT units.

    Args:
        position: what to show.
        marked: (seat, pit) of holes to ring in yellow.
        status: the line below the board, if it is to be other than who moves in which stage.
    """
    shapes: list[Shape] = [
        Rect(0, 0, WIDTH, HEIGHT, 0, "#efe6d5"),
        Rect(10, 14, WIDTH - 20, _BOTTOM + 20, 30, _WOOD_DARK),
        Rect(10, 10, WIDTH - 20, _BOTTOM + 20, 30, _WOOD),
    ]
    for i in range(26):  # the grain
        length = 120 + 61 * i % 430
        left = 40 + 97 * i * i % 211 + 14 * (i % 9)
        shapes.append(Rect(left, 20 + 13 * i, length, 1.6, 0.8, _GRAIN[i % 2]))
    shapes += [
        Rect(16, 16, WIDTH - 32, _BOTTOM + 8, 25, "none", _WOOD_LIGHT, 1.6),
        Rect(_LEFT - 8, _TOP + 2 * _PIT + _MIDDLE / 2 - 2, 8 * _PIT + 16, 4, 2, _WOOD_DARK),
    ]
    rings = {pit: _MARK for pit in marked}
    if position.barred is not None:
        rings[position.mover, position.barred] = _BAR
    if position.pending is not None:
        rings[position.mover, position.pending] = _MARK
    for row, (seat, first) in enumerate(_ROWS):
        y = _TOP + (row + 0.5) * _PIT + (_MIDDLE if seat == SOUTH else 0)
        shapes.append(Text(_LEFT - 20, y, hole_name(seat, first)[0], 15, _PALE))
        for column, pit in enumerate(_row(seat, first)):
            x = _LEFT + (column + 0.5) * _PIT
            count = position.pits(seat)[pit]
            shapes += _hollow(x, y, pit == HOUSE, pit == HOUSE and position.owns_house[seat])
            if (seat, pit) in rings:
                shapes.append(Circle(x, y, _RADIUS + 2, "none", rings[seat, pit], 3))
            shapes += _seeds(x, y, _RADIUS - 6, _RADIUS - 6, count, 16 * seat + pit)
            if count:
                shapes += _label(x + 22, y + 22, count)
    for column in range(8):
        x = _LEFT + (column + 0.5) * _PIT
        shapes.append(Text(x, _TOP - 14, str(8 - column), 13, _PALE))
        shapes.append(Text(x, _BOTTOM + 10, str(column + 1), 13, _PALE))
    for seat, x in ((NORTH, 32.0), (SOUTH, WIDTH - 32 - _STORE)):
        shapes += _store(position, seat, x)
    line = "; ".join([status or status_line(position), *_notes(position)])
    shapes.append(Text(WIDTH / 2, HEIGHT - 24, line, 18, _INK))
    return shapes


def _hollow(x: float, y: float, square: bool, owned: bool) -> list[Shape]:
    """A carved pit: darker the deeper, lit at its lower rim."""
    shapes: list[Shape] = []
    sizes = [(1.0, 1.5, _WOOD_LIGHT), *((1 - 0.11 * i, -0.4 * i, c) for i, c in enumerate(_HOLLOW))]
    for scale, shift, colour in sizes:
        r = _RADIUS * scale
        if square:
            shapes.append(Rect(x - r, y - r - shift, 2 * r, 2 * r, r / 3, colour))
        else:
            shapes.append(Circle(x, y - shift, r, colour))
    if owned:
        r = _RADIUS + 1
        shapes.append(Rect(x - r, y - r, 2 * r, 2 * r, r / 3, "none", _PALE, 2))
    return shapes


def _seeds(
    x: float, y: float, reach_x: float, reach_y: float, count: int, salt: int
) -> list[Shape]:
    """Seeds strewn over an ellipse, from its middle outward and then in a second layer.

    A seed's place depends on its number and on ``salt`` alone, so that the seeds of a growing
    heap lie still.
    """
    layer = min(36, round(reach_x * reach_y / 18))
    shapes: list[Shape] = []
    for i in range(count):
        jitter = math.sin(12.9898 * (i + 1) + 78.233 * (salt + 1)) * 43758.5453 % 1
        angle = 2.39996 * i + 1.7 * salt + 0.5 * jitter
        distance = math.sqrt((i % layer + 0.6 * jitter) / layer)
        sx = x + reach_x * distance * math.cos(angle)
        sy = y + reach_y * distance * math.sin(angle)
        shapes.append(Circle(sx, sy, 5, _SEEDS[int(jitter * 97) % len(_SEEDS)], _SEED_EDGE, 0.9))
        shapes.append(Circle(sx - 1.5, sy - 1.6, 1.4, "#f1f3ec"))
    return shapes


def _label(x: float, y: float, count: int) -> list[Shape]:
    return [Circle(x, y, 9, _INK), Text(x, y, str(count), 11.5, _PALE)]


def _store(position: Position, seat: int, x: float) -> list[Shape]:
    """A player's store: a long trough at his right hand; a bright name has the move."""
    count, middle, height = position.store[seat], x + _STORE / 2, _BOTTOM - _TOP
    name = _MARK if seat == position.mover else _PALE
    return [
        Text(middle, _TOP - 14, SEAT_NAMES[seat], 15, name),
        Rect(x, _TOP + 3.5, _STORE, height - 4, 28, _WOOD_LIGHT),
        Rect(x, _TOP + 2, _STORE, height - 4, 28, _HOLLOW[0]),
        Rect(x + 3, _TOP + 6, _STORE - 6, height - 10, 26, _HOLLOW[1]),
        Rect(x + 6, _TOP + 10, _STORE - 12, height - 16, 24, _HOLLOW[2]),
        *_seeds(middle, _TOP + height / 2, _STORE / 2 - 14, height / 2 - 34, count, 32 + seat),
        *_label(middle, _BOTTOM - 1, count),
    ]


def svg_board(
    position: Position,
    *,
    marked: Iterable[tuple[int, int]] = (),
    status: str | None = None,
    width: int = 760,
) -> str:
    """The board as an SVG document, ``width`` pixels wide; see :func:`drawing`."""
    height = round(width * HEIGHT / WIDTH)
    body = "\n".join(_svg(shape) for shape in drawing(position, marked=marked, status=status))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {WIDTH:g} {HEIGHT:g}">\n{body}\n</svg>\n'
    )


def _svg(shape: Shape) -> str:
    if isinstance(shape, Text):
        return (
            f'<text x="{shape.x:.1f}" y="{shape.y + 0.35 * shape.size:.1f}" fill="{shape.fill}" '
            f'font-family="Georgia, serif" font-size="{shape.size:g}" text-anchor="middle">'
            f"{escape(shape.text)}</text>"
        )
    if isinstance(shape, Circle):
        where = f'<circle cx="{shape.x:.1f}" cy="{shape.y:.1f}" r="{shape.radius:.1f}"'
    else:
        where = (
            f'<rect x="{shape.x:.1f}" y="{shape.y:.1f}" width="{shape.w:.1f}" '
            f'height="{shape.h:.1f}" rx="{shape.corner:.1f}"'
        )
    outline = f' stroke="{shape.outline}" stroke-width="{shape.width:g}"' if shape.width else ""
    return f'{where} fill="{shape.fill}"{outline}/>'
