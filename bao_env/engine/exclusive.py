"""One thread at a time: for what has scratch memory of its own, such as engines and searches."""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import Any


class Exclusive:
    """A ``with`` block that only one thread may be in; another one gets an error at once.

    A forked process has blocks of its own, whatever threads its parent had in them.

    Args:
        what: is used in the block, for the message.
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
                f"this {self._what} is at work in another thread: give each thread one of its own"
            )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave the block."""
        self._lock.release()
