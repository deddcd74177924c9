"""Share the processor among the visitors of the board.

Moves, undo and new games are brief: they run in the server's event loop, and clients take turns.
Bots' moves, hints and evaluations run in threads. There are at least two threads, so that one
visitor's hint does not stop the bots of others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from bao_agents.play.refused import Refused
from bao_agents.support.cores import cores

T = TypeVar("T")
SHARE = 0.1
"""The share of the time that one client may use. All newcomers together may use as much."""
CREDIT = 0.1
"""Seconds that a client may use before it has to wait."""
NEWCOMERS = 4
"""The number of newcomers that it takes to use up the share of all newcomers."""
ALL_NEWCOMERS = ""
"""The name of the client that stands for all newcomers."""


class Allowance:
    """Limit the time that each client may use; a client that has used more has to wait.

    Args:
        share: the share of the time for each client.
        credit: the seconds that a client may use before it has to wait.
    """

    def __init__(self, share: float = SHARE, credit: float = CREDIT) -> None:
        self._share, self._credit = share, credit
        self._free: dict[str, float] = {}
        """For each client, the moment when its share covers all the time that it has used."""

    def use(self, client: str, seconds: float) -> float:
        """Charge a client for some time; return the seconds that it has to wait first.

        One use costs at most twice the credit, because the first use of its kind may compile.
        """
        moment = time.monotonic()
        self._free = {user: free for user, free in self._free.items() if free > moment}
        free = self._free.get(client, moment)
        self._free[client] = free + min(seconds, 2 * self._credit) / self._share
        return max(0, free - moment - self._credit / self._share)


class Computing:
    """Run work in a few threads; if none is free, work waits in order of arrival.

    Args:
        threads: number of threads; None for all cores but one, and at least two.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._threads = ThreadPoolExecutor(threads or max(2, cores() - 1))
        self._lanes: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()
        self._clients = Allowance()
        self._newcomers = Allowance(SHARE / NEWCOMERS)
        self._all_newcomers = Allowance(credit=NEWCOMERS * CREDIT)
        self._shared: dict[Hashable, tuple[asyncio.Future[Any], list[None]]] = {}
        """The running work by key, and a list with one item for each waiting caller."""

    async def run(self, work: Callable[[], T], seconds: float, *lanes: Hashable) -> T:
        """Return the result of some work, computed in a thread.

        If the caller is cancelled, or the time is up, work that has not started is dropped. Work
        that has started cannot be stopped: it occupies its lanes until the thread returns.

        Args:
            work: the work; its errors are raised here.
            seconds: the longest time to wait.
            lanes: the game and the client that the work is for. Each may have one computation
                running or in the queue. Its next computation waits for that one, so that nobody
                can fill the queue alone.

        Raises:
            Refused: the time is up.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds) as limit:
                with ExitStack() as locks:
                    for lane in lanes:
                        lock = self._lane(lane)
                        await lock.acquire()
                        locks.callback(lock.release)
                    submitted = self._threads.submit(work)
                    held_locks = locks.pop_all()
                submitted.add_done_callback(lambda _: loop.call_soon_threadsafe(held_locks.close))
                return await asyncio.wrap_future(submitted)
        except TimeoutError as error:
            if not limit.expired():  # the work itself raised it
                raise
            raise Refused(
                f"there was no answer within {seconds:.0f} seconds, perhaps because of other "
                "requests: try again, or choose a player that thinks less",
                504,
            ) from error

    async def briefly(self, work: Callable[[], T], client: str, newcomer: bool = False) -> T:
        """Run a brief task as soon as the client's allowance permits, and return its result.

        A client's tasks run one after another. If the caller is cancelled before its task starts,
        the task does not run.

        Args:
            work: the task; its errors are raised here.
            client: the client that asks.
            newcomer: whether the client has no game yet. Newcomers also share one allowance, so
                that requests from many addresses cannot slow down the players. A newcomer's
                own allowance is smaller, so that one newcomer cannot use up the shared one.
        """
        allowances = [(self._clients, client)]
        if newcomer:
            allowances = [(self._newcomers, client), (self._all_newcomers, ALL_NEWCOMERS)]
        async with AsyncExitStack() as lanes:
            for allowance, user in allowances:
                await lanes.enter_async_context(self._lane((allowance, user)))
                await asyncio.sleep(allowance.use(user, 0))
            start = time.monotonic()
            try:
                return work()
            finally:
                for allowance, user in allowances:
                    allowance.use(user, time.monotonic() - start)

    def _lane(self, lane: Hashable) -> asyncio.Lock:
        return self._lanes.setdefault(lane, asyncio.Lock())

    async def run_once(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of some work, which callers with the same key share.

        The work is cancelled when its last caller is cancelled.
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
