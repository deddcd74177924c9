"""Arguments and reset options that the environments share, and the checks they pass."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from gymnasium.error import DependencyNotInstalled

from bao_env.engine.layout import NORTH, SOUTH

MAX_PLIES: Final = 500
"""Plies after which an environment cuts a game short, by default. The longest of 100,000 random
games took 254."""

_SEATS: Final = {"south": SOUTH, "north": NORTH, SOUTH: SOUTH, NORTH: NORTH}


def seat_number(seat: str | int, name: str) -> int:
    """SOUTH or NORTH of ``"south"``, ``"north"`` or the number itself.

    Args:
        seat: the caller's value.
        name: of the argument, for the message.

    Raises:
        ValueError: ``seat`` is none of these.
    """
    found = _SEATS.get(seat) if isinstance(seat, (str, int, np.integer)) else None
    if found is None:
        raise ValueError(f"{name}={seat!r}: expected 'south' or 'north'")
    return found


def seat_or_none(seat: str | int | None, name: str) -> int | None:
    """:func:`seat_number`, with None for None.

    Raises:
        ValueError: see there.
    """
    return None if seat is None else seat_number(seat, name)


def check_render_mode(render_mode: str | None, metadata: dict[str, Any]) -> str | None:
    """``render_mode`` as it is.

    Raises:
        ValueError: it is neither None nor a mode of the environment.
        DependencyNotInstalled: it needs pygame, which is missing.
    """
    modes = metadata["render_modes"]
    if render_mode in ("human", "rgb_array") and modes == ["ansi"]:
        raise DependencyNotInstalled(
            f"render_mode={render_mode!r} needs pygame: pip install pygame, or in a checkout "
            "pip install -e '.[render]'"
        )
    if render_mode is not None and render_mode not in modes:
        raise ValueError(f"render_mode={render_mode!r}: expected None or one of {', '.join(modes)}")
    return render_mode


def check_max_plies(max_plies: int) -> int:
    """``max_plies`` as it is.

    Raises:
        ValueError: it is not an integer of at least 1.
    """
    if not isinstance(max_plies, int) or max_plies < 1:
        raise ValueError(f"max_plies={max_plies!r}: expected an integer of at least 1")
    return max_plies


def check_start(options: dict[str, Any]) -> None:
    """Check that the reset options name one start: an opening or a position, not both.

    Raises:
        ValueError: both ``"position"`` and ``"first_player"`` are given.
    """
    if options.get("position") is not None and options.get("first_player") is not None:
        raise ValueError("options: a position already says who is to move; drop first_player")
