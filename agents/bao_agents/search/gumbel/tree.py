"""Grow the tree of a Gumbel search, and back values and proofs up from a leaf to the root.

An edge is an action of a node. Values are expected results between -1 and 1 for the player to
move; where the same player acts again (Dutch I.a) they keep their sign.

Known results are kept apart from expected ones. An edge is marked if the game ends there, or if its
result follows from the marks below it. Marks are passed up the tree, as in Winands, Björnsson and
Saito, "Monte-Carlo tree search solver" (2008).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bao_agents.search.masks import keep_actions
from bao_agents.support.array_types import Float32Array, Int32Array, Int64Array
from bao_env.compiled.compile import jit_inline
from bao_env.engine.bits import FULL, ONE, ZERO
from bao_env.engine.position import META, Flags, PackedPositions, read, same_mover
from bao_env.engine.successors import (
    MAX_SUCCESSORS,
    RESULT,
    SUCCESSOR_WORDS,
    successors,
)

NO_NODE = -1
"""No node and no edge."""
ROOT = 0
"""The first node of a tree."""
_EDGES_PER_NODE = 10
"""Space for edges per node. If no space is left, a leaf is evaluated but not expanded."""


class Tree(NamedTuple):
    """A tree with space for N nodes and E edges; node 0 is the root."""

    positions: PackedPositions
    """uint64[E, 8], the position that each edge leads to, as ``successors`` writes it."""
    logits: Float32Array
    """float32[E]."""
    qvalues: Float32Array
    """float32[E], the network's value of each edge, for the player who chooses it."""
    edge_visits: Int32Array
    """int32[E]."""
    value_sums: Float32Array
    """float32[E], sum of values for the player who chooses the edge."""
    child: Int32Array
    """int32[E], the node that each edge leads to; -1 before its first visit."""
    edge_node: Int32Array
    """int32[E], the node that each edge belongs to."""
    first_edge: Int64Array
    """int64[N], the first edge of each node."""
    num_edges: Int64Array
    """int64[N], the number of its edges."""
    parent_edge: Int64Array
    """int64[N], the edge that leads to each node; -1 for the root."""
    node_values: Float32Array
    """float32[N], the network's value of each node."""
    node_visits: Int32Array
    """int32[N], visits of all edges of each node."""
    next_node: Int64Array
    """int64[1], the next free node."""
    next_edge: Int64Array
    """int64[1], the next free edge."""
    noise: Float32Array
    """float32[64], Gumbel noise of the root's edges."""
    considered: Flags
    """bool[64], whether an edge of the root gets simulations."""


def make_tree(simulations: int) -> Tree:
    """Return an empty tree with space for the nodes of ``simulations`` simulations."""
    nodes = simulations + 2
    edges = _EDGES_PER_NODE * nodes + 2 * MAX_SUCCESSORS
    return Tree(
        positions=np.zeros((edges, SUCCESSOR_WORDS), np.uint64),
        logits=np.zeros(edges, np.float32),
        qvalues=np.zeros(edges, np.float32),
        edge_visits=np.zeros(edges, np.int32),
        value_sums=np.zeros(edges, np.float32),
        child=np.zeros(edges, np.int32),
        edge_node=np.zeros(edges, np.int32),
        first_edge=np.zeros(nodes, np.int64),
        num_edges=np.zeros(nodes, np.int64),
        parent_edge=np.zeros(nodes, np.int64),
        node_values=np.zeros(nodes, np.float32),
        node_visits=np.zeros(nodes, np.int32),
        next_node=np.zeros(1, np.int64),
        next_edge=np.zeros(1, np.int64),
        noise=np.zeros(MAX_SUCCESSORS, np.float32),
        considered=np.zeros(MAX_SUCCESSORS, np.bool_),
    )


@jit_inline
def add_node(rules, tree, position, parent_edge, actions):
    """Add a node and its edges to a tree; return the node, int64.

    If hardly any space is left, the edges are written but not kept: ``next_edge`` stays, and the
    next node overwrites them.

    Args:
        rules: the :class:`KernelRules`.
        tree: the :class:`Tree`.
        position: uint64[5 or more], the node's position.
        parent_edge: the edge that leads to it; :data:`NO_NODE` for the root.
        actions: the bits of the actions that get an edge, if they are legal.
    """
    node = tree.next_node[0]
    base = tree.next_edge[0]
    end = base + successors(rules, read(position), tree.positions, base)
    count = keep_actions(tree.positions, base, end, actions) - base
    tree.next_node[0] = node + 1
    tree.first_edge[node] = base
    tree.num_edges[node] = count
    tree.parent_edge[node] = parent_edge
    tree.node_visits[node] = 0
    tree.node_values[node] = 0.0
    for e in range(base, base + count):
        tree.edge_visits[e] = 0
        tree.value_sums[e] = 0.0
        tree.qvalues[e] = 0.0
        tree.child[e] = NO_NODE
        tree.edge_node[e] = node
    if base + count + 2 * MAX_SUCCESSORS <= tree.positions.shape[0]:
        tree.next_edge[0] = base + count
    return node


@jit_inline
def edges_of(tree, node):
    """Return the edges of a node, a range."""
    first_edge = tree.first_edge[node]
    return range(first_edge, first_edge + tree.num_edges[node])


@jit_inline
def known_value(result):
    """Return the value of a known result, float32, for the player who chose its edge."""
    return np.float32(1.0) if result == ONE else np.float32(-1.0)


@jit_inline
def prove(tree, edge):
    """Mark the edges further up whose results follow from the new result of an edge.

    Args:
        tree: the :class:`Tree`, whose ``positions[..., RESULT]`` are filled.
        edge: the edge.
    """
    positions = tree.positions
    while True:
        node = tree.edge_node[edge]
        parent_edge = tree.parent_edge[node]
        if parent_edge == NO_NODE:
            return
        won = positions[edge, RESULT] == ONE
        if not won:  # the node is lost only if all its edges lose
            for e in edges_of(tree, node):
                if positions[e, RESULT] == ZERO or positions[e, RESULT] == ONE:
                    return
        edge = parent_edge
        if positions[edge, RESULT] != ZERO:
            return
        positions[edge, RESULT] = ONE if won == same_mover(positions[edge, META]) else FULL


@jit_inline
def known_edge(tree, node):
    """Return an edge that decides a new node: one that wins, or any if all lose.

    Return :data:`NO_NODE` if the result is not known.
    """
    lost = True
    for e in edges_of(tree, node):
        if tree.positions[e, RESULT] == ONE:
            return e
        if tree.positions[e, RESULT] == ZERO:
            lost = False
    return tree.first_edge[node] if lost else np.int64(NO_NODE)


@jit_inline
def visit(tree, edge, value):
    """Add a visit and a value to an edge; return the edge's node.

    Args:
        tree: the :class:`Tree`.
        edge: the edge.
        value: float32, the value for the player who chose the edge.
    """
    tree.edge_visits[edge] += 1
    tree.value_sums[edge] += value
    node = np.int64(tree.edge_node[edge])
    tree.node_visits[node] += 1
    return node


@jit_inline
def backup(tree, node, value, discount):
    """Add a value to all edges that lead to a node.

    Args:
        tree: the :class:`Tree`, whose visits and value sums are updated.
        node: the node.
        value: float32, the value for the player to move there.
        discount: float32, the factor for each ply further up.
    """
    while True:
        edge = tree.parent_edge[node]
        if edge == NO_NODE:
            return
        value *= discount
        if not same_mover(tree.positions[edge, META]):
            value = -value
        node = visit(tree, edge, value)
