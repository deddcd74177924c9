"""Prove who wins, by depth-first proof-number search.

This is Nagai's df-pn (Nagai 2002, "Df-pn algorithm for searching AND/OR trees and its
applications"), with his names. Every position has two numbers, from the view of the player to move:

* ``phi``: the least number of positions that must still be decided to prove that this player wins;
* ``delta``: the least number that must still be decided to prove that this player loses.

A position is won if one action leads to a loss for the opponent. So its ``phi`` is the smallest
``delta`` after an action. Its ``delta`` is the largest ``phi`` after an action plus a third of the
others. The full sum would make positions with many actions look too hard, because their proofs
share work. Weak proof-number search (Ueda et al. 2008) counts even less of it. A number of 0 means
that its result is proven.

The search always goes to the most promising position. It stays below that position until one of the
position's numbers passes its threshold: another position has then become more promising.

A proof rests only on ends of games and on other proofs, so a win or a loss is exact. Repeated
positions prove nothing, and a game that could continue indefinitely stays unknown. Where the same
player acts again (Dutch I.a), the two numbers are swapped.

The first numbers of a new position come from alpha-beta's evaluation
(:mod:`bao_agents.evaluators.tables`): the less likely a proof looks, the higher they are. They also
rise with the number of seeds in the stores, because the end is then farther away. They only guide
the search.

Threads may search the same position together, with one table. An entry's key is stored XOR its
numbers, so an entry that two threads write at once matches no position (Hyatt and Mann 2002).
Numbers that are not a proof never replace a proof. For the other threads, a position under search
counts as twice as hard until about a thousand positions have been visited below it. So the threads
walk down the tree together and part close to its leaves, where one thread would search next
(compare Pawlewicz and Hayward 2013). If they parted near the root, all but one would search less
promising actions. A thread exchanges numbers with the others after every few positions.

A *bounded* search asks whether one side, the *attacker*, can win within a number of plies.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bao_agents.evaluators.tables import SCALE, PairTables, tables_value
from bao_agents.search.limits import is_late
from bao_agents.search.prefetch import prefetch
from bao_agents.support.array_types import Int16Array, Int32Array, Int64Array, Uint64Array
from bao_env.compiled.compile import jit, jit_inline
from bao_env.engine.bits import ONE, ZERO, U, popcount
from bao_env.engine.kernel import legal_of
from bao_env.engine.layout import NUM_SEEDS
from bao_env.engine.position import (
    META,
    Index,
    PackedPositions,
    Rows,
    load_rows,
    load_rows_at,
    mover_of,
    other_store_of,
    same_mover,
    store_of,
    store_rows_at,
)
from bao_env.engine.position_hash import position_hash
from bao_env.engine.ruleset import KernelRules
from bao_env.engine.starts import candidates, is_stuck
from bao_env.engine.successors import (
    MAX_SUCCESSORS,
    RESULT,
    SUCCESSOR_WORDS,
    successors,
)

WIN = 1
"""The player to move wins."""
LOSS = -1
UNKNOWN = 0
"""Not proven within the limits; the game may also continue indefinitely."""

MAX_LINE = 400
"""The longest line that is searched, in actions."""
UNBOUNDED = 0

INFINITE = np.int64((1 << 31) - 1)
"""The value of one number if the other is 0."""
_LARGE = np.int64(1 << 30)
"""The highest number of a position that is not proven."""
_MOST_WORK = np.int64((1 << 31) - 1)
_ROWS = 1 + MAX_LINE * MAX_SUCCESSORS
WAYS = 4
"""Entries in a slot of the table."""
_STEP_SHIFT = 4
"""Evaluations are rounded to steps of 2^4."""
_STEPS = 256
_LOWEST = np.int64(-(_STEPS // 2) << _STEP_SHIFT)
_MIDDLE = 64.0
"""The first number of an even position with one action and empty stores."""
_SEED = 1.08
"""The factor by which each seed in the stores raises the first numbers."""
PART = 3
"""One third of the other actions' ``phi`` is added to the largest ``phi``."""
_MAX_NUMBER = 100_000
_LOW_HALF = U(0xFFFFFFFF)
_HALF = U(32)
_SHARED_WORK = 1000
"""Positions visited below a position before several threads search it together."""
_EXCHANGE_NODES = 32
"""Positions that a thread visits below a position before it stores the position's numbers, and
reads the successors' numbers again. To read them after each visit would take a fifth of the
time."""
_BOUND_SALT = U(0xD6E8FEB86659FD93)  # odd, its bits look random


class Table(NamedTuple):
    """The results of earlier positions, four entries per slot."""

    keys: Uint64Array
    """uint64[4 * slots], hashes of positions XOR ``numbers``."""
    numbers: Uint64Array
    """uint64[4 * slots], ``phi`` in the low half and ``delta`` in the high half. If one of them is
    0, the other is 1 plus the plies to the end of the game in the proof found."""
    work: Int32Array
    """int32[4 * slots], positions visited for an entry, or the highest number if there are more.
    The entry with the fewest is replaced."""
    cells: Int16Array
    """int16[CELLS], the tables that evaluate a new position."""
    first_phi: Int64Array
    """int64[65, 256], ``phi`` of a new position, by the seeds in the stores and its evaluation."""
    first_delta: Int64Array
    """int64[65, 256], ``delta`` of a new position with one action, by the same two."""

    @classmethod
    def empty(cls, bits: int, cells: Int16Array) -> Table:
        """Return an empty table of 2^``bits`` slots, 80 bytes each.

        Args:
            bits: the logarithm of the number of slots.
            cells: int16[CELLS], the tables that evaluate a new position.
        """
        size = WAYS << bits
        logits = (_LOWEST + ((np.arange(_STEPS) + 0.5) * (1 << _STEP_SHIFT))) / SCALE
        middle = _MIDDLE * _SEED ** np.arange(NUM_SEEDS + 1)[:, None]
        return cls(
            np.zeros(size, np.uint64),
            np.zeros(size, np.uint64),
            np.zeros(size, np.int32),
            cells,
            (middle * np.exp(-1.15 * logits)).round().clip(1, _MAX_NUMBER).astype(np.int64),
            (middle * np.exp(0.3 * logits)).round().clip(1, _MAX_NUMBER).astype(np.int64),
        )

    def clear(self) -> None:
        """Forget everything."""
        self.numbers.fill(0)
        self.work.fill(0)


_FRAME = np.dtype(
    (
        np.record,
        [
            ("row", np.int64),  # the row of the stack that holds the position
            ("first", np.int64),  # row of the first successor
            ("end", np.int64),  # row after the last one
            ("phi_limit", np.int64),  # the thresholds
            ("delta_limit", np.int64),
            ("before", np.int64),  # positions visited before this one
            ("read_at", np.int64),  # positions visited before its successors' numbers were read
        ],
    )
)
_ROW = np.dtype(
    (
        np.record,
        [
            ("key", np.uint64),
            # About the action that leads to the row: `phi` for a proof that it loses, `delta` for
            # a proof that it wins.
            ("phi", np.int64),
            ("delta", np.int64),
            ("plies", np.int64),  # plies to the end of the game, if it is proven
        ],
    )
)
PROOF_MEMORY = np.dtype(
    (
        np.record,
        [
            ("nodes", np.int64),  # positions visited so far
            ("node_limit", np.int64),
            ("deadline", np.int64),  # see bao_agents.search.limits
            ("look_at", np.int64),  # nodes at which to check the limits
            ("phi", np.int64),  # the numbers of the position
            ("delta", np.int64),
            ("plies", np.int64),  # plies to the end of the game in the proof found
            ("bound", np.int64),  # plies within which the attacker must win, or UNBOUNDED
            ("attacker", np.int64),  # 1 for the player to move at the root, -1 for the other
            ("is_shared", np.int64),  # 1 if other threads also search the position
            ("frames", _FRAME, (MAX_LINE,)),
            ("rows", _ROW, (_ROWS,)),
            ("stack", np.uint64, (_ROWS, SUCCESSOR_WORDS)),
        ],
    )
)
"""The memory of a search."""


@jit_inline
def _slot_of(table: Table, key: U) -> Index:
    """Return the first entry of a position's slot; the table has 2^n slots."""
    return np.int64(key & U(table.keys.shape[0] // WAYS - 1)) * WAYS


@jit
def _look_up(table: Table, key: U) -> tuple[bool, Index, Index, Index]:
    """Look up a position.

    Returns:
        whether it is in the table; ``phi`` and ``delta``; and, if one of them is 0, the plies to
        the end of the game.
    """
    slot = _slot_of(table, key)
    for entry in range(slot, slot + WAYS):
        word = table.numbers[entry]
        if table.keys[entry] ^ word == key and word != ZERO:
            phi, delta = np.int64(word & _LOW_HALF), np.int64(word >> _HALF)
            if phi == 0:
                return True, phi, INFINITE, delta - 1
            if delta == 0:
                return True, INFINITE, delta, phi - 1
            return True, phi, delta, np.int64(0)
    return False, np.int64(1), np.int64(1), np.int64(0)


@jit_inline
def _suppose(rules: KernelRules, table: Table, rows: Rows) -> tuple[Index, Index]:
    """Estimate the first ``phi`` and ``delta`` of a new position."""
    starts = max(np.int64(1), np.int64(popcount(candidates(rules, rows)[1])))
    step = (tables_value(PairTables(table.cells), rows) - _LOWEST) >> _STEP_SHIFT
    step = max(np.int64(0), min(np.int64(_STEPS - 1), step))
    seeds = store_of(rows.meta) + other_store_of(rows.meta)
    delta = table.first_delta[seeds, step] * (starts - 1 + PART) // PART
    return table.first_phi[seeds, step], delta


@jit
def _store(
    table: Table, key: U, phi: Index, delta: Index, plies: Index, work: Index, is_shared: Index
) -> None:
    """Store the numbers of a position, in place of the entry with the least work.

    Args:
        table: a :class:`Table`.
        key: the position's hash.
        phi, delta: the numbers.
        plies: plies to the end of the game, if one of the numbers is 0.
        work: the number of positions visited for these numbers.
        is_shared: whether another thread may have proven the position in the meantime.
    """
    slot = _slot_of(table, key)
    slot_entry: Index = slot
    for entry in range(slot, slot + WAYS):
        word = table.numbers[entry]
        if table.keys[entry] ^ word == key and word != ZERO:
            if is_shared != 0 and phi != 0 and delta != 0 and _is_proof(word):
                return
            slot_entry = entry
            work = max(work, np.int64(table.work[entry]))
            break
        if word == ZERO:
            slot_entry = entry
            break
        if table.work[entry] < table.work[slot_entry]:
            slot_entry = entry
    if phi == 0:  # the word must not be 0, which marks an empty entry
        phi, delta = np.int64(0), plies + 1
    elif delta == 0:
        phi = plies + 1
    word = U(phi) | (U(delta) << _HALF)
    table.keys[slot_entry] = key ^ word
    table.numbers[slot_entry] = word
    table.work[slot_entry] = np.int32(min(work, _MOST_WORK))


@jit
def _work_of(table: Table, key: U) -> Index:
    """Return the number of positions visited for the stored numbers of a position, or 0."""
    slot = _slot_of(table, key)
    for entry in range(slot, slot + WAYS):
        if table.keys[entry] ^ table.numbers[entry] == key:
            return np.int64(table.work[entry])
    return np.int64(0)


@jit_inline
def _is_proof(word: U) -> bool:
    """Return whether the numbers in a word of a table are a proof."""
    return (word & _LOW_HALF) == ZERO or (word >> _HALF) == ZERO


@jit_inline
def _key(rows: Rows, left: Index, attacks: bool) -> U:
    """Return the hash of a position. A bounded search mixes the number of plies left into it.

    Args:
        rows: the position.
        left: plies left, or UNBOUNDED.
        attacks: whether the attacker is to move.
    """
    return position_hash(rows) ^ (U(2 * left + (1 if attacks else 0)) * _BOUND_SALT)


@jit_inline
def _set(row: np.record, phi: Index, delta: Index, plies: Index) -> None:
    """Write the numbers of a row."""
    row.phi, row.delta, row.plies = phi, delta, plies


@jit_inline
def _name_row(table: Table, work: np.record, r: Index, left: Index, mover: Index) -> None:
    """Fill in the key of the position in a new row, and ask for its slot of the table.

    Args:
        table, work, r, left, mover: see :func:`_enter_row`.
    """
    row, rows = work.rows[r], load_rows_at(work.stack, r)
    is_attacker = mover == work.attacker
    attacks = work.bound != UNBOUNDED and is_attacker == same_mover(rows.meta)
    row.key = _key(rows, left, attacks)
    slot = _slot_of(table, row.key)
    prefetch(table.keys, slot)
    prefetch(table.numbers, slot)


@jit
def _enter_row(
    rules: KernelRules, table: Table, work: np.record, r: Index, left: Index, mover: Index
) -> None:
    """Fill in the numbers of the position in a new row, whose key is known.

    Args:
        rules: the :class:`KernelRules`.
        table: a :class:`Table`.
        work: a record of :data:`PROOF_MEMORY`.
        r: the row.
        left: plies left after the action, or UNBOUNDED.
        mover: 1 if the player who chose the action is the one to move at the root, else -1.
    """
    row, result = work.rows[r], work.stack[r, RESULT]
    rows = load_rows_at(work.stack, r)
    keeps_turn = same_mover(rows.meta)
    if result == ONE or (result == ZERO and not keeps_turn and is_stuck(rows)):
        won = True
    elif result != ZERO:
        won = False
    elif work.bound != UNBOUNDED and left == 0:  # a win in time needs the game to be over
        won = mover != work.attacker or (
            not keeps_turn and legal_of(rules, work.stack[r]) == ZERO  # 1.5a
        )
    else:
        is_stored, phi, delta, plies = _look_up(table, row.key)
        if not is_stored:
            phi, delta = _suppose(rules, table, rows)
        if keeps_turn:
            phi, delta = delta, phi
        _set(row, phi, delta, plies)
        return
    row.key = ZERO
    # As in the table, delta is 0 after an action that wins.
    _set(row, INFINITE if won else 0, 0 if won else INFINITE, 0)


@jit
def _enter(
    rules: KernelRules,
    table: Table,
    work: np.record,
    ply: Index,
    row: Index,
    first: Index,
    phi_limit: Index,
    delta_limit: Index,
) -> Index:
    """Fill in a frame, and list the successors of its position; return their number.

    Args:
        rules, table, work: see :func:`prove`.
        ply: the index of the frame.
        row: the row of the frame's position.
        first: the first row for its successors.
        phi_limit, delta_limit: the thresholds of the position.
    """
    frame = work.frames[ply]
    frame.row, frame.first, frame.before = row, first, work.nodes
    frame.read_at = work.nodes
    frame.phi_limit, frame.delta_limit = phi_limit, delta_limit
    rows = load_rows_at(work.stack, row)
    count = successors(rules, rows, work.stack, first)
    frame.end = first + count
    work.nodes += 1
    mover = np.int64(1 if mover_of(rows.meta) == mover_of(work.stack[0, META]) else -1)
    left = max(np.int64(UNBOUNDED), work.bound - 1 - ply)
    for r in range(frame.first, frame.end):
        _name_row(table, work, r, left, mover)
    for r in range(frame.first, frame.end):
        _enter_row(rules, table, work, r, left, mover)
    return count


@jit
def _read_again(table: Table, work: np.record, ply: Index) -> None:
    """Read the numbers of a frame's successors again, which other threads may have changed."""
    frame = work.frames[ply]
    frame.read_at = work.nodes
    for r in range(frame.first, frame.end):
        row = work.rows[r]
        if row.key != ZERO and row.phi != 0 and row.delta != 0:
            is_stored, phi, delta, plies = _look_up(table, row.key)
            if is_stored:
                if same_mover(work.stack[r, META]):
                    phi, delta = delta, phi
                _set(row, phi, delta, plies)


@jit_inline
def _sum_up(work: np.record, ply: Index) -> tuple[Index, Index, Index, Index, Index]:
    """Compute the numbers of a frame's position from its successors' numbers.

    Returns:
        ``phi``, ``delta``, the plies to the end if it is proven, the row of the most promising
        successor, and the second lowest ``delta`` of a successor.
    """
    frame = work.frames[ply]
    phi, second, delta = INFINITE, INFINITE, np.int64(0)
    best = frame.first
    largest, nearest, farthest = np.int64(0), INFINITE, np.int64(0)
    for r in range(frame.first, frame.end):
        row = work.rows[r]
        if row.delta < phi:
            phi, second, best = row.delta, phi, r
        elif row.delta < second:
            second = row.delta
        delta += row.phi
        largest = max(largest, row.phi)
        if row.delta == 0:
            nearest = min(nearest, row.plies)
        farthest = max(farthest, row.plies)
    if phi == 0:
        return phi, INFINITE, nearest + 1, best, second
    if delta == 0:
        return INFINITE, delta, farthest + 1, best, second
    delta = largest + (delta - largest) // PART
    return min(phi, _LARGE), min(delta, _LARGE), np.int64(0), best, second


@jit_inline
def _report(work: np.record, r: Index, phi: Index, delta: Index, plies: Index) -> None:
    """Write the numbers of a position to its row; swap them if the same player acts again."""
    if same_mover(work.stack[r, META]):
        _set(work.rows[r], delta, phi, plies)
    else:
        _set(work.rows[r], phi, delta, plies)


@jit_inline
def _mark(table: Table, work: np.record, r: Index, phi_limit: Index, delta_limit: Index) -> None:
    """Until a position is searched, make it look as hard as its limits.

    A line that returns to the position then does not go in circles. From other threads this would
    hide the position. So with other threads it looks at most about twice as hard as before, and a
    position that they search together looks as it is.

    Args:
        table, work: see :func:`prove`.
        r: the row of the position.
        phi_limit, delta_limit: the thresholds of the position.
    """
    row = work.rows[r]
    if work.is_shared != 0:
        if _work_of(table, row.key) >= _SHARED_WORK:
            return
        phi, delta = row.phi, row.delta
        if same_mover(work.stack[r, META]):
            phi, delta = delta, phi
        phi_limit, delta_limit = min(phi_limit, 2 * phi + 1), min(delta_limit, 2 * delta + 1)
    phi = max(np.int64(1), min(phi_limit, _LARGE))
    delta = max(np.int64(1), min(delta_limit, _LARGE))
    _store(table, row.key, phi, delta, np.int64(0), 0, work.is_shared)


@jit
def prove(rules: KernelRules, table: Table, work: np.record, packed: PackedPositions) -> Index:
    """Prove who wins.

    Args:
        rules: the :class:`KernelRules`.
        table: a :class:`Table`. Its entries may come from other positions under the same rules.
        work: a record of :data:`PROOF_MEMORY`, with its limits and bound set. ``nodes``, ``phi``,
            ``delta`` and, with a proof, ``plies`` are written to it.
        packed: uint64[6], the position.

    Returns:
        int64: WIN, LOSS or UNKNOWN, for the player to move. In a bounded search the other player
        counts as the winner if the attacker cannot win within the bound.
    """
    work.nodes = 0
    work.look_at = 0
    work.phi, work.delta, work.plies = INFINITE, np.int64(0), 0
    root = load_rows(packed)
    store_rows_at(work.stack, 0, root)
    work.rows[0].key = _key(root, work.bound, work.bound != UNBOUNDED and work.attacker == 1)
    ply = np.int64(0)
    if _enter(rules, table, work, ply, 0, 1, _LARGE, _LARGE) == 0:
        return np.int64(LOSS)  # 1.2, 1.5a: no legal move
    while True:
        frame = work.frames[ply]
        exchanges = work.is_shared != 0 and work.nodes - frame.read_at >= _EXCHANGE_NODES
        if exchanges:
            _read_again(table, work, ply)
        phi, delta, plies, best, second = _sum_up(work, ply)
        out_of_time = work.nodes >= work.look_at and is_late(work)
        returns = phi >= frame.phi_limit or delta >= frame.delta_limit or out_of_time
        r = frame.row
        if returns or exchanges:
            visited = work.nodes - frame.before
            _store(table, work.rows[r].key, phi, delta, plies, visited, work.is_shared)
        if returns:
            if ply == 0:
                work.phi, work.delta, work.plies = phi, delta, plies
                return np.int64(WIN if phi == 0 else LOSS if delta == 0 else UNKNOWN)
            _report(work, r, phi, delta, plies)
            ply -= 1
            continue
        if ply + 1 == MAX_LINE:
            _set(work.rows[best], _LARGE, _LARGE, 0)
            work.rows[best].key = ZERO  # its numbers do not come from the table
            continue
        # Stay below the best successor until it is proven, another one is better by a quarter, or
        # the position itself has passed its limits.
        phi_limit = min(frame.delta_limit - delta + work.rows[best].phi, _LARGE)
        delta_limit = min(frame.phi_limit, second + (second >> 2) + 1)
        if same_mover(work.stack[best, META]):
            phi_limit, delta_limit = delta_limit, phi_limit
        ply += 1
        first = frame.end
        prefetch(table.work, _slot_of(table, work.rows[best].key))
        if _enter(rules, table, work, ply, best, first, phi_limit, delta_limit) == 0:  # 1.2, 1.5a
            key = work.rows[best].key
            _store(table, key, INFINITE, np.int64(0), np.int64(0), 1, work.is_shared)
            _report(work, best, INFINITE, np.int64(0), np.int64(0))
            ply -= 1
            continue
        _mark(table, work, best, phi_limit, delta_limit)
