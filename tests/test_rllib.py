"""Test the adapter to RLlib; skipped if it is missing."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ray.rllib")

import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns

from bao_env import BaoVectorEnv
from bao_env.adapters import rllib
from bao_env.observation import OBSERVATIONS


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_module_gives_illegal_actions_no_probability(observation: str) -> None:
    envs = BaoVectorEnv(10, opponent="random", observation=observation)
    seen, _ = envs.reset(seed=0)
    module = rllib.MaskedModule(
        observation_space=envs.single_observation_space,
        action_space=envs.single_action_space,
        model_config={"hidden": 16},
        catalog_class=None,
    )
    batch: Any = {Columns.OBS: torch.utils._pytree.tree_map(torch.from_numpy, seen)}
    logits = module.forward_inference(batch)[Columns.ACTION_DIST_INPUTS]
    probabilities = torch.softmax(logits, dim=-1)
    legal = torch.from_numpy(envs.action_masks())
    assert (probabilities[~legal] == 0).all() and torch.isfinite(logits).all()
    assert torch.allclose(probabilities.sum(dim=-1), torch.ones(10))
    assert module.compute_values(batch).shape == (10,)


def test_configurations() -> None:
    config = rllib.against(PPOConfig(), "greedy", games=7, max_plies=40)
    assert config.env == "bao-vector" and config.num_envs_per_env_runner == 7
    assert config.env_config == {"opponent": "greedy", "max_plies": 40}
    config = rllib.self_play(PPOConfig(), ruleset="dutch")
    assert config.env == "bao-aec" and set(config.policies) == {"shared"}
