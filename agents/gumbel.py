"""Gumbel tree search with a network, for many positions a call.

Danihelka, Guez, Schrittwieser and Silver, "Policy improvement by planning with Gumbel"
(ICLR 2022). At the root, actions are drawn without replacement by the Gumbel-top-k trick and
sequential halving spends the simulations on them; below it, actions are taken so that
visits follow the improved policy, the softmax of logits plus transformed values. No
exploration constant is needed, and few simulations suffice to improve on the policy.

Each game has a tree of its own. On a processor the network is compiled
(:mod:`agents.inference`) and one tree after another grows to its end, which keeps it in the
cache. With a network on a GPU all trees grow in lock step: a simulation walks every tree to a
leaf, and the leaves go through the network as one batch. Expanding a leaf plays all of its
actions (:mod:`bao_env.engine.successors`), so results of the game are known at once.

A win known for certain is always taken, a known loss only where there is nothing else
(:mod:`agents.forest`).
"""

from __future__ import annotations

import math
import time
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from agents.forest import NOBODY, add_node, hand_up, known_edge, make_forest, prove
from agents.inference import compile_network, judge, make_room
from agents.network import TRUST, PolicyNetwork
from agents.rows import ROW_STEP, Reader, make_reader, padded_rows, write_rows
from bao_env.engine.bits import FULL, ONE, ZERO, U, xorshift
from bao_env.engine.compile import jit
from bao_env.engine.position import META, MOVER_BACK, MOVER_FRONT, OTHER_BACK, OTHER_FRONT
from bao_env.engine.ruleset import KernelRules
from bao_env.engine.successors import (
    ACTION,
    MAX_SUCCESSORS,
    RESULT,
    same_mover,
)

CONSIDERED: Final = 16
"""Most root actions that are looked into."""
VISIT_OFFSET: Final = 50.0
"""The paper's c_visit."""
VISIT_GROWTH: Final = 3.0
"""Trust in values grows with the square root of the most visits, times this. In the paper it
grows with the visits themselves, which in long searches leaves no visits to second thoughts."""
VALUE_SCALE: Final = 0.5
"""The paper's c_scale, for values between 0 and 1."""
_CERTAIN: Final = np.float32(1000.0)
"""Added to the logit of a known win, taken from that of a known loss."""

_18: Final = U(18)
_40: Final = U(40)


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
def _plant(rules, forest, positions, rows, s):
    """Begin a tree for each position; fills the rows of the roots."""
    at = np.int64(0)
    for g in range(positions.shape[0]):
        forest.nodes[g] = 0
        forest.edges[g] = 0
        front = positions[g, MOVER_FRONT]
        back = positions[g, MOVER_BACK]
        other_front = positions[g, OTHER_FRONT]
        other_back = positions[g, OTHER_BACK]
        meta = positions[g, META]
        add_node(rules, forest, g, front, back, other_front, other_back, meta, NOBODY)
        forest.leaves[g] = 0
        forest.starts[g] = at
        words = forest.words[g]
        last = np.int64(forest.branches[g, 0])
        at = write_rows(
            rules, s.reader, words, 0, last, front, back, other_front, other_back, meta, rows, at
        )
    forest.starts[positions.shape[0]] = at


@jit
def _certainty(forest, g, edge):
    """What is added to the logit of an edge because its result is known."""
    if forest.words[g, edge, RESULT] == ZERO:
        return np.float32(0.0)
    if forest.words[g, edge, RESULT] != ONE:
        return -_CERTAIN
    if forest.child[g, edge] == NOBODY:
        return _CERTAIN + _CERTAIN  # at once is better than in the end
    return _CERTAIN


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
                mine = forest.noise[g, e] + forest.logits[g, e] + _certainty(forest, g, e)
                for other in range(count):
                    theirs = forest.noise[g, other] + forest.logits[g, other]
                    theirs += _certainty(forest, g, other)
                    if theirs > mine or (theirs == mine and other < e):
                        better += 1
                if better >= CONSIDERED:
                    forest.owner[g, e] = NOBODY  # struck out below, once all are compared
            for e in range(count):
                if forest.owner[g, e] == NOBODY:
                    forest.owner[g, e] = 0
                    forest.noise[g, e] = -np.inf


@jit
def _improve(forest, g, node, per_option, out):
    """The improved policy's logits of a node's edges: logits plus transformed values.

    Edges never visited get what the network expects of them, if it judges options; else the value
    that the paper calls v_mix: the network's for the node, corrected by what has been found out
    about the edges that were visited.
    """
    first = np.int64(forest.first[g, node])
    count = np.int64(forest.branches[g, node])
    top = forest.logits[g, first]
    most = np.int32(0)
    for e in range(first, first + count):
        top = max(top, forest.logits[g, e])
        most = max(most, forest.visits[g, e])
    mixed = forest.values[g, node]
    if most > 0 and per_option == 0:
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
    growth = np.float32(VISIT_GROWTH * math.sqrt(most))
    scale = np.float32(VALUE_SCALE * 0.5) * (np.float32(VISIT_OFFSET) + growth)
    for i in range(count):
        e = first + i
        value = forest.worths[g, e] if per_option != 0 else mixed
        if forest.visits[g, e] > 0:
            value = forest.totals[g, e] / np.float32(forest.visits[g, e])
        out[i] = forest.logits[g, e] + scale * value + _certainty(forest, g, e)


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
def _root_edge(forest, g, wanted, per_option, improved):
    """Among the root's edges visited ``wanted`` times, the one that promises most."""
    count = np.int64(forest.branches[g, 0])
    _improve(forest, g, 0, per_option, improved)
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
def _inner_edge(forest, g, node, per_option, improved):
    """The edge that most needs a visit for visits to follow the improved policy."""
    first = np.int64(forest.first[g, node])
    count = np.int64(forest.branches[g, node])
    _improve(forest, g, node, per_option, improved)
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
def _walk(rules, forest, schedule, simulation, discount, rows, s, games):
    """One simulation of each game down to a leaf; fills the rows of the leaves."""
    words = forest.words
    at = np.int64(0)
    for g in range(games):
        forest.leaves[g] = NOBODY
        forest.starts[g] = at
        count = np.int64(forest.branches[g, 0])
        if count == 0:
            continue
        wanted = schedule[min(count, CONSIDERED), simulation]
        edge = _root_edge(forest, g, wanted, s.per_option, s.improved)
        while True:
            if words[g, edge, RESULT] != ZERO:
                value = np.float32(1.0) if words[g, edge, RESULT] == ONE else np.float32(-1.0)
                hand_up(forest, g, edge, value, discount)
                break
            node = np.int64(forest.child[g, edge])
            if node == NOBODY:
                front = words[g, edge, MOVER_FRONT]
                back = words[g, edge, MOVER_BACK]
                other_front = words[g, edge, OTHER_FRONT]
                other_back = words[g, edge, OTHER_BACK]
                meta = words[g, edge, META]
                node = add_node(rules, forest, g, front, back, other_front, other_back, meta, edge)
                forest.child[g, edge] = node
                if forest.branches[g, node] == 0:  # the player to move there has lost (1.2)
                    value = np.float32(-1.0) if same_mover(meta) else np.float32(1.0)
                    words[g, edge, RESULT] = ONE if value > 0 else FULL
                    prove(forest, g, edge)
                    hand_up(forest, g, edge, value, discount)
                    break
                first = np.int64(forest.first[g, node])
                last = first + np.int64(forest.branches[g, node])
                at = write_rows(
                    rules,
                    s.reader,
                    words[g],
                    first,
                    last,
                    front,
                    back,
                    other_front,
                    other_back,
                    meta,
                    rows,
                    at,
                )
                forest.leaves[g] = node
                break
            if forest.branches[g, node] == 0:  # it had no room to be expanded
                value = discount * forest.values[g, node]
                if not same_mover(words[g, edge, META]):
                    value = -value
                hand_up(forest, g, edge, value, discount)
                break
            edge = _inner_edge(forest, g, node, s.per_option, s.improved)
    forest.starts[games] = at


@jit
def _read(forest, g, node, outputs, discount, s):
    """Note the network's judgement of a node; returns the node's value."""
    first = np.int64(forest.first[g, node])
    last = first + np.int64(forest.branches[g, node])
    at = forest.starts[g]
    if s.per_option == 0:
        for e in range(first, last):
            forest.logits[g, e] = outputs[at, np.int64(forest.words[g, e, ACTION])]
        return np.float32(math.tanh(outputs[at, outputs.shape[1] - 1]))
    # Options whose result is known need no judgement; their logits trust it like any other.
    for e in range(first, last):
        if forest.words[g, e, RESULT] != ZERO:
            won = forest.words[g, e, RESULT] == ONE
            forest.worths[g, e] = np.float32(1.0) if won else np.float32(-1.0)
            forest.logits[g, e] = np.float32(TRUST) * forest.worths[g, e]
        else:
            worth = np.float32(math.tanh(outputs[at, 1]))
            forest.worths[g, e] = worth
            forest.logits[g, e] = outputs[at, 0] + np.float32(TRUST) * worth
            at += 1
    for i in range(last - first):
        s.improved[i] = forest.logits[g, first + i]
    _softmax(s.improved, last - first)
    value = np.float32(0.0)
    for i in range(last - first):
        value += s.improved[i] * forest.worths[g, first + i]
    return value


@jit
def _take(forest, outputs, discount, games, s):
    """Note the network's judgement of the leaves, and hand it up."""
    for g in range(games):
        node = np.int64(forest.leaves[g])
        if node == NOBODY or forest.branches[g, node] == 0:
            continue
        value = _read(forest, g, node, outputs, discount, s)
        known = known_edge(forest, g, node)
        if known != NOBODY:
            value = np.float32(1.0) if forest.words[g, known, RESULT] == ONE else np.float32(-1.0)
            prove(forest, g, known)
        forest.values[g, node] = value
        # No room for the edges: the next node writes over them.
        first = np.int64(forest.first[g, node])
        if np.int64(forest.edges[g]) == first:
            forest.branches[g, node] = 0
        if node == 0:
            continue
        edge = np.int64(forest.above[g, node])
        value *= discount
        if not same_mover(forest.words[g, edge, META]):
            value = -value
        hand_up(forest, g, edge, value, discount)


@jit
def _conclude(forest, games, per_option, improved, actions, policies, values, worths):
    """What each search found: action, improved policy, value, and that of each action."""
    for g in range(games):
        actions[g] = 0
        values[g] = 0.0
        policies[g] = 0.0
        worths[g] = np.nan
        count = np.int64(forest.branches[g, 0])
        if count == 0:
            continue
        _improve(forest, g, 0, per_option, improved)
        most = np.int32(0)  # visits of the finalist, known losses apart
        for e in range(count):
            if forest.noise[g, e] != -np.inf and forest.words[g, e, RESULT] != FULL:
                most = max(most, forest.visits[g, e])
        best = np.int64(0)
        best_score = -np.inf
        for e in range(count):
            known = forest.words[g, e, RESULT] != ZERO
            score = improved[e]
            if not known or forest.noise[g, e] != -np.inf:
                score += forest.noise[g, e]
            if (known or forest.visits[g, e] == most) and score > best_score:
                best_score = score
                best = e
        actions[g] = np.int64(forest.words[g, best, ACTION])
        _softmax(improved, count)
        for e in range(count):
            action = np.int64(forest.words[g, e, ACTION])
            policies[g, action] = improved[e]
            value = forest.worths[g, e] if per_option != 0 else forest.values[g, 0]
            if forest.visits[g, e] > 0:
                value = forest.totals[g, e] / np.float32(forest.visits[g, e])
                worths[g, action] = value
            values[g] += improved[e] * value


class Found(NamedTuple):
    """What searches of B positions found."""

    actions: npt.NDArray[np.int64]
    """int64[B], the actions to play."""
    policies: npt.NDArray[np.float32]
    """float32[B, 64], the improved policies, to learn from."""
    values: npt.NDArray[np.float32]
    """float32[B], expected results under them."""
    worths: npt.NDArray[np.float32]
    """float32[B, 64], expected results of the actions visited; else not a number."""


class _Scratch(NamedTuple):
    """What one thread's compiled functions work in."""

    per_option: int
    """1 for a network that judges options, else 0."""
    improved: npt.NDArray[np.float32]
    """float32[64]."""
    reader: Reader


@jit
def _search_each(
    rules, forest, weights, room, schedule, discount, noise, positions, rng, rows, outputs, s, found
):
    """Search one position after another with a compiled network.

    ``forest`` has room for one tree; ``found`` are the arrays of :class:`Found`. Returns how many
    rows the network has judged.
    """
    actions, policies, values, worths = found
    judged = np.int64(0)
    for g in range(positions.shape[0]):
        _plant(rules, forest, positions[g : g + 1], rows, s)
        judge(weights, rows, forest.starts[1], room, outputs)
        judged += forest.starts[1]
        _take(forest, outputs, discount, 1, s)
        _draw_noise(forest, noise, rng[g : g + 1], 1)
        for simulation in range(schedule.shape[1]):
            _walk(rules, forest, schedule, simulation, discount, rows, s, 1)
            judge(weights, rows, forest.starts[1], room, outputs)
            judged += forest.starts[1]
            _take(forest, outputs, discount, 1, s)
        _conclude(
            forest,
            1,
            s.per_option,
            s.improved,
            actions[g : g + 1],
            policies[g : g + 1],
            values[g : g + 1],
            worths[g : g + 1],
        )
    return judged


class GumbelSearch:
    """Searches for up to ``games`` positions at a time with one network.

    Args:
        rules: to search by.
        network: on a processor compiled as it is now, see :meth:`follow`; on a GPU used there.
        games: most positions a call.
        simulations: of each search, at least 2.
        discount: a win is worth so much less a ply, so that sooner is better.
        lock_step: grow all trees together, as on a GPU; by default only there.

    Raises:
        ValueError: a number is out of range.
    """

    def __init__(
        self,
        rules: KernelRules,
        network: PolicyNetwork,
        games: int,
        simulations: int,
        discount: float = 0.998,
        *,
        lock_step: bool | None = None,
    ) -> None:
        if not 2 <= simulations <= 1_000_000:
            raise ValueError(f"{simulations} simulations: expected 2 to 1000000")
        if lock_step is None:
            lock_step = next(network.parameters()).device.type != "cpu"
        self.network = network
        self.simulations = simulations
        self.network_seconds = 0.0
        """Time that the network has taken so far; told in lock step only."""
        self.rows_judged = 0
        """Rows that the network has read so far."""
        self._rules = rules
        self._games = games
        self._discount = np.float32(discount)
        self._lock_step = lock_step
        at_once = games if lock_step else 1
        self._forest = make_forest(at_once, simulations)
        self._rows = padded_rows(at_once * (MAX_SUCCESSORS if network.config.per_option else 1))
        self._scratch = _Scratch(
            per_option=int(network.config.per_option),
            improved=np.empty(MAX_SUCCESSORS, np.float32),
            reader=make_reader(network.config.per_option),
        )
        self._schedule = np.array(
            [visit_schedule(n, simulations) for n in range(CONSIDERED + 1)], np.int32
        )
        if not lock_step:
            self._weights = compile_network(network)
            self._room = make_room(self._weights)
            head = int(self._weights.widths[-1])
            self._outputs = np.empty((MAX_SUCCESSORS, head), np.float32)

    def follow(self, network: PolicyNetwork) -> None:
        """Search with the weights of ``network``, of the same shape, as they are now."""
        self.network = network
        if not self._lock_step:
            self._weights = compile_network(network)

    def _judge(self, games: int) -> npt.NDArray[np.float32]:
        count = int(self._forest.starts[games])
        step = ROW_STEP if count > ROW_STEP else 64
        rows = self._rows[: -(-count // step) * step]
        if not count:
            return np.zeros((1, 2), np.float32)
        start = time.perf_counter()
        with torch.inference_mode():
            outputs = self.network.judge(torch.from_numpy(rows)).cpu().numpy()
        self.network_seconds += time.perf_counter() - start
        self.rows_judged += count
        return outputs

    def search(
        self,
        positions: npt.NDArray[np.uint64],
        rng: npt.NDArray[np.uint64] | None = None,
    ) -> Found:
        """Search positions uint64[B, 6], B at most ``games``.

        ``rng``, uint64[B], non-zero and advanced in place, draws Gumbel noise at the roots,
        as training needs it; without it the search takes what it finds best.

        Raises:
            ValueError: there are more than ``games`` positions.
        """
        games = len(positions)
        if games > self._games:
            raise ValueError(f"{games} positions: expected at most {self._games}")
        noise = np.float32(0.0 if rng is None else 1.0)
        states = rng if rng is not None else np.ones(games, np.uint64)
        found = Found(
            np.empty(games, np.int64),
            np.empty((games, 64), np.float32),
            np.empty(games, np.float32),
            np.empty((games, 64), np.float32),
        )
        if self._lock_step:
            self._search_together(positions, noise, states, found)
        else:
            self.rows_judged += _search_each(
                self._rules,
                self._forest,
                self._weights,
                self._room,
                self._schedule,
                self._discount,
                noise,
                positions,
                states,
                self._rows,
                self._outputs,
                self._scratch,
                found,
            )
        return found

    def _search_together(
        self,
        positions: npt.NDArray[np.uint64],
        noise: np.float32,
        rng: npt.NDArray[np.uint64],
        found: Found,
    ) -> None:
        """:func:`_search_each` in lock step, with the network as a batch."""
        games, forest = len(positions), self._forest
        rules, rows, s = self._rules, self._rows, self._scratch
        _plant(rules, forest, positions, rows, s)
        _take(forest, self._judge(games), self._discount, games, s)
        _draw_noise(forest, noise, rng, games)
        for simulation in range(self.simulations):
            _walk(rules, forest, self._schedule, simulation, self._discount, rows, s, games)
            _take(forest, self._judge(games), self._discount, games, s)
        _conclude(forest, games, s.per_option, s.improved, *found)
