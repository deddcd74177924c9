"""Define the bytes of an encoding, and expand them to the features that a network reads.

An *encoding* is the compact form that is stored and copied: :data:`ENCODING_SIZE` bytes that
describe the board after an action, as seen by the player who chose the action::

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

Features are bfloat16, which represents all of them exactly. They are additive: each byte of an
encoding has its own features, all zero if the byte is zero, and the features of an encoding are the
sum of its bytes' features. :mod:`bao_agents.nets.compiled` relies on this.
"""

from __future__ import annotations

import numpy as np

from bao_agents.nets.captures import CAPTURE_FEATURES, NUM_STARTS, START_CAPTURES
from bao_agents.support.array_types import Int16Array, Uint8Array
from bao_env.compiled.compile import jit
from bao_env.observation.board import OBSERVATION_SIZE
from bao_env.observation.planes import STEPS

INPUTS_VERSION = 1
"""The version of a network's inputs. Increase it whenever a byte of an encoding or a feature
changes its place or its meaning. A checkpoint contains the version that its network was trained on.
Checkpoints of other versions are refused."""

CAPTURES_AT = OBSERVATION_SIZE
"""Index of the byte of an encoding at which the captures begin."""
STARTS_AT = CAPTURES_AT + START_CAPTURES
"""Index of the byte of an encoding at which the captures of the 32 starts begin."""
ENCODING_SIZE = OBSERVATION_SIZE + CAPTURE_FEATURES
"""The number of bytes of an encoding."""

_PITS = 32
_COUNTS = 34
_FLAGS = _COUNTS + len(STEPS) * _PITS
_CAPTURES = _FLAGS + OBSERVATION_SIZE - _COUNTS
FEATURES = _CAPTURES + START_CAPTURES + 2 * NUM_STARTS
"""The number of features of an encoding."""

# bfloat16 is the upper half of a float32.
_ZERO = np.int16(0)
_ONE = np.int16(0x3F80)
_EIGHTHS = ((np.arange(256, dtype=np.float32) / 8).view(np.uint32) >> np.uint32(16)).astype(
    np.int16
)
_STEP_ARRAY = np.array(STEPS, np.uint8)


@jit
def _expand(encodings: Uint8Array, eighths: Int16Array, steps: Uint8Array, out: Int16Array) -> None:
    """Write the features of encodings.

    Args:
        encodings: uint8[R, ENCODING_SIZE].
        eighths: int16[256], the bits of each count of seeds in units of eight.
        steps: uint8[S], the thresholds for the count of a pit, lowest first.
        out: int16[R, FEATURES], filled.
    """
    for r in range(encodings.shape[0]):
        for i in range(_COUNTS):
            out[r, i] = eighths[encodings[r, i]]
        for step in range(steps.shape[0]):
            for pit in range(_PITS):
                reached = encodings[r, pit] >= steps[step]
                out[r, _COUNTS + step * _PITS + pit] = _ONE if reached else _ZERO
        for i in range(_COUNTS, OBSERVATION_SIZE):
            out[r, _FLAGS + i - _COUNTS] = _ONE if encodings[r, i] != 0 else _ZERO
        out[r, _CAPTURES] = eighths[encodings[r, CAPTURES_AT]]
        for i in range(1, START_CAPTURES):
            out[r, _CAPTURES + i] = _ONE if encodings[r, CAPTURES_AT + i] != 0 else _ZERO
        for i in range(NUM_STARTS):
            captured = np.int64(encodings[r, STARTS_AT + i])
            start = _CAPTURES + START_CAPTURES + i
            out[r, start] = _ONE if captured != 0 else _ZERO
            out[r, start + NUM_STARTS] = eighths[max(captured - 1, np.int64(0))]


def expand(encodings: Uint8Array) -> Int16Array:
    """Return the features of encodings uint8[R, ENCODING_SIZE]: the bits of
    bfloat16[R, FEATURES]."""
    out = np.empty((len(encodings), FEATURES), np.int16)
    _expand(encodings, _EIGHTHS, _STEP_ARRAY, out)
    return out
