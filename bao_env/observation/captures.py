"""What the player to move could capture at once, in small integers::

0       most seeds that one action captures
1       1 if an action wins at once
2       1 if there is no action: the player has lost
3..34   for each start, ring pit + 16 * down (1 for step -1 along the ring): 0 if it captures
        nothing, else 1 + the seeds that it captures, 64 at most
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bao_env.engine.bits import FULL, ONE, ONES, ZERO, U, byte, trailing_zeros
from bao_env.engine.compile import jit, jit_inline
from bao_env.engine.kernel import (
    CAPTURE_TURN,
    CHOICE,
    INFINITE,
    PAUSED,
    STARTS,
    WON,
    begin,
    candidates,
    relay,
)
from bao_env.engine.position import META, MOVER_BACK, MOVER_FRONT, OTHER_BACK, OTHER_FRONT

BEST_CAPTURE: Final = 0
CAN_WIN: Final = 1
IS_STUCK: Final = 2
START_CAPTURES: Final = 3
NUM_STARTS: Final = 32
CAPTURE_FEATURES: Final = START_CAPTURES + NUM_STARTS

_4 = U(4)
_15 = U(15)
_56 = U(56)
_64 = U(64)


@jit_inline
def _total(x):
    """Sum of the eight bytes of a word."""
    return (x * ONES) >> _56


@jit
def _simulate(rules, words, capture_turn, q, stops):
    """Play a start out: its tally, and the seeds that it captures."""
    front, back, facing, n, start, down, house_min, barred, stops, tally = begin(
        rules,
        words[MOVER_FRONT],
        words[MOVER_BACK],
        words[OTHER_FRONT],
        words[META],
        capture_turn,
        q & _15,
        q >> _4,
        stops,
    )
    while n != ZERO:
        front, back, facing, n, start, down, house_min, tally = relay(
            rules, front, back, facing, n, start, down, house_min, barred, stops, tally
        )
    captured = ZERO
    if capture_turn:
        captured = _total(words[OTHER_FRONT]) - _total(facing)
        if tally & (WON | PAUSED):
            captured += byte(facing, start)
    return tally, captured


@jit
def capture_features(rules, words, out):
    """What the player to move could do at once, in small integers.

    Args:
        rules: the :class:`KernelRules`.
        words: uint64[5 or more], the position.
        out: uint8[CAPTURE_FEATURES], filled.

    Returns:
        whether they have no move and so have lost.
    """
    found = candidates(
        rules,
        words[MOVER_FRONT],
        words[MOVER_BACK],
        words[OTHER_FRONT],
        words[OTHER_BACK],
        words[META],
    )
    capture_turn = (found & CAPTURE_TURN) != ZERO
    starts = found & STARTS
    out[:] = 0
    best = ZERO
    stuck = True
    while starts != ZERO and (capture_turn or stuck):
        q = trailing_zeros(starts)
        starts &= starts - ONE
        tally, captured = _simulate(rules, words, capture_turn, q, ZERO)
        if tally & INFINITE:
            if (tally & CHOICE) == ZERO:
                continue  # illegal (Donkers 1.5a)
            tally, captured = _simulate(rules, words, capture_turn, q, FULL)  # stop at the house
        stuck = False
        best = max(best, captured)
        if capture_turn:
            out[START_CAPTURES + np.int64(q)] = min(captured + ONE, _64)
        if tally & WON:
            out[CAN_WIN] = 1
    out[BEST_CAPTURE] = best
    out[IS_STUCK] = 1 if stuck else 0
    return stuck
