"""Find the patterns of a position, which alpha-beta's evaluators read.

A position has 16 patterns, one for each pair of pits. A pair is two neighbouring pits of a back
row, or a front pit and the pit that it faces. Each pair has a table in each phase of the stores,
with a pattern for each combination of the two pits' counts of seeds. A pair with an owned house has
its own table. Counts are rounded, finely or coarsely (:data:`FINE`, :data:`COARSE`).

An evaluator has one number for each fine pattern (:mod:`bao_agents.evaluators.tables`), or a vector
for each coarse one (:mod:`bao_agents.evaluators.nnue`).
"""

from __future__ import annotations

import numpy as np

from bao_env.compiled.compile import jit_inline
from bao_env.engine.bits import ONE, TOPS, U, byteswap
from bao_env.engine.layout import HOUSE
from bao_env.engine.position import (
    Index,
    Rows,
    other_owns_house,
    other_store_of,
    owns_house,
    store_of,
)

PHASES = 4
"""The number of phases: no seeds in the stores (mtaji), 1 to 14, 15 to 28, and more."""
PAIRS = 16
"""The number of patterns of a position."""
# Tables of a phase: eight for the pairs of front pits, two for front pairs with an owned house, and
# four for the pairs of each player's back row.
MY_HOUSE, THEIR_HOUSE, MY_BACK, THEIR_BACK = 8, 9, 10, 14
TABLES = 18
FACES_HOUSE = 7 - HOUSE
"""The mover's front pit that the opponent's house faces."""

FINE = 5
"""Bits of a finely rounded count: 0 to 30; 31 for more seeds."""
COARSE = 4
"""Bits of a coarsely rounded count: 0 to 11; 12 for 12 and 13 seeds; 13 for 14 to 16; 14 for 17 to
21; 15 for more."""

_PHASE_STORES = U(14)  # seeds in both stores for each phase
_PHASE_LIMIT = U(PHASES - 1)

# Rows of counts, one byte per pit, and lanes of two counts, 16 bits each.
_TOP_BIT = U(7)
_BYTE_BITS = U(8)
_EVEN_BYTES = U(0x00FF00FF00FF00FF)
_LANE = U(0xFFFF)
_LANE_BITS = 16

# Added to a count below 128, these set its top bit if it is at least 12, 14, 17, 22 or 32.
_TO_TOP_FROM_12 = U(0x7474747474747474)
_TO_TOP_FROM_14 = U(0x7272727272727272)
_TO_TOP_FROM_17 = U(0x6F6F6F6F6F6F6F6F)
_TO_TOP_FROM_22 = U(0x6A6A6A6A6A6A6A6A)
_TO_TOP_FROM_32 = U(0x6060606060606060)
_TWELVES = U(0x0C0C0C0C0C0C0C0C)
_COUNT_MASK = U(0x1F1F1F1F1F1F1F1F)


def number_of_patterns(bits: int) -> int:
    """Return the number of possible patterns, for counts of ``bits`` bits."""
    return PHASES * TABLES << 2 * bits


@jit_inline
def _at_least(row: U, to_top: U) -> U:
    """Return a 1 in each byte whose count reaches a limit, and 0 in the others."""
    return ((row + to_top) & TOPS) >> _TOP_BIT


@jit_inline
def _rounded(row: U, bits: int) -> U:
    """Return a row of eight counts, each rounded to ``bits`` bits."""
    if bits == FINE:
        reached = _at_least(row, _TO_TOP_FROM_32)
        return (row | ((reached << _BYTE_BITS) - reached)) & _COUNT_MASK
    reached = _at_least(row, _TO_TOP_FROM_12)
    byte_mask = (reached << _BYTE_BITS) - reached
    level = (row & ~byte_mask) | (_TWELVES & byte_mask)
    level += _at_least(row, _TO_TOP_FROM_14) + _at_least(row, _TO_TOP_FROM_17)
    return level + _at_least(row, _TO_TOP_FROM_22)


@jit_inline
def _lanes(first: U, second: U, bits: int) -> U:
    """Return four lanes of 16 bits: the even bytes of ``first``, and of ``second`` shifted up."""
    return (first & _EVEN_BYTES) | ((second & _EVEN_BYTES) << U(bits))


@jit_inline
def _pattern(table: Index, bits: int, lanes: U, lane: int) -> np.int64:
    """Return the pattern of a pair, whose rounded counts are in a lane, with the pair's table."""
    return (np.int64(table) << 2 * bits) + np.int64((lanes >> U(lane * _LANE_BITS)) & _LANE)


@jit_inline
def patterns_of(rows: Rows, bits: int) -> tuple[np.int64, ...]:
    """Return the 16 patterns of a position, int64, each below :func:`number_of_patterns`.

    The front pits come first, from left to right, then the mover's back row, then the opponent's.

    Args:
        rows: the position, a :class:`Rows`.
        bits: :data:`FINE` or :data:`COARSE`.
    """
    meta = rows.meta
    front, facing = _rounded(rows.front, bits), _rounded(byteswap(rows.other_front), bits)
    back, other_back = _rounded(rows.back, bits), _rounded(rows.other_back, bits)
    even = _lanes(front, facing, bits)
    odd = _lanes(front >> _BYTE_BITS, facing >> _BYTE_BITS, bits)
    mine = _lanes(back, back >> _BYTE_BITS, bits)
    theirs = _lanes(other_back, other_back >> _BYTE_BITS, bits)
    stores = store_of(meta) + other_store_of(meta)
    phase = min((stores + _PHASE_STORES - ONE) // _PHASE_STORES, _PHASE_LIMIT)
    base = np.int64(phase) * TABLES
    my_house = MY_HOUSE if owns_house(meta) else HOUSE
    their_house = THEIR_HOUSE if other_owns_house(meta) else FACES_HOUSE
    return (
        _pattern(base, bits, even, 0),
        _pattern(base + 1, bits, odd, 0),
        _pattern(base + 2, bits, even, 1),
        _pattern(base + their_house, bits, odd, 1),
        _pattern(base + my_house, bits, even, 2),
        _pattern(base + 5, bits, odd, 2),
        _pattern(base + 6, bits, even, 3),
        _pattern(base + 7, bits, odd, 3),
        _pattern(base + MY_BACK, bits, mine, 0),
        _pattern(base + MY_BACK + 1, bits, mine, 1),
        _pattern(base + MY_BACK + 2, bits, mine, 2),
        _pattern(base + MY_BACK + 3, bits, mine, 3),
        _pattern(base + THEIR_BACK, bits, theirs, 0),
        _pattern(base + THEIR_BACK + 1, bits, theirs, 1),
        _pattern(base + THEIR_BACK + 2, bits, theirs, 2),
        _pattern(base + THEIR_BACK + 3, bits, theirs, 3),
    )
