"""Share work among threads, so that Ctrl-C at any moment leaves them usable.

``concurrent.futures`` cannot promise that: some of its locks are released by Python code, and an
interrupt just before that code leaves them locked for ever. Here all waiting is done in C.
"""

from __future__ import annotations

import _thread
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue

Work = Callable[[slice], None]
_STOP_AGAIN = 0.01
"""Seconds between two calls of ``stop``."""


class Threads:
    """Threads that wait for work until this object is collected or the program ends.

    Args:
        count: number of threads.
    """

    def __init__(self, count: int) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        weakref.finalize(self, _dismiss, self._jobs, count)
        for _ in range(count):
            _thread.start_new_thread(_serve, (self._jobs,))

    def run(self, work: Work, parts: Sequence[slice]) -> None:
        """Call ``work(part)`` for each part, the first one in this thread; return when all ended.

        After an interrupt, the parts that have begun are waited for, and the others are left out.

        Raises:
            BaseException: what the work raised for the earliest part that ended with an error.
        """
        first, *others = parts
        job = _Job(work, others)
        try:
            for _ in others:
                self._jobs.put(job)
            work(first)
            job.wait(len(others))
        finally:
            left_out = list(job.parts)
            job.wait(len(others) - len(left_out))
        job.check()


def run_in_threads(
    work: Work, parts: Sequence[slice], count: int, stop: Callable[[], None]
) -> None:
    """Call ``work(part)`` for each part in ``count`` new threads; return when all ended.

    This thread only waits, so it notices an interrupt at once. The parts that have begun are then
    waited for, and the others are left out.

    Args:
        work: the work.
        parts: the parts.
        count: number of threads.
        stop: makes the parts that have begun end soon; called again and again after an interrupt.

    Raises:
        BaseException: what the work raised for the earliest part that ended with an error.
    """
    job = _Job(work, parts)
    try:
        for _ in range(count):
            _thread.start_new_thread(job.do_all, ())
        job.wait(len(parts))
    finally:
        left_out = list(job.parts)
        job.wait(len(parts) - len(left_out), stop)
    job.check()


class _Job:
    """Parts of some work that threads take one by one.

    Attributes:
        parts: those that nobody has begun.
        ended: for each part that has ended, what it raised.
    """

    def __init__(self, work: Work, parts: Sequence[slice]) -> None:
        self.parts: Iterator[slice] = iter(parts)
        self.ended: list[BaseException | None] = []
        self._work = work
        self._changed: SimpleQueue[None] = SimpleQueue()

    def do_all(self) -> None:
        """Do parts until there are none."""
        while self.do_one():
            pass

    def do_one(self) -> bool:
        """Do a part; return False if there is none."""
        part = next(self.parts, None)
        if part is None:
            return False
        error = None
        try:
            self._work(part)
        except BaseException as raised:
            error = raised
        self.ended.append(error)
        self._changed.put(None)
        return True

    def wait(self, count: int, stop: Callable[[], None] | None = None) -> None:
        """Wait until ``count`` parts have ended, calling ``stop`` again and again."""
        while len(self.ended) < count:
            if stop is None:
                self._changed.get()
            else:
                stop()
                with suppress(Empty):
                    self._changed.get(timeout=_STOP_AGAIN)

    def check(self) -> None:
        """Raise the first error of a part that has ended with one."""
        for error in self.ended:
            if error is not None:
                raise error


def _serve(jobs: SimpleQueue[_Job | None]) -> None:
    while job := jobs.get():
        job.do_one()
        del job  # or it would keep the caller's arrays until the next one


def _dismiss(jobs: SimpleQueue[_Job | None], count: int) -> None:
    for _ in range(count):
        jobs.put(None)
