"""Every legal move of a position, played: what a search expands a node with.

:func:`legal_mask` and then :func:`play` would simulate each move twice. Here each start is
played out once, and once more only where the move comes to a house that may be played.
"""

from __future__ import annotations

from typing import Final

from bao_env.engine.bits import BYTE, FULL, ONE, ONES, ZERO, U, byte, trailing_zeros
from bao_env.engine.compile import jit
from bao_env.engine.kernel import (
    CAPTURE_TURN,
    CHOICE,
    INFINITE,
    NO_PENDING,
    PAUSED,
    STARTS,
    WON,
    action_of,
    begin,
    candidates,
    finish,
    relay,
)
from bao_env.engine.position import META, MOVER_BACK, MOVER_FRONT, OTHER_BACK, OTHER_FRONT

MAX_SUCCESSORS: Final = 64
"""Room that the successors of any position fit in: one for each action."""

ACTION: Final = 5
"""Word of a successor that holds the action which leads to it."""
RESULT: Final = 6
"""Word of a successor: ONE if the action won at once, FULL if it lost at once, else ZERO."""
CAPTURED: Final = 7
"""Word of a successor: seeds that the action captured."""
SUCCESSOR_WORDS: Final = 8
"""Words of a successor: those of a packed position but PLY, then the three above."""

_4: Final = U(4)
_15: Final = U(15)
_32: Final = U(32)
_56: Final = U(56)
_ABOVE_ONE: Final = U(0xFEFEFEFEFEFEFEFE)  # bits of a count that are set only from two seeds on


@jit
def same_mover(meta):
    """Whether this position is to be played by the player who made the move that led to it.

    So it is when a capture waits for its side (Dutch I.a), and never else.
    """
    return (meta & (BYTE << _32)) != NO_PENDING


@jit
def simulate(rules, front, back, other_front, other_back, meta, capture_turn, q, stops):
    """Play one start of :func:`candidates` out.

    Args:
        rules: the :class:`KernelRules`.
        front, back, other_front, other_back, meta: words of the position.
        capture_turn: whether the start captures.
        q: the start, ring + 16 * down.
        stops: a mask, stop at an acting house rather than play it.

    Returns:
        the five words after the move, its result (ONE won, FULL lost, else ZERO), the tally
        of :func:`relay` (INFINITE: the move is illegal; CHOICE: it came to a house), and the
        seeds captured.
    """
    f, b, facing, n, start, down, house_min, barred, stops, tally = begin(
        rules, front, back, other_front, meta, capture_turn, q & _15, q >> _4, stops
    )
    while n != ZERO:
        f, b, facing, n, start, down, house_min, tally = relay(
            rules, f, b, facing, n, start, down, house_min, barred, stops, tally
        )
    captured = ZERO
    if capture_turn:
        captured = ((other_front * ONES) >> _56) - ((facing * ONES) >> _56)
        if tally & (WON | PAUSED):
            captured += byte(facing, start)
    w0, w1, w2, w3, w4, result = finish(
        rules, other_front, other_back, meta, capture_turn, f, b, facing, start, down, tally
    )
    return w0, w1, w2, w3, w4, result, tally, captured


@jit
def successors(rules, front, back, other_front, other_back, meta, out, base):
    """Play every legal action of a position.

    Args:
        rules: the :class:`KernelRules`.
        front, back, other_front, other_back, meta: words of the position.
        out: uint64[N, 8], filled from row ``base`` on in no order of meaning; 64 rows suffice.
        base: the first row.

    Returns:
        how many there are; 0 means that the mover has no move and has lost (1.2, 1.5a).
    """
    found = candidates(rules, front, back, other_front, other_back, meta)
    capture_turn = (found & CAPTURE_TURN) != ZERO
    starts = found & STARTS
    count = base
    while starts != ZERO:
        q = trailing_zeros(starts)
        starts &= starts - ONE
        action = action_of(meta, capture_turn, q & _15, q >> _4)
        w0, w1, w2, w3, w4, result, tally, captured = simulate(
            rules, front, back, other_front, other_back, meta, capture_turn, q, ZERO
        )
        choice = (tally & CHOICE) != ZERO
        if (tally & INFINITE) == ZERO:
            out[count, MOVER_FRONT] = w0
            out[count, MOVER_BACK] = w1
            out[count, OTHER_FRONT] = w2
            out[count, OTHER_BACK] = w3
            out[count, META] = w4
            out[count, ACTION] = action | (ONE if choice else ZERO)
            out[count, RESULT] = result
            out[count, CAPTURED] = captured
            count += 1
        if choice:  # 2.5b: stop there instead
            w0, w1, w2, w3, w4, result, tally, captured = simulate(
                rules, front, back, other_front, other_back, meta, capture_turn, q, FULL
            )
            out[count, MOVER_FRONT] = w0
            out[count, MOVER_BACK] = w1
            out[count, OTHER_FRONT] = w2
            out[count, OTHER_BACK] = w3
            out[count, META] = w4
            out[count, ACTION] = action
            out[count, RESULT] = result
            out[count, CAPTURED] = captured
            count += 1
    return count - base


@jit
def is_stuck(front, back, meta):
    """Whether a player has no candidate move and so has lost, told from his rows alone (1.2).

    In namua a filled front hole is enough for a move; in mtaji a hole with two seeds is. The one
    thing it does not see is a position all of whose candidates are infinite (1.5a).
    """
    playable = front if (meta & BYTE) != ZERO else (front | back) & _ABOVE_ONE
    return playable == ZERO and not same_mover(meta)
