"""Vectors of 32 floats that stay in registers while compiled code adds to them.

Numba turns a loop over a row into vector instructions, but keeps the sums in memory between two
rows, and checks each time whether the arrays overlap. Here the code says what it wants. Uncompiled,
a vector is an array.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.datamodel import PrimitiveModel, register_default
from numba.extending import intrinsic, overload

WIDTH: Final = 32
"""Numbers of a vector."""

_VECTOR: Final = ir.VectorType(ir.FloatType(), WIDTH)
_MAY_FUSE: Final = ("contract",)


class _VectorType(types.Type):
    """The type of a vector in compiled code."""

    def __init__(self) -> None:
        super().__init__(name="Vector")


_vector: Final = _VectorType()


@register_default(_VectorType)
class _VectorModel(PrimitiveModel):
    """How it is handed on."""

    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _VECTOR)


def load_vector(array, at):
    """``array[at : at + WIDTH]`` of a contiguous float32 array of one dimension."""
    return array[at : at + WIDTH].copy()


def store_vector(array, at, vector):
    """``array[at : at + WIDTH] = vector``."""
    array[at : at + WIDTH] = vector


def add(vector, other):
    """The sum of two vectors."""
    return vector + other


def add_product(vector, factor, other):
    """``vector + factor * other``, maybe with one rounding, with one float32 as the factor."""
    return vector + np.float32(factor) * other


def _pointer(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """Where a vector of an array lies."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), _VECTOR.as_pointer())


@intrinsic
def _load(_context: Any, array: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(context, builder, signature.args[0], *arguments), align=4)

    return _vector(array, types.int64), generate


@intrinsic
def _store(_context: Any, array: Any, at: Any, vector: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _pointer(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], place, align=4)
        return context.get_dummy_value()

    return types.void(array, types.int64, vector), generate


@intrinsic
def _add(_context: Any, vector: Any, other: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fadd(*arguments)

    return _vector(vector, other), generate


@intrinsic
def _add_product(_context: Any, vector: Any, factor: Any, other: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        vector, factor, other = arguments
        start = builder.insert_element(
            ir.Constant(_VECTOR, ir.Undefined), factor, ir.Constant(ir.IntType(32), 0)
        )
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        factors = builder.shuffle_vector(start, start, zeros)
        return builder.fadd(vector, builder.fmul(factors, other, flags=_MAY_FUSE), flags=_MAY_FUSE)

    return _vector(vector, types.float32, other), generate


@overload(load_vector)
def _load_in_numba(array, at):
    return lambda array, at: _load(array, at)


@overload(store_vector)
def _store_in_numba(array, at, vector):
    return lambda array, at, vector: _store(array, at, vector)


@overload(add)
def _add_in_numba(vector, other):
    return lambda vector, other: _add(vector, other)


@overload(add_product)
def _add_product_in_numba(vector, factor, other):
    return lambda vector, factor, other: _add_product(vector, factor, other)
