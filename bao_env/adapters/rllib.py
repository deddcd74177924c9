"""Register the environments with RLlib, and mask illegal actions in a module.

    import bao_env.adapters.rllib as bao
    from ray.rllib.algorithms.ppo import PPOConfig

    config = bao.self_play(PPOConfig())            # or bao.against(PPOConfig(), "greedy")
    algorithm = config.build_algo()

``"bao-aec"`` is the PettingZoo environment, ``"bao-vector"`` the vector environment; their
``env_config`` holds arguments of :func:`bao_env.env` and :class:`bao_env.BaoVectorEnv`.
"""

from __future__ import annotations

from typing import Any

from gymnasium.spaces import flatdim
from gymnasium.vector import AutoresetMode

from bao_env.bots import Opponent
from bao_env.envs.aec import env
from bao_env.envs.vector import BaoVectorEnv

try:
    import torch
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
    from ray.rllib.core.columns import Columns
    from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
    from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
    from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv
    from ray.rllib.utils.torch_utils import FLOAT_MIN
    from ray.tune.registry import register_env
except ModuleNotFoundError as error:
    error.add_note("bao_env.adapters.rllib needs RLlib: pip install 'ray[rllib]' 'torch<2.14'")
    raise

SHARED = "shared"
"""Name of the module that plays both seats in self-play."""


def _rows(observation: Any) -> Any:
    """Return an array or a dict of arrays, [B, ...], as float32[B, inputs]."""
    arrays = observation.values() if isinstance(observation, dict) else [observation]
    return torch.cat([array.flatten(1).float() for array in arrays], dim=1)


class MaskedModule(TorchRLModule, ValueFunctionAPI):
    """A network with a policy and a value that gives illegal actions probability 0.

    It reads every kind of observation as one row of numbers.

    ``model_config={"hidden": 256}`` sets the width of its two layers, 128 by default.
    """

    def setup(self) -> None:
        """See RLlib's ``RLModule``."""
        inputs = flatdim(self.observation_space["observation"])
        width = self.model_config.get("hidden", 128)
        self.body = torch.nn.Sequential(
            *(torch.nn.Linear(inputs, width), torch.nn.ReLU()),
            *(torch.nn.Linear(width, width), torch.nn.ReLU()),
        )
        self.policy = torch.nn.Linear(width, int(self.action_space.n))
        self.value = torch.nn.Linear(width, 1)

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        seen = batch[Columns.OBS]
        features = self.body(_rows(seen["observation"]))
        logits = self.policy(features).masked_fill(seen["action_mask"] < 0.5, FLOAT_MIN)
        return {Columns.EMBEDDINGS: features, Columns.ACTION_DIST_INPUTS: logits}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:
        """Return the expected return, [B]; see RLlib's ``ValueFunctionAPI``."""
        if embeddings is None:
            embeddings = self.body(_rows(batch[Columns.OBS]["observation"]))
        return self.value(embeddings).squeeze(-1)


def _spec(hidden: int) -> RLModuleSpec:
    return RLModuleSpec(module_class=MaskedModule, model_config={"hidden": hidden})


def self_play(config: AlgorithmConfig, hidden: int = 128, **options: Any) -> AlgorithmConfig:
    """Set ``config`` up for self-play: one :class:`MaskedModule`, ``"shared"``, plays both seats.

    Args:
        config: changed and returned.
        hidden: width of the module's layers.
        options: arguments of :func:`bao_env.env`.
    """
    return (
        config.environment("bao-aec", env_config=options)
        .multi_agent(policies={SHARED}, policy_mapping_fn=lambda *_, **__: SHARED)
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={SHARED: _spec(hidden)}))
    )


def against(
    config: AlgorithmConfig,
    opponent: Opponent = "random",
    hidden: int = 128,
    games: int = 64,
    **options: Any,
) -> AlgorithmConfig:
    """Set ``config`` up for batches of games against an opponent, on the vector environment.

    Args:
        config: changed and returned.
        opponent: as :class:`bao_env.BaoVectorEnv` takes it.
        hidden: width of the module's layers.
        games: number of games in each env runner.
        options: more arguments of :class:`bao_env.BaoVectorEnv`.
    """
    return (
        config.environment("bao-vector", env_config={"opponent": opponent, **options})
        .env_runners(num_envs_per_env_runner=games, gym_env_vectorize_mode="vector_entry_point")
        .rl_module(rl_module_spec=_spec(hidden))
    )


register_env("bao-aec", lambda config: PettingZooEnv(env(**config)))
register_env(
    "bao-vector",
    lambda config: BaoVectorEnv(**config, autoreset_mode=AutoresetMode.NEXT_STEP),
)
