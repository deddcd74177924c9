"""Evaluate a position without a search, by an NNUE: the small network of guided alpha-beta.

The position has 16 coarse patterns (:mod:`bao_agents.evaluators.pairs`). Each pattern has a vector
of 32 weights, and the 16 vectors are added up. The first of the 32 sums is used as it is. The other
31 are rectified, and then :data:`SIGNS` says which are added to the first and which subtracted. No
layer of weights follows: a rectifier preserves positive factors, so the vectors already contain
them.

So an evaluation is 16 additions of 64 bytes, which compile to vector instructions, as in the first
layer of a chess program's NNUE (https://www.chessprogramming.org/NNUE). Self-play guided by search
learns the weights (``bao_training.nnue_model``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from bao_agents.evaluators.pairs import COARSE, PAIRS, number_of_patterns, patterns_of
from bao_agents.evaluators.tables import LIMIT, PairTables, tables_value
from bao_agents.support.array_types import Int16Array
from bao_env.compiled.compile import jit
from bao_env.engine.position import Index, Rows

PATTERNS = number_of_patterns(COARSE)
"""The number of vectors of an NNUE, one for each coarse pattern."""
UNITS = 32
"""The number of weights in a vector."""
SIGNS = (1,) * (UNITS // 2) + (-1,) * (UNITS // 2)
"""1 for each unit that is added, -1 for each that is subtracted."""
WEIGHT_SCALE = 1600
"""Weights are integers: this number stands for one logit."""
WEIGHT_LIMIT = 32767 // PAIRS
"""Weights lie between minus and plus this number, so no sum overflows an int16."""

_SCALE_SHIFT = 3  # from WEIGHT_SCALE to SCALE


class NNUE(NamedTuple):
    """An evaluator with one vector for each coarse pattern."""

    weights: Int16Array
    """int16[PATTERNS, UNITS]; each vector fills a line of the processor's cache."""


def make_nnue(weights: Int16Array) -> NNUE:
    """Return an evaluator with a copy of some weights.

    Args:
        weights: int16[PATTERNS, UNITS], in units of :data:`WEIGHT_SCALE` per logit.

    Raises:
        ValueError: the shape or the dtype is wrong, or a weight is beyond :data:`WEIGHT_LIMIT`.
    """
    if weights.shape != (PATTERNS, UNITS) or weights.dtype != np.int16:
        description = f"{weights.dtype}{list(weights.shape)}"
        raise ValueError(f"nnue {description}: expected int16[{PATTERNS}, {UNITS}]")
    if np.abs(weights.astype(np.int32)).max() > WEIGHT_LIMIT:
        raise ValueError(
            f"nnue has weights beyond {WEIGHT_LIMIT}: the sum of 16 weights must fit an int16"
        )
    line = 64 // weights.itemsize
    memory = np.empty(weights.size + line, weights.dtype)
    start = -memory.ctypes.data % 64 // weights.itemsize
    copy = memory[start : start + weights.size].reshape(weights.shape)
    copy[:] = weights
    return NNUE(copy)


def output(weights: Int16Array, patterns: tuple[np.int64, ...]) -> np.int64:
    """Return an NNUE's output for some patterns; see the module.

    Args:
        weights: int16[PATTERNS, UNITS].
        patterns: a tuple of int64, the patterns of a position.

    Returns:
        int64, in units of :data:`WEIGHT_SCALE` per logit.
    """
    total = weights[np.array(patterns)].sum(axis=0, dtype=np.int64)
    total[1:] = total[1:].clip(min=0)
    return total @ np.array(SIGNS)


@intrinsic
def _compiled_output(_context: Any, weights: Any, patterns: Any) -> Any:
    """Compute :func:`output` in vectors of :data:`UNITS` numbers.

    A loop compiled by numba would add the numbers one by one.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        narrow = ir.VectorType(ir.IntType(16), UNITS)
        wide = ir.VectorType(ir.IntType(32), UNITS)
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        total = ir.Constant(narrow, [0] * UNITS)
        for i in range(len(patterns)):
            start = builder.mul(
                builder.extract_value(arguments[1], i), ir.Constant(ir.IntType(64), UNITS)
            )
            pointer = builder.bitcast(builder.gep(data, [start]), narrow.as_pointer())
            total = builder.add(total, builder.load(pointer, align=2))
        lowest = ir.Constant(narrow, [np.iinfo(np.int16).min] + [0] * (UNITS - 1))
        total = builder.select(builder.icmp_signed(">", total, lowest), total, lowest)
        signed = builder.mul(builder.sext(total, wide), ir.Constant(wide, list(SIGNS)))
        add_up = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.IntType(32), [wide]),
            f"llvm.vector.reduce.add.v{UNITS}i32",
        )
        return builder.sext(builder.call(add_up, [signed]), ir.IntType(64))

    return types.int64(weights, patterns), generate


@overload(output)
def _output_in_numba(weights, patterns):  # type: ignore[no-untyped-def]
    """Return the function that compiled code calls instead of :func:`output`."""
    return lambda weights, patterns: _compiled_output(weights, patterns)  # type: ignore[call-arg]


@jit
def nnue_value(nnue: NNUE, rows: Rows) -> Index:
    """Return the value of a position for its mover, int64, in units of :data:`SCALE` per logit.

    Args:
        nnue: the :class:`NNUE`.
        rows: the position, a :class:`Rows`.
    """
    value: Index = output(nnue.weights, patterns_of(rows, COARSE)) >> _SCALE_SHIFT
    return max(-LIMIT, min(LIMIT, value))


NO_NNUE = NNUE(np.zeros((0, UNITS), np.int16))
"""An NNUE without vectors, which evaluates nothing."""


class Evaluator(NamedTuple):
    """What evaluates the positions of a search: an NNUE if there is one, else the fitted tables.

    Both have the same type, so searches with and without an NNUE share their compiled code.
    """

    tables: PairTables
    nnue: NNUE
    """:data:`NO_NNUE` if there is none."""


@jit
def position_value(evaluator: Evaluator, rows: Rows) -> Index:
    """Return the value of a position for its mover, int64, in units of :data:`SCALE` per logit.

    Args:
        evaluator: the :class:`Evaluator`.
        rows: the position, a :class:`Rows`.
    """
    if evaluator.nnue.weights.shape[0] != 0:
        return nnue_value(evaluator.nnue, rows)
    return tables_value(evaluator.tables, rows)
