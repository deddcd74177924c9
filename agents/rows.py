"""What a network reads: a row for a board, or a row for each board that an action leads to.

A *row* (:mod:`agents.features`) is the observation and, behind it, the outlook of the player to
move, which takes playing out what he may capture.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from agents.features import OUTLOOK, ROW_SIZE, STARTS_AT
from bao_env.engine.bits import FULL, ONE, ONES, ZERO, U, byte, trailing_zeros
from bao_env.engine.compile import jit, jit_inline
from bao_env.engine.kernel import (
    CAPTURE_TURN,
    CHOICE,
    INFINITE,
    PAUSED,
    STARTS,
    WON,
    begin,
    candidates,
    relay,
)
from bao_env.engine.position import META, MOVER_BACK, MOVER_FRONT, OTHER_BACK, OTHER_FRONT, WORDS
from bao_env.engine.successors import RESULT, same_mover
from bao_env.observation import observe_compiled

ROW_STEP: Final = 512
"""Rows come in multiples of this, see :func:`padded_rows`."""
_4 = U(4)
_15 = U(15)
_18 = U(18)
_56 = U(56)
_64 = U(64)


def padded_rows(count: int) -> npt.NDArray[np.uint8]:
    """Room for ``count`` rows of the network, uint8[R, ROW_SIZE], R rounded up, the rest zero.

    Torch prepares a matrix product anew for each shape it has not met, which takes longer
    than the product; rounding leaves it few shapes.
    """
    return np.zeros((-(-count // ROW_STEP) * ROW_STEP, ROW_SIZE), np.uint8)


@jit_inline
def _total(x):
    """Sum of the eight bytes of a word."""
    return (x * ONES) >> _56


@jit
def _simulate(rules, words, capture_turn, q, stops):
    """Play a start out: its tally, and the seeds that it captures."""
    front, back, facing, n, start, down, house_min, barred, stops, tally = begin(
        rules,
        words[MOVER_FRONT],
        words[MOVER_BACK],
        words[OTHER_FRONT],
        words[META],
        capture_turn,
        q & _15,
        q >> _4,
        stops,
    )
    while n != ZERO:
        front, back, facing, n, start, down, house_min, tally = relay(
            rules, front, back, facing, n, start, down, house_min, barred, stops, tally
        )
    captured = ZERO
    if capture_turn:
        captured = _total(words[OTHER_FRONT]) - _total(facing)
        if tally & (WON | PAUSED):
            captured += byte(facing, start)
    return tally, captured


@jit
def outlook(rules, words, row):
    """What the player to move could do at once, written into bytes OUTLOOK on of a row.

    Returns whether he has no move and so has lost.
    """
    found = candidates(
        rules,
        words[MOVER_FRONT],
        words[MOVER_BACK],
        words[OTHER_FRONT],
        words[OTHER_BACK],
        words[META],
    )
    capture_turn = (found & CAPTURE_TURN) != ZERO
    starts = found & STARTS
    row[OUTLOOK:] = 0
    best = ZERO
    stuck = True
    while starts != ZERO and (capture_turn or stuck):
        q = trailing_zeros(starts)
        starts &= starts - ONE
        tally, captured = _simulate(rules, words, capture_turn, q, ZERO)
        if tally & INFINITE:
            if (tally & CHOICE) == ZERO:
                continue  # illegal (Donkers 1.5a)
            tally, captured = _simulate(rules, words, capture_turn, q, FULL)  # stop at the house
        stuck = False
        best = max(best, captured)
        if capture_turn:
            row[STARTS_AT + np.int64(q)] = min(captured + ONE, _64)
        if tally & WON:
            row[OUTLOOK + 1] = 1
    row[OUTLOOK] = best
    row[OUTLOOK + 2] = 1 if stuck else 0
    return stuck


class Reader(NamedTuple):
    """What :func:`write_rows` works in."""

    per_option: int
    """1 for a network that judges options, else 0."""
    board: npt.NDArray[np.uint64]
    """uint64[1, 6]."""
    viewer: npt.NDArray[np.int8]
    """int8[1], who sees the rows; -1 is the player to move."""


def make_reader(per_option: bool) -> Reader:
    """For one thread."""
    return Reader(int(per_option), np.zeros((1, WORDS), np.uint64), np.full(1, -1, np.int8))


@jit
def write_rows(
    rules, reader, words, first, last, front, back, other_front, other_back, meta, rows, at
):
    """What the network reads of a position and its successors.

    Args:
        rules: the :class:`KernelRules`.
        reader: a :class:`Reader`.
        words: uint64[N, 8]; rows ``first`` to ``last`` - 1 are the position's successors
            (:func:`bao_env.engine.successors.successors`). Those that prove to leave a player
            without a move get their result entered, and, like all that are decided, no row.
        first, last: see ``words``.
        front, back, other_front, other_back, meta: words of the position itself.
        rows: uint8[R, ROW_SIZE], filled from row ``at`` on.
        at: the first row.

    Returns:
        the row behind the last one written.
    """
    board, viewer = reader.board, reader.viewer
    if reader.per_option == 0:
        board[0, MOVER_FRONT] = front
        board[0, MOVER_BACK] = back
        board[0, OTHER_FRONT] = other_front
        board[0, OTHER_BACK] = other_back
        board[0, META] = meta
        viewer[0] = -1
        observe_compiled(board, viewer, ONE, rows[at : at + 1])
        outlook(rules, board[0], rows[at])
        return at + 1
    viewer[0] = np.int8((meta >> _18) & ONE)
    for e in range(first, last):
        if words[e, RESULT] != ZERO:
            continue  # decided: nothing to ask
        for word in range(META + 1):
            board[0, word] = words[e, word]
        observe_compiled(board, viewer, ONE, rows[at : at + 1])
        if outlook(rules, words[e], rows[at]):  # he has no move and has lost (1.2)
            words[e, RESULT] = FULL if same_mover(words[e, META]) else ONE
            continue
        at += 1
    return at
