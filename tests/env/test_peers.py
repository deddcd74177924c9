"""Run the checks that other libraries ship for environments; those that are missing are skipped.

The extra ``test`` installs all but TorchRL, which needs ``pip install torchrl``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.utils.env_match import check_environments_match
from pettingzoo.test import api_test, parallel_api_test, render_test, seed_test
from pettingzoo.utils.conversions import turn_based_aec_to_parallel

from bao_env import RULESETS, BaoEnv, BaoVectorEnv
from bao_env.envs.aec import env, raw_env
from bao_env.observation import OBSERVATIONS
from tests.rulesets import EVERY_RULESET
from tests.vector import ID

pytestmark = [pytest.mark.filterwarnings("error"), pytest.mark.usefixtures("headless")]


@EVERY_RULESET
@pytest.mark.parametrize("make", [env, raw_env])
def test_pettingzoo(make: Callable[..., Any], ruleset: str) -> None:
    with warnings.catch_warnings():
        # It warns about every dict observation outside PettingZoo's own list of environments.
        warnings.filterwarnings("ignore", "Observation (is not a NumPy array|space for each agent)")
        api_test(make(ruleset=ruleset), num_cycles=150)
    seed_test(lambda: make(ruleset=ruleset), num_cycles=100)


def test_pettingzoo_pictures() -> None:
    render_test(env)


def test_pettingzoo_in_parallel() -> None:
    """Each agent waits while the other acts."""
    parallel_api_test(turn_based_aec_to_parallel(raw_env()), num_cycles=100)


@EVERY_RULESET
@pytest.mark.parametrize("flat", [False, True])
def test_gymnasium(ruleset: str, flat: bool) -> None:
    arguments: dict[str, Any] = {"ruleset": ruleset, "flat": flat, "opponent": "greedy"}
    check_env(gymnasium.make(ID, render_mode="ansi", **arguments).unwrapped)
    check_environments_match(BaoEnv(**arguments), BaoEnv(**arguments), num_steps=100, seed=1)


@pytest.mark.parametrize("opponent", ["random", None])
def test_stable_baselines3(opponent: Any) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(BaoEnv(opponent, flat=True))


@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize("opponent", ["greedy", None])
def test_torchrl(opponent: Any, observation: str) -> None:
    utils = pytest.importorskip("torchrl.envs.utils")
    import torch
    from torchrl.envs import ActionMask, GymWrapper, TransformedEnv

    torch.manual_seed(1)
    games = BaoVectorEnv(
        3, opponent=opponent, observation=observation, autoreset_mode="Disabled", max_plies=20
    )
    env = TransformedEnv(GymWrapper(games, categorical_action_encoding=True), ActionMask())
    env.set_seed(1)
    utils.check_env_specs(env)
    steps = env.rollout(60, break_when_any_done=False)
    assert steps["action_mask"].gather(-1, steps["action"][..., None]).all()
    assert steps["next", "truncated"].any() and (steps["next", "reward"].abs() <= 1).all()


@pytest.mark.parametrize("ruleset", RULESETS)
def test_open_spiel(ruleset: str) -> None:
    pyspiel = pytest.importorskip("pyspiel")
    import bao_env.adapters.open_spiel  # noqa: F401 - registers the game

    game = pyspiel.load_game(f"python_bao(ruleset={ruleset})")
    pyspiel.random_sim_test(game, num_sims=3, serialize=True, verbose=False)
