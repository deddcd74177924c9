"""Run a Monte Carlo tree search: UCT with random playouts.

UCT as in Kocsis and Szepesvari, "Bandit based Monte-Carlo planning" (2006): an iteration walks
down the tree by upper confidence bounds, expands the position where it ends, plays one of its
successors out to the end of the game, and backs the result up. The most visited action is played.

The generator of a search is seeded with the position and the agent's seed, so a choice does not
depend on the rest of the batch.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from bao_agents.search.limits import LEAST_SECONDS, MAX_SECONDS, Limit, nanoseconds
from bao_agents.search.masks import keep_actions
from bao_agents.search.player import Question, SearchPlayer
from bao_agents.support.array_types import Int32Array, Int64Array
from bao_env.compiled.compile import jit
from bao_env.engine.bits import (
    FULL,
    ONE,
    ZERO,
    U,
    popcount,
    select_bit,
    xorshift,
)
from bao_env.engine.kernel import INFINITE, simulate
from bao_env.engine.position import (
    META,
    WORDS,
    Index,
    PackedPositions,
    Rows,
    load_rows_at,
    same_mover,
)
from bao_env.engine.ruleset import KernelRules, Ruleset
from bao_env.engine.starts import candidates
from bao_env.engine.successors import (
    ACTION,
    MAX_SUCCESSORS,
    RESULT,
    SUCCESSOR_WORDS,
    successors,
)

EXPLORATION = 1.2
"""Weight of the confidence bound, for results of plus and minus one."""
PLAYOUT_PLIES = 1000
"""Plies after which a playout counts as a draw, as in the arena."""
MAX_PLAYOUTS = 10_000_000
"""The most playouts of a search."""
_NODES_A_PLAYOUT = 4
"""Nodes to make space for, per playout; a node is expanded at its second visit."""
_MAX_NODES = 1 << 21
"""The most nodes in a tree, 160 MiB, unless the player has another limit of memory. When a tree is
full, leaves are played out unexpanded."""
_NODE_BYTES = 80
_MOST_NODES = (1 << 31) - 1
"""The most nodes that a tree can number."""
_PLAYOUT_SECONDS = 2e-5
"""Seconds that a playout takes at most, roughly."""

_SEED_SHIFT = U(29)
_HALF_WORD = U(32)
_GOLDEN_RATIO = U(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: odd, bits that look random


@jit
def _random_move(rules: KernelRules, rows: Rows, rng: U) -> tuple[U, Rows, U]:
    """Play a random start, with a random choice at a house; draw again if the move is infinite.

    This function does not list the legal actions: it simulates only the starts that it draws.

    Args:
        rules: the :class:`KernelRules`.
        rows: the position, a :class:`Rows`.
        rng: the state of a generator (:func:`xorshift`), uint64.

    Returns:
        the generator; the position after the move, a :class:`Rows`; and the move's result: ONE
        if the mover has won, FULL if they have lost or have no move (1.2), else ZERO.
    """
    capture_turn, starts = candidates(rules, rows)
    while starts != ZERO:
        rng = xorshift(rng)
        start = select_bit(starts, ((rng >> _HALF_WORD) * popcount(starts)) >> _HALF_WORD)
        stops_at_house = ZERO - (rng & ONE)
        played = simulate(rules, rows, capture_turn, start, stops_at_house)
        if played.tally & INFINITE and stops_at_house == ZERO:
            played = simulate(rules, rows, capture_turn, start, FULL)
        if (played.tally & INFINITE) == ZERO:
            return rng, played.after, played.result
        starts &= ~(ONE << start)
    return rng, rows, FULL


@jit
def _playout(rules: KernelRules, rows: Rows, rng: U) -> tuple[U, Index]:
    """Play a position out to the end of the game, with random moves.

    Returns the generator and the result for the player who moves first: 1, -1, or 0 after
    :data:`PLAYOUT_PLIES`.
    """
    sign = np.int64(1)
    for _ in range(PLAYOUT_PLIES):
        rng, rows, result = _random_move(rules, rows, rng)
        if result != ZERO:
            return rng, sign if result == ONE else -sign
        if not same_mover(rows.meta):
            sign = -sign
    return rng, np.int64(0)


class PlayoutTree(NamedTuple):
    """A search tree, one per thread; node 0 is the root."""

    positions: PackedPositions
    """uint64[N, 8], each node as :mod:`bao_env.engine.successors` writes it."""
    first_child: Int32Array
    """int32[N], the first child of an expanded node; 0 before."""
    num_children: Int32Array
    """int32[N], the number of its children, which are consecutive."""
    node_visits: Int32Array
    """int32[N], the number of visits."""
    result_sums: Int32Array
    """int32[N], the sum of the results of those visits, for the player who moved to the node."""
    path: Int32Array
    """int32[PLAYOUT_PLIES], the nodes from the root to the current one."""


def _make_tree(playouts: int, max_nodes: int = _MAX_NODES) -> PlayoutTree:
    """Return an empty tree for a search of ``playouts`` playouts.

    Args:
        playouts: the number of playouts.
        max_nodes: the most nodes, apart from a small reserve.
    """
    size = min(_NODES_A_PLAYOUT * playouts, max_nodes) + 2 * MAX_SUCCESSORS
    positions = np.empty((size, SUCCESSOR_WORDS), np.uint64)
    first_child, num_children, node_visits, result_sums = np.zeros((4, size), np.int32)
    path = np.zeros(PLAYOUT_PLIES, np.int32)
    return PlayoutTree(positions, first_child, num_children, node_visits, result_sums, path)


@jit
def _choose_child(tree: PlayoutTree, node: Index, rng: U) -> tuple[U, Index]:
    """Choose a random unvisited child or, if there is none, the one with the highest bound.

    Returns the generator and the child.
    """
    first = np.int64(tree.first_child[node])
    last = first + np.int64(tree.num_children[node])
    fresh = np.int64(0)
    for child in range(first, last):
        if tree.node_visits[child] == 0:
            fresh += 1
    if fresh:
        rng = xorshift(rng)
        skip = np.int64(((rng >> _HALF_WORD) * U(fresh)) >> _HALF_WORD)
        for child in range(first, last):
            if tree.node_visits[child] == 0:
                if skip == 0:
                    return rng, child
                skip -= 1
    log = math.log(tree.node_visits[node])
    best: Index = first
    best_bound = -math.inf
    for child in range(first, last):
        visits = float(tree.node_visits[child])
        bound = tree.result_sums[child] / visits + EXPLORATION * math.sqrt(log / visits)
        if bound > best_bound:
            best_bound = bound
            best = child
    return rng, best


@jit
def _expand(rules: KernelRules, tree: PlayoutTree, node: Index, size: Index, actions: U) -> Index:
    """Append the children of a node to the tree, without visits.

    Only the children that ``actions``, as bits, lead to are appended. Returns the new number of
    nodes.
    """
    end = size + successors(rules, load_rows_at(tree.positions, node), tree.positions, size)
    end = keep_actions(tree.positions, size, end, actions)
    tree.first_child[node] = size
    tree.num_children[node] = end - size
    for child in range(size, end):
        tree.first_child[child] = 0
        tree.node_visits[child] = 0
        tree.result_sums[child] = 0
    return end


@jit
def _iterate(
    rules: KernelRules, tree: PlayoutTree, size: Index, rng: U, actions: U
) -> tuple[U, Index]:
    """Run one iteration: select, expand, play out, back up.

    Args:
        rules: the :class:`KernelRules`.
        tree: the :class:`PlayoutTree`.
        size: the number of nodes in the tree.
        rng: the state of a generator, uint64.
        actions: the bits of the root's actions to choose from.

    Returns:
        the generator, and the new number of nodes.
    """
    positions, path = tree.positions, tree.path
    node: Index = np.int64(0)
    length = 0
    path[0] = 0
    # `result` is for the player to move at `node`.
    result: Index = np.int64(0)
    while True:
        if positions[node, RESULT] != ZERO:  # the move that led here won, or lost
            result = np.int64(-1) if positions[node, RESULT] == ONE else np.int64(1)
            break
        fresh = tree.node_visits[node] == 0 and node != 0
        room = size + MAX_SUCCESSORS <= positions.shape[0] and length + 1 < path.shape[0]
        if fresh or (tree.first_child[node] == 0 and not room):
            rng, result = _playout(rules, load_rows_at(positions, node), rng)
            break
        if tree.first_child[node] == 0:
            size = _expand(rules, tree, node, size, actions if node == 0 else FULL)
        if tree.num_children[node] == 0:  # no move: the mover has lost (1.2)
            result = np.int64(-1)
            break
        rng, node = _choose_child(tree, node, rng)
        length += 1
        path[length] = node
    for i in range(length, -1, -1):
        node = np.int64(path[i])
        if not same_mover(positions[node, META]):
            result = -result  # now it is for the player who moved to the node
        tree.node_visits[node] += 1
        tree.result_sums[node] += result
    return rng, size


@jit
def _search_position(
    rules: KernelRules,
    tree: PlayoutTree,
    packed: PackedPositions,
    actions: U,
    seed: U,
    playouts: int,
    deadline: Int64Array,
) -> U:
    """Search one position, and return the most visited action; among equals, the better one.

    Args:
        rules: the :class:`KernelRules`.
        tree: the :class:`PlayoutTree`, overwritten.
        packed: uint64[6].
        actions: the bits of the actions to choose from.
        seed: the agent's seed, uint64.
        playouts: the number of playouts; at least two run, so that the root is expanded.
        deadline: int64[1], see :mod:`bao_agents.search.limits`.
    """
    rng = seed
    for word in range(WORDS):  # the root has no action: that column holds its ply
        tree.positions[0, word] = packed[word]
        rng = (rng ^ packed[word] ^ (rng >> _SEED_SHIFT)) * _GOLDEN_RATIO
    rng |= ONE
    tree.positions[0, RESULT] = ZERO
    tree.first_child[0] = 0
    tree.node_visits[0] = 0
    tree.result_sums[0] = 0
    size: Index = np.int64(1)
    for done in range(playouts):
        if done > 1 and nanoseconds() >= deadline[0]:
            break
        rng, size = _iterate(rules, tree, size, rng, actions)
    first = np.int64(tree.first_child[0])
    best: Index = first
    for child in range(first + 1, first + np.int64(tree.num_children[0])):
        visits, most_visits = tree.node_visits[child], tree.node_visits[best]
        better = tree.result_sums[child] > tree.result_sums[best]
        if visits > most_visits or (visits == most_visits and better):
            best = child
    return tree.positions[best, ACTION]


class MctsAgent(SearchPlayer):
    """Play the action that a Monte Carlo tree search visits most.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        limit: the limit for each position: playouts, as ``nodes``, or time.
        seed: the seed of the playouts.
        threads, memory: see :class:`SearchPlayer`. Threads share a batch, but never search a
            position together.

    Raises:
        TypeError, ValueError: the limit is not a valid one, or is out of range.
    """

    NAME: ClassVar[str] = "mcts"
    LOWEST = Limit(None, LEAST_SECONDS, 2)
    HIGHEST = Limit(None, MAX_SECONDS, MAX_PLAYOUTS)
    seeded = True

    def __init__(
        self,
        ruleset: str | Ruleset,
        limit: Limit,
        *,
        seed: int = 0,
        threads: int | None = None,
        memory: int | None = None,
    ) -> None:
        self._seed = U(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
        super().__init__(ruleset, limit, threads=threads, memory=memory)

    def _prepare(self) -> None:
        max_nodes = _MAX_NODES
        if self._memory is not None:
            max_nodes = min(self._memory // _NODE_BYTES // len(self._deadlines), _MOST_NODES)
        playouts = self.limit.nodes or MAX_PLAYOUTS
        self._trees = [_make_tree(playouts, max_nodes) for _ in self._deadlines]

    def _expected_seconds(self, limit: Limit) -> float:
        return limit.seconds or (limit.nodes or MAX_PLAYOUTS) * _PLAYOUT_SECONDS

    def _search(self, question: Question, thread: int) -> Int64Array:
        results = np.zeros((len(question.legal), 2), np.int64)
        results[:, 0] = [
            _search_position(
                self.ruleset.kernel,
                self._trees[thread],
                position,
                legal,
                self._seed,
                question.limit.nodes or MAX_PLAYOUTS,
                self._deadlines[thread],
            )
            for position, legal in zip(question.positions, question.legal, strict=True)
        ]
        return results
