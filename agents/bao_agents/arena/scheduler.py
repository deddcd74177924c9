"""Play the plan of an event, on the cores of this machine or of a Ray cluster.

Results depend neither on the number of processes nor on their speed, unless a player has a time
limit.
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
"""Games that would take more seconds than this are played in a pool, which is slow to start."""


class Timer:
    """Count down the time for all games; the time to prepare players and processes is not counted.

    Args:
        seconds: how long games may take.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self.patient = True
        """Whether there is no time limit yet: the first part may take as long as it needs."""

    @property
    def left(self) -> float:
        """Seconds that are left, 0 or more."""
        return math.inf if self.patient else max(0.0, self._end - time.monotonic())

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the timer during the block."""
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
    """Play an event to the end of its plan, except for parts whose results are in its folder.

    Args:
        event: the event.
        plan: its plan.
        workers: plays the games.
        bar: counts the games.
        results: receives the results in the planned order, however the event ends.
        seconds: the time limit. Games that are then unfinished do not count. If no part has ended
            by then, play goes on until the first one has.

    Raises:
        TimeoutError: the time is up.
        ValueError: see :meth:`~bao_agents.arena.event.Event.play`.
        OSError: a result cannot be written.
    """
    timer = Timer(seconds)
    while parts := plan.next_round(results):
        read_results = {part: event.read(part) for part in parts}
        stored = {part: pairs for part, pairs in read_results.items() if pairs is not None}
        bar.total = 2 * sum(len(part.numbers) for part in [*results, *parts])
        bar.update(2 * sum(map(len, stored.values())))
        ended: dict[Part, Pairs] = {}
        parts_to_come = deque(parts)
        is_decided = False
        missing = [part for part in parts if part not in stored]
        played = workers.play(event, missing, bar, timer)
        try:
            for part, pairs in chain(stored.items(), played):
                timer.patient = False
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
        finally:  # in one statement: Ctrl-C may come at any moment
            results |= {part: ended[part] for part in parts if part in ended}


class Workers(ExitStack):
    """Play parts in this process or, if that would take too long, in a pool.

    At the end of the ``with`` block, running work is lost.

    Args:
        processes: the number of processes, and of threads of a search in this process. With 1, or
            in a worker of ``multiprocessing.Pool``, which must not start processes, all parts are
            played in this process.
        ray_address: the address of a Ray cluster that plays all parts instead (:class:`RayPool`).
    """

    def __init__(self, processes: int, ray_address: str | None = None) -> None:
        super().__init__()
        self.callback(program.cache_clear)  # ends the programs of players
        self._processes = processes
        self._may_start_pool = processes > 1 and not current_process().daemon
        self._pool: Executor | None = None
        if ray_address is not None:
            self._pool = self.enter_context(RayPool(ray_address))

    def play(
        self, event: Event, parts: Sequence[Part], bar: Progress, timer: Timer
    ) -> Iterator[tuple[Part, Pairs]]:
        """Play parts of an event; yield each part with its results as soon as it ends.

        The first parts are played in this process, to estimate how long the others will take.

        Args:
            event: the event.
            parts: the parts; they are started in this order.
            bar: counts the games.
            timer: the time for the games.

        Raises:
            TimeoutError: the time is up; unfinished parts are lost.
            ValueError: see :meth:`~bao_agents.arena.event.Event.play`.
        """
        specs = list(dict.fromkeys(spec for part in parts for spec in event.specs(part)))
        waiting = deque(parts)
        if self._pool is None:
            with timer.stopped():
                _get_ready(specs, event.ruleset)
        start, played = time.monotonic(), 0
        while waiting:
            seconds_a_pair = (time.monotonic() - start) / max(1, played)
            left = seconds_a_pair * sum(len(part.numbers) for part in waiting)
            if self._pool is None and self._may_start_pool and left > SECONDS_BEFORE_POOL:
                with timer.stopped():
                    self._start_pool(specs, event.ruleset)
            if self._pool is not None:
                yield from _play_in_pool(self._pool, event, waiting, bar, timer)
                return
            pairs = self._play_here(event, waiting[0], bar, timer)
            if pairs is not None:
                played += len(pairs)
                yield waiting.popleft(), pairs

    def _play_here(self, event: Event, part: Part, bar: Progress, timer: Timer) -> Pairs | None:
        """Play a part in this process; return None if a pool should play it because it is slow."""
        start, games_counted = time.monotonic(), 0

        def progress(ended: int) -> None:
            nonlocal games_counted
            games_counted += ended
            bar.update(ended)
            is_slow = time.monotonic() - start > SECONDS_BEFORE_POOL
            if (is_slow and self._may_start_pool) or timer.left == 0.0:
                raise Interrupted

        try:
            return event.play(part, self._processes, progress)
        except Interrupted:
            bar.update(-games_counted)
            if timer.left == 0.0:
                raise TimeoutError("the time is up") from None
            return None

    def _start_pool(self, specs: Sequence[str], ruleset: Ruleset) -> None:
        """Start the processes, and wait until they are ready to play."""
        pool = self._pool = self.enter_context(LocalPool(self._processes))
        getting_ready = [pool.submit(_get_ready, specs, ruleset) for _ in range(self._processes)]
        for future in getting_ready:
            future.result()


def _play_in_pool(
    pool: Executor, event: Event, parts: Sequence[Part], bar: Progress, timer: Timer
) -> Iterator[tuple[Part, Pairs]]:
    """Play parts in a pool; see :meth:`Workers.play`."""
    waiting = {pool.submit(Event.play, event, part): part for part in parts}
    try:
        while waiting:
            left = min(timer.left, threading.TIMEOUT_MAX)
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
    """Compile what players need; in a pool, wait until all its processes have done so."""
    for spec in specs:
        with suppress(Exception):  # Event.play raises it again, and names the player
            registry.warm_up(spec, ruleset)
    wait_for_others()
