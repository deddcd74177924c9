"""Share work among threads, so that Ctrl-C at any moment leaves them usable.

``concurrent.futures`` cannot promise that: some of its locks are released by Python code, and an
interrupt just before that code leaves them locked forever. Here all waiting is done in C.
"""

from __future__ import annotations

import _thread
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue

Work = Callable[[slice], None]
_LONGEST_WAIT = 0.1
"""Seconds after which a waiting thread looks for an interrupt.

A signal that reaches another thread, or this one just before it waits, does not wake it."""


class Threads:
    """Threads that wait for work until this object is collected or the program ends.

    Args:
        count: number of threads.
    """

    def __init__(self, count: int) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        weakref.finalize(self, _dismiss, self._jobs, count)
        for _ in range(count):
            _thread.start_new_thread(_serve, (self._jobs,))

    def run(self, work: Work, parts: Sequence[slice]) -> None:
        """Call ``work(part)`` for each part, and return when all parts have ended.

        The first part runs in this thread. After an interrupt, wait for the parts that have begun
        and leave out the others.

        Raises:
            BaseException: what the work raised in the first part, or else in the later part that
                failed first.
        """
        first_part, *later_parts = parts
        job = Job(work, later_parts)
        try:
            for _ in later_parts:
                self._jobs.put(job)
            work(first_part)
            job.wait(len(later_parts))
        finally:
            left_out = list(job.parts)
            job.wait(len(later_parts) - len(left_out))
        job.check()


class Job:
    """Parts of some work that threads take one by one.

    Attributes:
        parts: the parts that no thread has begun.
        ended: for each part that has ended, the exception that it raised, or None.
        changed: a queue that gets None whenever a part has ended.
    """

    def __init__(self, work: Work, parts: Sequence[slice]) -> None:
        self.parts: Iterator[slice] = iter(parts)
        self.ended: list[BaseException | None] = []
        self._work = work
        self.changed: SimpleQueue[None] = SimpleQueue()

    def do_one(self) -> bool:
        """Do the next part; return False if none is left."""
        part = next(self.parts, None)
        if part is None:
            return False
        error = None
        try:
            self._work(part)
        except BaseException as raised:  # noqa: BLE001 (the caller raises it)
            error = raised
        self.ended.append(error)
        self.changed.put(None)
        return True

    def wait(self, count: int) -> None:
        """Wait until ``count`` parts have ended."""
        while len(self.ended) < count:
            with suppress(Empty):
                self.changed.get(timeout=_LONGEST_WAIT)

    def check(self) -> None:
        """Raise the first error of a part that has ended with one."""
        for error in self.ended:
            if error is not None:
                raise error


def _serve(jobs: SimpleQueue[Job | None]) -> None:
    while job := jobs.get():
        job.do_one()
        del job  # otherwise it keeps the caller's arrays alive until the next job


def _dismiss(jobs: SimpleQueue[Job | None], count: int) -> None:
    for _ in range(count):
        jobs.put(None)
