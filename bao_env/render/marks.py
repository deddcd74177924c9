"""Draw the marks of pits, the same in every picture and on the web board.

Each kind has its own form, so nobody has to tell marks apart by colour alone. A dark edge makes
each mark stand out from wood, hollows and seeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from bao_env.engine.action import unpack_action
from bao_env.engine.layout import KICHWA
from bao_env.engine.position import PackedPositions, unpack
from bao_env.engine.ruleset import Ruleset
from bao_env.engine.starts import startable
from bao_env.render.shapes import Circle, Polygon, Rect, Shape

EDGE = "#1e1008"
"""The dark edge of every mark."""


class MarkKind(Enum):
    """A kind of mark: its colour, the width of its ring, and the length of the ring's dashes."""

    LEGAL = "legal", "#f2c14e", 3.0, 0.0
    """A pit that may be played: a golden ring, with an arrowhead for each direction."""
    LAST = "last", "#fff6df", 3.0, 7.0
    """The pit where the last action began: a dashed ring, and an arrowhead where its hand began."""
    NOW = "now", "#fff6df", 4.0, 0.0
    """The pit of the hand, or of a capture whose side is not chosen yet: a thick pale ring."""
    PREY = "prey", "#ffb59e", 4.0, 2.5
    """A pit that is being captured: a dotted ring."""
    HINT = "hint", "#a5e887", 5.0, 0.0
    """A pit to play: a green ring, and a long arrow where its hand begins to sow."""
    BARRED = "barred", "#ffb59e", 2.5, 0.0
    """The pit that takasia bars: a cross in a thin ring."""

    def __init__(self, label: str, colour: str, width: float, dash: float) -> None:
        self.label = label
        self.colour = colour
        self.width = width
        self.dash = dash


class Mark(NamedTuple):
    """A mark on a pit."""

    kind: MarkKind
    seat: int
    """The owner of the pit."""
    pit: int
    """0..15."""
    directions: tuple[int, ...] = ()
    """Directions in which a hand sows from the pit, as its owner sees them: 0 = left, 1 = right."""
    ring: bool = True
    """Whether the mark has a ring; otherwise it has only arrows."""


def action_marks(
    kind: MarkKind, before: PackedPositions, ruleset: Ruleset, actions: Iterable[int]
) -> list[Mark]:
    """Return marks of actions: rings where they start, arrows where their hands begin to sow.

    The direction of a capture that begins with captured seeds names the kichwa from which they are
    sown inwards (RULES.md, "Board and notation"). The arrow of such a capture is at that kichwa.
    Marks of the kind LEGAL have no arrow then, since several pits share the kichwa.

    Args:
        kind: the kind of the marks.
        before: uint64[6], the position in which the actions are legal.
        ruleset: the rules.
        actions: legal actions.
    """
    position = unpack(before)
    captures, _ = startable(ruleset.kernel, before)
    entering = position.store[position.mover] > 0 or position.pending is not None
    ends = bool(captures and entering)
    directions_of: dict[int, tuple[int, ...]] = {}
    arrows: list[Mark] = []
    for pit, direction, _ in map(unpack_action, actions):
        directions = directions_of.setdefault(pit, ())
        if not ends and direction not in directions:
            directions_of[pit] += (direction,)
        elif ends and kind is not MarkKind.LEGAL:
            kichwa = KICHWA[direction]
            arrows.append(Mark(kind, position.mover, kichwa, (1 - direction,), ring=False))
    return [Mark(kind, position.mover, pit, ways) for pit, ways in directions_of.items()] + arrows


def ring(kind: MarkKind, x: float, y: float, radius: float, square: bool) -> list[Shape]:
    """Draw a mark around a round or square pit; ``radius`` is half its width."""
    size = radius + 2.5

    def outline(colour: str, width: float, dash: float) -> Shape:
        if square:
            box = (x - size, y - size, 2 * size, 2 * size, size / 3)
            return Rect(*box, "none", colour, width, dash)
        return Circle(x, y, size, "none", colour, width, dash)

    shapes = [outline(EDGE, kind.width + 2.5, 0), outline(kind.colour, kind.width, kind.dash)]
    if kind is MarkKind.BARRED:
        shapes += _cross(x, y, 0.62 * radius)
    return shapes


def _cross(x: float, y: float, reach: float) -> list[Shape]:
    """Draw a diagonal cross whose two bars extend ``reach`` to each side."""
    half = 2.2  # half of a bar's width, along each axis
    bar = [(-reach, -reach + half), (-reach + half, -reach), (reach, reach - half)]
    bar.append((reach - half, reach))
    return [
        Polygon(tuple((x + side * dx, y + dy) for dx, dy in bar), MarkKind.BARRED.colour, EDGE, 1.2)
        for side in (-1, 1)
    ]


def arrow(kind: MarkKind, x: float, y: float, radius: float, side: int) -> list[Shape]:
    """Draw the arrow of a mark to one side of the screen: -1 is left, 1 is right."""
    if kind is MarkKind.HINT:
        outline = [(-17, -4), (3, -4), (3, -10), (18, 0), (3, 10), (3, 4), (-17, 4)]
        middle = x, y - radius - 3
    else:
        outline = [(-7, -9), (8, 0), (-7, 9)]
        middle = x + 0.82 * side * radius, y - 0.82 * radius
    points = tuple((middle[0] + side * dx, middle[1] + dy) for dx, dy in outline)
    return [Polygon(points, kind.colour, EDGE, 1.8)]
