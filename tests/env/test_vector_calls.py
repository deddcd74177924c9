"""Test the vector environment's calls: masks and options per game, samples, buffers, registry."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from bao_env import BaoEnv, BaoVectorEnv, IllegalMoveError
from bao_env.bots import Opponent
from bao_env.engine.layout import NORTH, SOUTH
from tests.positions import HOUSE_CHOICE, OPENING
from tests.vector import EVERY_MODE, arrays_of, legal_actions, run, same

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
    """Each game begins as a game alone does with its option, and a mask spares the others."""
    arguments: dict[str, Any] = {"opponent": "greedy", "opening_plies": 0, "seat": "south"}
    env, alone = BaoVectorEnv(3, **arguments), BaoEnv(**arguments)
    for key, one, other in (
        ("position", HOUSE_CHOICE, OPENING),
        ("first_player", "north", "south"),
        ("seat", NORTH, SOUTH),
    ):
        starts = []
        for value in (one, other, one):
            alone.reset(options={key: value})
            starts.append(alone.positions[0])
        env.reset(options={key: [one, other, one]})
        assert np.array_equal(env.positions, starts)
        options = {"reset_mask": np.array([False, True, False]), key: one}
        env.reset(options=options)
        assert np.array_equal(env.positions, starts[:1] * 3)
        assert list(options) == ["reset_mask", key]  # the caller's dict is left alone


def test_an_option_holds_for_one_game() -> None:
    env = BaoVectorEnv(3, first_player="north", max_plies=1, opponent=None)
    env.reset(options={"first_player": "south"})
    infos = env.step(env.sample_legal_actions())[4]
    assert infos["seat"].tolist() == [NORTH] * 3


# --- buffers ------------------------------------------------------------------------------------


@EVERY_MODE
@pytest.mark.parametrize("opponent", [None, "greedy"])
@pytest.mark.parametrize("flat", [False, True])
def test_no_two_arrays_of_a_return_share_memory(mode: Any, opponent: Any, flat: bool) -> None:
    env = BaoVectorEnv(4, opponent=opponent, autoreset_mode=mode, flat=flat, max_plies=12)
    for result in run(env, 30):
        arrays = arrays_of(result)
        for index, array in enumerate(arrays):
            assert not any(np.shares_memory(array, other) for other in arrays[:index])
