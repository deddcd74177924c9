"""Test the module of the example of RLlib; skipped if it is missing."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ray.rllib")

import torch
from ray.rllib.core.columns import Columns

import rllib_vector
from bao_env import BaoVectorEnv
from measure import OBSERVATION


def test_module_gives_illegal_actions_no_probability() -> None:
    envs = BaoVectorEnv(10, opponent="random", observation=OBSERVATION)
    seen, _ = envs.reset(seed=0)
    module = rllib_vector.MaskedModule(
        observation_space=envs.single_observation_space, action_space=envs.single_action_space
    )
    batch: Any = {Columns.OBS: torch.utils._pytree.tree_map(torch.from_numpy, seen)}
    logits = module.forward_inference(batch)[Columns.ACTION_DIST_INPUTS]
    probabilities = torch.softmax(logits, dim=-1)
    legal = torch.from_numpy(envs.action_masks())
    assert (probabilities[~legal] == 0).all() and torch.isfinite(logits).all()
    assert torch.allclose(probabilities.sum(dim=-1), torch.ones(10))
    assert module.compute_values(batch).shape == (10,)
