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
    MOVER_BACK,
    MOVER_FRONT,
    OTHER_BACK,
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
    for g in range(positions.shape[0]):
        meta = positions[g, META]
        mover = (meta >> _NORTH_BIT) & ONE
        moves = viewers[g] < 0 or U(viewers[g]) == mover
        if moves:
            own_front = positions[g, MOVER_FRONT]
            own_back = positions[g, MOVER_BACK]
            front = positions[g, OTHER_FRONT]
            back = positions[g, OTHER_BACK]
        else:
            own_front = positions[g, OTHER_FRONT]
            own_back = positions[g, OTHER_BACK]
            front = positions[g, MOVER_FRONT]
            back = positions[g, MOVER_BACK]
        for i in range(8):
            up = U(i) << U(3)
            down = U(56) - up
            out[g, i] = ((own_front >> up) & BYTE) * scale
            out[g, 8 + i] = ((own_back >> down) & BYTE) * scale
            out[g, 16 + i] = ((front >> down) & BYTE) * scale
            out[g, 24 + i] = ((back >> up) & BYTE) * scale
            out[g, 36 + i] = 0
            out[g, 44 + i] = 0
        own, other = meta & BYTE, (meta >> _8) & BYTE
        own_house, other_house = (meta >> _HOUSE_BIT) & ONE, (meta >> _OTHER_HOUSE_BIT) & ONE
        out[g, 32] = (own if moves else other) * scale
        out[g, 33] = (other if moves else own) * scale
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
