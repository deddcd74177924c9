"""Refuse to let two threads use the same scratch memory at once."""

from __future__ import annotations

import sys
from threading import get_ident
from typing import Any


class Exclusive:
    """A lock for ``with`` blocks. It does not wait: entering raises an error if another thread is
    inside.

    After an interrupt such as Ctrl-C, the lock may still be held although the block was left. Then
    the same thread can enter again. Other threads can enter once that thread has ended; in a forked
    process, the threads of the parent count as ended.

    Args:
        name: the name of the object used in the block, for the error message.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._user: dict[None, int] = {}
        """The thread in the block, under the key None. An entry of a dict changes in one step, so
        an interrupt falls either before the change or after it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._name,)

    def __enter__(self) -> None:
        """Enter the block.

        Raises:
            RuntimeError: another thread is in it.
        """
        user = self._user.setdefault(None, get_ident())
        if user != get_ident():
            self._refuse(user)  # even if that thread has just left: it may enter again
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
        """Raise RuntimeError if ``user`` is another thread that has not ended."""
        if user != get_ident() and user in sys._current_frames():
            raise RuntimeError(
                f"this {self._name} is in use by another thread: create one for each thread"
            )
