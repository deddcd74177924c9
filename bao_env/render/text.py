"""Show the board in plain characters."""

from __future__ import annotations

from bao_env.engine.layout import HOUSE, SOUTH
from bao_env.engine.position import Position
from bao_env.game import SEAT_NAMES
from bao_env.notation.positions import hole_name
from bao_env.render.drawing import rows, status_line


def ascii_board(position: Position, *, status: str | None = None, viewer: int = SOUTH) -> str:
    """Return the board in plain characters, without a line break at the end.

    ``[6]`` is an owned house, ``(3)`` a hole that takasia bars, ``<4>`` the hole of a capture whose
    side is not chosen yet.

    Args:
        position: the position to show.
        status: the last line; by default, who is to move in which stage.
        viewer: the seat at the bottom.
    """
    lines = ["       8    7    6    5    4    3    2    1"]
    for seat, pits in rows(viewer):
        cells = [_cell(position, seat, pit) for pit in pits]
        line = f"  {hole_name(seat, pits[0])[0]}  {' '.join(cells)}"
        if pits[0] >= 8:
            line += f"    {SEAT_NAMES[seat]}, {position.store[seat]} in store"
        lines.append(line.rstrip())
    lines.append("       1    2    3    4    5    6    7    8")
    lines.append(f"  {status_line(position, status)}")
    return "\n".join(lines)


def _cell(position: Position, seat: int, pit: int) -> str:
    brackets = "  "
    if pit == HOUSE and position.owns_house[seat]:
        brackets = "[]"
    if seat == position.mover and pit == position.barred:
        brackets = "()"
    if seat == position.mover and pit == position.pending:
        brackets = "<>"
    return f"{brackets[0]}{position.pits(seat)[pit]}{brackets[1]}".rjust(4)
