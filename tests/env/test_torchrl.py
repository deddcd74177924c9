"""Test the adapter to TorchRL; skipped if it is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torchrl")

import torch
from torchrl.envs import ActionMask, TransformedEnv

from bao_env import BaoVectorEnv
from bao_env.adapters.torchrl import BaoTorchEnv
from bao_env.bots import Opponent


def make(size: int, **arguments: Any) -> Any:
    """Return the environment, in which rollouts act randomly."""
    torch.manual_seed(1)
    return TransformedEnv(BaoTorchEnv(size, **arguments), ActionMask())


@pytest.mark.parametrize("opponent", [None, "greedy"])
def test_plays_the_games_of_the_vector_environment(opponent: Opponent | None) -> None:
    env = make(5, opponent=opponent, seed=2, max_plies=40)
    steps = env.rollout(90, break_when_any_done=False)
    assert steps["action_mask"].gather(-1, steps["action"][..., None]).all()
    ended = steps["next", "done"][..., 0]
    assert steps["next", "terminated"].any() and steps["next", "truncated"].any()
    assert (steps["next", "reward"][..., 0][~ended] == 0).all()

    plain = BaoVectorEnv(5, opponent=opponent, autoreset_mode="Disabled", max_plies=40)
    observation, infos = plain.reset(seed=2)
    for t in range(90):
        now = steps[:, t]
        assert np.array_equal(now["observation"].numpy(), observation["observation"])
        assert np.array_equal(now["seat"][:, 0].numpy(), infos["seat"])
        observation, rewards, terminated, truncated, infos = plain.step(now["action"].numpy())
        assert np.array_equal(now["next", "reward"][:, 0].numpy(), rewards)
        over = terminated | truncated
        if over.any():
            observation, infos = plain.reset(options={"reset_mask": over})


def test_observations_have_the_type_of_their_spec() -> None:
    """test_peers tries all kinds of observations."""
    env = make(3, observation="planes", dtype=np.uint8, seed=1)
    steps = env.rollout(10, break_when_any_done=False)
    assert steps["observation"].dtype == env.observation_spec["observation"].dtype == torch.uint8
    assert steps["observation"].max() > 8
    with pytest.raises(ValueError, match="a single array"):
        BaoTorchEnv(3, observation="planes+replies")
    for option in ({"flat": True}, {"autoreset_mode": "NextStep"}):
        with pytest.raises(TypeError, match="multiple values"):
            BaoTorchEnv(3, **option)
