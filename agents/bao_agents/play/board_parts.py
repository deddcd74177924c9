"""Draw the board in parts, so that a page can move its seeds."""

from __future__ import annotations

from functools import cache
from typing import Any

from bao_env.engine.layout import NUM_SEEDS, SOUTH
from bao_env.notation.positions import hole_name
from bao_env.render.drawing import (
    PIT,
    RADIUS,
    SEED_COLOURS,
    WIDE,
    Layout,
    ground,
    hollows,
    owned_house,
    seed,
    seed_spots,
)
from bao_env.render.marks import MarkKind, arrow, ring
from bao_env.render.svg import svg_shapes

_ROWS_HEIGHT = WIDE.bottom - WIDE.top
_TROUGH = WIDE.far[2]
TALL = Layout(
    width=8 * PIT + 76,
    height=140 + _ROWS_HEIGHT + 186,
    left=38,
    top=140,
    far=(38, 26, 8 * PIT, _TROUGH),
    near=(38, 140 + _ROWS_HEIGHT + 32, 8 * PIT, _TROUGH),
)
"""The layout for narrow screens: each store lies in front of its player."""
LAYOUTS = {"wide": WIDE, "tall": TALL}


@cache
def board_parts(layout_name: str, viewer: int = SOUTH, house: bool = True) -> dict[str, Any]:
    """Return the empty board, the seeds and the marks as SVG, and the seeds' spots in each hollow.

    ``marks`` has, for each kind of mark, a ring for a round pit, a ring for a square pit, and
    arrows to the left and right.

    Args:
        layout_name: ``wide`` or ``tall``.
        viewer: the seat at the bottom.
        house: whether the rules have houses, which are drawn as squares.
    """
    layout = LAYOUTS[layout_name]
    boxes = {1 - viewer: layout.far, viewer: layout.near}
    return {
        "width": layout.width,
        "height": layout.board + 8,
        "viewer": viewer,
        "pit": PIT,
        "ground": svg_shapes(ground(layout, viewer, house=house)),
        "seeds": [svg_shapes(seed(0, 0, colour)) for colour in range(SEED_COLOURS)],
        "marks": {
            kind.label: {
                "round": svg_shapes(ring(kind, 0, 0, RADIUS, False)),
                "square": svg_shapes(ring(kind, 0, 0, RADIUS, True)),
                "left": svg_shapes(arrow(kind, 0, 0, RADIUS, -1)),
                "right": svg_shapes(arrow(kind, 0, 0, RADIUS, 1)),
            }
            for kind in MarkKind
        },
        "hollows": [
            {
                "seat": hollow.seat,
                "pit": hollow.pit,
                "name": None if hollow.pit is None else hole_name(hollow.seat, hollow.pit),
                "x": round(hollow.x, 1),
                "y": round(hollow.y, 1),
                "box": None if hollow.pit is not None else list(boxes[hollow.seat]),
                "label": list(hollow.label),
                "owned": svg_shapes(owned_house(hollow)) if hollow.is_house else None,
                "spots": [
                    [round(x, 1), round(y, 1), colour]
                    for x, y, colour in seed_spots(hollow, NUM_SEEDS)
                ],
            }
            for hollow in hollows(layout, viewer, house=house)
        ],
    }
