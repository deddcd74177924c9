"""Share searches among threads, and end the searches soon after Ctrl-C."""

from __future__ import annotations

import _thread
from collections.abc import Callable
from contextlib import suppress
from queue import Empty

from bao_env.compiled.threads import Job

SHORT = 0.5
"""The most seconds by which a search in the calling thread may delay Ctrl-C."""
_EXPIRE_AGAIN = 0.01
"""Seconds between two calls of ``expire`` after an interrupt."""


def search_in_threads(
    size: int,
    step: int,
    work: Callable[[slice, int], None],
    threads: int,
    expire: Callable[[], None],
    seconds: float,
) -> None:
    """Run ``work(part, thread)`` on all parts of a batch, and wait for the results.

    Each thread takes the next part as soon as it has finished one, so no thread waits for another's
    hard positions. On Ctrl-C all deadlines expire, no new part is started, and KeyboardInterrupt is
    raised once the running parts have ended. After an error no new part is started either. If the
    system starts fewer threads, they do all parts.

    Args:
        size: the number of positions in the batch.
        step: the most positions in a part.
        work: the search of a part, which sets the deadline of its thread.
        threads: the number of threads.
        expire: makes the deadlines of all threads expire. After Ctrl-C it is called repeatedly,
            because a part may just have set its own deadline.
        seconds: roughly how many seconds a position takes at most.
    """
    parts = [slice(low, min(low + step, size)) for low in range(0, size, step)]
    threads = min(threads, len(parts))
    if threads <= 1 and size * seconds <= SHORT:
        for part in parts:
            work(part, 0)
        return
    free = list(range(threads))
    failed: list[BaseException] = []

    def work_on(part: slice) -> None:
        if failed:
            return
        thread = free.pop()
        try:
            work(part, thread)
        except BaseException as error:
            failed.append(error)
            raise
        finally:
            free.append(thread)

    job = Job(work_on, parts)

    def serve() -> None:
        while job.do_one():
            pass

    # This thread only waits, so it notices an interrupt at once. It then waits for the parts that
    # have been started, and drops the others.
    try:
        for started in range(threads):
            try:
                _thread.start_new_thread(serve, ())
            except (RuntimeError, MemoryError):  # the system has no more threads
                if started == 0:
                    serve()
                break
        job.wait(len(parts))
    finally:
        left_out = list(job.parts)
        while len(job.ended) < len(parts) - len(left_out):
            expire()
            with suppress(Empty):
                job.changed.get(timeout=_EXPIRE_AGAIN)
    job.check()
