"""Evaluate a position without a search, with the small network of guided alpha-beta.

A position selects 16 cells, as in the tables of :mod:`bao_agents.search.alphabeta.evaluation`, with
counts of seeds rounded to levels. Each cell is a row of 32 numbers, and the 16 rows are added up.
The first of the 32 sums is used as it is. The others are rectified, then half of them are added to
it and half subtracted. No layer of weights follows: a rectifier preserves positive factors, so the
rows already contain them.

So an evaluation is 16 additions of 64 bytes, which compile to vector instructions, as in the first
layer of an NNUE (https://www.chessprogramming.org/NNUE). ``python -m bao_training.fit``
fits the rows and writes ``agents/bao_agents/search/alphabeta/value_network.npz``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from bao_agents.array_types import Int16Array
from bao_agents.search.alphabeta.evaluation import (
    BYTE_BITS,
    LIMIT,
    PAIRS,
    PHASES,
    SCALE,
    TABLES,
    TOP_BIT,
    evaluate_by_tables,
    pair_cells,
    read_fitted,
)
from bao_env.engine.bits import TOPS, U, byteswap
from bao_env.engine.compile import jit, jit_inline
from bao_env.engine.position import read_at
from bao_env.engine.ruleset import RULESETS, Ruleset

UNITS = 32
"""Numbers in a row."""
LEVEL_BITS = 4
"""Bits of a level. A count of seeds is rounded to one: 0 to 12; 13 for 14 to 16; 14 for 17 to 21;
15 for more."""
ROWS = PHASES * TABLES << 2 * LEVEL_BITS
"""Rows per rule set."""
ROW_SCALE = 8 * SCALE
"""Units of a row's numbers per logit."""
ROW_LIMIT = 32767 // PAIRS
"""Numbers in a row lie within plus and minus this, so no sum overflows an int16."""

SIGNS = (1,) * (UNITS // 2) + (-1,) * (UNITS // 2)
"""Whether a unit is added or subtracted."""

FILE = Path(__file__).with_name("value_network.npz")
FITTED = ("zanzibar", "kibao", "dutch", "malawi")
"""The rule sets that the file must contain. Under others, guided alpha-beta evaluates positions
with the tables of :mod:`bao_agents.search.alphabeta.evaluation`."""

_SCALE_SHIFT = 3  # ROW_SCALE to SCALE

# Added to a count below 128, these set its top bit if it is at least 12, 14, 17 or 22.
_TO_TOP_FROM_12 = U(0x7474747474747474)
_TO_TOP_FROM_14 = U(0x7272727272727272)
_TO_TOP_FROM_17 = U(0x6F6F6F6F6F6F6F6F)
_TO_TOP_FROM_22 = U(0x6A6A6A6A6A6A6A6A)
_TWELVES = U(0x0C0C0C0C0C0C0C0C)


class Network(NamedTuple):
    """The evaluator with a row of numbers per cell."""

    rows: Int16Array
    """int16[ROWS, UNITS]; each row fills a line of the processor's cache."""


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
def _rows_of(packed):
    """Return the 16 rows that a position adds up; see :func:`.evaluation.pair_cells`."""
    return pair_cells(
        packed.meta,
        _levels(packed.front),
        _levels(byteswap(packed.other_front)),
        _levels(packed.back),
        _levels(packed.other_back),
        LEVEL_BITS,
    )


def output(rows, indices):
    """Return the network's output: rectify the sum of rows except its first unit, and add it up.

    Args:
        rows: int16[ROWS, UNITS].
        indices: a tuple of int64.

    Returns:
        int64, in units of :data:`ROW_SCALE` per logit.
    """
    total = rows[np.array(indices)].sum(axis=0, dtype=np.int64)
    total[1:] = total[1:].clip(min=0)
    return total @ np.array(SIGNS)


@intrinsic
def _compiled_output(_context: Any, rows: Any, indices: Any) -> Any:
    """Compute :func:`output` in vectors of :data:`UNITS` numbers.

    A loop that numba compiles would add one number at a time.
    """

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
    """Return what compiled code calls instead of :func:`output`."""
    return lambda rows, indices: _compiled_output(rows, indices)


@jit
def evaluate_by_network(network, packed):
    """Return the value of a position for its mover, int64, in units of :data:`SCALE` per logit.

    Args:
        network: the :class:`Network`.
        packed: the position, a :class:`Packed`.
    """
    value = output(network.rows, _rows_of(packed)) >> _SCALE_SHIFT
    return max(-LIMIT, min(LIMIT, value))


def evaluate(evaluator, packed):
    """Return the value of a position for its mover, by :class:`Tables` or a :class:`Network`."""
    by_network = isinstance(evaluator, Network)
    return (evaluate_by_network if by_network else evaluate_by_tables)(evaluator, packed)


@overload(evaluate, inline="always")
def _evaluate_in_numba(evaluator, packed):
    """Return what compiled code calls instead of :func:`evaluate`."""
    if evaluator.instance_class is Network:
        return lambda evaluator, packed: evaluate_by_network(evaluator, packed)
    return lambda evaluator, packed: evaluate_by_tables(evaluator, packed)


@jit
def network_features(positions, out):
    """List the rows that each position's evaluation adds up.

    Args:
        positions: uint64[B, 6].
        out: int32[B, PAIRS], filled.
    """
    for g in range(positions.shape[0]):
        rows = _rows_of(read_at(positions, g))
        for i in range(PAIRS):
            out[g, i] = rows[i]


def network_of(rows: Int16Array) -> Network:
    """Return the evaluator with a copy of these rows.

    Raises:
        ValueError: they are not int16[ROWS, UNITS], or a number is beyond :data:`ROW_LIMIT`.
    """
    if rows.shape != (ROWS, UNITS) or rows.dtype != np.int16:
        raise ValueError(f"rows {rows.dtype}{rows.shape}: expected int16[{ROWS}, {UNITS}]")
    if np.abs(rows.astype(np.int32)).max() > ROW_LIMIT:
        raise ValueError(f"rows with numbers beyond {ROW_LIMIT}: 16 of them must fit an int16")
    line = 64 // rows.itemsize
    memory = np.empty(rows.size + line, rows.dtype)
    start = -memory.ctypes.data % 64 // rows.itemsize
    copy = memory[start : start + rows.size].reshape(rows.shape)
    copy[:] = rows
    return Network(copy)


@cache
def load_network(ruleset: Ruleset) -> Network | None:
    """Return the fitted network of a rule set.

    Return None for a rule set that no network was fitted to, for example yours.

    Raises:
        ValueError: the file is damaged; see :func:`.evaluation.read_fitted`.
    """
    if ruleset != RULESETS.get(ruleset.name):
        return None
    rows = read_fitted(FILE, (ROWS, UNITS), FITTED).get(ruleset.name)
    if rows is None:
        return None
    try:
        return network_of(rows)
    except ValueError as error:
        raise ValueError(f"{FILE}: {ruleset.name}: {error}") from error
