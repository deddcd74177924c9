"""Pictures of the board: one drawing (:mod:`~bao_env.render.drawing`), shown as plain characters,
as SVG, as an image and in a window (:mod:`~bao_env.render.raster`)."""

from bao_env.render.svg import svg_board
from bao_env.render.text import ascii_board

__all__ = ["ascii_board", "svg_board"]
