"""Keep a limited number of games in memory; the least recently used is dropped first."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from cachetools import LRUCache

from bao_agents.play.refused import Refused

T = TypeVar("T")
R = TypeVar("R")


class Sessions(Generic[T]):
    """Items, each under a random name that nobody can guess.

    Args:
        max_items: the most items that are kept.
    """

    def __init__(self, max_items: int) -> None:
        self._kept: LRUCache[str, tuple[T, threading.Lock]] = LRUCache(max_items)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, item: T) -> str:
        """Add an item, and return its name for :meth:`call`."""
        name = secrets.token_urlsafe(12)
        with self._lock:
            self._kept[name] = (item, threading.Lock())
        return name

    def call(self, method: Callable[..., R], name: str, /, *args: Any, **values: Any) -> R:
        """Call a method of an item, for one request at a time.

        Raises:
            Refused: the item is not (or no longer) kept, or another request is using it.
        """
        with self._lock:
            if name not in self._kept:
                raise Refused("this game is not (or no longer) kept: start a new one", 404)
            item, lock = self._kept[name]
        if not lock.acquire(timeout=5):
            raise Refused("the game is busy with another request: try again", 409)
        try:
            return method(item, *args, **values)
        finally:
            lock.release()
