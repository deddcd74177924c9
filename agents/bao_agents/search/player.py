"""Play by searching: batches, threads, limits, masks and Ctrl-C, the same for every search."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np

from bao_agents.search.limits import SHORT, Limit, check_limit, check_threads, deadline, share
from bao_agents.support.array_types import Int64Array
from bao_agents.support.remade import Remade
from bao_env.compiled.exclusive import Exclusive
from bao_env.engine.array_checks import as_batch, check_array
from bao_env.engine.bits import FULL, ONE
from bao_env.engine.position import Actions, Legal, PackedPositions, packed_opening
from bao_env.engine.ruleset import Ruleset, get_ruleset


class Question(NamedTuple):
    """What a search is asked: B positions, each with a choice."""

    positions: PackedPositions
    """uint64[B, 6]."""
    legal: Legal
    """uint64[B], the actions to choose from."""
    limit: Limit
    """What may be used for each position."""
    places: Int64Array
    """int64[B], where their games are in memory (:meth:`SearchPlayer._remember`), or int64[0]."""

    def part(self, part: slice) -> Question:
        """Return some of the positions."""
        positions, legal, limit, places = self
        return Question(positions[part], legal[part], limit, places[part])


NO_PLACES = np.zeros(0, np.int64)
"""The places of positions that are asked alone."""


class SearchPlayer(Remade):
    """Choose an action by a search of each position that has a choice.

    A subclass is one search. It names its limits, makes the memory of its threads in
    :meth:`_prepare`, and searches in :meth:`_search`. It plays under every rule set, and only
    actions of the mask, which may leave out legal ones.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        limit: what it may use for each position.
        threads: number of threads that share a batch; each position is searched on one. None for
            all cores.

    Raises:
        TypeError, ValueError: see :func:`~bao_agents.search.limits.check_limit`.
    """

    NAME: ClassVar[str]
    """What messages call the search."""
    LOWEST: ClassVar[Limit]
    HIGHEST: ClassVar[Limit]
    """The range of its limits; None for a limit that it does not have."""

    seeded = False
    """Its play does not depend on a seed; see :class:`bao_env.Agent`."""
    remembers = False
    """Whether it remembers games; see :class:`bao_env.Agent`."""

    def __init__(self, ruleset: str | Ruleset, limit: Limit, *, threads: int | None = None) -> None:
        self.ruleset = get_ruleset(ruleset)
        self.limit = self._checked(limit)
        """What it may use for each position, unless a call says otherwise."""
        self._deadlines = [np.zeros(1, np.int64) for _ in range(check_threads(threads))]
        """The deadline of each thread, int64[1]; see :mod:`bao_agents.search.limits`."""
        self._exclusive = Exclusive("player")
        self._is_ready = False
        self._prepare()
        self._get_ready(self.limit)

    @abstractmethod
    def _prepare(self) -> None:
        """Make the memory of the threads, before anything is compiled."""

    @abstractmethod
    def _search(self, question: Question, thread: int) -> Actions:
        """Return the best actions, int64[B].

        Args:
            question: the positions; a single one if there is a time limit.
            thread: the thread, whose memory it uses and whose deadline has been set.
        """

    @abstractmethod
    def _expected_seconds(self, limit: Limit) -> float:
        """Return roughly how long a search takes at most."""

    def _part(self, size: int) -> int:
        """Return how many of ``size`` positions without a time limit a thread takes at a time."""
        del size
        return 1

    def _remember(self, games: Int64Array) -> Int64Array:
        """Make room for the games of a batch; return their places in memory, int64[B].

        A search that remembers overrides this. int64[0]: these games are not remembered.
        """
        del games
        return NO_PLACES

    def act(
        self,
        positions: PackedPositions,
        legal: Legal,
        *,
        limit: Limit | None = None,
        games: Int64Array | None = None,
    ) -> Actions:
        """Choose actions; see :meth:`bao_env.bots.Agent.act`. ``legal`` may leave out some.

        Args:
            positions, legal: see there.
            limit: what it may use for each position, instead of the player's limit.
            games: int64[B], the numbers of their games, all different; see
                :class:`bao_env.bots.RememberingAgent`.

        Raises:
            TypeError, ValueError: an array or the limit is wrong; the message says how.
        """
        positions, legal = as_batch(positions, legal)
        if games is not None:
            check_array("games", games, np.int64, (len(legal),))
        choices = has_choice(legal)
        with self._exclusive:
            limit = self._limit(limit)
            if len(choices) == len(legal):
                return self._choose(positions, legal, limit, games)
            actions = only_actions(legal)
            games = None if games is None else games[choices]
            actions[choices] = self._choose(positions[choices], legal[choices], limit, games)
        return actions

    def _choose(
        self, positions: PackedPositions, legal: Legal, limit: Limit, games: Int64Array | None
    ) -> Actions:
        """Search positions that all have a choice; see :meth:`act`."""
        chosen = np.empty(len(legal), np.int64)
        places = NO_PLACES if games is None else self._remember(games)
        question = Question(positions, legal, limit, places)

        def search(part: slice, thread: int) -> None:
            chosen[part] = self._search(question.part(part), thread)

        self._share(len(legal), limit, search)
        return chosen

    def _checked(self, limit: Limit) -> Limit:
        return check_limit(self.NAME, limit, self.LOWEST, self.HIGHEST)

    def _limit(self, limit: Limit | None) -> Limit:
        """Return the limit of a call, and get ready for it."""
        if limit is None:
            return self.limit
        limit = self._checked(limit)
        self._get_ready(limit)
        return limit

    def _get_ready(self, limit: Limit) -> None:
        """Compile the search before a clock runs and before Ctrl-C may come, by a very short one.

        Otherwise its first call compiles it.
        """
        if self._is_ready or (limit.seconds is None and self._expected_seconds(limit) <= SHORT):
            return
        self._deadlines[0][0] = 0
        opening = packed_opening(self.ruleset)[None]
        self._search(Question(opening, np.array([FULL]), limit, NO_PLACES), 0)
        self._is_ready = True

    def _share(self, size: int, limit: Limit, search: Callable[[slice, int], None]) -> None:
        """Run ``search(part, thread)`` on a batch; see :func:`~bao_agents.search.limits.share`."""

        def work(part: slice, thread: int) -> None:
            self._deadlines[thread][0] = deadline(limit.seconds)
            search(part, thread)

        step = self._part(size) if limit.seconds is None else 1
        share(size, step, work, self._deadlines, self._expected_seconds(limit))


def has_choice(legal: Legal) -> Int64Array:
    """Return the indices int64[N] of the masks, uint64[B], with two actions or more."""
    return (legal & (legal - ONE)).nonzero()[0]


def only_actions(legal: Legal) -> Actions:
    """Return the action of each mask, uint64[B], of one action, int64[B]; 0 for an empty mask."""
    return np.array([max(bits.bit_length() - 1, 0) for bits in legal.tolist()], np.int64)
