"""Encode positions: the board as it is, or the board after each action.

A search already has the successors of a position and encodes those (:func:`encode_successors`).
Other callers have positions with their legal actions (:func:`encode`). Both use
:func:`encode_position`, whose bytes :mod:`bao_agents.nets.features` lists.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np

from bao_agents.array_types import Int64Array, Uint8Array
from bao_agents.nets.answers import AnswerMemory, write_answers
from bao_agents.nets.captures import IS_STUCK, capture_features
from bao_agents.nets.exchanges import summarise_exchanges
from bao_agents.nets.features import (
    ANSWERS_AT,
    CAPTURES_AT,
    ENCODING_SIZE,
    REPLIES_SIZE,
    SUMMARY_AT,
)
from bao_agents.nets.head import HAS_LOST, HAS_WON, OPPONENT_NEXT, SAME_NEXT
from bao_agents.nets.legal_actions import list_legal_actions
from bao_agents.successors import RESULT
from bao_env.engine.bits import FULL, ONE, ZERO, U
from bao_env.engine.compile import jit
from bao_env.engine.kernel import legal_mask, play
from bao_env.engine.position import META, WORDS, Seats, Words, mover_of, same_mover
from bao_env.engine.ruleset import KernelRules
from bao_env.observation.actions import Workspace, write_actions
from bao_env.observation.board import OBSERVATION_SIZE, observe_compiled, observe_one

ENCODING_STEP = 512
"""In training, the rows of encodings are a multiple of this (:func:`padded_encodings`)."""
PLAYING_STEP = 8
"""The same for players, whose batches may have a single position."""
_local = threading.local()
"""Each thread's :class:`AfterstateMemory` for :func:`encode`."""


def padded_encodings(
    count: int, size: int = ENCODING_SIZE, step: int = ENCODING_STEP
) -> Uint8Array:
    """Return zeros for ``count`` encodings of ``size`` bytes, uint8[R, size].

    R is rounded up to a multiple of ``step``, because torch prepares a matrix product for each new
    shape.
    """
    return np.zeros((-(-count // step) * step, size), np.uint8)


class AfterstateMemory(NamedTuple):
    """Memory to encode up to R successors for a network of the kind ``afterstate+replies``."""

    words: Words
    """uint64[R, 6], the successors."""
    legal: Words
    """uint64[R], their legal actions."""
    viewers: Seats
    """int8[R], -1: each is seen by the player to move."""
    actions: tuple[Any, ...]
    """A :class:`bao_env.observation.actions.Workspace`."""
    answers: AnswerMemory


def afterstate_memory(rows: int, kind: str) -> AfterstateMemory | None:
    """Return memory for ``rows`` successors; None if networks of this kind do not need it."""
    if kind != "afterstate+replies":
        return None
    return AfterstateMemory(
        np.zeros((rows, WORDS), np.uint64),
        np.zeros(rows, np.uint64),
        np.full(rows, -1, np.int8),
        tuple(Workspace.empty()),
        AnswerMemory.empty(),
    )


def _thread_memory(rows: int, kind: str) -> AfterstateMemory | None:
    """Return this thread's :func:`afterstate_memory`, which a single move could not pay for."""
    if kind != "afterstate+replies":
        return None
    memory: AfterstateMemory | None = getattr(_local, "memory", None)
    if memory is None or len(memory.legal) < rows:
        memory = _local.memory = afterstate_memory(rows, kind)
    return memory


@jit
def encode_position(rules, words, viewer, is_over, encodings, k):
    """Write the encoding of one position.

    Args:
        rules: the :class:`KernelRules`.
        words: uint64[5 or more], contiguous, the position.
        viewer: int64, the seat from whose side the board is seen. The captures are always those of
            the player to move.
        is_over: whether the game has ended there, so that nobody has a move.
        encodings: uint8[R, ENCODING_SIZE].
        k: the row of ``encodings`` that is filled.

    Returns:
        whether the player to move has no move.
    """
    position = words.reshape((1, words.shape[0]))
    observe_one(position, 0, viewer, ONE, encodings, k)
    captures = encodings[k, CAPTURES_AT:]
    if is_over:
        captures[:] = 0
        captures[IS_STUCK] = 1
        return True
    return capture_features(rules, words, captures)


@jit
def encode_successors(rules, per_action, after, position, successors, first, last, encodings, k):
    """Encode a position, or its successors if the network reads those.

    For ``afterstate+replies``, :func:`finish_encodings` then writes the rest of all encodings.

    Args:
        rules: the :class:`KernelRules`.
        per_action: 1 to encode the board after each action, seen by the player who chooses it;
            0 to encode the position.
        after: an :class:`AfterstateMemory`, filled, for a network of the kind
            ``afterstate+replies``; else None.
        position: uint64[5 or more], contiguous.
        successors: uint64[N, 8]; those of the position are ``first`` to ``last`` - 1
            (:func:`bao_agents.successors.successors`). Decided ones are left out. One that
            turns out to leave a player without a move gets its result and is also left out.
        first, last: see ``successors``.
        encodings: uint8[R, size], filled from ``k`` on.
        k: the first encoding to write.

    Returns:
        int64, the number after that of the last encoding written.
    """
    mover = np.int64(mover_of(position[META]))
    if per_action == 0:
        encode_position(rules, position, mover, False, encodings, k)
        return k + 1
    for e in range(first, last):
        if successors[e, RESULT] != ZERO:
            continue  # decided
        same = same_mover(successors[e, META])
        if after is None:
            stuck = encode_position(rules, successors[e], mover, False, encodings, k)
        else:
            after.legal[k] = legal_mask(rules, successors[e])
            stuck = after.legal[k] == ZERO
            for word in range(META + 1):
                after.words[k, word] = successors[e, word]
            encodings[k, REPLIES_SIZE - 1] = SAME_NEXT if same else OPPONENT_NEXT
        if stuck:  # 1.2: a player without a move has lost
            successors[e, RESULT] = FULL if same else ONE
        else:
            k += 1
    return k


@jit
def finish_encodings(rules, after, encodings, count):
    """Write the boards, actions, summaries and answers of the first ``count`` encodings, if they
    are for ``afterstate+replies``.

    Args:
        rules: the :class:`KernelRules`.
        after: the :class:`AfterstateMemory`, or None.
        encodings: uint8[R, REPLIES_SIZE], complete except for these.
        count: the number of encodings.
    """
    if after is None or count == 0:
        return
    words, legal = after.words[:count], after.legal[:count]
    observe_compiled(words, after.viewers, ONE, encodings)
    write_actions(rules, words, legal, True, ONE, after.actions, encodings, OBSERVATION_SIZE)
    for k in range(count):
        summarise_exchanges(legal[k], encodings, k, OBSERVATION_SIZE, SUMMARY_AT)
    write_answers(
        rules, words, legal, after.answers, after.actions, encodings, OBSERVATION_SIZE, ANSWERS_AT
    )


@jit
def _encode_positions(rules, positions, encodings):
    """Encode positions uint64[B, 6] into ``encodings``, uint8[B or more, ENCODING_SIZE]."""
    for i in range(positions.shape[0]):
        mover = np.int64(mover_of(positions[i, META]))
        encode_position(rules, positions[i], mover, False, encodings, i)


@jit
def _encode_afterstates(rules, positions, legal_actions, after, encodings):
    """Encode the board after each legal action.

    Args:
        rules: the :class:`KernelRules`.
        positions: uint64[B, 6].
        legal_actions: int64[K], position * 64 + action.
        after: an :class:`AfterstateMemory`, filled, for a network of the kind
            ``afterstate+replies``; else None.
        encodings: uint8[K or more, size], filled.
    """
    words = np.empty(WORDS, np.uint64)
    for k in range(legal_actions.shape[0]):
        for word in range(WORDS):
            words[word] = positions[legal_actions[k] >> 6, word]
        mover = np.int64(mover_of(words[META]))
        # Over: won, or (kujifunza) lost, as the board shows.
        result = play(rules, words, U(legal_actions[k] & 63))
        if after is None:
            encode_position(rules, words, mover, result != ZERO, encodings, k)
            continue
        same = np.int64(mover_of(words[META])) == mover
        after.legal[k] = ZERO
        if result == ZERO:
            after.legal[k] = legal_mask(rules, words)
            if after.legal[k] == ZERO:  # 1.2: a player without a move has lost
                result = FULL if same else ONE
        for word in range(WORDS):
            after.words[k, word] = words[word]
        ends = SAME_NEXT if same else OPPONENT_NEXT
        if result != ZERO:
            ends = HAS_WON if result == ONE else HAS_LOST
        encodings[k, REPLIES_SIZE - 1] = ends
    finish_encodings(rules, after, encodings, legal_actions.shape[0])


def encode(
    rules: KernelRules,
    positions: Words,
    masks: Words,
    kind: str,
    step: int = ENCODING_STEP,
) -> tuple[Uint8Array, Int64Array, Int64Array]:
    """Encode a batch of positions for a network.

    Args:
        rules: the rules by which legal actions are played out.
        positions: uint64[B, 6].
        masks: uint64[B], their legal actions.
        kind: the kind of the network (:mod:`bao_agents.nets.network`).
        step: the number of rows of the encodings is a multiple of this.

    Returns:
        encodings uint8[R, size], R being B for ``position``, else K, and more
        (:func:`padded_encodings`); legal actions int64[K] (position * 64 + action) and indptr
        int64[B + 1].
    """
    indptr, legal_actions = list_legal_actions(masks)
    count = len(positions) if kind == "position" else len(legal_actions)
    size = REPLIES_SIZE if kind == "afterstate+replies" else ENCODING_SIZE
    encodings = padded_encodings(count, size, step)
    if kind == "position":
        _encode_positions(rules, positions, encodings)
    else:
        after = _thread_memory(count, kind)
        _encode_afterstates(rules, positions, legal_actions, after, encodings)
    return encodings, legal_actions, indptr
