"""Add vectors of 32 floats, which compiled code keeps in registers.

Numba turns a loop over a row into vector instructions, but it stores the sums in memory after each
row, and checks each time whether the arrays overlap. These functions emit the vector instructions
themselves. In uncompiled code a vector is an array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, models, register_model, type_callable

from bao_agents.support.array_types import Float32Array
from bao_env.compiled.compile import F, jit
from bao_env.engine.position import Index

WIDTH = 32
"""The number of floats in a vector."""

_VECTOR = ir.VectorType(ir.FloatType(), WIDTH)
_MAY_FUSE = ("contract",)


def jit_float(function: F) -> F:
    """Compile a function as ``jit`` does, but let it reorder and fuse floating-point operations."""
    return jit(function, fastmath={"contract", "reassoc", "nsz"})


class _VectorType(types.Type):
    """The type of a vector in compiled code."""

    def __init__(self) -> None:
        super().__init__(name="Vector")


_vector = _VectorType()


@register_model(_VectorType)
class _VectorModel(models.PrimitiveModel):
    """The representation of a vector in LLVM."""

    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _VECTOR)


def load_vector(array: Float32Array, at: Index) -> Float32Array:
    """Return ``array[at : at + WIDTH]`` of a contiguous float32 array of one dimension."""
    return array[at : at + WIDTH].copy()


def store_vector(array: Float32Array, at: Index, vector: Float32Array) -> None:
    """Assign ``array[at : at + WIDTH] = vector``."""
    array[at : at + WIDTH] = vector


def add(vector: Float32Array, summand: Float32Array) -> Float32Array:
    """Return the sum of two vectors."""
    return vector + summand


def add_product(
    vector: Float32Array, factor: np.float32, multiplicand: Float32Array
) -> Float32Array:
    """Return ``vector + factor * multiplicand``, with a float32 factor; rounded once or twice."""
    return vector + np.float32(factor) * multiplicand


def _pointer(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """Return the pointer to the vector of an array that starts at an index."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), _VECTOR.as_pointer())


@lower_builtin(load_vector, types.Array, types.Integer)
def _load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.load(_pointer(context, builder, signature.args[0], *arguments), align=4)


@lower_builtin(store_vector, types.Array, types.Integer, _VectorType)
def _store(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array, at, vector = arguments
    builder.store(vector, _pointer(context, builder, signature.args[0], array, at), align=4)
    return context.get_dummy_value()


@lower_builtin(add, _VectorType, _VectorType)
def _add(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    return builder.fadd(*arguments)


@lower_builtin(add_product, _VectorType, types.Float, _VectorType)
def _add_product(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    vector, factor, multiplicand = arguments
    start = builder.insert_element(
        ir.Constant(_VECTOR, ir.Undefined), factor, ir.Constant(ir.IntType(32), 0)
    )
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
    factors = builder.shuffle_vector(start, start, zeros)
    return builder.fadd(
        vector, builder.fmul(factors, multiplicand, flags=_MAY_FUSE), flags=_MAY_FUSE
    )


@type_callable(load_vector)
def _type_of_load(_context: Any) -> Any:
    return lambda array, at: _vector


@type_callable(store_vector)
def _type_of_store(_context: Any) -> Any:
    return lambda array, at, vector: types.void


@type_callable(add)
def _type_of_sum(_context: Any) -> Any:
    return lambda vector, summand: _vector


@type_callable(add_product)
def _type_of_sum_of_product(_context: Any) -> Any:
    return lambda vector, factor, multiplicand: _vector
