"""Threads that compute for clients in turn: bots, hints and evaluations.

They are apart from those that serve moves, undo and loading, and leave a core to them.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from agents.play.refused import Refused

MAX_WAITING: Final = 4
"""Pieces of work that may wait for one client."""

T = TypeVar("T")


class Computing:
    """A few threads that work for many clients.

    Each client has a queue of its own, and the queues are served in turn, so that a client with
    much to compute does not hold up the others. A client's own work is done one piece at a time.
    The threads end when nothing waits, and never keep the process alive.

    Args:
        threads: their number; all cores but one by default.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._idle = threads or max(1, (os.cpu_count() or 1) - 1)
        self._waiting: OrderedDict[str, deque[tuple[Future[Any], Callable[[], Any]]]]
        self._waiting = OrderedDict()
        """By client; the first is served next."""
        self._served: set[str] = set()
        self._lock = threading.Lock()

    async def run(self, client: str, work: Callable[[], T], seconds: float) -> T:
        """The result of some work, when its turn has come and it is done.

        If the caller is cancelled, work that still waits is dropped; work that has begun goes on,
        for nothing can stop it, and its result is lost.

        Args:
            client: for whom.
            work: it may raise; the caller then does.
            seconds: to wait at most.

        Raises:
            Refused: too much waits for this client, or the time is up.
        """
        try:
            async with asyncio.timeout(seconds) as limit:
                return await asyncio.wrap_future(self._submit(client, work))
        except TimeoutError as error:
            if not limit.expired():  # it is the work's own
                raise
            raise Refused(
                f"this took longer than {seconds:.0f} seconds, others' requests included: "
                "try again, or choose a player that thinks less",
                504,
            ) from error

    def _submit(self, client: str, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            waiting = self._waiting.get(client, ())
            queue = deque(one for one in waiting if not one[0].cancelled())
            if len(queue) >= MAX_WAITING:
                raise Refused(
                    f"{MAX_WAITING} requests wait already: wait for their answers, and try again",
                    429,
                )
            queue.append((future, work))
            self._waiting[client] = queue
            if self._idle:
                self._idle -= 1
                threading.Thread(target=self._work_off, daemon=True).start()
        return future

    def _work_off(self) -> None:
        """Do what waits until nothing does."""
        client = None
        while (found := self._next(client)) is not None:
            client, future, work = found
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except BaseException as error:  # the caller's to handle, whatever it is
                future.set_exception(error)

    def _next(self, done: str | None) -> tuple[str, Future[Any], Callable[[], Any]] | None:
        """The next piece of work; ``done`` is the client whose last one has ended."""
        with self._lock:
            if done is not None:
                self._served.discard(done)
            for client, queue in self._waiting.items():
                if client not in self._served:
                    future, work = queue.popleft()
                    self._waiting.move_to_end(client)
                    if not queue:
                        del self._waiting[client]
                    self._served.add(client)
                    return client, future, work
            self._idle += 1
            return None
