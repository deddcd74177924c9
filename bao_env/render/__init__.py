"""Draw the board in plain characters, as SVG, and in pixels (:mod:`~bao_env.render.raster`).

SVG and pixels show the same drawing (:mod:`~bao_env.render.drawing`).
"""

from bao_env.render.svg import svg_board
from bao_env.render.text import ascii_board

__all__ = ["ascii_board", "svg_board"]
