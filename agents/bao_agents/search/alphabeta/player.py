"""Search with alpha-beta: iterative deepening, principal variations, a transposition table.

Names and methods come from chess programming (https://www.chessprogramming.org). Values are
for the player to move: evaluations between minus and plus
:data:`bao_agents.evaluators.tables.LIMIT`, and ``WIN_VALUE - n`` for a win within n plies. Each
action is a ply. If the same player acts again (to choose the side of a capture, Dutch I.a), the
value keeps its sign. The search never evaluates such a position. It plays on, which costs no depth.

A *full* search to depth D returns the value of plain minimax to that depth: it never prunes on a
guess. A *guided* search is selective: it searches actions that a network or the move order ranks
low less deeply, and forced actions more deeply (:mod:`bao_agents.search.alphabeta.reductions`).

Without a game number (:meth:`AlphaBetaAgent.act`), each position is searched with an empty
transposition table. In a game with a number, a search starts with the entries of the game's earlier
searches, which make room for new ones. So a choice depends on the position, or on the game so far.
It does not depend on the rest of the batch or on the number of threads, as long as there are no
more games than tables (:class:`~.game_tables.GameTables`). If one agent plays both seats, both use
the same table, because its entries are facts about positions.

A search uses all of a time limit, unless the result is proven. With a clock for the whole game
(:class:`~bao_agents.search.limits.Clock`) a search ends sooner if another iteration is unlikely to
change the choice: most of the move's time is used, or several iterations have chosen the same
action.

This module calls the search itself, :func:`bao_agents.search.alphabeta.search.search`, for depths
1, 2, 3 and so on.
"""

from __future__ import annotations

import math
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from bao_agents.evaluators.nnue import NO_NNUE, Evaluator
from bao_agents.evaluators.tables import SCALE, load_tables
from bao_agents.search.alphabeta.game_tables import GameTables
from bao_agents.search.alphabeta.ordering import forget_cutoffs
from bao_agents.search.alphabeta.policy_order import PolicyGuide, make_guides
from bao_agents.search.alphabeta.reductions import STANDARD, Reductions
from bao_agents.search.alphabeta.search import search
from bao_agents.search.alphabeta.transposition import (
    NO_ACTION,
    PROVEN,
    next_age,
    next_epoch,
    table_words,
)
from bao_agents.search.alphabeta.workspace import MAX_DEPTH, Workspace, make_workspaces
from bao_agents.search.limits import (
    LEAST_SECONDS,
    MAX_NODES,
    MAX_SECONDS,
    NEVER,
    Limit,
    deadline,
    nanoseconds,
)
from bao_agents.search.memory import default_memory
from bao_agents.search.player import GameMemory, Question, SearchPlayer
from bao_agents.search.sharing import search_in_threads
from bao_agents.support.array_types import Float64Array, Int64Array, Uint64Array
from bao_agents.support.opinion import Opinion
from bao_env.board import Board
from bao_env.compiled.compile import jit, jit_merged
from bao_env.engine.argument_checks import as_batch, check_array
from bao_env.engine.bits import FULL, ONE, ZERO, U
from bao_env.engine.kernel import legal_of
from bao_env.engine.position import (
    WORDS,
    Index,
    Legal,
    PackedPositions,
    load_rows,
    store_rows_at,
)
from bao_env.engine.ruleset import KernelRules, Ruleset, rules_of

if TYPE_CHECKING:  # torch is slow to import, and the search does not need it
    from bao_agents.nets.checkpoint import Checkpoint

_SPEED = 8e6
"""Nodes per second that a search visits on a fast core, roughly."""
_BRANCHING = 3.0
"""The factor by which a full search grows with each ply, roughly."""
_LAST_START = 0.6
"""With a clock, the part of a move's time after which no iteration begins."""
_SETTLED = 0.1
"""Each further iteration with the same best action lowers ``_LAST_START`` by this much."""
_COUNTED = 0.01
"""Only iterations that end after this part of the move's time lower ``_LAST_START``."""
_POSITION_BYTES = 1 << 30
"""The most bytes of the table for a single position, 1 GiB, unless the player has its own
limit."""
_LEAST_NODES = 1000
"""The fewest nodes to search for an action in an analysis."""


class SearchResult(NamedTuple):
    """The result of searching one position."""

    action: int
    """The best action; -1 if there is none."""
    value: int
    """The value for the player to move, on the scale that the module's docstring describes."""
    depth: int
    """The depth of the last finished iteration."""
    nodes: int
    """Positions visited by all threads. In a guided search the network's inputs also count."""
    line: tuple[int, ...]
    """Best play for both sides, as actions, beginning with ``action``."""


@jit_merged
def _deepen(
    rules: KernelRules,
    evaluator: Evaluator,
    guide: PolicyGuide,
    table: Uint64Array,
    marks: Uint64Array,
    work: np.record,
    packed: PackedPositions,
    actions: U,
    depth: Index,
) -> None:
    """Search a position to depths 1, 2, ... ``depth``, or until stopped.

    Args:
        rules, evaluator, guide, table, marks: see
            :func:`bao_agents.search.alphabeta.search.search`.
        work: a record of :data:`~.workspace.MEMORY`, whose epoch is set. The depth, nodes, value
            and best line are written to it.
        packed: uint64[6].
        actions: the bits of the actions to choose from.
        depth: the last depth.
    """
    start = nanoseconds()
    work.nodes = 0
    work.look_at = 0
    work.compare_at = 0
    work.stopped = 0
    work.value = 0
    work.actions = actions
    work.left_out = legal_of(rules, packed) & ~actions
    work.lines[0, 0] = NO_ACTION
    forget_cutoffs(work)
    store_rows_at(work.stack, 0, load_rows(packed))
    work.finished = 0
    action, same_iterations = np.int64(NO_ACTION), 0
    for iteration in range(1, depth + 1):
        value = search(rules, evaluator, guide, table, marks, work, iteration)
        if work.stopped != 0:
            break
        work.finished = iteration
        work.value = value
        if value > PROVEN or value < -PROVEN:
            break  # a proven result does not change
        if work.has_clock != 0 and work.deadline != NEVER:  # is another iteration worth its time?
            used_share = (nanoseconds() - start) / (work.deadline - start)
            if work.lines[0, 0] != action:
                action, same_iterations = np.int64(work.lines[0, 0]), 0
            elif used_share >= _COUNTED:
                same_iterations += 1
            if used_share >= _LAST_START - _SETTLED * same_iterations:
                break


@jit
def _search_each(
    kernel_array: npt.NDArray[np.uint64],
    evaluator: Evaluator,
    guide: PolicyGuide,
    workspace: Workspace,
    games: tuple[npt.NDArray[Any], ...],
    positions: PackedPositions,
    legal: Legal,
    depth: int,
    nodes: int,
    threads: int,
    results: Int64Array,
) -> None:
    """Search each position of a batch that has legal actions.

    Args:
        kernel_array: the rules as :attr:`Ruleset.kernel_array`, which is faster to pass.
        evaluator, guide: see :func:`bao_agents.search.alphabeta.search.search`.
        workspace: the thread's :class:`~.workspace.Workspace`.
        games: the positions' :class:`~bao_agents.search.player.GameMemory`.
        positions: uint64[B, 6].
        legal: uint64[B], the actions to choose from.
        depth: the greatest depth.
        nodes: the most nodes.
        threads: the number of threads that search the only position together, in an epoch that the
            caller has set; 0 for a batch.
        results: int64[B, 2], filled with the best actions and the values; 0 for a position without
            legal actions.
    """
    rules = rules_of(kernel_array)
    tables, epochs, rows = games
    work = workspace.memory[0]
    work.node_limit = nodes
    work.threads = threads
    for g in range(positions.shape[0]):
        results[g] = 0
        if legal[g] == ZERO:
            continue
        work.searches += ONE
        if rows.shape[0] != 0 and rows[g] < tables.shape[0]:
            table = tables[rows[g]]
            if threads == 0:
                epochs[rows[g]] = next_age(epochs[rows[g]])
            work.epoch = epochs[rows[g]]
        else:
            work.last_epoch = next_epoch(workspace.table, work.last_epoch)
            table, work.epoch = workspace.table, work.last_epoch
        marks = workspace.marks
        _deepen(rules, evaluator, guide, table, marks, work, positions[g], legal[g], depth)
        results[g, 0] = work.lines[0, 0]
        results[g, 1] = work.value


def to_unit_scores(values: Int64Array) -> Float64Array:
    """Map values of alpha-beta to the range -1 to 1; proven results are exactly -1 or 1."""
    return np.tanh(values / (2 * SCALE))


def _expected_nodes(limit: Limit, threads: int = 1) -> float:
    """Estimate the most nodes that a search can visit."""
    plies, seconds, nodes, _ = limit
    return min(
        math.inf if plies is None else _BRANCHING**plies,
        math.inf if seconds is None else seconds * _SPEED * threads,
        math.inf if nodes is None else nodes,
    )


class AlphaBetaAgent(SearchPlayer):
    """Play the best action of an alpha-beta search.

    The agent remembers games by their numbers, as many as fit in 256 MiB
    (:class:`~.game_tables.GameTables`).

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        limit: the limit for each position. A node limit may be exceeded, because at least one ply
            is always searched.
        guide: None for a full search. Otherwise a checkpoint, whose network guides the search
            (:mod:`bao_agents.search.alphabeta.reductions`). If the checkpoint has an NNUE, it
            evaluates positions instead of the fitted tables (:mod:`bao_agents.evaluators.tables`).
        reductions: the reductions of a guided search.
        threads, memory: see :class:`SearchPlayer`. Threads that search a position together share
            one table, so the choice may vary from call to call.

    Raises:
        TypeError, ValueError: the limit is not a valid one, or is out of range.
    """

    NAME: ClassVar[str] = "alphabeta"
    LOWEST = Limit(1, LEAST_SECONDS, 1)
    HIGHEST = Limit(MAX_DEPTH, MAX_SECONDS, MAX_NODES)
    PART: ClassVar[int] = 16
    remembers = True

    def __init__(
        self,
        ruleset: str | Ruleset,
        limit: Limit,
        *,
        guide: Checkpoint | None = None,
        reductions: Reductions = STANDARD,
        threads: int | None = None,
        memory: int | None = None,
    ) -> None:
        self._guide, self._reductions = guide, reductions
        super().__init__(ruleset, limit, threads=threads, memory=memory)

    def _prepare(self) -> None:
        nodes, count = _expected_nodes(self.limit), len(self._deadlines)
        self._workspaces = make_workspaces(count, table_words(nodes), self._reductions)
        self._deadlines = [workspace.memory["deadline"] for workspace in self._workspaces]
        self._games = GameTables(nodes, self._memory)
        self._memory_alone: GameMemory | None = None
        """The table for single positions that belong to no game."""
        guide = self._guide
        nnue = guide.nnue if guide else None
        evaluator = Evaluator(load_tables(self.ruleset), nnue or NO_NNUE)
        guides = make_guides(guide.weights if guide else None, count)
        self._threads = [
            (self.ruleset.kernel_array, evaluator, guide, workspace)
            for guide, workspace in zip(guides, self._workspaces, strict=True)
        ]

    def _expected_seconds(self, limit: Limit) -> float:
        return _expected_nodes(limit) / _SPEED

    @property
    def most_games(self) -> int:
        """The most games that the agent remembers at once."""
        return self._games.most

    def _remember(self, games: Int64Array) -> GameMemory:
        return self._games.find(games)

    def _search(self, question: Question, thread: int) -> Int64Array:
        # A subclass may choose actions in another way here; values and opinions are of _find.
        return self._find(question, thread)

    def _find(self, question: Question, thread: int, threads: int = 0) -> Int64Array:
        """Return the best actions and values, int64[B, 2]; 0 for a position without legal actions.

        Args:
            question: the positions.
            thread: the thread.
            threads: the number of threads that search the only position together; 0 for a batch.
        """
        positions, legal, limit, games = question
        results = np.empty((len(legal), 2), np.int64)
        self._workspaces[thread].memory["has_clock"] = limit.clock is not None
        _search_each(
            *self._threads[thread],
            tuple(games),
            positions,
            legal,
            limit.plies or MAX_DEPTH,
            limit.nodes or MAX_NODES,
            threads,
            results,
        )
        return results

    def _choose_alone(self, question: Question, end: int) -> int:
        return max(0, self._search_alone(question, end).action)

    def _search_alone(self, question: Question, end: int) -> SearchResult:
        """Search one position until ``end``, with as many threads as its limit justifies.

        The first thread that reaches the limit, a proof or the greatest depth ends the others. The
        result comes from a thread with a proven win or, without one, from the thread that searched
        deepest. Threads that end within the same iteration have tried different actions, so among
        them the highest value counts.
        """
        limit = question.limit
        threads = self._threads_alone(limit)
        tables, epochs, rows = question.memory
        if len(rows) == 0:
            tables, epochs, rows = games = self._memory_alone_for(_expected_nodes(limit, threads))
            question = question._replace(memory=games)
            epochs[0] = next_epoch(tables[0], epochs[0])
        else:
            epochs[rows[0]] = next_age(epochs[rows[0]])
        if limit.nodes is not None:
            question = question._replace(limit=limit._replace(nodes=-(-limit.nodes // threads)))
        for own_deadline in self._deadlines:
            own_deadline[0] = end
        if threads > 1:
            self._workspaces[0].marks.fill(0)
        ended: list[int] = []

        def work(part: slice, thread: int) -> None:
            if ended:
                return
            try:
                self._find(question, thread, threads)
                ended.append(thread)
            finally:
                self._expire()

        seconds = self._expected_seconds(limit)
        search_in_threads(
            size=threads,  # each thread searches the position once
            step=1,
            work=work,
            threads=threads,
            expire=self._expire,
            seconds=seconds / threads,
        )
        results = [self._result(thread) for thread in ended]
        best = max(results, key=lambda result: (result.value > PROVEN, result.depth, result.value))
        return best._replace(nodes=sum(result.nodes for result in results))

    def _result(self, thread: int) -> SearchResult:
        """Return the result of the last search of a thread."""
        memory = self._workspaces[thread].memory[0]
        line = tuple(takewhile(lambda action: action != NO_ACTION, memory["lines"][0].tolist()))
        return SearchResult(
            action=line[0] if line else -1,
            value=int(memory["value"]),
            depth=int(memory["finished"]),
            nodes=int(memory["nodes"]),
            line=line,
        )

    def _memory_alone_for(self, nodes: float) -> GameMemory:
        """Return the memory for searching a single position with about ``nodes`` nodes."""
        least = self._workspaces[0].table.size
        words = max(table_words(nodes, self._memory or _POSITION_BYTES), least)
        if self._memory is None and words > least:  # to ask the system takes a millisecond
            words = max(table_words(nodes, min(_POSITION_BYTES, default_memory())), least)
        if self._memory_alone is None or self._memory_alone.tables.size < words:
            self._memory_alone = None  # free the old memory before allocating new
            table, epoch = np.zeros((1, words), np.uint64), np.zeros(1, np.uint64)
            self._memory_alone = GameMemory(table, epoch, np.zeros(1, np.int64))
        return self._memory_alone

    def actions_and_values(
        self, positions: PackedPositions, legal: Legal
    ) -> tuple[Int64Array, Int64Array]:
        """Return actions and values int64[B] of positions uint64[B, 6]; 0 if a game is over.

        This gives the results of :meth:`act` and :meth:`values` from a single search.
        """
        question = Question(*as_batch(positions, legal), self.limit)
        with self._exclusive:
            actions, values = self._ask(question, self._find).T.copy()
        return actions, values

    def values(self, positions: PackedPositions, legal: Legal) -> Int64Array:
        """Return the values int64[B] of positions uint64[B, 6], for their movers."""
        return self.actions_and_values(positions, legal)[1]

    def search(self, position: PackedPositions, limit: Limit | None = None) -> SearchResult:
        """Search one position, uint64[6], and return the full result.

        Raises:
            TypeError, ValueError: see :func:`bao_env.engine.argument_checks.check_array` and
                :class:`AlphaBetaAgent`.
        """
        check_array("position", position, np.uint64, (WORDS,))
        with self._exclusive:
            limit = self._limit(limit)
            question = Question(position[None], np.array([FULL]), limit)
            return self._search_alone(question, deadline(limit.seconds))

    def analyse(self, board: Board, limit: Limit | None = None) -> list[Opinion]:
        """Return an opinion of each legal action of a board, best first.

        Each action gets an equal part of the limit, and is searched one ply less deeply. One thread
        searches each action, so with a node limit the opinions do not depend on the threads.

        Args:
            board: a game that is not over.
            limit: the limit for all actions together, instead of the player's own.
        """
        actions, opinions = board.legal_actions, list[Opinion]()
        boards: list[Board] = []
        for action in actions:
            after = board.copy()
            after.push(action)
            outcome = after.outcome()
            if outcome is None:
                boards.append(after)
            else:
                opinions.append(Opinion(action, 1.0 if outcome.winner == board.turn else -1.0))
        with self._exclusive:
            plies, seconds, nodes, _ = self._limit(limit)
            at_once = min(len(self._deadlines), max(1, len(boards)))
            part_limit = Limit(
                plies and max(1, plies - 1),
                seconds and max(LEAST_SECONDS, seconds * at_once / len(actions)),
                nodes and max(_LEAST_NODES, nodes // len(actions)),
            )
            results = self._search_all([after.packed for after in boards], part_limit)
        scores = to_unit_scores(np.array([result.value for result in results], np.int64))
        for after, result, score in zip(boards, results, scores.tolist(), strict=True):
            sign = 1 if after.turn == board.turn else -1
            opinions.append(Opinion(after.move_stack[-1], sign * score, line=result.line))
        opinions.sort(key=lambda opinion: actions.index(opinion.action))
        return sorted(opinions, key=lambda opinion: opinion.score, reverse=True)

    def _search_all(self, positions: list[PackedPositions], limit: Limit) -> list[SearchResult]:
        """Return the full results of searching positions; the threads share the positions."""
        results = [SearchResult(-1, 0, 0, 0, ())] * len(positions)

        def work(part: slice, thread: int) -> None:
            self._deadlines[thread][0] = deadline(limit.seconds)
            question = Question(np.array(positions[part]), np.array([FULL]), limit)
            self._find(question, thread)
            results[part.start] = self._result(thread)

        search_in_threads(
            size=len(positions),
            step=1,
            work=work,
            threads=len(self._deadlines),
            expire=self._expire,
            seconds=self._expected_seconds(limit),
        )
        return results
