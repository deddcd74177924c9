"""Compute bots' moves, hints and evaluations in threads.

They are separate from the threads that serve moves, undo and loading, and leave a core for those.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bao_agents.play.refused import Refused

T = TypeVar("T")


class Computing:
    """A few threads; if none is free, work waits in order of arrival.

    Args:
        threads: number of threads; None for all cores but one.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._threads = ThreadPoolExecutor(threads or max(1, (os.cpu_count() or 1) - 1))

    async def run(self, work: Callable[[], T], seconds: float) -> T:
        """Return the result of some work.

        If the caller is cancelled, work that still waits is dropped. Work that has begun cannot be
        stopped; its result is lost.

        Args:
            work: the work; its errors are raised here.
            seconds: the longest time to wait.

        Raises:
            Refused: the time is up.
        """
        try:
            async with asyncio.timeout(seconds) as limit:
                return await asyncio.wrap_future(self._threads.submit(work))
        except TimeoutError as error:
            if not limit.expired():  # the work itself raised it
                raise
            raise Refused(
                f"this took longer than {seconds:.0f} seconds, including other requests: "
                "try again, or choose a player that thinks less",
                504,
            ) from error
