"""What the compiled functions of players need beside :mod:`bao_env.engine.compile`.

They compile and are cached as those of the engine are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from bao_env.engine.compile import jit

F = TypeVar("F", bound=Callable[..., Any])
A = TypeVar("A")


def jit_float(function: F) -> F:
    """Like ``jit``, for sums and products of floats that may be reordered and fused."""
    return jit(function, fastmath={"contract", "reassoc", "nsz"})


def uncounted(value: A) -> A:
    """The same array, or named tuple of arrays, whose uses compiled code does not count.

    Numba counts the references to an array in every function that it is handed on to, with two
    atomic instructions each. A hot loop calls this once, before it begins. Whoever called the loop
    keeps the arrays alive.
    """
    return value


def _disown(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """A value of a numba type with its arrays as views of memory that belongs to nobody."""
    if isinstance(kind, types.BaseTuple):
        kinds: Any = kind
        items = [
            _disown(context, builder, item, builder.extract_value(value, i))
            for i, item in enumerate(kinds)
        ]
        return context.make_tuple(builder, kind, items)
    if isinstance(kind, types.Array):
        view = context.make_array(kind)(context, builder, value)
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        return view._getvalue()
    return value


@intrinsic
def _without_owner(_context: Any, value: Any) -> Any:
    """What :func:`uncounted` is in compiled code."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _disown(context, builder, signature.return_type, arguments[0])

    return value(value), generate


@overload(uncounted)
def _uncounted_in_numba(value):
    """What compiled code calls in place of :func:`uncounted`."""
    return lambda value: _without_owner(value)
