"""Thousands of games as a ``VecEnv`` for Stable-Baselines3, and self-play against past policies.

from sb3_contrib import MaskablePPO
from bao_env.adapters.sb3 import SB3VecEnv, SelfPlayCallback
from bao_env import OpponentPool

envs = SB3VecEnv(64, opponent=OpponentPool(), observation="replies")
model = MaskablePPO("MultiInputPolicy", envs)
model.learn(1_000_000, callback=SelfPlayCallback())
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from bao_env.bots import Opponent
from bao_env.envs.vector import BaoVectorEnv, Observation
from bao_env.self_play import OpponentPool, PolicyAgent

try:
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.policies import BasePolicy
    from stable_baselines3.common.vec_env import VecEnv
except ModuleNotFoundError as error:
    error.add_note("bao_env.adapters.sb3 needs Stable-Baselines3: pip install sb3-contrib")
    raise

Indices = int | Iterable[int] | None


class SB3VecEnv(VecEnv):
    """Many games against an opponent, for Stable-Baselines3 and its maskable algorithms.

    Observations, actions and rewards are those of :class:`bao_env.BaoVectorEnv`. An ended game
    restarts in the same step; its last observation is ``infos[game]["terminal_observation"]``, and
    ``infos[game]["episode"]`` holds its return, length and time, as with a ``Monitor`` around it.
    ``seed(n)`` seeds all games together with ``n``.

    Args:
        num_envs: number of games, B.
        opponent: as :class:`bao_env.BaoVectorEnv` takes it; for self-play an
            :class:`bao_env.self_play.OpponentPool`, with a :class:`SelfPlayCallback`.
        options: more arguments of :class:`bao_env.BaoVectorEnv`.

    Raises:
        ValueError: an argument is wrong, there is no opponent, or observations would be dicts
            within dicts.
    """

    def __init__(self, num_envs: int, opponent: Opponent = "random", **options: Any) -> None:
        if opponent is None:
            raise ValueError("opponent=None: expected a name, an agent or an OpponentPool")
        self.envs = BaoVectorEnv(num_envs, opponent=opponent, **options)
        if self.envs.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise ValueError("autoreset_mode: Stable-Baselines3 needs SAME_STEP, the default")
        space = self.envs.single_observation_space
        if isinstance(space, spaces.Dict) and any(
            isinstance(s, spaces.Dict) for s in space.values()
        ):
            raise ValueError(
                "observation: Stable-Baselines3 takes no dict within a dict; add flat=True"
            )
        self._actions: npt.NDArray[Any] = np.zeros(num_envs, np.int64)
        self._returns, self._lengths = np.zeros(num_envs), np.zeros(num_envs, np.int64)
        self._start_time = time.time()
        super().__init__(num_envs, space, self.envs.single_action_space)

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
        self._returns[:] = self._lengths[:] = 0
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
        self._count(rewards, split, np.flatnonzero(terminated | truncated))
        return observation, rewards.astype(np.float32), terminated | truncated, split

    def _count(
        self,
        rewards: npt.NDArray[np.float64],
        infos: list[dict[str, Any]],
        ended: npt.NDArray[np.int64],
    ) -> None:
        """Count returns and lengths; add those of games that have ended to their infos."""
        self._returns += rewards
        self._lengths += 1
        seconds = round(time.time() - self._start_time, 6)
        for game in ended:
            sums = {"r": float(self._returns[game]), "l": int(self._lengths[game])}
            infos[game]["episode"] = {**sums, "t": seconds}
        self._returns[ended] = self._lengths[ended] = 0

    def _split(self, infos: dict[str, Any]) -> list[dict[str, Any]]:
        """The infos of each game."""
        return [{"player": int(player)} for player in infos["player"]]

    def _games(self, indices: Indices) -> list[int]:
        return [int(i) for i in self._get_indices(indices)]

    def close(self) -> None:
        """Close the games."""
        self.envs.close()

    def has_attr(self, attr_name: str) -> bool:
        """Return whether the games have an attribute or method of that name."""
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
        raise NotImplementedError("the games share their attributes: make a new SB3VecEnv")

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
        """Return whether the games log what ``Monitor`` logs; they have no other wrapper."""
        return [issubclass(wrapper_class, Monitor)] * len(self._games(indices))


class SelfPlayCallback(BaseCallback):
    """Fills the :class:`~bao_env.self_play.OpponentPool` that the model trains against.

    Before every rollout an opponent is drawn from the pool. Games that are running then go on
    against the new one. Returns are those against the pool, so they stay near 0; sb3-contrib's
    ``MaskableEvalCallback`` with a ``SB3VecEnv(64, opponent="greedy", ...)`` shows the progress.

    ``model.save()`` saves the pool, too. When a loaded model learns on, with a new callback, a pool
    that nothing has been added to becomes the saved one.

    Args:
        every: steps of training after which a copy of the policy, which must be one of
            sb3-contrib's maskable ones, joins the pool.

    Raises:
        ValueError: ``every`` is not positive, or (from ``learn``) the games are not all played
            against one ``OpponentPool`` in this process, or ``VecNormalize`` changes what is seen.
    """

    model: Any

    def __init__(self, every: int = 50_000) -> None:
        if every < 1:
            raise ValueError(f"every={every}: expected at least 1 step")
        super().__init__()
        self.every = every
        self._added_at = 0
        """The step of the last addition."""

    def _init_callback(self) -> None:
        pools = self.training_env.get_attr("opponent")
        self._pool: OpponentPool = pools[0]
        same = all(pool is self._pool for pool in pools)
        if not same or not isinstance(self._pool, OpponentPool):
            raise ValueError(
                "SelfPlayCallback: expected games against one OpponentPool; make them with "
                "opponent=OpponentPool(), in this process"
            )
        normalize = self.model.get_vec_normalize_env()
        if normalize is not None and normalize.norm_obs:
            raise ValueError(
                "SelfPlayCallback: the pool sees observations as they are; use "
                "VecNormalize(..., norm_obs=False)"
            )
        saved = getattr(self.model, "opponent_pool", None)
        if saved is not None and len(self._pool.members) == 1:
            self._pool.restore(saved)
        self.model.opponent_pool = self._pool
        self._added_at = self.model.num_timesteps

    def _on_rollout_start(self) -> None:
        if self.model.num_timesteps >= self._added_at + self.every:
            self._added_at = self.model.num_timesteps
            self._pool.add(self._copy())
        self._pool.draw()

    def _copy(self) -> PolicyAgent:
        """The model's policy as it is now, as a player."""
        observer = self.training_env.get_attr("observer")[0]
        return PolicyAgent(FrozenPolicy.of(self.model.policy), observation=observer)

    def _on_step(self) -> bool:
        return True


class FrozenPolicy:
    """A maskable policy as it was when it was saved; it draws actions by their probabilities.

    Args:
        kind: its class.
        saved: what its ``save`` wrote.
        device: where it runs.
    """

    def __init__(self, kind: type[BasePolicy], saved: bytes, device: Any = "auto") -> None:
        self._saved = kind, saved
        self._policy: Any = kind.load(io.BytesIO(saved), device=device)

    @classmethod
    def of(cls, policy: BasePolicy) -> FrozenPolicy:
        """A policy as it is now."""
        file = io.BytesIO()
        policy.save(file)
        return cls(type(policy), file.getvalue(), policy.device)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._saved

    def __call__(self, observations: Any, masks: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        """See :data:`bao_env.self_play.Choose`."""
        space = self._policy.observation_space
        if isinstance(space, spaces.Dict) and "action_mask" in space.spaces:
            observations = {"observation": observations, "action_mask": masks.astype(np.int8)}
        actions, _ = self._policy.predict(observations, action_masks=masks)
        chosen: npt.NDArray[Any] = actions
        return chosen
