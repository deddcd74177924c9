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
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import VectorEnv

import bao_agents
import bao_env
from bao_env import BaoEnv, BaoVectorEnv, Board, Engine, raw_env
from bao_env.compiled.exclusive import Exclusive
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
    """Run a call, and raise at the ``line``-th line of this package that it begins or ends at.

    Returns whether it was interrupted: False if it ran fewer lines.
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
    """Return what ``act`` does, or None if the environment asks for a reset."""
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
@pytest.mark.parametrize("what", ["step", "reset"])
def test_interrupted_anywhere(make: Callable[..., Any], what: str) -> None:
    """Afterwards the environment asks for a reset, or is as it was before or after the call."""
    start = at_an_end(make)
    done = copy.deepcopy(start)
    call = act if what == "step" else lambda env: env.reset(seed=6)
    call(done)
    before, after = (acted(copy.deepcopy(env)) for env in (start, done))
    stored = pickle.dumps(start)  # faster than as many copies
    asked = 0
    for line in range(1, 10_000):
        env = pickle.loads(stored)
        if not interrupted(partial(call, env), line):
            break
        unchanged = np.array_equal(env.positions, start.positions)
        result = acted(env)
        if result is None:
            asked += 1
            env.reset(seed=6)
            act(env)
            continue
        assert same(result, before if unchanged else after), line
    assert line > 20 and asked > 10
    env.reset(seed=6)
    act(env)


@pytest.mark.parametrize("call", [Board.pop, partial(Board.push, move="A4L")])
def test_interrupted_board(call: Callable[[Board], Any]) -> None:
    """Its position and its moves belong together."""
    start = Board.from_text("start", "zanzibar", "A6L A6R")
    done = start.copy()
    call(done)
    for line in range(1, 10_000):
        board = start.copy()
        if not interrupted(partial(call, board), line):
            break
        assert (board, board.move_stack) in [(one, one.move_stack) for one in (start, done)], line
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
            call()  # RuntimeError: in use, if the interrupt has left it locked
    finally:
        armed, landed = False, count
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = hook


def _play(make: Callable[..., Any]) -> Callable[[], Any]:
    """Return a call that steps an environment, and resets it where that is asked for."""
    env = make()
    env.reset(seed=1)

    def play() -> None:
        try:
            env.step(env.sample_legal_actions())
        except ResetNeeded:
            env.reset()

    return play


def _choose(name: str, threads: int = 1) -> Callable[[], Any]:
    """Return a call that asks a player for as many moves as it has threads."""
    player = bao_agents.load(name, ruleset="kujifunza", threads=threads)
    positions, legal, _ = Engine("kujifunza").new_games(threads)
    return partial(player.act, positions, legal)


def _network() -> Callable[[], Any]:
    pytest.importorskip("torch")
    return _choose("kujifunza")


def _engine() -> Callable[[], Any]:
    engine = Engine("kujifunza", 2)
    games = engine.new_games(4096)
    return partial(engine.find_legal, *games)


def _trace() -> Callable[[], Any]:
    board = Board()
    return partial(board.trace, board.legal_actions[0])


USERS: dict[str, Callable[[], Callable[[], Any]]] = {
    "vector, threads": partial(_play, partial(BaoVectorEnv, 2048, opponent=None, threads=2)),
    "single": partial(_play, partial(BaoEnv, "greedy", ruleset="kujifunza")),
    "trace": _trace,
    "engine, threads": _engine,
    **{name: partial(_choose, name) for name in ("alphabeta:1", "mcts:10", "solver:30n")},
    "network": _network,
    "mcts, threads": partial(_choose, "mcts:10", 2),
}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no interval timers")
@pytest.mark.parametrize("user", list(USERS))
def test_interrupts_leave_nothing_locked(user: str, thorough: bool) -> None:
    """Real signals at random moments: afterwards everything can be used again."""
    interrupt(USERS[user](), 1000 if thorough else 100)


def test_interrupted_lock_opens_for_its_thread_alone() -> None:
    lock = Exclusive("Engine")
    lock.__enter__()  # and never left
    with lock:
        pass
    lock.__enter__()
    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="in use by another"):
        pool.submit(lock.__enter__).result()


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


def test_two_threads_in_one_environment() -> None:
    """The second one is told that it is in use, not that it was interrupted."""
    entered, leave = threading.Event(), threading.Event()

    class Slow:
        waits = False

        def act(self, positions: Any, legal: Any) -> Any:
            if self.waits:
                entered.set()
                leave.wait()
            return [actions_of(bits)[0] for bits in legal]

    slow = Slow()
    env = BaoVectorEnv(2, opponent=slow, seat="south", opening_plies=0)
    env.reset(seed=1)
    slow.waits = True
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(act, env)
        entered.wait()
        for call in (partial(act, env), partial(env.reset, seed=2)):
            with pytest.raises(RuntimeError, match="environment is in use by another thread"):
                call()
        leave.set()
        first.result()
    slow.waits = False
    act(env)
