"""Simulate in the tree of a Gumbel search: select a leaf, expand it, back its value up.

Between the two halves of a simulation the network evaluates the leaf that :func:`select` found:
:func:`encode_leaf` writes its inputs into the workspace, and :func:`expand_and_backup` reads the
head's outputs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bao_agents.nets.encoding import encode_successors
from bao_agents.nets.head import action_logit, action_value
from bao_agents.search.gumbel.action_selection import (
    GumbelSettings,
    improve,
    select_inner_edge,
    select_root_edge,
    softmax,
)
from bao_agents.search.gumbel.tree import (
    NO_NODE,
    ROOT,
    add_node,
    backup,
    edges_of,
    known_edge,
    known_value,
    prove,
    visit,
)
from bao_agents.support.array_types import Float32Array, Int32Array, Uint8Array
from bao_env.compiled.compile import jit, jit_inline
from bao_env.engine.bits import FULL, ONE, ZERO
from bao_env.engine.position import META, Actions, same_mover
from bao_env.engine.ruleset import KernelRules
from bao_env.engine.successors import ACTION, RESULT


class SearchOutput(NamedTuple):
    """The results of searching B positions."""

    actions: Actions
    """int64[B], the actions to play."""
    policies: Float32Array
    """float32[B, 64], the improved policies, to learn from."""
    values: Float32Array
    """float32[B], values under them."""
    qvalues: Float32Array
    """float32[B, 64], values of the visited actions; NaN elsewhere."""


class SearchWorkspace(NamedTuple):
    """The constants of a search, and the memory of one thread's compiled functions."""

    rules: KernelRules
    """The rules to search by."""
    schedule: Int32Array
    """int32[considered + 1, simulations], :func:`visit_schedule` of each number of actions."""
    settings: GumbelSettings
    """How the search chooses."""
    discount: np.float32
    """Factor of a win's value for each ply before it."""
    encodings: Uint8Array
    """uint8[64, ENCODING_SIZE], the encodings of a leaf."""
    improved: Float32Array
    """float32[64], the improved policy of a node."""


@jit_inline
def init_root(tree, position, actions, workspace):
    """Begin a tree; return its root, the first leaf.

    Args:
        tree: the :class:`Tree`, overwritten.
        position: uint64[6].
        actions: the bits of the actions to choose from.
        workspace: the :class:`SearchWorkspace`.
    """
    tree.next_node[0] = ROOT
    tree.next_edge[0] = 0
    return add_node(workspace.rules, tree, position, NO_NODE, actions)


@jit_inline
def select(tree, simulation, workspace):
    """Walk one simulation down to a leaf, and return it, int64.

    A simulation that reaches a known result, or a leaf that cannot be expanded, is backed up here.
    There is then no leaf: :data:`NO_NODE`.

    Args:
        tree: the :class:`Tree`, which may get a new node.
        simulation: its number, from 0.
        workspace: the :class:`SearchWorkspace`.
    """
    positions = tree.positions
    settings, improved = workspace.settings, workspace.improved
    discount = workspace.discount
    count = tree.num_edges[ROOT]
    if count == 0:
        return np.int64(NO_NODE)
    visits = workspace.schedule[min(count, settings.considered), simulation]
    edge = select_root_edge(tree, visits, settings, improved)
    while True:
        if positions[edge, RESULT] != ZERO:
            value = known_value(positions[edge, RESULT])
            backup(tree, visit(tree, edge, value), value, discount)
            return np.int64(NO_NODE)
        node = np.int64(tree.child[edge])
        if node == NO_NODE:
            node = add_node(workspace.rules, tree, positions[edge], edge, FULL)
            tree.child[edge] = node
            if tree.num_edges[node] > 0:
                return node
            # The player to move there has lost (1.2).
            positions[edge, RESULT] = FULL if same_mover(positions[edge, META]) else ONE
            prove(tree, edge)
            continue
        if tree.num_edges[node] == 0:  # there was no space to expand it
            backup(tree, node, tree.node_values[node], discount)
            return np.int64(NO_NODE)
        edge = select_inner_edge(tree, node, settings, improved)


@jit_inline
def encode_leaf(tree, leaf, position, workspace):
    """Encode the undecided actions of a leaf into ``workspace.encodings``; return their number.

    If an action turns out to leave the opponent without a move, its result is filled in.

    Args:
        tree: the :class:`Tree`.
        leaf: the node.
        position: uint64[5 or more], its position.
        workspace: the :class:`SearchWorkspace`.
    """
    first_edge = tree.first_edge[leaf]
    return encode_successors(
        workspace.rules,
        position,
        tree.positions,
        first_edge,
        first_edge + tree.num_edges[leaf],
        workspace.encodings,
    )


@jit_inline
def count_undecided(tree, node):
    """Return the number of edges of a node without a known result."""
    undecided = np.int64(0)
    for e in edges_of(tree, node):
        if tree.positions[e, RESULT] == ZERO:
            undecided += 1
    return undecided


@jit_inline
def _set_priors(tree, node, outputs, workspace):
    """Fill in the network's outputs for a node and its edges; return the node's value, float32.

    Args:
        tree: the :class:`Tree`; the node's logits and q-values are filled.
        node: the node.
        outputs: float32[64, 2], the head's outputs for the node's undecided edges
            (:mod:`bao_agents.nets.head`).
        workspace: the :class:`SearchWorkspace`.
    """
    # Actions with a known result were not encoded; their logits trust it like an expected one.
    policy = workspace.improved
    first_edge = tree.first_edge[node]
    k = 0
    for e in edges_of(tree, node):
        if tree.positions[e, RESULT] != ZERO:
            value = known_value(tree.positions[e, RESULT])
            tree.logits[e] = action_logit(np.float32(0.0), value)
        else:
            value = action_value(outputs[k, 1])
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
def expand_and_backup(tree, leaf, outputs, workspace):
    """Fill in the network's outputs for a leaf, and back its value up.

    Args:
        tree: the :class:`Tree`.
        leaf: the node, or :data:`NO_NODE`: then nothing happens.
        outputs: float32[64, 2], outputs of the head for the leaf's encodings.
        workspace: the :class:`SearchWorkspace`.
    """
    if leaf == NO_NODE or tree.num_edges[leaf] == 0:
        return
    value = _set_priors(tree, leaf, outputs, workspace)
    known = known_edge(tree, leaf)
    if known != NO_NODE:
        value = known_value(tree.positions[known, RESULT])
        prove(tree, known)
    tree.node_values[leaf] = value
    # No space for the edges: the next node writes over them.
    if tree.next_edge[0] == tree.first_edge[leaf]:
        tree.num_edges[leaf] = 0
    backup(tree, leaf, value, workspace.discount)


@jit
def root_output(tree, workspace, output, i):
    """Fill in the result of searching one position.

    Args:
        tree: the :class:`Tree`.
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
    first_edge = tree.first_edge[ROOT]
    count = tree.num_edges[ROOT]
    if count == 0:
        return
    improve(tree, ROOT, workspace.settings, improved)
    max_visits = np.int32(0)  # visits of the finalists; 0 if all edges considered are lost
    for e in edges_of(tree, ROOT):
        if tree.considered[e - first_edge] and tree.positions[e, RESULT] != FULL:
            max_visits = max(max_visits, tree.edge_visits[e])
    best = first_edge
    best_score = -np.inf
    for e in edges_of(tree, ROOT):
        score = improved[e - first_edge]
        considered = tree.considered[e - first_edge]
        if considered:
            score += tree.noise[e - first_edge]
        finalist = considered and tree.edge_visits[e] == max_visits
        if tree.positions[e, RESULT] == ZERO and max_visits > 0 and not finalist:
            continue
        if score > best_score:
            best_score = score
            best = e
    actions[i] = np.int64(tree.positions[best, ACTION])
    softmax(improved, count)
    for e in edges_of(tree, ROOT):
        action = np.int64(tree.positions[e, ACTION])
        policies[i, action] = improved[e - first_edge]
        value = tree.qvalues[e]
        if tree.edge_visits[e] > 0:
            value = tree.value_sums[e] / np.float32(tree.edge_visits[e])
            qvalues[i, action] = value
        values[i] += policies[i, action] * value
