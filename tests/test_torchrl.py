"""Test the adapter to TorchRL; skipped if it is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torchrl")

import torch
from tensordict.nn import TensorDictModule
from torchrl.envs import ActionMask, TransformedEnv
from torchrl.envs.utils import check_env_specs
from torchrl.modules import MaskedCategorical, ProbabilisticActor

from bao_env import BaoVectorEnv, GreedyAgent, OpponentPool
from bao_env.adapters.torchrl import BaoTorchEnv, player
from bao_env.bots import Opponent
from bao_env.observation import OBSERVATIONS
from bao_env.observation.observer import get_observer


def make(size: int, **arguments: Any) -> Any:
    """Return the environment, after TorchRL's own check."""
    checked, env = (TransformedEnv(BaoTorchEnv(size, **arguments), ActionMask()) for _ in range(2))
    check_env_specs(checked)
    return env


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


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_plays_a_pool_on_every_observation(observation: str) -> None:
    pool = OpponentPool()
    options: Any = {"observation": observation, "opening_plies": 3, "max_plies": 40, "seed": 1}
    if observation == "planes+replies":
        with pytest.raises(ValueError, match="a single array"):
            make(3, **options)
        return
    env = make(3, opponent=pool, **options)
    member = GreedyAgent()
    pool.add(member)
    while pool.current is not member:
        pool.draw()
        steps = env.rollout(10, break_when_any_done=False)
        shape = get_observer(observation).space.shape or ()
        assert steps["observation"].shape == (3, 10, *shape)


@pytest.mark.parametrize("observation", ["board", "planes"])
def test_actor_is_a_player(observation: str) -> None:
    torch.manual_seed(1)
    size = get_observer(observation).space.shape or ()
    layers = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(int(np.prod(size)), 64))
    actor = ProbabilisticActor(
        TensorDictModule(layers, in_keys=["observation"], out_keys=["logits"]),
        in_keys={"logits": "logits", "mask": "action_mask"},
        distribution_class=MaskedCategorical,
    )
    envs = BaoVectorEnv(20, observation=observation, opening_plies=4, opponent=None)
    seen, _ = envs.reset(seed=1)
    with torch.no_grad():
        scores = layers(torch.from_numpy(seen["observation"])).numpy()
    expected = np.where(envs.action_masks(), scores, -np.inf).argmax(axis=1)
    agent = player(actor, observation)
    assert np.array_equal(agent.act(envs.positions, envs.legal), expected)
    legal = envs.legal.copy()
    legal[3] = 0  # a game that is over
    assert np.array_equal(np.delete(agent.act(envs.positions, legal), 3), np.delete(expected, 3))
