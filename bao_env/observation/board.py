"""What a player sees, as numbers: the board from his own side.

A position becomes :data:`OBSERVATION_SIZE` numbers, always seen by one player, so that a
policy need not know whether it plays South or North::

    0..7    seeds in the viewer's front holes 1..8, left to right
    8..15   seeds in the viewer's back holes 1..8, behind those
    16..23  seeds in the opponent's front row, facing the viewer's holes 1..8
    24..31  seeds in the opponent's back row, behind those
    32, 33  seeds in the viewer's store, in the opponent's store
    34, 35  1 if the viewer owns his house, if the opponent owns his
    36..43  1 at the viewer's front hole that takasia bars in this turn (Donkers 4.1)
    44..51  1 at the viewer's front hole whose capture awaits its side (Dutch I.a)

The last two groups concern the player to move and are zero in the other player's view.
As uint8 the seeds are counts (0..64); as float32 they are in units of eight seeds
(:data:`SEED_UNIT`), so that usual counts lie between 0 and 2, and flags stay 0 or 1.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from bao_env.engine.bits import BYTE, ONE, U
from bao_env.engine.compile import jit
from bao_env.engine.position import (
    META,
    MOVER_FRONT,
    OTHER_FRONT,
)

OBSERVATION_VERSION: Final = 1
"""Raised whenever a number of the observation changes its place or its meaning."""
OBSERVATION_SIZE: Final = 52
SEED_UNIT: Final = 8.0
"""Seeds that make 1.0 in a float observation."""

_7: Final = U(7)
_8: Final = U(8)
_24: Final = U(24)
_32: Final = U(32)
_HOUSE_BIT: Final = U(16)
_OTHER_HOUSE_BIT: Final = U(17)
_NORTH_BIT: Final = U(18)


@jit
def observe_compiled(positions, viewers, scale, out):
    """:func:`observe` for callers that are compiled themselves.

    ``scale`` multiplies the seeds: uint64 1 for uint8 ``out``, else a float32.
    """
    seeds = positions.view(np.uint8)  # little-endian: byte r of word w is seeds[g, 8 * w + r]
    for g in range(positions.shape[0]):
        meta = positions[g, META]
        mover = (meta >> _NORTH_BIT) & ONE
        moves = viewers[g] < 0 or U(viewers[g]) == mover
        own = 8 * MOVER_FRONT if moves else 8 * OTHER_FRONT
        other = 8 * OTHER_FRONT if moves else 8 * MOVER_FRONT
        for i in range(8):
            out[g, i] = seeds[g, own + i] * scale
            out[g, 8 + i] = seeds[g, own + 15 - i] * scale
            out[g, 16 + i] = seeds[g, other + 7 - i] * scale
            out[g, 24 + i] = seeds[g, other + 8 + i] * scale
        out[g, 36:52] = 0
        own_store, other_store = meta & BYTE, (meta >> _8) & BYTE
        own_house, other_house = (meta >> _HOUSE_BIT) & ONE, (meta >> _OTHER_HOUSE_BIT) & ONE
        out[g, 32] = (own_store if moves else other_store) * scale
        out[g, 33] = (other_store if moves else own_store) * scale
        out[g, 34] = own_house if moves else other_house
        out[g, 35] = other_house if moves else own_house
        if moves:
            barred = (meta >> _24) & BYTE
            pending = (meta >> _32) & BYTE
            if barred <= _7:
                out[g, 36 + np.int64(barred)] = 1
            if pending <= _7:
                out[g, 44 + np.int64(pending)] = 1


def observe(
    positions: npt.NDArray[np.uint64],
    out: npt.NDArray[Any],
    viewers: npt.NDArray[np.int8] | None = None,
) -> None:
    """Write observations into ``out``, uint8 or float32 [B, 52], in place.

    Args:
        positions: uint64[B, 6], packed positions.
        out: uint8 (counts of seeds) or float32 (units of eight seeds).
        viewers: int8[B], the seat whose view each row is; -1, or None, is the mover's.
    """
    if viewers is None:
        viewers = np.full(len(positions), -1, np.int8)
    scale = U(1) if out.dtype == np.uint8 else np.float32(1.0 / SEED_UNIT)
    observe_compiled(positions, viewers, scale, out)
