"""Run thousands of games as a Stable-Baselines3 ``VecEnv``, also against past policies.

.. code-block:: python

    from sb3_contrib import MaskablePPO
    from bao_env import OpponentPool
    from bao_env.adapters.sb3 import SB3VecEnv, SelfPlayCallback, player

    envs = SB3VecEnv(128, opponent=OpponentPool("greedy"), observation="replies")
    model = MaskablePPO(
        "MultiInputPolicy", envs,
        n_steps=64, batch_size=1024, n_epochs=4, learning_rate=1e-3, ent_coef=0.01,
    )
    model.learn(1_000_000, callback=SelfPlayCallback())
    model.save("bao.zip")

    player("bao.zip")  # with act(positions, legal), for matches and as an opponent

The default ``n_steps=2048`` is meant for few games: with 128 it makes rollouts of 262,144 steps.

Commands accept the name of a function that makes the player. With this in ``mine.py``,
``bao rate mine:mine --path FOLDER_OF_MINE`` rates it::

    from bao_env.adapters.sb3 import player

    def mine(ruleset, seed):
        return player("bao.zip", ruleset=ruleset)
"""

from __future__ import annotations

import io
import os
import time
import warnings
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from bao_env.bots import Opponent
from bao_env.engine.position import Flags
from bao_env.engine.ruleset import Ruleset
from bao_env.envs.vector import BaoVectorEnv, Observation
from bao_env.observation.observer import OBSERVATIONS, Observer, get_observer, masked_space
from bao_env.self_play import OpponentPool, PolicyAgent

if TYPE_CHECKING:
    from sb3_contrib import MaskablePPO

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
    """Play many games against an opponent, for Stable-Baselines3 and its maskable algorithms.

    Observations, actions and rewards are those of :class:`bao_env.BaoVectorEnv`. An ended game
    restarts in the same step; its last observation is ``infos[game]["terminal_observation"]``, and
    ``infos[game]["episode"]`` holds its return, length and time, as with a ``Monitor`` around it.
    ``seed(n)`` seeds all games together with ``n``.

    Args:
        num_envs: number of games, B.
        opponent: as :class:`bao_env.BaoVectorEnv` takes it; for self-play an
            :class:`bao_env.self_play.OpponentPool`, with a :class:`SelfPlayCallback`.
        options: other arguments of :class:`bao_env.BaoVectorEnv`, except ``autoreset_mode``.

    Raises:
        ValueError: an argument is wrong, there is no opponent, or observations would be dicts
            within dicts.
    """

    def __init__(self, num_envs: int, opponent: Opponent = "random", **options: Any) -> None:
        if opponent is None:
            raise ValueError("opponent=None: expected a name, an agent or an OpponentPool")
        mode = AutoresetMode.SAME_STEP
        self.envs = BaoVectorEnv(num_envs, opponent=opponent, autoreset_mode=mode, **options)
        space = self.envs.single_observation_space
        if isinstance(space, spaces.Dict) and any(
            isinstance(s, spaces.Dict) for s in space.values()
        ):
            raise ValueError(
                "observation: Stable-Baselines3 does not support nested dicts; add flat=True"
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
    ) -> tuple[Observation, npt.NDArray[np.float32], Flags, list[dict[str, Any]]]:
        """Play the actions and return observation, rewards float32[B], ends bool[B] and infos.

        Raises:
            ValueError: an action is illegal; nothing has changed.
        """
        observation, rewards, terminated, truncated, infos = self.envs.step(self._actions)
        ended = terminated | truncated
        with self.envs.guard:
            self._returns += rewards
            self._lengths += 1
            split = self._split(infos)
            for game in np.flatnonzero(ended):
                split[game] |= {
                    "terminal_observation": infos["final_obs"][game],
                    "TimeLimit.truncated": bool(truncated[game]),
                    "episode": {
                        "r": float(self._returns[game]),
                        "l": int(self._lengths[game]),
                        "t": round(time.time() - self._start_time, 6),
                    },
                }
            self._returns[ended] = self._lengths[ended] = 0
            result = observation, rewards.astype(np.float32), ended, split
        self.envs.guard.ready = True
        return result

    def _split(self, infos: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the infos of each game."""
        return [{"seat": int(seat)} for seat in infos["seat"]]

    def close(self) -> None:
        """Close the games."""
        self.envs.close()

    def has_attr(self, attr_name: str) -> bool:
        """Return whether the games have an attribute or method of that name."""
        return hasattr(self.envs, attr_name)

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Return an attribute of the games, once for each.

        Raises:
            AttributeError: they have no attribute of that name.
        """
        return [getattr(self.envs, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Raise an error, because the games share their attributes.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("the games share their attributes: make a new SB3VecEnv")

    def env_method(self, method_name: str, *args: Any, indices: Indices = None, **kw: Any) -> Any:
        """Call ``action_masks`` or ``render`` and return its result for each game.

        Raises:
            NotImplementedError: it is another method.
        """
        if method_name not in ("action_masks", "render"):
            raise NotImplementedError(f"{method_name}: expected 'action_masks' or 'render'")
        rows = getattr(self.envs, method_name)(*args, **kw)
        return [rows[game] for game in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Indices = None) -> list[bool]:
        """Return whether the class is ``Monitor``; the games already give its infos."""
        return [issubclass(wrapper_class, Monitor) for _ in self._get_indices(indices)]


class SelfPlayCallback(BaseCallback):
    """Fill the :class:`~bao_env.self_play.OpponentPool` that the model trains against.

    Before each rollout of ``n_steps * num_envs`` steps, the callback draws an opponent from the
    pool. If ``every`` steps have passed, it also adds a copy of the policy. So rollouts must be
    shorter than the training; a warning says if no copy has joined by its end. Running games
    continue against the new opponent. Returns are those against the pool, so they stay near 0;
    sb3-contrib's ``MaskableEvalCallback`` with a ``SB3VecEnv(64, opponent="greedy", ...)`` shows
    the progress.

    ``model.save()`` also saves the pool. If you continue to train a loaded model with a new
    callback, the model's pool replaces a pool that nothing has been added to.

    Args:
        every: steps of training after which a copy of the policy joins the pool. The policy must be
            one of sb3-contrib's maskable ones.

    Raises:
        ValueError: ``every`` is not positive, or (from ``learn``) the games are not all played
            against one ``OpponentPool`` in this process, or ``VecNormalize`` changes observations.
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
        self._started_at = self._added_at = self.model.num_timesteps

    def _on_rollout_start(self) -> None:
        if self.model.num_timesteps >= self._added_at + self.every:
            self._added_at = self.model.num_timesteps
            observer = self.training_env.get_attr("observer")[0]
            self._pool.add(PolicyAgent(FrozenPolicy.of(self.model.policy), observation=observer))
        self._pool.draw()

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        if self._added_at == self._started_at:
            rollout = self.model.n_steps * self.training_env.num_envs
            warnings.warn(
                f"SelfPlayCallback: in {self.model.num_timesteps - self._started_at:,} steps no "
                f"copy of the policy joined the pool. One joins every {self.every:,} steps, but "
                f"only between rollouts, which have n_steps * num_envs = {rollout:,} steps: "
                "decrease n_steps or every, or train for longer",
                stacklevel=2,
            )


class FrozenPolicy:
    """A copy of a maskable policy that draws actions by their probabilities.

    Args:
        kind: the policy's class.
        saved: the bytes that its ``save`` wrote.
        device: the device that it runs on.
    """

    def __init__(self, kind: type[BasePolicy], saved: bytes, device: Any = "auto") -> None:
        self._saved = kind, saved
        self._policy: Any = kind.load(io.BytesIO(saved), device=device)

    @classmethod
    def of(cls, policy: BasePolicy) -> FrozenPolicy:
        """Copy a policy."""
        file = io.BytesIO()
        policy.save(file)
        return cls(type(policy), file.getvalue(), policy.device)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._saved

    def __call__(self, observations: Any, masks: Flags) -> npt.NDArray[Any]:
        """See :data:`bao_env.self_play.Choose`."""
        return _predict(self._policy, observations, masks, deterministic=False)


def _predict(
    policy: Any, observations: Any, masks: Flags, *, deterministic: bool
) -> npt.NDArray[Any]:
    """Return the actions of a maskable policy or model, int64[B]."""
    space = policy.observation_space
    if isinstance(space, spaces.Dict) and "action_mask" in space.spaces:
        observations = {"observation": observations, "action_mask": masks.astype(np.int8)}
    actions, _ = policy.predict(observations, action_masks=masks, deterministic=deterministic)
    chosen: npt.NDArray[Any] = actions
    return chosen


def player(
    model: MaskablePPO | str | os.PathLike[str],
    *,
    ruleset: str | Ruleset = "zanzibar",
    observation: str | Observer | None = None,
) -> PolicyAgent:
    """Make a player of a ``MaskablePPO``; it plays the most probable action.

    Loading a model of Stable-Baselines3 can run code that is in the file: load only files that you
    trust.

    Args:
        model: the model, or the file that ``model.save`` wrote.
        ruleset: the rules that the model was trained under, a :class:`bao_env.Ruleset` or its name.
        observation: the observation that it reads, if that is an object. Observations with a name
            are recognised by their space.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: no built-in observation has the model's space.
    """
    from sb3_contrib import MaskablePPO

    if isinstance(model, str | os.PathLike):
        if not os.path.isfile(model) and not os.path.isfile(f"{os.fspath(model)}.zip"):
            raise FileNotFoundError(f"there is no model at {os.fspath(model)}")
        model = MaskablePPO.load(os.fspath(model), device="cpu")
    if observation is None:
        observation = _observer_of(model.observation_space, ruleset)
    return PolicyAgent(partial(_predict, model, deterministic=True), observation, ruleset)


def _observer_of(space: spaces.Space[Any], ruleset: str | Ruleset) -> Observer:
    """Return the named observer whose observations a model reads.

    Raises:
        ValueError: there is none.
    """
    for name in OBSERVATIONS:
        for dtype in (np.float32, np.uint8):
            observer = get_observer(name, ruleset, dtype)
            if space in (observer.space, masked_space(observer.space)):
                return observer
    raise ValueError(
        f"the model reads {space}, which matches no built-in observation: pass observation="
    )
