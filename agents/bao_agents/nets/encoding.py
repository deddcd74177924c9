"""Encode the board after each action of a position, as the bytes that a network reads.

A search already has the successors of a position, and encodes them with
:func:`encode_successors`. Other callers have positions with their legal actions, and use
:func:`encode`.
:mod:`bao_agents.nets.features` lists the bytes.
"""

from __future__ import annotations

import numpy as np

from bao_agents.nets.captures import IS_STUCK, capture_features
from bao_agents.nets.features import CAPTURES_AT, ENCODING_SIZE
from bao_agents.nets.legal_actions import list_legal_actions
from bao_agents.support.array_types import Int64Array, Uint8Array, Uint64Array
from bao_env.compiled.compile import jit
from bao_env.engine.bits import FULL, ONE, ZERO, U
from bao_env.engine.kernel import play
from bao_env.engine.position import META, WORDS, Index, Legal, PackedPositions, mover_of, same_mover
from bao_env.engine.ruleset import KernelRules
from bao_env.engine.successors import RESULT
from bao_env.observation.board import observe_one

ENCODING_STEP = 512
"""In training, the rows of encodings are a multiple of this, because torch prepares a matrix
product for each new shape."""
PLAYING_STEP = 8
"""The same step for players, whose batches may have a single position."""


@jit
def _encode_one(
    rules: KernelRules,
    packed: PackedPositions,
    viewer: Index,
    is_over: bool,
    encodings: Uint8Array,
    k: Index,
) -> bool:
    """Write the encoding of one board.

    Args:
        rules: the :class:`KernelRules`.
        packed: uint64[5 or more], contiguous, the position.
        viewer: int64, the seat from whose side the board is seen. The captures are always for the
            player to move.
        is_over: whether the game has ended there; nobody then has a move.
        encodings: uint8[R, ENCODING_SIZE].
        k: the row of ``encodings`` to fill.

    Returns:
        whether the player to move has no move.
    """
    positions = packed.reshape((1, packed.shape[0]))
    observe_one(positions, 0, viewer, ONE, encodings, k)
    captures = encodings[k, CAPTURES_AT:]
    if is_over:
        captures[:] = 0
        captures[IS_STUCK] = 1
        return True
    return capture_features(rules, packed, captures)


@jit
def encode_successors(
    rules: KernelRules,
    packed: PackedPositions,
    successors: Uint64Array,
    first: int,
    last: int,
    encodings: Uint8Array,
) -> Index:
    """Encode the undecided successors of a position.

    Args:
        rules: the :class:`KernelRules`.
        packed: uint64[5 or more].
        successors: uint64[N, 8] (:func:`bao_env.engine.successors.successors`). The position's
            successors are in rows ``first`` to ``last`` - 1. Decided successors are left out. A
            successor that leaves a player without a move gets its result and is also left out.
        first, last: see ``successors``.
        encodings: uint8[R, ENCODING_SIZE], filled from row 0 on.

    Returns:
        int64, the number of encodings written.
    """
    mover = np.int64(mover_of(packed[META]))
    k = np.int64(0)
    for e in range(first, last):
        if successors[e, RESULT] != ZERO:
            continue  # decided
        if _encode_one(rules, successors[e], mover, False, encodings, k):
            # 1.2: a player without a move has lost
            successors[e, RESULT] = FULL if same_mover(successors[e, META]) else ONE
        else:
            k += 1
    return k


@jit
def _encode_afterstates(
    rules: KernelRules,
    positions: PackedPositions,
    legal_actions: Int64Array,
    packed: PackedPositions,
    encodings: Uint8Array,
) -> None:
    """Encode the board after each legal action.

    Args:
        rules: the :class:`KernelRules`.
        positions: uint64[B, 6].
        legal_actions: int64[K], position * 64 + action.
        packed: uint64[6], overwritten.
        encodings: uint8[K or more, ENCODING_SIZE], filled.
    """
    for k in range(legal_actions.shape[0]):
        for word in range(WORDS):
            packed[word] = positions[legal_actions[k] >> 6, word]
        mover = np.int64(mover_of(packed[META]))
        # Over: won, or (kujifunza) lost, as the board shows.
        is_over = play(rules, packed, U(legal_actions[k] & 63)) != ZERO
        _encode_one(rules, packed, mover, is_over, encodings, k)


def encode(
    rules: KernelRules, positions: PackedPositions, legal: Legal, step: int = ENCODING_STEP
) -> tuple[Uint8Array, Int64Array, Int64Array]:
    """Encode the board after each legal action of a batch of positions.

    Args:
        rules: the rules by which legal actions are played out.
        positions: uint64[B, 6].
        legal: uint64[B], their legal actions.
        step: the number of rows of the encodings is rounded up to a multiple of this.

    Returns:
        encodings uint8[R, ENCODING_SIZE], K rows for the legal actions and then zeros; legal
        actions int64[K] (position * 64 + action); and indptr int64[B + 1].
    """
    indptr, legal_actions = list_legal_actions(legal)
    rows = -(-len(legal_actions) // step) * step
    encodings = np.zeros((rows, ENCODING_SIZE), np.uint8)
    _encode_afterstates(rules, positions, legal_actions, np.empty(WORDS, np.uint64), encodings)
    return encodings, legal_actions, indptr
