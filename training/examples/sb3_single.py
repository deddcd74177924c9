"""MaskablePPO of SB3-contrib on the single-learner environment.

python training/examples/sb3_single.py
"""

from __future__ import annotations

import time

import numpy as np
import torch
from measure import OBSERVATION, SEED, report
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env


def main() -> None:
    """Train for about a minute, then play."""
    torch.set_num_threads(1)  # so small a network gains nothing from more
    envs = make_vec_env(
        "bao_env:bao/Bao-v0",
        n_envs=16,
        seed=SEED,
        env_kwargs={"opponent": "greedy", "observation": OBSERVATION, "flat": True},
    )
    model = MaskablePPO(
        "MlpPolicy",
        envs,
        learning_rate=1e-3,
        n_steps=256,
        batch_size=512,
        n_epochs=6,
        ent_coef=0.01,
        policy_kwargs={"net_arch": [128, 128]},
        seed=SEED,
        device="cpu",
    )
    start = time.process_time()
    model.learn(150_000, progress_bar=True)
    seconds = time.process_time() - start
    envs.close()

    def choose(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        return model.predict(observations, action_masks=masks, deterministic=True)[0]

    report(
        "sb3-contrib",
        "MaskablePPO, against greedy, `gymnasium.make`, sixteen games",
        seconds,
        choose,
    )


if __name__ == "__main__":
    main()
