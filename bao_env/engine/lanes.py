"""Play many hands in lock step: each step sows once in :data:`LANES` moves.

Each lane holds one :class:`Hand`. All lanes go through the kernel's branch-free ``relay`` together,
which the compiler turns into vector instructions. When a hand ends, the next job of the block takes
its lane. The last hands of a block, too few to fill the lanes, are finished one by one.

``rules`` are the :class:`~bao_env.engine.ruleset.KernelRules`. A *job* is a start to play out, one
uint64::

    bits 0..4   the start (bao_env.engine.start_encoding)
    bit  5      it captures
    bit  6      it stops at an acting house
    bits 7..12  the action, its house bit 0
    bits 13..   the game's index in its block
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bao_env.compiled.compile import jit_inline, jit_inner
from bao_env.engine.bits import BYTE, FULL, ONE, ZERO, U, byteswap, trailing_zeros
from bao_env.engine.kernel import (
    CHOICE,
    INFINITE,
    LOST,
    PAUSED,
    WON,
    Hand,
    captured_by,
    finish,
    first_hand,
    house_bits,
    play_out,
    relay,
)
from bao_env.engine.position import (
    PLY,
    Index,
    Legal,
    PackedPositions,
    Rows,
    Seats,
    load_rows_at,
    mover_of,
    other_store_of,
    store_rows_at,
)
from bao_env.engine.ruleset import KernelRules
from bao_env.engine.starts import cannot_play

LANES = 32
BLOCK = 512
"""Number of games in a block: their hands share the lanes, and their jobs fit into the L2 cache."""
MAX_STARTS = 32
"""The most jobs that a game can have."""
_MAX_ALONE = 3
"""The last hands of a block, up to this number, are finished one by one."""

# The tasks of run(). They are plain integers, so numba compiles run() once for each of them: with
# all tasks in one loop, the compiler would no longer use vector instructions.
FIND_LEGAL = 0
"""Task: write the legal actions that the jobs find into ``legal``."""
PLAY = 1
"""Task: play the jobs' actions in ``positions``, and write the seats that win into ``winners``."""
FIND_BEST = 2
"""Task: write the best result of each game's jobs into ``legal``; see :func:`best_capture`."""

_BEST_LEGAL = U(1 << 8)
_BEST_WINS = U(1 << 9)

# Where each field of the hands starts in the lane array, one uint64 per lane. The array is flat:
# the compiler needs a fixed distance between fields to see that they don't overlap.
_FIELDS = len(Hand._fields)
(
    _FRONT,
    _BACK,
    _FACING,
    _SEEDS,
    _PIT,
    _DOWN,
    _HOUSE_MIN,
    _BARRED,
    _STOPS_AT_HOUSE,
    _TALLY,
) = range(0, _FIELDS * LANES, LANES)

_JOB_START = U(31)
_JOB_CAPTURE = U(32)
_JOB_STOPS_AT_HOUSE = U(64)
_JOB_ACTION_SHIFT = U(7)
_JOB_GAME_SHIFT = U(13)
_ACTION_MASK = U(63)


_Array = npt.NDArray[np.uint64]
Scratch = tuple[_Array, _Array, _Array]


def make_scratch(games: int) -> Scratch:
    """Return the arrays that :func:`run` needs for blocks of up to ``games`` games.

    Returns:
        the jobs, the lanes, and the job in each lane. The tuple is a plain one because numba
        recognises it faster than a named tuple.
    """
    return (
        np.zeros(games * MAX_STARTS, np.uint64),
        np.zeros(_FIELDS * LANES, np.uint64),
        np.zeros(LANES, np.uint64),
    )


@jit_inline
def legal_job(game: Index, capture_turn: bool, action: U, start: U) -> U:
    """Return the job that simulates a start, to find its legal actions."""
    flags = _JOB_CAPTURE if capture_turn else ZERO
    return (U(game) << _JOB_GAME_SHIFT) | flags | (action << _JOB_ACTION_SHIFT) | start


@jit_inline
def play_job(game: Index, capture_turn: bool, action: U, start: U) -> U:
    """Return the job that plays an action."""
    flags = (_JOB_CAPTURE if capture_turn else ZERO) | (
        ZERO if action & ONE else _JOB_STOPS_AT_HOUSE
    )
    return (U(game) << _JOB_GAME_SHIFT) | flags | start


@jit_inline
def _load(lanes: _Array, i: Index) -> Hand:
    """Return the hand in lane i."""
    return Hand(
        lanes[_FRONT + i],
        lanes[_BACK + i],
        lanes[_FACING + i],
        lanes[_SEEDS + i],
        lanes[_PIT + i],
        lanes[_DOWN + i],
        lanes[_HOUSE_MIN + i],
        lanes[_BARRED + i],
        lanes[_STOPS_AT_HOUSE + i],
        lanes[_TALLY + i],
    )


@jit_inline
def _save(lanes: _Array, i: Index, hand: Hand) -> None:
    """Write a hand back to lane i, except for the fields that relay() does not change."""
    lanes[_FRONT + i] = hand.front
    lanes[_BACK + i] = hand.back
    lanes[_FACING + i] = hand.facing
    lanes[_SEEDS + i] = hand.seeds
    lanes[_PIT + i] = hand.pit
    lanes[_DOWN + i] = hand.down
    lanes[_HOUSE_MIN + i] = hand.house_min
    lanes[_TALLY + i] = hand.tally


@jit_inner
def _sow_all(rules: KernelRules, lanes: _Array) -> None:
    """Sow once in every lane."""
    for i in range(LANES):
        _save(lanes, i, relay(rules, _load(lanes, i)))


@jit_inline
def _fill(rules: KernelRules, positions: PackedPositions, job: U, lanes: _Array, i: Index) -> None:
    """Write the first hand of a job into lane i."""
    hand = first_hand(
        rules,
        load_rows_at(positions, np.int64(job >> _JOB_GAME_SHIFT)),
        (job & _JOB_CAPTURE) != ZERO,
        job & _JOB_START,
        FULL if job & _JOB_STOPS_AT_HOUSE else ZERO,
    )
    _save(lanes, i, hand)
    lanes[_BARRED + i] = hand.barred
    lanes[_STOPS_AT_HOUSE + i] = hand.stops_at_house


@jit_inline
def best_capture(best: U) -> tuple[U, bool, bool]:
    """Decode the entry of ``legal`` that :data:`FIND_BEST` has written for a game.

    Returns:
        the most seeds that a move captures; whether a move wins at once, by emptying the
        opponent's front row or by leaving them no hole to play from (1.2); whether a move is legal.
    """
    return best & BYTE, (best & _BEST_WINS) != ZERO, (best & _BEST_LEGAL) != ZERO


@jit_inner
def _best_of(rules: KernelRules, rows: Rows, job: U, hand: Hand) -> U:
    """Return the result of a job's move, as the bits that :func:`best_capture` reads."""
    capture_turn = (job & _JOB_CAPTURE) != ZERO
    if hand.tally & INFINITE:
        if (hand.tally & CHOICE) == ZERO:
            return ZERO  # illegal (1.5a)
        # 2.5b: stop at the house instead. Where both are legal, playing it captures no fewer seeds.
        hand = play_out(rules, first_hand(rules, rows, capture_turn, job & _JOB_START, FULL))
    best = _BEST_LEGAL | captured_by(rows, capture_turn, hand)
    front = byteswap(hand.facing) if capture_turn else rows.other_front
    stuck = cannot_play(front, rows.other_back, other_store_of(rows.meta))
    if hand.tally & WON or (stuck and (hand.tally & (PAUSED | LOST)) == ZERO):
        best |= _BEST_WINS
    return best


@jit_inline
def _retire(
    rules: KernelRules,
    positions: PackedPositions,
    legal: Legal,
    winners: Seats,
    job: U,
    hand: Hand,
    task: int,
) -> None:
    """Write the result of a job.

    Args:
        positions, legal, winners: see :func:`run`; changed in place.
        job: the job that has ended.
        hand: the last :class:`Hand` of the job.
        task: see :func:`run`.
    """
    game = np.int64(job >> _JOB_GAME_SHIFT)
    if task == FIND_BEST:
        best, old = _best_of(rules, load_rows_at(positions, game), job, hand), legal[game]
        legal[game] = max(best & BYTE, old & BYTE) | ((best | old) & ~BYTE)
    elif task == PLAY:
        rows = load_rows_at(positions, game)
        after, result = finish(rules, rows, (job & _JOB_CAPTURE) != ZERO, hand)
        store_rows_at(positions, game, after)
        positions[game, PLY] += ONE
        if result != ZERO:
            seat = np.int8(mover_of(rows.meta))
            winners[game] = seat if result == ONE else np.int8(1) - seat
    else:
        legal[game] |= house_bits(hand.tally) << ((job >> _JOB_ACTION_SHIFT) & _ACTION_MASK)


@jit_inner
def run(
    rules: KernelRules,
    positions: PackedPositions,
    legal: Legal,
    winners: Seats,
    count: Index,
    scratch: Scratch,
    task: int,
) -> None:
    """Run the jobs of a block through the lanes.

    Args:
        positions: uint64[B, 6]; B of about BLOCK is fastest.
        legal: uint64[B].
        winners: int8[B].
        count: number of jobs.
        scratch: the arrays of :func:`make_scratch`; the first one holds the jobs.
        task: :data:`FIND_LEGAL`, :data:`PLAY` or :data:`FIND_BEST`.
    """
    jobs, lanes, owner = scratch
    filled = min(count, LANES)
    for i in range(LANES):
        lanes[_SEEDS + i] = ZERO
    for i in range(filled):
        _fill(rules, positions, jobs[i], lanes, i)
        owner[i] = jobs[i]
    busy = FULL >> U(64 - filled) if filled else ZERO
    running = filled
    following = filled
    while running > 0:
        if running > _MAX_ALONE:
            _sow_all(rules, lanes)
        else:
            unfinished = busy
            while unfinished != ZERO:
                lane = np.int64(trailing_zeros(unfinished))
                unfinished &= unfinished - ONE
                _save(lanes, lane, play_out(rules, _load(lanes, lane)))
        ended = ZERO
        for i in range(LANES):
            ended |= (ONE if lanes[_SEEDS + i] == ZERO else ZERO) << U(i)
        ended &= busy
        while ended != ZERO:
            lane = np.int64(trailing_zeros(ended))
            ended &= ended - ONE
            _retire(rules, positions, legal, winners, owner[lane], _load(lanes, lane), task)
            if following < count:
                owner[lane] = jobs[following]
                _fill(rules, positions, owner[lane], lanes, lane)
                following += 1
            else:
                busy &= ~(ONE << U(lane))
                running -= 1
