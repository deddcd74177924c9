"""Train skrl's PPO on the vector environment; the models mask the logits themselves.

python training/examples/skrl_vector.py
"""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
import torch
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
from skrl.trainers.torch import SequentialTrainer
from skrl.utils import set_seed
from skrl.utils.spaces.torch import unflatten_tensorized_space
from torch import nn

from measure import INPUTS, OBSERVATION, SEED, masked_argmax, report

GAMES, ROLLOUT, STEPS = 128, 64, 4000


def layers(outputs: int) -> nn.Sequential:
    """Return a small network that reads boards [B, INPUTS]."""
    return nn.Sequential(
        *(nn.Linear(INPUTS, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()),
        nn.Linear(128, outputs),
    )


class Policy(CategoricalMixin, Model):
    """The policy: logits, with those of illegal actions masked."""

    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        CategoricalMixin.__init__(self, unnormalized_log_prob=True)
        self.layers = layers(64)

    def compute(self, inputs: dict[str, Any], role: str = "") -> tuple[torch.Tensor, dict]:
        """See skrl's ``Model``; the observation comes flat, mask and board."""
        seen = unflatten_tensorized_space(self.observation_space, inputs["observations"])
        logits = self.layers(seen["observation"])
        return logits.masked_fill(seen["action_mask"] < 0.5, torch.finfo(logits.dtype).min), {}


class Value(DeterministicMixin, Model):
    """The value: the expected return."""

    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.layers = layers(1)

    def compute(self, inputs: dict[str, Any], role: str = "") -> tuple[torch.Tensor, dict]:
        """See skrl's ``Model``."""
        seen = unflatten_tensorized_space(self.observation_space, inputs["observations"])
        return self.layers(seen["observation"]), {}


def main() -> None:
    """Train for a minute or two, then play."""
    torch.set_num_threads(1)  # so small networks gain nothing from more
    set_seed(SEED)
    games = gymnasium.make_vec(
        "bao_env:bao/Bao-v0",
        num_envs=GAMES,
        opponent="greedy",
        observation=OBSERVATION,
        autoreset_mode="SameStep",
    )
    env = wrap_env(games, wrapper="gymnasium")
    spaces = {
        "observation_space": env.observation_space,
        "state_space": env.state_space,
        "action_space": env.action_space,
        "device": "cpu",
    }
    policy = Policy(**spaces)
    models = {"policy": policy, "value": Value(**spaces)}
    config = PPO_CFG(
        rollouts=ROLLOUT,
        learning_epochs=4,
        mini_batches=8,
        learning_rate=1e-3,
        entropy_loss_scale=0.01,
        value_loss_scale=0.5,
        value_clip=0.0,
    )
    config.experiment.write_interval = 0
    config.experiment.checkpoint_interval = 0
    memory = RandomMemory(memory_size=ROLLOUT, num_envs=GAMES, device="cpu")
    agent = PPO(models=models, memory=memory, cfg=config, **spaces)
    trainer = SequentialTrainer(cfg={"timesteps": STEPS, "headless": True}, env=env, agents=agent)
    start = time.process_time()
    trainer.train()
    seconds = time.process_time() - start

    def choose(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            scores = policy.layers(torch.from_numpy(observations))
        return masked_argmax(scores.numpy(), masks)

    report(
        "skrl", "PPO, against greedy, `gymnasium.make_vec`, the mask in the model", seconds, choose
    )


if __name__ == "__main__":
    main()
