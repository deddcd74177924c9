"""Self-play for libraries that know one learner only: past policies as the opponent.

    from bao_env import BaoVectorEnv
    from bao_env.self_play import OpponentPool, PolicyAgent

    pool = OpponentPool("greedy", seed=1)
    envs = BaoVectorEnv(64, opponent=pool, observation="replies")
    ...  # now and then, between rollouts, with a copy of the policy that training leaves alone:
    pool.add(PolicyAgent(choose, "replies"))
    pool.draw()

What is returned and logged is then the result against the pool: about 0, however strong the learner
becomes. A match against a player that stays the same shows the progress.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from bao_env.bots import Agent, Opponent, as_actions, get_agent
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.arrays import as_batch
from bao_env.engine.batch import unpack_masks
from bao_env.engine.position import movers
from bao_env.engine.ruleset import Ruleset
from bao_env.observation.kinds import ObservationName, Observer

Choose = Callable[[Any, npt.NDArray[np.bool_]], npt.NDArray[Any]]
"""From observations with B rows, and masks bool[B, 64], to legal actions, integers [B]."""

POOL_SIZE: Final = 20


class PolicyAgent:
    """A policy, a function of what a player sees, as an :class:`~bao_env.bots.Agent`.

    Args:
        choose: the policy, asked for all positions at once. It gets what stands under
            ``"observation"`` in the environments, and the masks.
        observation: the kind of observation it reads; see :mod:`bao_env.observation.kinds`.
        ruleset: a :class:`bao_env.Ruleset` or the name of one.
        dtype: of the observations, ``np.float32`` or ``np.uint8``.

    Raises:
        ValueError: an unknown kind, dtype or rule set.
    """

    def __init__(
        self,
        choose: Choose,
        observation: ObservationName = "board",
        ruleset: str | Ruleset = "zanzibar",
        dtype: npt.DTypeLike = np.float32,
    ) -> None:
        self._choose = choose
        self._observer = Observer(observation, ruleset, dtype)

    def act(
        self, positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """See :meth:`bao_env.bots.Agent.act`."""
        positions, masks = as_batch(positions, masks)
        arrays = self._observer.empty(len(masks))
        self._observer.fill(positions, masks, movers(positions), arrays)
        legal = np.empty((len(masks), NUM_ACTIONS), np.bool_)
        unpack_masks(masks, legal)
        chosen = self._choose(self._observer.value(arrays), legal)
        return as_actions(chosen, len(masks), "the policy").astype(np.int64, copy=False)


class OpponentPool:
    """Some of the players that were added, one of which plays at a time: an agent itself.

    It is pickled with its members and its generator, if the members can be.

    Args:
        first: the member that it begins with and never loses: a name that
            :func:`bao_env.bots.get_agent` knows, an agent or a function.
        size: how many members it holds at most; then a new one takes the place of any but the
            first.
        newest: the probability that :meth:`draw` takes the newest; else every member has the same.
        seed: of what is drawn.
        ruleset: the rules that ``first`` plays by, if it is a name.

    Raises:
        ValueError: an argument is wrong.
    """

    def __init__(
        self,
        first: Opponent = "random",
        size: int = POOL_SIZE,
        newest: float = 0.5,
        seed: int = 0,
        ruleset: str | Ruleset = "zanzibar",
    ) -> None:
        if size < 2:
            raise ValueError(f"size={size}: expected at least 2, the first member and another")
        if not 0 <= newest <= 1:
            raise ValueError(f"newest={newest}: expected a probability from 0 to 1")
        self.members: list[Agent] = [get_agent(first, ruleset, seed)]
        """The oldest comes first, the newest last."""
        self.current = self.members[0]
        """Who plays."""
        self.size = size
        self.newest = newest
        self._rng = np.random.default_rng(seed)

    def add(self, member: Agent) -> None:
        """Add a member as the newest; in a full pool it takes the place of a random one."""
        if len(self.members) == self.size:
            del self.members[self._rng.integers(1, self.size)]
        self.members.append(member)

    def draw(self) -> None:
        """Draw who plays from now on."""
        newest = self._rng.random() < self.newest
        index = -1 if newest else self._rng.integers(len(self.members))
        self.current = self.members[index]

    def restore(self, saved: OpponentPool) -> None:
        """Become what another pool is; training goes on with it."""
        self.__dict__.update(saved.__dict__)

    def act(
        self, positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """See :meth:`bao_env.bots.Agent.act`."""
        return self.current.act(positions, masks)
