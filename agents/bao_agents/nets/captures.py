"""Encode the captures that the player to move can make at once, as small integers::

0       most seeds that one action captures
1       1 if an action wins at once
2       1 if there is no action: the player to move has lost
3..34   for each start, ring pit + 16 * down (1 for step -1 along the ring): 0 if it captures
        nothing, else 1 + the seeds that it captures, 64 at most
"""

from __future__ import annotations

import numpy as np

from bao_agents.support.array_types import Uint8Array
from bao_env.compiled.compile import jit
from bao_env.engine.bits import FULL, ONE, ZERO, U, trailing_zeros
from bao_env.engine.kernel import CHOICE, INFINITE, WON, captured_by, first_hand, play_out
from bao_env.engine.position import PackedPositions, Rows, load_rows
from bao_env.engine.ruleset import KernelRules
from bao_env.engine.starts import candidates

BEST_CAPTURE = 0
CAN_WIN = 1
IS_STUCK = 2
START_CAPTURES = 3
NUM_STARTS = 32
CAPTURE_FEATURES = START_CAPTURES + NUM_STARTS

_MAX_CAPTURE = U(64)


@jit
def _play_out(
    rules: KernelRules, rows: Rows, capture_turn: bool, start: U, stops_at_house: U
) -> tuple[U, U]:
    """Return the tally of a start, and the seeds that it captures."""
    hand = play_out(rules, first_hand(rules, rows, capture_turn, start, stops_at_house))
    return hand.tally, captured_by(rows, capture_turn, hand)


@jit
def capture_features(rules: KernelRules, packed: PackedPositions, out: Uint8Array) -> bool:
    """Write the capture features of a position; see the module.

    Args:
        rules: the :class:`KernelRules`.
        packed: uint64[5 or more], the position.
        out: uint8[CAPTURE_FEATURES], filled.

    Returns:
        whether the player to move has no move and so has lost.
    """
    rows = load_rows(packed)
    capture_turn, starts = candidates(rules, rows)
    out[:] = 0
    best = ZERO
    stuck = True
    while starts != ZERO and (capture_turn or stuck):
        start = trailing_zeros(starts)
        starts &= starts - ONE
        tally, captured = _play_out(rules, rows, capture_turn, start, ZERO)
        if tally & INFINITE:
            if (tally & CHOICE) == ZERO:
                continue  # illegal (Donkers 1.5a)
            tally, captured = _play_out(rules, rows, capture_turn, start, FULL)  # keep the house
        stuck = False
        best = max(best, captured)
        if capture_turn:
            out[START_CAPTURES + np.int64(start)] = min(captured + ONE, _MAX_CAPTURE)
        if tally & WON:
            out[CAN_WIN] = 1
    out[BEST_CAPTURE] = best
    out[IS_STUCK] = 1 if stuck else 0
    return stuck
