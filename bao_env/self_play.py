"""Play against past policies: self-play for libraries that support only one learner.

    from bao_env import BaoVectorEnv, OpponentPool, PolicyAgent

    pool = OpponentPool("greedy", seed=1)
    envs = BaoVectorEnv(64, opponent=pool, observation="replies")
    ...  # between rollouts, with a copy of the policy that training does not change:
    pool.add(PolicyAgent(choose, observation="replies"))
    pool.draw()

Logged returns are then measured against the pool and stay near 0. To see progress, evaluate against
a fixed opponent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from bao_env.bots import Agent, Opponent, get_agent
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.array_checks import MAX_COUNT, as_actions, as_batch, as_integer
from bao_env.engine.masks import unpack_masks
from bao_env.engine.position import Actions, Flags, Legal, PackedPositions, movers
from bao_env.engine.ruleset import Ruleset
from bao_env.observation.observer import Observer, get_observer, make_observations

Choose = Callable[[Any, Flags], npt.NDArray[Any]]
"""A function of observations with B rows and action masks bool[B, 64] that returns legal actions,
integers [B]."""


class PolicyAgent:
    """Turn a policy, a function of what a player sees, into an :class:`~bao_env.bots.Agent`.

    Args:
        choose: the policy, called with all positions at once. Its arguments are the environments'
            ``"observation"`` and the action masks.
        observation: the observation that it reads (:mod:`bao_env.observation.observer`).
        ruleset: a :class:`bao_env.Ruleset` or its name.
        dtype: ``np.float32`` or ``np.uint8``, for observations by name.

    Raises:
        ValueError: an unknown observation, dtype or rule set.
    """

    def __init__(
        self,
        choose: Choose,
        observation: str | Observer = "board",
        ruleset: str | Ruleset = "zanzibar",
        dtype: npt.DTypeLike = np.float32,
    ) -> None:
        self._choose = choose
        self._observer = get_observer(observation, ruleset, dtype)

    def act(self, positions: PackedPositions, legal: Legal) -> Actions:
        """Choose actions; see :meth:`bao_env.bots.Agent.act`."""
        positions, legal = as_batch(positions, legal)
        seen = make_observations(self._observer, positions, legal, movers(positions))
        action_masks = np.empty((len(legal), NUM_ACTIONS), np.bool_)
        unpack_masks(legal, action_masks)
        return as_actions(self._choose(seen, action_masks), len(legal), "the policy")


class OpponentPool:
    """An agent that plays as one of its members at a time.

    Pickling includes its members, which must support it, and its generator.

    Args:
        first: the member that it begins with and always keeps; see
            :func:`bao_env.bots.get_agent`.
        size: the largest number of members; a new one then replaces any but the first.
        newest: the probability that :meth:`draw` takes the newest; otherwise all members are
            equally likely.
        seed: seeds the draws.
        ruleset: the rules for members by name.

    Raises:
        ValueError: an argument is wrong.
    """

    def __init__(
        self,
        first: Opponent = "random",
        size: int = 20,
        newest: float = 0.5,
        seed: int = 0,
        ruleset: str | Ruleset = "zanzibar",
    ) -> None:
        self.size = as_integer(size, "size", 2, MAX_COUNT)
        if not 0 <= newest <= 1:
            raise ValueError(f"newest={newest}: expected a probability from 0 to 1")
        self.members: list[Agent] = [get_agent(first, ruleset, seed)]
        """The oldest comes first, the newest last."""
        self.current = self.members[0]
        """The member that plays."""
        self.newest = newest
        self._ruleset = ruleset
        self._rng = np.random.default_rng(seed)

    def add(self, member: Opponent) -> None:
        """Add a member as the newest; in a full pool it replaces a random one.

        Raises:
            ValueError: it is not what :func:`bao_env.bots.get_agent` takes.
        """
        agent = get_agent(member, self._ruleset)
        if len(self.members) == self.size:
            del self.members[self._rng.integers(1, self.size)]
        self.members.append(agent)

    def draw(self) -> None:
        """Draw the member that plays from now on."""
        newest = self._rng.random() < self.newest
        index = -1 if newest else self._rng.integers(len(self.members))
        self.current = self.members[index]

    def act(self, positions: PackedPositions, legal: Legal) -> Actions:
        """Choose actions; see :meth:`bao_env.bots.Agent.act`."""
        return self.current.act(positions, legal)
