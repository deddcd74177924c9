"""Evaluate a position without a search: a sum over 16 pairs of pits.

A pair is two neighbouring pits of a back row, or a front pit and the one that it faces. Each pair
has a table in each phase of the stores, with a cell for every two counts of seeds that its pits may
hold. A pair with an owned house has its own table. A position selects 16 cells.

The value is the sum of one number per cell (:class:`Tables`): a logistic model of who wins, which
treats counts of seeds as categories rather than numbers. The network of guided search has a row of
numbers per cell (:mod:`bao_agents.search.alphabeta.value_network`).
``python -m bao_training.fit`` fits both to self-play.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bao_agents.array_types import Int16Array
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
from bao_env.engine.ruleset import RULESETS, Ruleset

SCALE = 200
"""Units of an evaluation per logit: at +200, e games are won for each one lost."""
LIMIT = 20_000
"""Evaluations lie within plus and minus this; proven results lie beyond."""

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

COUNT_BITS = 5
"""Bits of a count in :class:`Tables`: 0 to 30 seeds, or more."""
CELLS = PHASES * TABLES << 2 * COUNT_BITS
"""Cells per rule set."""

FILE = Path(__file__).with_name("evaluation.npz")
FITTED = ("zanzibar", "kibao", "kujifunza", "dutch", "malawi")
"""The rule sets that the file must contain; it may contain others."""

_PHASE_STORES = U(14)  # seeds in both stores that make a phase
_PHASE_LIMIT = U(PHASES - 1)

# Rows of counts, one byte per pit, and lanes of two counts, 16 bits each.
_TO_TOP_FROM_32 = U(0x6060606060606060)  # added to a count, sets its top bit from 32 on
TOP_BIT = U(7)
_COUNT_MASK = U(0x1F1F1F1F1F1F1F1F)
BYTE_BITS = U(8)
_EVEN_BYTES = U(0x00FF00FF00FF00FF)
_LANE = U(0xFFFF)
_LANE_BITS = 16


class Tables(NamedTuple):
    """The evaluator with one number per cell."""

    cells: Int16Array
    """int16[CELLS], in units of :data:`SCALE` per logit."""


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
def _limited(row):
    """Return a row with its counts limited to 31."""
    above = ((row + _TO_TOP_FROM_32) & TOPS) >> TOP_BIT
    return (row | ((above << BYTE_BITS) - above)) & _COUNT_MASK


@jit_inline
def _cells_of(packed):
    """Return the 16 cells of a position in :class:`Tables`; see :func:`pair_cells`."""
    return pair_cells(
        packed.meta,
        _limited(packed.front),
        _limited(byteswap(packed.other_front)),
        _limited(packed.back),
        _limited(packed.other_back),
        COUNT_BITS,
    )


@jit
def evaluate_by_tables(tables, packed):
    """Return the value of a position for its mover, int64, in units of :data:`SCALE` per logit.

    Args:
        tables: the :class:`Tables`.
        packed: the position, a :class:`Packed`.
    """
    cells, of = tables.cells, _cells_of(packed)
    # Written term by term: a loop would keep the 16 numbers in memory and take twice as long.
    front = np.int64(cells[of[0]]) + cells[of[1]] + cells[of[2]] + cells[of[3]]
    front += np.int64(cells[of[4]]) + cells[of[5]] + cells[of[6]] + cells[of[7]]
    back = np.int64(cells[of[8]]) + cells[of[9]] + cells[of[10]] + cells[of[11]]
    back += np.int64(cells[of[12]]) + cells[of[13]] + cells[of[14]] + cells[of[15]]
    return max(-LIMIT, min(LIMIT, front + back))


@jit
def table_features(positions, out):
    """List the cells that each position selects.

    Args:
        positions: uint64[B, 6].
        out: int32[B, PAIRS], filled.
    """
    for g in range(positions.shape[0]):
        cells = _cells_of(read_at(positions, g))
        for i in range(PAIRS):
            out[g, i] = cells[i]


def read_fitted(
    file: Path, shape: tuple[int, ...], names: Collection[str]
) -> dict[str, Int16Array]:
    """Return the fitted numbers of published rule sets, int16, by rule set.

    Args:
        file: the file, one of this package's.
        shape: the shape of each rule set's numbers.
        names: the rule sets that the file must contain.

    Raises:
        ValueError: the file cannot be read, or an array is missing or has another shape or dtype.
    """
    try:
        with np.load(file, allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
    except Exception as error:  # a damaged archive raises almost anything
        raise ValueError(
            f"{file} cannot be read ({error!r:.100}): take it from the repository again"
        ) from error
    for name in (*names, *found):
        array = found.get(name)
        if array is None or array.shape != shape or array.dtype != np.int16:
            has = "none" if array is None else f"{array.dtype}{list(array.shape)}"
            raise ValueError(
                f"{file}: expected int16{list(shape)} for the rule set {name}, found {has}: "
                "take it from the repository again"
            )
    return {name: found[name] for name in RULESETS if name in found}


@cache
def _fitted() -> dict[str, Int16Array]:
    """Return the cells in :data:`FILE`, by rule set."""
    return read_fitted(FILE, (CELLS,), FITTED)


def load_tables(ruleset: Ruleset) -> Tables:
    """Return the fitted tables of a rule set.

    A rule set without tables gets those of the most similar one.

    Raises:
        ValueError: the file is damaged; see :func:`read_fitted`.
    """
    fitted = _fitted()
    settings = ruleset.to_dict()

    def differences(name: str) -> int:
        other = RULESETS[name].to_dict()
        return sum(other[key] != value for key, value in settings.items() if key != "name")

    return Tables(fitted[min(fitted, key=differences)])
