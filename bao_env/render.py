"""The board as plain characters and as an SVG document."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape

from bao_env.drawing import HEIGHT, WIDTH, Circle, Shape, Text, drawing, notes, rows, status_line
from bao_env.engine.layout import HOUSE
from bao_env.engine.position import Position
from bao_env.game import SEAT_NAMES
from bao_env.notation import hole_name

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
    for seat, pits in rows():
        cells = [_cell(position, seat, pit) for pit in pits]
        line = f"  {hole_name(seat, pits[0])[0]}  {' '.join(cells)}"
        if pits[0] >= 8:
            line += f"    {SEAT_NAMES[seat]}, {position.store[seat]} in store"
        lines.append(line.rstrip())
    lines.append("       1    2    3    4    5    6    7    8")
    lines.append("  " + "; ".join([status or status_line(position), *notes(position)]))
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


def svg_board(
    position: Position,
    *,
    marked: Iterable[tuple[int, int]] = (),
    status: str | None = None,
    width: int = 760,
) -> str:
    """The board as an SVG document, ``width`` pixels wide; see :func:`bao_env.drawing.drawing`."""
    height = round(width * HEIGHT / WIDTH)
    body = svg_shapes(drawing(position, marked=marked, status=status))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {WIDTH:g} {HEIGHT:g}">\n{body}\n</svg>\n'
    )


def svg_shapes(shapes: Iterable[Shape]) -> str:
    """Shapes as SVG elements, one a line, without the document around them."""
    return "\n".join(_svg(shape) for shape in shapes)


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
