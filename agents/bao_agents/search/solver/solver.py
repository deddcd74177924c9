"""Prove who wins a position, and how.

A reported win or loss holds for perfect play by both sides. If the limits are too low for a proof,
the answer is "unknown". The search is :mod:`bao_agents.search.solver.proof_number`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bao_agents.search.limits import (
    LEAST_SECONDS,
    MAX_NODES,
    MAX_SECONDS,
    Limit,
    check_limit,
    check_threads,
    deadline,
)
from bao_agents.search.memory import check_memory, default_memory
from bao_agents.search.sharing import search_in_threads
from bao_agents.search.solver.proof_number import UNKNOWN, WIN
from bao_agents.search.solver.proof_search import TABLE_BITS, ProofSearch
from bao_agents.support.array_types import Int16Array
from bao_env.board import Board
from bao_env.compiled.exclusive import Exclusive
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.argument_checks import as_batch, check_array
from bao_env.engine.position import WORDS, Legal, PackedPositions, turn_of
from bao_env.engine.ruleset import Ruleset, get_ruleset

JUDGE_TABLE_BITS = 16
"""Size of each thread's table for a batch, which is cleared every few positions: 5 MiB."""
DEFAULT_NODES = 10_000_000
"""Default limit on the number of positions to visit, if there is no time limit."""
LOWEST = Limit(None, LEAST_SECONDS, 1)
HIGHEST = Limit(None, MAX_SECONDS, MAX_NODES)
"""The range of the solver's limits."""

_SPEED = 1e6
"""Positions per second that one thread visits, roughly."""
_NODES_A_SLOT = 8
"""Expected positions visited for each slot of a table; a slot holds four entries."""
SLOT_BYTES = 80
"""Bytes of a slot of a table."""
_PART = 16
"""Positions in a batch that a thread solves with one table."""


class Solution(NamedTuple):
    """The result of solving a position."""

    winner: int | None
    """The seat that wins with perfect play, SOUTH (0) or NORTH (1); None if unknown, or if the game
    was cut short."""
    plies: int | None
    """Plies within which the winner can win; None if the winner is unknown."""
    is_shortest: bool
    """Whether the loser can hold out this long."""
    line: tuple[int, ...]
    """Actions of a game in which the winner follows the proof and the loser resists as long as the
    proof allows. Empty if the winner is unknown or the game is over. If the limits do not suffice
    for a line of the shortest win, this is a line of the first proof and may be cut short."""
    nodes: int
    """Positions visited."""


def table_bits(limit: Limit, threads: int, memory: int | None) -> int:
    """Return the logarithm, base 2, of the number of slots of a table.

    Args:
        limit: the limit of the answer.
        threads: the number of threads.
        memory: the most bytes; None for a part of the machine's free memory.
    """
    visited = min(limit.nodes or math.inf, (limit.seconds or math.inf) * _SPEED * threads)
    bits = max(TABLE_BITS, math.ceil(math.log2(visited / _NODES_A_SLOT)))
    if memory is None and bits == TABLE_BITS:  # to ask the system takes a millisecond
        return bits
    max_bytes = default_memory() if memory is None else memory
    return min(bits, (max_bytes // SLOT_BYTES).bit_length() - 1)


class Judgement(NamedTuple):
    """The values of the actions of a batch of positions."""

    winning: Legal
    """uint64[B], the actions after which the player to move wins."""
    losing: Legal
    """uint64[B], the actions after which the player to move loses."""
    plies: Int16Array
    """int16[B, 64], plies within which the winner can win by the proof found, including the action
    itself; 0 if the winner is unknown."""


class Solver:
    """Prove who wins positions of one rule set.

    :meth:`solve` keeps its table from one position to the next, so it solves related positions
    faster. All threads search a position together. The winner does not depend on the table or the
    threads, but the number of nodes, the proof and its line may. :meth:`judge` searches each
    position on one thread, with a table that is cleared every 16 positions, so its results do not
    depend on the number of threads. Use a solver from one Python thread only.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        nodes: limit of positions to visit for an answer.
        seconds: time limit for an answer.
        threads: number of threads that search a position together or share a batch; None for all
            cores.
        memory: the most megabytes of the table. By default its size follows the limit, with 10
            bytes for each position to visit, from 20 MiB to a fourth of the free memory.

    Raises:
        TypeError, ValueError: a limit is not a number or is out of range.
    """

    def __init__(
        self,
        ruleset: str | Ruleset = "zanzibar",
        *,
        nodes: int | None = None,
        seconds: float | None = None,
        threads: int | None = 1,
        memory: int | None = None,
    ) -> None:
        if nodes is None and seconds is None:
            nodes = DEFAULT_NODES
        self.ruleset: Ruleset = get_ruleset(ruleset)
        limit = check_limit("solver", Limit(None, seconds, nodes), LOWEST, HIGHEST)
        _, self._seconds, self._node_limit, _ = limit
        self._exclusive = Exclusive("Solver")
        self._threads, self._memory = check_threads(threads), check_memory(memory)
        self._search = ProofSearch(self.ruleset, self._bits(self._node_limit), self._threads)
        self._search.get_ready()

    def judge(self, positions: PackedPositions, legal: Legal) -> Judgement:
        """Prove which actions win and which lose in each position of a batch.

        Each position has the solver's full limits.

        Args:
            positions: uint64[B, 6].
            legal: uint64[B], their legal actions; 0 where the game is over.
        """
        positions, legal = as_batch(positions, legal)
        size = len(legal)
        winning, losing = np.zeros(size, np.uint64), np.zeros(size, np.uint64)
        plies = np.zeros((size, NUM_ACTIONS), np.int16)

        searches = ProofSearch.for_threads(self.ruleset, JUDGE_TABLE_BITS, self._threads)

        def work(part: slice, thread: int) -> None:
            search = searches[thread]
            search.clear()
            for i in np.flatnonzero(legal[part]) + part.start:
                search.begin(self._node_limit, deadline(self._seconds))
                for child in search.children(positions[i]):
                    value = child.result or child.sign * search.prove(child.position)
                    if value != UNKNOWN:
                        (winning if value == WIN else losing)[i] |= np.uint64(1 << child.action)
                        plies[i, child.action] = 1 if child.result else 1 + search.plies

        with self._exclusive:
            self._run(size, _PART, work, self._node_limit, searches)
        return Judgement(winning, losing, plies)

    def solve(
        self, position: PackedPositions, *, shortest: bool = False, nodes: int | None = None
    ) -> Solution:
        """Prove who wins a position, and how.

        Args:
            position: uint64[6]; no capture has ended its game.
            shortest: also look for the shortest win, which takes many times longer. If the limits
                do not suffice, the result is the shortest win found.
            nodes: limit of positions to visit, instead of the solver's own.

        Raises:
            TypeError, ValueError: the position is not uint64[6], or the limit is out of range.
        """
        if nodes is not None:
            check_limit("solver", Limit(nodes=nodes), LOWEST, HIGHEST)
        check_array("position", position, np.uint64, (WORDS,))
        search, node_limit, solutions = self._search, nodes or self._node_limit, list[Solution]()

        def work(part: slice, thread: int) -> None:
            search.allow(self._bits(node_limit))
            search.begin(node_limit, deadline(self._seconds))
            solutions.append(self._solution(search, position, shortest))

        with self._exclusive:
            self._run(1, 1, work, node_limit, [search])
        return solutions[0]

    def _bits(self, nodes: int | None) -> int:
        """Return the logarithm of the number of slots of the table for a limit of nodes."""
        return table_bits(Limit(None, self._seconds, nodes), self._threads, self._memory)

    def _run(
        self,
        size: int,
        step: int,
        work: Callable[[slice, int], None],
        nodes: int | None,
        searches: list[ProofSearch],
    ) -> None:
        """Run ``work(part, thread)`` on a batch; see
        :func:`~bao_agents.search.sharing.search_in_threads`."""

        def expire() -> None:
            for search in searches:
                search.expire()

        seconds = min((nodes or math.inf) / _SPEED, self._seconds or math.inf)
        search_in_threads(size, step, work, len(searches), expire, seconds)

    def _solution(self, search: ProofSearch, position: PackedPositions, shortest: bool) -> Solution:
        """Return the solution that a search finds within its limits; see :meth:`solve`."""
        return solution_of(search, position, search.prove(position), shortest)


def solution_of(
    search: ProofSearch, position: PackedPositions, value: int, shortest: bool = False
) -> Solution:
    """Return the solution of a position that a search has just proven, or not.

    Args:
        search: the search.
        position: uint64[6], the position.
        value: what it has proven: WIN, LOSS or UNKNOWN.
        shortest: also look for the shortest win, within the limits of the search.
    """
    if value == UNKNOWN:
        return Solution(None, None, False, (), search.nodes)
    distance, line = search.distance(value), search.line(position, value, None)
    if shortest:
        distance = search.bisect(position, value, distance)
        if distance.is_shortest:
            quickest = search.line(position, value, distance.plies)
            line = quickest if len(quickest) == distance.plies else line
    mover = turn_of(position)
    winner = mover if value == WIN else 1 - mover
    return Solution(winner, distance.plies, distance.is_shortest, line, search.nodes)


def solve(
    board: Board | str,
    *,
    ruleset: str | Ruleset = "zanzibar",
    seconds: float | None = None,
    nodes: int | None = None,
    shortest: bool = False,
    threads: int | None = None,
    memory: int | None = None,
) -> Solution:
    """Prove who wins a position, and how.

    >>> from bao_agents import solve
    >>> from bao_env import Board
    >>> solution = solve(Board("kujifunza"))
    >>> solution.winner                                        # 0: South, who begins
    0

    Args:
        board: a board, or a position text.
        ruleset: rules of a position text; a board has its own.
        seconds: time limit.
        nodes: limit of positions to visit; ten million if there is also no time limit.
        shortest: also find the shortest win, which takes many times longer.
        threads, memory: see :class:`Solver`; all cores by default.

    Raises:
        ValueError: the string is not a position, the rule set is unknown, or a limit is out of
            range.
    """
    if isinstance(board, str):
        board = Board.from_text(board, ruleset)
    outcome = board.outcome()
    if outcome is not None:
        is_won = outcome.winner is not None
        return Solution(outcome.winner, 0 if is_won else None, is_won, (), 0)
    solver = Solver(board.ruleset, nodes=nodes, seconds=seconds, threads=threads, memory=memory)
    return solver.solve(board.packed, shortest=shortest)
