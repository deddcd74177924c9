"""Compute bots' moves, hints and evaluations in threads.

They are separate from the threads that serve moves, undo and loading. There are at least two, so
that one visitor's hint does not stop the bots of others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from bao_agents.play.refused import Refused
from bao_agents.support.cores import cores

T = TypeVar("T")
LANE = 1
"""Computations of one game, and of one client, that wait or run in the threads at a time; and as
many brief requests of one client. With two, abandoned hints make others wait three times longer."""
BRIEF_THREADS = 32
"""Threads for brief requests: moves, undo, new games."""


class Computing:
    """A few threads; if none is free, work waits in order of arrival.

    Args:
        threads: number of threads; None for all cores but one, and at least two.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._threads = ThreadPoolExecutor(threads or max(2, cores() - 1))
        self._brief = ThreadPoolExecutor(BRIEF_THREADS)
        self._lanes: WeakValueDictionary[Hashable, asyncio.Semaphore] = WeakValueDictionary()
        self._shared: dict[Hashable, tuple[asyncio.Future[Any], list[None]]] = {}
        """Work under way, with an item for each caller that waits for it."""

    async def run(self, work: Callable[[], T], seconds: float | None, *lanes: Hashable) -> T:
        """Return the result of some work.

        If the caller is cancelled, work that still waits is dropped. Work that has begun cannot be
        stopped: it keeps its place in the lanes, and the caller waits for its end.

        Args:
            work: the work; its errors are raised here.
            seconds: the longest time to wait; None for brief work, which is done in any case.
            lanes: the game and the client that the work is for. Each may have LANE computations
                in the queue, and its others wait outside, so nobody can fill the queue alone.

        Raises:
            Refused: the time is up.
        """
        threads = self._threads if seconds else self._brief
        under_way = asyncio.ensure_future(self._in_lanes(threads, work, lanes))
        try:
            async with asyncio.timeout(seconds) as limit:
                return await asyncio.shield(under_way)
        except asyncio.CancelledError:
            if seconds:
                under_way.cancel()
            await asyncio.wait([under_way])
            raise
        except TimeoutError as error:
            if not limit.expired():  # the work itself raised it
                raise
            under_way.cancel()
            raise Refused(
                f"this took longer than {seconds:.0f} seconds, including other requests: "
                "try again, or choose a player that thinks less",
                504,
            ) from error

    async def briefly(self, work: Callable[[], T], client: Hashable) -> T:
        """Return the result of some brief work of a client."""
        return await self.run(work, None, ("brief", client))

    async def _in_lanes(
        self, threads: ThreadPoolExecutor, work: Callable[[], T], lanes: Sequence[Hashable]
    ) -> T:
        """Run work in a thread, with a place in each lane until the thread returns."""
        async with AsyncExitStack() as held:
            for lane in lanes:
                place = self._lanes.setdefault(lane, asyncio.Semaphore(LANE))
                await held.enter_async_context(place)
            submitted = threads.submit(work)
            try:
                return await asyncio.wrap_future(submitted)
            except asyncio.CancelledError:
                if not submitted.cancelled():
                    await asyncio.wait([asyncio.wrap_future(submitted)])
                raise

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
                del self._shared[key]
                task.cancel()
                await asyncio.wait([task])
