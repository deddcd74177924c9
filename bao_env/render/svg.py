"""Draw the board as an SVG document."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape

from bao_env.engine.layout import SOUTH
from bao_env.engine.position import Position
from bao_env.render.drawing import COLOUR_NAMES, HEIGHT, WIDTH, drawing
from bao_env.render.marks import Mark
from bao_env.render.shapes import Circle, Polygon, Rect, Shape, Text

_FONTS = "FreeSans, Helvetica, Arial, sans-serif"
"""Font families: the one that raster images use, then similar ones."""
_DARK = """<style>@media (prefers-color-scheme: dark) {
.bao-paper { fill: #1d1712 } .bao-shadow { fill: #0e0a07 } .bao-status { fill: #efe6d5 }
}</style>
"""


def svg_board(
    position: Position,
    *,
    marks: Iterable[Mark] = (),
    status: str | None = None,
    width: int = 760,
    viewer: int = SOUTH,
    house: bool = True,
) -> str:
    """Return the board as an SVG document.

    Args:
        position: the position to show.
        marks, status, viewer, house: see :func:`bao_env.render.drawing.drawing`.
        width: the width in pixels.
    """
    shapes = drawing(position, marks=marks, status=status, viewer=viewer, house=house)
    return svg_document(shapes, width)


def svg_document(shapes: Iterable[Shape], width: int) -> str:
    """Return shapes as an SVG document, ``width`` pixels wide.

    In a browser that prefers dark pages, the paper around the board is dark.
    """
    height = round(width * HEIGHT / WIDTH)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {WIDTH:g} {HEIGHT:g}">\n{_DARK}{svg_shapes(shapes)}\n</svg>\n'
    )


def svg_shapes(shapes: Iterable[Shape]) -> str:
    """Return shapes as SVG elements, one per line, without the document around them.

    Each element has classes that name the colours of its fill and its outline, for example
    ``bao-wood`` and ``bao-wood-line``, so a style sheet can change the colours of the board.
    """
    return "\n".join(_svg(shape) for shape in shapes)


def _svg(shape: Shape) -> str:
    if isinstance(shape, Text):
        return (
            f'<text x="{shape.x:.1f}" y="{shape.y + 0.35 * shape.size:.1f}"{_class(shape)} '
            f'fill="{shape.fill}" '
            f'font-family="{_FONTS}" font-weight="bold" font-size="{shape.size:g}" '
            'text-anchor="middle">'
            f"{escape(shape.text)}</text>"
        )
    if isinstance(shape, Circle):
        element = f'<circle cx="{shape.x:.1f}" cy="{shape.y:.1f}" r="{shape.radius:.1f}"'
    elif isinstance(shape, Polygon):
        element = f'<polygon points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in shape.points)}"'
    else:
        element = (
            f'<rect x="{shape.x:.1f}" y="{shape.y:.1f}" width="{shape.w:.1f}" '
            f'height="{shape.h:.1f}" rx="{shape.corner:.1f}"'
        )
    outline = f' stroke="{shape.outline}" stroke-width="{shape.width:g}"' if shape.width else ""
    if isinstance(shape, Circle | Rect) and shape.dash:
        outline += f' stroke-dasharray="{shape.dash:g}"'
    return f'{element}{_class(shape)} fill="{shape.fill}"{outline}/>'


def _class(shape: Shape) -> str:
    line = "none" if isinstance(shape, Text) else shape.outline
    names = [
        f"bao-{COLOUR_NAMES[colour]}{end}"
        for colour, end in ((shape.fill, ""), (line, "-line"))
        if colour in COLOUR_NAMES
    ]
    return f' class="{" ".join(names)}"' if names else ""
