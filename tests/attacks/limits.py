"""What an attack may take: time and memory."""

from __future__ import annotations

import contextlib
import faulthandler
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
SECONDS: Final = 5.0
"""How long one hostile input may take."""
GIB: Final = 1 << 30


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """End this process, with a traceback, if the block takes longer; even in compiled code."""
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def limit_memory(more: int) -> None:
    """Let this process take at most so many bytes more than it has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def wait_until(what: Callable[[], bool], seconds: float, message: str) -> None:
    """Wait until ``what()`` is true; AssertionError with the message after so many seconds."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, message
        time.sleep(0.05)
