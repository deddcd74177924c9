"""From a row of small integers to what the first layer of a network multiplies.

A *row* is what is stored and moved about: :data:`ROW_SIZE` bytes, and for networks that also
read what each action leads to (kind ``actions``) two more for each of the 64 actions::

    0..51    the observation (bao_env.observation): seeds and flags
    52       most seeds that the player to move can capture with one action
    53, 54   1 if he can win at once; 1 if he has no move
    55..118  for each action: 0 illegal, 255 wins at once, else 1 + the seeds that it captures
    119..182 for each action: 0 illegal, 255 if the other can then win at once, else 1 + the most
             seeds that he can capture in reply

Its *features* are each count of seeds in units of eight, for each pit whether it holds at
least 1, 2, 3 ... seeds, since where a sowing ends hangs on the exact count, and the flags. They
are bfloat16, in which all of them are exact.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.compile import jit
from bao_env.observation import OBSERVATION_SIZE

ROW_SIZE: Final = OBSERVATION_SIZE + 3
"""Bytes in a row of a network that does not read actions."""
ACTION_ROW_SIZE: Final = ROW_SIZE + 2 * NUM_ACTIONS
"""Bytes in a row of one that does."""
WINS: Final = 255
"""Byte of an action that wins at once."""

_PITS: Final = 32
_COUNTS: Final = 34
_STEPS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15)
_FLAGS: Final = _COUNTS + len(_STEPS) * _PITS
_OUTLOOK: Final = _FLAGS + OBSERVATION_SIZE - _COUNTS
FEATURES: Final = _OUTLOOK + 3
"""Features of a row without actions."""
PER_ACTION: Final = 5
"""Features of each action: legal, seeds captured, wins, seeds lost in reply, loses."""
ACTION_FEATURES: Final = FEATURES + PER_ACTION * NUM_ACTIONS
"""Features of a row with actions; feature f of action a is at ``FEATURES + f * 64 + a``."""

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
        out[r, _OUTLOOK] = eighths[rows[r, OBSERVATION_SIZE]]
        for i in range(1, 3):
            if rows[r, OBSERVATION_SIZE + i] != 0:
                out[r, _OUTLOOK + i] = _ONE
        if rows.shape[1] == ROW_SIZE:
            continue
        for action in range(NUM_ACTIONS):
            said = rows[r, ROW_SIZE + action]
            if said != 0:
                out[r, FEATURES + action] = _ONE
                if said == WINS:
                    out[r, FEATURES + 2 * NUM_ACTIONS + action] = _ONE
                else:
                    out[r, FEATURES + NUM_ACTIONS + action] = eighths[said - 1]
                reply = rows[r, ROW_SIZE + NUM_ACTIONS + action]
                if reply == WINS:
                    out[r, FEATURES + 4 * NUM_ACTIONS + action] = _ONE
                else:
                    out[r, FEATURES + 3 * NUM_ACTIONS + action] = eighths[reply - 1]


def expand(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.int16]:
    """The features of rows uint8[R, 55 or 183]: the bits of bfloat16[R, FEATURES or more]."""
    width = FEATURES if rows.shape[1] == ROW_SIZE else ACTION_FEATURES
    out = np.empty((len(rows), width), np.int16)
    _expand(rows, _EIGHTHS, _STEP_ARRAY, out)
    return out
