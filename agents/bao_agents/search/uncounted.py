"""Pass arrays to compiled functions without reference counting."""

from __future__ import annotations

from typing import Any, TypeVar

from numba.core import cgutils, types
from numba.extending import intrinsic, overload

A = TypeVar("A")


def uncounted(value: A) -> A:
    """Return an array, or a named tuple of arrays, without reference counting in compiled code.

    Numba counts the references to an array in every function that receives it, with two atomic
    instructions each. Call this once before a hot loop. The caller of the loop must keep the arrays
    alive.
    """
    return value


def _disown(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return a value of a numba type, with each array replaced by a view that owns no memory."""
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
    """Implement :func:`uncounted` in compiled code."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _disown(context, builder, signature.return_type, arguments[0])

    return value(value), generate


@overload(uncounted)
def _uncounted_in_numba(value):  # type: ignore[no-untyped-def]
    """Return the function that compiled code calls instead of :func:`uncounted`."""
    return lambda value: _without_owner(value)  # type: ignore[call-arg]
