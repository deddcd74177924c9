"""From a row of small integers to what the first layer of a network multiplies.

A *row* is what is stored and moved about: :data:`ENCODING_SIZE` bytes::

    0..51    the observation (bao_env.observation): seeds and flags
    52       most seeds that the player to move can capture with one action
    53, 54   1 if he can win at once; 1 if he has no move
    55..86   for each of his starts, ring pit + 16 * direction: 0 if it captures nothing, else 1 +
             the seeds that it captures, 64 at most

Bytes 52 on are the *capture_features* (:func:`agents.nets.legal_actions.capture_features`).

The *features* of a row are each count of seeds in units of eight, for each pit whether it holds
at least 1, 2, 3 ... seeds, since where a sowing ends hangs on the exact count, and the flags.
They are bfloat16, in which all of them are exact.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from bao_env.engine.compile import jit
from bao_env.observation.board import OBSERVATION_SIZE

CAPTURES_AT: Final = OBSERVATION_SIZE
"""Byte at which the capture_features begins."""
STARTS_AT: Final = CAPTURES_AT + 3
"""Byte at which the captures of the 32 starts begin."""
_STARTS: Final = 32
ENCODING_SIZE: Final = STARTS_AT + _STARTS
"""Bytes in a row."""

_PITS: Final = 32
_COUNTS: Final = 34
_STEPS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15)
_FLAGS: Final = _COUNTS + len(_STEPS) * _PITS
_CAPTURES: Final = _FLAGS + OBSERVATION_SIZE - _COUNTS
FEATURES: Final = _CAPTURES + 3 + 2 * _STARTS
"""Features of a row."""

# bfloat16 is the upper half of a float32.
_ONE: Final = np.int16(0x3F80)
_EIGHTHS: Final = ((np.arange(256, dtype=np.float32) / 8).view(np.uint32) >> np.uint32(16)).astype(
    np.int16
)
_STEP_ARRAY: Final = np.array(_STEPS, np.uint8)


@jit
def _expand(rows, eighths, steps, out):
    for r in range(rows.shape[0]):
        out[r] = 0
        for i in range(_COUNTS):
            out[r, i] = eighths[rows[r, i]]
        for pit in range(_PITS):
            seeds = rows[r, pit]
            for step in range(steps.shape[0]):
                if seeds < steps[step]:
                    break
                out[r, _COUNTS + step * _PITS + pit] = _ONE
        for i in range(_COUNTS, OBSERVATION_SIZE):
            if rows[r, i] != 0:
                out[r, _FLAGS + i - _COUNTS] = _ONE
        out[r, _CAPTURES] = eighths[rows[r, CAPTURES_AT]]
        for i in range(1, 3):
            if rows[r, CAPTURES_AT + i] != 0:
                out[r, _CAPTURES + i] = _ONE
        for i in range(_STARTS):
            captured = rows[r, STARTS_AT + i]
            if captured != 0:
                out[r, _CAPTURES + 3 + i] = _ONE
                out[r, _CAPTURES + 3 + _STARTS + i] = eighths[captured - 1]


def expand(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.int16]:
    """The features of rows uint8[R, ENCODING_SIZE]: the bits of bfloat16[R, FEATURES]."""
    out = np.empty((len(rows), FEATURES), np.int16)
    _expand(rows, _EIGHTHS, _STEP_ARRAY, out)
    return out
