"""Test the vector environment's calls: masks and options per game, samples, buffers, registry."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

from bao_env import BaoVectorEnv, IllegalMoveError
from bao_env.bots import Opponent
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import PLY, unpack
from bao_env.notation import format_position
from tests.positions import HOUSE_CHOICE, OPENING
from tests.vector import DISABLED, EVERY_MODE, ID, legal_actions, run, same

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


def test_games_that_are_over_need_a_reset() -> None:
    env = BaoVectorEnv(6, autoreset_mode=DISABLED, max_plies=4, opponent=None)
    env.reset(seed=0)
    for _ in range(3):
        env.step(env.sample_legal_actions())
    options = {"reset_mask": np.array([True, False, False, True, False, False])}
    env.reset(options=options)
    assert list(options) == ["reset_mask"]  # the caller's dict is left alone
    env.step(env.sample_legal_actions())
    with pytest.raises(ResetNeeded, match=r"games \[1, 2, 4, 5\] are over"):
        env.step(env.sample_legal_actions())


def test_invalid_reset_masks_raise() -> None:
    env = BaoVectorEnv(3, opponent=None)
    with pytest.raises(ResetNeeded, match="first reset"):
        env.reset(options={"reset_mask": np.array([True, False, True])})
    env.reset(options={"reset_mask": np.ones(3, bool)})
    for mask, error in (
        ([True, False, True], TypeError),
        (np.ones(3, int), TypeError),
        (np.zeros(3, bool), ValueError),
        (np.ones(4, bool), ValueError),
    ):
        with pytest.raises(error, match="reset_mask"):
            env.reset(options={"reset_mask": mask})


def test_options_per_game() -> None:
    env = BaoVectorEnv(3, opponent=None)
    for options, match in (
        ({"position": [OPENING]}, "expected one value or 3"),
        ({"seat": "south"}, "only against an opponent"),
    ):
        with pytest.raises(ValueError, match=match):
            env.reset(options=options)
    mask = np.array([False, True, False])
    starts = [HOUSE_CHOICE, OPENING, HOUSE_CHOICE]
    env.reset(options={"position": starts})
    assert [format_position(unpack(words)) for words in env.positions] == starts
    env.reset(options={"reset_mask": mask, "position": HOUSE_CHOICE})
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
