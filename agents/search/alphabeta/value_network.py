"""What a position is worth without search, by a small network that guided alpha-beta reads.

Its input is what the tables of :mod:`agents.search.alphabeta.evaluation` are indexed by: the seeds
of each two pits that belong together, once for each phase of the stores. Each of these 16 pairs
names a row of 32 numbers, and the 16 rows are added up. The first of the 32 sums counts as it is.
The others are rectified; half of them are added to it, half of them subtracted. No layer of weights
follows: as a rectifier passes positive factors on, they are in the rows already.

So an evaluation is 16 additions of 64 bytes, which compile to vector instructions, as in the first
layer of an NNUE (https://www.chessprogramming.org/NNUE). ``training/fit.py`` fits the
rows and writes ``agents/search/alphabeta/value_network.npz``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from agents.search.alphabeta.evaluation import (
    BYTE_BITS,
    FACES_HOUSE,
    LANE,
    LIMIT,
    MY_BACK,
    MY_HOUSE,
    PHASES,
    SCALE,
    TABLES,
    THEIR_BACK,
    THEIR_HOUSE,
    TOP_BIT,
    pairs,
    phase,
    read_fitted,
)
from bao_env.engine.bits import TOPS, U, byteswap
from bao_env.engine.compile import jit, jit_inline
from bao_env.engine.layout import HOUSE
from bao_env.engine.position import other_owns_house, owns_house, read_at
from bao_env.engine.ruleset import RULESETS, Ruleset

UNITS: Final = 32
"""Numbers in a row."""
LEVELS: Final = 16
"""What a count of seeds is rounded to: 0 to 12; 13 for 14 to 16; 14 for 17 to 21; 15 for more."""
PAIRS: Final = 16
"""Rows that are added up: eight of front pits that face each other, four of each back row."""
TABLE_ROWS: Final = LEVELS * LEVELS
ROWS: Final = PHASES * TABLES * TABLE_ROWS
"""Rows of one rule set."""
ROW_SCALE: Final = 8 * SCALE
"""Units of a row's numbers in one logit."""
ROW_LIMIT: Final = 32767 // PAIRS
"""Numbers in a row lie within plus and minus this, so that no sum leaves the int16."""

SIGNS: Final = (1,) * (UNITS // 2) + (-1,) * (UNITS // 2)
"""Whether a unit is added or subtracted."""

FILE: Final = Path(__file__).with_name("value_network.npz")
WITHOUT_NETWORK: Final = ("kujifunza",)
"""The published rule sets that no network was fitted to. Guided alpha-beta evaluates their
positions with the tables of :mod:`agents.search.alphabeta.evaluation`."""

_SCALE_SHIFT: Final = 3  # ROW_SCALE to SCALE

# Added to a count below 128, these set its top bit from 12, 14, 17 and 22 seeds on.
_TO_TOP_FROM_12 = U(0x7474747474747474)
_TO_TOP_FROM_14 = U(0x7272727272727272)
_TO_TOP_FROM_17 = U(0x6F6F6F6F6F6F6F6F)
_TO_TOP_FROM_22 = U(0x6A6A6A6A6A6A6A6A)
_TWELVES = U(0x0C0C0C0C0C0C0C0C)
_LEVEL_BITS = U(4)
_LANE_BITS = 16


@jit_inline
def _levels(row):
    """A row of eight counts with each rounded to its level."""
    above = ((row + _TO_TOP_FROM_12) & TOPS) >> TOP_BIT
    whole = (above << BYTE_BITS) - above
    level = (row & ~whole) | (_TWELVES & whole)
    level += ((row + _TO_TOP_FROM_14) & TOPS) >> TOP_BIT
    level += ((row + _TO_TOP_FROM_17) & TOPS) >> TOP_BIT
    return level + (((row + _TO_TOP_FROM_22) & TOPS) >> TOP_BIT)


@jit_inline
def _row(base, table, lanes, lane):
    """The row that lane ``lane`` of some pairs names in table ``table``."""
    return base + table * TABLE_ROWS + np.int64((lanes >> U(lane * _LANE_BITS)) & LANE)


@jit_inline
def rows_of(packed):
    """The numbers of the 16 rows of a position, int64.

    First come those of the front pits from left to right, then those of the mover's back row and of
    the opponent's.
    """
    meta = packed.meta
    front, facing = _levels(packed.front), _levels(byteswap(packed.other_front))
    back, other_back = _levels(packed.back), _levels(packed.other_back)
    even = pairs(front, facing, _LEVEL_BITS)
    odd = pairs(front >> BYTE_BITS, facing >> BYTE_BITS, _LEVEL_BITS)
    mine = pairs(back, back >> BYTE_BITS, _LEVEL_BITS)
    theirs = pairs(other_back, other_back >> BYTE_BITS, _LEVEL_BITS)
    base = np.int64(phase(meta)) * (TABLES * TABLE_ROWS)
    my_house = MY_HOUSE if owns_house(meta) else HOUSE
    their_house = THEIR_HOUSE if other_owns_house(meta) else FACES_HOUSE
    return (
        _row(base, 0, even, 0),
        _row(base, 1, odd, 0),
        _row(base, 2, even, 1),
        _row(base, their_house, odd, 1),
        _row(base, my_house, even, 2),
        _row(base, 5, odd, 2),
        _row(base, 6, even, 3),
        _row(base, 7, odd, 3),
        _row(base, MY_BACK, mine, 0),
        _row(base, MY_BACK + 1, mine, 1),
        _row(base, MY_BACK + 2, mine, 2),
        _row(base, MY_BACK + 3, mine, 3),
        _row(base, THEIR_BACK, theirs, 0),
        _row(base, THEIR_BACK + 1, theirs, 1),
        _row(base, THEIR_BACK + 2, theirs, 2),
        _row(base, THEIR_BACK + 3, theirs, 3),
    )


def output(rows, indices):
    """What the network makes of rows: their sum, rectified but for its first unit, added up.

    Args:
        rows: int16[ROWS, UNITS].
        indices: a tuple of int64.

    Returns:
        int64, in :data:`ROW_SCALE` a logit.
    """
    total = rows[np.array(indices)].sum(axis=0, dtype=np.int64)
    total[1:] = total[1:].clip(min=0)
    return total @ np.array(SIGNS)


@intrinsic
def _compiled_output(_context: Any, rows: Any, indices: Any) -> Any:
    """:func:`output` in vectors of :data:`UNITS` numbers, for the loop that numba would make of it
    adds up one number at a time."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        narrow = ir.VectorType(ir.IntType(16), UNITS)
        wide = ir.VectorType(ir.IntType(32), UNITS)
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        total = ir.Constant(narrow, [0] * UNITS)
        for i in range(len(indices)):
            start = builder.mul(
                builder.extract_value(arguments[1], i), ir.Constant(ir.IntType(64), UNITS)
            )
            pointer = builder.bitcast(builder.gep(data, [start]), narrow.as_pointer())
            total = builder.add(total, builder.load(pointer, align=2))
        least = ir.Constant(narrow, [np.iinfo(np.int16).min] + [0] * (UNITS - 1))
        total = builder.select(builder.icmp_signed(">", total, least), total, least)
        signed = builder.mul(builder.sext(total, wide), ir.Constant(wide, list(SIGNS)))
        add_up = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.IntType(32), [wide]),
            f"llvm.vector.reduce.add.v{UNITS}i32",
        )
        return builder.sext(builder.call(add_up, [signed]), ir.IntType(64))

    return types.int64(rows, indices), generate


@overload(output)
def _output_in_numba(rows, indices):
    """What compiled code calls in place of :func:`output`."""
    return lambda rows, indices: _compiled_output(rows, indices)


@jit
def evaluate_by_network(rows, packed):
    """The value of a position for the player to move, int64, in :data:`SCALE` a logit.

    Args:
        rows: int16[ROWS, UNITS].
        packed: the position, a :class:`Packed`.
    """
    value = output(rows, rows_of(packed)) >> _SCALE_SHIFT
    return max(-LIMIT, min(LIMIT, value))


@jit
def network_features(positions, out):
    """The rows that each position's evaluation adds up.

    Args:
        positions: uint64[B, 6].
        out: int32[B, PAIRS], filled.
    """
    for g in range(positions.shape[0]):
        found = rows_of(read_at(positions, g))
        for i in range(PAIRS):
            out[g, i] = found[i]


def check_rows(rows: npt.NDArray[np.int16]) -> None:
    """Refuse rows that compiled code would read beyond, or whose sums would not fit.

    Raises:
        ValueError: they are not int16[ROWS, UNITS], or a number is beyond :data:`ROW_LIMIT`.
    """
    if rows.shape != (ROWS, UNITS) or rows.dtype != np.int16:
        raise ValueError(f"rows {rows.dtype}{rows.shape}: expected int16[{ROWS}, {UNITS}]")
    if np.abs(rows.astype(np.int32)).max() > ROW_LIMIT:
        raise ValueError(f"rows with numbers beyond {ROW_LIMIT}: 16 of them must fit an int16")


@cache
def load_rows(ruleset: Ruleset) -> npt.NDArray[np.int16] | None:
    """Return the fitted rows of a rule set, int16[ROWS, UNITS].

    None for a rule set that no network was fitted to: one of :data:`WITHOUT_NETWORK`, or one of
    your own.

    Raises:
        ValueError: the file is damaged; see :func:`.evaluation.read_fitted`.
    """
    if ruleset != RULESETS.get(ruleset.name) or ruleset.name in WITHOUT_NETWORK:
        return None
    rows = read_fitted(FILE, (ROWS, UNITS), WITHOUT_NETWORK)[ruleset.name]
    try:
        check_rows(rows)
    except ValueError as error:
        raise ValueError(f"{FILE}: {ruleset.name}: {error}") from error
    return in_cache_lines(rows)


def in_cache_lines(rows: npt.NDArray[np.int16]) -> npt.NDArray[np.int16]:
    """A copy of rows in which each is a line of the cache, 64 bytes."""
    line = 64 // rows.itemsize
    memory = np.empty(rows.size + line, rows.dtype)
    start = -memory.ctypes.data % 64 // rows.itemsize
    copy = memory[start : start + rows.size].reshape(rows.shape)
    copy[:] = rows
    return copy
