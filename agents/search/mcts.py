"""Monte Carlo tree search: UCT with random or greedy playouts.

UCT as in Kocsis and Szepesvari, "Bandit based Monte-Carlo planning" (2006): a simulation walks
down the tree by upper confidence bounds, expands the position it ends in, plays one of its
successors out to the end of the game, and hands the result up. The action visited most is
played.

The generator of a search is seeded with the position and the agent's seed, so that a choice
depends on nothing else in the batch.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from agents.search.threads import check_seconds, check_threads, share, stop_after
from bao_env.engine.bits import (
    FULL,
    ONE,
    ZERO,
    U,
    popcount,
    select_bit,
    trailing_zeros,
    xorshift,
)
from bao_env.engine.compile import jit
from bao_env.engine.kernel import CAPTURE_TURN, CHOICE, INFINITE, STARTS, candidates, simulate
from bao_env.engine.position import META, PLY, packed_opening, read_at, same_mover
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.engine.successors import (
    ACTION,
    MAX_SUCCESSORS,
    RESULT,
    SUCCESSOR_WORDS,
    successors,
)

EXPLORATION: Final = 1.2
"""Default weight of the confidence bound, for results of plus and minus one."""
PLAYOUT_PLIES: Final = 1000
"""A playout of this length counts as a draw, as in the arena."""
MAX_SIMULATIONS: Final = 10_000_000
"""Most that one search may make."""
_NODES_PER_SIMULATION: Final = 4
_MAX_NODES: Final = 1 << 21
"""Where the tree is full, leaves are played out unexpanded."""

_MIX_SHIFT = U(29)
_HALF = U(32)
_MIX = U(0x9E3779B97F4A7C15)
_WIN_SCORE = U(1000)


@jit
def _random_move(rules, packed, rng):
    """Draw a start and, should it come to a house, a choice; redraw what proves infinite.

    No mask is needed: only what is drawn is simulated. Returns the generator, the position
    after the move and its result; a mover without a move has lost (FULL).
    """
    found = candidates(rules, packed)
    capture_turn = (found & CAPTURE_TURN) != ZERO
    starts = found & STARTS
    while starts != ZERO:
        rng = xorshift(rng)
        start = select_bit(starts, ((rng >> _HALF) * popcount(starts)) >> _HALF)
        stops = ZERO - (rng & ONE)
        played = simulate(rules, packed, capture_turn, start, stops)
        if played.tally & INFINITE and stops == ZERO:
            played = simulate(rules, packed, capture_turn, start, FULL)
        if (played.tally & INFINITE) == ZERO:
            return rng, played.after, played.result
        starts &= ~(ONE << start)
    return rng, packed, FULL


@jit
def _greedy_move(rules, packed, rng):
    """The move that captures most; among equals, and where none captures, a random one.

    Returns what :func:`_random_move` returns.
    """
    found = candidates(rules, packed)
    capture_turn = (found & CAPTURE_TURN) != ZERO
    if not capture_turn:
        return _random_move(rules, packed, rng)
    starts = found & STARTS
    best = ZERO  # captures, and random bits to choose among equals
    best_after, best_result = packed, FULL
    while starts != ZERO:
        start = trailing_zeros(starts)
        starts &= starts - ONE
        stops = ZERO
        while True:
            played = simulate(rules, packed, capture_turn, start, stops)
            if (played.tally & INFINITE) == ZERO:
                rng = xorshift(rng)
                captured = _WIN_SCORE if played.result == ONE else played.captured
                score = (captured << _HALF) | (rng >> _HALF) | ONE
                if score > best:
                    best = score
                    best_after, best_result = played.after, played.result
            if stops != ZERO or (played.tally & CHOICE) == ZERO:
                break
            stops = FULL
    return rng, best_after, best_result


@jit
def _playout(rules, packed, rng, greedy):
    """Play to the end. Returns the generator and the result for the player who is to move
    first, 1, -1, or 0 after too many plies."""
    sign = np.int64(1)
    for _ in range(PLAYOUT_PLIES):
        if greedy:
            rng, packed, result = _greedy_move(rules, packed, rng)
        else:
            rng, packed, result = _random_move(rules, packed, rng)
        if result != ZERO:
            return rng, sign if result == ONE else -sign
        if not same_mover(packed.meta):
            sign = -sign
    return rng, np.int64(0)


class _Tree(NamedTuple):
    """What one thread searches with; node 0 is the root."""

    words: npt.NDArray[np.uint64]
    """uint64[N, 8], each node as :mod:`bao_env.engine.successors` writes it."""
    first: npt.NDArray[np.int32]
    """int32[N], the first child of a node that has been expanded; 0 before."""
    children: npt.NDArray[np.int32]
    """int32[N], how many children it has."""
    visits: npt.NDArray[np.int32]
    """int32[N]."""
    total: npt.NDArray[np.int32]
    """int32[N], sum of results for the player who moved to the node."""
    path: npt.NDArray[np.int32]
    """int32[1000], the nodes of the simulation under way."""


def _tree(simulations: int) -> _Tree:
    size = min(_NODES_PER_SIMULATION * simulations, _MAX_NODES) + 2 * MAX_SUCCESSORS
    return _Tree(
        words=np.empty((size, SUCCESSOR_WORDS), np.uint64),
        first=np.zeros(size, np.int32),
        children=np.zeros(size, np.int32),
        visits=np.zeros(size, np.int32),
        total=np.zeros(size, np.int32),
        path=np.zeros(PLAYOUT_PLIES, np.int32),
    )


@jit
def _choose_child(tree, node, exploration, rng):
    """A child never visited, at random; else the one with the highest confidence bound.

    Returns the generator and the child.
    """
    first = np.int64(tree.first[node])
    last = first + np.int64(tree.children[node])
    fresh = np.int64(0)
    for child in range(first, last):
        if tree.visits[child] == 0:
            fresh += 1
    if fresh:
        rng = xorshift(rng)
        skip = np.int64(((rng >> _HALF) * U(fresh)) >> _HALF)
        for child in range(first, last):
            if tree.visits[child] == 0:
                if skip == 0:
                    return rng, child
                skip -= 1
    log = math.log(tree.visits[node])
    best = first
    best_bound = -math.inf
    for child in range(first, last):
        visits = float(tree.visits[child])
        bound = tree.total[child] / visits + exploration * math.sqrt(log / visits)
        if bound > best_bound:
            best_bound = bound
            best = child
    return rng, best


@jit
def _simulate_once(rules, tree, used, exploration, greedy, rng):
    """One simulation. Returns the generator and how many nodes the tree has now."""
    words, path = tree.words, tree.path
    node = np.int64(0)
    length = 0
    path[0] = 0
    # `result` is for the player to move at `node`.
    result = np.int64(0)
    while True:
        if words[node, RESULT] != ZERO:  # the move that led here won, or lost
            result = np.int64(-1) if words[node, RESULT] == ONE else np.int64(1)
            break
        fresh = tree.visits[node] == 0 and node != 0
        room = used + MAX_SUCCESSORS <= words.shape[0] and length + 1 < path.shape[0]
        if fresh or (tree.first[node] == 0 and not room):
            rng, result = _playout(rules, read_at(words, node), rng, greedy)
            break
        if tree.first[node] == 0:
            count = successors(rules, read_at(words, node), words, used)
            tree.first[node] = used
            tree.children[node] = count
            for child in range(used, used + count):
                tree.first[child] = 0
                tree.visits[child] = 0
                tree.total[child] = 0
            used += count
        if tree.children[node] == 0:  # no move: the mover has lost (1.2)
            result = np.int64(-1)
            break
        rng, node = _choose_child(tree, node, exploration, rng)
        length += 1
        path[length] = node
    for i in range(length, -1, -1):
        node = np.int64(path[i])
        if not same_mover(words[node, META]):
            result = -result  # now for the player who moved to the node
        tree.visits[node] += 1
        tree.total[node] += result
    return rng, used


@jit
def _grow(rules, tree, position, seed, simulations, exploration, greedy, stop):
    """Search one position; the tree's root has the answer. Returns the simulations made."""
    rng = seed
    for word in range(META + 1):
        tree.words[0, word] = position[word]
        rng = (rng ^ position[word] ^ (rng >> _MIX_SHIFT)) * _MIX
    rng = (rng ^ position[PLY] ^ (rng >> _MIX_SHIFT)) * _MIX | ONE
    tree.words[0, RESULT] = ZERO
    tree.first[0] = 0
    tree.visits[0] = 0
    tree.total[0] = 0
    used = np.int64(1)
    for done in range(simulations):
        if stop[0] != 0 and done > 1:  # at least the root is expanded
            return done
        rng, used = _simulate_once(rules, tree, used, exploration, greedy, rng)
    return simulations


@jit
def _search_many(
    rules, tree, positions, masks, seed, simulations, exploration, greedy, stop, actions
):
    """The action visited most in each position that has one; of equals, the better result."""
    for g in range(positions.shape[0]):
        actions[g] = 0
        if masks[g] == ZERO:
            continue
        actions[g] = trailing_zeros(masks[g])
        if (masks[g] & (masks[g] - ONE)) == ZERO:
            continue  # nothing to think about
        _grow(rules, tree, positions[g], seed, simulations, exploration, greedy, stop)
        first = np.int64(tree.first[0])
        best = first
        for child in range(first, first + np.int64(tree.children[0])):
            if tree.visits[child] > tree.visits[best] or (
                tree.visits[child] == tree.visits[best] and tree.total[child] > tree.total[best]
            ):
                best = child
        if first != 0:
            actions[g] = tree.words[best, ACTION]


class MctsAgent:
    """Plays the action that a Monte Carlo tree search visits most.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        simulations: of each search; without it, as many as the time allows.
        seconds: time of each search, in place of ``simulations``; the choice then depends on
            the machine.
        greedy: play playouts by most captured seeds instead of uniformly at random.
        exploration: weight of the confidence bound.
        seed: of the playouts.
        threads: positions of a batch are searched on so many threads, each position on one;
            all cores by default.

    Raises:
        ValueError: a limit is missing or out of range.
    """

    def __init__(
        self,
        ruleset: str | Ruleset = "zanzibar",
        *,
        simulations: int | None = None,
        seconds: float | None = None,
        greedy: bool = False,
        exploration: float = EXPLORATION,
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        if (simulations is None) == (seconds is None):
            raise ValueError("mcts: give either a number of simulations or a time")
        if simulations is not None and not 2 <= simulations <= MAX_SIMULATIONS:
            raise ValueError(f"mcts: {simulations} simulations: expected 2 to {MAX_SIMULATIONS}")
        if seconds is not None:
            check_seconds("mcts", seconds)
        self._rules = get_ruleset(ruleset).kernel_rules()
        self._simulations = simulations if simulations is not None else MAX_SIMULATIONS
        self._seconds = seconds
        self._greedy = greedy
        self._exploration = exploration
        self._seed = U(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
        self._threads = check_threads(threads)
        self._trees = [_tree(self._simulations) for _ in range(self._threads)]
        self._stops = [np.zeros(1, np.int64) for _ in range(self._threads)]
        if seconds is not None:  # compile before the clock runs
            opening = packed_opening(get_ruleset(ruleset))[None]
            self._stops[0][0] = 1
            masks = np.full(1, 3, np.uint64)
            self._search(opening, masks, np.zeros(1, np.int64), 0)

    def act(
        self, positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """See :meth:`bao_env.bots.Agent.act`."""
        actions = np.zeros(len(masks), np.int64)

        def search(part: slice, thread: int) -> None:
            with stop_after(self._stops[thread], self._seconds):
                self._search(positions[part], masks[part], actions[part], thread)

        share(len(masks), 1, self._threads, search)
        return actions

    def _search(
        self,
        positions: npt.NDArray[np.uint64],
        masks: npt.NDArray[np.uint64],
        actions: npt.NDArray[np.int64],
        thread: int,
    ) -> None:
        _search_many(
            self._rules,
            self._trees[thread],
            positions,
            masks,
            self._seed,
            self._simulations,
            self._exploration,
            self._greedy,
            self._stops[thread],
            actions,
        )
