"""Simulate in many trees of a Gumbel search: select a leaf, expand it, back its value up.

Between the two halves of a simulation the network evaluates the leaves that :func:`select` found:
:func:`encode_leaves` writes its inputs into the workspace, and :func:`expand_and_backup` reads the
head's outputs. The caller decides whether the network runs compiled or on a GPU, and on one leaf or
on many (:mod:`bao_agents.search.gumbel.search`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bao_agents.array_types import Float32Array, Int32Array, Uint8Array
from bao_agents.nets.encoding import AfterstateMemory, encode_successors, finish_encodings
from bao_agents.nets.head import action_logit, expected_result
from bao_agents.search.gumbel.action_selection import (
    MAX_CONSIDERED,
    improve,
    select_inner_edge,
    select_root_edge,
    softmax,
)
from bao_agents.search.gumbel.tree import (
    NO_NODE,
    add_node,
    backup,
    edges_of,
    first_edge_of,
    known_edge,
    known_value,
    prove,
    visit,
)
from bao_agents.successors import ACTION, RESULT
from bao_env.engine.bits import FULL, ONE, ZERO
from bao_env.engine.compile import jit, jit_inline
from bao_env.engine.position import META, Actions, same_mover
from bao_env.engine.ruleset import KernelRules


class SearchOutput(NamedTuple):
    """The results of searching B positions."""

    actions: Actions
    """int64[B], the actions to play."""
    policies: Float32Array
    """float32[B, 64], the improved policies, to learn from."""
    values: Float32Array
    """float32[B], expected results under them."""
    qvalues: Float32Array
    """float32[B, 64], expected results of the visited actions; NaN elsewhere."""


class SearchWorkspace(NamedTuple):
    """The constants of a search, and the memory of one thread's compiled functions."""

    rules: KernelRules
    """The rules to search by."""
    schedule: Int32Array
    """int32[MAX_CONSIDERED + 1, simulations], :func:`visit_schedule` of each number of actions."""
    discount: np.float32
    """Factor of a win's value for each ply before it."""
    per_action: int
    """1 for a network that reads each legal action, else 0."""
    encodings: Uint8Array
    """uint8[R, size], the encodings of the leaves."""
    after: AfterstateMemory | None
    """Memory for the encodings of a network of the kind ``afterstate+replies``."""
    improved: Float32Array
    """float32[64], the improved policy of a node."""


@jit
def init_roots(tree, positions, workspace):
    """Begin a tree for each position; the roots are its first leaves.

    Args:
        tree: the :class:`Tree`, overwritten.
        positions: uint64[B, 6].
        workspace: the :class:`SearchWorkspace`.
    """
    for g in range(positions.shape[0]):
        tree.nodes[g] = tree.roots[g]
        tree.edges[g] = first_edge_of(tree, g)
        tree.leaves[g] = add_node(workspace.rules, tree, g, positions[g], NO_NODE)


@jit_inline
def select(tree, simulation, workspace, games):
    """Walk one simulation of each game down to a leaf.

    A simulation that reaches a known result, or a leaf that cannot be expanded, is backed up here.
    Its game then has no leaf (``tree.leaves``).

    Args:
        tree: the :class:`Tree`; each game may get a new node.
        simulation: its number, from 0.
        workspace: the :class:`SearchWorkspace`.
        games: the number of trees, from the first.
    """
    words = tree.words
    discount = workspace.discount
    per_action, improved = workspace.per_action, workspace.improved
    for g in range(games):
        tree.leaves[g] = NO_NODE
        count = tree.num_edges[tree.roots[g]]
        if count == 0:
            continue
        visits = workspace.schedule[min(count, MAX_CONSIDERED), simulation]
        edge = select_root_edge(tree, g, visits, per_action, improved)
        while True:
            if words[edge, RESULT] != ZERO:
                value = known_value(words[edge, RESULT])
                backup(tree, visit(tree, edge, value), value, discount)
                break
            node = np.int64(tree.child[edge])
            if node == NO_NODE:
                node = add_node(workspace.rules, tree, g, words[edge], edge)
                tree.child[edge] = node
                if tree.num_edges[node] == 0:  # the player to move there has lost (1.2)
                    words[edge, RESULT] = FULL if same_mover(words[edge, META]) else ONE
                    prove(tree, edge)
                    continue
                tree.leaves[g] = node
                break
            if tree.num_edges[node] == 0:  # there was no space to expand it
                backup(tree, node, tree.node_values[node], discount)
                break
            edge = select_inner_edge(tree, node, per_action, improved)


@jit_inline
def leaf_position(tree, g, positions):
    """Return the position of a game's leaf, uint64[6 or 8]; at the root, one of ``positions``."""
    edge = tree.parent_edge[tree.leaves[g]]
    if edge == NO_NODE:
        return positions[g]
    return tree.words[edge]


@jit_inline
def encode_leaves(tree, positions, workspace, games):
    """Encode the leaves into the workspace.

    If an action turns out to leave the opponent without a move, its result is filled in.

    Args:
        tree: the :class:`Tree`; ``starts`` is filled.
        positions: uint64[B, 6], the positions of the roots.
        workspace: the :class:`SearchWorkspace`, whose ``encodings`` are filled.
        games: the number of trees, from the first.
    """
    end = np.int64(0)
    for g in range(games):
        tree.starts[g] = end
        node = tree.leaves[g]
        if node == NO_NODE:
            continue
        first_edge = tree.first_edge[node]
        end = encode_successors(
            workspace.rules,
            workspace.per_action,
            workspace.after,
            leaf_position(tree, g, positions),
            tree.words,
            first_edge,
            first_edge + tree.num_edges[node],
            workspace.encodings,
            end,
        )
    tree.starts[games] = end
    finish_encodings(workspace.rules, workspace.after, workspace.encodings, end)


@jit_inline
def count_undecided(tree, node):
    """Return the number of edges of a node without a known result."""
    undecided = np.int64(0)
    for e in edges_of(tree, node):
        if tree.words[e, RESULT] == ZERO:
            undecided += 1
    return undecided


@jit_inline
def _set_priors(tree, node, outputs, k, workspace):
    """Fill in the network's outputs for a node and its edges; return the node's value, float32.

    Args:
        tree: the :class:`Tree`; the node's logits and, if the network reads afterstates, its
            q-values are filled.
        node: the node.
        outputs: float32[R, 65 or 2], outputs of the head (:mod:`bao_agents.nets.head`).
        k: the first row of the node.
        workspace: the :class:`SearchWorkspace`.
    """
    if workspace.per_action == 0:
        for e in edges_of(tree, node):
            tree.logits[e] = outputs[k, np.int64(tree.words[e, ACTION])]
        return expected_result(outputs[k, outputs.shape[1] - 1])
    # Actions with a known result were not encoded; their logits trust it like an expected one.
    policy = workspace.improved
    first_edge = tree.first_edge[node]
    for e in edges_of(tree, node):
        if tree.words[e, RESULT] != ZERO:
            value = known_value(tree.words[e, RESULT])
            tree.logits[e] = action_logit(np.float32(0.0), value)
        else:
            value = expected_result(outputs[k, 1])
            tree.logits[e] = action_logit(outputs[k, 0], value)
            k += 1
        tree.qvalues[e] = value
        policy[e - first_edge] = tree.logits[e]
    softmax(policy, tree.num_edges[node])
    expected = np.float32(0.0)
    for e in edges_of(tree, node):
        expected += policy[e - first_edge] * tree.qvalues[e]
    return expected


@jit_inline
def expand_and_backup(tree, outputs, workspace, games):
    """Fill in the network's outputs for the leaves, and back their values up.

    Args:
        tree: the :class:`Tree`.
        outputs: float32[R, 65 or 2], outputs of the head for the leaves' encodings.
        workspace: the :class:`SearchWorkspace`.
        games: the number of trees, from the first.
    """
    for g in range(games):
        node = tree.leaves[g]
        if node == NO_NODE or tree.num_edges[node] == 0:
            continue
        value = _set_priors(tree, node, outputs, tree.starts[g], workspace)
        known = known_edge(tree, node)
        if known != NO_NODE:
            value = known_value(tree.words[known, RESULT])
            prove(tree, known)
        tree.node_values[node] = value
        # No space for the edges: the next node writes over them.
        if tree.edges[g] == tree.first_edge[node]:
            tree.num_edges[node] = 0
        backup(tree, node, value, workspace.discount)


@jit
def root_output(tree, g, workspace, output, i):
    """Fill in the result of searching one position.

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
    root = tree.roots[g]
    first_edge = tree.first_edge[root]
    count = tree.num_edges[root]
    if count == 0:
        return
    improve(tree, root, workspace.per_action, improved)
    max_visits = np.int32(0)  # visits of the finalists; 0 if all edges considered are lost
    for e in edges_of(tree, root):
        if tree.considered[g, e - first_edge] and tree.words[e, RESULT] != FULL:
            max_visits = max(max_visits, tree.edge_visits[e])
    best = first_edge
    best_score = -np.inf
    for e in edges_of(tree, root):
        score = improved[e - first_edge]
        considered = tree.considered[g, e - first_edge]
        if considered:
            score += tree.noise[g, e - first_edge]
        finalist = considered and tree.edge_visits[e] == max_visits
        if tree.words[e, RESULT] == ZERO and max_visits > 0 and not finalist:
            continue
        if score > best_score:
            best_score = score
            best = e
    actions[i] = np.int64(tree.words[best, ACTION])
    softmax(improved, count)
    for e in edges_of(tree, root):
        action = np.int64(tree.words[e, ACTION])
        policies[i, action] = improved[e - first_edge]
        value = tree.qvalues[e] if workspace.per_action != 0 else tree.node_values[root]
        if tree.edge_visits[e] > 0:
            value = tree.value_sums[e] / np.float32(tree.edge_visits[e])
            qvalues[i, action] = value
        values[i] += policies[i, action] * value


@jit
def root_outputs(tree, workspace, output, games):
    """Call :func:`root_output` for the first ``games`` trees."""
    for g in range(games):
        root_output(tree, g, workspace, output, g)
