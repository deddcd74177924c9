"""Evaluate a position without a search, with the small network of guided alpha-beta.

A position selects 16 cells (:mod:`bao_agents.evaluators.pairs`), with counts of seeds rounded to
levels. Each cell is a row of 32 numbers, and the 16 rows are added up. The first of the 32 sums is
used as it is. The others are rectified, then half of them are added to it and half subtracted. No
layer of weights follows: a rectifier preserves positive factors, so the rows already contain them.

So an evaluation is 16 additions of 64 bytes, which compile to vector instructions, as in the first
layer of an NNUE (https://www.chessprogramming.org/NNUE). Self-play guided by search learns the rows
(:mod:`bao_training.alphazero`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from bao_agents.evaluators.pairs import SIGNS, UNITS, check_rows, rows_of
from bao_agents.evaluators.tables import LIMIT, evaluate_by_tables
from bao_agents.support.array_types import Int16Array
from bao_env.engine.compile import jit

_SCALE_SHIFT = 3  # ROW_SCALE to SCALE


class Network(NamedTuple):
    """The evaluator with a row of numbers per cell."""

    rows: Int16Array
    """int16[ROWS, UNITS]; each row fills a line of the processor's cache."""


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
    value = output(network.rows, rows_of(packed)) >> _SCALE_SHIFT
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


def network_of(rows: Int16Array) -> Network:
    """Return the evaluator with a copy of these rows.

    Raises:
        ValueError: see :func:`bao_agents.evaluators.pairs.check_rows`.
    """
    check_rows(rows)
    line = 64 // rows.itemsize
    memory = np.empty(rows.size + line, rows.dtype)
    start = -memory.ctypes.data % 64 // rows.itemsize
    copy = memory[start : start + rows.size].reshape(rows.shape)
    copy[:] = rows
    return Network(copy)
