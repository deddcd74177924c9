"""What a network reads: an encoding of a board, or of each board that an action leads to.

An *encoding* (:mod:`agents.nets.features`) is the observation and, behind it, the capture features
of the player to move, for which their captures are played out.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from agents.nets.features import CAPTURES_AT, ENCODING_SIZE
from agents.nets.legal_actions import fill_indptr, list_legal_actions
from bao_env.engine.bits import FULL, ONE, ZERO, U
from bao_env.engine.compile import jit
from bao_env.engine.kernel import play
from bao_env.engine.position import META, WORDS, mover_of, same_mover, write_at
from bao_env.engine.ruleset import KernelRules
from bao_env.engine.successors import RESULT
from bao_env.observation.board import observe_compiled
from bao_env.observation.captures import capture_features

ENCODING_STEP: Final = 512
"""Rows come in multiples of this, see :func:`padded_encodings`."""


def padded_encodings(count: int) -> npt.NDArray[np.uint8]:
    """Zeros for ``count`` encodings, uint8[R, ENCODING_SIZE], R rounded up.

    Torch prepares a matrix product anew for each shape it has not met, which takes longer
    than the product; rounding leaves it few shapes.
    """
    return np.zeros((-(-count // ENCODING_STEP) * ENCODING_STEP, ENCODING_SIZE), np.uint8)


class EncoderWorkspace(NamedTuple):
    """What :func:`encode_successors` works in."""

    per_action: int
    """1 for a network that judges legal actions, else 0."""
    board: npt.NDArray[np.uint64]
    """uint64[1, 6]."""
    viewer: npt.NDArray[np.int8]
    """int8[1], who sees the rows; -1 is the player to move."""


def make_encoder_workspace(per_action: bool) -> EncoderWorkspace:
    """For one thread."""
    return EncoderWorkspace(
        int(per_action), np.zeros((1, WORDS), np.uint64), np.full(1, -1, np.int8)
    )


@jit
def encode_successors(rules, reader, words, first, last, packed, rows, at):
    """What the network reads of a position and its successors.

    Args:
        rules: the :class:`KernelRules`.
        reader: a :class:`EncoderWorkspace`.
        words: uint64[N, 8]; rows ``first`` to ``last`` - 1 are the position's successors
            (:func:`bao_env.engine.successors.successors`). Those that prove to leave a player
            without a move get their result entered, and, like all that are decided, no row.
        first, last: see ``words``.
        packed: the position itself.
        rows: uint8[R, ENCODING_SIZE], filled from row ``at`` on.
        at: the first row.

    Returns:
        the row behind the last one written.
    """
    board, viewer = reader.board, reader.viewer
    if reader.per_action == 0:
        write_at(board, 0, packed)
        viewer[0] = -1
        observe_compiled(board, viewer, ONE, rows[at : at + 1])
        capture_features(rules, board[0], rows[at, CAPTURES_AT:])
        return at + 1
    viewer[0] = np.int8(mover_of(packed.meta))
    for e in range(first, last):
        if words[e, RESULT] != ZERO:
            continue  # decided: nothing to ask
        for word in range(META + 1):
            board[0, word] = words[e, word]
        observe_compiled(board, viewer, ONE, rows[at : at + 1])
        if capture_features(rules, words[e], rows[at, CAPTURES_AT:]):  # no move: lost (1.2)
            words[e, RESULT] = FULL if same_mover(words[e, META]) else ONE
            continue
        at += 1
    return at


@jit
def _boards(rules, positions, rows):
    viewer = np.empty(1, np.int8)
    for i in range(positions.shape[0]):
        viewer[0] = np.int8(mover_of(positions[i, META]))
        observe_compiled(positions[i : i + 1], viewer, ONE, rows[i : i + 1])
        capture_features(rules, positions[i], rows[i, CAPTURES_AT:])


@jit
def _afterstates(rules, positions, legal_actions, rows):
    words = np.empty((1, WORDS), np.uint64)
    viewer = np.empty(1, np.int8)
    for k in range(legal_actions.shape[0]):
        position = legal_actions[k] >> 6
        for word in range(WORDS):
            words[0, word] = positions[position, word]
        viewer[0] = np.int8(mover_of(words[0, META]))
        result = play(rules, words[0], U(legal_actions[k] & 63))
        observe_compiled(words, viewer, ONE, rows[k : k + 1])
        if result == ZERO:
            capture_features(rules, words[0], rows[k, CAPTURES_AT:])
        else:
            rows[k, CAPTURES_AT:] = 0
            rows[k, CAPTURES_AT + 2] = 1  # over: won, or (kujifunza) lost, as the rows show


def encode(
    rules: KernelRules,
    positions: npt.NDArray[np.uint64],
    masks: npt.NDArray[np.uint64],
    per_action: bool,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """What the network reads of a batch of positions.

    Args:
        rules: the rules to play legal actions out by.
        positions: uint64[B, 6].
        masks: uint64[B], their legal actions.
        per_action: encode the board after each legal action, seen by the player who chooses;
            else each position.

    Returns:
        encodings uint8[K or B and more, ENCODING_SIZE] (:func:`padded_encodings`), legal actions
        int64[K] (position * 64 + action) and indptr int64[B + 1].
    """
    indptr = np.empty(len(masks) + 1, np.int64)
    fill_indptr(masks, indptr)
    legal_actions = np.empty(indptr[-1], np.int64)
    list_legal_actions(masks, legal_actions)
    rows = padded_encodings(len(legal_actions) if per_action else len(positions))
    if per_action:
        _afterstates(rules, positions, legal_actions, rows)
    else:
        _boards(rules, positions, rows)
    return rows, legal_actions, indptr
