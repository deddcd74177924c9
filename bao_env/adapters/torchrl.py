"""Run thousands of games as a batched TorchRL environment.

.. code-block:: python

    from torchrl.envs import ActionMask, TransformedEnv
    from bao_env.adapters.torchrl import BaoTorchEnv

    env = TransformedEnv(BaoTorchEnv(64, opponent="greedy"), ActionMask())
    env.rollout(100, break_when_any_done=False)

``training/examples/torchrl_vector.py`` trains against past policies, and makes a player of the
actor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box

from bao_env.bots import Opponent
from bao_env.engine.action import NUM_ACTIONS
from bao_env.envs.vector import BaoVectorEnv, Observation

try:
    import torch
    from tensordict import TensorDict, TensorDictBase
    from torchrl.data import Binary, Bounded, Categorical, Composite
    from torchrl.envs import EnvBase
except ModuleNotFoundError as error:
    error.add_note("bao_env.adapters.torchrl needs TorchRL: pip install torchrl 'torch<2.14'")
    raise


class BaoTorchEnv(EnvBase):
    """:class:`bao_env.BaoVectorEnv` as a TorchRL environment of batch size [B], on the CPU.

    Keys: ``"observation"`` float32[B, 52], or as ``observation=`` and ``dtype=`` say;
    ``"action_mask"`` bool[B, 64], ``"seat"`` int64[B, 1], ``"action"`` int64[B], ``"reward"``
    float32[B, 1]; ``"done"``, ``"terminated"``, ``"truncated"`` and ``"illegal"`` bool[B, 1];
    ``"winner"`` and ``"plies"`` int64[B, 1], -1 and 0 until the game ends. TorchRL's collectors,
    and ``rollout(break_when_any_done=False)``, restart ended games.

    In self-play (``opponent=None``) the value of the next observation is usually the other
    player's. TorchRL's advantage estimators do not know that. They are right only against an
    opponent, such as a :class:`bao_env.self_play.OpponentPool` of past policies.

    Args:
        num_envs: number of games, B.
        opponent: as :class:`bao_env.BaoVectorEnv` takes it.
        seed: the seed of the first reset; ``set_seed`` sets another.
        options: other arguments of :class:`bao_env.BaoVectorEnv`, except ``autoreset_mode``
            and ``flat``.

    Raises:
        TypeError: ``options`` has an argument that it must not have.
        ValueError: an argument is wrong, or (from ``step``) an action is illegal.
    """

    batch_locked = True

    def __init__(
        self,
        num_envs: int,
        opponent: Opponent | None = "random",
        seed: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(device="cpu", batch_size=[num_envs])
        self.envs = BaoVectorEnv(
            num_envs, opponent=opponent, autoreset_mode="Disabled", flat=False, **options
        )
        self._next_seed = seed
        space = self.envs.observer.space
        if not isinstance(space, Box):
            raise ValueError("observation: expected one that is a single array")
        low, high = (
            torch.tensor(np.broadcast_to(bound, (num_envs, *space.shape)))
            for bound in (space.low, space.high)
        )
        shape = (num_envs, 1)
        self.observation_spec = Composite(
            observation=Bounded(low, high, dtype=low.dtype),
            action_mask=Binary(NUM_ACTIONS, shape=(num_envs, NUM_ACTIONS), dtype=torch.bool),
            seat=Bounded(0, 1, shape, dtype=torch.int64),
            winner=Bounded(-1, 1, shape, dtype=torch.int64),
            plies=Bounded(0, self.envs.max_plies, shape, dtype=torch.int64),
            illegal=Binary(1, shape=shape, dtype=torch.bool),
            shape=self.batch_size,
        )
        self.action_spec = Categorical(NUM_ACTIONS, shape=(num_envs,), dtype=torch.int64)
        self.reward_spec = Bounded(-1, 1, shape, dtype=torch.float32)
        ends = ("done", "terminated", "truncated")
        self.full_done_spec = Composite(
            {name: Categorical(2, shape=shape, dtype=torch.bool) for name in ends},
            shape=self.batch_size,
        )

    def _seen(self, observation: Observation, infos: dict[str, Any]) -> dict[str, torch.Tensor]:
        nowhere = np.zeros(self.envs.num_envs, np.bool_)
        ended = infos.get("_winner", nowhere)
        column = {
            "seat": infos["seat"].astype(np.int64),
            "winner": np.where(ended, infos.get("winner", -1), -1).astype(np.int64),
            "plies": np.where(ended, infos.get("plies", 0), 0),
            "illegal": infos.get("illegal", nowhere),
        }
        return {
            "observation": torch.from_numpy(observation["observation"]),
            "action_mask": torch.from_numpy(observation["action_mask"]).bool(),
            **{name: torch.from_numpy(array)[:, None] for name, array in column.items()},
        }

    def _reset(self, tensordict: TensorDictBase | None = None, **_: Any) -> TensorDictBase:
        options = {}
        if tensordict is not None and "_reset" in tensordict:
            options["reset_mask"] = tensordict["_reset"].reshape(self.batch_size).numpy()
        seen = self._seen(*self.envs.reset(seed=self._next_seed, options=options))
        self._next_seed = None
        return TensorDict(seen, self.batch_size)

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        actions = tensordict["action"].numpy()
        observation, rewards, terminated, truncated, infos = self.envs.step(actions)
        result = {
            "reward": rewards.astype(np.float32),
            "done": terminated | truncated,
            "terminated": terminated,
            "truncated": truncated,
        }
        tensors = {name: torch.from_numpy(array)[:, None] for name, array in result.items()}
        return TensorDict(self._seen(observation, infos) | tensors, self.batch_size)

    def _set_seed(self, seed: int | None) -> None:
        self._next_seed = seed
