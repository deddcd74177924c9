"""The trees of a Gumbel search: nodes, edges, and what is backed up from a leaf to the root.

An edge is an action of a node. Values are expected results between -1 and 1 for the player to
move; where the same player acts again (Dutch I.a) they keep their sign.

What is known for certain is kept apart from what is expected. An edge whose result is known is
marked, because the game ends there or because all that follows has been worked out, and marks are
passed up the tree: Winands, Björnsson and Saito, "Monte-Carlo tree search solver" (2008).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from bao_env.engine.bits import FULL, ONE, ZERO
from bao_env.engine.compile import jit_inline
from bao_env.engine.position import META, Words, read, same_mover
from bao_env.engine.successors import (
    MAX_SUCCESSORS,
    RESULT,
    SUCCESSOR_WORDS,
    successors,
)

NO_NODE: Final = -1
"""No node and no edge."""
_EDGES_PER_NODE: Final = 10
"""Edges that there is space for, for each node. A leaf that finds none left is evaluated but not
expanded."""


class Tree(NamedTuple):
    """The trees of B games, N nodes and E edges each. An edge is an action of a node."""

    words: Words
    """uint64[B, E, 8], the position that each edge leads to, as ``successors`` writes it."""
    logits: npt.NDArray[np.float32]
    """float32[B, E]."""
    qvalues: npt.NDArray[np.float32]
    """float32[B, E], what the network expects of each edge, for the player who chooses it; only
    of networks that read each legal action."""
    edge_visits: npt.NDArray[np.int32]
    """int32[B, E]."""
    value_sums: npt.NDArray[np.float32]
    """float32[B, E], sum of values for the player who chooses the edge."""
    child: npt.NDArray[np.int32]
    """int32[B, E], the node that each edge leads to; -1 before its first visit."""
    edge_node: npt.NDArray[np.int32]
    """int32[B, E], the node that each edge belongs to."""
    first_edge: npt.NDArray[np.int32]
    """int32[B, N], the first edge of each node."""
    num_edges: npt.NDArray[np.int32]
    """int32[B, N], how many it has."""
    parent_edge: npt.NDArray[np.int32]
    """int32[B, N], the edge that leads to each node."""
    node_values: npt.NDArray[np.float32]
    """float32[B, N], what the network said."""
    node_visits: npt.NDArray[np.int32]
    """int32[B, N], visits of all edges of each node."""
    nodes: npt.NDArray[np.int32]
    """int32[B], nodes in use."""
    edges: npt.NDArray[np.int32]
    """int32[B], edges in use."""
    leaves: npt.NDArray[np.int32]
    """int32[B], the node that the network is to evaluate, -1 for none."""
    noise: npt.NDArray[np.float32]
    """float32[B, 64], Gumbel noise of the root's edges."""
    considered: npt.NDArray[np.bool_]
    """bool[B, 64], whether simulations are spent on a root's edge."""
    starts: npt.NDArray[np.int64]
    """int64[B + 1], where the encodings of each leaf begin."""


def make_tree(games: int, simulations: int) -> Tree:
    """Empty trees with space for the nodes of ``simulations`` simulations each."""
    nodes = simulations + 2
    edges = _EDGES_PER_NODE * nodes + 2 * MAX_SUCCESSORS
    return Tree(
        words=np.zeros((games, edges, SUCCESSOR_WORDS), np.uint64),
        logits=np.zeros((games, edges), np.float32),
        qvalues=np.zeros((games, edges), np.float32),
        edge_visits=np.zeros((games, edges), np.int32),
        value_sums=np.zeros((games, edges), np.float32),
        child=np.zeros((games, edges), np.int32),
        edge_node=np.zeros((games, edges), np.int32),
        first_edge=np.zeros((games, nodes), np.int32),
        num_edges=np.zeros((games, nodes), np.int32),
        parent_edge=np.zeros((games, nodes), np.int32),
        node_values=np.zeros((games, nodes), np.float32),
        node_visits=np.zeros((games, nodes), np.int32),
        nodes=np.zeros(games, np.int32),
        edges=np.zeros(games, np.int32),
        leaves=np.zeros(games, np.int32),
        noise=np.zeros((games, MAX_SUCCESSORS), np.float32),
        considered=np.zeros((games, MAX_SUCCESSORS), np.bool_),
        starts=np.zeros(games + 1, np.int64),
    )


@jit_inline
def add_node(rules, tree, g, position, parent_edge):
    """Add a node and its edges to a tree. Returns the node, int64.

    If hardly any space is left, the edges are written but not kept: ``tree.edges`` stays, and the
    next node writes over them.

    Args:
        rules: the :class:`KernelRules`.
        tree: the :class:`Tree`.
        g: the game.
        position: uint64[5 or more], the node's position.
        parent_edge: the edge that leads to it; :data:`NO_NODE` for the root.
    """
    node = np.int64(tree.nodes[g])
    base = np.int64(tree.edges[g])
    words = tree.words[g]
    count = successors(rules, read(position), words, base)
    tree.nodes[g] = node + 1
    tree.first_edge[g, node] = base
    tree.num_edges[g, node] = count
    tree.parent_edge[g, node] = parent_edge
    tree.node_visits[g, node] = 0
    tree.node_values[g, node] = 0.0
    for e in range(base, base + count):
        tree.edge_visits[g, e] = 0
        tree.value_sums[g, e] = 0.0
        tree.qvalues[g, e] = 0.0
        tree.child[g, e] = NO_NODE
        tree.edge_node[g, e] = node
    if base + count + 2 * MAX_SUCCESSORS <= words.shape[0]:
        tree.edges[g] = base + count
    return node


@jit_inline
def prove(tree, g, edge):
    """Mark all that follows further up from the result of an edge, which has just become known.

    Args:
        tree: the :class:`Tree`, whose ``words[..., RESULT]`` are filled.
        g: the game.
        edge: the edge.
    """
    words = tree.words
    while True:
        node = np.int64(tree.edge_node[g, edge])
        if node == 0:
            return
        won = words[g, edge, RESULT] == ONE
        if not won:  # the node is lost only if everything else in it is
            first_edge = np.int64(tree.first_edge[g, node])
            for e in range(first_edge, first_edge + np.int64(tree.num_edges[g, node])):
                if words[g, e, RESULT] == ZERO or words[g, e, RESULT] == ONE:
                    return
        edge = np.int64(tree.parent_edge[g, node])
        if words[g, edge, RESULT] != ZERO:
            return
        words[g, edge, RESULT] = ONE if won == same_mover(words[g, edge, META]) else FULL


@jit_inline
def known_edge(tree, g, node):
    """An edge from which the result of a new node is known: one that wins, or any if all lose;
    :data:`NO_NODE` if the result is not known."""
    first_edge = np.int64(tree.first_edge[g, node])
    lost = True
    for e in range(first_edge, first_edge + np.int64(tree.num_edges[g, node])):
        if tree.words[g, e, RESULT] == ONE:
            return e
        if tree.words[g, e, RESULT] == ZERO:
            lost = False
    return first_edge if lost else np.int64(NO_NODE)


@jit_inline
def backup(tree, g, edge, value, discount):
    """Add a value to an edge and to all that lead to it.

    Args:
        tree: the :class:`Tree`, whose visits and value sums are updated.
        g: the game.
        edge: the last edge.
        value: float32, for the player who chose that edge.
        discount: float32, factor for each ply further up.
    """
    while True:
        tree.edge_visits[g, edge] += 1
        tree.value_sums[g, edge] += value
        node = np.int64(tree.edge_node[g, edge])
        tree.node_visits[g, node] += 1
        if node == 0:
            return
        edge = np.int64(tree.parent_edge[g, node])
        value *= discount
        if not same_mover(tree.words[g, edge, META]):
            value = -value
