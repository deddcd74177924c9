"""Reductions and extensions: what a guided search looks at less deep, or deeper.

A full search spends most of its time on actions that nobody would play. A guided search looks
at them less deep. Should one of them do better than expected after all, it is searched once more
as deep as the others (late move reductions,
https://www.chessprogramming.org/Late_Move_Reductions). Far from the horizon a policy network says
which actions those are (:mod:`agents.search.alphabeta.policy_order`), near it the order of actions.
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
from typing import Final

import numpy as np

from agents.search.alphabeta.policy_order import GAP_UNIT
from agents.search.alphabeta.transposition import NO_ACTION
from bao_env.engine.bits import ONE, ZERO
from bao_env.engine.compile import jit, jit_inline
from bao_env.engine.successors import ACTION

MIN_REDUCED_DEPTH: Final = 3
"""Where the network is not asked, actions are reduced at least so many plies from the horizon."""
MIN_UNKNOWN_DEPTH: Final = 4
"""A node for which no action is remembered is searched a ply less deep from this depth on."""
MAX_EXTENDED_PLY: Final = 60
"""Forced actions this far from the root cost depth like any other, for they may never end."""


@jit_inline
def is_extended_frontier(guided, starts, ply):
    """Whether a node one ply above the horizon must be searched like any other.

    So it is where the mover has but one pit and direction to begin with, for an only action
    costs no depth.

    Args:
        guided: whether the search is selective.
        starts: those of :func:`bao_env.engine.kernel.candidates` in the node's position.
        ply: plies from the root to the node.
    """
    if not guided or ply >= MAX_EXTENDED_PLY:
        return False
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
        work: a record of :data:`agents.search.alphabeta.workspace.MEMORY`.
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
