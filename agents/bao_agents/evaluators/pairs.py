"""Select the cells of a position, by which alpha-beta's evaluations read it.

A position selects 16 cells, one for each pair of pits. A pair is two neighbouring pits of a back
row, or a front pit and the one that it faces. Each pair has a table in each phase of the stores,
with a cell for every two counts of seeds that its pits may hold. A pair with an owned house has its
own table. An evaluation has one number per cell
(:mod:`bao_agents.evaluators.tables`), or a row of :data:`UNITS` numbers
(:mod:`bao_agents.evaluators.nnue`), which training learns
(:mod:`bao_agents.evaluators.learning`).
"""

from __future__ import annotations

import numpy as np

from bao_agents.support.array_types import Int16Array
from bao_env.engine.bits import ONE, TOPS, U, byteswap
from bao_env.engine.compile import jit, jit_inline
from bao_env.engine.layout import HOUSE
from bao_env.engine.position import (
    other_owns_house,
    other_store_of,
    owns_house,
    read_at,
    store_of,
)

PHASES = 4
"""Stores spent (mtaji); 1 to 14 seeds in them; 15 to 28; more."""
PAIRS = 16
"""Cells that a position selects."""
# Tables of a phase: eight of the front pits and those they face, two of those with an owned house,
# and four of each player's back pits.
MY_HOUSE, THEIR_HOUSE, MY_BACK, THEIR_BACK = 8, 9, 10, 14
TABLES = 18
FACES_HOUSE = 7 - HOUSE
"""The mover's front pit that the opponent's house faces."""


UNITS = 32
"""Numbers in a row."""
LEVEL_BITS = 4
"""Bits of a level. For rows, a count of seeds is rounded to one: 0 to 12; 13 for 14 to 16; 14 for
17 to 21; 15 for more."""
ROWS = PHASES * TABLES << 2 * LEVEL_BITS
"""Rows per rule set."""
ROW_SCALE = 1600
"""Units of a row's numbers per logit."""
ROW_LIMIT = 32767 // PAIRS
"""Numbers in a row lie within plus and minus this, so no sum overflows an int16."""
SIGNS = (1,) * (UNITS // 2) + (-1,) * (UNITS // 2)
"""Whether a unit is added or subtracted."""

_PHASE_STORES = U(14)  # seeds in both stores that make a phase
_PHASE_LIMIT = U(PHASES - 1)

# Rows of counts, one byte per pit, and lanes of two counts, 16 bits each.
TOP_BIT = U(7)
BYTE_BITS = U(8)
_EVEN_BYTES = U(0x00FF00FF00FF00FF)
_LANE = U(0xFFFF)
_LANE_BITS = 16

# Added to a count below 128, these set its top bit if it is at least 12, 14, 17 or 22.
_TO_TOP_FROM_12 = U(0x7474747474747474)
_TO_TOP_FROM_14 = U(0x7272727272727272)
_TO_TOP_FROM_17 = U(0x6F6F6F6F6F6F6F6F)
_TO_TOP_FROM_22 = U(0x6A6A6A6A6A6A6A6A)
_TWELVES = U(0x0C0C0C0C0C0C0C0C)


@jit_inline
def _lanes(first, second, width):
    """Return four lanes of 16 bits: bytes 0, 2, 4, 6 of two rows, the second ``width`` bits up."""
    return (first & _EVEN_BYTES) | ((second & _EVEN_BYTES) << U(width))


@jit_inline
def _cell(table, width, lanes, lane):
    """Return the cell that a lane of two counts selects in a table."""
    return (np.int64(table) << 2 * width) + np.int64((lanes >> U(lane * _LANE_BITS)) & _LANE)


@jit_inline
def pair_cells(meta, front, facing, back, other_back, width):
    """Return the 16 cells that a position selects, int64.

    First come those of the front pits from left to right, then those of the mover's back row, then
    those of the opponent's.

    Args:
        meta: the position's META word.
        front, facing: the mover's front row and the one it faces, pit by pit: counts of ``width``
            bits, one per byte.
        back, other_back: the mover's and the opponent's back row.
        width: bits of a count.
    """
    even = _lanes(front, facing, width)
    odd = _lanes(front >> BYTE_BITS, facing >> BYTE_BITS, width)
    mine = _lanes(back, back >> BYTE_BITS, width)
    theirs = _lanes(other_back, other_back >> BYTE_BITS, width)
    stores = store_of(meta) + other_store_of(meta)
    phase = min((stores + _PHASE_STORES - ONE) // _PHASE_STORES, _PHASE_LIMIT)
    base = np.int64(phase) * TABLES
    my_house = MY_HOUSE if owns_house(meta) else HOUSE
    their_house = THEIR_HOUSE if other_owns_house(meta) else FACES_HOUSE
    return (
        _cell(base, width, even, 0),
        _cell(base + 1, width, odd, 0),
        _cell(base + 2, width, even, 1),
        _cell(base + their_house, width, odd, 1),
        _cell(base + my_house, width, even, 2),
        _cell(base + 5, width, odd, 2),
        _cell(base + 6, width, even, 3),
        _cell(base + 7, width, odd, 3),
        _cell(base + MY_BACK, width, mine, 0),
        _cell(base + MY_BACK + 1, width, mine, 1),
        _cell(base + MY_BACK + 2, width, mine, 2),
        _cell(base + MY_BACK + 3, width, mine, 3),
        _cell(base + THEIR_BACK, width, theirs, 0),
        _cell(base + THEIR_BACK + 1, width, theirs, 1),
        _cell(base + THEIR_BACK + 2, width, theirs, 2),
        _cell(base + THEIR_BACK + 3, width, theirs, 3),
    )


@jit_inline
def _levels(row):
    """Return a row of eight counts, each rounded to its level."""
    above = ((row + _TO_TOP_FROM_12) & TOPS) >> TOP_BIT
    whole = (above << BYTE_BITS) - above
    level = (row & ~whole) | (_TWELVES & whole)
    level += ((row + _TO_TOP_FROM_14) & TOPS) >> TOP_BIT
    level += ((row + _TO_TOP_FROM_17) & TOPS) >> TOP_BIT
    return level + (((row + _TO_TOP_FROM_22) & TOPS) >> TOP_BIT)


@jit_inline
def rows_of(packed):
    """Return the 16 rows that a position adds up; see :func:`pair_cells`."""
    return pair_cells(
        packed.meta,
        _levels(packed.front),
        _levels(byteswap(packed.other_front)),
        _levels(packed.back),
        _levels(packed.other_back),
        LEVEL_BITS,
    )


@jit
def list_rows(positions, out):
    """List the rows that each position's evaluation adds up.

    Args:
        positions: uint64[B, 6].
        out: int32[B, PAIRS], filled.
    """
    for g in range(positions.shape[0]):
        rows = rows_of(read_at(positions, g))
        for i in range(PAIRS):
            out[g, i] = rows[i]


def check_rows(rows: Int16Array) -> Int16Array:
    """Return rows if an evaluation can use them.

    Raises:
        ValueError: they are not int16[ROWS, UNITS], or a number is beyond :data:`ROW_LIMIT`.
    """
    if rows.shape != (ROWS, UNITS) or rows.dtype != np.int16:
        raise ValueError(f"rows {rows.dtype}{list(rows.shape)}: expected int16[{ROWS}, {UNITS}]")
    if np.abs(rows.astype(np.int32)).max() > ROW_LIMIT:
        raise ValueError(f"rows with numbers beyond {ROW_LIMIT}: 16 of them must fit an int16")
    return rows
