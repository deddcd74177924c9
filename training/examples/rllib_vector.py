"""PPO of RLlib on batches of games, through ``bao_env.adapters.rllib``.

python training/examples/rllib_vector.py
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import ray
import torch
from measure import OBSERVATION, SEED, masked_argmax, report
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from tqdm import trange

from bao_env.adapters.rllib import against
from bao_env.self_play import Choose

UPDATES = 128
"""Updates of 4,096 steps each."""


def settings() -> PPOConfig:
    """Return the PPO of all three RLlib examples, with its learner in this process."""
    return (
        PPOConfig()
        .env_runners(num_env_runners=0)
        .learners(num_learners=0)
        .training(
            train_batch_size_per_learner=4096,
            minibatch_size=512,
            num_epochs=4,
            lr=1e-3,
            clip_param=0.2,
            use_kl_loss=False,
            entropy_coeff=0.01,
            lambda_=0.95,
        )
        .debugging(seed=SEED, log_level="ERROR")
    )


def train(algorithm: Any) -> float:
    """Train, and return the processor seconds that it took in this process."""
    torch.set_num_threads(1)  # so small a network gains nothing from more
    start = time.process_time()
    for _ in trange(UPDATES, unit="update"):
        algorithm.train()
    return time.process_time() - start


def player(module: Any) -> Choose:
    """Return a player that takes a trained module's most probable actions."""

    def choose(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        seen = {
            "observation": torch.from_numpy(observations),
            "action_mask": torch.from_numpy(masks),
        }
        with torch.no_grad():
            output = module.forward_inference({Columns.OBS: seen})
        return masked_argmax(output[Columns.ACTION_DIST_INPUTS].numpy(), masks)

    return choose


def main() -> None:
    """Train for a few minutes, then play."""
    ray.init("local", num_cpus=2, logging_level="ERROR", log_to_driver=False)
    algorithm = against(settings(), "greedy", games=128, observation=OBSERVATION).build_algo()
    seconds = train(algorithm)
    choose = player(algorithm.get_module())
    algorithm.stop()
    ray.shutdown()
    report("ray", "PPO, against greedy, batches, `bao_env.adapters.rllib.against`", seconds, choose)


if __name__ == "__main__":
    main()
