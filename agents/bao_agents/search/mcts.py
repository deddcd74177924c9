"""Search trees by Monte Carlo: UCT with random playouts.

UCT as in Kocsis and Szepesvari, "Bandit based Monte-Carlo planning" (2006): a simulation walks
down the tree by upper confidence bounds, expands the position where it ends, plays one of its
successors out to the end of the game, and backs the result up. The most visited action is played.

The generator of a search is seeded with the position and the agent's seed, so a choice does not
depend on the rest of the batch.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bao_agents.search.limits import (
    SHORT,
    check_seconds,
    check_threads,
    check_whole,
    deadline,
    nanoseconds,
    share,
)
from bao_agents.support.array_types import Int32Array
from bao_agents.support.remade import Remade
from bao_env.engine.action import actions_of
from bao_env.engine.array_checks import as_batch
from bao_env.engine.bits import (
    FULL,
    ONE,
    ZERO,
    U,
    popcount,
    select_bit,
    xorshift,
)
from bao_env.engine.compile import jit
from bao_env.engine.exclusive import Exclusive
from bao_env.engine.kernel import INFINITE, simulate
from bao_env.engine.position import (
    META,
    WORDS,
    Actions,
    Legal,
    PackedPositions,
    packed_opening,
    read_at,
    same_mover,
)
from bao_env.engine.ruleset import Ruleset, get_ruleset
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
MAX_SIMULATIONS = 10_000_000
"""The most simulations of a search."""
_NODES_PER_SIMULATION = 4
"""Space for nodes, for each simulation; a node is expanded at its second visit."""
_MAX_NODES = 1 << 21
"""The most nodes in a tree, 160 MiB. When a tree is full, leaves are played out unexpanded."""
_SIMULATION = 2e-5
"""Seconds that a simulation takes, at most and roughly."""

_SEED_SHIFT = U(29)
_HALF_WORD = U(32)
_GOLDEN_RATIO = U(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: odd, bits that look random


@jit
def _random_move(rules, packed, rng):
    """Play a random start, with a random choice at a house; draw again if the move is infinite.

    This does not find the legal actions: only the drawn starts are simulated.

    Args:
        rules: the :class:`KernelRules`.
        packed: the position, a :class:`Packed`.
        rng: the state of a generator (:func:`xorshift`), uint64.

    Returns:
        the generator; the position after the move, a :class:`Packed`; and the move's result: ONE
        if the mover has won, FULL if they have lost or have no move (1.2), else ZERO.
    """
    capture_turn, starts = candidates(rules, packed)
    while starts != ZERO:
        rng = xorshift(rng)
        start = select_bit(starts, ((rng >> _HALF_WORD) * popcount(starts)) >> _HALF_WORD)
        stops = ZERO - (rng & ONE)
        played = simulate(rules, packed, capture_turn, start, stops)
        if played.tally & INFINITE and stops == ZERO:
            played = simulate(rules, packed, capture_turn, start, FULL)
        if (played.tally & INFINITE) == ZERO:
            return rng, played.after, played.result
        starts &= ~(ONE << start)
    return rng, packed, FULL


@jit
def _playout(rules, packed, rng):
    """Play a position out to the end of the game, with random moves.

    Returns the generator and the result for the player who moves first: 1, -1, or 0 after
    :data:`PLAYOUT_PLIES`.
    """
    sign = np.int64(1)
    for _ in range(PLAYOUT_PLIES):
        rng, packed, result = _random_move(rules, packed, rng)
        if result != ZERO:
            return rng, sign if result == ONE else -sign
        if not same_mover(packed.meta):
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
    """int32[N]."""
    result_sums: Int32Array
    """int32[N], sum of the results of those visits, for the player who moved to the node."""
    path: Int32Array
    """int32[PLAYOUT_PLIES], the nodes of the current simulation."""


def _make_tree(simulations: int) -> PlayoutTree:
    """Return space for the tree of a search with ``simulations`` simulations."""
    size = min(_NODES_PER_SIMULATION * simulations, _MAX_NODES) + 2 * MAX_SUCCESSORS
    positions = np.empty((size, SUCCESSOR_WORDS), np.uint64)
    first_child, num_children, node_visits, result_sums = np.zeros((4, size), np.int32)
    path = np.zeros(PLAYOUT_PLIES, np.int32)
    return PlayoutTree(positions, first_child, num_children, node_visits, result_sums, path)


@jit
def _choose_child(tree, node, rng):
    """Choose a random unvisited child, else the one with the highest confidence bound.

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
    best = first
    best_bound = -math.inf
    for child in range(first, last):
        visits = float(tree.node_visits[child])
        bound = tree.result_sums[child] / visits + EXPLORATION * math.sqrt(log / visits)
        if bound > best_bound:
            best_bound = bound
            best = child
    return rng, best


@jit
def _expand(rules, tree, node, size):
    """Append the children of a node, without visits, to the nodes of the tree.

    Returns the new number of nodes.
    """
    count = successors(rules, read_at(tree.positions, node), tree.positions, size)
    tree.first_child[node] = size
    tree.num_children[node] = count
    for child in range(size, size + count):
        tree.first_child[child] = 0
        tree.node_visits[child] = 0
        tree.result_sums[child] = 0
    return size + count


@jit
def _simulate_once(rules, tree, size, rng):
    """Run one simulation: select, expand, play out, back up.

    Args:
        rules: the :class:`KernelRules`.
        tree: the :class:`PlayoutTree`.
        size: the number of its nodes.
        rng: the state of a generator, uint64.

    Returns:
        the generator, and the new number of nodes.
    """
    positions, path = tree.positions, tree.path
    node = np.int64(0)
    length = 0
    path[0] = 0
    # `result` is for the player to move at `node`.
    result = np.int64(0)
    while True:
        if positions[node, RESULT] != ZERO:  # the move that led here won, or lost
            result = np.int64(-1) if positions[node, RESULT] == ONE else np.int64(1)
            break
        fresh = tree.node_visits[node] == 0 and node != 0
        room = size + MAX_SUCCESSORS <= positions.shape[0] and length + 1 < path.shape[0]
        if fresh or (tree.first_child[node] == 0 and not room):
            rng, result = _playout(rules, read_at(positions, node), rng)
            break
        if tree.first_child[node] == 0:
            size = _expand(rules, tree, node, size)
        if tree.num_children[node] == 0:  # no move: the mover has lost (1.2)
            result = np.int64(-1)
            break
        rng, node = _choose_child(tree, node, rng)
        length += 1
        path[length] = node
    for i in range(length, -1, -1):
        node = np.int64(path[i])
        if not same_mover(positions[node, META]):
            result = -result  # now for the player who moved to the node
        tree.node_visits[node] += 1
        tree.result_sums[node] += result
    return rng, size


@jit
def _search(rules, tree, position, seed, simulations, deadline):
    """Return the action that a search of one position visits most; among equals, the better one.

    Args:
        rules: the :class:`KernelRules`.
        tree: the :class:`PlayoutTree`, overwritten.
        position: uint64[6].
        seed: the agent's seed, uint64.
        simulations: the number of simulations; at least two run, so that the root is expanded.
        deadline: int64[1], see :mod:`bao_agents.search.limits`.
    """
    rng = seed
    for word in range(WORDS):  # PLY takes the place of ACTION, which a root does not have
        tree.positions[0, word] = position[word]
        rng = (rng ^ position[word] ^ (rng >> _SEED_SHIFT)) * _GOLDEN_RATIO
    rng |= ONE
    tree.positions[0, RESULT] = ZERO
    tree.first_child[0] = 0
    tree.node_visits[0] = 0
    tree.result_sums[0] = 0
    size = np.int64(1)
    for done in range(simulations):
        if done > 1 and nanoseconds() >= deadline[0]:
            break
        rng, size = _simulate_once(rules, tree, size, rng)
    first = np.int64(tree.first_child[0])
    best = first
    for child in range(first + 1, first + np.int64(tree.num_children[0])):
        visits, most_visits = tree.node_visits[child], tree.node_visits[best]
        better = tree.result_sums[child] > tree.result_sums[best]
        if visits > most_visits or (visits == most_visits and better):
            best = child
    return tree.positions[best, ACTION]


class MctsAgent(Remade):
    """Play the action that a Monte Carlo tree search visits most.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        simulations: simulations of each search.
        seconds: time for each search, instead of ``simulations``; the choice then depends on the
            machine.
        seed: the seed of the playouts.
        threads: number of threads that share a batch; each position is searched on one. None for
            all cores.

    Raises:
        ValueError: a limit is missing or out of range.
    """

    def __init__(
        self,
        ruleset: str | Ruleset = "zanzibar",
        *,
        simulations: int | None = None,
        seconds: float | None = None,
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        if (simulations is None) == (seconds is None):
            raise ValueError("mcts: give either a number of simulations or a time")
        if simulations is not None:
            simulations = check_whole("mcts: simulations", simulations, 2, MAX_SIMULATIONS)
        if seconds is not None:
            seconds = check_seconds("mcts", seconds)
        self._rules = get_ruleset(ruleset).kernel
        self._simulations = simulations if simulations is not None else MAX_SIMULATIONS
        self._seconds = seconds
        self._seed = U(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
        self._threads = check_threads(threads)
        self._exclusive = Exclusive("player")
        self._trees = [_make_tree(self._simulations) for _ in range(self._threads)]
        self._deadlines = [np.zeros(1, np.int64) for _ in range(self._threads)]
        self._expected_seconds = seconds or self._simulations * _SIMULATION
        # Compile before the clock runs and before Ctrl-C may come.
        if seconds is not None or self._expected_seconds > SHORT:
            self._search(packed_opening(get_ruleset(ruleset)), 0)

    def act(self, positions: PackedPositions, legal: Legal) -> Actions:
        """Choose actions; see :meth:`bao_env.bots.Agent.act`."""
        positions, legal = as_batch(positions, legal)
        actions = np.zeros(len(legal), np.int64)

        def search(part: slice, thread: int) -> None:
            i = part.start
            choices = actions_of(int(legal[i]))
            if len(choices) > 1:
                self._deadlines[thread][0] = deadline(self._seconds)
                actions[i] = self._search(positions[i], thread)
            elif choices:
                actions[i] = choices[0]  # no choice

        with self._exclusive:
            share(len(legal), 1, search, self._deadlines, self._expected_seconds)
        return actions

    def _search(self, position: PackedPositions, thread: int) -> int:
        action = _search(
            self._rules,
            self._trees[thread],
            position,
            self._seed,
            self._simulations,
            self._deadlines[thread],
        )
        return int(action)
