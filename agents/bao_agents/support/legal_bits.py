"""Turn lists of actions into bits, for calls with one position."""

from __future__ import annotations

from collections.abc import Iterable


def bits_of(actions: Iterable[int]) -> int:
    """Return a set of actions as bits, an integer."""
    return sum(1 << action for action in set(actions))
