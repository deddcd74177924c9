# /// script
# requires-python = ">=3.11"
# dependencies = ["bao_env", "ray[rllib]==2.60.0", "torch>=2.6,<2.14", "safetensors"]
# [tool.uv.sources]
# bao_env = { path = "../..", editable = true }
# ///
"""Train RLlib's PPO against greedy on batches of games; a module masks illegal actions.

    uv run training/examples/rllib_vector.py
    bao rate rllib_vector:player --path training/examples

On a Ray cluster, ``RAY_ADDRESS=HOST:6379 python ...`` plays part of the games on every machine;
each machine needs bao_env and RLlib. ``ray start --head`` on one machine and ``ray start
--address=HOST:6379`` on the others make a cluster.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from ray.rllib.utils.torch_utils import FLOAT_MIN
from ray.tune.registry import register_env
from safetensors.torch import load_file, save_file
from torch import nn

from bao_env import NUM_ACTIONS, BaoVectorEnv, PolicyAgent, Ruleset
from measure import INPUTS, OBSERVATION, SEED, Log, best_player, report, updates

GAMES, STEPS, ROLLOUT = 128, 524_288, 4096
"""Games at once, total steps, and steps of each update."""
HIDDEN = 128
FILE = Path(__file__).with_suffix(".safetensors")


class MaskedModule(TorchRLModule, ValueFunctionAPI):
    """A network with a policy and a value that gives illegal actions probability 0."""

    def setup(self) -> None:
        """See RLlib's ``RLModule``."""
        self.body = nn.Sequential(
            *(nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU())
        )
        self.policy, self.value = nn.Linear(HIDDEN, NUM_ACTIONS), nn.Linear(HIDDEN, 1)

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        observations = batch[Columns.OBS]
        features = self.body(observations["observation"])
        logits = self.policy(features).masked_fill(observations["action_mask"] < 0.5, FLOAT_MIN)
        return {Columns.EMBEDDINGS: features, Columns.ACTION_DIST_INPUTS: logits}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:
        """Return the expected return, [B]; see RLlib's ``ValueFunctionAPI``."""
        if embeddings is None:
            embeddings = self.body(batch[Columns.OBS]["observation"])
        return self.value(embeddings).squeeze(-1)


def train(log: Log, steps: int = STEPS, seed: int = SEED) -> None:
    """Train for a few minutes, and save the network."""
    torch.set_num_threads(1)  # a network this small gains nothing from more
    address = os.environ.get("RAY_ADDRESS", "local")
    ray.init(address, logging_level="ERROR", log_to_driver=False)
    register_env("bao", lambda config: BaoVectorEnv(**config, autoreset_mode="NextStep"))
    runners = 0 if address == "local" else sum(node["Alive"] for node in ray.nodes())
    algorithm = (
        PPOConfig()
        .environment("bao", env_config={"opponent": "greedy", "observation": OBSERVATION})
        .env_runners(
            num_env_runners=runners,
            num_envs_per_env_runner=GAMES // max(1, runners),
            gym_env_vectorize_mode="vector_entry_point",
        )
        .rl_module(rl_module_spec=RLModuleSpec(module_class=MaskedModule))
        .learners(num_learners=0)  # in this process
        .training(
            train_batch_size_per_learner=ROLLOUT,
            minibatch_size=512,
            num_epochs=4,
            lr=1e-3,
            clip_param=0.2,
            use_kl_loss=False,
            entropy_coeff=0.01,
            lambda_=0.95,
        )
        .debugging(seed=seed, log_level="ERROR")
        .build_algo()
    )
    for done in updates(steps, ROLLOUT):
        row = algorithm.train()["env_runners"]
        save = partial(save_file, algorithm.get_module().state_dict())
        log(done, save, mean_return=row["episode_return_mean"])
    save(FILE)
    algorithm.stop()
    ray.shutdown()


def player(ruleset: str | Ruleset, seed: int, file: str = "") -> PolicyAgent:
    """Return the saved network as a player."""
    envs = BaoVectorEnv(1, observation=OBSERVATION)
    module = MaskedModule(
        observation_space=envs.single_observation_space, action_space=envs.single_action_space
    )
    module.load_state_dict(load_file(file or FILE))

    def logits(boards: Any) -> Any:
        with torch.no_grad():
            return module.policy(module.body(torch.from_numpy(boards))).numpy()

    return best_player(logits, ruleset)


if __name__ == "__main__":
    report("ray", "PPO, against greedy, `gymnasium.vector`", train, player)
