"""The Gymnasium vector environment: what it takes and refuses, and the arrays it hands out."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

from bao_env import BaoVectorEnv
from bao_env.bots import Opponent
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import unpack
from bao_env.envs.aec import raw_env
from bao_env.notation import format_position
from tests.vector import (
    DISABLED,
    EVERY_MODE,
    SAME,
    legal_actions,
    run,
    same,
)

pytestmark = pytest.mark.filterwarnings("error")


# --- actions ------------------------------------------------------------------------------------


@EVERY_MODE
@pytest.mark.parametrize("opponent", [None, "greedy"])
def test_an_illegal_action_changes_nothing(mode: AutoresetMode, opponent: Opponent | None) -> None:
    env = BaoVectorEnv(30, opponent=opponent, autoreset_mode=mode, max_plies=9)
    rng = np.random.default_rng(0)
    observation, _ = env.reset(seed=0)
    over = np.zeros(30, bool)
    tried = 0
    for _ in range(25):
        if mode is DISABLED and over.any():
            observation, _ = env.reset(options={"reset_mask": over})
        actions = legal_actions(observation["action_mask"], rng)
        for game in (0, 29):
            if (over[game] and mode is not SAME) or not observation["action_mask"][game].any():
                continue
            wrong = actions.copy()
            wrong[game] = observation["action_mask"][game].argmin()
            before = pickle.dumps(env)
            legal = np.flatnonzero(observation["action_mask"][game]).tolist()
            message = f"action {wrong[game]} is illegal in game {game}; legal there: {legal}"
            with pytest.raises(ValueError, match=re.escape(message)):
                env.step(wrong)
            assert pickle.dumps(env) == before
            tried += 1
        observation, _, terminated, truncated, _ = env.step(actions)
        over = terminated | truncated
    assert tried > 20


@pytest.mark.parametrize(
    "actions", [np.zeros(3, int), np.zeros((4, 1), int), np.full(4, 20.0), [None] * 4, 20]
)
def test_actions_of_a_wrong_form(actions: Any) -> None:
    env = BaoVectorEnv(4)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="expected 4 integers"):
        env.step(actions)


def test_actions_of_any_integer_form() -> None:
    for actions in (
        [20, 22, 20, 22],
        (20, 22, 20, 22),
        np.array([20, 22, 20, 22], np.uint8),
        np.array([20, 22, 20, 22] * 2, np.int32)[:4],
        np.array([20, 0, 22, 0, 20, 0, 22, 0])[::2],
        np.broadcast_to(np.int64(20), 4),
    ):
        env = BaoVectorEnv(4)
        env.reset(seed=0)
        env.step(actions)
        assert {unpack(words).ply for words in env.positions} == {1}


def test_sampled_actions() -> None:
    env = BaoVectorEnv(200)
    observation, _ = env.reset(seed=1)
    drawn = [env.sample_legal_actions() for _ in range(40)]
    assert all(observation["action_mask"][np.arange(200), one].all() for one in drawn)
    assert set(np.concatenate(drawn)) == set(np.flatnonzero(observation["action_mask"][0]))
    assert drawn[0].dtype == np.int64 and drawn[0].shape == (200,)
    env.reset(seed=1)
    assert np.array_equal(env.sample_legal_actions(), drawn[0])
    env.reset(seed=2)
    assert not np.array_equal(env.sample_legal_actions(), drawn[0])


# --- starts -------------------------------------------------------------------------------------


def test_reset_mask() -> None:
    env = BaoVectorEnv(6, autoreset_mode=DISABLED, max_plies=4)
    env.reset(seed=0)
    for _ in range(3):
        env.step(env.sample_legal_actions())
    mask = np.array([True, False, False, True, False, False])
    options = {"reset_mask": mask}
    before = env.positions
    observation, _ = env.reset(options=options)
    assert options == {"reset_mask": mask}  # the caller's dict is left alone
    assert np.array_equal(env.positions[~mask], before[~mask])
    assert [unpack(words).ply for words in env.positions] == [0, 3, 3, 0, 3, 3]
    fresh = BaoVectorEnv(6)
    assert same(observation["observation"][mask], fresh.reset(seed=0)[0]["observation"][mask])
    _, _, _, truncated, _ = env.step(env.sample_legal_actions())
    assert np.array_equal(truncated, ~mask)
    with pytest.raises(ResetNeeded, match=r"games \[1, 2, 4, 5\] are over"):
        env.step(env.sample_legal_actions())
    env.reset(options={"reset_mask": ~mask})
    env.step(env.sample_legal_actions())


def test_wrong_reset_masks() -> None:
    env = BaoVectorEnv(3)
    with pytest.raises(ResetNeeded, match="first reset"):
        env.reset(options={"reset_mask": np.array([True, False, True])})
    with pytest.raises(ResetNeeded):
        env.step(np.zeros(3, int))
    env.reset(options={"reset_mask": np.ones(3, bool)})
    for mask, error in (
        ([True, False, True], TypeError),
        (np.ones(3, int), TypeError),
        (np.zeros(3, bool), ValueError),
        (np.ones(4, bool), ValueError),
    ):
        with pytest.raises(error, match="reset_mask"):
            env.reset(options={"reset_mask": mask})


def test_start_options() -> None:
    source = raw_env()
    source.reset()
    rng = np.random.default_rng(4)
    for _ in range(9):
        source.step(int(rng.choice(np.flatnonzero(source.last()[0]["action_mask"]))))
    text = format_position(source.position)
    source.reset()
    opening = format_position(source.position)
    env = BaoVectorEnv(3)
    env.reset(seed=0, options={"position": [text, opening, text]})
    assert [format_position(unpack(words)) for words in env.positions] == [text, opening, text]
    env.reset(options={"position": text})
    assert {format_position(unpack(words)) for words in env.positions} == {text}
    mask = np.array([False, True, False])
    env.reset(options={"reset_mask": mask, "position": [text, opening, text]})
    assert [format_position(unpack(words)) for words in env.positions] == [text, opening, text]
    infos = env.reset(options={"first_player": ["north", "south", "north"]})[1]
    assert infos["player"].tolist() == [NORTH, SOUTH, NORTH]
    infos = env.reset(options={"first_player": "north"})[1]
    assert infos["player"].tolist() == [NORTH] * 3
    infos = env.reset(options={"reset_mask": mask, "first_player": "south"})[1]
    assert infos["player"].tolist() == [NORTH, SOUTH, NORTH]
    assert env.reset()[1]["player"].tolist() == [SOUTH] * 3
    env = BaoVectorEnv(3, first_player="north", max_plies=1)
    env.reset(seed=0)
    env.reset(options={"reset_mask": mask, "first_player": "south"})
    infos = env.step(env.sample_legal_actions())[4]
    assert infos["player"].tolist() == [NORTH] * 3  # an option holds for one game
    env = BaoVectorEnv(3, opponent="greedy", seat="north", opening_plies=0)
    infos = env.reset(seed=0, options={"seat": "south", "first_player": "north"})[1]
    assert infos["player"].tolist() == [SOUTH] * 3
    assert [unpack(words).ply for words in env.positions] == [1] * 3
    infos = env.reset(options={"seat": [SOUTH, NORTH, SOUTH]})[1]
    assert infos["player"].tolist() == [SOUTH, NORTH, SOUTH]
    assert [unpack(words).ply for words in env.positions] == [0, 1, 0]
    assert env.reset()[1]["player"].tolist() == [NORTH] * 3


def test_wrong_options() -> None:
    stuck = "1,1,1,1,1,1,1,1/1,1,1,1,1,1,1,1/0,0,0,0,0,0,0,1/0,0,0,0,0,0,0,47 0,0 - S -"
    env = BaoVectorEnv(2)
    env.reset(seed=0)
    env.step(env.sample_legal_actions())
    before = env.positions
    for options, match in (
        ({"position": "x"}, "fields"),
        ({"position": stuck}, "the game is over"),
        ({"position": [stuck]}, "expected one value or 2"),
        ({"position": stuck, "first_player": "south"}, "drop first_player"),
        ({"first_player": "up"}, "first_player='up'"),
        ({"seat": "south"}, "only against an opponent"),
    ):
        with pytest.raises(ValueError, match=match):
            env.reset(options=options)
        assert np.array_equal(env.positions, before)


def test_an_episode_must_give_the_learner_a_turn() -> None:
    env = BaoVectorEnv(2, opponent="greedy", seat="north", max_plies=1)
    with pytest.raises(ValueError, match="before the learner's first action"):
        env.reset()


# --- arguments ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"num_envs": 0}, "num_envs=0"),
        ({"threads": 0}, "threads=0"),
        ({"opponent": "alphago"}, "unknown player"),
        ({"ruleset": "chess"}, "unknown rule set"),
        ({"max_plies": 0}, "max_plies"),
        ({"seat": "middle", "opponent": "greedy"}, "seat='middle'"),
        ({"seat": "south"}, "only against an opponent"),
        ({"first_player": "west"}, "first_player='west'"),
        ({"render_mode": "human"}, "ansi"),
        ({"autoreset_mode": "sometimes"}, "sometimes"),
        ({"dtype": np.float64}, "float32 or uint8"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        BaoVectorEnv(**{"num_envs": 2, **arguments})


def test_uint8_observations_count_seeds() -> None:
    whole, units = BaoVectorEnv(9, dtype=np.uint8), BaoVectorEnv(9)
    for one, other in zip(run(whole, 80), run(units, 80), strict=True):
        counts, numbers = one[0]["observation"], other[0]["observation"]
        assert counts.dtype == np.uint8 and numbers.dtype == np.float32
        assert one[0] in whole.observation_space and other[0] in units.observation_space
        seeds = [*range(34)]
        flags = [*range(34, 52)]
        assert np.array_equal(counts[:, seeds], numbers[:, seeds] * 8)
        assert np.array_equal(counts[:, flags], numbers[:, flags])
        assert (counts[:, seeds].sum(1) == 64).all()


# --- copies -------------------------------------------------------------------------------------


@EVERY_MODE
@pytest.mark.parametrize("opponent", [None, "random", "greedy"])
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("fresh", [True, False])
def test_copies_keep_the_running_games(
    mode: AutoresetMode, opponent: Opponent | None, duplicate: Callable[[Any], Any], fresh: bool
) -> None:
    env = BaoVectorEnv(
        20, ruleset="kujifunza", opponent=opponent, autoreset_mode=mode, threads=2, copy=fresh
    )

    def go(one: Any) -> Any:
        result = one.step(one.sample_legal_actions())
        if mode is DISABLED and (over := result[2] | result[3]).any():
            result += one.reset(options={"reset_mask": over})
        return copy.deepcopy(result)

    env.reset(seed=3)
    for _ in range(12):
        go(env)
    twin = duplicate(env)
    assert np.array_equal(twin.positions, env.positions)
    mine = [go(env) for _ in range(30)]
    theirs = [go(twin) for _ in range(30)]
    assert same(mine, theirs)
    assert any(result[2].any() for result in mine)


def arrays_of(result: Any) -> list[Any]:
    """All arrays that a reset or a step has handed out."""
    arrays = [*result[0].values(), *result[1:-1], *result[-1].values()]
    return [array for array in arrays if isinstance(array, np.ndarray) and array.dtype != object]


def test_fresh_arrays() -> None:
    env = BaoVectorEnv(5, max_plies=6)
    results: list[Any] = [env.reset(seed=0)]
    results += [env.step(env.sample_legal_actions()) for _ in range(8)]
    kept = copy.deepcopy(results)
    env.step(env.sample_legal_actions())
    assert same(results, kept)
    for step, one in enumerate(results):
        for other in results[:step]:
            assert not any(np.shares_memory(a, b) for a in arrays_of(one) for b in arrays_of(other))


@pytest.mark.parametrize("opponent", [None, "greedy"])
def test_scribbling_does_the_games_no_harm(opponent: Opponent | None) -> None:
    env = BaoVectorEnv(20, opponent=opponent)
    env.reset(seed=0)
    twin = copy.deepcopy(env)
    wins = 0.0
    for _ in range(60):
        mine, theirs = [one.step(one.sample_legal_actions()) for one in (env, twin)]
        assert same(mine, theirs)
        wins += mine[1].sum()
        for array in (*arrays_of(mine), env.positions, env.legal, env.seats, env.action_masks()):
            array.fill(1)
    assert wins


def test_without_copies_two_sets_take_turns() -> None:
    env, other = BaoVectorEnv(5, copy=False), BaoVectorEnv(5)
    env.reset(seed=0)
    other.reset(seed=0)
    seen: list[Any] = []
    kept: list[Any] = []
    for step in range(6):
        seen.append(env.step(env.sample_legal_actions())[0])
        kept.append(other.step(other.sample_legal_actions())[0])
        assert same(seen[step], kept[step])
        if step > 0:  # one step later an observation still stands
            assert same(seen[step - 1], kept[step - 1])
        if step > 1:
            for key in seen[step]:
                assert not np.shares_memory(seen[step][key], seen[step - 1][key])
                assert np.shares_memory(seen[step][key], seen[step - 2][key])
    with pytest.raises(ValueError, match="illegal"):
        env.step(np.zeros(5, int))
    env.step(env.sample_legal_actions())
    assert same(seen[-1], kept[-1])  # a refused step has not used up a set
