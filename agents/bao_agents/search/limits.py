"""Define the limits of a search, and read the clock in compiled code.

A compiled search checks many times a millisecond whether its *deadline* has passed. The deadline is
an int64[1], a time on the clock of :func:`nanoseconds`. Time limits are wall-clock time, and
each position gets the full time again. Below about a millisecond, preparing a search takes longer
than the search.
"""

from __future__ import annotations

import re
import time
from typing import Any, NamedTuple, Self

import numpy as np
from numba import types

from bao_agents.support.cores import cores
from bao_env.compiled.compile import jit, jit_with_array
from bao_env.engine.argument_checks import as_integer
from bao_env.engine.batch import MAX_THREADS

LEAST_SECONDS, MAX_SECONDS = 0.001, 3600.0
"""The least and the most seconds that a move may take."""
MAX_NODES = 1 << 62
NEVER = np.iinfo(np.int64).max
"""The deadline of a search without a time limit."""

MAX_CLOCK = 86_400.0
"""The most seconds of a clock: a day."""
_MOVES_TO_COME = 12
"""The number of moves for which a clock must last. A player makes about 30 moves in a game, but
many are forced or end in a proof, and take no time."""
_INCREMENT_SHARE = 0.8
"""The part of the increment that is added to the usual time of a move."""
_CLOCK_SHARE = 0.3
"""The largest part of a clock that one move may take."""
_RESERVE = 0.02
"""Seconds of a clock that a search leaves for everything else."""
_TIME = r"[0-9]{1,6}(?:\.[0-9]{1,6})?(?:ms|s|m)"
_LOOK_NODES = 256
"""Nodes between two looks at the clock: some tens of microseconds."""


class Clock(NamedTuple):
    """A player's time for all moves of a game.

    As a rule of play this is the time at the start; during a game it is the time left.
    """

    seconds: float
    """Wall-clock time."""
    increment: float = 0.0
    """Seconds that are added after each move."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the clock of a text such as ``10s+0.1s``, ``2m`` or ``500ms``.

        Raises:
            ValueError: the text is not a clock, or is out of range.
        """
        match = re.fullmatch(rf"({_TIME})(?:\+({_TIME}))?", text)
        if not match:
            raise ValueError(f"{text!r:.40}: expected a clock, for example 10s+0.1s, 2m or 500ms")
        clock = cls(_seconds(match[1]), _seconds(match[2] or "0s"))
        if not LEAST_SECONDS <= clock.seconds <= MAX_CLOCK or clock.increment > MAX_SECONDS:
            raise ValueError(f"{text:.40}: expected a time from {LEAST_SECONDS} seconds to a day")
        return clock

    def __str__(self) -> str:
        times = [self.seconds, *([self.increment] if self.increment else [])]
        return "+".join(f"{np.format_float_positional(time, trim='-')}s" for time in times)

    @property
    def most_seconds(self) -> float:
        """The most seconds that the next move may take; it usually takes about half of that."""
        usual = self.seconds / _MOVES_TO_COME + _INCREMENT_SHARE * self.increment
        allowed = min(2 * usual, _CLOCK_SHARE * self.seconds, self.seconds - _RESERVE)
        return max(LEAST_SECONDS, min(allowed, MAX_SECONDS))


def _seconds(time: str) -> float:
    """Return the seconds in a text such as ``2m``, ``2s`` or ``500ms``."""
    number, unit = re.fullmatch("([0-9.]+)([a-z]+)", time).groups()  # type: ignore[union-attr]
    return float(number) * {"m": 60.0, "s": 1.0, "ms": 0.001}[unit]


class Limit(NamedTuple):
    """A limit on the search for a move, as in python-chess; None means no limit.

    A search ends as soon as it reaches one of its limits.
    """

    plies: int | None = None
    seconds: float | None = None
    """Wall-clock time. It is used up unless there is only one move or the result is proven. The
    choice is the best one found in that time, so it depends on the machine."""
    nodes: int | None = None
    """Positions to visit; in a Monte Carlo search, playouts."""
    clock: Clock | None = None
    """The time left for the game. Easy moves are then played sooner, to save time for hard ones."""

    @classmethod
    def by_clock(cls, clock: Clock) -> Self:
        """Return the limit of a move in a game with a clock."""
        return cls(seconds=clock.most_seconds, clock=clock)


def check_limit(name: str, limit: Limit, lowest: Limit, highest: Limit) -> Limit:
    """Validate a limit, and return it with plain numbers.

    Args:
        name: the search, for messages.
        limit: the limit.
        lowest, highest: the range of each number; None for a limit that the search lacks.

    Raises:
        TypeError: the limit is not a :class:`Limit`, or its seconds are not a number.
        ValueError: the limit has no number, or has one that the search lacks, that is out of
            range, or that is not whole.
    """
    if not isinstance(limit, Limit):
        raise TypeError(
            f"{name}: limit={limit!r:.80}: expected a Limit, for example Limit(nodes=1000)"
        )
    if limit.clock is not None and highest.seconds is not None:
        allowed = limit.clock.most_seconds
        limit = limit._replace(seconds=min(allowed, limit.seconds or allowed))
    units = [unit for unit, highest_value in highest._asdict().items() if highest_value is not None]
    numbers = {unit: number for unit, number in limit._asdict().items() if number is not None}
    clock = numbers.pop("clock", None)
    if not numbers or not numbers.keys() <= set(units):
        words = ", ".join(f"{unit}={number!r:.80}" for unit, number in numbers.items())
        raise ValueError(f"{name}: Limit({words}): expected {' or '.join(units)}")
    for unit, number in numbers.items():
        low, high = getattr(lowest, unit), getattr(highest, unit)
        if unit != "seconds":
            numbers[unit] = as_integer(number, f"{name}: {unit}", low, high)
        elif isinstance(number, bool) or not isinstance(number, int | float | np.number):
            raise TypeError(f"{name}: seconds={number!r:.80}: expected a number")
        elif not low <= number <= high:
            raise ValueError(f"{name}: {number} seconds a move: expected {low} to {high:.0f}")
        else:
            numbers[unit] = float(number)
    return Limit(**numbers, clock=clock)


def check_threads(threads: object | None) -> int:
    """Return the number of threads to use: the given number, or one per core for None.

    Raises:
        ValueError: the number is not an integer, or is out of range.
    """
    if threads is None:
        return cores()
    return as_integer(threads, "threads", 1, MAX_THREADS)


if hasattr(time, "CLOCK_MONOTONIC"):
    _CLOCK = time.CLOCK_MONOTONIC
    # The C library's clock_gettime writes seconds and nanoseconds.
    _clock_gettime: Any = types.ExternalFunction(
        "clock_gettime", types.int32(types.int32, types.CPointer(types.int64))
    )

    @jit_with_array
    def nanoseconds() -> int:
        """Return the time of a monotonic clock, int64, without holding Python's global lock."""
        clock = np.empty(2, np.int64)
        _clock_gettime(_CLOCK, clock.ctypes)
        return clock[0] * 1_000_000_000 + clock[1]

else:  # Windows
    _query_counter: Any = types.ExternalFunction(
        "QueryPerformanceCounter", types.int32(types.CPointer(types.int64))
    )
    _TICK = round(1e9 * time.get_clock_info("perf_counter").resolution)
    """Nanoseconds between two counts: 100 since Windows 10."""

    @jit_with_array
    def nanoseconds() -> int:
        """Return the time of a monotonic clock, int64, without holding Python's global lock."""
        clock = np.empty(1, np.int64)
        _query_counter(clock.ctypes)
        return clock[0] * _TICK


@jit
def is_late(work: np.record) -> bool:
    """Return whether a search has reached a limit.

    Call this once ``work.nodes >= work.look_at``.

    Args:
        work: a record with the int64 ``nodes``, ``node_limit``, ``deadline`` and ``look_at``, the
            number of nodes at which to call this function next.
    """
    late = work.nodes >= work.node_limit or nanoseconds() >= work.deadline
    work.look_at = 0 if late else min(work.node_limit, work.nodes + _LOOK_NODES)
    return late


def deadline(seconds: float | None) -> int:
    """Return the deadline of a search that starts now; :data:`NEVER` without a time limit."""
    return NEVER if seconds is None else nanoseconds() + round(1e9 * seconds)
