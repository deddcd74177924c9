"""Represent positions: six 64-bit words for the engine, plain tuples for people.

The engine's *packed position* is ``uint64[6]``; a batch is ``uint64[B, 6]``, C-contiguous::

    word 0  MOVER_FRONT    byte r = seeds in the mover's ring pit r      (r = 0..7)
    word 1  MOVER_BACK     byte r = seeds in the mover's ring pit 8 + r
    word 2  OTHER_FRONT    the same for the opponent, counted from the opponent's own left
    word 3  OTHER_BACK
    word 4  META           byte 0  seeds in the mover's store
                           byte 1  seeds in the opponent's store
                           byte 2  bit 0 the mover owns their house, bit 1 the opponent owns
                                   theirs, bit 2 the mover is North
                           byte 3  ring pit barred to the mover by takasia, 255 = none
                           byte 4  ring pit of a capture whose side the mover must choose,
                                   255 = none
                           bytes 5..7  seeds sown so far in the waiting move
    word 5  PLY            actions played since the start of the game

The words show the position from the mover's side, so the kernel needs no seats. The forms of a
position, and the functions that convert them:

* :data:`PackedPositions`: the array, one position or a batch;
* :class:`Position`: plain tuples by seat; :func:`to_packed` and :func:`unpack` convert it, and
  :func:`pack` writes it into an existing array;
* :class:`Rows`: words 0 to 4 as a named tuple, for compiled code;
  :func:`load_rows` and :func:`store_rows` convert it, and ``load_rows_at`` and ``store_rows_at`` do
  so in a batch. The functions at the end of this file read the parts of META; no other code knows
  their places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bao_env.compiled.compile import jit_inline
from bao_env.engine.bits import BYTE, ONE, ZERO, U
from bao_env.engine.layout import NORTH, SOUTH, ring_of_pit
from bao_env.engine.ruleset import Ruleset

PackedPositions = npt.NDArray[np.uint64]
"""Packed positions, uint64[B, 6], or one, uint64[6]."""
Legal = npt.NDArray[np.uint64]
"""The legal actions of each game, uint64[B]: bit a = action a."""
Seats = npt.NDArray[np.int8]
"""A seat for each game; below 0 where there is none."""
Actions = npt.NDArray[np.int64]
"""An action for each game."""
Flags = npt.NDArray[np.bool_]
Index = int | np.int64
"""An index or a count in compiled code: an int64 there."""

WORDS = 6
MOVER_FRONT = 0
MOVER_BACK = 1
OTHER_FRONT = 2
OTHER_BACK = 3
META = 4
PLY = 5

NO_PIT = U(255)
"""The byte for "no pit is barred" and "no capture is waiting"."""
NO_WINNER = -1
"""The entry in an array of winners while nobody has won."""

# Where the parts of META begin.
OTHER_STORE_SHIFT = U(8)
HOUSE_SHIFT = U(16)
OTHER_HOUSE_SHIFT = U(17)
MOVER_SHIFT = U(18)
BARRED_SHIFT = U(24)
PENDING_SHIFT = U(32)
SOWN_SHIFT = U(40)

# Flags of META, in place.
OWNS_HOUSE = ONE << HOUSE_SHIFT
OTHER_OWNS_HOUSE = ONE << OTHER_HOUSE_SHIFT
MOVER_IS_NORTH = ONE << MOVER_SHIFT
_MOVER_SHIFT = int(MOVER_SHIFT)
NO_PENDING = NO_PIT << PENDING_SHIFT


@dataclass(frozen=True)
class Position:
    """A position in plain Python, each seat's pits counted from its owner's left."""

    front: tuple[tuple[int, ...], tuple[int, ...]]
    """Seeds in front holes 1..8 of South and of North."""
    back: tuple[tuple[int, ...], tuple[int, ...]]
    """Seeds in back holes 1..8 of South and of North."""
    store: tuple[int, int]
    """Seeds in the stores of South and of North."""
    owns_house: tuple[bool, bool]
    """Whether South and North still own their house."""
    mover: int
    """SOUTH or NORTH."""
    barred: int | None = None
    """The mover's pit (0..15) that takasia bars, if any."""
    pending: int | None = None
    """The mover's front pit at which a capture waits for the mover to choose its side, if any."""
    pending_sown: int = 0
    """Seeds sown so far in the waiting move."""
    ply: int = 0
    """Actions played since the start of the game."""

    def pits(self, seat: int) -> tuple[int, ...]:
        """Return the seeds in pits 0..15 of a seat (front holes 1..8, then back holes 1..8)."""
        return self.front[seat] + self.back[seat]


def opening(ruleset: Ruleset, first_player: int = SOUTH) -> Position:
    """Return the start of a game (Donkers 2.1), with ``first_player`` to move."""
    return Position(
        front=(ruleset.opening_front, ruleset.opening_front),
        back=(ruleset.opening_back, ruleset.opening_back),
        store=(ruleset.opening_store, ruleset.opening_store),
        owns_house=(ruleset.house, ruleset.house),
        mover=first_player,
    )


def pack(position: Position, out: PackedPositions) -> None:
    """Write a position into ``out``, uint64[6], in place."""
    mover, opponent = position.mover, 1 - position.mover
    for word, seat in ((MOVER_FRONT, mover), (OTHER_FRONT, opponent)):
        pits = position.pits(seat)
        out[word] = int.from_bytes(bytes(pits[:8]), "little")
        out[word + 1] = int.from_bytes(bytes(pits[15:7:-1]), "little")
    flags = position.owns_house[mover] | position.owns_house[opponent] << 1 | mover << 2
    holes = (
        int(NO_PIT) if pit is None else ring_of_pit(pit)
        for pit in (position.barred, position.pending)
    )
    meta = bytes([position.store[mover], position.store[opponent], flags, *holes])
    out[META] = int.from_bytes(meta + position.pending_sown.to_bytes(3, "little"), "little")
    out[PLY] = position.ply


def to_packed(position: Position) -> PackedPositions:
    """Return a position as a new array, uint64[6]."""
    packed = np.empty(WORDS, np.uint64)
    pack(position, packed)
    return packed


def unpack(packed: PackedPositions) -> Position:
    """Return the position in ``packed``, uint64[6]."""
    front0, back0, front1, back1, meta = (int(word).to_bytes(8, "little") for word in packed[:5])
    store0, store1, flags, barred, pending = meta[:5]
    sides = [
        (tuple(front0), tuple(back0[::-1]), store0, bool(flags & 1)),
        (tuple(front1), tuple(back1[::-1]), store1, bool(flags & 2)),
    ]
    mover = turn_of(packed)
    if mover == NORTH:
        sides.reverse()
    front, back, store, owns_house = zip(*sides, strict=True)
    return Position(
        front=front,
        back=back,
        store=store,
        owns_house=owns_house,
        mover=mover,
        barred=None if barred == NO_PIT else ring_of_pit(barred),
        pending=None if pending == NO_PIT else ring_of_pit(pending),
        pending_sown=int.from_bytes(meta[5:], "little"),
        ply=int(packed[PLY]),
    )


def turn_of(packed: PackedPositions) -> int:
    """Return the seat to move in ``packed``, uint64[6]: SOUTH or NORTH."""
    return packed.item(META) >> _MOVER_SHIFT & 1


def movers(positions: PackedPositions) -> Seats:
    """Return the seats to move, int8[B], in positions uint64[B, 6]."""
    return ((positions[:, META] >> MOVER_SHIFT) & ONE).astype(np.int8)


def packed_opening(ruleset: Ruleset, first_player: int = SOUTH) -> PackedPositions:
    """Return the start of a game as a new packed position, uint64[6]."""
    return to_packed(opening(ruleset, first_player))


def mirrored(positions: PackedPositions) -> PackedPositions:
    """Return the mirror images of positions, with left and right swapped.

    Without houses the rules are symmetric: the mirror image of a game is a game, too.

    Args:
        positions: uint64[N, 6].

    Returns:
        uint64[N, 6], a copy.
    """
    mirror = positions.copy()
    mirror[:, :META] = positions[:, :META].byteswap()
    meta = mirror.view(np.uint8).reshape(len(mirror), WORDS, 8)[:, META]
    for pit in (meta[:, 3], meta[:, 4]):  # barred, waiting; 255 for none
        pit[pit < 8] = 7 - pit[pit < 8]
    return mirror


# --- for compiled code ----------------------------------------------------------------------------


class Rows(NamedTuple):
    """Words 0 to 4 of a packed position, uint64 each: everything that the rules depend on."""

    front: np.uint64
    back: np.uint64
    other_front: np.uint64
    other_back: np.uint64
    meta: np.uint64

    @classmethod
    def of(cls, packed: PackedPositions) -> Rows:
        """Return the position in ``packed``, uint64[5 or more], for plain Python.

        Use :func:`load_rows` in compiled code only. Called from plain Python, it returns plain
        integers, which compiled functions do not accept.
        """
        return cls(*packed[: META + 1])

    def __repr__(self) -> str:
        """Return the rows and META, for a debugger."""
        rows = ("front", "back", "other_front", "other_back")
        counts = [f"{row} {row_of(getattr(self, row))}" for row in rows]
        return ", ".join([*counts, f"meta {int(self.meta):#x}"])


def row_of(word: int | np.uint64) -> str:
    """Return the eight counts in a word of a position as text: ring pits 0..7 or 8..15."""
    return " ".join(map(str, int(word).to_bytes(8, "little")))


@jit_inline
def load_rows(packed: PackedPositions) -> Rows:
    """Return the position in ``packed``, uint64[5 or more]."""
    return Rows(
        packed[MOVER_FRONT],
        packed[MOVER_BACK],
        packed[OTHER_FRONT],
        packed[OTHER_BACK],
        packed[META],
    )


@jit_inline
def load_rows_at(positions: PackedPositions, i: Index) -> Rows:
    """Return the position in row ``i`` of ``positions``, uint64[B, 5 or more]."""
    return Rows(
        positions[i, MOVER_FRONT],
        positions[i, MOVER_BACK],
        positions[i, OTHER_FRONT],
        positions[i, OTHER_BACK],
        positions[i, META],
    )


@jit_inline
def store_rows(packed: PackedPositions, rows: Rows) -> None:
    """Write a position, all but PLY, into ``packed``, uint64[5 or more], in place."""
    packed[MOVER_FRONT] = rows.front
    packed[MOVER_BACK] = rows.back
    packed[OTHER_FRONT] = rows.other_front
    packed[OTHER_BACK] = rows.other_back
    packed[META] = rows.meta


@jit_inline
def store_rows_at(positions: PackedPositions, i: Index, rows: Rows) -> None:
    """Write a position, all but PLY, into row ``i`` of ``positions``, uint64[B, 5 or more]."""
    positions[i, MOVER_FRONT] = rows.front
    positions[i, MOVER_BACK] = rows.back
    positions[i, OTHER_FRONT] = rows.other_front
    positions[i, OTHER_BACK] = rows.other_back
    positions[i, META] = rows.meta


@jit_inline
def store_of(meta: U) -> U:
    """Return the seeds in the mover's store."""
    return meta & BYTE


@jit_inline
def other_store_of(meta: U) -> U:
    """Return the seeds in the opponent's store."""
    return (meta >> OTHER_STORE_SHIFT) & BYTE


@jit_inline
def owns_house(meta: U) -> bool:
    """Return whether the mover still owns their house, with any number of seeds in it."""
    return (meta & OWNS_HOUSE) != ZERO


@jit_inline
def other_owns_house(meta: U) -> bool:
    """Return whether the opponent still owns their house."""
    return (meta & OTHER_OWNS_HOUSE) != ZERO


@jit_inline
def mover_of(meta: U) -> U:
    """Return the seat to move, 0 = South or 1 = North."""
    return (meta >> MOVER_SHIFT) & ONE


@jit_inline
def barred_of(meta: U) -> U:
    """Return the mover's ring pit that takasia bars, or NO_PIT."""
    return (meta >> BARRED_SHIFT) & BYTE


@jit_inline
def pending_of(meta: U) -> U:
    """Return the ring pit of a capture whose side the mover must choose, or NO_PIT (Dutch I.a)."""
    return (meta >> PENDING_SHIFT) & BYTE


@jit_inline
def sown_of(meta: U) -> U:
    """Return the seeds sown so far in the waiting move."""
    return meta >> SOWN_SHIFT


@jit_inline
def same_mover(meta: U) -> bool:
    """Return whether the player to move also made the last move.

    They did only if a capture waits for them to choose its side (Dutch I.a).
    """
    return pending_of(meta) != NO_PIT
