"""Test the adapter to OpenSpiel; skipped if it is missing."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pyspiel")

import pyspiel
from open_spiel.python import rl_environment
from open_spiel.python.observation import IIGObserverForPublicInfoGame

from bao_env import BaoVectorEnv
from bao_env.adapters.open_spiel import BaoObserver


def test_states() -> None:
    game = pyspiel.load_game("python_bao", {"max_plies": 60})
    rng = np.random.default_rng(3)
    results = set()
    for _ in range(20):
        state = game.new_initial_state()
        while not state.is_terminal():
            state.apply_action(int(rng.choice(state.legal_actions())))
        assert state.legal_actions() == [] and sum(state.returns()) == 0
        assert np.argmax(state.returns()) == max(state.single_game.winner, 0)
        assert (state.returns() == [0.0, 0.0]) == ("cut short" in str(state))
        results.add(tuple(state.returns()))
    assert results == {(1.0, -1.0), (-1.0, 1.0), (0.0, 0.0)}


def test_the_game_describes_itself() -> None:
    game = pyspiel.load_game("python_bao", {"max_plies": 60})
    assert (game.num_distinct_actions(), game.max_chance_outcomes()) == (64, 0)
    assert (game.min_utility(), game.max_utility(), game.utility_sum()) == (-1, 1, 0)
    assert (game.num_players(), game.max_game_length()) == (2, 60)
    kind = game.get_type()
    assert (kind.min_num_players, kind.max_num_players) == (2, 2)
    assert kind.provides_information_state_string and not kind.provides_information_state_tensor
    assert kind.provides_observation_string and kind.provides_observation_tensor
    for perfect_recall, observer in (False, BaoObserver), (True, IIGObserverForPublicInfoGame):
        observation_type = pyspiel.IIGObservationType(
            public_info=True, perfect_recall=perfect_recall
        )
        assert type(game.make_py_observer(observation_type)) is observer
    with pytest.raises(ValueError, match="call it without state"):
        game.new_initial_state("state")


def test_a_wrong_limit_of_plies_is_refused() -> None:
    with pytest.raises(ValueError, match="max_plies"):
        pyspiel.load_game("python_bao", {"max_plies": 0})


@pytest.mark.parametrize("observation", ["board", "replies", "planes"])
def test_shows_observations(observation: str) -> None:
    environment = rl_environment.Environment("python_bao", observation=observation)
    step = environment.reset()
    plain, _ = BaoVectorEnv(1, observation=observation, opponent=None).reset(seed=0)
    assert environment.observation_spec()["info_state"] == (plain["observation"].size,)
    assert np.array_equal(step.observations["info_state"][0], plain["observation"].ravel())
    assert step.observations["legal_actions"][0] == [20, 22, 24, 26]
