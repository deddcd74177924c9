"""Train RLlib's PPO on batches of games, through ``bao_env.adapters.rllib``.

python training/examples/rllib_vector.py
python training/examples/rllib_vector.py --address HOST:6379  # on a Ray cluster

``ray start --head`` on one machine and ``ray start --address=HOST:6379`` on the others make a
cluster. Every machine, with bao_env and RLlib installed, then plays a part of the games.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from tqdm import trange

from bao_env.adapters.rllib import against
from bao_env.self_play import Choose
from measure import OBSERVATION, SEED, masked_argmax, report

UPDATES = 128
"""Updates of 4,096 steps each."""


def settings() -> PPOConfig:
    """Return the settings of PPO, with the learner in this process."""
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
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", default="local", help="of a Ray cluster; default: none")
    address = parser.parse_args().address
    torch.set_num_threads(1)  # so small a network gains nothing from more
    ray.init(address, logging_level="ERROR", log_to_driver=False)
    runners = 0 if address == "local" else sum(node["Alive"] for node in ray.nodes())
    games = 128 // max(1, runners)
    config = against(settings(), "greedy", games=games, observation=OBSERVATION)
    config = config.env_runners(num_env_runners=runners)
    algorithm = config.build_algo()
    start = time.process_time()
    for _ in trange(UPDATES, unit="update"):
        algorithm.train()
    seconds = time.process_time() - start
    choose = player(algorithm.get_module())
    algorithm.stop()
    ray.shutdown()
    report("ray", "PPO, against greedy, batches, `bao_env.adapters.rllib.against`", seconds, choose)


if __name__ == "__main__":
    main()
