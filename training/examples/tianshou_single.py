"""Train Tianshou's DQN on the single-learner environment, against greedy.

python training/examples/tianshou_single.py
"""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
import torch
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory, LRSchedulerFactoryLinear
from tianshou.data import Collector, CollectStats, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

from measure import INPUTS, OBSERVATION, SEED, masked_argmax, report

GAMES, STEPS, COLLECTED = 64, 245_760, 4096
"""Games at once, total steps, and steps between two rounds of updates."""
STEPS_PER_UPDATE = 32
"""High on purpose: rewards are noisy, and replaying them often overfits."""


class Renamed(gymnasium.Wrapper):
    """Give the parts of the observation Tianshou's names, and drop the infos."""

    def reset(self, **options: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """See :meth:`gymnasium.Env.reset`."""
        seen, _ = self.env.reset(**options)
        return self._renamed(seen), {}

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], Any, bool, bool, dict[str, Any]]:
        """See :meth:`gymnasium.Env.step`."""
        seen, reward, terminated, truncated, _ = self.env.step(action)
        return self._renamed(seen), reward, terminated, truncated, {}

    def _renamed(self, seen: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"obs": seen["observation"], "mask": seen["action_mask"]}


def make_env() -> gymnasium.Env:
    """Make a game for Tianshou."""
    game = gymnasium.make("bao_env:bao/Bao-v0", opponent="greedy", observation=OBSERVATION)
    return Renamed(game)


def main() -> None:
    """Train for some minutes, then play."""
    torch.set_num_threads(1)  # so small a network gains nothing from more
    torch.manual_seed(SEED)
    np.random.seed(SEED)  # noqa: NPY002 - Tianshou draws from numpy's global generator
    games = DummyVectorEnv([make_env] * GAMES)
    games.seed(SEED)
    network = Net(state_shape=INPUTS, action_shape=64, hidden_sizes=[256, 256])
    dqn = DQN(
        policy=DiscreteQLearningPolicy(
            model=network, action_space=games.action_space[0], eps_training=0.05
        ),
        optim=AdamOptimizerFactory(lr=1e-3).with_lr_scheduler_factory(
            LRSchedulerFactoryLinear(1, STEPS, STEPS_PER_UPDATE)  # down to 0, update by update
        ),
        gamma=0.99,
        n_step_return_horizon=3,
        target_update_freq=200,
    )
    buffer = VectorReplayBuffer(100_000, GAMES, ignore_obs_next=True)
    collector = Collector[CollectStats](
        dqn, games, buffer, exploration_noise=True, raise_on_nan_in_buffer=False
    )
    start = time.process_time()
    collector.reset()
    dqn.run_training(
        OffPolicyTrainerParams(
            training_collector=collector,
            max_epochs=1,
            epoch_num_steps=STEPS,
            collection_step_num_env_steps=COLLECTED,
            batch_size=256,
            update_step_num_gradient_steps_per_sample=1 / STEPS_PER_UPDATE,
        )
    )
    seconds = time.process_time() - start

    def choose(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return masked_argmax(network(observations)[0].numpy(), masks)

    report("tianshou", "DQN against greedy, `gymnasium.make`", seconds, choose)


if __name__ == "__main__":
    main()
