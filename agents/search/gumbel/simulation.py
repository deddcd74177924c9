"""One simulation of a Gumbel search, for many trees: select a leaf, expand it, back its value up.

Between the two halves of a simulation the network evaluates the leaves that :func:`select` has
found: :func:`encode_leaves` writes what it reads into the workspace, and :func:`expand_and_backup`
takes the head's outputs. Whether the network runs compiled or on a GPU, and on one leaf or on many,
is up to the caller (:mod:`agents.search.gumbel.search`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agents.nets.encoding import encode_successors, finish_encodings
from agents.nets.head import action_logit, expected_result
from agents.search.gumbel.action_selection import (
    MAX_CONSIDERED,
    improve,
    select_inner_edge,
    select_root_edge,
    softmax,
)
from agents.search.gumbel.tree import NO_NODE, add_node, backup, known_edge, prove
from bao_env.engine.bits import FULL, ONE, ZERO
from bao_env.engine.compile import jit, jit_inline
from bao_env.engine.position import META, Actions, same_mover
from bao_env.engine.ruleset import KernelRules
from bao_env.engine.successors import ACTION, RESULT


class SearchOutput(NamedTuple):
    """What searches of B positions found."""

    actions: Actions
    """int64[B], the actions to play."""
    policies: npt.NDArray[np.float32]
    """float32[B, 64], the improved policies, to learn from."""
    values: npt.NDArray[np.float32]
    """float32[B], expected results under them."""
    qvalues: npt.NDArray[np.float32]
    """float32[B, 64], expected results of the actions visited; else not a number."""


class SearchSettings(NamedTuple):
    """What stays the same during a search."""

    rules: KernelRules
    """The rules to search by."""
    schedule: npt.NDArray[np.int32]
    """int32[MAX_CONSIDERED + 1, simulations], :func:`visit_schedule` of each number of actions."""
    discount: np.float32
    """A win is worth this much less for each ply before it."""


class SearchWorkspace(NamedTuple):
    """What one thread's compiled functions work in."""

    per_action: int
    """1 for a network that reads each legal action, else 0."""
    encodings: npt.NDArray[np.uint8]
    """uint8[R, size], what the network is to read of the leaves."""
    improved: npt.NDArray[np.float32]
    """float32[64], the improved policy of a node."""


@jit
def init_roots(settings, tree, positions):
    """Begin a tree for each position; the roots are its first leaves.

    Args:
        settings: the :class:`SearchSettings`.
        tree: the :class:`Tree`, overwritten.
        positions: uint64[B, 6].
    """
    for g in range(positions.shape[0]):
        tree.nodes[g] = 0
        tree.edges[g] = 0
        add_node(settings.rules, tree, g, positions[g], NO_NODE)
        tree.leaves[g] = 0


@jit_inline
def select(settings, tree, simulation, workspace, games):
    """Walk one simulation of each game down to a leaf.

    A simulation that comes to a known result, or to a leaf that cannot be expanded, is backed up
    here; its game has no leaf (``tree.leaves``).

    Args:
        settings: the :class:`SearchSettings`.
        tree: the :class:`Tree`; of each game, a node may be added.
        simulation: its number, from 0.
        workspace: the :class:`SearchWorkspace`.
        games: how many of the trees to walk down.
    """
    words = tree.words
    discount = settings.discount
    per_action, improved = workspace.per_action, workspace.improved
    for g in range(games):
        tree.leaves[g] = NO_NODE
        count = np.int64(tree.num_edges[g, 0])
        if count == 0:
            continue
        visits = settings.schedule[min(count, MAX_CONSIDERED), simulation]
        edge = select_root_edge(tree, g, visits, per_action, improved)
        while True:
            if words[g, edge, RESULT] != ZERO:
                value = np.float32(1.0) if words[g, edge, RESULT] == ONE else np.float32(-1.0)
                backup(tree, g, edge, value, discount)
                break
            node = np.int64(tree.child[g, edge])
            if node == NO_NODE:
                position = words[g, edge]
                node = add_node(settings.rules, tree, g, position, edge)
                tree.child[g, edge] = node
                if tree.num_edges[g, node] == 0:  # the player to move there has lost (1.2)
                    value = np.float32(-1.0) if same_mover(position[META]) else np.float32(1.0)
                    words[g, edge, RESULT] = ONE if value > 0 else FULL
                    prove(tree, g, edge)
                    backup(tree, g, edge, value, discount)
                    break
                tree.leaves[g] = node
                break
            if tree.num_edges[g, node] == 0:  # there was no space to expand it
                value = discount * tree.node_values[g, node]
                if not same_mover(words[g, edge, META]):
                    value = -value
                backup(tree, g, edge, value, discount)
                break
            edge = select_inner_edge(tree, g, node, per_action, improved)


@jit_inline
def leaf_position(tree, g, positions):
    """The position of a game's leaf, uint64[6 or 8]; the root's, one of ``positions``."""
    edge = np.int64(tree.parent_edge[g, tree.leaves[g]])
    if edge == NO_NODE:
        return positions[g]
    return tree.words[g, edge]


@jit_inline
def encode_leaves(settings, tree, positions, workspace, after, games):
    """Encode the leaves into the workspace.

    An action that proves to leave the opponent without a move gets its result entered.

    Args:
        settings: the :class:`SearchSettings`.
        tree: the :class:`Tree`; ``starts`` is filled.
        positions: uint64[B, 6], the roots'.
        workspace: the :class:`SearchWorkspace`, whose ``encodings`` are filled.
        after: the :class:`~agents.nets.encoding.AfterstateMemory` of the encodings, or None.
        games: how many of the trees to do it for.
    """
    end = np.int64(0)
    for g in range(games):
        tree.starts[g] = end
        node = np.int64(tree.leaves[g])
        if node == NO_NODE:
            continue
        first_edge = np.int64(tree.first_edge[g, node])
        end = encode_successors(
            settings.rules,
            workspace.per_action,
            after,
            leaf_position(tree, g, positions),
            tree.words[g],
            first_edge,
            first_edge + np.int64(tree.num_edges[g, node]),
            workspace.encodings,
            end,
        )
    tree.starts[games] = end
    finish_encodings(settings.rules, after, workspace.encodings, end)


@jit_inline
def count_undecided(tree, g):
    """How many edges of a game's leaf have no known result."""
    node = np.int64(tree.leaves[g])
    first_edge = np.int64(tree.first_edge[g, node])
    undecided = np.int64(0)
    for e in range(first_edge, first_edge + np.int64(tree.num_edges[g, node])):
        if tree.words[g, e, RESULT] == ZERO:
            undecided += 1
    return undecided


@jit_inline
def _set_priors(tree, g, node, outputs, workspace):
    """Enter what the network says of a node and its edges; returns the node's value, float32.

    Args:
        tree: the :class:`Tree`; the node's logits and, for ``moves``, its q-values are filled.
        g: the game.
        node: the node, whose encodings begin at ``tree.starts[g]``.
        outputs: float32[R, 65 or 2], the head's (:mod:`agents.nets.head`).
        workspace: the :class:`SearchWorkspace`.
    """
    first_edge = np.int64(tree.first_edge[g, node])
    last = first_edge + np.int64(tree.num_edges[g, node])
    k = tree.starts[g]
    if workspace.per_action == 0:
        for e in range(first_edge, last):
            tree.logits[g, e] = outputs[k, np.int64(tree.words[g, e, ACTION])]
        return expected_result(outputs[k, outputs.shape[1] - 1])
    # Actions whose result is known were not encoded; their logits trust it like any other.
    for e in range(first_edge, last):
        if tree.words[g, e, RESULT] != ZERO:
            won = tree.words[g, e, RESULT] == ONE
            value = np.float32(1.0) if won else np.float32(-1.0)
            tree.logits[g, e] = action_logit(np.float32(0.0), value)
        else:
            value = expected_result(outputs[k, 1])
            tree.logits[g, e] = action_logit(outputs[k, 0], value)
            k += 1
        tree.qvalues[g, e] = value
    policy = workspace.improved
    for i in range(last - first_edge):
        policy[i] = tree.logits[g, first_edge + i]
    softmax(policy, last - first_edge)
    expected = np.float32(0.0)
    for i in range(last - first_edge):
        expected += policy[i] * tree.qvalues[g, first_edge + i]
    return expected


@jit_inline
def expand_and_backup(settings, tree, outputs, workspace, games):
    """Enter what the network says of the leaves, and back their values up.

    Args:
        settings: the :class:`SearchSettings`.
        tree: the :class:`Tree`.
        outputs: float32[R, 65 or 2], the head's, of the leaves' encodings.
        workspace: the :class:`SearchWorkspace`.
        games: how many of the trees to do it for.
    """
    for g in range(games):
        node = np.int64(tree.leaves[g])
        if node == NO_NODE or tree.num_edges[g, node] == 0:
            continue
        value = _set_priors(tree, g, node, outputs, workspace)
        known = known_edge(tree, g, node)
        if known != NO_NODE:
            value = np.float32(1.0) if tree.words[g, known, RESULT] == ONE else np.float32(-1.0)
            prove(tree, g, known)
        tree.node_values[g, node] = value
        # No space for the edges: the next node writes over them.
        first_edge = np.int64(tree.first_edge[g, node])
        if np.int64(tree.edges[g]) == first_edge:
            tree.num_edges[g, node] = 0
        if node == 0:
            continue
        edge = np.int64(tree.parent_edge[g, node])
        value *= settings.discount
        if not same_mover(tree.words[g, edge, META]):
            value = -value
        backup(tree, g, edge, value, settings.discount)


@jit
def root_output(tree, g, workspace, output, i):
    """What the search of one position found.

    Args:
        tree: the :class:`Tree`.
        g: the game.
        workspace: the :class:`SearchWorkspace`.
        output: a :class:`SearchOutput`.
        i: the index in its arrays that is filled.
    """
    actions, policies, values, qvalues = output
    improved = workspace.improved
    actions[i] = 0
    values[i] = 0.0
    policies[i] = 0.0
    qvalues[i] = np.nan
    count = np.int64(tree.num_edges[g, 0])
    if count == 0:
        return
    improve(tree, g, 0, workspace.per_action, improved)
    max_visits = np.int32(0)  # visits of the finalists; 0 where all edges considered are lost
    for e in range(count):
        if tree.considered[g, e] and tree.words[g, e, RESULT] != FULL:
            max_visits = max(max_visits, tree.edge_visits[g, e])
    best = np.int64(0)
    best_score = -np.inf
    for e in range(count):
        score = improved[e]
        if tree.considered[g, e]:
            score += tree.noise[g, e]
        finalist = tree.considered[g, e] and tree.edge_visits[g, e] == max_visits
        if tree.words[g, e, RESULT] == ZERO and max_visits > 0 and not finalist:
            continue
        if score > best_score:
            best_score = score
            best = e
    actions[i] = np.int64(tree.words[g, best, ACTION])
    softmax(improved, count)
    for e in range(count):
        action = np.int64(tree.words[g, e, ACTION])
        policies[i, action] = improved[e]
        value = tree.qvalues[g, e] if workspace.per_action != 0 else tree.node_values[g, 0]
        if tree.edge_visits[g, e] > 0:
            value = tree.value_sums[g, e] / np.float32(tree.edge_visits[g, e])
            qvalues[i, action] = value
        values[i] += improved[e] * value


@jit
def root_outputs(tree, workspace, output, games):
    """:func:`root_output` of the first ``games`` trees."""
    for g in range(games):
        root_output(tree, g, workspace, output, g)
