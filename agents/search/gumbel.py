"""Gumbel tree search with a network, for many positions a call.

Danihelka, Guez, Schrittwieser and Silver, "Policy improvement by planning with Gumbel"
(ICLR 2022). At the root, actions are drawn without replacement by the Gumbel-top-k trick and
sequential halving spends the simulations on them; below it, actions are taken so that
visits follow the improved policy, the softmax of logits plus transformed values. No
exploration constant is needed, and few simulations suffice to improve on the policy.

Each game has a tree of its own. On a processor the network is compiled
(:mod:`agents.nets.compiled`) and one tree after another grows to its end, which keeps it in the
cache. With a network on a GPU all trees grow in lock step: a simulation walks every tree to a
leaf, and the leaves go through the network as one batch. Expanding a leaf plays all of its
actions (:mod:`bao_env.engine.successors`), so results of the game are known at once.

A win known for certain is always taken, a known loss only where there is nothing else
(:mod:`agents.search.tree`).
"""

from __future__ import annotations

import math
import time
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from agents.nets.compiled import compile_network, forward, make_network_workspace
from agents.nets.encoding import (
    ENCODING_STEP,
    EncoderWorkspace,
    encode_successors,
    make_encoder_workspace,
    padded_encodings,
)
from agents.nets.network import TRUST, PolicyNetwork
from agents.search.tree import NO_NODE, add_node, backup, known_edge, make_tree, prove
from bao_env.engine.bits import FULL, ONE, ZERO, U, xorshift
from bao_env.engine.compile import jit
from bao_env.engine.position import META, read_at, same_mover
from bao_env.engine.ruleset import KernelRules
from bao_env.engine.successors import (
    ACTION,
    MAX_SUCCESSORS,
    RESULT,
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
    edge_visits = [0] * actions
    left = actions
    schedule: list[int] = []
    while len(schedule) < simulations:
        for _ in range(max(1, simulations // (rounds * left))):
            schedule += edge_visits[:left]
            for i in range(left):
                edge_visits[i] += 1
        left = max(2, left // 2)
    return schedule[:simulations]


@jit
def _init_roots(rules, tree, positions, rows, s):
    """Begin a tree for each position; fills the rows of the roots."""
    at = np.int64(0)
    for g in range(positions.shape[0]):
        tree.nodes[g] = 0
        tree.edges[g] = 0
        packed = read_at(positions, g)
        add_node(rules, tree, g, packed, NO_NODE)
        tree.leaves[g] = 0
        tree.starts[g] = at
        words = tree.words[g]
        last = np.int64(tree.num_edges[g, 0])
        at = encode_successors(rules, s.reader, words, 0, last, packed, rows, at)
    tree.starts[positions.shape[0]] = at


@jit
def _certainty(tree, g, edge):
    """What is added to the logit of an edge because its result is known."""
    if tree.words[g, edge, RESULT] == ZERO:
        return np.float32(0.0)
    if tree.words[g, edge, RESULT] != ONE:
        return -_CERTAIN
    if tree.child[g, edge] == NO_NODE:
        return _CERTAIN + _CERTAIN  # at once is better than in the end
    return _CERTAIN


@jit
def _draw_noise(tree, scale, rng, games):
    """Gumbel noise for the root's edges, and which of them are considered at all."""
    for g in range(games):
        count = np.int64(tree.num_edges[g, 0])
        for e in range(count):
            x = xorshift(rng[g])
            rng[g] = x
            uniform = (float(x >> _40) + 0.5) * 2.0**-24
            tree.noise[g, e] = -math.log(-math.log(uniform)) * scale
        if count > CONSIDERED:
            for e in range(count):
                better = 0
                mine = tree.noise[g, e] + tree.logits[g, e] + _certainty(tree, g, e)
                for other in range(count):
                    theirs = tree.noise[g, other] + tree.logits[g, other]
                    theirs += _certainty(tree, g, other)
                    if theirs > mine or (theirs == mine and other < e):
                        better += 1
                if better >= CONSIDERED:
                    tree.edge_node[g, e] = NO_NODE  # struck out below, once all are compared
            for e in range(count):
                if tree.edge_node[g, e] == NO_NODE:
                    tree.edge_node[g, e] = 0
                    tree.noise[g, e] = -np.inf


@jit
def _improve(tree, g, node, per_action, out):
    """The improved policy's logits of a node's edges: logits plus transformed values.

    Edges never visited get what the network expects of them, if it judges each; else the value
    that the paper calls v_mix: the network's for the node, corrected by what has been found out
    about the edges that were visited.
    """
    first_edge = np.int64(tree.first_edge[g, node])
    count = np.int64(tree.num_edges[g, node])
    top = tree.logits[g, first_edge]
    most = np.int32(0)
    for e in range(first_edge, first_edge + count):
        top = max(top, tree.logits[g, e])
        most = max(most, tree.edge_visits[g, e])
    mixed = tree.node_values[g, node]
    if most > 0 and per_action == 0:
        weight = np.float32(0.0)
        known = np.float32(0.0)
        for e in range(first_edge, first_edge + count):
            if tree.edge_visits[g, e] > 0:
                prior = np.float32(math.exp(tree.logits[g, e] - top))
                weight += prior
                known += prior * (tree.value_sums[g, e] / np.float32(tree.edge_visits[g, e]))
        if weight > np.float32(1e-12):
            node_visits = np.float32(tree.node_visits[g, node])
            mixed = (mixed + node_visits * known / weight) / (np.float32(1.0) + node_visits)
    growth = np.float32(VISIT_GROWTH * math.sqrt(most))
    scale = np.float32(VALUE_SCALE * 0.5) * (np.float32(VISIT_OFFSET) + growth)
    for i in range(count):
        e = first_edge + i
        value = tree.qvalues[g, e] if per_action != 0 else mixed
        if tree.edge_visits[g, e] > 0:
            value = tree.value_sums[g, e] / np.float32(tree.edge_visits[g, e])
        out[i] = tree.logits[g, e] + scale * value + _certainty(tree, g, e)


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
def _root_edge(tree, g, wanted, per_action, improved):
    """Among the root's edges visited ``wanted`` times, the one that promises most."""
    count = np.int64(tree.num_edges[g, 0])
    _improve(tree, g, 0, per_action, improved)
    best = np.int64(0)
    best_score = -np.inf
    for e in range(count):
        score = improved[e] + tree.noise[g, e]
        if tree.edge_visits[g, e] == wanted and score > best_score:
            best_score = score
            best = e
    if best_score == -np.inf:  # the schedule asks for more than there is
        for e in range(count):
            score = improved[e] + tree.noise[g, e]
            if score > best_score:
                best_score = score
                best = e
    return best


@jit
def _inner_edge(tree, g, node, per_action, improved):
    """The edge that most needs a visit for visits to follow the improved policy."""
    first_edge = np.int64(tree.first_edge[g, node])
    count = np.int64(tree.num_edges[g, node])
    _improve(tree, g, node, per_action, improved)
    _softmax(improved, count)
    share = np.float32(1.0) / (np.float32(1.0) + np.float32(tree.node_visits[g, node]))
    best = first_edge
    best_score = -np.inf
    for i in range(count):
        score = improved[i] - np.float32(tree.edge_visits[g, first_edge + i]) * share
        if score > best_score:
            best_score = score
            best = first_edge + i
    return best


@jit
def _select(rules, tree, schedule, simulation, discount, rows, s, games):
    """One simulation of each game down to a leaf; fills the rows of the leaves."""
    words = tree.words
    at = np.int64(0)
    for g in range(games):
        tree.leaves[g] = NO_NODE
        tree.starts[g] = at
        count = np.int64(tree.num_edges[g, 0])
        if count == 0:
            continue
        wanted = schedule[min(count, CONSIDERED), simulation]
        edge = _root_edge(tree, g, wanted, s.per_action, s.improved)
        while True:
            if words[g, edge, RESULT] != ZERO:
                value = np.float32(1.0) if words[g, edge, RESULT] == ONE else np.float32(-1.0)
                backup(tree, g, edge, value, discount)
                break
            node = np.int64(tree.child[g, edge])
            if node == NO_NODE:
                packed = read_at(words[g], edge)
                node = add_node(rules, tree, g, packed, edge)
                tree.child[g, edge] = node
                if tree.num_edges[g, node] == 0:  # the player to move there has lost (1.2)
                    value = np.float32(-1.0) if same_mover(packed.meta) else np.float32(1.0)
                    words[g, edge, RESULT] = ONE if value > 0 else FULL
                    prove(tree, g, edge)
                    backup(tree, g, edge, value, discount)
                    break
                first_edge = np.int64(tree.first_edge[g, node])
                last = first_edge + np.int64(tree.num_edges[g, node])
                at = encode_successors(
                    rules,
                    s.reader,
                    words[g],
                    first_edge,
                    last,
                    packed,
                    rows,
                    at,
                )
                tree.leaves[g] = node
                break
            if tree.num_edges[g, node] == 0:  # it had no room to be expanded
                value = discount * tree.node_values[g, node]
                if not same_mover(words[g, edge, META]):
                    value = -value
                backup(tree, g, edge, value, discount)
                break
            edge = _inner_edge(tree, g, node, s.per_action, s.improved)
    tree.starts[games] = at


@jit
def _read(tree, g, node, outputs, discount, s):
    """Note the network's judgement of a node; returns the node's value."""
    first_edge = np.int64(tree.first_edge[g, node])
    last = first_edge + np.int64(tree.num_edges[g, node])
    at = tree.starts[g]
    if s.per_action == 0:
        for e in range(first_edge, last):
            tree.logits[g, e] = outputs[at, np.int64(tree.words[g, e, ACTION])]
        return np.float32(math.tanh(outputs[at, outputs.shape[1] - 1]))
    # Legal actions whose result is known need no judgement; their logits trust it like any other.
    for e in range(first_edge, last):
        if tree.words[g, e, RESULT] != ZERO:
            won = tree.words[g, e, RESULT] == ONE
            tree.qvalues[g, e] = np.float32(1.0) if won else np.float32(-1.0)
            tree.logits[g, e] = np.float32(TRUST) * tree.qvalues[g, e]
        else:
            worth = np.float32(math.tanh(outputs[at, 1]))
            tree.qvalues[g, e] = worth
            tree.logits[g, e] = outputs[at, 0] + np.float32(TRUST) * worth
            at += 1
    for i in range(last - first_edge):
        s.improved[i] = tree.logits[g, first_edge + i]
    _softmax(s.improved, last - first_edge)
    value = np.float32(0.0)
    for i in range(last - first_edge):
        value += s.improved[i] * tree.qvalues[g, first_edge + i]
    return value


@jit
def _expand_and_backup(tree, outputs, discount, games, s):
    """Note the network's judgement of the leaves, and hand it up."""
    for g in range(games):
        node = np.int64(tree.leaves[g])
        if node == NO_NODE or tree.num_edges[g, node] == 0:
            continue
        value = _read(tree, g, node, outputs, discount, s)
        known = known_edge(tree, g, node)
        if known != NO_NODE:
            value = np.float32(1.0) if tree.words[g, known, RESULT] == ONE else np.float32(-1.0)
            prove(tree, g, known)
        tree.node_values[g, node] = value
        # No room for the edges: the next node writes over them.
        first_edge = np.int64(tree.first_edge[g, node])
        if np.int64(tree.edges[g]) == first_edge:
            tree.num_edges[g, node] = 0
        if node == 0:
            continue
        edge = np.int64(tree.parent_edge[g, node])
        value *= discount
        if not same_mover(tree.words[g, edge, META]):
            value = -value
        backup(tree, g, edge, value, discount)


@jit
def _root_output(tree, games, per_action, improved, actions, policies, values, qvalues):
    """What each search found: action, improved policy, value, and that of each action."""
    for g in range(games):
        actions[g] = 0
        values[g] = 0.0
        policies[g] = 0.0
        qvalues[g] = np.nan
        count = np.int64(tree.num_edges[g, 0])
        if count == 0:
            continue
        _improve(tree, g, 0, per_action, improved)
        most = np.int32(0)  # visits of the finalist, known losses apart
        for e in range(count):
            if tree.noise[g, e] != -np.inf and tree.words[g, e, RESULT] != FULL:
                most = max(most, tree.edge_visits[g, e])
        best = np.int64(0)
        best_score = -np.inf
        for e in range(count):
            known = tree.words[g, e, RESULT] != ZERO
            score = improved[e]
            if not known or tree.noise[g, e] != -np.inf:
                score += tree.noise[g, e]
            if (known or tree.edge_visits[g, e] == most) and score > best_score:
                best_score = score
                best = e
        actions[g] = np.int64(tree.words[g, best, ACTION])
        _softmax(improved, count)
        for e in range(count):
            action = np.int64(tree.words[g, e, ACTION])
            policies[g, action] = improved[e]
            value = tree.qvalues[g, e] if per_action != 0 else tree.node_values[g, 0]
            if tree.edge_visits[g, e] > 0:
                value = tree.value_sums[g, e] / np.float32(tree.edge_visits[g, e])
                qvalues[g, action] = value
            values[g] += improved[e] * value


class SearchOutput(NamedTuple):
    """What searches of B positions found."""

    actions: npt.NDArray[np.int64]
    """int64[B], the actions to play."""
    policies: npt.NDArray[np.float32]
    """float32[B, 64], the improved policies, to learn from."""
    values: npt.NDArray[np.float32]
    """float32[B], expected results under them."""
    qvalues: npt.NDArray[np.float32]
    """float32[B, 64], expected results of the actions visited; else not a number."""


class _Scratch(NamedTuple):
    """What one thread's compiled functions work in."""

    per_action: int
    """1 for a network that judges legal actions, else 0."""
    improved: npt.NDArray[np.float32]
    """float32[64]."""
    reader: EncoderWorkspace


@jit
def _search_each(
    rules, tree, weights, room, schedule, discount, noise, positions, rng, rows, outputs, s, found
):
    """Search one position after another with a compiled network.

    ``tree`` has room for one tree; ``found`` are the arrays of :class:`SearchOutput`. Returns how
    many encodings the network has read.
    """
    actions, policies, values, qvalues = found
    judged = np.int64(0)
    for g in range(positions.shape[0]):
        _init_roots(rules, tree, positions[g : g + 1], rows, s)
        forward(weights, rows, tree.starts[1], room, outputs)
        judged += tree.starts[1]
        _expand_and_backup(tree, outputs, discount, 1, s)
        _draw_noise(tree, noise, rng[g : g + 1], 1)
        for simulation in range(schedule.shape[1]):
            _select(rules, tree, schedule, simulation, discount, rows, s, 1)
            forward(weights, rows, tree.starts[1], room, outputs)
            judged += tree.starts[1]
            _expand_and_backup(tree, outputs, discount, 1, s)
        _root_output(
            tree,
            1,
            s.per_action,
            s.improved,
            actions[g : g + 1],
            policies[g : g + 1],
            values[g : g + 1],
            qvalues[g : g + 1],
        )
    return judged


class GumbelSearch:
    """Searches for up to ``games`` positions at a time with one network.

    Args:
        rules: to search by.
        network: on a processor compiled as it is now (:meth:`sync_weights`); on a GPU used there.
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
        self.encodings_read = 0
        """Rows that the network has read so far."""
        self._rules = rules
        self._games = games
        self._discount = np.float32(discount)
        self._lock_step = lock_step
        at_once = games if lock_step else 1
        self._forest = make_tree(at_once, simulations)
        self._rows = padded_encodings(
            at_once * (MAX_SUCCESSORS if network.config.per_action else 1)
        )
        self._scratch = _Scratch(
            per_action=int(network.config.per_action),
            improved=np.empty(MAX_SUCCESSORS, np.float32),
            reader=make_encoder_workspace(network.config.per_action),
        )
        self._schedule = np.array(
            [visit_schedule(n, simulations) for n in range(CONSIDERED + 1)], np.int32
        )
        if not lock_step:
            self._weights = compile_network(network)
            self._room = make_network_workspace(self._weights)
            head = int(self._weights.widths[-1])
            self._outputs = np.empty((MAX_SUCCESSORS, head), np.float32)

    def sync_weights(self, network: PolicyNetwork) -> None:
        """Search with the weights of ``network``, of the same shape, as they are now."""
        self.network = network
        if not self._lock_step:
            self._weights = compile_network(network)

    def _judge(self, games: int) -> npt.NDArray[np.float32]:
        count = int(self._forest.starts[games])
        step = ENCODING_STEP if count > ENCODING_STEP else 64
        rows = self._rows[: -(-count // step) * step]
        if not count:
            return np.zeros((1, 2), np.float32)
        start = time.perf_counter()
        with torch.inference_mode():
            outputs = self.network.head_outputs(torch.from_numpy(rows)).cpu().numpy()
        self.network_seconds += time.perf_counter() - start
        self.encodings_read += count
        return outputs

    def search(
        self,
        positions: npt.NDArray[np.uint64],
        rng: npt.NDArray[np.uint64] | None = None,
    ) -> SearchOutput:
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
        found = SearchOutput(
            np.empty(games, np.int64),
            np.empty((games, 64), np.float32),
            np.empty(games, np.float32),
            np.empty((games, 64), np.float32),
        )
        if self._lock_step:
            self._search_together(positions, noise, states, found)
        else:
            self.encodings_read += _search_each(
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
        found: SearchOutput,
    ) -> None:
        """:func:`_search_each` in lock step, with the network as a batch."""
        games, tree = len(positions), self._forest
        rules, rows, s = self._rules, self._rows, self._scratch
        _init_roots(rules, tree, positions, rows, s)
        _expand_and_backup(tree, self._judge(games), self._discount, games, s)
        _draw_noise(tree, noise, rng, games)
        for simulation in range(self.simulations):
            _select(rules, tree, self._schedule, simulation, self._discount, rows, s, games)
            _expand_and_backup(tree, self._judge(games), self._discount, games, s)
        _root_output(tree, games, s.per_action, s.improved, *found)
