"""Store and look up the results of earlier positions: the transposition table of alpha-beta.

A table is uint64[4 * slots]. A slot holds two entries of two words each: the result, and the
position's hash XOR the result. An entry whose words come from different threads therefore matches
no position. So no thread waits for another, and none uses a half-written entry (Hyatt and Mann
2002, "A lock-less transposition table implementation for parallel search"). A result is::

    bit  0             16       24      26        33                      63
         |  value + B  | depth  | bound | action  |  epoch                |
         |  16 bits    | 8      | 2     | 7       |  28, age 3            |

``B`` is 2^15, so the stored value is never negative. ``depth`` counts plies, ``bound`` says whether
the value is exact or a bound, and ``action`` is the best action. Entries of another ``epoch`` are
ignored, so a new epoch empties the table. A search starts a new epoch, unless it remembers its game
(:mod:`~.game_tables`). The lowest three bits of an epoch are its *age*, the number of the game's
searches modulo 8. Entries of earlier searches are still read, but make room for new ones.
"""

from __future__ import annotations

import numpy as np

from bao_agents.support.array_types import Uint64Array
from bao_env.compiled.compile import jit, jit_inline
from bao_env.engine.bits import BYTE, U
from bao_env.engine.position import Index

WIN_VALUE = 32_000
"""The value of a game that is won at once; a win within n plies has ``WIN_VALUE - n``."""
PROVEN = WIN_VALUE - 1000
"""Values above this, or below its negative, are proven wins and losses."""
NO_ACTION = 64
"""A number that stands for no action."""

_MIN_BITS = 14
_MIN_GAME_BITS = 8
TABLE_BYTES = 1 << 25
"""The most bytes of a table, 32 MiB, unless the player has its own limit."""
_NODES_A_SLOT = 4
"""A table has one slot for this many nodes of a search, of which one in six is stored."""

_SLOT_WORDS = 4
_ENTRY_WORDS = 2

BOUND_LOWER = 1
"""The stored value is a lower bound: the search was cut off at beta."""
BOUND_UPPER = 2
"""The stored value is an upper bound: no action reached alpha."""
BOUND_EXACT = 3
"""The stored value is exact."""

_DEPTH_SHIFT = U(16)
_BOUND_SHIFT = U(24)
_ACTION_SHIFT = U(26)
_EPOCH_SHIFT = U(33)
_AGE_BITS = U(3)
_AGES = U(7)
EPOCHS = U((1 << 31) - 8)
"""The highest epoch. After it the table is cleared, and the next epoch is 8."""
_VALUE_MASK = U(0xFFFF)
_BOUND_MASK = U(3)
_ACTION_MASK = U(127)
_VALUE_BIAS = np.int64(1 << 15)


def table_words(nodes: float, max_bytes: int = TABLE_BYTES) -> int:
    """Return the number of words of a table for searches of about ``nodes`` nodes.

    The table has from 512 KiB to ``max_bytes`` bytes. It is kept small, because the processor's
    cache holds more of a smaller table.
    """
    return _SLOT_WORDS << _bits(nodes, max_bytes)


def game_table_words(nodes: float, max_bytes: int = TABLE_BYTES) -> int:
    """Return the number of words of a table for all searches of a game.

    The table has from 8 KiB to ``max_bytes`` bytes, with a slot for each node of a search up to the
    size of :func:`table_words`.
    """
    return _SLOT_WORDS << min(
        _bits(nodes, max_bytes), max(_MIN_GAME_BITS, int(nodes).bit_length() - 1)
    )


def _bits(nodes: float, max_bytes: int) -> int:
    """Return the logarithm of the number of slots for searches of about ``nodes`` nodes."""
    highest = (max_bytes // (8 * _SLOT_WORDS)).bit_length() - 1
    bits = int(min(nodes / _NODES_A_SLOT, 1 << highest)).bit_length() - 1
    return max(_MIN_BITS, min(highest, bits))


@jit
def next_epoch(table: Uint64Array, epoch: U) -> U:
    """Return the epoch after ``epoch``, with age 0; clear the table after the highest epoch."""
    epoch &= ~_AGES
    if epoch >= EPOCHS:
        for i in range(table.shape[0]):
            table[i] = 0
        epoch = U(0)
    return epoch + _AGES + U(1)


@jit
def next_age(epoch: U) -> U:
    """Return the epoch, uint64, of the next search that reads the entries of this one."""
    return (epoch & ~_AGES) | ((epoch + U(1)) & _AGES)


@jit_inline
def _slot_of(table: Uint64Array, key: U) -> Index:
    """Return the index of the first word of a position's slot; the table has 2^n slots."""
    return np.int64(key & U(table.shape[0] // _SLOT_WORDS - 1)) * _SLOT_WORDS


@jit_inline
def _depth_in(data: U) -> Index:
    """Return the depth in the second word of an entry."""
    return np.int64((data >> _DEPTH_SHIFT) & BYTE)


@jit
def probe(
    table: Uint64Array,
    epoch: U,
    key: U,
    depth: Index,
    deeper: bool,
    alpha: Index,
    beta: Index,
    ply: Index,
) -> tuple[bool, Index, Index]:
    """Look up a position.

    Args:
        table: uint64[4 * slots].
        epoch: the epoch of this search, uint64.
        key: the position's hash.
        depth: the depth of the value, in plies.
        deeper: whether to accept a value from a greater depth.
        alpha, beta: the window. A bound outside it is as good as an exact value.
        ply: plies from the root to the position. Wins in the table count plies from the position;
            the returned value counts them from the root.

    Returns:
        whether the value is known, the value, and the action to try first or NO_ACTION. The
        action may come from an entry of any depth in this epoch.
    """
    slot = _slot_of(table, key)
    for entry in (slot, slot + _ENTRY_WORDS):
        data = table[entry + 1]
        if (
            table[entry] ^ data == key
            and (data >> (_EPOCH_SHIFT + _AGE_BITS)) == epoch >> _AGE_BITS
        ):
            action = np.int64((data >> _ACTION_SHIFT) & _ACTION_MASK)
            value = np.int64(data & _VALUE_MASK) - _VALUE_BIAS
            if value > PROVEN:
                value -= ply
            elif value < -PROVEN:
                value += ply
            bound = np.int64((data >> _BOUND_SHIFT) & _BOUND_MASK)
            searched = _depth_in(data)
            is_known = (searched == depth or (deeper and searched > depth)) and (
                bound == BOUND_EXACT
                or (bound == BOUND_LOWER and value >= beta)
                or (bound == BOUND_UPPER and value <= alpha)
            )
            return bool(is_known), value, action
    return False, np.int64(0), np.int64(NO_ACTION)


@jit
def store(
    table: Uint64Array,
    epoch: U,
    key: U,
    depth: Index,
    alpha: Index,
    beta: Index,
    ply: Index,
    value: Index,
    action: Index,
) -> None:
    """Store the result of a position in the table, in place.

    The first entry of a slot keeps the deepest result of this search; the second gets the others.

    Args:
        table: uint64[4 * slots].
        epoch: the epoch of this search, uint64.
        key: the position's hash.
        depth: the depth of the search, at most 255 plies.
        alpha, beta: the window of the search.
        ply: plies from the root to the position.
        value: the result of the search, with wins counted from the root.
        action: the best action, or NO_ACTION.
    """
    bound = BOUND_EXACT
    if value <= alpha:
        bound = BOUND_UPPER
    elif value >= beta:
        bound = BOUND_LOWER
    if value > PROVEN:
        value += ply
    elif value < -PROVEN:
        value -= ply
    entry = _slot_of(table, key)
    first = table[entry + 1]
    if (first >> _EPOCH_SHIFT) == epoch and _depth_in(first) > depth:
        entry += _ENTRY_WORDS
    data = (
        U(value + _VALUE_BIAS)
        | (U(depth) << _DEPTH_SHIFT)
        | (U(bound) << _BOUND_SHIFT)
        | (U(action) << _ACTION_SHIFT)
        | (epoch << _EPOCH_SHIFT)
    )
    table[entry] = key ^ data
    table[entry + 1] = data
