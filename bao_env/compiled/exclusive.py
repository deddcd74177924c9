"""Refuse to let two threads use the same scratch memory at once."""

from __future__ import annotations

import sys
from threading import get_ident
from typing import Any


class Exclusive:
    """A lock for ``with`` blocks that raises, instead of waiting, if another thread is in one.

    An interrupt such as Ctrl-C can keep a block from being left. Then the thread that was in it
    can enter again, and so can every thread once that one has ended, as all have after a fork.

    Args:
        name: what the object used in the block is called in the message.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._user: dict[None, int] = {}
        """The thread in the block, under the key None: an entry changes in one piece, so an
        interrupt falls either before or after."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._name,)

    def __enter__(self) -> None:
        """Enter the block.

        Raises:
            RuntimeError: another thread is in it.
        """
        user = self._user.setdefault(None, get_ident())
        if user != get_ident():
            self._refuse(user)  # also if it has just left the block: it may enter again
            self._user[None] = get_ident()

    def __exit__(self, *error: object) -> None:
        """Leave the block."""
        self._user.pop(None, None)

    def refuse_others(self) -> None:
        """Check that no other thread is in the block, except one that has ended.

        Raises:
            RuntimeError: another thread is in it.
        """
        self._refuse(self._user.get(None))

    def _refuse(self, user: int | None) -> None:
        """Raise RuntimeError if a thread is another one, and has not ended."""
        if user != get_ident() and user in sys._current_frames():
            raise RuntimeError(
                f"this {self._name} is in use by another thread: create one for each thread"
            )
