"""Keep a limited number of games in memory; the least recently used is dropped first.

A recently used game is not dropped for the game of another owner.
"""

from __future__ import annotations

import math
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from bao_agents.play.refused import Refused

R = TypeVar("R")
RECENT_SECONDS = 300.0
"""For this long after its last use, an item does not make room for another owner."""


@dataclass
class _Session:
    item: Any
    owner: str
    last_use: float = -math.inf
    """When the item was last used; minus infinity if it has not been used."""


class Sessions:
    """Items, each under a random name that nobody can guess.

    Args:
        max_items: the most items that are kept.
        max_owned: the most items of one owner; beyond it, the owner's oldest is dropped.
    """

    def __init__(self, max_items: int, max_owned: int) -> None:
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self.owners: Counter[str] = Counter()
        """How many items each owner has."""
        self._max_items, self._max_owned = max_items, max_owned

    def add(self, item: object, owner: str, name: str | None = None) -> tuple[str, bool]:
        """Add an item under a new name, or under the name of an item that was dropped.

        Return the name, and whether an older item of the owner was dropped for it. If an item with
        this name is still kept, it stays, and the new one is not added.

        Raises:
            Refused: there is no room, because all items were used recently.
        """
        name = name or secrets.token_urlsafe(12)
        if name in self._sessions:
            return name, False
        drops_own = self.owners[owner] >= self._max_owned
        if drops_own or len(self._sessions) >= self._max_items:
            latest = math.inf if drops_own else time.monotonic() - RECENT_SECONDS
            owners = {owner} if drops_own else self.owners
            unused = (
                key
                for key, session in self._sessions.items()
                if session.owner in owners and session.last_use < latest
            )
            if (oldest := next(unused, None)) is None:
                raise Refused(
                    "the server has no room for another game: try again in a few minutes", 503
                )
            self.owners -= Counter([self._sessions.pop(oldest).owner])
        self.owners[owner] += 1
        self._sessions[name] = _Session(item, owner)
        return name, drops_own

    def call(self, method: Callable[..., R], name: str, /, *args: Any, **values: Any) -> R:
        """Call a method of an item.

        Raises:
            Refused: the item is not (or no longer) kept.
        """
        if name not in self._sessions:
            raise Refused("the server does not have this game (any more): start a new one", 404)
        self._sessions.move_to_end(name)
        session = self._sessions[name]
        session.last_use = time.monotonic()
        return method(session.item, *args, **values)
