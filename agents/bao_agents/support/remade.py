"""Copy and pickle objects by the arguments of their constructors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self


class Remade:
    """Base class for objects that are copied and pickled by their constructor arguments.

    A pickled player therefore omits its compiled weights and its search memory, which are far
    larger. A network among the arguments is copied with its current weights.
    """

    _made_with: tuple[tuple[Any, ...], Mapping[str, Any]]

    def __new__(cls, *args: Any, **options: Any) -> Self:
        instance = super().__new__(cls)
        instance._made_with = args, options
        return instance

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (type(self), *self._made_with)


def _make(kind: type, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    return kind(*args, **options)
