"""The trees of a Gumbel search: nodes, edges, and what goes up from a leaf to the root.

An edge is an action of a node. What is known for certain is kept apart from what is expected: an
edge whose result is known, because the game ends there or because all that follows has been
worked out, is marked, and marks go up the tree (Winands, Björnsson and Saito, "Monte-Carlo tree
search solver", 2008). Values are expected results between -1 and 1 for the player to move. Where
the same player acts again (Dutch I.a) they keep their sign.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from bao_env.engine.bits import FULL, ONE, ZERO
from bao_env.engine.compile import jit
from bao_env.engine.position import META, same_mover
from bao_env.engine.successors import (
    MAX_SUCCESSORS,
    RESULT,
    SUCCESSOR_WORDS,
    successors,
)

NO_NODE: Final = -1
"""No node and no edge."""
_EDGES: Final = 10
"""Room for so many actions a simulation; a leaf that finds none is judged unexpanded."""


class Tree(NamedTuple):
    """The trees of B games, N nodes and E edges each. An edge is an action of a node."""

    words: npt.NDArray[np.uint64]
    """uint64[B, E, 8], the position that each edge leads to, as ``successors`` writes it."""
    logits: npt.NDArray[np.float32]
    """float32[B, E]."""
    qvalues: npt.NDArray[np.float32]
    """float32[B, E], what the network expects of each edge, for the player who chooses it; only
    of networks that judge legal actions."""
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
    """int32[B], the node whose judgement is awaited, -1 for none."""
    noise: npt.NDArray[np.float32]
    """float32[B, 64], Gumbel noise of the root's edges; minus infinity: not considered."""
    starts: npt.NDArray[np.int64]
    """int64[B + 1], where the rows of each leaf begin."""


def make_tree(games: int, simulations: int) -> Tree:
    nodes = simulations + 2
    edges = _EDGES * nodes + 2 * MAX_SUCCESSORS
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
        starts=np.zeros(games + 1, np.int64),
    )


@jit
def add_node(rules, tree, g, packed, parent_edge):
    """A new node and its edges. Returns the node."""
    node = np.int64(tree.nodes[g])
    base = np.int64(tree.edges[g])
    words = tree.words[g]
    count = successors(rules, packed, words, base)
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


@jit
def prove(tree, g, edge):
    """The result of an edge has just become known: mark all that follows from it further up."""
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


@jit
def known_edge(tree, g, node):
    """An edge from which the result of a new node is known: one that wins, or any if all lose."""
    first_edge = np.int64(tree.first_edge[g, node])
    lost = True
    for e in range(first_edge, first_edge + np.int64(tree.num_edges[g, node])):
        if tree.words[g, e, RESULT] == ONE:
            return e
        if tree.words[g, e, RESULT] == ZERO:
            lost = False
    return first_edge if lost else np.int64(NO_NODE)


@jit
def backup(tree, g, edge, value, discount):
    """Add a value, for the player who chose ``edge``, to it and all that lead to it."""
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
