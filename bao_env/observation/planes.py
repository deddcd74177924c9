"""Observe the board as planes of 4 rows and 8 columns, for convolutions and attention.

Rows and columns show the board as the viewer sees it: row 0 is the opponent's back row, row 1
the opponent's front row, row 2 the viewer's front row, row 3 the viewer's back row; column 0 is on
the viewer's left. The planes::

    0        seeds in each hole
    1..10    1 where a hole holds at least 1, 2, 3, 4, 5, 6, 8, 10, 12, 15 seeds (STEPS)
    11       1 at a house that its player still owns
    12       1 at the hole that takasia bars in this turn (Donkers 4.1)
    13       1 at the hole whose capture side is still to be chosen (Dutch I.a)
    14, 15   seeds in the viewer's store, in the opponent's store, the same everywhere

As in :mod:`bao_env.observation.board`, seeds are counts as uint8, and eighths as float32; planes 12
and 13 concern the player to move and are zero in the other player's view.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bao_env.compiled.compile import jit
from bao_env.engine.bits import ONE
from bao_env.engine.layout import HOUSE, facing
from bao_env.engine.position import Legal, PackedPositions, Seats
from bao_env.observation.board import OBSERVATION_SIZE, Scale, SeedObserver, observe_one

STEPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15)
"""Seed counts at which planes 1 to 10 of a hole turn on. They are dense for small counts, because
the exact count decides where a sowing ends."""
PLANES = 16
ROWS = 4
COLUMNS = 8
OWNED = 1 + len(STEPS)
BARRED = OWNED + 1
WAITING = OWNED + 2
STORES = OWNED + 3

_OTHER_HOUSE = facing(HOUSE)
_STEP_ARRAY = np.array(STEPS, np.uint8)
_ROW_STARTS = np.array([24, 16, 0, 8])  # where rows 0 to 3 begin in a board of 52 numbers


@jit
def write_planes(
    positions: PackedPositions,
    viewers: Seats,
    scale: Scale,
    board: npt.NDArray[np.uint8],
    out: npt.NDArray[Any],
) -> None:
    """Write the planes of positions.

    Args:
        positions: uint64[B, 6], C-contiguous.
        viewers: int8[B], the seat that sees each position; below 0, the player to move.
        scale: multiplies the seeds: uint64 1 for uint8 ``out``, else a float32.
        board: uint8[1, OBSERVATION_SIZE], overwritten.
        out: uint8 or float32 [B, 16, 4, 8], filled.
    """
    for g in range(positions.shape[0]):
        observe_one(positions, g, viewers[g], ONE, board, 0)
        out[g, 1:STORES] = 0
        for row in range(ROWS):
            for column in range(COLUMNS):
                count = board[0, _ROW_STARTS[row] + column]
                out[g, 0, row, column] = count * scale
                for k in range(len(STEPS)):
                    if count < _STEP_ARRAY[k]:
                        break
                    out[g, 1 + k, row, column] = 1
        out[g, OWNED, 2, HOUSE] = board[0, 34]
        out[g, OWNED, 1, _OTHER_HOUSE] = board[0, 35]
        for column in range(COLUMNS):
            out[g, BARRED, 2, column] = board[0, 36 + column]
            out[g, WAITING, 2, column] = board[0, 44 + column]
        out[g, STORES] = board[0, 32] * scale
        out[g, STORES + 1] = board[0, 33] * scale


class Planes(SeedObserver):
    """The observer ``"planes"``, which looks the same under all rules."""

    shape: tuple[int, ...] = (PLANES, ROWS, COLUMNS)

    def fill(
        self,
        positions: PackedPositions,
        legal: Legal,
        viewers: Seats,
        arrays: npt.NDArray[Any],
    ) -> None:
        """Write the planes; see :meth:`bao_env.observation.observer.Observer.fill`."""
        board = np.empty((1, OBSERVATION_SIZE), np.uint8)
        write_planes(positions, viewers, self._scale, board, arrays)
