"""Ask the processor to load memory before it is needed."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from bao_env.engine.position import Index

_READ, _KEEP, _DATA = 0, 3, 1
"""LLVM's arguments: the memory will be read, more than once, and holds data."""


def prefetch(array: npt.NDArray[Any], index: Index) -> None:
    """Ask the processor to load an element of an array into its cache.

    An element of a large table takes as long to load as a few hundred instructions. If several are
    asked for before the first is used, they load at the same time. Nothing else changes, and Python
    code does nothing here.
    """


@intrinsic
def _load_early(_context: Any, array: Any, index: Any) -> Any:
    """Implement :func:`prefetch` in compiled code, by LLVM's intrinsic of that name."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.bitcast(
            cgutils.get_item_pointer(context, builder, signature.args[0], view, [arguments[1]]),
            cgutils.voidptr_t,
        )
        word = cgutils.int32_t
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [pointer, word(_READ), word(_KEEP), word(_DATA)])
        return context.get_dummy_value()

    return types.none(array, index), generate


@overload(prefetch)
def _prefetch_in_numba(array, index):  # type: ignore[no-untyped-def]
    """Return the function that compiled code calls instead of :func:`prefetch`."""
    return lambda array, index: _load_early(array, index)  # type: ignore[call-arg]
