"""PPO of RLlib on the PettingZoo environment, one module for both seats, through ``bao_env.adapters.rllib``.

python -m training.examples.rllib_aec
"""

from __future__ import annotations

import time

import numpy as np
import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from tqdm import tqdm

from bao_env.adapters.rllib import SHARED, self_play
from training.examples.measure import SEED, masked_argmax, report

SECONDS = 60


def main() -> None:
    """Train for a minute, then play."""
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    config = (
        self_play(PPOConfig())
        .env_runners(num_env_runners=0)
        .learners(num_learners=0)
        .training(
            train_batch_size_per_learner=8192,
            minibatch_size=1024,
            num_epochs=4,
            lr=1e-3,
            entropy_coeff=0.01,
            lambda_=0.95,
        )
        .debugging(seed=SEED, log_level="ERROR")
    )
    algorithm = config.build_algo()
    start = time.perf_counter()
    with tqdm(unit="update") as bar:
        while time.perf_counter() - start < SECONDS:
            algorithm.train()
            bar.update()
    seconds = time.perf_counter() - start
    module = algorithm.get_module(SHARED)

    def choose(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        seen = {"observation": torch.from_numpy(observations), "action_mask": torch.from_numpy(masks)}
        with torch.no_grad():
            output = module.forward_inference({Columns.OBS: seen})
        return masked_argmax(output[Columns.ACTION_DIST_INPUTS].numpy(), masks)

    report("ray", "PPO, self-play, `bao_env.adapters.rllib.self_play`", seconds, choose)
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
