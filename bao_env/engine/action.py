"""Encode a move, or a choice within one, as an action 0..63, and as a start for the kernel.

``action = pit * 4 + direction * 2 + house``: pits 0..7 are the mover's front holes 1..8, and 8..15
the mover's back holes 1..8; direction 0 = left, 1 = right; house 1 = play the house.

Legal actions are a uint64 with bit a set where action a is legal. A *start* is an action without
its house choice, as the kernel simulates it: ``ring pit + 16 * down``, where ``down`` is the step
along the ring (:mod:`bao_env.engine.layout`). In a namua capture it is the captured seeds' step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from bao_env.engine.array_checks import check_array, check_output, length_of
from bao_env.engine.bits import BYTE, FULL, ONE, ZERO, U, spread_bits
from bao_env.engine.compile import jit, jit_inline
from bao_env.engine.position import NO_PIT, Actions, Words, pending_of, store_of

NUM_ACTIONS = 64

DOWN_STARTS_SHIFT = U(16)  # in a set of starts, those going down are the upper bits
RING_MASK = U(15)
"""Mask of the ring pit in a start; it also wraps a walk along the ring."""
DOWN_SHIFT = U(4)
"""Position of the step in a start."""
_PIT_SHIFT = U(2)
_DIRECTION_SHIFT = U(1)
_ROW_SHIFT = U(3)
_HOLE_MASK = U(7)


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


def actions_of(legal: int) -> list[int]:
    """Return the actions in a set of bits (a uint64 as an integer), in ascending order."""
    legal = int(legal)
    return [action for action in range(NUM_ACTIONS) if legal >> action & 1]


def mask_of(actions: Iterable[int]) -> int:
    """Return a set of actions as bits, an integer."""
    return sum(1 << action for action in set(actions))


def unpack_masks(legal: Words, action_masks: npt.NDArray[Any]) -> None:
    """Spread legal actions, uint64[B], over ``action_masks``, bool or int8 [B, 64]: 1 = legal.

    Raises:
        TypeError, ValueError: an array has another type, shape or layout.
    """
    size = length_of(legal)
    check_array("legal", legal, np.uint64, (size,))
    dtype = np.bool_ if getattr(action_masks, "dtype", None) == np.bool_ else np.int8
    check_output("action_masks", action_masks, dtype, (size, NUM_ACTIONS))
    _unpack_masks(legal, action_masks.view(np.uint64))


@jit
def _unpack_masks(legal, words):
    """Spread legal actions, uint64[B], over the bytes of ``words``, uint64[B, 8]."""
    for i in range(legal.shape[0]):
        for k in range(8):
            words[i, k] = spread_bits((legal[i] >> U(8 * k)) & BYTE)


@jit_inline
def _allows(legal, action):
    """Return whether ``action``, int64, is legal, or the game is over (``legal`` is 0)."""
    inside = action >= 0 and action < NUM_ACTIONS
    return legal == ZERO or (inside and (legal >> U(action)) & ONE != ZERO)


@jit
def is_legal(actions, legal):
    """Return which actions are legal, bool[B]; where a game is over, any action is.

    Args:
        actions: int64[B].
        legal: uint64[B], the legal actions; 0 where the game is over.
    """
    flags = np.empty(legal.shape[0], np.bool_)
    for i in range(legal.shape[0]):
        flags[i] = _allows(legal[i], actions[i])
    return flags


@jit
def _first_illegal(actions, legal):
    """Return the index of the first action that is not legal, or -1."""
    for i in range(legal.shape[0]):
        if not _allows(legal[i], actions[i]):
            return i
    return -1


def check_legal(actions: Actions, legal: Words, who: str = "") -> None:
    """Validate the actions of a batch.

    Args:
        actions: int64[B].
        legal: uint64[B], the legal actions; where they are 0, any action is allowed.
        who: the player who chose them, for the message.

    Raises:
        IllegalMoveError: an action is illegal; the message names the first one, its game or the
            player, and the legal actions.
    """
    game = _first_illegal(actions, legal)
    if game < 0:
        return
    action, allowed = actions[game], actions_of(legal[game])
    if who:
        raise IllegalMoveError(f"{who} chose action {action}, which is illegal; legal: {allowed}")
    raise IllegalMoveError(f"action {action} is illegal in game {game}; legal there: {allowed}")


@jit_inline
def ring_of(start):
    """Return the ring pit of a start."""
    return start & RING_MASK


@jit_inline
def down_of(start):
    """Return the step of a start: 0 = up the ring, 1 = down."""
    return start >> DOWN_SHIFT


@jit_inline
def enters(meta):
    """Return all ones if captures of this turn begin with captured seeds, else zero (2.3)."""
    namua = FULL if store_of(meta) != ZERO else ZERO
    return namua | (FULL if pending_of(meta) != NO_PIT else ZERO)


@jit_inline
def action_of(meta, capture_turn, start):
    """Return the action of a start, with house bit 0."""
    ring = ring_of(start)
    in_back = ZERO - (ring >> _ROW_SHIFT)
    pit = ring ^ (in_back & _HOLE_MASK)
    entering = (FULL if capture_turn else ZERO) & enters(meta)
    right = down_of(start) ^ (~entering & ~in_back & ONE)
    return (pit << _PIT_SHIFT) | (right << _DIRECTION_SHIFT)


@jit_inline
def start_of(meta, capture_turn, action):
    """Return the start of an action: the inverse of :func:`action_of`."""
    pit = action >> _PIT_SHIFT
    right = (action >> _DIRECTION_SHIFT) & ONE
    in_back = ZERO - (pit >> _ROW_SHIFT)
    ring = pit ^ (in_back & _HOLE_MASK)
    entering = (FULL if capture_turn else ZERO) & enters(meta)
    down = right ^ (~entering & ~in_back & ONE)
    return ring | (down << DOWN_SHIFT)
