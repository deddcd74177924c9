"""Test that an interrupted step or reset either happens as a whole or asks for a reset.

Foreign code cannot change the games: opponents get copies, and observers get read-only views.
"""

from __future__ import annotations

import copy
import os
import pickle
import random
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ctypes import CFUNCTYPE
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import VectorEnv
from numba import int64
from numba.core.dispatcher import Dispatcher

import bao_agents
import bao_env
from bao_env import BaoEnv, BaoVectorEnv, Board, Engine, raw_env
from bao_env.compiled.compile import jit
from bao_env.engine.action import actions_of
from bao_env.envs.guard import Guard
from tests.vector import DISABLED, NEXT, SAME, same

pytestmark = pytest.mark.filterwarnings("error")

OURS = str(Path(bao_env.__file__).parent)
BATCH = partial(BaoVectorEnv, 3, ruleset="kujifunza")
EVERY: dict[str, Callable[..., Any]] = {
    "aec": partial(raw_env, ruleset="kujifunza"),
    "single": partial(BaoEnv, "greedy", ruleset="kujifunza"),
    **{
        f"vector {mode.name} {opponent} {illegal}": partial(
            BATCH, autoreset_mode=mode, opponent=opponent, illegal=illegal
        )
        for mode in (SAME, NEXT, DISABLED)
        for opponent, illegal in ((None, "lose"), ("greedy", "raise"))
    },
}
EVERY_ENV = pytest.mark.parametrize("make", list(EVERY.values()), ids=list(EVERY))


class Interrupt(BaseException):
    """An exception that stands for a signal or for foreign code that raises."""


def interrupted(call: Callable[[], Any], line: int) -> bool:
    """Run a call, and raise an exception at the ``line``-th call, line or return in this package.

    Returns whether the call was interrupted: False if it ended before that.
    """
    left = line

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        if event in ("call", "line", "return"):
            left -= 1
            if left == 0:
                raise Interrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except Interrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def act(env: Any) -> Any:
    """Play the first legal action in each game, and return what the step returned."""
    actions: Any = [(actions_of(legal) or [0])[0] for legal in env.legal]
    if not isinstance(env, VectorEnv):
        ended = isinstance(env, raw_env) and any(env.last()[2:4])
        actions = None if ended else actions[0]
    return env.step(actions) or env.last()


def acted(env: Any) -> Any:
    """Return the result of :func:`act`, or None if the environment asks for a reset."""
    with suppress(ResetNeeded):
        return act(env)


def at_an_end(make: Callable[..., Any]) -> Any:
    """Return an environment one step before a game ends, after 8 plies or more."""
    env = make(max_plies=12)
    env.reset(seed=5)
    while True:
        ahead = copy.deepcopy(env)
        result = act(ahead)
        if np.any(result[2]) or np.any(result[3]):
            return env
        env = ahead


@EVERY_ENV
@pytest.mark.parametrize("method", ["step", "reset"])
def test_interrupted_anywhere(make: Callable[..., Any], method: str) -> None:
    """Afterwards the environment asks for a reset, or is as it was before or after the call."""
    start = at_an_end(make)
    done = copy.deepcopy(start)
    call = act if method == "step" else lambda env: env.reset(seed=6)
    call(done)
    before, after = (acted(copy.deepcopy(env)) for env in (start, done))
    stored = pickle.dumps(start)  # faster than as many copies
    resets = 0
    for line in range(1, 10_000):
        env = pickle.loads(stored)
        if not interrupted(partial(call, env), line):
            break
        unchanged = np.array_equal(env.positions, start.positions)
        result = acted(env)
        if result is None:
            resets += 1
            env.reset(seed=6)
            act(env)
            continue
        assert same(result, before if unchanged else after), line
    assert line > 20 and resets > 10
    env.reset(seed=6)
    act(env)


@pytest.mark.parametrize("call", [Board.pop, partial(Board.push, move="A4L")])
def test_interrupted_board(call: Callable[[Board], Any]) -> None:
    """The board's position and its moves belong together."""
    start = Board.from_text("start", "zanzibar", "A6L A6R")
    done = start.copy()
    call(done)
    for line in range(1, 10_000):
        board = start.copy()
        if not interrupted(partial(call, board), line):
            break
        states = [(state, state.move_stack) for state in (start, done)]
        assert (board, board.move_stack) in states, line
        assert Board.from_transcript(board.transcript()).move_stack == board.move_stack, line
        assert board.legal_actions == Board.from_text(board.text()).legal_actions, line
    assert line > 3


def interrupt(call: Callable[[], Any], count: int) -> None:
    """Repeat a call while signals arrive at random moments, until ``count`` interrupted it."""
    rng, landed = random.Random(count), 0

    def arm(*_: object) -> None:
        if landed < count:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 2e-3))
        if armed:
            raise KeyboardInterrupt

    armed, before = False, signal.signal(signal.SIGALRM, arm)
    hook = sys.unraisablehook  # pytest's own does not survive an interrupt
    sys.unraisablehook = lambda _: None
    try:
        call()  # compiles
        arm()
        while landed < count:
            try:
                armed = True
                while True:
                    call()
            except KeyboardInterrupt:
                armed = False
                landed += 1
            call()  # raises RuntimeError if the interrupt has left a lock held
    finally:
        armed, landed = False, count
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = hook


def environment() -> Callable[[], Any]:
    """Return a call that steps games on two threads, and resets them when the environment asks for
    it."""
    env = BaoVectorEnv(2048, opponent=None, threads=2)
    env.reset(seed=1)

    def play() -> None:
        try:
            env.step(env.sample_legal_actions())
        except ResetNeeded:
            env.reset()

    return play


def search() -> Callable[[], Any]:
    """Return a call that searches two positions on two threads."""
    positions, legal, _ = Engine("kujifunza").new_games(2)
    return partial(bao_agents.load("mcts:10", ruleset="kujifunza", threads=2).act, positions, legal)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no interval timers")
@pytest.mark.parametrize("user", [environment, search])
def test_interrupts_leave_nothing_locked(
    user: Callable[[], Callable[[], Any]], thorough: bool
) -> None:
    """The test sends real signals at random moments; afterwards everything can be used again."""
    interrupt(user(), 1000 if thorough else 100)


def test_an_interrupt_in_a_callback_of_the_compiler_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python ignores exceptions there. The interrupt comes after the innermost compilation."""
    ended = list[Any]()

    def compile_and_call_back(self: Dispatcher, signature: Any) -> Any:
        if self is inner:
            CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))()
        else:
            inner.compile(signature)
        ended.append(self)

    def interrupt_once(number: int, _: Any) -> None:
        signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(Dispatcher, "compile", compile_and_call_back)
    inner: Any = jit(lambda count: count)
    outer: Any = jit(lambda count: count)
    try:
        for handler, after in (before, before), (interrupt_once, signal.SIG_IGN):
            signal.signal(signal.SIGINT, handler)
            with pytest.raises(KeyboardInterrupt):
                outer.compile((int64,))
            assert ended.pop() is inner and not ended
            assert signal.getsignal(signal.SIGINT) is after
    finally:
        signal.signal(signal.SIGINT, before)


def test_interrupted_lock_opens_for_its_thread_alone() -> None:
    """Other threads are told that the object is in use, not that it was interrupted."""
    guard = Guard()
    guard.__enter__()  # and never left
    with guard:
        pass
    guard.__enter__()
    for call in (guard.__enter__, guard.check):
        with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="in use by another"):
            pool.submit(call).result()


def test_two_threads_never_pass_a_guard_at_once() -> None:
    guard, alone = Guard(), threading.Lock()

    def enter() -> int:
        passed = 0
        for _ in range(20_000):
            with suppress(RuntimeError), guard:
                assert alone.acquire(blocking=False)
                alone.release()
                passed += 1
        return passed

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as pool:
            assert all(pool.map(lambda _: enter(), range(2)))
    finally:
        sys.setswitchinterval(interval)
