"""Actions: a move, or a choice inside one, as an integer 0..63; and the starts of the kernel.

``action = pit * 4 + direction * 2 + house``: pit 0..7 = own front holes 1..8, 8..15 = own back
holes 1..8; direction 0 = left, 1 = right; house 1 = play the house.

A *mask* is a uint64 with bit a set where action a is legal. A *start* is an action without its
house choice, as the kernel simulates it: ``ring pit + 16 * down``, where ``down`` is the step along
the ring (:mod:`bao_env.engine.layout`). In a namua capture the step is that of the captured seeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bao_env.engine.bits import FULL, ONE, ZERO, U
from bao_env.engine.compile import jit_inline
from bao_env.engine.position import NO_PIT, pending_of, store_of

NUM_ACTIONS: Final = 64

RING_MASK: Final = U(15)
"""The bits of a start's ring pit; also wraps a walk along the ring."""
DOWN_SHIFT: Final = U(4)
"""The place of the step in a start."""
_PIT_SHIFT: Final = U(2)
_DIRECTION_SHIFT: Final = U(1)
_ROW_SHIFT: Final = U(3)
_HOLE_MASK: Final = U(7)


class IllegalMoveError(ValueError):
    """A move or an action that cannot be played; the message names the legal ones."""


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


def actions_of(mask: int) -> list[int]:
    """The actions of a mask (a uint64 as an integer), in ascending order."""
    mask = int(mask)
    return [action for action in range(NUM_ACTIONS) if mask >> action & 1]


def mask_of(actions: Iterable[int]) -> int:
    """The mask of some actions, as an integer."""
    return sum(1 << action for action in set(actions))


@jit_inline
def ring_of(start):
    """The ring pit of a start."""
    return start & RING_MASK


@jit_inline
def down_of(start):
    """The step of a start: 0 = up the ring, 1 = down."""
    return start >> DOWN_SHIFT


@jit_inline
def enters(meta):
    """A mask: a capture of this turn starts with captured seeds, not with a lift (2.3)."""
    namua = FULL if store_of(meta) != ZERO else ZERO
    return namua | (FULL if pending_of(meta) != NO_PIT else ZERO)


@jit_inline
def action_of(meta, capture_turn, start):
    """The action of a start, with house bit 0."""
    ring = ring_of(start)
    in_back = ZERO - (ring >> _ROW_SHIFT)
    pit = ring ^ (in_back & _HOLE_MASK)
    entering = (FULL if capture_turn else ZERO) & enters(meta)
    right = down_of(start) ^ (~entering & ~in_back & ONE)
    return (pit << _PIT_SHIFT) | (right << _DIRECTION_SHIFT)


@jit_inline
def start_of(meta, capture_turn, action):
    """The start of an action: the inverse of :func:`action_of`."""
    pit = action >> _PIT_SHIFT
    right = (action >> _DIRECTION_SHIFT) & ONE
    in_back = ZERO - (pit >> _ROW_SHIFT)
    ring = pit ^ (in_back & _HOLE_MASK)
    entering = (FULL if capture_turn else ZERO) & enters(meta)
    down = right ^ (~entering & ~in_back & ONE)
    return ring | (down << DOWN_SHIFT)
