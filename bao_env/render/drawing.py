"""Draw a carved wooden board as circles, rectangles and labels.

Every picture is made from this drawing: the SVG (:mod:`bao_env.render.svg`), images and windows
(:mod:`bao_env.render.raster`), and the web board, which animates its seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from bao_env.engine.layout import HOUSE, RIGHT, SOUTH
from bao_env.engine.position import Position
from bao_env.game import SEAT_NAMES, stage_of
from bao_env.notation.positions import hole_name
from bao_env.render.marks import EDGE, Mark, MarkKind, arrow, ring
from bao_env.render.shapes import Circle, Rect, Shape, Text

# --- positions and sizes ----------------------------------------------------------------------

PIT = 64.0
"""Distance from pit to pit."""
RADIUS = 27.0
"""Radius of a pit, and half the side of a house."""
_TROUGH = 82.0
"""The short side of a store."""
_MIDDLE = 12.0
"""Gap between the two sides."""


@dataclass(frozen=True)
class Layout:
    """Positions and sizes of the pits and the stores."""

    width: float
    """Width of the drawing, in its own units."""
    height: float
    """Height of the drawing, with the line of text below the board."""
    left: float
    """Left edge of the rows of pits."""
    top: float
    """Top edge of the rows of pits."""
    far: tuple[float, float, float, float]
    """x, y, width and height of the far player's store."""
    near: tuple[float, float, float, float]
    """The same for the near player's."""

    @property
    def bottom(self) -> float:
        """Bottom edge of the rows of pits."""
        return self.top + 4 * PIT + _MIDDLE

    @property
    def board(self) -> float:
        """Bottom edge of the board."""
        return self.height - 48


_SIDE = 72.0 + _TROUGH
_ROWS_HEIGHT = 4 * PIT + _MIDDLE
WIDE = Layout(
    width=2 * _SIDE + 8 * PIT,
    height=60 + _ROWS_HEIGHT + 78,
    left=_SIDE,
    top=60,
    far=(32, 62, _TROUGH, _ROWS_HEIGHT - 4),
    near=(2 * _SIDE + 8 * PIT - 32 - _TROUGH, 62, _TROUGH, _ROWS_HEIGHT - 4),
)
"""The layout with each store upright at its player's right."""
WIDTH = WIDE.width
"""Width of a drawing, in its own units."""
HEIGHT = WIDE.height
"""Height of a drawing, in its own units."""


@dataclass(frozen=True)
class Hollow:
    """A pit or a store, and where it lies in the drawing."""

    seat: int
    """Its owner."""
    pit: int | None
    """0..15; None for the store."""
    x: float
    """x of its middle."""
    y: float
    """y of its centre."""
    reach_x: float
    """Half the width of the area where its seeds lie."""
    reach_y: float
    """Half the height of the area where its seeds lie."""
    label: tuple[float, float]
    """x and y of the middle of the label that shows its number of seeds."""
    is_house: bool = False
    """Whether it is a house, and so square."""


def rows(viewer: int = SOUTH) -> list[tuple[int, list[int]]]:
    """Return the four rows from the top, each with its seat and its pits from left to right.

    ``viewer`` is the seat at the bottom.
    """
    far = 1 - viewer
    return [
        (far, list(range(15, 7, -1))),
        (far, list(range(7, -1, -1))),
        (viewer, list(range(8))),
        (viewer, list(range(8, 16))),
    ]


def hollows(layout: Layout = WIDE, viewer: int = SOUTH, *, house: bool = True) -> list[Hollow]:
    """Return the 32 pits, row by row from the top left, then the far and the near store.

    Args:
        layout: positions and sizes.
        viewer: the seat at the bottom.
        house: whether hole 5 is a house in this game (:attr:`bao_env.Ruleset.house`).
    """
    pits_and_stores = []
    for row, (seat, pits) in enumerate(rows(viewer)):
        y = layout.top + (row + 0.5) * PIT + (_MIDDLE if row > 1 else 0)
        for column, pit in enumerate(pits):
            x = layout.left + (column + 0.5) * PIT
            reach = RADIUS - 6
            is_house = house and pit == HOUSE
            pits_and_stores.append(
                Hollow(seat, pit, x, y, reach, reach, (x + 22, y + 22), is_house)
            )
    for seat, (x, y, w, h) in ((1 - viewer, layout.far), (viewer, layout.near)):
        upright = h > w
        label = (x + w / 2, y + h + 1) if upright else (x + w, y + h / 2)
        insets = (14, 34) if upright else (34, 14)
        middle = (x + w / 2, y + h / 2)
        pits_and_stores.append(
            Hollow(seat, None, *middle, w / 2 - insets[0], h / 2 - insets[1], label)
        )
    return pits_and_stores


# --- colours and shapes -----------------------------------------------------------------------

_PAPER = "#efe6d5"
_SHADOW = "#d3c4aa"
WOOD = "#83532d"
_WOOD_LIGHT = "#b37d49"
_WOOD_DARK = "#4f2f17"
GRAIN = ("#7b4c28", "#8c5b33", "#77492a", "#905f36")
_DEEP = (0x38, 0x20, 0x0F)
_LIT = (0x74, 0x48, 0x26)
_STATUS = "#33200f"
_INK = "#2e1a0c"
_PALE = "#f3e3c3"
_SEEDS = ("#b9c0b4", "#a3aca3", "#c9c7b5", "#95a19b")
_SEED_EDGE = "#4f5752"
_SEED_SHADOW = "#26150a"
_SEED_GLEAM = "#f1f3ec"
SEED_COLOURS = len(_SEEDS)
"""Number of colours of seeds."""


def _between(share: float) -> str:
    """Return a colour of a pit's wall, from dark at 0 to bright at 1."""
    mixed = (round(a + (b - a) * share) for a, b in zip(_DEEP, _LIT, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


_HOLLOW = tuple(_between((i / 6) ** 1.3) for i in range(7))
"""The colours of a hollow, from its edge inwards."""
COLOUR_NAMES = {
    _PAPER: "paper",
    _SHADOW: "shadow",
    _STATUS: "status",
    WOOD: "wood",
    _WOOD_LIGHT: "wood-light",
    _WOOD_DARK: "wood-dark",
    **{colour: f"grain-{i}" for i, colour in enumerate(GRAIN)},
    **{colour: f"hollow-{i}" for i, colour in enumerate(_HOLLOW)},
    _PALE: "pale",
    **{colour: f"seed-{i}" for i, colour in enumerate(_SEEDS)},
    _SEED_EDGE: "seed-edge",
    _SEED_SHADOW: "seed-shadow",
    _SEED_GLEAM: "seed-gleam",
    **{kind.colour: kind.label for kind in reversed(MarkKind)},
    EDGE: "mark-edge",
}
"""The names of the board's colours; if kinds of marks share a colour, the first one names it."""


def ground(layout: Layout = WIDE, viewer: int = SOUTH, *, house: bool = True) -> list[Shape]:
    """Draw the empty board: wood, pits, stores, letters of rows and numbers of columns.

    For the arguments, see :func:`hollows`.
    """
    right, bottom = layout.width - 10, layout.board
    shapes: list[Shape] = [
        Rect(10, 10, right - 10, bottom - 10, 30, _WOOD_DARK),
        Rect(10, 10, right - 10, bottom - 15, 30, _WOOD_LIGHT),
        Rect(10, 12, right - 10, bottom - 17, 30, WOOD),
    ]
    lines = int((bottom - 40) / 6.5)
    for i in range(lines):  # the grain: each line in two parts, broken by a gap
        y, first = 22 + 6.5 * i, 38 + 29 * i * i % 47
        gap = first + 60 + 173 * i % (layout.width - 260)
        last = layout.width - 38 - 41 * i * i % 53
        thick = 1 + i * 7 % 3 * 0.7
        shapes.append(Rect(first, y, gap - first, thick, 0.7, GRAIN[i % 4]))
        shapes.append(Rect(gap + 26, y + 1.3, last - gap - 26, thick, 0.7, GRAIN[(i + 1) % 4]))
    ridge = layout.top + 2 * PIT + _MIDDLE / 2
    shapes += [
        Rect(17, 17, right - 24, bottom - 25, 25, "none", _WOOD_LIGHT, 1.2),
        Rect(layout.left - 8, ridge - 2.5, 8 * PIT + 16, 5, 2.5, _WOOD_DARK),
        Rect(layout.left - 8, ridge + 1.5, 8 * PIT + 16, 1.4, 0.7, _WOOD_LIGHT),
    ]
    for hollow in hollows(layout, viewer, house=house):
        if hollow.pit is not None:
            shapes += _carve(hollow.x, hollow.y, RADIUS, RADIUS, hollow.is_house)
    for x, y, w, h in (layout.far, layout.near):
        shapes += _carve(x + w / 2, y + h / 2, w / 2, h / 2, True)
    return shapes + _names(layout, viewer)


def _names(layout: Layout, viewer: int) -> list[Shape]:
    """Draw the letters of the rows and the numbers of the columns."""
    pits = hollows(layout, viewer)[:32]
    x = layout.left - (20 if layout.left > 60 else 12)
    shapes: list[Shape] = [
        Text(x, first.y, hole_name(first.seat, first.pit or 0)[0], 15, _PALE) for first in pits[::8]
    ]
    for column, hollow in enumerate(pits[:8]):
        shapes.append(Text(hollow.x, layout.top - 12, str(8 - column), 13, _PALE))
        shapes.append(Text(hollow.x, layout.bottom + 12, str(column + 1), 13, _PALE))
    return shapes


def _carve(x: float, y: float, half_w: float, half_h: float, square: bool) -> list[Shape]:
    """Draw a carved hollow, lit from above: its upper wall is dark, its lower wall bright."""

    def outline(inset: float, shift: float, colour: str) -> Shape:
        w, h = half_w - inset, half_h - inset
        if square:
            corner = max(3.0, RADIUS / 3 - 0.5 * inset)
            return Rect(x - w, y - h + shift, 2 * w, 2 * h, corner, colour)
        return Circle(x, y + shift, w, colour)

    rim = outline(0.0, 1.6, _WOOD_LIGHT)
    wall = [outline(0.55 + 1.9 * i, 0.42 * i, colour) for i, colour in enumerate(_HOLLOW)]
    return [rim, *wall]


_GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
"""Radians between neighbours on a sunflower spiral, which fills a disc evenly (Vogel 1979)."""
_HOLE_TURN = 1.7
"""Radians between the spirals of two neighbouring holes."""


def _noise(i: int, j: int) -> float:
    """Return a number in [0, 1) that looks random but depends only on i and j.

    It is the fractional part of a large multiple of a sine, as is common in shaders. Other large
    factors without a common divisor would also do.
    """
    return math.sin(12.9898 * i + 78.233 * j) * 43758.5453 % 1


def seed_spots(hollow: Hollow, count: int) -> list[tuple[float, float, int]]:
    """Return x, y and colour (0 to SEED_COLOURS - 1) of the first ``count`` seeds of a hollow.

    Seeds are scattered over an ellipse, from its middle outward and then in a second layer. The
    spot of a seed depends only on its number and its hollow, so seeds stay where they are when more
    are added.
    """
    salt = 32 + hollow.seat if hollow.pit is None else 16 * hollow.seat + hollow.pit
    layer = min(36, round(hollow.reach_x * hollow.reach_y / 18))
    spots = []
    for i in range(count):
        jitter = _noise(i + 1, salt + 1)
        angle = _GOLDEN_ANGLE * i + _HOLE_TURN * salt + 0.5 * jitter
        distance = math.sqrt((i % layer + 0.6 * jitter) / layer)
        spots.append(
            (
                hollow.x + hollow.reach_x * distance * math.cos(angle),
                hollow.y + hollow.reach_y * distance * math.sin(angle),
                int(jitter * 97) % SEED_COLOURS,
            )
        )
    return spots


def seed(x: float, y: float, colour: int) -> list[Shape]:
    """Draw one seed and its shadow."""
    return [
        Circle(x + 0.9, y + 1.5, 5.2, _SEED_SHADOW),
        Circle(x, y, 5, _SEEDS[colour], _SEED_EDGE, 0.9),
        Circle(x - 1.5, y - 1.6, 1.4, _SEED_GLEAM),
    ]


def owned_house(hollow: Hollow) -> list[Shape]:
    """Draw the frame that marks a house as owned."""
    r = RADIUS + 1
    return [Rect(hollow.x - r, hollow.y - r, 2 * r, 2 * r, r / 3, "none", _PALE, 2)]


def _count(hollow: Hollow, count: int) -> list[Shape]:
    return [Circle(*hollow.label, 9, _INK), Text(*hollow.label, str(count), 11.5, _PALE)]


def _marked(hollow: Hollow, mark: Mark, viewer: int) -> list[Shape]:
    """Draw a mark on a pit."""
    shapes = ring(mark.kind, hollow.x, hollow.y, RADIUS, hollow.is_house) if mark.ring else []
    for direction in mark.directions:
        side = 1 if (direction == RIGHT) == (hollow.seat == viewer) else -1
        shapes += arrow(mark.kind, hollow.x, hollow.y, RADIUS, side)
    return shapes


def _name(x: float, y: float, seat: int, *, golden: bool) -> list[Shape]:
    """Draw the name of a player; if ``golden``, in gold and underlined."""
    if not golden:
        return [Text(x, y, SEAT_NAMES[seat], 15, _PALE)]
    gold = MarkKind.LEGAL.colour
    return [Text(x, y, SEAT_NAMES[seat], 15, gold), Rect(x - 21, y + 8, 42, 2.5, 1.2, gold)]


def status_line(position: Position, status: str | None) -> str:
    """Return the line of text below the board.

    The line begins with ``status``, or with the player to move and the stage if ``status`` is None.
    A hole that takasia bars and a capture whose side is not chosen yet are named after it.
    """
    mover = position.mover
    parts = [status or f"{SEAT_NAMES[mover]} to move, {stage_of(position).value}"]
    if position.barred is not None:
        parts.append(f"takasia bars {hole_name(mover, position.barred)}")
    if position.pending is not None:
        parts.append(f"the capture at {hole_name(mover, position.pending)} waits")
    return "; ".join(parts)


def drawing(
    position: Position,
    *,
    marks: Iterable[Mark] = (),
    status: str | None = None,
    layout: Layout = WIDE,
    viewer: int = SOUTH,
    house: bool = True,
) -> list[Shape]:
    """Return the board as shapes, to be painted first to last.

    Args:
        position: the position to show.
        marks: marks of holes. A hole shows at most one mark with a ring and one without, which has
            only arrows; later marks replace earlier ones. If takasia bars a hole, or a capture
            there waits for its side to be chosen, this mark replaces the one with a ring.
        status: see :func:`status_line`; if given, no player is marked as the one to move.
        layout: positions and sizes, including the size of the drawing.
        viewer: the seat at the bottom.
        house: whether the game has houses; without houses, hole 5 is as round as the others.
    """
    shapes: list[Shape] = [
        Rect(0, 0, layout.width, layout.height, 0, _PAPER),
        Rect(12, 16, layout.width - 22, layout.board - 12, 30, _SHADOW),
        *ground(layout, viewer, house=house),
    ]
    mark_of = {(mark.seat, mark.pit, mark.ring): mark for mark in marks}
    for kind, hole in ((MarkKind.BARRED, position.barred), (MarkKind.NOW, position.pending)):
        if hole is not None:
            mark_of[position.mover, hole, True] = Mark(kind, position.mover, hole)
    for hollow in hollows(layout, viewer, house=house):
        seat, pit = hollow.seat, hollow.pit
        count = position.store[seat] if pit is None else position.pits(seat)[pit]
        if hollow.is_house and position.owns_house[seat]:
            shapes += owned_house(hollow)
        for spot in seed_spots(hollow, count):
            shapes += seed(*spot)
        for has_ring in (True, False):
            if pit is not None and (seat, pit, has_ring) in mark_of:
                shapes += _marked(hollow, mark_of[seat, pit, has_ring], viewer)
        if count or pit is None:
            shapes += _count(hollow, count)
    for seat, (x, y, w, h) in ((1 - viewer, layout.far), (viewer, layout.near)):
        name_spot = (x + w / 2, y - 16) if h > w else (x + 30, y + 16)
        shapes += _name(*name_spot, seat, golden=status is None and seat == position.mover)
    line = status_line(position, status)
    shapes.append(Text(layout.width / 2, layout.height - 24, line, 18, _STATUS))
    return shapes
