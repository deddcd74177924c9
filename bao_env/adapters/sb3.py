"""Thousands of games as a ``VecEnv``: Stable-Baselines3 takes no Gymnasium vector environment.

from sb3_contrib import MaskablePPO
from bao_env.adapters.sb3 import BaoVecEnv

model = MaskablePPO("MultiInputPolicy", BaoVecEnv(64, opponent="greedy")).learn(100_000)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from bao_env.bots import Opponent
from bao_env.envs.vector import BaoVectorEnv, Observation

try:
    from stable_baselines3.common.vec_env import VecEnv
except ModuleNotFoundError as error:
    error.add_note("bao_env.adapters.sb3 needs Stable-Baselines3: pip install sb3-contrib")
    raise

Indices = int | Iterable[int] | None


class BaoVecEnv(VecEnv):
    """Many games against an opponent, for Stable-Baselines3 and its maskable algorithms.

    Observations, actions and rewards are those of :class:`bao_env.BaoVectorEnv`. An ended game
    restarts in the same step; its last observation is ``infos[game]["terminal_observation"]``.
    ``seed(n)`` seeds all games together with ``n``.

    Args:
        num_envs: number of games, B.
        opponent: ``"random"``, ``"greedy"`` or an agent. Stable-Baselines3 knows no self-play.
        options: more arguments of :class:`bao_env.BaoVectorEnv`.

    Raises:
        ValueError: an argument is wrong, or there is no opponent.
    """

    def __init__(self, num_envs: int, opponent: Opponent = "random", **options: Any) -> None:
        if opponent is None:
            raise ValueError("opponent=None: expected 'random', 'greedy' or an agent")
        self.envs = BaoVectorEnv(num_envs, opponent=opponent, **options)
        if self.envs.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise ValueError("autoreset_mode: Stable-Baselines3 needs SAME_STEP, the default")
        self._actions: npt.NDArray[Any] = np.zeros(num_envs, np.int64)
        super().__init__(
            num_envs, self.envs.single_observation_space, self.envs.single_action_space
        )

    def reset(self) -> Observation:
        """Begin new games; see :meth:`bao_env.BaoVectorEnv.reset`.

        Raises:
            ValueError: ``set_options`` has set different options for different games.
        """
        if any(options != self._options[0] for options in self._options):
            raise ValueError("set_options: expected one dict for all; its values may be lists")
        observation, infos = self.envs.reset(seed=self._seeds[0], options=self._options[0])
        self.reset_infos = self._split(infos)
        self._reset_seeds()
        self._reset_options()
        return observation

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Keep the actions, integers [B], for :meth:`step_wait`."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[Observation, npt.NDArray[np.float32], npt.NDArray[np.bool_], list[dict[str, Any]]]:
        """Play the actions: observation, rewards float32[B], ends bool[B], infos.

        Raises:
            ValueError: an action is illegal; nothing has changed.
        """
        observation, rewards, terminated, truncated, infos = self.envs.step(self._actions)
        split = self._split(infos)
        for game in np.flatnonzero(terminated | truncated):
            split[game]["terminal_observation"] = infos["final_obs"][game]
            split[game]["TimeLimit.truncated"] = bool(truncated[game])
        return observation, rewards.astype(np.float32), terminated | truncated, split

    def _split(self, infos: dict[str, Any]) -> list[dict[str, Any]]:
        """The infos of each game."""
        return [{"player": int(player)} for player in infos["player"]]

    def _games(self, indices: Indices) -> list[int]:
        return [int(i) for i in self._get_indices(indices)]

    def close(self) -> None:
        """Close the games."""
        self.envs.close()

    def has_attr(self, attr_name: str) -> bool:
        """Whether the games have an attribute or method of that name."""
        return hasattr(self.envs, attr_name)

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """An attribute of the games, the same for each.

        Raises:
            AttributeError: they have none of that name.
        """
        return [getattr(self.envs, attr_name)] * len(self._games(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Refused: the games share their attributes.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("the games share their attributes: make a new BaoVecEnv")

    def env_method(self, method_name: str, *args: Any, indices: Indices = None, **kw: Any) -> Any:
        """``action_masks`` or ``render`` of each game.

        Raises:
            NotImplementedError: another method.
        """
        if method_name not in ("action_masks", "render"):
            raise NotImplementedError(f"{method_name}: expected 'action_masks' or 'render'")
        rows = getattr(self.envs, method_name)(*args, **kw)
        return [rows[game] for game in self._games(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Indices = None) -> list[bool]:
        """No game is wrapped."""
        return [False] * len(self._games(indices))
