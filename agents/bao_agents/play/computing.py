"""Compute bots' moves, hints and evaluations in threads.

They are separate from the threads that serve moves, undo and loading, and leave a core for those.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from bao_agents.play.refused import Refused
from bao_agents.support.cores import cores

T = TypeVar("T")
LANE = 2
"""Computations of one game, and of one client, that wait or run in the threads at a time."""


class Computing:
    """A few threads; if none is free, work waits in order of arrival.

    Args:
        threads: number of threads; None for all cores but one.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._threads = ThreadPoolExecutor(threads or max(1, cores() - 1))
        self._lanes: WeakValueDictionary[Hashable, asyncio.Semaphore] = WeakValueDictionary()
        self._shared: dict[Hashable, tuple[asyncio.Future[Any], list[None]]] = {}
        """Work under way, with an item for each caller that waits for it."""

    async def run(self, work: Callable[[], T], seconds: float, *lanes: Hashable) -> T:
        """Return the result of some work.

        If the caller is cancelled, work that still waits is dropped. Work that has begun cannot be
        stopped; its result is lost.

        Args:
            work: the work; its errors are raised here.
            seconds: the longest time to wait.
            lanes: the game and the client that the work is for. Each may have LANE computations
                in the queue, and its others wait outside, so nobody can fill the queue alone.

        Raises:
            Refused: the time is up.
        """
        try:
            async with asyncio.timeout(seconds) as limit, AsyncExitStack() as held:
                for lane in lanes:
                    place = self._lanes.setdefault(lane, asyncio.Semaphore(LANE))
                    await held.enter_async_context(place)
                return await asyncio.wrap_future(self._threads.submit(work))
        except TimeoutError as error:
            if not limit.expired():  # the work itself raised it
                raise
            raise Refused(
                f"this took longer than {seconds:.0f} seconds, including other requests: "
                "try again, or choose a player that thinks less",
                504,
            ) from error

    async def share(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of some work, which callers with the same key share.

        The work is cancelled when the last of them is.
        """
        if key not in self._shared:
            self._shared[key] = asyncio.ensure_future(work()), []
        task, callers = self._shared[key]
        callers.append(None)
        try:
            return await asyncio.shield(task)
        finally:
            callers.pop()
            if not callers:
                task.cancel()
                del self._shared[key]
