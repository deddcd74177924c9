"""Alpha-beta search: iterative deepening, principal variation search, transposition table.

Names and methods are those of chess programming (https://www.chessprogramming.org). Values
are for the player to move: evaluations within plus and minus
:data:`agents.search.evaluation.LIMIT`, and ``WIN - n`` for a win within n plies. A search to
depth D has the value of plain minimax to that depth: nothing is pruned on a guess. An action is
a ply; where the same player acts again (a capture that waits for its side, Dutch I.a) the value
keeps its sign, and a capture that waits is never evaluated but played on, at no cost of depth.

A *guided* search does prune on guesses: it looks less deep at actions that a network, or the
order of moves, thinks little of, and deeper where actions are forced
(:mod:`agents.search.selective`).

Nothing is carried from one search to the next, so that an agent's choice depends on the
position alone, not on what else is in the batch or on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from agents.search.evaluation import check_weights, evaluate, load_weights
from agents.search.selective import (
    EXTEND_PLIES,
    Guide,
    consult,
    half_plies_saved,
    make_guides,
    reduction,
    reduction_by_order,
)
from agents.search.threads import check_seconds, check_threads, share, stop_after
from agents.search.transposition import (
    NO_ACTION,
    PROVEN,
    SMALL_TABLE_BITS,
    TABLE_BITS,
    WIN,
    keep,
    position_hash,
    probe,
)
from bao_env.engine.bits import FULL, ONE, ZERO, U, trailing_zeros
from bao_env.engine.compile import jit
from bao_env.engine.kernel import CAPTURE_TURN, CHOICE, INFINITE, STARTS, candidates, simulate
from bao_env.engine.position import META, mover_of, packed_opening, read_at, same_mover
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.engine.successors import (
    ACTION,
    CAPTURED,
    MAX_SUCCESSORS,
    RESULT,
    SUCCESSOR_WORDS,
    is_stuck,
    successors,
)

if TYPE_CHECKING:  # torch is slow to import, and only a guided search needs it
    from agents.nets.network import PolicyNetwork

MAX_DEPTH: Final = 60
"""Deepest search, in plies."""

_PLIES: Final = 2 * MAX_DEPTH  # room for captures that wait, which cost no depth at the horizon
_INFINITY: Final = WIN + 1

# State of a search, int64[...]: what every node shares.
_NODES: Final = 0
_NODE_LIMIT: Final = 1
_STOPPED: Final = 2
_TABLE_MASK: Final = 3
_EPOCH: Final = 4
_ROOT_ACTION: Final = 5
_ROOT_VALUE: Final = 6
_KILLERS: Final = 7  # one action a ply
_HISTORY: Final = _KILLERS + _PLIES  # one count for each action of either seat
_STATE: Final = _HISTORY + 2 * 64

# State of a node, int64[...]: what a recursive search would hold in its variables.
(
    _ROW,
    _DEPTH,
    _ALPHA,
    _BETA,
    _AGAIN,
    _SIDE,
    _LOW,
    _HIGH,
    _BEST,
    _BEST_ACTION,
    _FIRST,
    _NEXT,
    _END,
    _CONSULTED,
    _REDUCED,
    _SAVED,
    _FIELDS,
) = range(17)
_ENTER, _CHOOSE, _RETURN, _UPDATE = range(4)

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
    """Positions visited; in a guided search also what the network's rows count as."""
    line: tuple[int, ...]
    """Best play for both sides, as actions, beginning with ``action``."""


@jit
def _leaf(weights, packed, ply):
    """Value of a position at the horizon, for its mover."""
    if is_stuck(packed):
        return np.int64(ply - WIN)
    return evaluate(weights, packed)


@jit
def _frontier(rules, weights, state, packed, ply, beta):
    """Value of a position one ply above the horizon; its moves are tried as they come."""
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
                    value = -_leaf(weights, played.after, ply + 1)
                if value > best:
                    best = value
                    if best >= beta:
                        state[_NODES] += nodes
                        return best
            if stops != ZERO or (played.tally & CHOICE) == ZERO:
                break
            stops = FULL  # 2.5b: the house may be kept
    state[_NODES] += nodes
    return best


@jit
def _is_forced(rules, packed):
    """Whether the mover has but one pit and direction to begin with, or none."""
    starts = candidates(rules, packed) & STARTS
    return (starts & (starts - ONE)) == ZERO


@jit
def _order(stack, scores, state, base, count, ply, side, hint):
    """Score the successors of a node: the higher, the earlier it is searched."""
    killer = state[_KILLERS + ply]
    history = _HISTORY + side * 64
    for k in range(base, base + count):
        action = np.int64(stack[k, ACTION])
        if action == hint:
            scores[k] = 1 << 40
        elif stack[k, RESULT] == ONE:
            scores[k] = 1 << 39
        else:
            score = np.int64(stack[k, CAPTURED]) * 64 + min(state[history + action], 1 << 20)
            if action == killer:
                score += 256
            scores[k] = score


@jit
def _pick(stack, scores, k, end):
    """Bring the best of successors k..end-1 to row k."""
    top = k
    for j in range(k + 1, end):
        if scores[j] > scores[top]:
            top = j
    if top != k:
        scores[top] = scores[k]
        for word in range(SUCCESSOR_WORDS):
            swapped = stack[top, word]
            stack[top, word] = stack[k, word]
            stack[k, word] = swapped


@jit
def _new_best(state, pv, ply, action, value):
    """The best line of a node now begins with ``action`` and goes on as its successor's does."""
    pv[ply, 0] = action
    i = 0
    while pv[ply + 1, i] != NO_ACTION:
        pv[ply, i + 1] = pv[ply + 1, i]
        i += 1
    pv[ply, i + 1] = NO_ACTION
    if ply == 0:
        state[_ROOT_ACTION] = action
        state[_ROOT_VALUE] = value


@jit
def _search(rules, weights, work, depth, guide):
    """Value of the position in row 0 of the stack, ``depth`` >= 1 plies deep.

    Depth first, without recursion: ``frames`` holds what a recursive function would hold in
    its variables. Returns 0 once the search has been stopped. Without a guide (None) numba
    compiles none of what is done with one.
    """
    table, state, stop, stack, scores, frames, keys, pv = work
    mask, epoch = U(state[_TABLE_MASK]), U(state[_EPOCH])
    frames[0, _DEPTH] = depth
    frames[0, _ALPHA] = -_INFINITY
    frames[0, _BETA] = _INFINITY
    frames[0, _ROW] = 0
    frames[0, _SAVED] = 0
    ply = 0
    step = _ENTER
    value = np.int64(0)
    while True:
        if step == _ENTER:
            state[_NODES] += 1
            over = state[_NODES] >= state[_NODE_LIMIT] or stop[0] != 0
            if over and frames[0, _DEPTH] > 1:  # whatever the limit, one ply is looked at
                state[_STOPPED] = 1
                return np.int64(0)
            row = frames[ply, _ROW]
            depth = frames[ply, _DEPTH]
            alpha = frames[ply, _ALPHA]
            beta = frames[ply, _BETA]
            packed = read_at(stack, row)
            if ply > 0:  # the line of the last depth stands until there is a better one
                pv[ply, 0] = NO_ACTION
            step = _RETURN
            frontier = depth == 1 and ply > 0 and rules.free_side == ZERO
            if guide is not None and frontier and ply < EXTEND_PLIES:
                frontier = not _is_forced(rules, packed)
            if frontier:
                value = _frontier(rules, weights, state, packed, ply, beta)
            else:
                key = position_hash(packed)
                known, value, hint = probe(
                    table, mask, epoch, key, depth, guide is not None, alpha, beta, ply
                )
                if known and ply > 0:
                    pv[ply, 0] = hint
                    pv[ply, 1] = NO_ACTION
                else:
                    base = 1 + ply * MAX_SUCCESSORS
                    count = successors(rules, packed, stack, base)
                    value = np.int64(ply - WIN)
                    if count > 0:
                        side = np.int64(mover_of(packed.meta))
                        _order(stack, scores, state, base, count, ply, side, hint)
                        keys[ply] = key
                        frames[ply, _SIDE] = side
                        frames[ply, _LOW] = alpha
                        frames[ply, _BEST] = -_INFINITY
                        frames[ply, _BEST_ACTION] = NO_ACTION
                        frames[ply, _FIRST] = base
                        frames[ply, _NEXT] = base
                        frames[ply, _END] = base + count
                        if guide is not None:
                            asked = consult(
                                rules,
                                guide,
                                stack,
                                scores,
                                base,
                                count,
                                packed,
                                depth,
                                hint,
                            )
                            state[_NODES] += asked
                            frames[ply, _CONSULTED] = asked
                        step = _CHOOSE

        if step == _CHOOSE:
            k = frames[ply, _NEXT]
            if k == frames[ply, _END]:
                value = frames[ply, _BEST]
                keep(
                    table,
                    mask,
                    epoch,
                    keys[ply],
                    frames[ply, _DEPTH],
                    frames[ply, _ALPHA],
                    frames[ply, _BETA],
                    ply,
                    value,
                    frames[ply, _BEST_ACTION],
                )
                step = _RETURN
            else:
                _pick(stack, scores, k, frames[ply, _END])
                meta = stack[k, META]
                again = same_mover(meta)
                deeper = frames[ply, _DEPTH] - 1
                if again and deeper == 0:
                    deeper = 1
                if guide is not None:
                    saved = frames[ply, _SAVED]
                    if 0 < ply < EXTEND_PLIES:
                        saved += half_plies_saved(frames[ply, _END] - frames[ply, _FIRST])
                    deeper += saved // 2
                    frames[ply + 1, _SAVED] = saved % 2
                pv[ply + 1, 0] = NO_ACTION
                step = _UPDATE
                if stack[k, RESULT] != ZERO:
                    state[_NODES] += 1
                    value = np.int64(WIN - ply - 1)
                    if stack[k, RESULT] != ONE:
                        value = -value
                elif deeper == 0 or ply + 2 >= _PLIES:
                    state[_NODES] += 1
                    value = _leaf(weights, read_at(stack, k), ply + 1)
                    if not again:
                        value = -value
                else:
                    low = frames[ply, _LOW]
                    high = frames[ply, _BETA]
                    if k != frames[ply, _FIRST]:
                        high = low + 1  # principal variation search: is it better at all?
                    frames[ply, _HIGH] = high
                    if guide is not None:
                        reduced = np.int64(0)
                        if not again and k != frames[ply, _FIRST]:
                            if frames[ply, _CONSULTED] != 0:
                                reduced = reduction(frames[ply, _DEPTH], stack[k, CAPTURED])
                            else:
                                place = k - frames[ply, _FIRST]
                                reduced = reduction_by_order(frames[ply, _DEPTH], place)
                        frames[ply, _REDUCED] = reduced
                        deeper -= reduced
                    ply += 1
                    frames[ply, _AGAIN] = np.int64(again)
                    frames[ply, _DEPTH] = deeper
                    frames[ply, _ALPHA] = low if again else -high
                    frames[ply, _BETA] = high if again else -low
                    frames[ply, _ROW] = k
                    step = _ENTER
                    continue

        if step == _RETURN:
            if ply == 0:
                return value
            again = frames[ply, _AGAIN] != 0
            if not again:
                value = -value
            low = frames[ply - 1, _LOW]
            beta = frames[ply - 1, _BETA]
            if guide is not None and low < value and frames[ply - 1, _REDUCED] != 0:
                high = frames[ply - 1, _HIGH]  # better than was thought: look as deep as at others
                frames[ply, _DEPTH] += frames[ply - 1, _REDUCED]
                frames[ply - 1, _REDUCED] = 0
                frames[ply, _ALPHA] = low if again else -high
                frames[ply, _BETA] = high if again else -low
                step = _ENTER
                continue
            if low < value and value < beta and frames[ply - 1, _HIGH] < beta:
                frames[ply - 1, _HIGH] = beta  # it is: search it again for its value
                frames[ply, _ALPHA] = low if again else -beta
                frames[ply, _BETA] = beta if again else -low
                step = _ENTER
                continue
            ply -= 1
            step = _UPDATE

        if step == _UPDATE:
            k = frames[ply, _NEXT]
            frames[ply, _NEXT] = k + 1
            if value > frames[ply, _BEST]:
                action = np.int64(stack[k, ACTION])
                frames[ply, _BEST] = value
                frames[ply, _BEST_ACTION] = action
                if value > frames[ply, _LOW]:
                    frames[ply, _LOW] = value
                    _new_best(state, pv, ply, action, value)
                if value >= frames[ply, _BETA]:
                    depth = frames[ply, _DEPTH]
                    state[_KILLERS + ply] = action
                    state[_HISTORY + frames[ply, _SIDE] * 64 + action] += depth * depth
                    frames[ply, _NEXT] = frames[ply, _END]
            step = _CHOOSE


@jit
def _deepen(rules, weights, work, words, depth, guide):
    """Search a position to depths 1, 2, ... ``depth``, or until stopped.

    Returns the last depth finished; the rest is in ``state`` and ``pv[0]``.
    """
    state = work.state
    for word in range(META + 1):
        work.stack[0, word] = words[word]
    state[_NODES] = 0
    state[_STOPPED] = 0
    state[_EPOCH] += 1
    state[_ROOT_ACTION] = NO_ACTION
    state[_ROOT_VALUE] = 0
    work.pv[0, 0] = NO_ACTION
    for i in range(_KILLERS, _STATE):
        state[i] = 0
    for i in range(_PLIES):
        state[_KILLERS + i] = NO_ACTION
    finished = 0
    for d in range(1, depth + 1):
        value = _search(rules, weights, work, d, guide)
        if state[_STOPPED] != 0:
            break
        finished = d
        state[_ROOT_VALUE] = value
        if value > PROVEN or value < -PROVEN:
            break  # a proven result does not change
    return finished


class _Workspace(NamedTuple):
    """What one thread searches with."""

    table: npt.NDArray[np.uint64]
    """uint64[4 * slots], the transposition table: two entries of two words a slot."""
    state: npt.NDArray[np.int64]
    """int64[_STATE]."""
    stop: npt.NDArray[np.int64]
    """int64[1], set from outside when the time is up."""
    stack: npt.NDArray[np.uint64]
    """uint64[N, 8]: the root, then room for 64 successors of the node at each ply."""
    scores: npt.NDArray[np.int64]
    """int64[N], what the successors are ordered by."""
    frames: npt.NDArray[np.int64]
    """int64[plies, _FIELDS], the state of the node at each ply."""
    keys: npt.NDArray[np.uint64]
    """uint64[plies], the hash of the node at each ply."""
    pv: npt.NDArray[np.int8]
    """int8[plies, plies + 1], the best line from each ply on; 64 ends it."""


def _workspace(table_bits: int) -> _Workspace:
    rows = 1 + _PLIES * MAX_SUCCESSORS
    state = np.zeros(_STATE, np.int64)
    state[_TABLE_MASK] = (1 << table_bits) - 1
    return _Workspace(
        table=np.zeros(4 << table_bits, np.uint64),
        state=state,
        stop=np.zeros(1, np.int64),
        stack=np.zeros((rows, SUCCESSOR_WORDS), np.uint64),
        scores=np.zeros(rows, np.int64),
        frames=np.zeros((_PLIES, _FIELDS), np.int64),
        keys=np.zeros(_PLIES, np.uint64),
        pv=np.full((_PLIES, _PLIES + 1), NO_ACTION, np.int8),
    )


@jit
def _search_many(rules, weights, work, positions, masks, depth, guide, actions, values):
    """The best action of each position that has one, and its value if ``values`` has room."""
    for g in range(positions.shape[0]):
        actions[g] = 0
        if masks[g] == ZERO:
            continue
        if (masks[g] & (masks[g] - ONE)) == ZERO and values.shape[0] == 0:
            actions[g] = trailing_zeros(masks[g])  # nothing to think about
            continue
        _deepen(rules, weights, work, positions[g], depth, guide)
        if values.shape[0] != 0:
            values[g] = work.state[_ROOT_VALUE]
        actions[g] = work.state[_ROOT_ACTION]


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
        self._works = [
            _workspace(SMALL_TABLE_BITS if depth <= _SMALL_DEPTH else TABLE_BITS)
            for _ in range(self._threads)
        ]
        self._guides: Sequence[Guide | None] = [None] * self._threads
        if network is not None:
            self._guides = make_guides(network, self._threads)
        for work in self._works:
            work.state[_NODE_LIMIT] = nodes if nodes is not None else 1 << 62
        if seconds is not None:  # compile before the clock runs
            opening = packed_opening(rules)[None]
            actions, values = np.zeros(1, np.int64), np.zeros(1, np.int64)
            _search_many(
                self._rules,
                self._weights,
                self._works[0],
                opening,
                np.ones(1, np.uint64),
                1,
                self._guides[0],
                actions,
                values,
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
        """Search every position."""

        def search(part: slice, thread: int) -> None:
            work = self._works[thread]
            with stop_after(work.stop, self._seconds):
                _search_many(
                    self._rules,
                    self._weights,
                    work,
                    positions[part],
                    masks[part],
                    self._depth,
                    self._guides[thread],
                    actions[part],
                    values[part],
                )

        share(len(masks), _CHUNK if self._seconds is None else 1, self._threads, search)

    def search(self, position: npt.NDArray[np.uint64]) -> SearchResult:
        """Search one position, uint64[6], and tell all that was found."""
        work = self._works[0]
        with stop_after(work.stop, self._seconds):
            depth = _deepen(
                self._rules, self._weights, work, position, self._depth, self._guides[0]
            )
        line = []
        for action in work.pv[0]:
            if action == NO_ACTION:
                break
            line.append(int(action))
        action = int(work.state[_ROOT_ACTION])
        return SearchResult(
            action=-1 if action == NO_ACTION else action,
            value=int(work.state[_ROOT_VALUE]),
            depth=int(depth),
            nodes=int(work.state[_NODES]),
            line=tuple(line),
        )
