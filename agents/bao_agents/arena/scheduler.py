"""Play the plan of an event, on the cores of this machine or of a Ray cluster.

Results depend neither on the number of processes nor on their speed, unless time limits a player.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from multiprocessing import current_process

from bao_agents.arena.event import Event, Interrupted, program
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.plan import Part, Plan
from bao_agents.arena.pools import LocalPool, RayPool, wait_for_others
from bao_agents.players import registry
from bao_agents.support.progress import Progress
from bao_env.engine.ruleset import Ruleset

SECONDS_BEFORE_POOL = 10.0
"""An event plays in this process what takes no longer than this: processes take seconds to start.
"""


class Clock:
    """Count the time that games may take, but not that in which players and processes get ready.

    Args:
        seconds: how long.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self.patient = True
        """Whether there is no limit yet: the first games are waited for, however long they take."""

    @property
    def left(self) -> float:
        """Seconds that are left, 0 or more."""
        return math.inf if self.patient else max(0.0, self._end - time.monotonic())

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the clock for the length of the block."""
        start = time.monotonic()
        yield
        self._end += time.monotonic() - start


def play(
    event: Event,
    plan: Plan,
    workers: Workers,
    bar: Progress,
    results: dict[Part, Pairs],
    seconds: float = math.inf,
) -> None:
    """Play an event to the end of its plan, except for the parts whose results its folder has.

    Args:
        event: the event.
        plan: its plan.
        workers: they play the games.
        bar: counts them.
        results: gets the results in the planned order, whatever ends the event.
        seconds: the time limit; games that are unfinished then do not count. If none has ended,
            the first ones are waited for.

    Raises:
        TimeoutError: the time is up.
        ValueError: see :meth:`~bao_agents.arena.event.Event.play`.
        OSError: a result cannot be written.
    """
    clock = Clock(seconds)
    while parts := plan.next_round(results):
        read_results = {part: event.read(part) for part in parts}
        stored = {part: pairs for part, pairs in read_results.items() if pairs is not None}
        bar.total = 2 * sum(len(part.numbers) for part in [*results, *parts])
        bar.update(2 * sum(map(len, stored.values())))
        ended: dict[Part, Pairs] = {}
        parts_to_come = deque(parts)
        is_decided = False
        missing = [part for part in parts if part not in stored]
        played = workers.play(event, missing, bar, clock)
        try:
            for part, pairs in chain(stored.items(), played):
                clock.patient = False
                if part not in stored:
                    event.keep(part, pairs)
                ended[part] = pairs
                while parts_to_come and parts_to_come[0] in ended and not is_decided:
                    next_part = parts_to_come.popleft()
                    results[next_part] = ended.pop(next_part)
                    is_decided = plan.is_decided(results)
                if is_decided:
                    ended.clear()
                    break
        finally:  # at once: Ctrl-C may come at any moment
            results |= {part: ended[part] for part in parts if part in ended}


class Workers(ExitStack):
    """Play parts in this process while that is quick, else in a pool.

    At the end of the ``with`` block running work is lost.

    Args:
        processes: the number of processes, and of threads of a search in this process; with 1 all
            parts are played here, and so they are in a worker of ``multiprocessing.Pool``, which
            must not start processes.
        ray_address: play on the Ray cluster there instead (:class:`RayPool`).
    """

    def __init__(self, processes: int, ray_address: str | None = None) -> None:
        super().__init__()
        self.callback(program.cache_clear)  # ends the programs
        self._processes = processes
        self._may_start_pool = processes > 1 and not current_process().daemon
        self._pool: Executor | None = None
        if ray_address is not None:
            self._pool = self.enter_context(RayPool(ray_address))

    def play(
        self, event: Event, parts: Sequence[Part], bar: Progress, clock: Clock
    ) -> Iterator[tuple[Part, Pairs]]:
        """Play parts of an event; yield each with its results as it ends.

        The first ones are played here, which tells how long the others would take.

        Args:
            event: the event.
            parts: the parts; they are taken in this order.
            bar: counts the games.
            clock: the time that they may take.

        Raises:
            TimeoutError: the time is up; unfinished parts are lost.
            ValueError: see :meth:`~bao_agents.arena.event.Event.play`.
        """
        specs = list(dict.fromkeys(spec for part in parts for spec in event.specs(part)))
        waiting = deque(parts)
        if self._pool is None:
            with clock.stopped():
                _get_ready(specs, event.ruleset)
        start, played = time.monotonic(), 0
        while waiting:
            seconds_a_pair = (time.monotonic() - start) / max(1, played)
            left = seconds_a_pair * sum(len(part.numbers) for part in waiting)
            if self._pool is None and self._may_start_pool and left > SECONDS_BEFORE_POOL:
                with clock.stopped():
                    self._start_pool(specs, event.ruleset)
            if self._pool is not None:
                yield from _play_in_pool(self._pool, event, waiting, bar, clock)
                return
            pairs = self._play_here(event, waiting[0], bar, clock)
            if pairs is not None:
                played += len(pairs)
                yield waiting.popleft(), pairs

    def _play_here(self, event: Event, part: Part, bar: Progress, clock: Clock) -> Pairs | None:
        """Play a part in this process; return None if it takes so long that a pool is better."""
        start, games_counted = time.monotonic(), 0

        def progress(ended: int) -> None:
            nonlocal games_counted
            games_counted += ended
            bar.update(ended)
            is_slow = time.monotonic() - start > SECONDS_BEFORE_POOL
            if (is_slow and self._may_start_pool) or clock.left == 0.0:
                raise Interrupted

        try:
            return event.play(part, self._processes, progress)
        except Interrupted:
            bar.update(-games_counted)
            if clock.left == 0.0:
                raise TimeoutError("the time is up") from None
            return None

    def _start_pool(self, specs: Sequence[str], ruleset: Ruleset) -> None:
        """Start the processes, and wait until they are ready to play."""
        pool = self._pool = self.enter_context(LocalPool(self._processes))
        getting_ready = [pool.submit(_get_ready, specs, ruleset) for _ in range(self._processes)]
        for future in getting_ready:
            future.result()


def _play_in_pool(
    pool: Executor, event: Event, parts: Sequence[Part], bar: Progress, clock: Clock
) -> Iterator[tuple[Part, Pairs]]:
    """Play parts in a pool; see :meth:`Workers.play`."""
    waiting = {pool.submit(Event.play, event, part): part for part in parts}
    try:
        while waiting:
            left = min(clock.left, threading.TIMEOUT_MAX)
            ended, _ = wait(waiting, left, FIRST_COMPLETED)
            if not ended:
                raise TimeoutError("the time is up")
            for future in ended:
                played = future.result()
                bar.update(2 * len(played))
                yield waiting.pop(future), played
    finally:
        for future in waiting:
            future.cancel()


def _get_ready(specs: Sequence[str], ruleset: Ruleset) -> None:
    """Compile what players need. In a pool, wait until all of its processes have done so."""
    for spec in specs:
        with suppress(Exception):  # Event.play raises it again, and says whose it is
            registry.warm_up(spec, ruleset)
    wait_for_others()
