"""Run thousands of games as a Stable-Baselines3 ``VecEnv``.

.. code-block:: python

    from sb3_contrib import MaskablePPO
    from bao_env.adapters.sb3 import SB3VecEnv

    envs = SB3VecEnv(128, opponent="greedy", observation="replies")
    model = MaskablePPO("MultiInputPolicy", envs, n_steps=64, batch_size=1024)
    model.learn(1_000_000)

The default ``n_steps=2048`` is meant for few games: with 128 games it makes rollouts of 262,144
steps.

``training/examples/sb3_vector.py`` trains against past policies, and turns the model into a player.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from bao_env.bots import Opponent
from bao_env.engine.position import Flags
from bao_env.envs.vector import BaoVectorEnv, Observation

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
except ModuleNotFoundError as error:
    error.add_note("bao_env.adapters.sb3 needs Stable-Baselines3: pip install sb3-contrib")
    raise

Indices = int | Iterable[int] | None


class SB3VecEnv(VecEnv):
    """Play many games against an opponent, for Stable-Baselines3 and its maskable algorithms.

    Observations, actions and rewards are the same as in :class:`bao_env.BaoVectorEnv`. An ended
    game restarts in the same step. Its last observation is then
    ``infos[game]["terminal_observation"]``, and ``infos[game]["episode"]`` holds its return, length
    and time, as with SB3's ``Monitor``. The keys ``"winner"``, ``"plies"``, ``"illegal"`` and
    ``"opponent"`` of ``infos[game]`` are described in :mod:`bao_env.envs`.
    ``seed(n)`` seeds all games together with ``n``.

    Args:
        num_envs: number of games, B.
        opponent: the opponent, in any form that :class:`bao_env.BaoVectorEnv` takes; for self-play
            an :class:`bao_env.self_play.OpponentPool`.
        options: other arguments of :class:`bao_env.BaoVectorEnv`, except ``autoreset_mode``.

    Raises:
        ValueError: an argument is wrong, there is no opponent, or observations would be dicts
            within dicts.
    """

    def __init__(self, num_envs: int, opponent: Opponent = "random", **options: Any) -> None:
        if opponent is None:
            raise ValueError("opponent=None: expected a name, an agent or an OpponentPool")
        mode = AutoresetMode.SAME_STEP
        self.envs: BaoVectorEnv = BaoVectorEnv(
            num_envs, opponent=opponent, autoreset_mode=mode, **options
        )
        space = self.envs.single_observation_space
        if isinstance(space, spaces.Dict) and any(
            isinstance(s, spaces.Dict) for s in space.values()
        ):
            raise ValueError(
                "Stable-Baselines3 does not support observations that are nested dicts: pass "
                "flat=True"
            )
        self._actions: npt.NDArray[Any] = np.zeros(num_envs, np.int64)
        self._start_time = time.time()
        super().__init__(num_envs, space, self.envs.single_action_space)

    def reset(self) -> Observation:
        """Begin new games; see :meth:`bao_env.BaoVectorEnv.reset`.

        Raises:
            ValueError: ``set_options`` has set different options for different games.
        """
        if any(options != self._options[0] for options in self._options):
            raise ValueError(
                "set_options: expected the same dict for all games; its 'position' may be a list "
                "with one text for each game"
            )
        observation, infos = self.envs.reset(seed=self._seeds[0], options=self._options[0])
        self.reset_infos: list[dict[str, Any]] = self._split(infos)
        self._reset_seeds()
        self._reset_options()
        return observation

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Keep the actions, integers [B], for :meth:`step_wait`."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[Observation, npt.NDArray[np.float32], Flags, list[dict[str, Any]]]:
        """Play the actions and return observation, rewards float32[B], ends bool[B] and infos.

        Raises:
            ValueError: an action is illegal; nothing has changed.
        """
        lengths = self.envs.steps + 1
        observation, rewards, terminated, truncated, infos = self.envs.step(self._actions)
        ended = terminated | truncated
        game_infos = self._split(infos)
        final_info, keys = infos.get("final_info", {}), ("winner", "plies", "opponent")
        for game in np.flatnonzero(ended):
            game_infos[game] |= {
                **{key: int(final_info[key][game]) for key in keys if key in final_info},
                "terminal_observation": infos["final_obs"][game],
                "TimeLimit.truncated": bool(truncated[game]),
                "episode": {
                    "r": float(rewards[game]),  # no other step of a game has a reward
                    "l": int(lengths[game]),
                    "t": round(time.time() - self._start_time, 6),
                },
            }
            if "illegal" in final_info and final_info["illegal"][game]:
                game_infos[game]["illegal"] = True
        return observation, rewards.astype(np.float32), ended, game_infos

    def _split(self, infos: dict[str, Any]) -> list[dict[str, Any]]:
        """Return a dict of infos for each game, which contains its seat."""
        return [{"seat": int(seat)} for seat in infos["seat"]]

    def close(self) -> None:
        """Close the games."""
        self.envs.close()

    def get_images(self) -> list[npt.NDArray[np.uint8] | None]:
        """Return a picture of each game, uint8[H, W, 3]; None unless ``render_mode="rgb_array"``.

        Raises:
            DependencyNotInstalled: pygame is missing.
        """
        images = self.envs.render() if self.render_mode == "rgb_array" else None
        return list(images or [None] * self.num_envs)

    def has_attr(self, attr_name: str) -> bool:
        """Return whether the games have an attribute or method of that name."""
        return hasattr(self.envs, attr_name)

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Return an attribute of the games, once for each.

        Raises:
            AttributeError: the games have no attribute of that name.
        """
        return [getattr(self.envs, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Raise an error, because the games share their attributes.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "set_attr is not supported, because all games share their attributes: make a new "
            "SB3VecEnv"
        )

    def env_method(self, method_name: str, *args: Any, indices: Indices = None, **kw: Any) -> Any:
        """Call ``action_masks`` or ``render`` and return its result for each game.

        Raises:
            NotImplementedError: ``method_name`` is another method.
        """
        if method_name not in ("action_masks", "render"):
            raise NotImplementedError(
                f"env_method: expected 'action_masks' or 'render', not {method_name!r}"
            )
        rows = getattr(self.envs, method_name)(*args, **kw)
        return [rows[game] for game in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Indices = None) -> list[bool]:
        """Return whether the class is ``Monitor``, whose infos the games already give."""
        return [issubclass(wrapper_class, Monitor) for _ in self._get_indices(indices)]
