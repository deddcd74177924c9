"""MaskablePPO of SB3-contrib in self-play on batches of games, through ``bao_env.adapters.sb3``.

python training/examples/sb3_vector.py
"""

from __future__ import annotations

import time

import numpy as np
import torch
from measure import OBSERVATION, SEED, AfterUpdate, progress_bar, report
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

from bao_env.adapters.sb3 import SB3VecEnv, SelfPlayCallback
from bao_env.self_play import Choose, OpponentPool

STEPS = 1_000_000


class UpdateCallback(BaseCallback):
    """Call ``after_update`` between an update and the next games."""

    def __init__(self, after_update: AfterUpdate, choose: Choose) -> None:
        super().__init__()
        self.after_update, self.choose = after_update, choose

    def _on_rollout_start(self) -> None:
        if self.num_timesteps:
            self.after_update(self.num_timesteps, self.choose)

    def _on_step(self) -> bool:
        return True


def train(
    observation: str,
    seed: int,
    steps: int,
    after_update: AfterUpdate,
    *,
    games: int = 128,
    rollout: int = 64,
    hidden: int = 128,
) -> Choose:
    """Train a model; see ``cleanrl_vector.train``."""
    torch.set_num_threads(1)  # so small a network gains nothing from more
    envs = SB3VecEnv(games, opponent=OpponentPool("greedy", seed=seed), observation=observation)
    model = MaskablePPO(
        "MultiInputPolicy",
        envs,
        learning_rate=1e-3,
        n_steps=rollout,
        batch_size=1024,
        n_epochs=4,
        ent_coef=0.01,
        policy_kwargs={"net_arch": [hidden, hidden]},
        seed=seed,
        device="cpu",
    )

    def choose(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        seen = {"observation": observations, "action_mask": masks.astype(np.int8)}
        return model.predict(seen, action_masks=masks, deterministic=True)[0]

    callbacks = [SelfPlayCallback(every=50_000), UpdateCallback(after_update, choose)]
    model.learn(steps, callback=callbacks)
    after_update(model.num_timesteps, choose)
    return choose


def main() -> None:
    """Train for about a minute, then play."""
    start = time.process_time()
    choose = train(OBSERVATION, SEED, STEPS, progress_bar(STEPS))
    seconds = time.process_time() - start
    report("sb3-contrib", "MaskablePPO, self-play, `bao_env.adapters.sb3`", seconds, choose)


if __name__ == "__main__":
    main()
