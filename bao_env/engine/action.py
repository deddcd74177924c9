"""Actions: a move, or a choice inside one, as an integer 0..63.

``action = pit * 4 + direction * 2 + house``: pit 0..7 = own front holes 1..8,
8..15 = own back holes 1..8; direction 0 = left, 1 = right; house 1 = play the house.
"""

from __future__ import annotations

from typing import Final

NUM_ACTIONS: Final = 64


def pack_action(pit: int, direction: int, house: int = 0) -> int:
    """The action integer of a pit (0..15), a direction (LEFT, RIGHT) and a house choice."""
    return pit * 4 + direction * 2 + house


def unpack_action(action: int) -> tuple[int, int, int]:
    """``(pit, direction, house)`` of an action integer.

    Raises:
        ValueError: ``action`` is not in 0..63.
    """
    if not 0 <= action < NUM_ACTIONS:
        raise ValueError(f"an action is an integer from 0 to {NUM_ACTIONS - 1}, not {action}")
    return action >> 2, (action >> 1) & 1, action & 1
