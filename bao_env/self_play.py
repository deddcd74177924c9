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

import multiprocessing
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bao_env.bots import Agent, Bot, Opponent, get_agent
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.argument_checks import MAX_COUNT, as_actions, as_batch, as_integer
from bao_env.engine.masks import unpack_masks
from bao_env.engine.position import Actions, Flags, Legal, PackedPositions, movers
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.observation.observer import Observer, get_observer, make_observations

Choose = Callable[[Any, Flags], npt.NDArray[Any]]
"""A function of observations with B rows and action masks bool[B, 64] that returns legal actions,
integers [B]."""


class PolicyAgent(Bot):
    """Turn a policy, a function of what a player sees, into an :class:`~bao_env.bots.Agent`.

    Args:
        choose: the policy, called with all positions at once. Its arguments are the environments'
            ``"observation"`` and the action masks.
        observation: the observation that the policy reads
            (:mod:`bao_env.observation.observer`).
        ruleset: a :class:`bao_env.Ruleset` or its name; None means the rules of its first game.
        dtype: ``np.float32`` or ``np.uint8``, for an observation given by name.

    Raises:
        ValueError: the observation, the dtype or the rule set is unknown, or ``choose`` cannot be
            called.
    """

    def __init__(
        self,
        choose: Choose,
        observation: str | Observer = "board",
        ruleset: str | Ruleset | None = None,
        dtype: npt.DTypeLike = np.float32,
    ) -> None:
        if not callable(choose):
            raise ValueError(
                f"choose={choose!r:.200}: expected a function of observations and action masks"
            )
        self._choose, self._observation, self._dtype = choose, observation, dtype
        self._observer = get_observer(observation, ruleset or "zanzibar", dtype)
        self.ruleset = None if ruleset is None else get_ruleset(ruleset)

    def take_rules(self, ruleset: Ruleset) -> None:
        """Play by these rules from now on; the observations depend on them too."""
        self._observer = get_observer(self._observation, ruleset, self._dtype)
        self.ruleset = ruleset

    def act(self, positions: PackedPositions, legal: Legal) -> Actions:
        """Choose actions; see :meth:`bao_env.bots.Agent.act`."""
        positions, legal = as_batch(positions, legal)
        observations = make_observations(self._observer, positions, legal, movers(positions))
        action_masks = np.empty((len(legal), NUM_ACTIONS), np.bool_)
        unpack_masks(legal, action_masks)
        return as_actions(self._choose(observations, action_masks), len(legal), "the policy")


class Member(NamedTuple):
    """A member of an :class:`OpponentPool`."""

    number: int
    """0 for the first member, n for the n-th that was added. ``infos["opponent"]`` of the member's
    games is this number."""
    opponent: Opponent
    """The member as given, perhaps by name."""
    agent: Agent
    """The agent that plays."""


class OpponentPool(Bot):
    """An agent that plays as one of its members at a time.

    A pickled pool contains its members, which must support pickling, and its random generator.

    A pool serves the environments of its own process. Environments in subprocesses play against
    copies of the pool, which get no new members, so a copy warns when it first plays.

    Args:
        first: the member that the pool starts with and always keeps; see
            :func:`bao_env.bots.get_agent`.
        size: the largest number of members. In a full pool, a new member replaces a random one,
            but never the first.
        newest: the probability that :meth:`draw` takes the newest member; otherwise all members
            are equally likely.
        seed: seeds the draws.
        ruleset: the rules that all members play by; None means the rules of the first game.

    Raises:
        ValueError: an argument is wrong.
    """

    def __init__(
        self,
        first: Opponent = "random",
        size: int = 20,
        newest: float = 0.5,
        seed: int = 0,
        ruleset: str | Ruleset | None = None,
    ) -> None:
        self.size: int = as_integer(size, "size", 2, MAX_COUNT)
        if not 0 <= newest <= 1:
            raise ValueError(f"newest={newest}: expected a probability from 0 to 1")
        self.ruleset = None if ruleset is None else get_ruleset(ruleset)
        self._seed = seed
        self.members: list[Member] = [Member(0, first, get_agent(first, self.ruleset, seed))]
        """The oldest comes first, the newest last."""
        self.playing: Member = self.members[0]
        """The member that plays. If a new member replaces it in the pool, it still plays until the
        next :meth:`draw`."""
        self.newest = newest
        self._added = 0
        self._rng = np.random.default_rng(seed)
        self._process = os.getpid()

    def take_rules(self, ruleset: Ruleset) -> None:
        """Play by these rules from now on; members given by name are loaded for these rules.

        Raises:
            ValueError: a member plays by other rules.
        """

        def load(member: Member) -> Member:
            return member._replace(agent=get_agent(member.opponent, ruleset, self._seed))

        members = [load(member) for member in self.members]
        still_members = [member for member in members if member.number == self.playing.number]
        self.playing = still_members[0] if still_members else load(self.playing)
        self.members, self.ruleset = members, ruleset

    def add(self, member: Opponent) -> None:
        """Add a member as the newest; in a full pool it replaces a random one, but not the first.

        Raises:
            ValueError: ``member`` is not what :func:`bao_env.bots.get_agent` takes, or plays by
                other rules.
        """
        agent = get_agent(member, self.ruleset)
        if len(self.members) == self.size:
            del self.members[self._rng.integers(1, self.size)]
        self._added += 1
        self.members.append(Member(self._added, member, agent))

    def draw(self, weights: Sequence[float] | None = None) -> None:
        """Draw the member that plays from now on.

        Args:
            weights: a number, 0 or more, for each of :attr:`members`; the probabilities are
                proportional to them. None draws the newest member with probability
                :attr:`newest`, or else any member.

        Raises:
            ValueError: the weights do not fit the members.
        """
        if weights is not None:
            shares = np.array(weights, float)
            fits = shares.shape == (len(self.members),) and np.isfinite(shares).all()
            if not fits or shares.min() < 0 or not shares.any():
                raise ValueError(
                    f"weights={weights}: expected {len(self.members)} numbers of 0 or more, not "
                    "all 0"
                )
            index = int(self._rng.choice(len(shares), p=shares / shares.sum()))
        elif self._rng.random() < self.newest:
            index = -1
        else:
            index = int(self._rng.integers(len(self.members)))
        self.playing = self.members[index]

    def act(self, positions: PackedPositions, legal: Legal) -> Actions:
        """Choose actions; see :meth:`bao_env.bots.Agent.act`."""
        if self._process != os.getpid():
            self._process = os.getpid()
            if multiprocessing.parent_process() is not None:
                warnings.warn(
                    "this OpponentPool is a copy in a subprocess, and does not get the members "
                    "added to the original. Run the environments in the process of the original",
                    stacklevel=2,
                )
        return self.playing.agent.act(positions, legal)
