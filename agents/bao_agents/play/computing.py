"""Threads that compute for clients in turn: bots, hints and evaluations.

They are separate from the threads that serve moves, undo and loading, and leave a core to those.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from bao_agents.play.refused import Refused

MAX_WAITING = 4
"""Pieces of work that may wait for one game."""

T = TypeVar("T")


class Asker(NamedTuple):
    """The source of a piece of work."""

    client: str
    """The address of the client."""
    game: str
    """The game or watch of the client."""


class Job(NamedTuple):
    """A piece of work."""

    asker: Asker
    future: Future[Any]
    work: Callable[[], Any]


class Computing:
    """A few threads that work for many clients.

    The next client is the one whose work has taken the least time so far, in whole seconds, and its
    next game likewise; among equals, the last one to come. So a client with many games or slow bots
    does not hold up the others, nor a slow bot the client's other games. A client that comes late
    gets no credit for the time that others used before. Each game has at most one piece of work
    running. The threads end when no work waits, and never keep the process alive.

    Args:
        threads: number of threads; None for all cores but one.
        clock: returns the time in seconds.
    """

    def __init__(
        self, threads: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._idle = threads or max(1, (os.cpu_count() or 1) - 1)
        self._waiting: list[Job] = []
        """The waiting work, in the order of its arrival."""
        self._served: set[Asker] = set()
        self._used: dict[str | Asker, float] = {}
        """Seconds of work, by client and by game; forgotten when nothing is left to do."""
        self._clock = clock
        self._lock = threading.Lock()

    async def run(self, asker: Asker, work: Callable[[], T], seconds: float) -> T:
        """Return the result of some work, which takes its turn.

        If the caller is cancelled, work that still waits is dropped. Work that has begun cannot be
        stopped; its result is lost.

        Args:
            asker: the source of the work.
            work: the work; its errors are raised here.
            seconds: the longest time to wait.

        Raises:
            Refused: too much work waits for this game, or the time is up.
        """
        try:
            async with asyncio.timeout(seconds) as limit:
                return await asyncio.wrap_future(self._submit(asker, work))
        except TimeoutError as error:
            if not limit.expired():  # the work itself raised it
                raise
            raise Refused(
                f"this took longer than {seconds:.0f} seconds, others' requests included: "
                "try again, or choose a player that thinks less",
                504,
            ) from error

    def _submit(self, asker: Asker, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            self._waiting = [job for job in self._waiting if not job.future.cancelled()]
            askers = [job.asker for job in self._waiting]
            if askers.count(asker) >= MAX_WAITING:
                raise Refused(
                    f"{MAX_WAITING} requests wait already: wait for their answers, and try again",
                    429,
                )
            if asker not in askers:
                self._catch_up(asker.client, [other.client for other in askers])
                self._catch_up(asker, [one for one in askers if one.client == asker.client])
            self._waiting.append(Job(asker, future, work))
            if self._idle:
                self._idle -= 1
                threading.Thread(target=self._work_off, daemon=True).start()
        return future

    def _catch_up(self, late: str | Asker, waiting: Iterable[str | Asker]) -> None:
        """Give a newcomer at least the least time of those that wait."""
        least = min((self._used[one] for one in waiting), default=0.0)
        self._used[late] = max(self._used.get(late, 0.0), least)

    def _work_off(self) -> None:
        """Do waiting work until there is none."""
        while (job := self._next()) is not None:
            asker, future, work = job
            begun = self._clock()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:  # the caller handles it
                    future.set_exception(error)
            seconds = self._clock() - begun
            with self._lock:
                self._served.discard(asker)
                self._used[asker] += seconds
                self._used[asker.client] += seconds

    def _next(self) -> Job | None:
        """Choose the next piece of work."""
        with self._lock:
            first: dict[Asker, Job] = {}
            for job in self._waiting:
                if job.asker not in self._served:
                    first.setdefault(job.asker, job)
            if not first:
                self._idle += 1
                if not self._waiting and not self._served:
                    self._used.clear()
                return None
            asker = min(
                reversed(first), key=lambda one: (int(self._used[one.client]), int(self._used[one]))
            )
            self._served.add(asker)
            self._waiting.remove(first[asker])
            return first[asker]
