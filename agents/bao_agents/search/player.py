"""Play by searching: handle batches, threads, limits, masks and Ctrl-C for every search."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np

from bao_agents.search.limits import Limit, check_limit, check_threads, deadline
from bao_agents.search.memory import check_memory
from bao_agents.search.sharing import SHORT, search_in_threads
from bao_agents.support.array_types import Int64Array, Uint64Array
from bao_agents.support.remade import Remade
from bao_env.compiled.exclusive import Exclusive
from bao_env.engine.argument_checks import as_batch
from bao_env.engine.bits import FULL, ONE
from bao_env.engine.position import Actions, Legal, PackedPositions, packed_opening
from bao_env.engine.ruleset import Ruleset, get_ruleset

WORTH_SHARING = 0.01
"""Threads share a search only if it may take this many seconds: starting them takes time."""
MAX_GAME = 2**63 - 1
"""The highest number of a game."""


class GameMemory(NamedTuple):
    """A player's tables, and which of them belong to the games of B positions."""

    tables: Uint64Array
    """uint64[rows, words], a table for each game."""
    epochs: Uint64Array
    """uint64[rows], the epoch of each table."""
    rows: Int64Array
    """int64[B], the rows of the positions' games; int64[0] if they belong to none."""


NO_MEMORY = GameMemory(np.zeros((0, 0), np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.int64))
"""The memory of positions that belong to no game."""


class Question(NamedTuple):
    """The input of a search: B positions, each with a choice of actions."""

    positions: PackedPositions
    """uint64[B, 6]."""
    legal: Legal
    """uint64[B], the actions to choose from."""
    limit: Limit
    """The limit for each position."""
    memory: GameMemory = NO_MEMORY
    """The memory of their games (:meth:`SearchPlayer._remember`)."""

    def part(self, part: slice) -> Question:
        """Return some of the positions."""
        positions, legal, limit, memory = self
        memory = memory._replace(rows=memory.rows[part])
        return Question(positions[part], legal[part], limit, memory)


class SearchPlayer(Remade):
    """Choose actions by searching each position that has a choice of actions.

    A subclass is one kind of search. It names its limits, allocates the memory of its threads in
    :meth:`_prepare`, and searches in :meth:`_search`. It plays under every rule set. It plays only
    actions of the mask, which may leave out legal ones.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        limit: the limit for each position.
        threads: number of threads; None for one per core. They share a batch, one thread for each
            position. They may also search a single position together (:meth:`act`).
        memory: the most megabytes that the tables may take. By default the size depends on the
            limit, up to a part of the free memory of the machine.

    Raises:
        TypeError, ValueError: see :func:`~bao_agents.search.limits.check_limit`.
    """

    NAME: ClassVar[str]
    """The name of the search in messages."""
    LOWEST: ClassVar[Limit]
    HIGHEST: ClassVar[Limit]
    """The range of the limits; None for a limit that the search lacks."""

    seeded = False
    """Its play does not depend on a seed; see :class:`bao_env.Agent`."""
    remembers = False
    """Whether the player remembers games by their numbers."""
    searches_together = True
    """Whether :meth:`act` takes ``together``."""
    PART: ClassVar[int] = 1
    """Positions that a thread takes at a time, unless there is a time limit."""

    def __init__(
        self,
        ruleset: str | Ruleset,
        limit: Limit,
        *,
        threads: int | None = None,
        memory: int | None = None,
    ) -> None:
        self.ruleset: Ruleset = get_ruleset(ruleset)
        self._memory = check_memory(memory)
        self._shares_nodes = threads is not None
        """Whether threads may search a position together even if only nodes are limited. The choice
        then varies from call to call, so this needs an explicit number of threads."""
        self.limit: Limit = self._checked(limit)
        """The limit for each position, unless a call gives its own."""
        self._deadlines = [np.zeros(1, np.int64) for _ in range(check_threads(threads))]
        """The deadline of each thread, int64[1]; see :mod:`bao_agents.search.limits`."""
        self._exclusive = Exclusive("player")
        self._is_ready = False
        self._prepare()
        self._get_ready(self.limit)

    @abstractmethod
    def _prepare(self) -> None:
        """Allocate the memory of the threads, before anything is compiled."""

    @abstractmethod
    def _search(self, question: Question, thread: int) -> Int64Array:
        """Return the best actions and, if the search has them, their values: int64[B, 2].

        Args:
            question: the positions; a single one if there is a time limit.
            thread: the index of the thread whose memory the search uses; its deadline has been
                set.
        """

    @abstractmethod
    def _expected_seconds(self, limit: Limit) -> float:
        """Return roughly how many seconds a search takes at most."""

    def _remember(self, games: Int64Array) -> GameMemory:
        """Make room for the games of a batch, int64[B], and return their memory.

        A search that remembers games overrides this.
        """
        del games
        return NO_MEMORY

    def act(
        self,
        positions: PackedPositions,
        legal: Legal,
        *,
        limit: Limit | None = None,
        games: Int64Array | None = None,
        together: bool = False,
    ) -> Actions:
        """Choose actions; ``legal`` may leave out some legal ones.

        Args:
            positions, legal: see :meth:`bao_env.bots.Agent.act`.
            limit: the limit for each position, instead of the player's own.
            games: integers [B] from 0 to 2^63 - 1, the numbers of the positions' games, all
                different. A new number starts a new game. None: each position is searched without
                regard to a game. Ignored unless :attr:`remembers`.
            together: whether all threads may search the only position of a batch together. They do
                so if there is a time limit. With a node limit, they do so only if the player was
                made with a number of threads.

        Raises:
            TypeError, ValueError: an array or the limit is wrong; the message says how.
        """
        positions, legal = as_batch(positions, legal)
        if games is not None:
            games = as_games(games, len(legal))
        choices = has_choice(legal)
        with self._exclusive:
            limit = self._limit(limit)
            if len(choices) == len(legal):
                return self._choose(positions, legal, limit, games, together)
            actions = only_actions(legal)
            positions, legal = positions[choices], legal[choices]
            games = None if games is None else games[choices]
            actions[choices] = self._choose(positions, legal, limit, games, together)
        return actions

    def _choose(
        self,
        positions: PackedPositions,
        legal: Legal,
        limit: Limit,
        games: Int64Array | None,
        together: bool,
    ) -> Actions:
        """Choose actions in positions that all have a choice; see :meth:`act`."""
        memory = NO_MEMORY if games is None else self._remember(games)
        question = Question(positions, legal, limit, memory)
        if together and len(legal) == 1:
            return np.array([self._choose_alone(question, deadline(limit.seconds))])
        return self._ask(question, self._search)[:, 0].copy()

    def _choose_alone(self, question: Question, end: int) -> int:
        """Choose an action in the only position of a batch.

        A search that can use all threads for one position overrides this.

        Args:
            question: the position.
            end: the deadline.
        """
        del end
        return int(self._ask(question, self._search)[0, 0])

    def _threads_alone(self, limit: Limit) -> int:
        """Return how many threads search the only position of a batch."""
        is_shared = limit.seconds is not None or (limit.nodes is not None and self._shares_nodes)
        is_long = self._expected_seconds(limit) >= WORTH_SHARING
        return len(self._deadlines) if is_shared and is_long else 1

    def _ask(self, question: Question, search: Callable[[Question, int], Int64Array]) -> Int64Array:
        """Return the results of a search, int64[B, 2]; the threads share the positions.

        Args:
            question: the positions.
            search: :meth:`_search`, or another function with the same arguments.
        """
        results = np.empty((len(question.legal), 2), np.int64)
        limit = question.limit

        def work(part: slice, thread: int) -> None:
            self._deadlines[thread][0] = deadline(limit.seconds)
            results[part] = search(question.part(part), thread)

        search_in_threads(
            size=len(results),
            step=self.PART if limit.seconds is None else 1,
            work=work,
            threads=len(self._deadlines),
            expire=self._expire,
            seconds=self._expected_seconds(limit),
        )
        return results

    def _expire(self) -> None:
        """End the running searches; after an interrupt this is called repeatedly."""
        for own_deadline in self._deadlines:
            own_deadline[0] = 0

    def _checked(self, limit: Limit) -> Limit:
        return check_limit(self.NAME, limit, self.LOWEST, self.HIGHEST)

    def _limit(self, limit: Limit | None) -> Limit:
        """Return the limit of a call, and compile the search if needed."""
        if limit is None:
            return self.limit
        limit = self._checked(limit)
        self._get_ready(limit)
        return limit

    def _get_ready(self, limit: Limit) -> None:
        """Compile the search by running a very short one, before a clock runs or Ctrl-C may come.

        Without a time limit, a short search is compiled by its first call instead.
        """
        if self._is_ready or (limit.seconds is None and self._expected_seconds(limit) <= SHORT):
            return
        self._deadlines[0][0] = 0
        opening = packed_opening(self.ruleset)[None]
        self._search(Question(opening, np.array([FULL]), limit), 0)
        self._is_ready = True


def as_games(games: object, size: int) -> Int64Array:
    """Validate the numbers of the games of ``size`` positions, and return them as int64[size].

    Raises:
        TypeError: the numbers are not integers.
        ValueError: there are not ``size`` numbers, one is not from 0 to 2^63 - 1, or two are equal.
    """
    numbers = np.asarray(games)
    if numbers.dtype.kind not in "iu":
        raise TypeError(f"games={games!r:.80}: expected integers")
    if numbers.shape != (size,):
        raise ValueError(f"games: expected {size} integers, not {list(numbers.shape)}")
    if numbers.size and (numbers.min() < 0 or numbers.max() > MAX_GAME):
        raise ValueError(f"games: expected integers from 0 to {MAX_GAME}")
    if len(set(numbers.tolist())) < size:
        raise ValueError("games: expected a different number for each position")
    return np.ascontiguousarray(numbers, np.int64)


def has_choice(legal: Legal) -> Int64Array:
    """Return the indices, int64[N], of the masks, uint64[B], that have two actions or more."""
    return (legal & (legal - ONE)).nonzero()[0]


def only_actions(legal: Legal) -> Actions:
    """Return the only action of each mask uint64[B], as int64[B]; 0 for an empty mask."""
    return np.array([max(bits.bit_length() - 1, 0) for bits in legal.tolist()], np.int64)
