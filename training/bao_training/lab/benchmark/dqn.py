"""DQN of Tianshou against past selves, on Gymnasium environments."""

from __future__ import annotations

import copy
import math
from typing import Any

import gymnasium
import numpy as np
import torch
from measure import AfterUpdate, inputs, masked_argmax
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, CollectStats, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

from bao_env import BaoEnv
from bao_env.self_play import Choose, OpponentPool, PolicyAgent

GAMES = 64
"""Games played at once."""
COLLECT = 256
"""Steps between updates."""
BATCH = 512
"""Steps of a minibatch."""
COPY_EVERY = 10_000
"""Steps after which a copy of the network joins the pool of opponents."""
Seen = dict[str, np.ndarray]


class Masked(gymnasium.Wrapper):
    """Wrapper that flattens the observation and names its parts as Tianshou does."""

    def _renamed(self, seen: Seen) -> Seen:
        return {"obs": seen["observation"].ravel(), "mask": seen["action_mask"]}

    def reset(self, **arguments: Any) -> tuple[Seen, dict[str, Any]]:
        """See :meth:`gymnasium.Env.reset`."""
        seen, _ = self.env.reset(**arguments)
        return self._renamed(seen), {}

    def step(self, action: Any) -> tuple[Seen, Any, bool, bool, dict[str, Any]]:
        """See :meth:`gymnasium.Env.step`."""
        seen, reward, terminated, truncated, _ = self.env.step(action)
        return self._renamed(seen), reward, terminated, truncated, {}


def player(network: Net) -> Choose:
    """Return a function that chooses the action of the highest value."""

    def choose(seen: np.ndarray, masks: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return masked_argmax(network(seen.reshape(len(seen), -1))[0].numpy(), masks)

    return choose


def train(
    observation: str,
    seed: int,
    steps: int,
    after_update: AfterUpdate,
    *,
    hidden: int,
) -> None:
    """Train a network; see ``cleanrl_vector.train``."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - Tianshou draws from numpy's global generator
    pool = OpponentPool("greedy", seed=seed)
    games = DummyVectorEnv([lambda: Masked(BaoEnv(opponent=pool, observation=observation))] * GAMES)
    games.seed([seed * GAMES + game for game in range(GAMES)])
    network = Net(state_shape=inputs(observation), action_shape=64, hidden_sizes=[hidden, hidden])
    dqn = DQN(
        policy=DiscreteQLearningPolicy(
            model=network, action_space=games.action_space[0], eps_training=0.1
        ),
        optim=AdamOptimizerFactory(lr=1e-3),
        gamma=0.99,
        n_step_return_horizon=5,
        target_update_freq=500,
    )
    buffer = VectorReplayBuffer(100_000, GAMES)
    collector = Collector[CollectStats](dqn, games, buffer, exploration_noise=True)
    collector.reset()
    copied = 0

    def before_games(epoch: int, done: int) -> None:
        nonlocal copied
        if done >= copied + COPY_EVERY:
            pool.add(PolicyAgent(player(copy.deepcopy(network)), observation))
            copied = done
        pool.draw()
        if done:
            after_update(done, player(network))

    whole = math.ceil(steps / COLLECT) * COLLECT
    dqn.run_training(
        OffPolicyTrainerParams(
            training_collector=collector,
            training_fn=before_games,
            max_epochs=1,
            epoch_num_steps=whole,
            collection_step_num_env_steps=COLLECT,
            batch_size=BATCH,
            update_step_num_gradient_steps_per_sample=1 / 32,
            show_progress=False,
        )
    )
    after_update(whole, player(network))
