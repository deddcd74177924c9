# /// script
# requires-python = ">=3.11"
# dependencies = ["bao_env", "sb3-contrib==2.9.2", "torch>=2.6,<2.14", "rich"]
# [tool.uv.sources]
# bao_env = { path = "../..", editable = true }
# ///
"""Train SB3-contrib's MaskablePPO in self-play on batches of games, with ``bao_env.adapters.sb3``.

    uv run training/examples/sb3_vector.py
    bao rate sb3_vector:player --path training/examples

The first command saves the model beside this file, the second plays with it.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

from bao_env import OpponentPool, PolicyAgent, Ruleset
from bao_env.adapters.sb3 import SB3VecEnv
from measure import OBSERVATION, SEED, Log, report

STEPS, GAMES, ROLLOUT = 1_000_000, 128, 64
"""Total steps, games at once, and steps in each game between two updates."""
COPY_EVERY = 50_000
"""Steps after which a copy of the policy joins the pool of opponents."""
FILE = Path(__file__).with_suffix(".zip")


class SelfPlayCallback(BaseCallback):
    """Fill the pool that the model trains against, and draw the next opponent.

    Both happen between rollouts of ``n_steps * num_envs`` steps, so rollouts should be much shorter
    than the training. Running games continue against the new opponent. Returns are measured against
    the pool, so they stay near 0.

    Args:
        pool: the opponent of the games. It sees observations without normalisation, so
            ``VecNormalize`` needs ``norm_obs=False``.
        every: steps of training after which a copy of the policy joins the pool.
        log: gets the mean return of the last games.
    """

    model: Any

    def __init__(self, pool: OpponentPool, log: Log, every: int) -> None:
        super().__init__()
        self.pool, self.every, self.log, self.added_at = pool, every, log, 0

    def _on_training_start(self) -> None:
        self.added_at = self.num_timesteps

    def _on_rollout_start(self) -> None:
        if self.num_timesteps >= self.added_at + self.every:
            self.added_at = self.num_timesteps
            file = io.BytesIO()  # not deepcopy: the policy holds tensors with gradients
            self.model.policy.save(file)
            file.seek(0)
            copy = type(self.model.policy).load(file, device="cpu")
            self.pool.add(agent(copy, deterministic=False))
        self.pool.draw()
        if returns := [game["r"] for game in self.model.ep_info_buffer]:
            self.log(self.num_timesteps, self.model.save, mean_return=np.mean(returns))

    def _on_step(self) -> bool:
        return True


def agent(policy: Any, *, deterministic: bool, ruleset: str | Ruleset | None = None) -> PolicyAgent:
    """Return an agent that draws from a maskable policy, or takes its most probable action."""

    def choose(boards: np.ndarray, masks: np.ndarray) -> np.ndarray:
        return policy.predict(boards, action_masks=masks, deterministic=deterministic)[0]

    return PolicyAgent(choose, OBSERVATION, ruleset)


def train(log: Log, steps: int = STEPS, seed: int = SEED) -> None:
    """Train for a minute or two, and save the model."""
    torch.set_num_threads(1)  # a network this small gains nothing from more
    pool = OpponentPool("greedy", seed=seed)
    envs = SB3VecEnv(GAMES, opponent=pool, observation=OBSERVATION, flat=True)
    model = MaskablePPO(
        "MlpPolicy",
        envs,
        learning_rate=1e-3,
        n_steps=ROLLOUT,
        batch_size=1024,
        n_epochs=4,
        ent_coef=0.01,
        policy_kwargs={"net_arch": [128, 128]},
        seed=seed,
        device="cpu",
    )
    model.learn(steps, callback=SelfPlayCallback(pool, log, COPY_EVERY), progress_bar=True)
    model.save(FILE)


def player(ruleset: str | Ruleset, seed: int, file: str = "") -> PolicyAgent:
    """Return the saved model as a player. Loading it can run code that is in the file."""
    return agent(MaskablePPO.load(file or FILE, device="cpu"), deterministic=True, ruleset=ruleset)


if __name__ == "__main__":
    report("sb3-contrib", "MaskablePPO, self-play, `bao_env.adapters.sb3`", train, player)
