"""Choose the edges of a Gumbel search: the improved policy and sequential halving.

Danihelka, Guez, Schrittwieser and Silver, "Policy improvement by planning with Gumbel"
(ICLR 2022): at a node, the improved policy is the softmax of the network's logits plus transformed
values. At the root, the Gumbel-top-k trick draws the edges that are considered, and
:func:`visit_schedule` says how often each is tried. Below it, visits follow the improved policy.

A known result outweighs everything else.

Sequential halving shares the simulations among the root actions. Karnin, Koren and Somekh,
"Almost optimal exploration in multi-armed bandits" (ICML 2013), algorithm 1: a budget is split
evenly over ceil(log2 n) rounds, and within each round evenly over the remaining actions. The better
half of them stays for the next round.

This search differs from the paper, or settles what it leaves open, in three points:

* An odd number is rounded down when halved (in the paper: up), and two actions stay to the end.
* A remaining action is tried at least once per round, even if its share is less than one, so a
  small budget runs out in an early round.
* The remainders of the divisions are spent on the last two actions, round after round.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bao_agents.search.gumbel.tree import NO_NODE, ROOT, edges_of
from bao_agents.support.array_types import Int32Array
from bao_env.compiled.compile import jit, jit_inline
from bao_env.engine.array_checks import as_integer
from bao_env.engine.bits import ONE, ZERO, U, xorshift
from bao_env.engine.successors import MAX_SUCCESSORS, RESULT

_CERTAIN = np.float32(1000.0)
"""Added to the logit of a known win, and subtracted from that of a known loss."""
_FRACTION_SHIFT = U(40)  # leaves 24 random bits


class GumbelSettings(NamedTuple):
    """How a search weighs the network's values, and how many root actions it tries."""

    considered: int = 16
    """The most root actions that get simulations, 1 to 64."""
    visit_offset: float = 50.0
    """The paper's c_visit, 0 or more."""
    visit_growth: float = 3.0
    """The weight of values grows with this, 0 or more, times the square root of the most visits.
    In the paper it grows with the visits themselves, and in long searches too few visits then
    change the choice."""
    value_scale: float = 0.5
    """The paper's c_scale, 0 or more, for values between 0 and 1."""

    def checked(self) -> GumbelSettings:
        """Return the settings with the types that compiled code expects.

        Raises:
            TypeError, ValueError: one is not a number, or is out of range.
        """
        considered, *numbers = self
        for name, number in zip(self._fields[1:], numbers, strict=True):
            if not 0 <= number < math.inf:
                raise ValueError(f"{name}={number}: expected a number of at least 0")
        considered = as_integer(considered, "considered", 1, MAX_SUCCESSORS)
        return GumbelSettings(considered, *map(float, numbers))


STANDARD = GumbelSettings()
"""The settings of the players."""


# --- sequential halving ---


def visit_schedule(actions: int, simulations: int) -> Int32Array:
    """Return, for each simulation, how often the action that it tries has been visited before.

    The remaining actions of a round have been visited equally often. So a search follows the
    schedule by always trying the most promising action with that number of visits.

    Args:
        actions: the number of actions considered; 0 means 1.
        simulations: the budget, at least 1.

    Returns:
        int32[simulations].
    """
    left = max(1, actions)
    share = simulations // max(1, (left - 1).bit_length())  # of each round
    parts = []
    visits = spent = 0
    while spent < simulations:
        more = max(1, share // left)
        parts.append(np.repeat(np.arange(visits, visits + more, dtype=np.int32), left))
        visits += more
        spent += more * left
        left = max(left // 2, min(left, 2))
    return np.concatenate(parts)[:simulations]


# --- improved policy ---


@jit_inline
def _certainty(tree, edge):
    """Return the number to add to the logit of an edge whose result is known; else 0."""
    if tree.positions[edge, RESULT] == ZERO:
        return np.float32(0.0)
    if tree.positions[edge, RESULT] != ONE:
        return -_CERTAIN
    if tree.child[edge] == NO_NODE:
        return _CERTAIN + _CERTAIN  # a win at once is better than one in the end
    return _CERTAIN


@jit
def consider_root_edges(tree, most, rng):
    """Draw Gumbel noise for the root's edges, and choose which of them to consider.

    Args:
        tree: the :class:`Tree`, whose ``noise`` and ``considered`` are filled.
        most: the most edges to consider.
        rng: uint64[1], an xorshift state, advanced in place; 0 for no noise.
    """
    first_edge = tree.first_edge[ROOT]
    count = tree.num_edges[ROOT]
    noise = tree.noise
    for i in range(count):
        tree.considered[i] = True
        noise[i] = 0.0
        if rng[0] != ZERO:
            rng[0] = xorshift(rng[0])
            uniform = (float(rng[0] >> _FRACTION_SHIFT) + 0.5) * 2.0**-24
            noise[i] = -math.log(-math.log(uniform))
    if count <= most:
        return
    for i in range(count):
        better = 0
        mine = noise[i] + tree.logits[first_edge + i] + _certainty(tree, first_edge + i)
        for other in range(count):
            edge = first_edge + other
            theirs = noise[other] + tree.logits[edge] + _certainty(tree, edge)
            if theirs > mine or (theirs == mine and other < i):
                better += 1
        tree.considered[i] = better < most


@jit_inline
def improve(tree, node, settings, out):
    """Compute the improved policy's logits of a node's edges: logits plus transformed values.

    The value of an edge without visits is the network's own for it. (The paper's network values
    only positions, so it mixes one from the values of the node and of the visited edges.)

    Args:
        tree: the :class:`Tree`.
        node: the node, which has edges.
        settings: the :class:`GumbelSettings`.
        out: float32[64]; one number for each edge is filled.
    """
    first_edge = tree.first_edge[node]
    max_visits = np.int32(0)
    for e in edges_of(tree, node):
        max_visits = max(max_visits, tree.edge_visits[e])
    growth = np.float32(settings.visit_growth * math.sqrt(max_visits))
    scale = np.float32(settings.value_scale * 0.5) * (np.float32(settings.visit_offset) + growth)
    for e in edges_of(tree, node):
        value = tree.qvalues[e]
        if tree.edge_visits[e] > 0:
            value = tree.value_sums[e] / np.float32(tree.edge_visits[e])
        out[e - first_edge] = tree.logits[e] + scale * value + _certainty(tree, e)


@jit_inline
def softmax(x, count):
    """Replace the first ``count`` numbers of x, float32[count or more], by their softmax."""
    top = x[0]
    for i in range(1, count):
        top = max(top, x[i])
    total = np.float32(0.0)
    for i in range(count):
        x[i] = np.float32(math.exp(x[i] - top))
        total += x[i]
    for i in range(count):
        x[i] /= total


@jit_inline
def select_root_edge(tree, visits, settings, improved):
    """Return the most promising of the considered root edges with this number of visits.

    If no edge has that number of visits, return the most promising of all considered.

    Args:
        tree: the :class:`Tree`, whose root has edges.
        visits: the number of visits (:func:`visit_schedule`).
        settings: the :class:`GumbelSettings`.
        improved: float32[64], a workspace.
    """
    first_edge = tree.first_edge[ROOT]
    improve(tree, ROOT, settings, improved)
    best = np.int64(0)
    best_score = -np.inf
    scheduled = False
    for i in range(tree.num_edges[ROOT]):
        if not tree.considered[i]:
            continue
        score = improved[i] + tree.noise[i]
        due = tree.edge_visits[first_edge + i] == visits
        if (due and not scheduled) or (due == scheduled and score > best_score):
            scheduled = due
            best_score = score
            best = i
    return first_edge + best


@jit_inline
def select_inner_edge(tree, node, settings, improved):
    """Return the edge of an inner node whose visits lag most behind the improved policy.

    Args:
        tree: the :class:`Tree`.
        node: the node, which has edges.
        settings: the :class:`GumbelSettings`.
        improved: float32[64], a workspace.
    """
    first_edge = tree.first_edge[node]
    improve(tree, node, settings, improved)
    softmax(improved, tree.num_edges[node])
    share = np.float32(1.0) / (np.float32(1.0) + np.float32(tree.node_visits[node]))
    best = first_edge
    best_score = -np.inf
    for e in edges_of(tree, node):
        score = improved[e - first_edge] - np.float32(tree.edge_visits[e]) * share
        if score > best_score:
            best_score = score
            best = e
    return best
