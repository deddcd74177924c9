"""Restrict a search to some of the legal actions."""

from __future__ import annotations

from bao_agents.support.array_types import Uint64Array
from bao_env.compiled.compile import jit
from bao_env.engine.bits import FULL, ONE, ZERO, U
from bao_env.engine.position import Index
from bao_env.engine.successors import ACTION, SUCCESSOR_WORDS


@jit
def keep_actions(rows: Uint64Array, first: Index, end: Index, actions: U) -> Index:
    """Keep only the successors of the given actions, in order, and return the new end.

    Args:
        rows: uint64[N, 8], successors (:mod:`bao_env.engine.successors`), moved in place.
        first, end: rows ``first`` to ``end - 1`` hold the successors.
        actions: uint64, the bits of the actions to keep.
    """
    if actions == FULL:
        return end
    new_end = first
    for k in range(first, end):
        if (actions >> rows[k, ACTION]) & ONE != ZERO:
            for word in range(SUCCESSOR_WORDS):  # numba needs five seconds to compile a row copy
                rows[new_end, word] = rows[k, word]
            new_end += 1
    return new_end
