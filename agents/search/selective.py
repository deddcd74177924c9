"""What makes alpha-beta selective: a network that orders actions, reductions and extensions.

A full search spends most of its time on actions that nobody would play. A guided search looks
at them less deep. Should one of them do better than expected after all, it is searched once more
as deep as the others (late move reductions,
https://www.chessprogramming.org/Late_Move_Reductions). Far from the horizon a policy network says
which actions those are. Tsuruoka, Yokoyama and Chikayama, "Game-tree search algorithm based on
realization probability" (2002), derive the depth of an action from its probability in the same
way. Near the horizon a network would cost more than it saves, and the order of actions decides.
Nodes about which no earlier search has left anything are looked at less deep, too (internal
iterative reductions, https://www.chessprogramming.org/Internal_Iterative_Reductions).

Forced lines, on the other hand, are searched deeper: the only action of a node costs no depth, and
one of two costs half a ply (one-reply extensions,
https://www.chessprogramming.org/One_Reply_Extensions). Captures are mandatory, so forced lines are
long, and an evaluation in the midst of one tells little.

A result that the search calls proven is proven: reductions and extensions change how far it looks,
not what the end of a game is.

The functions that a full search calls, too, take ``guided``. Where it is false they change nothing,
and as it is a constant of the compiled search, their code is left out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from agents.nets.compiled import (
    NetworkWorkspace,
    Weights,
    compile_network,
    forward,
    make_network_workspace,
)
from agents.nets.encoding import encode_successors
from agents.nets.features import ENCODING_SIZE
from agents.nets.head import action_logit, expected_result
from agents.search.transposition import NO_ACTION
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.bits import ONE, ZERO, U
from bao_env.engine.compile import jit, jit_inline
from bao_env.engine.kernel import STARTS
from bao_env.engine.successors import ACTION, MAX_SUCCESSORS, RESULT

if TYPE_CHECKING:  # torch is slow to import, and this file's compiled part needs none of it
    from agents.nets.network import PolicyNetwork

MIN_POLICY_DEPTH: Final = 7
"""The network is asked at nodes at least so many plies from the horizon."""
ENCODING_NODES: Final = 7
"""An encoding that the network reads counts as so many nodes, for it takes about as long."""
MIN_REDUCED_DEPTH: Final = 3
"""Where the network is not asked, actions are reduced at least so many plies from the horizon."""
MIN_UNKNOWN_DEPTH: Final = 4
"""A node for which no action is remembered is searched a ply less deep from this depth on."""
MAX_EXTENDED_PLY: Final = 60
"""Forced actions this far from the root cost depth like any other, for they may never end."""

GAP_UNIT: Final = 1024.0
"""Units of a gap in one logit."""
_MAX_GAP: Final = 60.0  # logits
_REMEMBERED: Final = 1 << 13
"""Nodes whose gaps a guide remembers: a search comes back to most of them in every iteration."""


class PolicyGuide(NamedTuple):
    """A policy network, and the memory in which one thread asks it."""

    weights: Weights
    network_workspace: NetworkWorkspace
    per_action: int
    """1 for a network that reads each legal action, else 0."""
    encodings: npt.NDArray[np.uint8]
    """uint8[64, ENCODING_SIZE], what the network reads."""
    outputs: npt.NDArray[np.float32]
    """float32[64, 65 or 2], what it says."""
    logits: npt.NDArray[np.float32]
    """float32[64], of a node's successors in their order."""
    remembered: npt.NDArray[np.uint64]
    """uint64[:data:`_REMEMBERED`], of which nodes the gaps are: hash and number of the search."""
    gaps: npt.NDArray[np.uint16]
    """uint16[:data:`_REMEMBERED`, 64], the gap of each of their legal actions."""


def make_guides(network: PolicyNetwork, threads: int) -> list[PolicyGuide]:
    """A guide for each thread, with the network's weights as they are now.

    Args:
        network: the policy network.
        threads: how many guides.
    """
    weights = compile_network(network)
    return [
        PolicyGuide(
            weights=weights,
            network_workspace=make_network_workspace(weights),
            per_action=int(network.config.per_action),
            encodings=np.zeros((MAX_SUCCESSORS, ENCODING_SIZE), np.uint8),
            outputs=np.zeros((MAX_SUCCESSORS, weights.outputs), np.float32),
            logits=np.zeros(MAX_SUCCESSORS, np.float32),
            remembered=np.zeros(_REMEMBERED, np.uint64),
            gaps=np.zeros((_REMEMBERED, NUM_ACTIONS), np.uint16),
        )
        for _ in range(threads)
    ]


@jit_inline
def is_worth_asking(frame):
    """Whether the network is asked about a node, a :data:`agents.search.workspace.FRAME`."""
    return frame.depth >= MIN_POLICY_DEPTH and frame.end - frame.first >= 2


@jit
def order_by_policy(rules, guide, work, ply):
    """Order the actions of the node at ``ply`` as the network likes them.

    The action of the transposition table comes first all the same. Asking counts as
    :data:`ENCODING_NODES` nodes for each encoding that is read; remembering is free.

    Args:
        rules: the :class:`KernelRules`.
        guide: a :class:`PolicyGuide`.
        work: a record of :data:`agents.search.workspace.MEMORY`. Scores and gaps are filled;
            where the network is asked, successors that prove to leave a player without a move get
            their result entered.
        ply: plies from the root to the node, which has been expanded.
    """
    frame, stack = work.frames[ply], work.stack
    # What is remembered must not outlast a search, whose nodes would then depend on others. The
    # root may lack actions, so nothing is remembered of it.
    mark = frame.key ^ work.epoch
    slot = np.int64(mark & U(_REMEMBERED - 1))
    if ply == 0 or guide.remembered[slot] != mark:
        _ask_network(rules, guide, work, ply, slot)
        guide.remembered[slot] = mark if ply > 0 else ZERO
    for k in range(frame.first, frame.end):
        action = np.int64(stack[k, ACTION])
        gap = np.int64(guide.gaps[slot, action])
        work.gaps[ply, action] = gap
        work.scores[k] = 1 if action == frame.tt_move else -gap
    frame.by_policy = 1


@jit
def _ask_network(rules, guide, work, ply, slot):
    """Fill row ``slot`` of ``guide.gaps`` for the actions of the node at ``ply``."""
    frame, stack = work.frames[ply], work.stack
    asked = encode_successors(
        rules,
        guide.per_action,
        stack[frame.row],
        stack,
        frame.first,
        frame.end,
        guide.encodings,
        np.int64(0),
    )
    forward(guide.weights, guide.encodings, asked, guide.network_workspace, guide.outputs)
    top = _read_logits(guide, stack, frame.first, frame.end)
    for k in range(frame.first, frame.end):
        gap = min(float(top - guide.logits[k - frame.first]), _MAX_GAP) * GAP_UNIT
        guide.gaps[slot, np.int64(stack[k, ACTION])] = np.uint16(gap)
    work.nodes += np.int64(ENCODING_NODES) * max(asked, np.int64(1))


@jit
def _read_logits(guide, stack, first, end):
    """Fill ``guide.logits`` from what the network has said of successors.

    A decided successor has no output of its own: a win is put far above the others, a loss below.

    Args:
        guide: a :class:`PolicyGuide`.
        stack: uint64[N, 8], the successors in rows ``first`` to ``end`` - 1.
        first, end: see ``stack``.

    Returns:
        the highest logit, float32.
    """
    logits, outputs = guide.logits, guide.outputs
    output = 0
    top = np.float32(-np.inf)
    for k in range(first, end):
        i = k - first
        if stack[k, RESULT] != ZERO:
            logits[i] = _MAX_GAP if stack[k, RESULT] == ONE else -_MAX_GAP
        elif guide.per_action != 0:
            logits[i] = action_logit(outputs[output, 0], expected_result(outputs[output, 1]))
            output += 1
        else:
            logits[i] = outputs[0, np.int64(stack[k, ACTION])]
        top = max(top, logits[i])
    return top


@jit_inline
def is_extended_frontier(guided, found, ply):
    """Whether a node one ply above the horizon must be searched like any other.

    So it is where the mover has but one pit and direction to begin with, for an only action
    costs no depth.

    Args:
        guided: whether the search is selective.
        found: :func:`bao_env.engine.kernel.candidates` of the node's position.
        ply: plies from the root to the node.
    """
    if not guided or ply >= MAX_EXTENDED_PLY:
        return False
    starts = found & STARTS
    return (starts & (starts - ONE)) == ZERO


@jit_inline
def extension_half_plies(guided, ply, actions):
    """By how much less than two half plies an action costs where there are ``actions`` of them.

    Args:
        guided: whether the search is selective.
        ply: plies from the root to the node; the root extends nothing.
        actions: legal actions of the node.

    Returns:
        0, 1 or 2, int64.
    """
    if not guided or ply == 0 or ply >= MAX_EXTENDED_PLY:
        return np.int64(0)
    return max(np.int64(0), np.int64(3) - actions)


@jit_inline
def unknown_reduction(guided, depth, tt_move):
    """By how many plies less to search a node that the transposition table has no action for.

    Nothing has made it look important so far. If it is, the next iteration knows an action.

    Args:
        guided: whether the search is selective.
        depth: plies from the node to the horizon.
        tt_move: action of the transposition table, or NO_ACTION.

    Returns:
        0 or 1, int64.
    """
    if guided and tt_move == NO_ACTION and depth >= MIN_UNKNOWN_DEPTH:
        return np.int64(1)
    return np.int64(0)


@jit_inline
def reduction(guided, work, ply):
    """By how many plies less to look at the successor under way of the node at ``ply``.

    Args:
        guided: whether the search is selective.
        work: a record of :data:`agents.search.workspace.MEMORY`.
        ply: plies from the root to the node.

    Returns:
        int64, at least 0; it leaves at least a ply below the action.
    """
    if not guided:
        return np.int64(0)
    frame = work.frames[ply]
    if frame.by_policy != 0:
        action = np.int64(work.stack[frame.next, ACTION])
        return reduction_by_policy(frame.depth, work.gaps[ply, action])
    return reduction_by_order(frame.depth, frame.next - frame.first)


@jit
def reduction_by_policy(depth, gap):
    """:func:`reduction` of an action ``gap`` 1024ths of a logit below the best one."""
    return _limited(0.3 + math.log(depth) * float(gap) / (2.5 * GAP_UNIT), depth)


@jit
def reduction_by_order(depth, place):
    """:func:`reduction` of an action that ``place`` others come before."""
    if depth < MIN_REDUCED_DEPTH:
        return np.int64(0)
    return _limited(0.5 + 0.5 * math.log(depth) * math.log(place + 1.0), depth)


@jit
def _limited(plies, depth):
    """A reduction in whole plies that leaves at least a ply below the action."""
    return max(np.int64(0), min(np.int64(plies), depth - 2))
