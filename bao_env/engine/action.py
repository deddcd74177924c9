"""Encode a move, or a choice within one, as an action 0..63.

``action = pit * 4 + direction * 2 + house``: pits 0..7 are the mover's front holes 1..8, and 8..15
the mover's back holes 1..8; direction 0 = left, 1 = right; house 1 = play the house.

Legal actions are a uint64 with bit a set where action a is legal.
"""

from __future__ import annotations

import numpy as np

NUM_ACTIONS = 64


class IllegalMoveError(ValueError):
    """Raised for a move or an action that cannot be played; the message names the legal ones."""


def pack_action(pit: int, direction: int, house: int = 0) -> int:
    """Return the action for a pit (0..15), a direction (LEFT, RIGHT) and a house choice."""
    return pit * 4 + direction * 2 + house


def unpack_action(action: int) -> tuple[int, int, int]:
    """Return ``(pit, direction, house)`` of an action.

    Raises:
        ValueError: ``action`` is not in 0..63.
    """
    if not 0 <= action < NUM_ACTIONS:
        raise ValueError(f"an action is an integer from 0 to {NUM_ACTIONS - 1}, not {action}")
    return action >> 2, (action >> 1) & 1, action & 1


def actions_of(legal: int | np.uint64) -> list[int]:
    """Return the actions in a set of bits (a uint64 as an integer), in ascending order."""
    legal = int(legal)
    return [action for action in range(NUM_ACTIONS) if legal >> action & 1]
