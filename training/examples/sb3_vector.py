"""MaskablePPO of SB3-contrib in self-play on batches of games, through ``bao_env.adapters.sb3``.

python -m training.examples.sb3_vector
"""

from __future__ import annotations

import time

import numpy as np
import torch
from sb3_contrib import MaskablePPO

from bao_env.adapters.sb3 import BaoVecEnv, SelfPlayCallback
from bao_env.self_play import OpponentPool
from training.examples.measure import OBSERVATION, SEED, report


def main() -> None:
    """Train for about a minute, then play."""
    torch.set_num_threads(1)  # so small a network gains nothing from more
    pool = OpponentPool("greedy", seed=SEED)
    envs = BaoVecEnv(128, opponent=pool, observation=OBSERVATION)
    model = MaskablePPO(
        "MultiInputPolicy",
        envs,
        learning_rate=1e-3,
        n_steps=64,
        batch_size=1024,
        n_epochs=4,
        ent_coef=0.01,
        policy_kwargs={"net_arch": [128, 128]},
        seed=SEED,
        device="cpu",
    )
    start = time.perf_counter()
    model.learn(1_000_000, callback=SelfPlayCallback(every=50_000), progress_bar=True)
    seconds = time.perf_counter() - start

    def choose(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        seen = {"observation": observations, "action_mask": masks.astype(np.int8)}
        return model.predict(seen, action_masks=masks, deterministic=True)[0]

    report("sb3-contrib", "MaskablePPO, self-play, `bao_env.adapters.sb3`", seconds, choose)


if __name__ == "__main__":
    main()
