"""The transposition table of alpha-beta: what has been found out about positions met before.

A table is uint64[4 * slots], two entries of two words a slot: the position's hash, then value +
2^15 in bits 0..15, depth in 16..23, bound in 24..25, action in 26..32, and the epoch of the
search from 33 on. Only entries of the search under way count.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bao_env.engine.bits import BYTE, U
from bao_env.engine.compile import jit, jit_inline

WIN: Final = 32_000
"""Value of a game won at once; a win within n plies is worth ``WIN - n``."""
PROVEN: Final = WIN - 1000
"""Values beyond this, either way, are wins and losses that the search has proved."""
NO_ACTION: Final = 64
"""No action."""

TABLE_BITS: Final = 20
"""Size of a table: 2^20 pairs of entries, 32 MiB, for each thread."""
SMALL_TABLE_BITS: Final = 15
"""The same for shallow searches: 1 MiB, which stays in the cache."""

_BOUND_LOWER: Final = 1
_BOUND_UPPER: Final = 2
_BOUND_EXACT: Final = 3
_3 = U(3)
_16 = U(16)
_24 = U(24)
_26 = U(26)
_29 = U(29)
_32 = U(32)
_33 = U(33)
_127 = U(127)
_K0 = U(0x9E3779B97F4A7C15)
_K1 = U(0xC2B2AE3D27D4EB4F)
_K2 = U(0x165667B19E3779F9)
_VALUE = U(0xFFFF)
_VALUE_BIAS = np.int64(1 << 15)


@jit_inline
def position_hash(packed):
    """64 bits from a position."""
    h = (packed.front ^ (packed.front >> _29)) * _K0
    h = ((h ^ (h >> _32)) + packed.back) * _K1
    h = ((h ^ (h >> _29)) + packed.other_front) * _K2
    h = ((h ^ (h >> _32)) + packed.other_back) * _K0
    h = ((h ^ (h >> _29)) + packed.meta) * _K1
    return h ^ (h >> _32)


@jit
def probe(table, mask, epoch, key, depth, deeper, alpha, beta, ply):
    """Look a position up: whether its value is known, the value, and the action to try first.

    Args:
        table: see above.
        mask: its slots less one.
        epoch: of this search.
        key: the position's hash.
        depth: the value must be of this very depth,
        deeper: or, if this is true, of at least this depth.
        alpha, beta: a bound beyond them is as good as a value.
        ply: of the position; wins count from the root.
    """
    slot = np.int64(key & mask) * 4
    for entry in (slot, slot + 2):
        data = table[entry + 1]
        if table[entry] == key and (data >> _33) == epoch:
            action = np.int64((data >> _26) & _127)
            value = np.int64(data & _VALUE) - _VALUE_BIAS
            if value > PROVEN:  # kept as plies from the position, used as plies from the root
                value -= ply
            elif value < -PROVEN:
                value += ply
            bound = np.int64((data >> _24) & _3)
            searched = np.int64((data >> _16) & BYTE)
            known = (searched == depth or (deeper and searched > depth)) and (
                bound == _BOUND_EXACT
                or (bound == _BOUND_LOWER and value >= beta)
                or (bound == _BOUND_UPPER and value <= alpha)
            )
            return known, value, action
    return False, np.int64(0), np.int64(NO_ACTION)


@jit
def keep(table, mask, epoch, key, depth, alpha, beta, ply, value, action):
    """Enter a position that has been searched; the first of a pair keeps the deepest."""
    bound = _BOUND_EXACT
    if value <= alpha:
        bound = _BOUND_UPPER
    elif value >= beta:
        bound = _BOUND_LOWER
    if value > PROVEN:
        value += ply
    elif value < -PROVEN:
        value -= ply
    slot = np.int64(key & mask) * 4
    old = table[slot + 1]
    if (old >> _33) == epoch and np.int64((old >> _16) & BYTE) > depth:
        slot += 2
    table[slot] = key
    table[slot + 1] = (
        U(value + _VALUE_BIAS) | (U(depth) << _16) | (U(bound) << _24) | (U(action) << _26)
    ) | (epoch << _33)
