"""Order the actions of a node, so that alpha-beta tries the likely best first.

The better the order, the sooner a search is cut off. First comes the action of the transposition
table, then the actions that win at once. The others are ordered by the seeds that they capture, by
the killer move of their ply (https://www.chessprogramming.org/Killer_Heuristic) and by the cutoffs
that they have caused (https://www.chessprogramming.org/History_Heuristic). A policy network may
replace this order (:func:`bao_agents.search.alphabeta.policy_order.order_by_policy`).
"""

from __future__ import annotations

import numpy as np

from bao_agents.search.alphabeta.transposition import NO_ACTION
from bao_env.compiled.compile import jit_inline
from bao_env.engine.bits import ONE
from bao_env.engine.position import Index
from bao_env.engine.successors import ACTION, CAPTURED, RESULT, SUCCESSOR_WORDS

_TT_MOVE_SCORE = 1 << 40
_WIN_SCORE = 1 << 39
_SEED_SCORE = 64  # for each seed captured
_KILLER_SCORE = 256
_MAX_HISTORY_SCORE = 1 << 20
PUT_OFF_SCORE = -(1 << 41)
"""The score of an action that waits until the others have been tried."""


@jit_inline
def forget_cutoffs(work: np.record) -> None:
    """Clear the killers and the history in a record of :data:`~.workspace.MEMORY`."""
    work.killers[:] = NO_ACTION
    work.history[:] = 0


@jit_inline
def remember_cutoff(work: np.record, ply: Index, seat: Index, action: Index, depth: Index) -> None:
    """Record that an action has caused a cutoff at a node.

    Args:
        work: a record of :data:`bao_agents.search.alphabeta.workspace.MEMORY`, changed in place.
        ply: plies from the root to the node.
        seat: the seat that chose the action, 0 or 1.
        action: the action.
        depth: plies from the node to the horizon.
    """
    work.killers[ply] = action
    work.history[seat, action] += depth * depth


@jit_inline
def score_successors(work: np.record, ply: Index, seat: Index) -> None:
    """Score the successors of the node at ``ply``. The highest score is tried first.

    Args:
        work: a record of :data:`bao_agents.search.alphabeta.workspace.MEMORY`; its scores are
            filled in.
        ply: plies from the root to the node.
        seat: the seat to move, 0 or 1.
    """
    frame = work.frames[ply]
    killer = work.killers[ply]
    for k in range(frame.first, frame.end):
        action = np.int64(work.stack[k, ACTION])
        if action == frame.tt_move:
            work.scores[k] = _TT_MOVE_SCORE
        elif work.stack[k, RESULT] == ONE:
            work.scores[k] = _WIN_SCORE
        else:
            score = np.int64(work.stack[k, CAPTURED]) * _SEED_SCORE
            score += min(work.history[seat, action], _MAX_HISTORY_SCORE)
            if action == killer:
                score += _KILLER_SCORE
            work.scores[k] = score


@jit_inline
def pick_best(work: np.record, k: Index, end: Index) -> None:
    """Move the best of the successors in rows ``k`` to ``end`` - 1 to row ``k``.

    A cutoff usually comes early, so picking one at a time is cheaper than sorting all.

    Args:
        work: a record of :data:`bao_agents.search.alphabeta.workspace.MEMORY`, changed in place.
        k, end: the rows of the stack to choose from.
    """
    stack, scores = work.stack, work.scores
    best = k
    for j in range(k + 1, end):
        if scores[j] > scores[best]:
            best = j
    if best != k:
        scores[best], scores[k] = scores[k], scores[best]
        for word in range(SUCCESSOR_WORDS):
            stack[best, word], stack[k, word] = stack[k, word], stack[best, word]
