"""Search to a given depth: negamax with a window, as a principal variation search.

A node is a position on the current line. Its value is for its mover, so a successor's value changes
sign on the way up (negamax). Values outside the window [alpha, beta] are only bounds.
:func:`search` is the loop; a node goes through these steps::

    enter         1 limits    2 frontier node    3 transposition table    4 expand    5 order
    each action   6 next action    7 its depth    8 leaf, or put off    9 window, reduction
    come back     10 search again    11 best action, cutoff
    leave         12 store

Threads may search the same position together, with one transposition table. In step 3 a thread
finds the results that the others have stored. Step 8 keeps the threads apart: each thread marks the
successor that it searches, and another thread at the same node tries other actions first (Weill
1996, "The ABDADA distributed minimax search algorithm"; without locks, as in Kerrigan's simplified
version, https://www.chessprogramming.org/ABDADA). Now and then a thread also looks up the nodes
above its own. If another thread has found the value of one of them, the rest of its search is not
needed.

Two modules make a guided search selective: :mod:`bao_agents.search.alphabeta.reductions` has the
reductions of steps 3 and 9 and the extensions of step 7, and
:mod:`bao_agents.search.alphabeta.policy_order` has the network's order in step 5.
"""

from __future__ import annotations

import numpy as np

from bao_agents.evaluators.nnue import Evaluator, position_value
from bao_agents.search.alphabeta.ordering import (
    PUT_OFF_SCORE,
    pick_best,
    remember_cutoff,
    score_successors,
)
from bao_agents.search.alphabeta.policy_order import (
    PolicyGuide,
    is_worth_asking,
    order_by_policy,
)
from bao_agents.search.alphabeta.reductions import (
    extension_half_plies,
    is_extended_frontier,
    reduction,
    unknown_reduction,
)
from bao_agents.search.alphabeta.transposition import (
    NO_ACTION,
    WIN_VALUE,
    probe,
    store,
)
from bao_agents.search.alphabeta.workspace import MARKS, MAX_SEARCH_PLIES
from bao_agents.search.limits import is_late
from bao_agents.search.masks import keep_actions
from bao_agents.support.array_types import Int8Array, Uint64Array
from bao_env.compiled.compile import jit, jit_inline, jit_merged
from bao_env.engine.bits import FULL, ONE, ZERO, U, trailing_zeros
from bao_env.engine.kernel import CHOICE, FREE, INFINITE, simulate
from bao_env.engine.position import META, Index, Rows, load_rows_at, mover_of, same_mover
from bao_env.engine.position_hash import position_hash
from bao_env.engine.ruleset import KernelRules
from bao_env.engine.starts import candidates, is_stuck
from bao_env.engine.successors import (
    ACTION,
    MAX_SUCCESSORS,
    RESULT,
    successors,
)

_INFINITY = WIN_VALUE + 1
_MARKED_DEPTH = 2
"""Threads mark only successors of at least this depth, in plies. Shallower ones end too soon."""
_COMPARE_NODES = 1024
"""Nodes after which a thread looks for values of the nodes above it: about 0.2 milliseconds."""
_COMPARED_DEPTH = 5
"""The least depth, in plies, of the nodes whose values it looks for."""


@jit_merged
def search(
    rules: KernelRules,
    evaluator: Evaluator,
    guide: PolicyGuide,
    table: Uint64Array,
    marks: Uint64Array,
    work: np.record,
    depth: Index,
) -> Index:
    """Search the position in row 0 of the stack to ``depth`` plies, and return its value.

    The search is a depth-first loop: ``work.frames`` replaces recursion, which numba compiles to
    slower code. ``ply`` is the loop's place on the current line. The functions below do the
    numbered steps.

    Args:
        rules: the :class:`KernelRules`.
        evaluator: the :class:`Evaluator` of the positions at the horizon.
        guide: a :class:`PolicyGuide`; an empty one for a full search.
        table: the transposition table.
        marks: uint64[MARKS], see :class:`~.workspace.Workspace`.
        work: a record of :data:`bao_agents.search.alphabeta.workspace.MEMORY`; ``work.lines[0]``
            gets the best line.
        depth: plies to the horizon, at least 1.

    Returns:
        the value for the mover, int64; meaningless once ``work.stopped`` is set.
    """
    guided = guide.is_present
    work.iteration = depth
    _ask(work.frames[0], 0, depth, -_INFINITY, _INFINITY, 0)
    ply: Index = np.int64(0)
    entering = True
    while True:
        # Back: leave a node whose value another thread has found in the meantime.
        if work.threads > 1 and work.nodes >= work.compare_at:
            work.compare_at = work.nodes + _COMPARE_NODES
            above, value = _find_value_above(guided, table, marks, work, ply)
            if above < ply:
                ply = above
                entering = _hand_up(marks, work, ply - 1, value)
                if not entering:
                    ply -= 1

        # Down: enter the node at `ply`, if it is new.
        expanded, value = True, np.int64(0)
        if entering:
            expanded, value = _enter_node(rules, evaluator, guided, table, work, ply)
            if work.stopped != 0:
                return value
            if expanded and is_worth_asking(guide, work.frames[ply]):
                order_by_policy(rules, guide, work, ply)

        # Along: try its actions until one needs its own search.
        if expanded:
            if _try_actions(evaluator, guided, marks, work, ply):
                ply += 1
                entering = True
                continue
            value = _leave_node(table, work, ply)

        # Up: give its value to the node above it, which may search it again.
        if ply == 0:
            return value
        entering = _hand_up(marks, work, ply - 1, value)
        if not entering:
            ply -= 1


@jit
def _find_value_above(
    guided: bool, table: Uint64Array, marks: Uint64Array, work: np.record, ply: Index
) -> tuple[Index, Index]:
    """Find the highest node of the current line whose value another thread has stored.

    The marks from that node down are removed, as nothing below it is searched any more.

    Args:
        guided: whether the search is selective.
        table, marks, work: see :func:`search`.
        ply: plies from the root to the last node of the line, which is left out.

    Returns:
        plies from the root to that node, and its value; ``ply`` and 0 if there is none.
    """
    for above in range(1, ply):
        frame = work.frames[above]
        if frame.depth < _COMPARED_DEPTH:
            break
        is_known, value, action = probe(
            table, work.epoch, frame.key, frame.depth, guided, frame.alpha, frame.beta, above
        )
        if is_known:
            work.lines[above, 0] = action
            work.lines[above, 1] = NO_ACTION
            for marked in range(above, ply):
                _unmark(marks, work.frames[marked])
            return np.int64(above), value
    return ply, np.int64(0)


@jit_inline
def _ask(
    frame: np.record, row: Index, depth: Index, alpha: Index, beta: Index, half_plies: Index
) -> None:
    """Set up the search of a node: write its position, depth and window to its frame.

    Args:
        frame: the node's :data:`bao_agents.search.alphabeta.workspace.FRAME`.
        row: the row of the stack that holds the position.
        depth: plies to the horizon.
        alpha, beta: the window. Only a value between them needs to be exact.
        half_plies: half plies that earlier forced actions have saved, 0 or 1.
    """
    frame.row = row
    frame.depth = depth
    frame.alpha = alpha
    frame.beta = beta
    frame.half_plies = half_plies


@jit_inline
def _enter_node(
    rules: KernelRules,
    evaluator: Evaluator,
    guided: bool,
    table: Uint64Array,
    work: np.record,
    ply: Index,
) -> tuple[bool, Index]:
    """Do steps 1 to 5: return the node's value if it needs no search, else order its actions.

    Args:
        rules, evaluator, table, work: see :func:`search`.
        guided: whether the search is selective.
        ply: plies from the root to the node; its frame holds the depth and the window to search
            with.

    Returns:
        whether the node has been expanded; and, if not, its value, int64.
    """
    frame, lines = work.frames[ply], work.lines

    # Step 1. Limits. At least one ply is always searched.
    work.nodes += 1
    if work.nodes >= work.look_at and is_late(work) and work.iteration > 1:
        work.stopped = 1
        return False, np.int64(0)
    if ply > 0:  # the root keeps the line of the last iteration until it has a better one
        lines[ply, 0] = NO_ACTION
    rows = load_rows_at(work.stack, frame.row)

    # Step 2. Frontier node. Unless the rules leave the side of captures free (Dutch I.a), the other
    # player moves after every action. So each successor is decided or evaluated, and none is
    # searched: the short form is exact.
    if frame.depth == 1 and ply > 0 and rules.capture_side != FREE:
        turn = candidates(rules, rows)
        if not is_extended_frontier(guided, turn[1], ply):
            return False, _search_frontier(rules, evaluator, work, rows, turn, ply, frame.beta)

    # Step 3. Transposition table.
    frame.key = position_hash(rows)
    if ply == 0:  # a root that lacks some of its actions is another position
        frame.key ^= work.left_out
    is_known, value, frame.tt_move = probe(
        table, work.epoch, frame.key, frame.depth, guided, frame.alpha, frame.beta, ply
    )
    if is_known and ply > 0:  # the root needs a line, not only a value
        lines[ply, 0] = frame.tt_move
        lines[ply, 1] = NO_ACTION
        return False, value
    if ply > 0:
        frame.depth -= unknown_reduction(guided, work, frame.depth, frame.tt_move)

    # Step 4. Expand. A player without a move has lost (1.2).
    frame.first = 1 + ply * MAX_SUCCESSORS
    frame.end = frame.first + successors(rules, rows, work.stack, frame.first)
    if ply == 0:
        frame.end = keep_actions(work.stack, frame.first, frame.end, work.actions)
    if frame.end == frame.first:
        return False, np.int64(ply - WIN_VALUE)

    # Step 5. Order. A network may replace it (policy_order).
    score_successors(work, ply, np.int64(mover_of(rows.meta)))
    frame.by_policy = 0
    frame.next = frame.first
    frame.low = frame.alpha
    frame.best = -_INFINITY
    frame.best_action = NO_ACTION
    return True, np.int64(0)


@jit_inline
def _try_actions(
    evaluator: Evaluator, guided: bool, marks: Uint64Array, work: np.record, ply: Index
) -> bool:
    """Do steps 6 to 9: try the actions of a node until one needs its own search.

    Args:
        evaluator, marks, work: see :func:`search`.
        guided: whether the search is selective.
        ply: plies from the root to the node.

    Returns:
        whether the node at ``ply + 1`` must be searched; if not, no action is left to try.
    """
    frame, stack = work.frames[ply], work.stack
    while frame.next < frame.end:
        # Step 6. Next action.
        k = frame.next
        pick_best(work, k, frame.end)
        keeps_turn = same_mover(stack[k, META])

        # Step 7. Its depth. A capture that waits is played on; forced actions cost less.
        plies = frame.depth - 1
        if keeps_turn and plies == 0:
            plies = np.int64(1)
        saved = frame.half_plies + extension_half_plies(guided, ply, frame.end - frame.first)
        plies += saved // 2

        # Step 8. The end of the game, the horizon, or a successor that another thread searches.
        if stack[k, RESULT] != ZERO or plies == 0 or ply + 2 >= MAX_SEARCH_PLIES:
            work.nodes += 1
            work.lines[ply + 1, 0] = NO_ACTION
            _take_value(work, ply, _leaf_value(evaluator, stack, k, ply))
            continue
        frame.mark = ZERO
        if work.threads > 1 and plies >= _MARKED_DEPTH and _is_put_off(marks, work, ply, k):
            continue

        # Step 9. Request a search: the first action with the whole window; the others less deeply,
        # and only to find out whether they are better (principal variation search).
        frame.again = np.int64(keeps_turn)
        frame.high = frame.beta
        frame.reduced = 0
        if k != frame.first:
            frame.high = frame.low + 1
            if not keeps_turn:
                frame.reduced = reduction(guided, work, ply)
        alpha, beta = _window(frame)
        _ask(work.frames[ply + 1], k, plies - frame.reduced, alpha, beta, saved % 2)
        return True
    return False


@jit
def _is_put_off(marks: Uint64Array, work: np.record, ply: Index, k: Index) -> bool:
    """Put a successor off if another thread is searching it; else mark it.

    The first action of a node is never put off, and no action is put off twice.

    Args:
        marks, work: see :func:`search`.
        ply: plies from the root to the node.
        k: the row of the successor.

    Returns:
        whether it has been put off.
    """
    frame = work.frames[ply]
    key = position_hash(load_rows_at(work.stack, k))
    slot = np.int64(key & U(MARKS - 1))
    if k != frame.first and marks[slot] == key and work.scores[k] != PUT_OFF_SCORE:
        work.scores[k] = PUT_OFF_SCORE
        return True
    marks[slot] = frame.mark = key
    return False


@jit_inline
def _unmark(marks: Uint64Array, frame: np.record) -> None:
    """Remove the mark of a node's current successor, if it has one.

    Args:
        marks: see :func:`search`.
        frame: the node's frame.
    """
    slot = np.int64(frame.mark & U(MARKS - 1))
    if frame.mark != ZERO and marks[slot] == frame.mark:
        marks[slot] = ZERO


@jit_inline
def _leaf_value(evaluator: Evaluator, stack: Uint64Array, k: Index, ply: Index) -> Index:
    """Return the value of a successor that is not searched, for the mover of the node above it.

    Args:
        evaluator: see :func:`search`.
        stack: uint64[N, 8].
        k: the row of the successor.
        ply: plies from the root to the node above it.
    """
    if stack[k, RESULT] == ONE:
        return np.int64(WIN_VALUE - ply - 1)
    if stack[k, RESULT] == FULL:
        return np.int64(ply + 1 - WIN_VALUE)
    value = _horizon_value(evaluator, load_rows_at(stack, k), ply + 1)
    return value if same_mover(stack[k, META]) else -value


@jit_inline
def _window(frame: np.record) -> tuple[Index, Index]:
    """Return the window of the current successor, as its mover sees it."""
    if frame.again != 0:
        return frame.low, frame.high
    return -frame.high, -frame.low


@jit_inline
def _hand_up(marks: Uint64Array, work: np.record, ply: Index, value: Index) -> bool:
    """Do steps 10 and 11: use the value of a successor that has been searched.

    Args:
        marks, work: see :func:`search`.
        ply: plies from the root to the node.
        value: the successor's value, for its mover.

    Returns:
        whether it must be searched again; if so, the frame at ``ply + 1`` holds its new depth and
        window.
    """
    frame, successor = work.frames[ply], work.frames[ply + 1]
    if frame.again == 0:
        value = -value

    # Step 10. Better than expected: search it again, first to full depth, then for its exact
    # value.
    if value > frame.low and frame.reduced != 0:
        successor.depth += frame.reduced
        frame.reduced = 0
    elif frame.low < value and value < frame.beta and frame.high < frame.beta:
        frame.high = frame.beta
    else:
        _unmark(marks, frame)
        _take_value(work, ply, value)
        return False
    successor.alpha, successor.beta = _window(frame)
    return True


@jit_inline
def _take_value(work: np.record, ply: Index, value: Index) -> None:
    """Do step 11: record the value of the current successor, and move to the next one.

    Args:
        work: see :func:`search`.
        ply: plies from the root to the node.
        value: its value for the node's mover. At ``beta`` or more, no other action is tried.
    """
    frame = work.frames[ply]
    k = frame.next
    frame.next = k + 1
    if value <= frame.best:
        return
    action = np.int64(work.stack[k, ACTION])
    frame.best = value
    frame.best_action = action
    if value > frame.low:
        frame.low = value
        _set_line(work.lines, ply, action)
        if ply == 0:
            work.value = value
    if value >= frame.beta:
        seat = np.int64(mover_of(work.stack[frame.row, META]))
        remember_cutoff(work, ply, seat, action, frame.depth)
        frame.next = frame.end


@jit_inline
def _set_line(lines: Int8Array, ply: Index, action: Index) -> None:
    """Set the best line at ``ply`` to ``action``, followed by the best line of its successor."""
    lines[ply, 0] = action
    i = 0
    while lines[ply + 1, i] != NO_ACTION:
        lines[ply, i + 1] = lines[ply + 1, i]
        i += 1
    lines[ply, i + 1] = NO_ACTION


@jit_inline
def _leave_node(table: Uint64Array, work: np.record, ply: Index) -> Index:
    """Do step 12: store a node whose actions have been tried.

    Args:
        table, work: see :func:`search`.
        ply: plies from the root to the node.

    Returns:
        its value for its mover, int64.
    """
    frame = work.frames[ply]
    store(
        table,
        work.epoch,
        frame.key,
        frame.depth,
        frame.alpha,
        frame.beta,
        ply,
        frame.best,
        frame.best_action,
    )
    return frame.best


@jit
def _horizon_value(evaluator: Evaluator, rows: Rows, ply: Index) -> Index:
    """Return the value of a position at the horizon, for its mover."""
    # 1.2: a player without a move has lost; their rows show this. The only exception is a player
    # whose moves are all infinite (1.5a); a search one ply deeper finds this.
    if is_stuck(rows):
        return np.int64(ply - WIN_VALUE)
    return position_value(evaluator, rows)


@jit
def _search_frontier(
    rules: KernelRules,
    evaluator: Evaluator,
    work: np.record,
    rows: Rows,
    turn: tuple[bool, U],
    ply: Index,
    beta: Index,
) -> Index:
    """Return the value of a position one ply above the horizon.

    This is a short form of :func:`search` for these nodes, which are by far the most common. It
    plays and evaluates the moves in no particular order, and stores none of them.

    Args:
        rules: the :class:`KernelRules`, under which the other player moves after every action.
        evaluator: see :func:`search`.
        work: see :func:`search`; each move counts as a node.
        rows: the position, a :class:`Rows`.
        turn: its :func:`candidates`.
        ply: plies from the root to it.
        beta: a move with at least this value ends the search.

    Returns:
        the value for the mover, int64; if it is ``beta`` or more, a lower bound.
    """
    capture_turn, starts = turn
    best: Index = np.int64(ply - WIN_VALUE)
    nodes = np.int64(0)
    while starts != ZERO:
        start = trailing_zeros(starts)
        starts &= starts - ONE
        stops_at_house = ZERO
        while True:
            played = simulate(rules, rows, capture_turn, start, stops_at_house, False)
            if (played.tally & INFINITE) == ZERO:
                nodes += 1
                if played.result == ONE:
                    value: Index = np.int64(WIN_VALUE - ply - 1)
                elif played.result == FULL:
                    value = np.int64(ply + 1 - WIN_VALUE)
                else:
                    value = -_horizon_value(evaluator, played.after, ply + 1)
                if value > best:
                    best = value
                    if best >= beta:
                        work.nodes += nodes
                        return best
            if stops_at_house != ZERO or (played.tally & CHOICE) == ZERO:
                break
            stops_at_house = FULL  # 2.5b: the house may be kept
    work.nodes += nodes
    return best
