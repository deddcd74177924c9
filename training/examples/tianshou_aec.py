"""DQN of Tianshou on the PettingZoo environment: it learns as South, North plays at random.

python -m training.examples.tianshou_aec
"""

from __future__ import annotations

import time

import numpy as np
import torch
from tianshou.algorithm import (
    DQN,
    MARLRandomDiscreteMaskedOffPolicyAlgorithm,
    MultiAgentOffPolicyAlgorithm,
)
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, CollectStats, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.env.pettingzoo_env import PettingZooEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

import bao_env
from training.examples.measure import INPUTS, OBSERVATION, SEED, masked_argmax, report

GAMES, STEPS = 64, 60_000


def make_env() -> PettingZooEnv:
    """The game as Tianshou sees it; masked players need no wrapper against illegal actions."""
    return PettingZooEnv(bao_env.raw_env(observation=OBSERVATION))


def main() -> None:
    """Train for about a minute, then play."""
    torch.set_num_threads(1)  # so small a network gains nothing from more
    torch.manual_seed(SEED)
    np.random.seed(SEED)  # noqa: NPY002 - Tianshou draws from numpy's global generator
    env = make_env()
    network = Net(state_shape=INPUTS, action_shape=64, hidden_sizes=[128, 128])
    dqn = DQN(
        policy=DiscreteQLearningPolicy(
            model=network, action_space=env.action_space, eps_training=0.1
        ),
        optim=AdamOptimizerFactory(lr=1e-3),
        gamma=0.99,
        n_step_return_horizon=10,  # plies: even, so that the last of them is the same player's
        target_update_freq=500,
    )
    rival = MARLRandomDiscreteMaskedOffPolicyAlgorithm(action_space=env.action_space)
    both = MultiAgentOffPolicyAlgorithm(algorithms=[dqn, rival], env=env)
    games = DummyVectorEnv([make_env] * GAMES)
    games.seed(SEED)
    buffer = VectorReplayBuffer(100_000, GAMES)
    collector = Collector[CollectStats](both, games, buffer, exploration_noise=True)
    start = time.perf_counter()
    collector.reset()
    collector.collect(n_step=2000)
    both.run_training(
        OffPolicyTrainerParams(
            training_collector=collector,
            max_epochs=1,
            epoch_num_steps=STEPS,
            collection_step_num_env_steps=GAMES * 2,
            batch_size=256,
            update_step_num_gradient_steps_per_sample=1 / 16,
            multi_agent_return_reduction=lambda returns: returns[:, 0],
        )
    )
    seconds = time.perf_counter() - start

    def choose(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return masked_argmax(network(observations)[0].numpy(), masks)

    report("tianshou", "DQN against random, `PettingZooEnv(raw_env())`", seconds, choose)


if __name__ == "__main__":
    main()
