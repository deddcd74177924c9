"""Test the limits of searches: numbers out of range, times, and Ctrl-C."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import bao_agents
from bao_agents.arena import games
from bao_agents.arena.pairs import play_match
from bao_agents.players.faults import PlayerFault
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.alphabeta.transposition import PROVEN
from bao_agents.search.limits import Clock, Limit
from bao_agents.search.player import Question
from bao_agents.search.sharing import search_in_threads
from bao_env import Board, RandomAgent
from tests.positions import draw
from tests.processes import python


def test_compiled_clock_without_clock_gettime(tmp_path: Path) -> None:
    """Windows has no clock_gettime. Here a Python function that counts nanoseconds stands in for
    the clock of Windows."""
    program = """
import ctypes, time
import llvmlite.binding

@ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_int64))
def counter(count):
    count[0] = time.perf_counter_ns()
    return 1

del time.CLOCK_MONOTONIC
address = ctypes.cast(counter, ctypes.c_void_p).value
llvmlite.binding.add_symbol("QueryPerformanceCounter", address)
from bao_agents.search.limits import nanoseconds

assert time.perf_counter_ns() < nanoseconds() < nanoseconds() < time.perf_counter_ns()
"""
    python(program, NUMBA_CACHE_DIR=str(tmp_path))


@pytest.mark.parametrize("player", ["alphabeta:2ms", "guided:2ms", "mcts:2ms", "solver:2ms"])
def test_time_is_kept(player: str) -> None:
    """A search of two milliseconds takes hardly more processor time, however busy the machine."""
    bot, board = bao_agents.load(player, threads=1), Board()
    seconds = []
    for _ in range(12):
        start = time.thread_time()
        bot.choose(board)
        seconds.append(time.thread_time() - start)
    assert min(seconds) < 0.006


def test_a_limit_of_time_is_used_and_a_clock_is_saved() -> None:
    """A search uses up its time limit unless it finds a proof; with a clock most moves end sooner
    than they must."""
    agent = AlphaBetaAgent("zanzibar", Limit(seconds=0.05), threads=1)
    limit = Limit(clock=Clock(0.3))
    assert limit.clock is not None and limit.clock.most_seconds == pytest.approx(0.05)
    shares: tuple[list[float], list[float]] = [], []
    positions, legal = draw("zanzibar", 20, 12, seed=3)
    for packed in positions:
        for search_limit, seconds in zip((None, limit), shares, strict=True):
            start = time.perf_counter()
            result = agent.search(packed, search_limit)
            if abs(result.value) < PROVEN:
                seconds.append((time.perf_counter() - start) / 0.05)
    limited, by_clock = shares
    assert min(limited) > 0.99
    assert sum(share < 0.8 for share in by_clock) > len(by_clock) / 2
    start = time.perf_counter()
    agent.act(positions[:4], legal[:4])
    assert time.perf_counter() - start > 0.99 * 4 * 0.05  # each position has the whole limit


@pytest.mark.parametrize(
    ("text", "clock"),
    [
        ("10s+0.1s", Clock(10, 0.1)),
        ("2m", Clock(120)),
        ("500ms+20ms", Clock(0.5, 0.02)),
        ("12345.678s+0.000001s", Clock(12345.678, 1e-6)),
        ("1s+3600s", Clock(1, 3600)),
    ],
)
def test_clocks(text: str, clock: Clock) -> None:
    assert Clock.parse(text) == clock == Clock.parse(str(clock))
    seconds, moves = clock.seconds, 0
    while seconds > 0.01 and moves < 200:  # even its longest move never uses up the clock
        most_seconds = clock._replace(seconds=seconds).most_seconds
        assert most_seconds < seconds
        seconds, moves = seconds - most_seconds + clock.increment, moves + 1
    assert moves > 15


@pytest.mark.parametrize(
    ("clock", "seconds"),
    [
        (Clock(12.0), 2.0),  # twice the usual time, a twelfth of the clock ...
        (Clock(12.0, 0.5), 2.8),  # ... and 80% of the increment
        (Clock(1.0, 1.0), 0.3),  # never more than 30% of the clock
        (Clock(0.025, 1.0), 0.005),  # 20 milliseconds are left for everything else
        (Clock(0.01), 0.001),
        (Clock(86_400.0), 3600.0),
    ],
)
def test_the_most_seconds_of_a_move(clock: Clock, seconds: float) -> None:
    assert clock.most_seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["10", "0s", "0.5ms", "10s+", "-1s", "1h", "10s 0.1s", "90000s", "1s+3601s"]
)
def test_other_clocks_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        Clock.parse(text)


def test_a_search_is_compiled_before_a_clock_runs() -> None:
    """So is a search that may take long; a short one is compiled by its first call."""
    searches: list[Limit] = []

    class Noted(AlphaBetaAgent):
        def _search(self, question: Question, thread: int) -> Any:
            searches.append(question.limit)
            return super()._search(question, thread)

    timed, short, long = Limit(seconds=0.001), Limit(nodes=50), Limit(nodes=10**9)
    Noted("zanzibar", timed, threads=1)
    Noted("zanzibar", long, threads=1)
    agent = Noted("zanzibar", short, threads=1)
    assert searches == [timed, long]
    for _ in range(2):
        agent.act(*Board().batch(), limit=timed)
    assert searches[2:] == [timed] * 3


def test_a_player_whose_time_is_used_up_has_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock applies to players without a limit, too; other players get the time that is left on
    it. Getting ready takes none of it, and each move adds the increment."""
    seconds, seconds_left, times_ready = 0.0, list[float](), 0

    def wait() -> None:
        nonlocal seconds
        seconds += 0.4

    class Slow(RandomAgent):
        def act(self, *arguments: Any, **options: Any) -> Any:
            wait()
            return super().act(*arguments, **options)

        def processor_seconds(self) -> float:
            return seconds

    class Told(RandomAgent):
        limit = Limit(seconds=1.0)

        def get_ready(self) -> None:
            nonlocal times_ready
            times_ready += 1
            wait()

        def act(self, *arguments: Any, limit: Limit | None = None) -> Any:
            assert limit is not None and limit.clock is not None and len(arguments[0]) == 1
            seconds_left.append(limit.clock.seconds)
            return super().act(*arguments)

    monkeypatch.setattr(games, "time", SimpleNamespace(perf_counter=lambda: seconds))
    names, clock = ("slow", "told"), Clock(1.0, 0.125)
    pairs = play_match(Slow(1), Told(2), pairs=2, balance=None, clock=clock, names=names)
    assert pairs.points.tolist() == [[0, 0]] * 2
    # Slow has 1.0, 0.725, 0.45 and 0.175 s left before its moves.
    assert pairs.faults == (["lost on time, by 0.225 s"] * 4, [])
    assert pairs.moves.tolist() == [12, 14] and pairs.seconds[0] == pytest.approx(16 * 0.4)
    assert seconds_left == sorted(seconds_left) and times_ready == 14
    assert seconds_left[::2] == [1.0, 1.0, 1.125, 1.125, 1.25, 1.25, 1.375]
    assert all("\nend: lost on time\n" in game for game in pairs.games)

    class Silent(Told):
        def act(self, *arguments: Any, limit: Limit | None = None) -> Any:
            for _ in range(3):
                wait()
            raise PlayerFault("silent", "gave no answer")

    pairs = play_match(Silent(1), Slow(2), pairs=1, balance=None, clock=clock, names=names)
    assert pairs.faults[0] == ["gave no answer"] * 2
    assert all("\nend: lost on time\n" in game for game in pairs.games)


HUGE = (
    "alphabeta:40",
    "guided:40",
    "mcts:9000000",
    "solver:900000000n",
)
INTERRUPTED = """
import numpy as np, sys, bao_agents
from bao_env import Board
board = Board()
for name in sys.argv[1:]:
    for threads, batch, fresh in ((1, 1, True), (2, 4, True), (2, 4, False), (2, 1, False)):
        if fresh:
            player = bao_agents.load(name, threads=threads)
        positions, legal = (np.repeat(array, batch, axis=0) for array in board.batch())
        try:
            print("begin", flush=True)
            player.act(positions, legal, together=True)
            print("finished", name, flush=True)
        except KeyboardInterrupt:
            print("stopped", flush=True)
"""


def interrupt(process: subprocess.Popen[str]) -> float:
    """Send Ctrl-C half a second after the line "begin"; return the seconds to the next line."""
    assert process.stdout is not None
    assert process.stdout.readline() == "begin\n"
    time.sleep(0.5)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "stopped\n"
    return time.monotonic() - start


def test_an_error_ends_a_batch_early() -> None:
    worked = []

    def work(part: slice, thread: int) -> None:
        if part.start == 2:
            raise RuntimeError("part 2")
        worked.append((part.start, thread))
        time.sleep(0.01)

    with pytest.raises(RuntimeError, match="part 2"):
        search_in_threads(400, 1, work, 2, lambda: None, seconds=1.0)
    assert len(worked) < 50 and {thread for _, thread in worked} <= {0, 1}


def test_threads_share_a_batch_however_short() -> None:
    """A single thread searches in the calling thread if that delays Ctrl-C by at most half a
    second."""

    def workers(threads: int, seconds: float) -> set[tuple[int, bool]]:
        worked = set[tuple[int, bool]]()

        def work(part: slice, thread: int) -> None:
            worked.add((thread, threading.current_thread() is threading.main_thread()))
            time.sleep(0.02)

        search_in_threads(8, 1, work, threads, lambda: None, seconds)
        return worked

    assert workers(2, 0.0) == {(0, False), (1, False)}
    assert workers(1, 0.06) == {(0, True)}
    assert workers(1, 0.07) == {(0, False)}


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows has no signal masks")
def test_ctrl_c_is_noticed_when_the_signal_reaches_another_thread() -> None:
    """Then nothing wakes the thread that waits for the search."""
    expired, results = threading.Event(), list[bool]()

    def work(part: slice, thread: int) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        results.append(expired.wait(timeout=10))

    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            search_in_threads(1, 1, work, 1, expired.set, seconds=60.0)
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    assert results == [True]


ENGINE = """
from bao_env.engine.batch import Engine
from bao_env.engine.sampling import random_states
from bao_agents.cli.perft import perft
engine = Engine()
for call in (
    lambda short: perft(engine.rules, engine.opening()[0], 8 if short else 60),
    lambda short: engine.play_random(
        *engine.new_games(2), random_states(2, 1), 2 if short else 2**31 - 1
    ),
):
    call(True)  # which may compile
    try:
        print("begin", flush=True)
        call(False)
    except KeyboardInterrupt:
        print("stopped", flush=True)
"""


@pytest.mark.parametrize(("program", "calls"), [(INTERRUPTED, 4 * len(HUGE)), (ENGINE, 2)])
def test_ctrl_c_stops_every_search_and_the_engine(program: str, calls: int) -> None:
    """Ctrl-C stops a search on one or several threads, and then another search of the same
    player."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *HUGE], stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            slowest = max(interrupt(process) for _ in range(calls))
        finally:
            process.kill()
    assert slowest < 4.0  # two seconds on an idle machine
