"""How a searching agent uses its cores and its time: splitting a batch, stopping a search."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

import numpy as np
import numpy.typing as npt

MAX_SECONDS: Final = 3600.0
"""Most seconds that a move may take."""


def check_seconds(name: str, seconds: float) -> None:
    """Refuse a time that no search can keep.

    Raises:
        ValueError: it is below a millisecond or above :data:`MAX_SECONDS`.
    """
    if not 0.001 <= seconds <= MAX_SECONDS:
        raise ValueError(f"{name}: {seconds} seconds a move: expected 0.001 to {MAX_SECONDS:.0f}")


def check_threads(threads: int | None) -> int:
    """The number of threads to use: as asked, or one a core.

    Raises:
        ValueError: fewer than one is asked for.
    """
    if threads is not None and threads < 1:
        raise ValueError(f"threads={threads}: expected at least 1")
    return threads or os.cpu_count() or 1


def share(size: int, step: int, threads: int, work: Callable[[slice, int], None]) -> None:
    """Run ``work(part, thread)`` on a batch of ``size``, ``step`` at a time, until it is done.

    Each thread takes the next part as soon as it has finished one, so hard positions hold
    nobody up.
    """
    parts = iter([slice(low, low + step) for low in range(0, size, step)])

    def work_off(thread: int) -> None:
        for part in parts:
            work(part, thread)

    if size <= step or threads == 1:
        work_off(0)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work_off, range(threads)))


@contextmanager
def stop_after(flag: npt.NDArray[np.int64], seconds: float | None) -> Iterator[None]:
    """Set ``flag[0]``, int64[1], when the time is up; a compiled search looks at it."""
    flag[0] = 0
    if seconds is None:
        yield
        return

    def stop() -> None:
        flag[0] = 1

    timer = threading.Timer(seconds, stop)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
