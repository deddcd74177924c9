"""Define the bytes of an encoding, and expand them to the features that a network reads.

An *encoding* is the compact form that is stored and copied: :data:`ENCODING_SIZE` bytes::

    0..51    the observation (bao_env.observation.board): seeds and flags
    52..86   the captures of the player to move (bao_agents.nets.captures):
    52           most seeds that one action captures
    53, 54       1 if an action wins at once; 1 if there is no action
    55..86       for each start, ring pit + 16 * down (1 for step -1): 0 if it captures nothing,
                 else 1 + the seeds that it captures, 64 at most

Its *features* are :data:`FEATURES` numbers::

    0..33      each count of seeds in units of eight
    34..353    for each pit whether it holds at least 1, 2, 3, 4, 5, 6, 8, 10, 12, 15 seeds, because
               the end of a sowing depends on the exact count
    354..371   the flags of the observation
    372..374   the most seeds captured in units of eight; a win at once; no action
    375..406   for each start whether it captures
    407..438   for each start the seeds that it captures, in units of eight

A network of the kind ``afterstate+replies`` reads other bytes, :data:`REPLIES_SIZE` of them: the
observation ``"replies"`` (:mod:`bao_env.observation.actions`) of the player who moves next, a
summary of it, what the other player can answer, and how the action ends::

    0..51     the observation of the board
    52..307   for each of that player's 64 actions: the seeds that it captures; whether it wins; the
              most seeds that the reply to it captures; whether a reply wins
    308..320  the summary of that player's exchanges (bao_agents.nets.exchanges)
    321..352  the answers to that player's actions (bao_agents.nets.answers): small integers
    353..456  the two boards of the answers, each as in 0..51
    457..534  how play goes on after them: small integers
    535       0 if the opponent moves next, 1 if the same player does, 2 if the action has won, 3 if
              it has lost

Its features are :data:`REPLIES_FEATURES` numbers::

    0..371      as above
    372..627    those of the 256 bytes, seeds in units of eight
    628..755    for each action whether it captures, and whether a reply to it does
    756..1205   for each byte of 308..352 whether it is at least 1, 2, 3, 4, 5, 6, 8, 10, 12, 15
    1206..1949  those of the two boards of the answers, each as in 0..371
    1950..2729  for each byte of 457..534 the same as for 308..352

Features are bfloat16, which represents all of them exactly. They are additive: each byte of an
encoding has its own features, all zero if the byte is zero, so the features of an encoding are the
sum of those of its bytes. :mod:`bao_agents.nets.compiled` relies on this.
"""

from __future__ import annotations

import numpy as np

from bao_agents.array_types import Int16Array, Uint8Array
from bao_agents.nets.answers import ANSWERS_SIZE, BOARDS, LINE_NUMBERS, LINES_AT, NUMBERS
from bao_agents.nets.captures import CAPTURE_FEATURES, NUM_STARTS, START_CAPTURES
from bao_agents.nets.exchanges import SUMMARY_SIZE
from bao_env.engine.compile import jit, jit_inline
from bao_env.observation.actions import REPLY_COLUMNS, WINS
from bao_env.observation.board import OBSERVATION_SIZE
from bao_env.observation.planes import STEPS

INPUTS_VERSION = 4
"""The version of a network's inputs. Increase it, with a line here, whenever a byte of an encoding
or a feature changes its place or its meaning. Checkpoints contain the version that their network
was trained on; later versions are refused. Features that a version adds come last, so that a
network of an earlier version reads them with weights of 0 (:data:`FORMER_FEATURES`).

=======  ===========================================================================================
version  inputs of a network
=======  ===========================================================================================
1        observation version 1, the best capture, a win at once, no action, the capture of each
         start; as features: eighths, the ten steps of each pit, flags. Checkpoints without a
         version have this one.
2        for ``afterstate+replies`` also whether each action and the reply to it capture, and the
         summary of the exchanges.
3        for ``afterstate+replies`` also the answers.
4        for ``afterstate+replies`` also how play goes on after the answers.
=======  ===========================================================================================
"""

CAPTURES_AT = OBSERVATION_SIZE
"""Byte of an encoding at which the capture features begin."""
STARTS_AT = CAPTURES_AT + START_CAPTURES
"""Byte of an encoding at which the captures of the 32 starts begin."""
ENCODING_SIZE = OBSERVATION_SIZE + CAPTURE_FEATURES
"""Bytes of an encoding."""

SUMMARY_AT = OBSERVATION_SIZE + REPLY_COLUMNS
"""Byte of an encoding for ``afterstate+replies`` at which the summary begins."""
ANSWERS_AT = SUMMARY_AT + SUMMARY_SIZE
"""Byte of such an encoding at which the answers begin."""
REPLIES_SIZE = ANSWERS_AT + ANSWERS_SIZE + 1
"""Bytes of an encoding for ``afterstate+replies``."""

_PITS = 32
_COUNTS = 34
_FLAGS = _COUNTS + len(STEPS) * _PITS
_CAPTURES = _FLAGS + OBSERVATION_SIZE - _COUNTS
FEATURES = _CAPTURES + START_CAPTURES + 2 * NUM_STARTS
"""Features of an encoding."""
_CAPTURING = _CAPTURES + REPLY_COLUMNS
_SUMMARY = _CAPTURING + REPLY_COLUMNS // 2
_ANSWERS = _SUMMARY + len(STEPS) * SUMMARY_SIZE
_BOARDS = _ANSWERS + len(STEPS) * NUMBERS
_LINES = _BOARDS + BOARDS * _CAPTURES
REPLIES_FEATURES = _LINES + len(STEPS) * LINE_NUMBERS
"""Features of an encoding for ``afterstate+replies``."""
FORMER_FEATURES = {
    1: {REPLIES_FEATURES: _CAPTURING},
    2: {REPLIES_FEATURES: _ANSWERS},
    3: {REPLIES_FEATURES: _LINES},
}
"""How many features earlier versions had, by version and today's number, where that differs."""

# bfloat16 is the upper half of a float32.
_ZERO = np.int16(0)
_ONE = np.int16(0x3F80)
_EIGHTHS = ((np.arange(256, dtype=np.float32) / 8).view(np.uint32) >> np.uint32(16)).astype(
    np.int16
)
_STEP_ARRAY = np.array(STEPS, np.uint8)


@jit_inline
def _expand_board(encodings, r, at, eighths, steps, out, first):
    """Write the features of the observation that begins at byte ``at``, from ``first`` on."""
    for i in range(_COUNTS):
        out[r, first + i] = eighths[encodings[r, at + i]]
    for step in range(steps.shape[0]):
        for pit in range(_PITS):
            reached = encodings[r, at + pit] >= steps[step]
            out[r, first + _COUNTS + step * _PITS + pit] = _ONE if reached else _ZERO
    for i in range(_COUNTS, OBSERVATION_SIZE):
        flag = encodings[r, at + i] != 0
        out[r, first + _FLAGS + i - _COUNTS] = _ONE if flag else _ZERO


@jit_inline
def _expand_numbers(encodings, r, at, count, steps, out, first):
    """Write the features of the ``count`` small integers that begin at byte ``at``."""
    for i in range(count):
        for step in range(steps.shape[0]):
            reached = encodings[r, at + i] >= steps[step]
            out[r, first + i * steps.shape[0] + step] = _ONE if reached else _ZERO


@jit
def _expand(encodings, eighths, steps, out):
    """Write the features of encodings.

    Args:
        encodings: uint8[R, ENCODING_SIZE or REPLIES_SIZE].
        eighths: int16[256], the bits of each count of seeds in units of eight.
        steps: uint8[S], the thresholds for the count of a pit, lowest first.
        out: int16[R, FEATURES or REPLIES_FEATURES], filled.
    """
    replies = encodings.shape[1] == REPLIES_SIZE
    for r in range(encodings.shape[0]):
        _expand_board(encodings, r, 0, eighths, steps, out, 0)
        if replies:
            for group in range(0, REPLY_COLUMNS, 2 * WINS):
                for i in range(group, group + WINS):
                    out[r, _CAPTURES + i] = eighths[encodings[r, OBSERVATION_SIZE + i]]
                for i in range(group, group + WINS):
                    captures = encodings[r, OBSERVATION_SIZE + i] != 0
                    out[r, _CAPTURING + i - group // 2] = _ONE if captures else _ZERO
                for i in range(group + WINS, group + 2 * WINS):
                    wins = encodings[r, OBSERVATION_SIZE + i] != 0
                    out[r, _CAPTURES + i] = _ONE if wins else _ZERO
            _expand_numbers(encodings, r, SUMMARY_AT, SUMMARY_SIZE + NUMBERS, steps, out, _SUMMARY)
            for board in range(BOARDS):
                at = ANSWERS_AT + NUMBERS + board * OBSERVATION_SIZE
                first = _BOARDS + board * _CAPTURES
                _expand_board(encodings, r, at, eighths, steps, out, first)
            _expand_numbers(encodings, r, ANSWERS_AT + LINES_AT, LINE_NUMBERS, steps, out, _LINES)
            continue
        out[r, _CAPTURES] = eighths[encodings[r, CAPTURES_AT]]
        for i in range(1, START_CAPTURES):
            out[r, _CAPTURES + i] = _ONE if encodings[r, CAPTURES_AT + i] != 0 else _ZERO
        for i in range(NUM_STARTS):
            captured = np.int64(encodings[r, STARTS_AT + i])
            start = _CAPTURES + START_CAPTURES + i
            out[r, start] = _ONE if captured != 0 else _ZERO
            out[r, start + NUM_STARTS] = eighths[max(captured - 1, 0)]


def expand(encodings: Uint8Array) -> Int16Array:
    """Return the features of encodings uint8[R, ENCODING_SIZE or REPLIES_SIZE]: the bits of
    bfloat16[R, FEATURES or REPLIES_FEATURES]."""
    replies = encodings.shape[1] == REPLIES_SIZE
    out = np.empty((len(encodings), REPLIES_FEATURES if replies else FEATURES), np.int16)
    _expand(encodings, _EIGHTHS, _STEP_ARRAY, out)
    return out
