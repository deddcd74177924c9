"""Alpha-beta search: iterative deepening, principal variation search, transposition table.

Names and methods are those of chess programming (https://www.chessprogramming.org). Values
are for the player to move: evaluations within plus and minus
:data:`agents.search.evaluation.LIMIT`, and ``WIN - n`` for a win within n plies. An action is a
ply. Where the same player acts again (a capture that waits for its side, Dutch I.a) the value
keeps its sign. Such a position is never evaluated but played on, at no cost of depth.

A *full* search to depth D has the value of plain minimax to that depth: nothing is pruned on a
guess. A *guided* search does prune on guesses: it looks less deep at actions that a network, or
their order, thinks little of, and deeper where actions are forced
(:mod:`agents.search.selective`).

Nothing is carried from one search to the next, so that an agent's choice depends on the
position alone, not on what else is in the batch or on the number of threads.

Read :func:`_search` first; :func:`_deepen` calls it for depths 1, 2, 3 and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from agents.search.evaluation import check_weights, evaluate, load_weights
from agents.search.ordering import (
    forget_cutoffs,
    pick_best,
    remember_cutoff,
    score_successors,
)
from agents.search.selective import (
    PolicyGuide,
    extension_half_plies,
    is_extended_frontier,
    is_worth_asking,
    make_guides,
    order_by_policy,
    reduction,
)
from agents.search.threads import check_seconds, check_threads, share, stop_after
from agents.search.transposition import (
    NO_ACTION,
    PROVEN,
    SMALL_TABLE_BITS,
    TABLE_BITS,
    WIN,
    position_hash,
    probe,
    store,
)
from agents.search.workspace import MAX_DEPTH, MAX_PLIES, make_workspace
from bao_env.engine.bits import FULL, ONE, ZERO, trailing_zeros
from bao_env.engine.compile import jit, jit_inline
from bao_env.engine.kernel import CAPTURE_TURN, CHOICE, INFINITE, STARTS, candidates, simulate
from bao_env.engine.position import (
    META,
    mover_of,
    packed_opening,
    read,
    read_at,
    same_mover,
    write_at,
)
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.engine.successors import (
    ACTION,
    MAX_SUCCESSORS,
    RESULT,
    is_stuck,
    successors,
)

if TYPE_CHECKING:  # torch is slow to import, and only a guided search needs it
    from agents.nets.network import PolicyNetwork

_INFINITY: Final = WIN + 1

_SMALL_DEPTH: Final = 8  # searches of at most this depth make do with a small table
_CHUNK: Final = 16


class SearchResult(NamedTuple):
    """What a search found in one position."""

    action: int
    """The best action; -1 where there is none."""
    value: int
    """For the player to move; see the module's text."""
    depth: int
    """Depth of the last iteration that was finished."""
    nodes: int
    """Positions visited. In a guided search what the network reads counts too."""
    line: tuple[int, ...]
    """Best play for both sides, as actions, beginning with ``action``."""


@jit
def _horizon_value(weights, packed, ply):
    """Value of a position at the horizon, for its mover."""
    # 1.2: a player without a move has lost, which shows in their rows alone. Only a player all
    # of whose moves would be infinite (1.5a) is missed here and evaluated: a search one ply
    # deeper finds that out.
    if is_stuck(packed):
        return np.int64(ply - WIN)
    return evaluate(weights, packed)


@jit
def _search_frontier(rules, weights, work, packed, ply, beta):
    """Value of a position one ply above the horizon.

    A short form of :func:`_search` for the nodes that are by far the most: each move is played,
    evaluated and forgotten, in the order in which it comes.

    Args:
        rules: the :class:`KernelRules`, of which no capture waits for its side.
        weights: int16[WEIGHTS] of the evaluation.
        work: that of :func:`_search`; the moves are counted as nodes.
        packed: the position, a :class:`Packed`.
        ply: plies from the root to it.
        beta: a move that is worth this much ends the search.

    Returns:
        the value for the mover, int64; if it is ``beta`` or more, a lower bound.
    """
    found = candidates(rules, packed)
    capture_turn = (found & CAPTURE_TURN) != ZERO
    starts = found & STARTS
    best = np.int64(ply - WIN)
    nodes = np.int64(0)
    while starts != ZERO:
        start = trailing_zeros(starts)
        starts &= starts - ONE
        stops = ZERO
        while True:
            played = simulate(rules, packed, capture_turn, start, stops)
            if (played.tally & INFINITE) == ZERO:
                nodes += 1
                if played.result == ONE:
                    value = np.int64(WIN - ply - 1)
                elif played.result == FULL:
                    value = np.int64(ply + 1 - WIN)
                else:
                    value = -_horizon_value(weights, played.after, ply + 1)
                if value > best:
                    best = value
                    if best >= beta:
                        work.nodes += nodes
                        return best
            if stops != ZERO or (played.tally & CHOICE) == ZERO:
                break
            stops = FULL  # 2.5b: the house may be kept
    work.nodes += nodes
    return best


@jit
def _search(rules, weights, guide, table, work, depth):
    """Value of the position in row 0 of the stack, ``depth`` >= 1 plies deep.

    Depth first, as a loop: ``work.frames`` takes the place of recursion, which numba compiles to
    slower code. ``ply`` says where on the line under way the loop is. The steps that it takes are
    numbered in the functions below.

    Args:
        rules: the :class:`KernelRules`.
        weights: int16[WEIGHTS] of the evaluation.
        guide: a :class:`PolicyGuide`; None for a full search, from which all that is done with
            one is left out.
        table: the transposition table.
        work: a record of :data:`agents.search.workspace.MEMORY`. ``work.lines[0]`` takes the best
            line.
        depth: plies to the horizon.

    Returns:
        the value for the mover, int64; nothing of use once ``work.stopped`` is set.
    """
    guided = guide is not None
    work.iteration = depth
    _ask(work.frames[0], 0, depth, -_INFINITY, _INFINITY, 0)
    ply = np.int64(0)
    entering = True
    while True:
        # Down: enter the node at `ply`, if it is new.
        expanded, value = True, np.int64(0)
        if entering:
            expanded, value = _enter_node(rules, weights, guided, table, work, ply)
            if work.stopped != 0:
                return value
            if guide is not None and expanded and is_worth_asking(work.frames[ply]):
                order_by_policy(rules, guide, work, ply)

        # On: try its actions until one needs a search of its own.
        if expanded:
            if _try_actions(weights, guided, work, ply):
                ply += 1
                entering = True
                continue
            value = _leave_node(table, work, ply)

        # Up: hand its value to the node above it, which may want to have it searched again.
        if ply == 0:
            return value
        entering = _hand_up(work, ply - 1, value)
        if not entering:
            ply -= 1


@jit_inline
def _ask(frame, row, depth, alpha, beta, half_plies):
    """Ask for the value of a node: fill the first part of its frame.

    Args:
        frame: the node's :data:`agents.search.workspace.FRAME`.
        row: of the stack, where the position is.
        depth: plies to the horizon.
        alpha, beta: the window. Only a value between them needs to be exact.
        half_plies: 0 or 1, saved by forced actions before and not used yet.
    """
    frame.row = row
    frame.depth = depth
    frame.alpha = alpha
    frame.beta = beta
    frame.half_plies = half_plies


@jit_inline
def _enter_node(rules, weights, guided, table, work, ply):
    """Steps 1 to 5: the value of a node if it is to be had at once, else its actions in order.

    Args:
        rules, weights, table, work: those of :func:`_search`.
        guided: whether the search is selective.
        ply: plies from the root to the node; its frame says what is asked.

    Returns:
        whether the node has been expanded; and its value, int64, if it has not.
    """
    frame, lines = work.frames[ply], work.lines

    # Step 1. Limits. Whatever they are, one ply is looked at.
    work.nodes += 1
    if (work.nodes >= work.node_limit or work.stop != 0) and work.iteration > 1:
        work.stopped = 1
        return False, np.int64(0)
    if ply > 0:  # the root keeps the line of the last iteration until it has a better one
        lines[ply, 0] = NO_ACTION
    packed = read_at(work.stack, frame.row)

    # Step 2. Frontier node. Captures wait for their side only where the rules leave it free
    # (Dutch I.a). Where they don't, the other player moves after every action. So each successor
    # is decided or evaluated, none is searched, and the short form is exact.
    frontier = frame.depth == 1 and ply > 0 and rules.free_side == ZERO
    if frontier and not is_extended_frontier(guided, rules, packed, ply):
        return False, _search_frontier(rules, weights, work, packed, ply, frame.beta)

    # Step 3. Transposition table.
    frame.key = position_hash(packed)
    known, value, frame.tt_move = probe(
        table, work.epoch, frame.key, frame.depth, guided, frame.alpha, frame.beta, ply
    )
    if known and ply > 0:  # the root needs a line, not only a value
        lines[ply, 0] = frame.tt_move
        lines[ply, 1] = NO_ACTION
        return False, value

    # Step 4. Expand. A player without a move has lost (1.2).
    frame.first = 1 + ply * MAX_SUCCESSORS
    frame.end = frame.first + successors(rules, packed, work.stack, frame.first)
    if frame.end == frame.first:
        return False, np.int64(ply - WIN)

    # Step 5. Order. A network may do it anew (selective.order_by_policy).
    score_successors(work, ply, np.int64(mover_of(packed.meta)))
    frame.by_policy = 0
    frame.next = frame.first
    frame.low = frame.alpha
    frame.best = -_INFINITY
    frame.best_action = NO_ACTION
    return True, np.int64(0)


@jit_inline
def _try_actions(weights, guided, work, ply):
    """Steps 6 to 9: try the actions of a node until one needs a search of its own.

    Args:
        weights, work: those of :func:`_search`.
        guided: whether the search is selective.
        ply: plies from the root to the node.

    Returns:
        whether the node at ``ply + 1`` has been asked for; if not, no action is left to try.
    """
    frame, stack = work.frames[ply], work.stack
    while frame.next < frame.end:
        # Step 6. Next action.
        k = frame.next
        pick_best(work, k, frame.end)
        again = same_mover(stack[k, META])

        # Step 7. Its depth. A capture that waits is played on; forced actions cost less.
        plies = frame.depth - 1
        if again and plies == 0:
            plies = np.int64(1)
        saved = frame.half_plies + extension_half_plies(guided, ply, frame.end - frame.first)
        plies += saved // 2

        # Step 8. The end of the game, or the horizon.
        if stack[k, RESULT] != ZERO or plies == 0 or ply + 2 >= MAX_PLIES:
            work.nodes += 1
            work.lines[ply + 1, 0] = NO_ACTION
            _take_value(work, ply, _leaf_value(weights, stack, k, ply))
            continue

        # Step 9. Have it searched: the first action with the whole window, the others only for
        # whether they are better at all (principal variation search), and less deep.
        frame.again = np.int64(again)
        frame.high = frame.beta
        frame.reduced = 0
        if k != frame.first:
            frame.high = frame.low + 1
            if not again:
                frame.reduced = reduction(guided, work, ply)
        alpha, beta = _window(frame)
        _ask(work.frames[ply + 1], k, plies - frame.reduced, alpha, beta, saved % 2)
        return True
    return False


@jit_inline
def _leaf_value(weights, stack, k, ply):
    """Value of a successor that is not searched, for the mover of the node above it.

    Args:
        weights: int16[WEIGHTS] of the evaluation.
        stack: uint64[N, 8].
        k: row of the successor.
        ply: plies from the root to the node above it.
    """
    if stack[k, RESULT] == ONE:
        return np.int64(WIN - ply - 1)
    if stack[k, RESULT] == FULL:
        return np.int64(ply + 1 - WIN)
    value = _horizon_value(weights, read_at(stack, k), ply + 1)
    return value if same_mover(stack[k, META]) else -value


@jit_inline
def _window(frame):
    """The window of the successor that is being searched, as whoever moves there sees it."""
    if frame.again != 0:
        return frame.low, frame.high
    return -frame.high, -frame.low


@jit_inline
def _hand_up(work, ply, value):
    """Steps 10 and 11: what a node makes of the value of a successor that has been searched.

    Args:
        work: that of :func:`_search`.
        ply: plies from the root to the node.
        value: of the successor, for whoever moves there.

    Returns:
        whether it must be searched again; the frame at ``ply + 1`` says how.
    """
    frame, successor = work.frames[ply], work.frames[ply + 1]
    if frame.again == 0:
        value = -value

    # Step 10. Better than was thought: search it again, first as deep as the others, then for
    # its exact value.
    if value > frame.low and frame.reduced != 0:
        successor.depth += frame.reduced
        frame.reduced = 0
    elif frame.low < value and value < frame.beta and frame.high < frame.beta:
        frame.high = frame.beta
    else:
        _take_value(work, ply, value)
        return False
    successor.alpha, successor.beta = _window(frame)
    return True


@jit_inline
def _take_value(work, ply, value):
    """Step 11: note the value of the successor under way, and go on to the next one.

    Args:
        work: that of :func:`_search`.
        ply: plies from the root to the node.
        value: for the node's mover. If it is ``beta`` or more, no other action is tried.
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
def _set_line(lines, ply, action):
    """The best line at ``ply`` now begins with ``action`` and goes on as its successor's does."""
    lines[ply, 0] = action
    i = 0
    while lines[ply + 1, i] != NO_ACTION:
        lines[ply, i + 1] = lines[ply + 1, i]
        i += 1
    lines[ply, i + 1] = NO_ACTION


@jit_inline
def _leave_node(table, work, ply):
    """Step 12: store a node whose actions have been tried.

    Args:
        table, work: those of :func:`_search`.
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
def _deepen(rules, weights, guide, workspace, position, depth):
    """Search a position to depths 1, 2, ... ``depth``, or until stopped.

    Args:
        rules, weights, guide: those of :func:`_search`.
        workspace: a :class:`Workspace`. Its memory takes nodes, value and best line.
        position: uint64[6].
        depth: the last depth.

    Returns:
        the last depth finished, int64.
    """
    work = workspace.memory[0]
    work.nodes = 0
    work.stopped = 0
    work.value = 0
    work.epoch += ONE
    work.lines[0, 0] = NO_ACTION
    forget_cutoffs(work)
    write_at(work.stack, 0, read(position))
    finished = np.int64(0)
    for iteration in range(1, depth + 1):
        value = _search(rules, weights, guide, workspace.table, work, iteration)
        if work.stopped != 0:
            break
        finished = np.int64(iteration)
        work.value = value
        if value > PROVEN or value < -PROVEN:
            break  # a proven result does not change
    return finished


@jit
def _search_many(rules, weights, guide, workspace, positions, masks, depth, actions, values):
    """Search each position of a batch that has legal actions.

    Args:
        rules, weights, guide, workspace: those of :func:`_deepen`.
        positions: uint64[B, 6].
        masks: uint64[B], their legal actions.
        depth: of the deepest search.
        actions: int64[B], filled with the best actions; 0 where there is none.
        values: int64[B], filled with the values of positions that have actions; or int64[0] if
            they are not wanted. Then an only action is taken without a search.
    """
    for g in range(positions.shape[0]):
        actions[g] = 0
        if masks[g] == ZERO:
            continue
        if (masks[g] & (masks[g] - ONE)) == ZERO and values.shape[0] == 0:
            actions[g] = trailing_zeros(masks[g])  # nothing to think about
            continue
        _deepen(rules, weights, guide, workspace, positions[g], depth)
        work = workspace.memory[0]
        if values.shape[0] != 0:
            values[g] = work.value
        actions[g] = work.lines[0, 0]


class AlphaBetaAgent:
    """Plays the best action of an alpha-beta search.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        depth: plies to look ahead, 1 to :data:`MAX_DEPTH`; the most by default, which needs
            another limit.
        seconds: stop a position's search after this time; the choice is then the best action
            found so far, and depends on the machine.
        nodes: stop it after about so many positions. One ply is looked ahead in any case.
        weights: int16[WEIGHTS] of :mod:`agents.search.evaluation`; the fitted ones by default.
        network: search selectively, guided by this network (:mod:`agents.search.selective`).
        threads: positions of a batch are searched on so many threads, each position on one;
            all cores by default.

    Raises:
        ValueError: a limit is out of range.
    """

    def __init__(
        self,
        ruleset: str | Ruleset = "zanzibar",
        *,
        depth: int | None = None,
        seconds: float | None = None,
        nodes: int | None = None,
        weights: npt.NDArray[np.int16] | None = None,
        network: PolicyNetwork | None = None,
        threads: int | None = None,
    ) -> None:
        if depth is None and seconds is None and nodes is None:
            raise ValueError("alphabeta: give a depth, a time or a number of nodes")
        depth = MAX_DEPTH if depth is None else depth
        if not 1 <= depth <= MAX_DEPTH:
            raise ValueError(f"alphabeta: depth {depth}: expected 1 to {MAX_DEPTH} plies")
        if seconds is not None:
            check_seconds("alphabeta", seconds)
        if nodes is not None and nodes < 1:
            raise ValueError(f"alphabeta: {nodes} nodes: expected at least 1")
        rules = get_ruleset(ruleset)
        self._rules = rules.kernel_rules()
        self._weights = load_weights(rules) if weights is None else weights
        self._depth = depth
        self._seconds = seconds
        check_weights(self._weights)
        self._threads = check_threads(threads)
        table_bits = SMALL_TABLE_BITS if depth <= _SMALL_DEPTH else TABLE_BITS
        self._workspaces = [make_workspace(table_bits, nodes) for _ in range(self._threads)]
        self._guides: Sequence[PolicyGuide | None] = [None] * self._threads
        if network is not None:
            self._guides = make_guides(network, self._threads)
        if seconds is not None:  # compile before the clock runs
            self._search_part(
                0,
                packed_opening(rules)[None],
                np.ones(1, np.uint64),
                1,
                np.zeros(1, np.int64),
                np.zeros(1, np.int64),
            )

    def act(
        self, positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """See :meth:`bao_env.bots.Agent.act`."""
        actions = np.zeros(len(masks), np.int64)
        self._share(positions, masks, actions, np.empty(0, np.int64))
        return actions

    def values(
        self, positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """Values int64[B] of positions uint64[B, 6], none of them over, for their movers."""
        values = np.zeros(len(masks), np.int64)
        self._share(positions, masks, np.zeros(len(masks), np.int64), values)
        return values

    def _share(
        self,
        positions: npt.NDArray[np.uint64],
        masks: npt.NDArray[np.uint64],
        actions: npt.NDArray[np.int64],
        values: npt.NDArray[np.int64],
    ) -> None:
        """:func:`_search_many` on all threads, each position with its own time."""

        def search(part: slice, thread: int) -> None:
            with stop_after(self._workspaces[thread].memory["stop"], self._seconds):
                self._search_part(
                    thread, positions[part], masks[part], self._depth, actions[part], values[part]
                )

        share(len(masks), _CHUNK if self._seconds is None else 1, self._threads, search)

    def _search_part(
        self,
        thread: int,
        positions: npt.NDArray[np.uint64],
        masks: npt.NDArray[np.uint64],
        depth: int,
        actions: npt.NDArray[np.int64],
        values: npt.NDArray[np.int64],
    ) -> None:
        """:func:`_search_many` on one thread."""
        _search_many(
            self._rules,
            self._weights,
            self._guides[thread],
            self._workspaces[thread],
            positions,
            masks,
            depth,
            actions,
            values,
        )

    def search(self, position: npt.NDArray[np.uint64]) -> SearchResult:
        """Search one position, uint64[6], and tell all that was found."""
        workspace = self._workspaces[0]
        with stop_after(workspace.memory["stop"], self._seconds):
            depth = _deepen(
                self._rules, self._weights, self._guides[0], workspace, position, self._depth
            )
        work = workspace.memory[0]
        line = list(takewhile(lambda action: action != NO_ACTION, work.lines[0].tolist()))
        return SearchResult(
            action=line[0] if line else -1,
            value=int(work.value),
            depth=int(depth),
            nodes=int(work.nodes),
            line=tuple(line),
        )
