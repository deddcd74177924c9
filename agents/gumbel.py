"""Gumbel tree search: many games at once, in lock step with one network.

Danihelka, Guez, Schrittwieser and Silver, "Policy improvement by planning with Gumbel"
(ICLR 2022). At the root, actions are drawn without replacement by the Gumbel-top-k trick and
sequential halving spends the simulations on them; below it, actions are taken so that
visits follow the improved policy, the softmax of logits plus transformed values. No
exploration constant is needed, and few simulations suffice to improve on the policy.

Each game has a tree of its own. A simulation walks every tree to a leaf, the leaves go
through the network as one batch, and its values are handed up. Expanding a leaf plays all of
its actions (:mod:`bao_env.engine.successors`), so results of the game are known at once.

Values are expected results between -1 and 1 for the player to move. Where the same player
acts again (Dutch I.a) they keep their sign.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from agents.network import PolicyNetwork
from agents.options import add_successors
from bao_env.engine.bits import ONE, ZERO, U, xorshift
from bao_env.engine.compile import jit
from bao_env.engine.position import META, MOVER_BACK, MOVER_FRONT, OTHER_BACK, OTHER_FRONT, WORDS
from bao_env.engine.ruleset import KernelRules
from bao_env.engine.successors import (
    ACTION,
    MAX_SUCCESSORS,
    RESULT,
    SUCCESSOR_WORDS,
    same_mover,
    successors,
)
from bao_env.observation import observe_compiled

CONSIDERED: Final = 16
"""Most root actions that are looked into."""
VISIT_OFFSET: Final = 50.0
"""The paper's c_visit."""
VALUE_SCALE: Final = 0.5
"""The paper's c_scale, for values between 0 and 1."""
_EDGES: Final = 10
"""Room for so many actions a simulation; a leaf that finds none is judged unexpanded."""
_NOBODY: Final = -1

_40: Final = U(40)


class Forest(NamedTuple):
    """The trees of B games, N nodes and E edges each. An edge is an action of a node."""

    words: npt.NDArray[np.uint64]
    """uint64[B, E, 8], the position that each edge leads to, as ``successors`` writes it."""
    logits: npt.NDArray[np.float32]
    """float32[B, E]."""
    visits: npt.NDArray[np.int32]
    """int32[B, E]."""
    totals: npt.NDArray[np.float32]
    """float32[B, E], sum of values for the player who chooses the edge."""
    child: npt.NDArray[np.int32]
    """int32[B, E], the node that each edge leads to; -1 before its first visit."""
    owner: npt.NDArray[np.int32]
    """int32[B, E], the node that each edge belongs to."""
    first: npt.NDArray[np.int32]
    """int32[B, N], the first edge of each node."""
    branches: npt.NDArray[np.int32]
    """int32[B, N], how many it has."""
    above: npt.NDArray[np.int32]
    """int32[B, N], the edge that leads to each node."""
    values: npt.NDArray[np.float32]
    """float32[B, N], what the network said."""
    passed: npt.NDArray[np.int32]
    """int32[B, N], visits of all edges of each node."""
    nodes: npt.NDArray[np.int32]
    """int32[B], nodes in use."""
    edges: npt.NDArray[np.int32]
    """int32[B], edges in use."""
    leaves: npt.NDArray[np.int32]
    """int32[B], the node whose judgement is awaited, -1 for none."""
    noise: npt.NDArray[np.float32]
    """float32[B, 64], Gumbel noise of the root's edges; minus infinity: not considered."""


def _forest(games: int, simulations: int) -> Forest:
    nodes = simulations + 2
    edges = _EDGES * nodes + 2 * MAX_SUCCESSORS
    return Forest(
        words=np.zeros((games, edges, SUCCESSOR_WORDS), np.uint64),
        logits=np.zeros((games, edges), np.float32),
        visits=np.zeros((games, edges), np.int32),
        totals=np.zeros((games, edges), np.float32),
        child=np.zeros((games, edges), np.int32),
        owner=np.zeros((games, edges), np.int32),
        first=np.zeros((games, nodes), np.int32),
        branches=np.zeros((games, nodes), np.int32),
        above=np.zeros((games, nodes), np.int32),
        values=np.zeros((games, nodes), np.float32),
        passed=np.zeros((games, nodes), np.int32),
        nodes=np.zeros(games, np.int32),
        edges=np.zeros(games, np.int32),
        leaves=np.zeros(games, np.int32),
        noise=np.zeros((games, MAX_SUCCESSORS), np.float32),
    )


def visit_schedule(actions: int, simulations: int) -> list[int]:
    """Sequential halving: how often the action that each simulation tries was tried before.

    All ``actions`` are tried equally often at first; then the better half goes on, and so
    forth, each round with an equal share of the simulations.
    """
    if actions <= 1:
        return list(range(simulations))
    rounds = math.ceil(math.log2(actions))
    visits = [0] * actions
    left = actions
    schedule: list[int] = []
    while len(schedule) < simulations:
        for _ in range(max(1, simulations // (rounds * left))):
            schedule += visits[:left]
            for i in range(left):
                visits[i] += 1
        left = max(2, left // 2)
    return schedule[:simulations]


@jit
def _add_node(
    rules, forest, g, front, back, other_front, other_back, meta, above, row, board, mover
):
    """A new node and its edges; its row for the network. Returns the node."""
    node = np.int64(forest.nodes[g])
    base = np.int64(forest.edges[g])
    words = forest.words[g]
    count = successors(rules, front, back, other_front, other_back, meta, words, base)
    forest.nodes[g] = node + 1
    forest.first[g, node] = base
    forest.branches[g, node] = count
    forest.above[g, node] = above
    forest.passed[g, node] = 0
    forest.values[g, node] = 0.0
    for e in range(base, base + count):
        forest.visits[g, e] = 0
        forest.totals[g, e] = 0.0
        forest.child[g, e] = _NOBODY
        forest.owner[g, e] = node
    if base + count + 2 * MAX_SUCCESSORS <= words.shape[0]:
        forest.edges[g] = base + count
    else:
        forest.branches[g, node] = 0  # no room: the next node writes over these edges
    board[0, MOVER_FRONT] = front
    board[0, MOVER_BACK] = back
    board[0, OTHER_FRONT] = other_front
    board[0, OTHER_BACK] = other_back
    board[0, META] = meta
    observe_compiled(board, mover, ONE, row.reshape(1, row.shape[0]))
    add_successors(words, base, count, row)
    return node, count


@jit
def _plant(rules, forest, positions, rows, board, mover):
    """Begin a tree for each position; fills a row for each."""
    for g in range(positions.shape[0]):
        forest.nodes[g] = 0
        forest.edges[g] = 0
        _add_node(
            rules,
            forest,
            g,
            positions[g, MOVER_FRONT],
            positions[g, MOVER_BACK],
            positions[g, OTHER_FRONT],
            positions[g, OTHER_BACK],
            positions[g, META],
            _NOBODY,
            rows[g],
            board,
            mover,
        )
        forest.leaves[g] = 0


@jit
def _draw_noise(forest, scale, rng, games):
    """Gumbel noise for the root's edges, and which of them are considered at all."""
    for g in range(games):
        count = np.int64(forest.branches[g, 0])
        for e in range(count):
            x = xorshift(rng[g])
            rng[g] = x
            uniform = (float(x >> _40) + 0.5) * 2.0**-24
            forest.noise[g, e] = -math.log(-math.log(uniform)) * scale
        if count > CONSIDERED:
            for e in range(count):
                better = 0
                mine = forest.noise[g, e] + forest.logits[g, e]
                for other in range(count):
                    theirs = forest.noise[g, other] + forest.logits[g, other]
                    if theirs > mine or (theirs == mine and other < e):
                        better += 1
                if better >= CONSIDERED:
                    forest.owner[g, e] = _NOBODY  # struck out below, once all are compared
            for e in range(count):
                if forest.owner[g, e] == _NOBODY:
                    forest.owner[g, e] = 0
                    forest.noise[g, e] = -np.inf


@jit
def _improve(forest, g, node, out):
    """The improved policy's logits of a node's edges: logits plus transformed values.

    Edges never visited get the value that the paper calls v_mix: the network's, corrected by
    what has been found out about the edges that were.
    """
    first = np.int64(forest.first[g, node])
    count = np.int64(forest.branches[g, node])
    top = forest.logits[g, first]
    most = np.int32(0)
    for e in range(first, first + count):
        top = max(top, forest.logits[g, e])
        most = max(most, forest.visits[g, e])
    mixed = forest.values[g, node]
    if most > 0:
        weight = np.float32(0.0)
        known = np.float32(0.0)
        for e in range(first, first + count):
            if forest.visits[g, e] > 0:
                prior = np.float32(math.exp(forest.logits[g, e] - top))
                weight += prior
                known += prior * (forest.totals[g, e] / np.float32(forest.visits[g, e]))
        if weight > np.float32(1e-12):
            passed = np.float32(forest.passed[g, node])
            mixed = (mixed + passed * known / weight) / (np.float32(1.0) + passed)
    scale = np.float32(VALUE_SCALE * 0.5) * (np.float32(VISIT_OFFSET) + np.float32(most))
    for i in range(count):
        e = first + i
        value = mixed
        if forest.visits[g, e] > 0:
            value = forest.totals[g, e] / np.float32(forest.visits[g, e])
        out[i] = forest.logits[g, e] + scale * value


@jit
def _softmax(x, count):
    """In place, of the first ``count`` numbers."""
    top = x[0]
    for i in range(1, count):
        top = max(top, x[i])
    total = np.float32(0.0)
    for i in range(count):
        x[i] = np.float32(math.exp(x[i] - top))
        total += x[i]
    for i in range(count):
        x[i] /= total


@jit
def _root_edge(forest, g, wanted, improved):
    """Among the root's edges visited ``wanted`` times, the one that promises most."""
    count = np.int64(forest.branches[g, 0])
    _improve(forest, g, 0, improved)
    best = np.int64(0)
    best_score = -np.inf
    for e in range(count):
        score = improved[e] + forest.noise[g, e]
        if forest.visits[g, e] == wanted and score > best_score:
            best_score = score
            best = e
    if best_score == -np.inf:  # the schedule asks for more than there is
        for e in range(count):
            score = improved[e] + forest.noise[g, e]
            if score > best_score:
                best_score = score
                best = e
    return best


@jit
def _inner_edge(forest, g, node, improved):
    """The edge that most needs a visit for visits to follow the improved policy."""
    first = np.int64(forest.first[g, node])
    count = np.int64(forest.branches[g, node])
    _improve(forest, g, node, improved)
    _softmax(improved, count)
    share = np.float32(1.0) / (np.float32(1.0) + np.float32(forest.passed[g, node]))
    best = first
    best_score = -np.inf
    for i in range(count):
        score = improved[i] - np.float32(forest.visits[g, first + i]) * share
        if score > best_score:
            best_score = score
            best = first + i
    return best


@jit
def _hand_up(forest, g, edge, value, discount):
    """Add a value, for the player who chose ``edge``, to it and all that lead to it."""
    while True:
        forest.visits[g, edge] += 1
        forest.totals[g, edge] += value
        node = np.int64(forest.owner[g, edge])
        forest.passed[g, node] += 1
        if node == 0:
            return
        edge = np.int64(forest.above[g, node])
        value *= discount
        if not same_mover(forest.words[g, edge, META]):
            value = -value


@jit
def _walk(rules, forest, schedule, simulation, discount, rows, improved, board, mover, games):
    """One simulation of each game down to a leaf; fills a row for each leaf."""
    words = forest.words
    for g in range(games):
        forest.leaves[g] = _NOBODY
        count = np.int64(forest.branches[g, 0])
        if count == 0:
            continue
        edge = _root_edge(forest, g, schedule[min(count, CONSIDERED), simulation], improved)
        while True:
            if words[g, edge, RESULT] != ZERO:
                value = np.float32(1.0) if words[g, edge, RESULT] == ONE else np.float32(-1.0)
                _hand_up(forest, g, edge, value, discount)
                break
            node = np.int64(forest.child[g, edge])
            if node == _NOBODY:
                node, moves = _add_node(
                    rules,
                    forest,
                    g,
                    words[g, edge, MOVER_FRONT],
                    words[g, edge, MOVER_BACK],
                    words[g, edge, OTHER_FRONT],
                    words[g, edge, OTHER_BACK],
                    words[g, edge, META],
                    edge,
                    rows[g],
                    board,
                    mover,
                )
                forest.child[g, edge] = node
                if moves == 0:  # the player to move there has lost (1.2)
                    words[g, edge, RESULT] = ONE
                    _hand_up(forest, g, edge, np.float32(1.0), discount)
                else:
                    forest.leaves[g] = node
                break
            if forest.branches[g, node] == 0:  # it had no room to be expanded
                value = discount * forest.values[g, node]
                if not same_mover(words[g, edge, META]):
                    value = -value
                _hand_up(forest, g, edge, value, discount)
                break
            edge = _inner_edge(forest, g, node, improved)


@jit
def _take(forest, outputs, discount, games):
    """Note the network's judgement of the leaves, and hand it up."""
    for g in range(games):
        node = np.int64(forest.leaves[g])
        if node == _NOBODY:
            continue
        first = np.int64(forest.first[g, node])
        for e in range(first, first + np.int64(forest.branches[g, node])):
            forest.logits[g, e] = outputs[g, np.int64(forest.words[g, e, ACTION])]
        value = np.float32(math.tanh(outputs[g, outputs.shape[1] - 1]))
        forest.values[g, node] = value
        if node == 0:
            continue
        edge = np.int64(forest.above[g, node])
        value *= discount
        if not same_mover(forest.words[g, edge, META]):
            value = -value
        _hand_up(forest, g, edge, value, discount)


@jit
def _conclude(forest, games, improved, actions, policies, values):
    """What each search found: action, improved policy, value."""
    for g in range(games):
        actions[g] = 0
        values[g] = 0.0
        policies[g] = 0.0
        count = np.int64(forest.branches[g, 0])
        if count == 0:
            continue
        _improve(forest, g, 0, improved)
        most = np.int32(0)
        for e in range(count):
            if forest.noise[g, e] != -np.inf:
                most = max(most, forest.visits[g, e])
        best = np.int64(0)
        best_score = -np.inf
        for e in range(count):
            score = improved[e] + forest.noise[g, e]
            if forest.visits[g, e] == most and score > best_score:
                best_score = score
                best = e
        actions[g] = np.int64(forest.words[g, best, ACTION])
        _softmax(improved, count)
        for e in range(count):
            policies[g, np.int64(forest.words[g, e, ACTION])] = improved[e]
            value = forest.values[g, 0]
            if forest.visits[g, e] > 0:
                value = forest.totals[g, e] / np.float32(forest.visits[g, e])
            values[g] += improved[e] * value


class Found(NamedTuple):
    """What searches of B positions found."""

    actions: npt.NDArray[np.int64]
    """int64[B], the actions to play."""
    policies: npt.NDArray[np.float32]
    """float32[B, 64], the improved policies, to learn from."""
    values: npt.NDArray[np.float32]
    """float32[B], expected results under them."""
    rows: npt.NDArray[np.uint8]
    """uint8[B, row_size], what the network read of the positions."""


class GumbelSearch:
    """Searches for up to ``games`` positions at a time with one network.

    Args:
        rules: to search by.
        network: of kind ``board`` or ``actions``; used as it is, whatever its dtype and device.
        games: most positions a call.
        simulations: of each search, at least 2.
        discount: a win is worth so much less a ply, so that sooner is better.

    Raises:
        ValueError: the network judges options, or a number is out of range.
    """

    def __init__(
        self,
        rules: KernelRules,
        network: PolicyNetwork,
        games: int,
        simulations: int,
        discount: float = 0.998,
    ) -> None:
        if network.config.per_option:
            raise ValueError("search needs a network of kind board or actions, not moves")
        if not 2 <= simulations <= 1_000_000:
            raise ValueError(f"{simulations} simulations: expected 2 to 1000000")
        self.network = network
        self.simulations = simulations
        self._rules = rules
        self._discount = np.float32(discount)
        self._forest = _forest(games, simulations)
        self._rows = np.zeros((games, network.config.row_size), np.uint8)
        self._improved = np.empty(MAX_SUCCESSORS, np.float32)
        self._board = np.zeros((1, WORDS), np.uint64)
        self._mover = np.full(1, -1, np.int8)  # a row is always seen by the player to move
        self._schedule = np.array(
            [visit_schedule(n, simulations) for n in range(CONSIDERED + 1)], np.int32
        )

    def _judge(self, games: int) -> npt.NDArray[np.float32]:
        with torch.inference_mode():
            return self.network.judge(torch.from_numpy(self._rows[:games])).cpu().numpy()

    def search(
        self,
        positions: npt.NDArray[np.uint64],
        rng: npt.NDArray[np.uint64] | None = None,
    ) -> Found:
        """Search positions uint64[B, 6], B at most ``games``.

        ``rng``, uint64[B], non-zero and advanced in place, draws Gumbel noise at the roots,
        as training needs it; without it the search takes what it finds best.
        """
        games = len(positions)
        forest = self._forest
        _plant(self._rules, forest, positions, self._rows, self._board, self._mover)
        rows = self._rows[:games].copy()
        _take(forest, self._judge(games), self._discount, games)
        noise = rng if rng is not None else np.ones(games, np.uint64)
        _draw_noise(forest, 0.0 if rng is None else 1.0, noise, games)
        for simulation in range(self.simulations):
            _walk(
                self._rules,
                forest,
                self._schedule,
                simulation,
                self._discount,
                self._rows,
                self._improved,
                self._board,
                self._mover,
                games,
            )
            _take(forest, self._judge(games), self._discount, games)
        found = Found(
            np.empty(games, np.int64),
            np.empty((games, 64), np.float32),
            np.empty(games, np.float32),
            rows,
        )
        _conclude(forest, games, self._improved, *found[:3])
        return found
