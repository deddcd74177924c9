"""Rendering of a game in an environment's render mode."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bao_env.engine.position import Position
from bao_env.game import SEAT_NAMES
from bao_env.render.drawing import drawing
from bao_env.render.raster import rgb_array
from bao_env.render.text import ascii_board


def result_line(position: Position, winner: int, truncated: bool) -> str | None:
    """Return how a game ended, in words; None while it runs.

    Args:
        position: the last position.
        winner: the seat that has won, or -1.
        truncated: whether the game was cut short.
    """
    if winner >= 0:
        return f"{SEAT_NAMES[winner]} wins"
    return f"cut short after {position.ply} plies" if truncated else None


def render_game(
    position: Position, result: str | None, mode: str, last: tuple[int, int] | None = None
) -> str | npt.NDArray[np.uint8]:
    """Return a position in plain characters (mode ``"ansi"``) or as a fresh uint8[406, 820, 3].

    Args:
        position: the position to show.
        result: its :func:`result_line`.
        mode: the render mode.
        last: seat and pit of the last action, which images mark.

    Raises:
        DependencyNotInstalled: pygame is missing, and the mode needs it.
    """
    if mode == "ansi":
        return ascii_board(position, status=result)
    return rgb_array(drawing(position, marked=[last] if last else [], status=result))
