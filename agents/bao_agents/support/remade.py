"""Copy and pickle objects by the arguments that they were made with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self


class Remade:
    """An object whose copies are made again, with the same arguments.

    So a pickled player holds neither compiled weights nor the memory of a search, which are far
    larger than the rest of it. A network among the arguments is copied with its current weights.
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
