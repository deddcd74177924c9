"""Keep a limited number of games in memory; the least recently used is dropped first.

One that was used lately is not dropped for another owner's.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bao_agents.play.refused import Refused

R = TypeVar("R")
RECENT_SECONDS = 300.0
"""For so long after its last use an item is not dropped for another owner's."""


@dataclass
class _Kept:
    item: Any
    owner: str
    lock: threading.Lock = field(default_factory=threading.Lock)
    used: float = -math.inf
    """When it was last used since it was added."""


class Sessions:
    """Items, each under a random name that nobody can guess.

    Args:
        max_items: the most items that are kept.
        max_owned: the most items of one owner, whose own items make room for another.
    """

    def __init__(self, max_items: int, max_owned: int) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._max_items, self._max_owned = max_items, max_owned
        self._lock = threading.Lock()

    def add(self, item: object, owner: str, name: str | None = None) -> tuple[str, bool]:
        """Add an item under a new name, or under that of one dropped.

        Return the name, and whether an older item of the owner was dropped for it. An item that is
        already kept under the name stays.

        Raises:
            Refused: there is no room, because all items were used lately.
        """
        name = name or secrets.token_urlsafe(12)
        with self._lock:
            if name in self._kept:
                return name, False
            owned = [other for other, kept in self._kept.items() if kept.owner == owner]
            drops_own = len(owned) >= self._max_owned
            if drops_own:
                del self._kept[owned[0]]
            elif len(self._kept) >= self._max_items:
                now = time.monotonic()
                old = [n for n, kept in self._kept.items() if now - kept.used > RECENT_SECONDS]
                if not old:
                    raise Refused("all tables are in use: try again in a few minutes", 503)
                del self._kept[old[0]]
            self._kept[name] = _Kept(item, owner)
        return name, drops_own

    def call(self, method: Callable[..., R], name: str, /, *args: Any, **values: Any) -> R:
        """Call a method of an item, for one request at a time.

        Raises:
            Refused: the item is not (or no longer) kept, or another request is using it.
        """
        with self._lock:
            if name not in self._kept:
                raise Refused("this game is not (or no longer) kept: start a new one", 404)
            self._kept.move_to_end(name)
            kept = self._kept[name]
            kept.used = time.monotonic()
        if not kept.lock.acquire(timeout=5):
            raise Refused("the game is busy with another request: try again", 503)
        try:
            return method(kept.item, *args, **values)
        finally:
            kept.lock.release()
