"""Search with alpha-beta: iterative deepening, principal variations, a transposition table.

Names and methods are those of chess programming (https://www.chessprogramming.org). Values
are for the player to move: evaluations within plus and minus
:data:`bao_agents.evaluators.tables.LIMIT`, and ``WIN_VALUE - n`` for a win within n
plies. An action is a ply. Where the same player acts again (a capture that waits for its side,
Dutch I.a) the value keeps its sign. The search never evaluates such a position: it plays on, which
costs no depth.

A *full* search to depth D returns the value of plain minimax to that depth: it never prunes on a
guess. A *guided* search is selective: it searches actions that a network or the move order ranks
low less deeply, and forced actions more deeply (:mod:`bao_agents.search.alphabeta.reductions`).

No search uses anything from an earlier one. So an agent's choice depends only on the position, not
on the rest of the batch or on the number of threads.

The search itself is :func:`bao_agents.search.alphabeta.search.search`, called here for depths 1, 2,
3 and so on.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bao_agents.evaluators.tables import load_tables
from bao_agents.search.alphabeta.ordering import forget_cutoffs
from bao_agents.search.alphabeta.policy_order import make_guides
from bao_agents.search.alphabeta.search import search
from bao_agents.search.alphabeta.transposition import NO_ACTION, PROVEN
from bao_agents.search.alphabeta.workspace import MAX_DEPTH, make_workspace
from bao_agents.search.limits import (
    SHORT,
    check_nodes,
    check_seconds,
    check_threads,
    check_whole,
    deadline,
    share,
)
from bao_agents.support.array_types import Int64Array
from bao_agents.support.remade import Remade
from bao_env.engine.array_checks import as_batch, check_array
from bao_env.engine.bits import FULL, ONE, ZERO, trailing_zeros
from bao_env.engine.compile import jit
from bao_env.engine.exclusive import Exclusive
from bao_env.engine.position import (
    WORDS,
    Actions,
    Legal,
    PackedPositions,
    packed_opening,
    read,
    write_at,
)
from bao_env.engine.ruleset import Ruleset, get_ruleset

if TYPE_CHECKING:  # torch is slow to import, and only a guided search needs it
    from bao_agents.nets.checkpoint import Checkpoint

_SPEED = 8e6
"""Nodes per second that a search visits on a fast core, roughly."""
_BRANCHING = 3.0
"""The factor by which a full search grows with each ply, roughly."""
_CHUNK = 16
"""Positions that a thread takes at a time."""


class SearchResult(NamedTuple):
    """The result of searching one position."""

    action: int
    """The best action; -1 if there is none."""
    value: int
    """The value for the player to move; see the module."""
    depth: int
    """The depth of the last finished iteration."""
    nodes: int
    """Positions visited. In a guided search the network's inputs also count."""
    line: tuple[int, ...]
    """Best play for both sides, as actions, beginning with ``action``."""


@jit
def _deepen(rules, evaluator, guide, workspace, position, actions, depth):
    """Search a position to depths 1, 2, ... ``depth``, or until stopped.

    Args:
        rules, evaluator, guide: see :func:`bao_agents.search.alphabeta.search.search`.
        workspace: a :class:`Workspace`. Its memory gets depth, nodes, value and best line.
        position: uint64[6].
        actions: the bits of the actions to choose from.
        depth: the last depth.
    """
    work = workspace.memory[0]
    work.nodes = 0
    work.look_at = 0
    work.stopped = 0
    work.value = 0
    work.actions = actions
    work.epoch += ONE
    work.lines[0, 0] = NO_ACTION
    forget_cutoffs(work)
    write_at(work.stack, 0, read(position))
    work.finished = 0
    for iteration in range(1, depth + 1):
        value = search(rules, evaluator, guide, workspace.table, work, iteration)
        if work.stopped != 0:
            break
        work.finished = iteration
        work.value = value
        if value > PROVEN or value < -PROVEN:
            break  # a proven result does not change


@jit
def _search_many(rules, evaluator, guide, workspace, positions, legal, depth, actions, values):
    """Search each position of a batch that has legal actions.

    Args:
        rules, evaluator, guide, workspace: see :func:`_deepen`.
        positions: uint64[B, 6].
        legal: uint64[B], the actions to choose from.
        depth: the greatest depth.
        actions: int64[B], filled with the best actions; 0 where there is none.
        values: int64[B], filled with the values of positions that have actions; or int64[0] if
            they are not needed. Then a single legal action is taken without a search.
    """
    for g in range(positions.shape[0]):
        actions[g] = 0
        if legal[g] == ZERO:
            continue
        if (legal[g] & (legal[g] - ONE)) == ZERO and values.shape[0] == 0:
            actions[g] = trailing_zeros(legal[g])  # no choice
            continue
        _deepen(rules, evaluator, guide, workspace, positions[g], legal[g], depth)
        work = workspace.memory[0]
        if values.shape[0] != 0:
            values[g] = work.value
        actions[g] = work.lines[0, 0]


def _expected_nodes(depth: int, seconds: float | None, nodes: int | None) -> float:
    """Estimate the most nodes that a search can visit; see :class:`AlphaBetaAgent`."""
    limits = [_BRANCHING**depth]
    if seconds is not None:
        limits.append(seconds * _SPEED)
    if nodes is not None:
        limits.append(nodes)
    return min(limits)


class AlphaBetaAgent(Remade):
    """Play the best action of an alpha-beta search.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        depth: plies to search, 1 to :data:`MAX_DEPTH`; the most by default, which needs another
            limit.
        seconds: time limit for each position. The choice is then the best action found so far,
            and depends on the machine.
        nodes: rough limit of the positions to visit. At least one ply is always searched.
        guide: None for a full search. The network of a checkpoint guides the search
            (:mod:`bao_agents.search.alphabeta.reductions`), and its NNUE, if it has one, evaluates
            positions instead of the fitted tables.
        threads: number of threads that share a batch; each position is searched on one. None for
            all cores.

    Raises:
        ValueError: a limit is out of range.
    """

    seeded = False
    """Its play does not depend on a seed; see :class:`bao_env.Agent`."""

    def __init__(
        self,
        ruleset: str | Ruleset = "zanzibar",
        *,
        depth: int | None = None,
        seconds: float | None = None,
        nodes: int | None = None,
        guide: Checkpoint | None = None,
        threads: int | None = None,
    ) -> None:
        if depth is None and seconds is None and nodes is None:
            raise ValueError("alphabeta: give a depth, a time or a number of nodes")
        if depth is None:
            depth = MAX_DEPTH
        depth = check_whole("alphabeta: depth", depth, 1, MAX_DEPTH)
        if seconds is not None:
            seconds = check_seconds("alphabeta", seconds)
        if nodes is not None:
            nodes = check_nodes("alphabeta", nodes)
        rules = self.ruleset = get_ruleset(ruleset)
        self.network = None if guide is None else guide.network
        self._depth = depth
        self._seconds = seconds
        self._exclusive = Exclusive("player")
        expected = _expected_nodes(depth, seconds, nodes)
        self._expected_seconds = expected / _SPEED
        count = check_threads(threads)
        self._workspaces = [make_workspace(expected, nodes) for _ in range(count)]
        self._deadlines = [workspace.memory["deadline"] for workspace in self._workspaces]
        evaluator = guide.nnue if guide and guide.nnue else load_tables(rules)
        guides = make_guides(guide.network, count) if guide else [None] * count
        self._threads = [
            (rules.kernel, evaluator, guide, workspace)
            for guide, workspace in zip(guides, self._workspaces, strict=True)
        ]
        # Compile before the clock runs and before Ctrl-C may come.
        if seconds is not None or self._expected_seconds > SHORT:
            position, legal = packed_opening(rules)[None], np.array([FULL])
            _search_many(
                *self._threads[0], position, legal, 1, np.zeros(1, np.int64), np.zeros(1, np.int64)
            )

    def act(
        self, positions: PackedPositions, legal: Legal, *, seconds: float | None = None
    ) -> Actions:
        """Choose actions; see :meth:`bao_env.bots.Agent.act`. ``legal`` may leave out some.

        Args:
            positions, legal: see :meth:`bao_env.bots.Agent.act`.
            seconds: time limit for each position, instead of the agent's.
        """
        with self._exclusive:
            return self._search(positions, legal, False, seconds or self._seconds)[0]

    def actions_and_values(
        self, positions: PackedPositions, legal: Legal
    ) -> tuple[Int64Array, Int64Array]:
        """Return actions and values int64[B] of positions uint64[B, 6], none of them over.

        They are those of :meth:`act` and :meth:`values`, from a single search.
        """
        with self._exclusive:
            return self._search(positions, legal, True, self._seconds)

    def values(self, positions: PackedPositions, legal: Legal) -> Int64Array:
        """Return values int64[B] of positions uint64[B, 6], none of them over, for their movers."""
        return self.actions_and_values(positions, legal)[1]

    def search(self, position: PackedPositions) -> SearchResult:
        """Search one position, uint64[6], and return the whole result.

        Raises:
            TypeError, ValueError: see :func:`bao_env.engine.array_checks.check_array`.
        """
        check_array("position", position, np.uint64, (WORDS,))
        with self._exclusive:
            self._search(position[None], np.array([FULL]), True, self._seconds)
            found = self._workspaces[0].memory[0].copy()
        line = tuple(takewhile(lambda action: action != NO_ACTION, found["lines"][0].tolist()))
        return SearchResult(
            action=line[0] if line else -1,
            value=int(found["value"]),
            depth=int(found["finished"]),
            nodes=int(found["nodes"]),
            line=line,
        )

    def _search(
        self, positions: PackedPositions, legal: Legal, with_values: bool, seconds: float | None
    ) -> tuple[Actions, Int64Array]:
        """Run :func:`_search_many` on all threads, each position with its own time."""
        positions, legal = as_batch(positions, legal)
        actions = np.zeros(len(legal), np.int64)
        values = np.zeros(len(legal) if with_values else 0, np.int64)

        def search_part(part: slice, thread: int) -> None:
            self._deadlines[thread][0] = deadline(seconds)
            _search_many(
                *self._threads[thread],
                positions[part],
                legal[part],
                self._depth,
                actions[part],
                values[part],
            )

        step = _CHUNK if seconds is None else 1
        share(len(legal), step, search_part, self._deadlines, self._expected_seconds)
        return actions, values
