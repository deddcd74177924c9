"""Let the signals that end a process interrupt it as Ctrl-C does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """Let SIGTERM, and SIGHUP of a closed terminal, raise KeyboardInterrupt in the block, once.

    Batch systems may send SIGTERM twice, to a step and to its processes. The second one would stop
    what the first one has begun, such as a save or a report.
    """
    handlers: dict[int, Any] = {}

    def interrupt(*_: object) -> NoReturn:
        for number in handlers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():  # only it may handle signals
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                handlers[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
