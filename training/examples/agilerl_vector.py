"""PPO of AgileRL on the vector environment, which hands it the mask in ``infos``.

python training/examples/agilerl_vector.py
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from agilerl.algorithms import PPO
from agilerl.training.train_on_policy import train_on_policy
from measure import OBSERVATION, SEED, masked_argmax, report

import bao_env

GAMES, ROLLOUT, STEPS = 128, 64, 500_000


def store_ends_one_step_later(agent: PPO) -> None:
    """Let the rewards at the end of a game reach all of its actions.

    AgileRL's advantages look for the end of a game one step after the place where its rollouts
    store it.
    """
    add = agent.rollout_buffer.add
    ended = np.zeros(GAMES, bool)

    def add_step(*, done: np.ndarray, **step: Any) -> None:
        nonlocal ended
        add(done=ended, **step)
        ended = done

    agent.rollout_buffer.add = add_step


def main() -> None:
    """Train for a minute or two, then play."""
    torch.set_num_threads(1)  # so small networks gain nothing from more
    torch.manual_seed(SEED)
    envs = bao_env.BaoVectorEnv(
        GAMES, opponent="greedy", observation=OBSERVATION, flat=True
    )  # the mask is in infos
    envs.reset(seed=SEED)
    network = {
        "latent_dim": 128,
        "encoder_config": {"hidden_size": [128]},
        "head_config": {"hidden_size": [128]},
    }
    agent = PPO(
        envs.single_observation_space,
        envs.single_action_space,
        net_config=network,
        num_envs=GAMES,
        learn_step=GAMES * ROLLOUT,
        batch_size=1024,
        lr=1e-3,
        update_epochs=4,
        share_encoders=False,  # policy and value have a network each
        device="cpu",
    )
    store_ends_one_step_later(agent)
    start = time.process_time()
    train_on_policy(
        envs,
        "bao/Bao-v0",
        "PPO",
        [agent],
        max_steps=STEPS,
        evo_steps=STEPS // 4,
        eval_steps=1,
        verbose=False,
    )
    seconds = time.process_time() - start
    agent.set_training_mode(False)

    def choose(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        with torch.no_grad():  # agent.get_action() would draw the action
            latent = agent.actor.extract_features(torch.from_numpy(observations))
            return masked_argmax(agent.actor.head_net.wrapped(latent).numpy(), masks)

    report("agilerl", "PPO, against greedy, `BaoVectorEnv`, the mask in `infos`", seconds, choose)


if __name__ == "__main__":
    main()
