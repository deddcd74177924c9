"""Grow the trees of a Gumbel search, and back values and proofs up from a leaf to the root.

An edge is an action of a node. Values are expected results between -1 and 1 for the player to
move; where the same player acts again (Dutch I.a) they keep their sign.

Known results are kept apart from expected ones. An edge is marked if the game ends there, or if its
result follows from the marks below it. Marks are passed up the tree, as in Winands, Björnsson and
Saito, "Monte-Carlo tree search solver" (2008).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bao_agents.array_types import Float32Array, Int32Array, Int64Array
from bao_agents.successors import (
    MAX_SUCCESSORS,
    RESULT,
    SUCCESSOR_WORDS,
    successors,
)
from bao_env.engine.bits import FULL, ONE, ZERO
from bao_env.engine.compile import jit_inline
from bao_env.engine.position import META, Flags, Words, read, same_mover

NO_NODE = -1
"""No node and no edge."""
_EDGES_PER_NODE = 10
"""Space for edges per node. If no space is left, a leaf is evaluated but not expanded."""


class Tree(NamedTuple):
    """The trees of B games, one after another, with space for N nodes and E edges each.

    Nodes and edges are numbered across all trees: the root of game g is node g * N.
    """

    words: Words
    """uint64[B * E, 8], the position that each edge leads to, as ``successors`` writes it."""
    logits: Float32Array
    """float32[B * E]."""
    qvalues: Float32Array
    """float32[B * E], the network's expected result of each edge, for the player who chooses it;
    filled by networks that read each legal action."""
    edge_visits: Int32Array
    """int32[B * E]."""
    value_sums: Float32Array
    """float32[B * E], sum of values for the player who chooses the edge."""
    child: Int32Array
    """int32[B * E], the node that each edge leads to; -1 before its first visit."""
    edge_node: Int32Array
    """int32[B * E], the node that each edge belongs to."""
    first_edge: Int64Array
    """int64[B * N], the first edge of each node."""
    num_edges: Int64Array
    """int64[B * N], the number of its edges."""
    parent_edge: Int64Array
    """int64[B * N], the edge that leads to each node; -1 for a root."""
    node_values: Float32Array
    """float32[B * N], the network's value of each node."""
    node_visits: Int32Array
    """int32[B * N], visits of all edges of each node."""
    roots: Int64Array
    """int64[B], the root of each tree."""
    nodes: Int64Array
    """int64[B], the next free node."""
    edges: Int64Array
    """int64[B], the next free edge."""
    leaves: Int64Array
    """int64[B], the node that the network evaluates next; -1 for none."""
    noise: Float32Array
    """float32[B, 64], Gumbel noise of the root's edges."""
    considered: Flags
    """bool[B, 64], whether a root's edge gets simulations."""
    starts: Int64Array
    """int64[B + 1], where the encodings of each leaf begin."""


def make_tree(games: int, simulations: int) -> Tree:
    """Return empty trees with space for the nodes of ``simulations`` simulations each."""
    nodes = simulations + 2
    all_nodes = games * nodes
    all_edges = games * (_EDGES_PER_NODE * nodes + 2 * MAX_SUCCESSORS)
    return Tree(
        words=np.zeros((all_edges, SUCCESSOR_WORDS), np.uint64),
        logits=np.zeros(all_edges, np.float32),
        qvalues=np.zeros(all_edges, np.float32),
        edge_visits=np.zeros(all_edges, np.int32),
        value_sums=np.zeros(all_edges, np.float32),
        child=np.zeros(all_edges, np.int32),
        edge_node=np.zeros(all_edges, np.int32),
        first_edge=np.zeros(all_nodes, np.int64),
        num_edges=np.zeros(all_nodes, np.int64),
        parent_edge=np.zeros(all_nodes, np.int64),
        node_values=np.zeros(all_nodes, np.float32),
        node_visits=np.zeros(all_nodes, np.int32),
        roots=np.arange(0, all_nodes, nodes),
        nodes=np.zeros(games, np.int64),
        edges=np.zeros(games, np.int64),
        leaves=np.zeros(games, np.int64),
        noise=np.zeros((games, MAX_SUCCESSORS), np.float32),
        considered=np.zeros((games, MAX_SUCCESSORS), np.bool_),
        starts=np.zeros(games + 1, np.int64),
    )


@jit_inline
def add_node(rules, tree, g, position, parent_edge):
    """Add a node and its edges to a tree; return the node, int64.

    If hardly any space is left, the edges are written but not kept: ``tree.edges`` stays, and the
    next node overwrites them.

    Args:
        rules: the :class:`KernelRules`.
        tree: the :class:`Tree`.
        g: the game.
        position: uint64[5 or more], the node's position.
        parent_edge: the edge that leads to it; :data:`NO_NODE` for the root.
    """
    node = tree.nodes[g]
    base = tree.edges[g]
    count = successors(rules, read(position), tree.words, base)
    tree.nodes[g] = node + 1
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
    if base + count + 2 * MAX_SUCCESSORS <= first_edge_of(tree, g + 1):
        tree.edges[g] = base + count
    return node


@jit_inline
def first_edge_of(tree, g):
    """Return the first edge of the tree of game ``g``."""
    return g * (tree.words.shape[0] // tree.roots.shape[0])


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
        tree: the :class:`Tree`, whose ``words[..., RESULT]`` are filled.
        edge: the edge.
    """
    words = tree.words
    while True:
        node = tree.edge_node[edge]
        parent_edge = tree.parent_edge[node]
        if parent_edge == NO_NODE:
            return
        won = words[edge, RESULT] == ONE
        if not won:  # the node is lost only if all its edges lose
            for e in edges_of(tree, node):
                if words[e, RESULT] == ZERO or words[e, RESULT] == ONE:
                    return
        edge = parent_edge
        if words[edge, RESULT] != ZERO:
            return
        words[edge, RESULT] = ONE if won == same_mover(words[edge, META]) else FULL


@jit_inline
def known_edge(tree, node):
    """Return an edge that decides a new node: one that wins, or any if all lose.

    Return :data:`NO_NODE` if the result is not known.
    """
    lost = True
    for e in edges_of(tree, node):
        if tree.words[e, RESULT] == ONE:
            return e
        if tree.words[e, RESULT] == ZERO:
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
        if not same_mover(tree.words[edge, META]):
            value = -value
        node = visit(tree, edge, value)
