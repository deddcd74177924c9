"""The edges that a Gumbel search chooses: its improved policy and sequential halving.

Danihelka, Guez, Schrittwieser and Silver, "Policy improvement by planning with Gumbel"
(ICLR 2022): at a node, the improved policy is the softmax of the network's logits plus transformed
values. At the root the edges considered are drawn by the Gumbel-top-k trick and tried as
:func:`visit_schedule` says; below it visits follow the improved policy.

A result known for certain outweighs everything else.

Sequential halving says which root actions the simulations are spent on. Karnin, Koren and Somekh,
"Almost optimal exploration in multi-armed bandits" (ICML 2013), algorithm 1: a budget is split
evenly over ceil(log2 n) rounds, and in each round evenly over the actions that are left, of which
the better half stays for the next.

The paper leaves three things out that a search needs, and they are settled here:

* An odd number is halved downwards (the paper: upwards), and two stay to the end.
* An action that is left is tried at least once a round, even if its share is less than one, so a
  small budget runs out in an early round.
* What the divisions leave over goes on to the last two, round after round, until it is spent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from agents.search.gumbel.tree import NO_NODE
from bao_env.engine.bits import ONE, ZERO, U, xorshift
from bao_env.engine.compile import jit, jit_inline
from bao_env.engine.successors import RESULT

MAX_CONSIDERED: Final = 16
"""Most root actions that simulations are spent on."""
VISIT_OFFSET: Final = 50.0
"""The paper's c_visit."""
VISIT_GROWTH: Final = 3.0
"""Trust in values grows with the square root of the most visits, times this. In the paper it
grows with the visits themselves, which in long searches leaves too few to change its choice."""
VALUE_SCALE: Final = 0.5
"""The paper's c_scale, for values between 0 and 1."""
_CERTAIN: Final = np.float32(1000.0)
"""Added to the logit of a known win, taken from that of a known loss."""
_FRACTION_SHIFT: Final = U(40)  # leaves 24 random bits

# --- sequential halving ---


class Round(NamedTuple):
    """A round of sequential halving."""

    survivors: int
    """Actions that are left."""
    visits: int
    """How often each of them is tried."""


def halving_rounds(actions: int, simulations: int) -> Iterator[Round]:
    """The rounds in which ``simulations`` are spent on ``actions``; the last may be cut short."""
    share = simulations // max(1, (actions - 1).bit_length())  # of each round
    finalists = max(1, min(actions, 2))
    spent = 0
    for halvings in count():
        if spent >= simulations:
            return
        survivors = max(actions >> halvings, finalists)
        visits = max(1, share // survivors)
        yield Round(survivors, visits)
        spent += survivors * visits


def visit_schedule(actions: int, simulations: int) -> npt.NDArray[np.int32]:
    """How often the action that each simulation is to try has been tried before.

    All that are left in a round have been tried equally often. So a search follows the schedule if
    it always tries the most promising of the actions that were tried as often as it says.

    Args:
        actions: how many are considered; 0 is taken for 1.
        simulations: the budget, at least 1.

    Returns:
        int32[simulations].
    """
    parts = []
    before = 0
    for survivors, visits in halving_rounds(actions, simulations):
        parts.append(np.repeat(np.arange(before, before + visits, dtype=np.int32), survivors))
        before += visits
    return np.concatenate(parts)[:simulations]


# --- improved policy ---


@jit_inline
def _certainty(tree, g, edge):
    """What is added to the logit of an edge of tree ``g`` because its result is known."""
    if tree.words[g, edge, RESULT] == ZERO:
        return np.float32(0.0)
    if tree.words[g, edge, RESULT] != ONE:
        return -_CERTAIN
    if tree.child[g, edge] == NO_NODE:
        return _CERTAIN + _CERTAIN  # at once is better than in the end
    return _CERTAIN


@jit
def consider_root_edges(tree, noise_scale, rng, games):
    """Draw Gumbel noise for the root's edges, and choose which of them are considered at all.

    Args:
        tree: the :class:`Tree`, whose ``noise`` and ``considered`` are filled.
        noise_scale: float32, 1 for noise, 0 for none.
        rng: uint64[games], non-zero xorshift states, advanced in place.
        games: how many of the trees to do it for.
    """
    for g in range(games):
        count = np.int64(tree.num_edges[g, 0])
        for e in range(count):
            x = xorshift(rng[g])
            rng[g] = x
            uniform = (float(x >> _FRACTION_SHIFT) + 0.5) * 2.0**-24
            tree.noise[g, e] = -math.log(-math.log(uniform)) * noise_scale
            tree.considered[g, e] = True
        if count <= MAX_CONSIDERED:
            continue
        for e in range(count):
            better = 0
            mine = tree.noise[g, e] + tree.logits[g, e] + _certainty(tree, g, e)
            for other in range(count):
                theirs = tree.noise[g, other] + tree.logits[g, other]
                theirs += _certainty(tree, g, other)
                if theirs > mine or (theirs == mine and other < e):
                    better += 1
            tree.considered[g, e] = better < MAX_CONSIDERED


@jit_inline
def improve(tree, g, node, per_action, out):
    """The improved policy's logits of a node's edges: logits plus transformed values.

    Edges never visited get what the network expects of them, if it reads each; else the value
    that the paper calls v_mix: the network's for the node, corrected by what has been found out
    about the edges that were visited.

    Args:
        tree: the :class:`Tree`.
        g: the game.
        node: the node, which has edges.
        per_action: 1 for a network that reads each legal action, else 0.
        out: float32[64], of which one number an edge is filled.
    """
    first_edge = np.int64(tree.first_edge[g, node])
    count = np.int64(tree.num_edges[g, node])
    top = tree.logits[g, first_edge]
    max_visits = np.int32(0)
    for e in range(first_edge, first_edge + count):
        top = max(top, tree.logits[g, e])
        max_visits = max(max_visits, tree.edge_visits[g, e])
    mixed = tree.node_values[g, node]
    if max_visits > 0 and per_action == 0:
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
    growth = np.float32(VISIT_GROWTH * math.sqrt(max_visits))
    scale = np.float32(VALUE_SCALE * 0.5) * (np.float32(VISIT_OFFSET) + growth)
    for i in range(count):
        e = first_edge + i
        value = tree.qvalues[g, e] if per_action != 0 else mixed
        if tree.edge_visits[g, e] > 0:
            value = tree.value_sums[g, e] / np.float32(tree.edge_visits[g, e])
        out[i] = tree.logits[g, e] + scale * value + _certainty(tree, g, e)


@jit_inline
def softmax(x, count):
    """Softmax of the first ``count`` numbers of x, float32[count or more], in place."""
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
def select_root_edge(tree, g, visits, per_action, improved):
    """Of the considered root edges with this many visits, the one that promises most.

    If the schedule asks for more visits than any edge has, it is the one of all considered.

    Args:
        tree: the :class:`Tree`.
        g: the game, whose root has edges.
        visits: how many (:func:`visit_schedule`).
        per_action: 1 for a network that reads each legal action, else 0.
        improved: float32[64], a workspace.
    """
    improve(tree, g, 0, per_action, improved)
    best = np.int64(0)
    best_score = -np.inf
    scheduled = False
    for e in range(np.int64(tree.num_edges[g, 0])):
        if not tree.considered[g, e]:
            continue
        score = improved[e] + tree.noise[g, e]
        due = tree.edge_visits[g, e] == visits
        if (due and not scheduled) or (due == scheduled and score > best_score):
            scheduled = due
            best_score = score
            best = e
    return best


@jit_inline
def select_inner_edge(tree, g, node, per_action, improved):
    """The edge of an inner node that most needs a visit for visits to follow the improved policy.

    Args:
        tree: the :class:`Tree`.
        g: the game.
        node: the node, which has edges.
        per_action: 1 for a network that reads each legal action, else 0.
        improved: float32[64], a workspace.
    """
    first_edge = np.int64(tree.first_edge[g, node])
    count = np.int64(tree.num_edges[g, node])
    improve(tree, g, node, per_action, improved)
    softmax(improved, count)
    share = np.float32(1.0) / (np.float32(1.0) + np.float32(tree.node_visits[g, node]))
    best = first_edge
    best_score = -np.inf
    for i in range(count):
        score = improved[i] - np.float32(tree.edge_visits[g, first_edge + i]) * share
        if score > best_score:
            best_score = score
            best = first_edge + i
    return best
