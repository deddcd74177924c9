"""Observe the bare board, seen from a player's own side.

A position becomes :data:`OBSERVATION_SIZE` numbers. They show the board from the viewer's side, so
a policy need not know whether it plays South or North::

    0..7    seeds in the viewer's front holes 1..8, left to right
    8..15   seeds in the viewer's back holes 1..8, behind those
    16..23  seeds in the opponent's front row, facing the viewer's holes 1..8
    24..31  seeds in the opponent's back row, behind those
    32, 33  seeds in the viewer's store, in the opponent's store
    34, 35  1 if the viewer owns their house, if the opponent owns theirs
    36..43  1 at the viewer's front hole that takasia bars in this turn (Donkers 4.1)
    44..51  1 at the viewer's front hole whose capture side is still to be chosen (Dutch I.a)

The last two groups concern the player to move and are zero in the other player's view.
As uint8 the seeds are counts (0..64); as float32 they are in units of eight seeds
(:data:`SEED_UNIT`), so that usual counts lie between 0 and 2. Flags are 0 or 1 in both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from bao_env.compiled.compile import jit, jit_inline
from bao_env.engine.argument_checks import batch_size, check_array, check_output
from bao_env.engine.bits import U, byte, byteswap
from bao_env.engine.layout import NUM_SEEDS
from bao_env.engine.position import (
    META,
    MOVER_FRONT,
    OTHER_FRONT,
    Index,
    Legal,
    PackedPositions,
    Seats,
    barred_of,
    mover_of,
    other_owns_house,
    other_store_of,
    owns_house,
    pending_of,
    store_of,
)
from bao_env.engine.ruleset import Ruleset

OBSERVATION_VERSION = 1
"""Increased whenever a number of the observation changes its place or its meaning."""
OBSERVATION_SIZE = 52
SEED_UNIT = 8.0
"""The number of seeds that a float observation shows as 1.0."""

Scale = U | np.float32
"""The factor for counts of seeds; see :func:`seed_scale`."""
_LAST_FRONT_PIT = U(7)  # a ring pit; NO_PIT lies above


def seed_space(shape: tuple[int, ...], dtype: npt.DTypeLike) -> spaces.Box:
    """Return the space of an array of seeds and flags, float32 or uint8."""
    high = NUM_SEEDS if dtype == np.uint8 else NUM_SEEDS / SEED_UNIT
    return spaces.Box(0, high, shape, np.dtype(dtype).type)


def seed_scale(dtype: npt.DTypeLike) -> Scale:
    """Return the factor for counts of seeds: uint64 1 for uint8, else a float32."""
    return U(1) if dtype == np.uint8 else np.float32(1.0 / SEED_UNIT)


@jit_inline
def observe_one(
    positions: PackedPositions,
    k: Index,
    viewer: Index,
    scale: Scale,
    out: npt.NDArray[Any],
    r: Index,
) -> None:
    """Write the observation of one position of many, for compiled callers.

    Rows are given by index because passing slices would cost more than everything else.

    Args:
        positions: uint64[N, 5 or more], C-contiguous positions.
        k: the position's index in ``positions``.
        viewer: the seat that sees the position; below 0, the player to move.
        scale: multiplies the seeds: uint64 1 for uint8 ``out``, else a float32.
        out: uint8 or float32 [R, OBSERVATION_SIZE or more].
        r: the row of ``out`` whose first OBSERVATION_SIZE numbers are written.
    """
    meta = positions[k, META]
    moves = viewer < 0 or U(viewer) == mover_of(meta)
    near, far = (MOVER_FRONT, OTHER_FRONT) if moves else (OTHER_FRONT, MOVER_FRONT)
    front, back = positions[k, near], byteswap(positions[k, near + 1])
    facing, behind = byteswap(positions[k, far]), positions[k, far + 1]
    for i in range(8):
        out[r, i] = np.uint8(byte(front, U(i))) * scale
        out[r, 8 + i] = np.uint8(byte(back, U(i))) * scale
        out[r, 16 + i] = np.uint8(byte(facing, U(i))) * scale
        out[r, 24 + i] = np.uint8(byte(behind, U(i))) * scale
    out[r, 36:52] = 0
    own_store, other_store = store_of(meta), other_store_of(meta)
    own_house, other_house = owns_house(meta), other_owns_house(meta)
    out[r, 32] = (own_store if moves else other_store) * scale
    out[r, 33] = (other_store if moves else own_store) * scale
    out[r, 34] = own_house if moves else other_house
    out[r, 35] = other_house if moves else own_house
    if moves:
        barred, pending = barred_of(meta), pending_of(meta)
        if barred <= _LAST_FRONT_PIT:
            out[r, 36 + np.int64(barred)] = 1
        if pending <= _LAST_FRONT_PIT:
            out[r, 44 + np.int64(pending)] = 1


@jit
def observe_compiled(
    positions: PackedPositions, viewers: Seats, scale: Scale, out: npt.NDArray[Any]
) -> None:
    """Write observations without checks, for compiled callers and observers; see :func:`observe`.

    Args:
        positions: uint64[B, 6], C-contiguous.
        viewers: int8[B], the seat that sees each position; below 0, the player to move.
        scale: as in :func:`observe_one`.
        out: uint8 or float32 [B, OBSERVATION_SIZE or more], filled.
    """
    for g in range(positions.shape[0]):
        observe_one(positions, g, viewers[g], scale, out, g)


class SeedObserver:
    """An observer that writes one array of seeds and flags.

    Args:
        ruleset: the rules.
        dtype: float32 or uint8.
    """

    shape: tuple[int, ...]
    """The shape of an observation."""

    def __init__(self, ruleset: Ruleset, dtype: npt.DTypeLike) -> None:
        self._rules = ruleset.kernel
        self.space: spaces.Box = seed_space(self.shape, dtype)
        self._scale = seed_scale(dtype)

    def fill(
        self, positions: PackedPositions, legal: Legal, viewers: Seats, arrays: npt.NDArray[Any]
    ) -> None:
        """Write the observations; see :meth:`bao_env.observation.observer.Observer.fill`."""
        raise NotImplementedError


class BareBoard(SeedObserver):
    """The observer ``"board"``, which looks the same under all rules."""

    shape: tuple[int, ...] = (OBSERVATION_SIZE,)

    def fill(
        self,
        positions: PackedPositions,
        legal: Legal,
        viewers: Seats,
        arrays: npt.NDArray[Any],
    ) -> None:
        """Write the boards; see :meth:`bao_env.observation.observer.Observer.fill`."""
        observe_compiled(positions, viewers, self._scale, arrays)


def observe(
    positions: PackedPositions,
    out: npt.NDArray[Any],
    viewers: Seats | None = None,
) -> None:
    """Write observations into ``out``, uint8 or float32 [B, 52], in place.

    Args:
        positions: uint64[B, 6], packed positions.
        out: uint8 (counts of seeds) or float32 (units of eight seeds), filled.
        viewers: int8[B], the seat that sees each position, -1 for the player to move; None means
            the player to move in every position.

    Raises:
        TypeError, ValueError: an array has another type, shape or layout.
    """
    size = batch_size(positions)
    if viewers is None:
        viewers = np.full(size, -1, np.int8)
    check_array("viewers", viewers, np.int8, (size,))
    dtype = np.uint8 if getattr(out, "dtype", None) == np.uint8 else np.float32
    check_output("out", out, dtype, (size, OBSERVATION_SIZE))
    observe_compiled(positions, viewers, seed_scale(out.dtype), out)
