"""Encode where a move starts, for the kernel.

A *start* is an action without its house choice, as the kernel simulates it: ``ring pit + 16 *
down``, where ``down`` is the step along the ring (:mod:`bao_env.engine.layout`). In a namua capture
``down`` is the step of the captured seeds.
"""

from __future__ import annotations

from bao_env.compiled.compile import jit_inline
from bao_env.engine.bits import FULL, ONE, ZERO, U
from bao_env.engine.position import NO_PIT, pending_of, store_of

DOWN_STARTS_SHIFT = U(16)  # in a set of starts, the starts going down are the upper bits
RING_MASK = U(15)
"""Mask of the ring pit in a start; it also wraps a walk along the ring."""
DOWN_SHIFT = U(4)
"""Index of the bit of a start that holds the step."""
_PIT_SHIFT = U(2)
_DIRECTION_SHIFT = U(1)
_ROW_SHIFT = U(3)
_HOLE_MASK = U(7)


@jit_inline
def ring_of(start: U) -> U:
    """Return the ring pit of a start."""
    return start & RING_MASK


@jit_inline
def down_of(start: U) -> U:
    """Return the step of a start: 0 = up the ring, 1 = down."""
    return start >> DOWN_SHIFT


@jit_inline
def enters(meta: U) -> U:
    """Return all ones if a capture now starts by sowing the captured seeds, else zero (2.3)."""
    namua = FULL if store_of(meta) != ZERO else ZERO
    return namua | (FULL if pending_of(meta) != NO_PIT else ZERO)


@jit_inline
def action_of(meta: U, capture_turn: bool, start: U) -> U:
    """Return the action of a start, with house bit 0."""
    ring = ring_of(start)
    in_back = ZERO - (ring >> _ROW_SHIFT)
    pit = ring ^ (in_back & _HOLE_MASK)
    entering = (FULL if capture_turn else ZERO) & enters(meta)
    # A hand that leaves the front row to the right walks up the ring (down = 0), and one that
    # leaves the back row to the right walks down (1), so ``right`` is ``down``, flipped in the
    # front row. Captured seeds from the right kichwa also walk down, so the side of a capture that
    # enters is not flipped.
    right = down_of(start) ^ (~entering & ~in_back & ONE)
    return (pit << _PIT_SHIFT) | (right << _DIRECTION_SHIFT)


@jit_inline
def start_of(meta: U, capture_turn: bool, action: U) -> U:
    """Return the start of an action: the inverse of :func:`action_of`."""
    pit = action >> _PIT_SHIFT
    right = (action >> _DIRECTION_SHIFT) & ONE
    in_back = ZERO - (pit >> _ROW_SHIFT)
    ring = pit ^ (in_back & _HOLE_MASK)
    entering = (FULL if capture_turn else ZERO) & enters(meta)
    down = right ^ (~entering & ~in_back & ONE)
    return ring | (down << DOWN_SHIFT)
