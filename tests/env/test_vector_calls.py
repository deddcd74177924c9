"""Test the vector environment's calls: masks and options per game, samples, buffers, registry."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from bao_env import BaoVectorEnv, IllegalMoveError
from bao_env.bots import Opponent
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import PLY, unpack
from bao_env.notation import format_position
from tests.positions import HOUSE_CHOICE, OPENING
from tests.vector import DISABLED, EVERY_MODE, ID, NEXT, SAME, legal_actions, run, same

pytestmark = pytest.mark.filterwarnings("error")


@EVERY_MODE
@pytest.mark.parametrize("opponent", [None, "greedy"])
def test_an_illegal_action_changes_nothing(mode: AutoresetMode, opponent: Opponent | None) -> None:
    """Even while ended games wait for their next one, the run continues as without it."""
    env, twin = (
        BaoVectorEnv(
            30, ruleset="kujifunza", opponent=opponent, autoreset_mode=mode, illegal="raise"
        )
        for _ in range(2)
    )
    tried = []

    def choose(masks: Any, rng: np.random.Generator) -> Any:
        actions = legal_actions(masks, rng)
        for game in (0, 29):
            if masks[game].any():
                wrong = actions.copy()
                wrong[game] = masks[game].argmin()
                legal = re.escape(str(np.flatnonzero(masks[game]).tolist()))
                with pytest.raises(IllegalMoveError, match=f"game {game}; legal there: {legal}"):
                    env.step(wrong)
                tried.append(game)
        return actions

    results = run(env, 40, choose=choose)
    assert same(results, run(twin, 40))
    assert len(tried) > 40 and any(result[2].any() for result in results[1:] if len(result) == 5)


# --- resets of some games -----------------------------------------------------------------------


def test_options_per_game() -> None:
    env = BaoVectorEnv(3, opponent=None)
    mask = np.array([False, True, False])
    starts = [HOUSE_CHOICE, OPENING, HOUSE_CHOICE]
    env.reset(options={"position": starts})
    assert [format_position(unpack(words)) for words in env.positions] == starts
    options = {"reset_mask": mask, "position": HOUSE_CHOICE}
    env.reset(options=options)
    assert list(options) == ["reset_mask", "position"]  # the caller's dict is left alone
    assert {format_position(unpack(words)) for words in env.positions} == {HOUSE_CHOICE}
    infos = env.reset(options={"first_player": ["north", "south", "north"]})[1]
    assert infos["seat"].tolist() == [NORTH, SOUTH, NORTH]
    infos = env.reset(options={"reset_mask": mask, "first_player": "north"})[1]
    assert infos["seat"].tolist() == [NORTH] * 3
    env = BaoVectorEnv(3, first_player="north", max_plies=1, opponent=None)
    env.reset(options={"first_player": "south"})
    infos = env.step(env.sample_legal_actions())[4]
    assert infos["seat"].tolist() == [NORTH] * 3  # an option holds for one game
    env = BaoVectorEnv(3, opponent="greedy", seat="north", opening_plies=0)
    infos = env.reset(options={"seat": [SOUTH, NORTH, SOUTH]})[1]
    assert infos["seat"].tolist() == [SOUTH, NORTH, SOUTH]
    assert env.positions[:, PLY].tolist() == [0, 1, 0]


# --- buffers ------------------------------------------------------------------------------------


def test_without_copies_two_buffers_alternate() -> None:
    alone: dict[str, Any] = {"opponent": None, "illegal": "raise"}
    env, other = BaoVectorEnv(5, copy=False, **alone), BaoVectorEnv(5, **alone)
    env.reset(seed=0)
    other.reset(seed=0)
    seen, kept = [], []
    for step in range(6):
        seen.append(env.step(env.sample_legal_actions())[0])
        kept.append(other.step(other.sample_legal_actions())[0])
        assert same(seen[-2:], kept[-2:])  # one step later an observation still stands
        if step > 1:
            for key, array in seen[step].items():
                assert not np.shares_memory(array, seen[step - 1][key])
                assert np.shares_memory(array, seen[step - 2][key])
    with pytest.raises(IllegalMoveError):
        env.step(np.zeros(5, int))
    env.step(env.sample_legal_actions())
    assert same(seen[-1], kept[-1])  # the step that raised used no buffer


def test_a_fresh_process_plays_the_same_games() -> None:
    """A spawned child knows only the identifier; with our seed its games are ours, bit by bit."""
    arguments: dict[str, Any] = {"num_envs": 2, "opponent": "random", "ruleset": "kujifunza"}
    here = gymnasium.make_vec(ID, vectorization_mode="sync", **arguments)
    there = gymnasium.make_vec(
        ID, vectorization_mode="async", vector_kwargs={"context": "spawn"}, **arguments
    )
    mine, theirs = run(here, 60, seed=6), run(there, 60, seed=6)
    there.close()
    assert same(mine, theirs)
    assert any(result[2].any() for result in mine[1:])


def every_array(value: Any) -> list[Any]:
    """Return all arrays in nested values, those of objects and what is in them included."""
    if isinstance(value, dict):
        return every_array(list(value.values()))
    if isinstance(value, (tuple, list)):
        return [array for part in value for array in every_array(part)]
    if isinstance(value, np.ndarray):
        return [value, *(every_array(value.tolist()) if value.dtype == object else [])]
    return []


@EVERY_MODE
@pytest.mark.parametrize("opponent", [None, "greedy"])
@pytest.mark.parametrize("flat", [False, True])
def test_no_two_arrays_of_a_return_share_memory(mode: Any, opponent: Any, flat: bool) -> None:
    env = BaoVectorEnv(4, opponent=opponent, autoreset_mode=mode, flat=flat, max_plies=12)
    for result in run(env, 30):
        arrays = every_array(result)
        for index, array in enumerate(arrays):
            assert not any(np.shares_memory(array, other) for other in arrays[:index])


@EVERY_MODE
@pytest.mark.parametrize("name", ["Bao", "BaoSelfPlay"])
def test_gymnasiums_own_limit(mode: Any, name: str) -> None:
    """`max_episode_steps` cuts a game short after the same steps as in a vector of single games."""
    limit, cut = 7, 0
    arguments: dict[str, Any] = {"max_episode_steps": limit, "ruleset": "kujifunza"}
    env: Any = gymnasium.make_vec(f"bao_env:bao/{name}-v0", 3, autoreset_mode=mode, **arguments)
    again, rng = np.zeros(3, bool), np.random.default_rng(1)
    lengths, masks = np.zeros(3, int), env.reset(seed=1)[1]["action_mask"]
    for _ in range(60):
        _, rewards, terminated, truncated, infos = env.step(legal_actions(masks, rng))
        lengths = np.where(again, 0, lengths + 1)
        assert np.array_equal(truncated, ~terminated & (lengths == limit))
        assert not rewards[truncated].any() and lengths.max() <= limit
        over, masks = terminated | truncated, infos["action_mask"]
        if truncated.any():
            ends = infos["final_info"] if mode is SAME else infos
            assert (ends["winner"][truncated] == -1).all() and ends["_plies"][truncated].all()
        cut += truncated.sum()
        again = over & (mode is NEXT)
        lengths[over & (mode is not NEXT)] = 0
        if mode is DISABLED and over.any():
            masks = env.reset(options={"reset_mask": over})[1]["action_mask"]
    assert cut > 5
    sync: Any = gymnasium.make_vec(f"bao_env:bao/{name}-v0", 1, "sync", **arguments)
    results = run(sync, 20, seed=1)
    first = next(i for i, result in enumerate(results[1:], 1) if (result[2] | result[3]).any())
    assert results[first][2].any() or first == limit


def test_no_limit() -> None:
    for limit in (-1, None):
        env: Any = gymnasium.make_vec(ID, 4, max_episode_steps=limit, max_plies=30)
        env.reset(seed=1)
        plies = [step[4]["plies"].max() for step in run(env, 60)[1:] if step[3].any()]
        assert plies and min(plies) >= 30
