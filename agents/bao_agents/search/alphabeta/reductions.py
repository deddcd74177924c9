"""Reduce and extend the depth of actions in a guided search.

A full search spends most of its time on unlikely actions. A guided search reduces their depth. If
one of them does better than expected, it is searched again to full depth (late move reductions,
https://www.chessprogramming.org/Late_Move_Reductions). Far from the horizon, a policy network finds
these actions (:mod:`bao_agents.search.alphabeta.policy_order`). Near the horizon, they are the last
ones in the order. Nodes without an entry in the transposition table are also reduced
(internal iterative reductions, https://www.chessprogramming.org/Internal_Iterative_Reductions).

Forced lines are searched more deeply: a node's only action costs no depth, and one of two costs
half a ply (one-reply extensions, https://www.chessprogramming.org/One_Reply_Extensions). Captures
are mandatory, so forced lines are long, and an evaluation in the middle of one says little.

Proven results stay exact: reductions and extensions change the depth of a search, not the end of a
game.

Functions that a full search also calls have an argument ``guided``. If it is false, they change no
depth. It is a constant when they are compiled, so a compiled full search contains none of their
code.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bao_agents.search.alphabeta.transposition import NO_ACTION
from bao_env.compiled.compile import jit, jit_inline
from bao_env.engine.bits import ONE, ZERO, U
from bao_env.engine.position import Index
from bao_env.engine.successors import ACTION

GAP_UNIT = 1024.0
"""A gap between two logits is an integer: 1024 stands for a difference of 1."""
MAX_EXTENDED_PLY = 60
"""Forced actions this far from the root cost depth as usual, because they may never end."""


class Reductions(NamedTuple):
    """The parameters of a guided search's reductions. Changing them needs no new compilation."""

    policy_plies: float = 0.3
    """Plies by which an action is reduced if a network finds it as likely as the best one."""
    policy_logits: float = 2.5
    """A gap of this many logits to the best action adds ``log(depth)`` plies to the reduction."""
    order_plies: float = 0.5
    """Plies by which the first action is reduced if no network has ordered the actions."""
    order_growth: float = 0.5
    """For the n-th action, this times ``log(depth) * log(n)`` is added to the reduction."""
    order_depth: int = 3
    """The least depth, in plies, at which actions are reduced by their place in the order."""
    unknown_depth: int = 4
    """The least depth, in plies, at which nodes without a remembered action are reduced."""


STANDARD = Reductions()
"""The reductions of the players."""
REDUCTIONS = np.dtype(
    (np.record, [(name, type(number)) for name, number in STANDARD._asdict().items()])
)
"""The data type of :class:`Reductions` as a record."""


@jit_inline
def is_extended_frontier(guided: bool, starts: U, ply: Index) -> bool:
    """Return whether a node one ply above the horizon must be searched like any other.

    This is so if the mover has a single start, which is one pit and one direction: if a node has a
    single action, that action costs no depth.

    Args:
        guided: whether the search is selective.
        starts: the starts that :func:`bao_env.engine.kernel.candidates` finds in its position.
        ply: plies from the root to the node.
    """
    if not guided or ply >= MAX_EXTENDED_PLY:
        return False
    return (starts & (starts - ONE)) == ZERO


@jit_inline
def extension_half_plies(guided: bool, ply: Index, actions: Index) -> Index:
    """Return the half plies that an action saves in a node with ``actions`` actions.

    Args:
        guided: whether the search is selective.
        ply: plies from the root to the node. At the root, actions save nothing.
        actions: the number of legal actions of the node.

    Returns:
        0, 1 or 2, int64.
    """
    if not guided or ply == 0 or ply >= MAX_EXTENDED_PLY:
        return np.int64(0)
    return max(np.int64(0), np.int64(3) - actions)


@jit_inline
def unknown_reduction(guided: bool, work: np.record, depth: Index, tt_move: Index) -> Index:
    """Return the plies by which to reduce a node without an action in the transposition table.

    Such a node has not proved important so far. If it does, the next iteration has an action for
    it.

    Args:
        guided: whether the search is selective.
        work: a record of :data:`bao_agents.search.alphabeta.workspace.MEMORY`.
        depth: plies from the node to the horizon.
        tt_move: the action of the transposition table, or NO_ACTION.

    Returns:
        0 or 1, int64.
    """
    if guided and tt_move == NO_ACTION and depth >= work.reductions.unknown_depth:
        return np.int64(1)
    return np.int64(0)


@jit_inline
def reduction(guided: bool, work: np.record, ply: Index) -> Index:
    """Return the plies by which to reduce the current successor of the node at ``ply``.

    Args:
        guided: whether the search is selective.
        work: a record of :data:`bao_agents.search.alphabeta.workspace.MEMORY`.
        ply: plies from the root to the node.

    Returns:
        int64, at least 0; at least one ply is left below the action.
    """
    if not guided:
        return np.int64(0)
    frame = work.frames[ply]
    if frame.by_policy != 0:
        action = np.int64(work.stack[frame.next, ACTION])
        return reduction_by_policy(work.reductions, frame.depth, work.gaps[ply, action])
    return reduction_by_order(work.reductions, frame.depth, frame.next - frame.first)


@jit
def reduction_by_policy(numbers: Reductions | np.record, depth: Index, gap: Index) -> Index:
    """Return the reduction of an action whose logit is ``gap`` 1024ths below the best one.

    ``numbers`` is a :class:`Reductions`, or a NumPy record with the same fields.
    """
    unit = numbers.policy_logits * GAP_UNIT
    return _limited(numbers.policy_plies + math.log(depth) * float(gap) / unit, depth)


@jit
def reduction_by_order(numbers: Reductions | np.record, depth: Index, index: Index) -> Index:
    """Return the reduction of an action with ``index`` others before it.

    ``numbers`` is a :class:`Reductions`, or a NumPy record with the same fields.
    """
    if depth < numbers.order_depth:
        return np.int64(0)
    growth = numbers.order_growth * math.log(depth) * math.log(index + 1.0)
    return _limited(numbers.order_plies + growth, depth)


@jit
def _limited(plies: float, depth: Index) -> Index:
    """Round a reduction down to whole plies, and leave at least one ply below the action."""
    return max(np.int64(0), min(np.int64(plies), depth - 2))
