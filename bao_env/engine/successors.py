"""Play every legal move of a position, as a search does to expand a node.

Calling :func:`legal_of` and then :func:`play` would simulate each move twice. Here each start is
played out once, and a second time only if the move reaches a house that may be played.
Only searches call :func:`successors`. It is part of the engine because it uses internals of the
kernel.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bao_env.compiled.compile import jit, jit_inline
from bao_env.engine.bits import FULL, ONE, ZERO, U, trailing_zeros
from bao_env.engine.kernel import CHOICE, INFINITE, Played, simulate
from bao_env.engine.position import Index, Rows, store_rows_at
from bao_env.engine.ruleset import KernelRules
from bao_env.engine.start_encoding import action_of
from bao_env.engine.starts import candidates

MAX_SUCCESSORS = 64
"""The most successors of a position: one for each action."""

ACTION = 5
"""Index of the word that holds the action that leads to a successor."""
RESULT = 6
"""Index of the word that is ONE if the action won at once, FULL if it lost at once, else ZERO."""
CAPTURED = 7
"""Index of the word that holds the number of seeds that the action captured."""
SUCCESSOR_WORDS = 8
"""Number of words of a successor: a packed position without PLY, then the three above."""


@jit_inline
def _write_successor(out: npt.NDArray[np.uint64], row: Index, played: Played, action: U) -> None:
    """Write a :class:`Played` move into row ``row`` of ``out``."""
    store_rows_at(out, row, played.after)
    out[row, ACTION] = action
    out[row, RESULT] = played.result
    out[row, CAPTURED] = played.captured


@jit
def successors(rules: KernelRules, rows: Rows, out: npt.NDArray[np.uint64], base: Index) -> Index:
    """Play every legal action of a position.

    Args:
        rules: the :class:`KernelRules`.
        rows: the position, a :class:`Rows`.
        out: uint64[N, 8], filled from row ``base`` on, in no particular order; 64 rows suffice.
        base: the first row.

    Returns:
        the number of successors; 0 means that the mover has no move and has lost (1.2, 1.5a).
    """
    capture_turn, starts = candidates(rules, rows)
    row = base
    while starts != ZERO:
        start = trailing_zeros(starts)
        starts &= starts - ONE
        action = action_of(rows.meta, capture_turn, start)
        played = simulate(rules, rows, capture_turn, start, ZERO)
        choice = (played.tally & CHOICE) != ZERO
        if (played.tally & INFINITE) == ZERO:
            _write_successor(out, row, played, action | (ONE if choice else ZERO))
            row += 1
        if choice:  # 2.5b: stop there instead
            played = simulate(rules, rows, capture_turn, start, FULL)
            _write_successor(out, row, played, action)
            row += 1
    return row - base
