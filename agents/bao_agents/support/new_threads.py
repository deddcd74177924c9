"""Share work among new threads, and end it soon after an interrupt."""

from __future__ import annotations

import _thread
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty

from bao_env.compiled.threads import Job, Work

_STOP_AGAIN = 0.01
"""Seconds between two calls of ``stop``."""


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
    job = Job(work, parts)

    def serve() -> None:
        while job.do_one():
            pass

    try:
        for _ in range(count):
            _thread.start_new_thread(serve, ())
        job.wait(len(parts))
    finally:
        left_out = list(job.parts)
        while len(job.ended) < len(parts) - len(left_out):
            stop()
            with suppress(Empty):
                job.changed.get(timeout=_STOP_AGAIN)
    job.check()
