"""Test that an interrupted step or reset either happens as a whole or asks for a reset.

Foreign code cannot change the games: opponents get copies, and observers get read-only views.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box
from gymnasium.vector import VectorEnv

import bao_env
from bao_env import BaoEnv, BaoVectorEnv, raw_env
from bao_env.engine.action import actions_of
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
    """Run a call, and raise at the ``line``-th line of this package that it runs.

    Returns whether it was interrupted: False if it ran fewer lines.
    """
    left = line

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        if event == "line":
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
    asked = 0
    for line in range(1, 10_000):
        env = copy.deepcopy(start)
        if not interrupted(partial(call, env), line):
            break
        before = np.array_equal(env.positions, start.positions)
        try:
            result = act(env)
        except ResetNeeded:
            asked += 1
            continue
        twin = copy.deepcopy(start if before else done)
        assert same(result, act(twin)), line
    assert line > 20 and asked > 10
    env.reset(seed=6)
    act(env)


class Down:
    """An opponent that fails once."""

    fails = False

    def act(self, positions: Any, legal: Any) -> Any:
        if self.fails:
            self.fails = False
            raise ConnectionError
        return [actions_of(bits)[0] for bits in legal]


@pytest.mark.parametrize("make", [BaoEnv, partial(BaoVectorEnv, 8)])
@pytest.mark.parametrize("illegal", ["raise", "lose"])
def test_an_opponent_that_fails(make: Callable[..., Any], illegal: str) -> None:
    """The next actions do not count as the opponent's, and the learner gets no reward for them."""
    opponent = Down()
    env = make(opponent=opponent, seat="south", opening_plies=0, illegal=illegal)
    env.reset(seed=1)
    opponent.fails = True
    with pytest.raises(ConnectionError):
        act(env)
    with pytest.raises(ResetNeeded, match="interrupted"):
        env.step([20] * 8 if isinstance(env, VectorEnv) else 20)
    if isinstance(env, VectorEnv):
        with pytest.raises(ResetNeeded, match="all games"):
            env.reset(options={"reset_mask": np.arange(8) == 0})
    env.reset(seed=1)
    act(env)


# --- observers that users write -----------------------------------------------------------------


class Own:
    """An observer that shows the number of legal actions."""

    space = Box(0, 64, (2,), np.float32)

    def fill(self, positions: Any, legal: Any, viewers: Any, arrays: Any) -> None:
        arrays[:] = [[int(bits).bit_count()] * 2 for bits in legal]


MAKERS = [raw_env, BaoEnv, partial(BaoVectorEnv, 2)]


@pytest.mark.parametrize("make", MAKERS)
def test_an_observer_of_your_own_cannot_change_games(make: Callable[..., Any]) -> None:
    class Careless(Own):
        def fill(self, positions: Any, legal: Any, viewers: Any, arrays: Any) -> None:
            positions >>= np.uint64(1)

    env = make(observation=Own(), opening_plies=0)
    assert np.all((env.reset(seed=0) or env.last())[0]["observation"] == 4)
    with pytest.raises(ValueError, match="read-only"):
        make(observation=Careless())


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("fill", "space"),
    [
        (lambda arrays: None, Own.space),
        (lambda arrays: arrays[:, :1].fill(1), Own.space),
        (lambda arrays: arrays.fill(np.nan), Own.space),
        (lambda arrays: arrays.fill(65), Own.space),
        (lambda arrays: arrays[1:].fill(1), Box(0, 255, (2,), np.uint8)),
        (None, Own.space),
    ],
    ids=["nothing", "half", "NaN", "outside", "one row", "no fill"],
)
def test_an_observers_output_is_tried(make: Callable[..., Any], fill: Any, space: Any) -> None:
    class Wrong:
        pass

    wrong: Any = Wrong()
    wrong.space = space
    if fill is not None:
        wrong.fill = lambda positions, legal, viewers, arrays: fill(arrays)
    with pytest.raises(ValueError, match=r"observation=.*fill"):
        make(observation=wrong)


@pytest.mark.parametrize("mode", [NEXT, DISABLED])
def test_a_waiting_game_is_shown_as_it_ended(mode: Any) -> None:
    """A truncated game keeps its legal actions while it waits, even when others are reset."""
    env = BaoVectorEnv(2, autoreset_mode=mode, max_plies=3, opponent=None)
    env.reset(seed=0)
    env.reset(options={"reset_mask": np.array([False, True])})
    for _ in range(3):
        observation = env.step(env.sample_legal_actions())[0]
    assert observation["action_mask"].any(axis=1).all()
    again = env.reset(options={"reset_mask": np.array([False, True])})[0]
    for key, array in again.items():
        assert np.array_equal(array[0], observation[key][0])
