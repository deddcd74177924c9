"""Lock objects that reuse scratch memory, and raise instead of waiting."""

from __future__ import annotations

import os
import threading
from typing import Any


class Exclusive:
    """A lock for ``with`` blocks: raises if another thread is in the block.

    It is open in a forked process, even if a thread of the parent was in the block.

    Args:
        what: the object used in the block, for the message.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._process = os.getpid()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._what,)

    def __enter__(self) -> None:
        """Enter the block.

        Raises:
            RuntimeError: another thread is in it.
        """
        if self._process != os.getpid():
            self.__init__(self._what)  # type: ignore[misc]
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(
                f"this {self._what} is in use by another thread: create one for each thread"
            )

    def __exit__(self, *error: object) -> None:
        """Leave the block."""
        self._lock.release()
