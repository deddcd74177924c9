"""Rendering of a game in an environment's render mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import logger

from bao_env.engine.position import Position
from bao_env.game import SEAT_NAMES
from bao_env.render.drawing import drawing
from bao_env.render.raster import Window, rgb_array
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
    position: Position,
    result: str | None,
    mode: str | None,
    metadata: dict[str, Any],
    *,
    window: Window | None = None,
    last: tuple[int, int] | None = None,
) -> str | npt.NDArray[np.uint8] | None:
    """Render a position.

    Args:
        position: the position to show.
        result: its :func:`result_line`.
        mode: ``"ansi"`` returns the board in plain characters, ``"rgb_array"`` a fresh image,
            uint8[406, 820, 3]. ``"human"`` draws it in ``window`` and returns None; None warns and
            returns None.
        metadata: the environment's metadata: its modes, and frames a second.
        window: the window in which ``"human"`` draws.
        last: seat and pit of the last action, which pictures mark.

    Raises:
        DependencyNotInstalled: pygame is missing, and the mode needs it.
    """
    if mode is None:
        modes = ", ".join(metadata["render_modes"])
        logger.warn(f"render() needs a render_mode: make the environment with one of {modes}")
        return None
    if mode == "ansi":
        return ascii_board(position, status=result)
    shapes = drawing(position, marked=[last] if last else [], status=result)
    if mode == "rgb_array":
        return rgb_array(shapes)
    if window is not None:
        window.show(shapes, metadata["render_fps"])
    return None
