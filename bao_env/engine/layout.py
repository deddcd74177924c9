"""Define the geometry of the board: the ring, the rows, the kichwas, and the facing pits.

Each player owns sixteen pits, which form one ring. The engine uses only this numbering of the
ring, and the functions below convert to and from it::

      ring  8   9  10  11  12  13  14  15    North's back row  b8 .. b1, as South sees it
      ring  7   6   5   4   3   2   1   0    North's front row a8 .. a1, as South sees it
            ---------------------------------
      ring  0   1   2   3   4   5   6   7    South's front row A1 .. A8, left to right
      ring 15  14  13  12  11  10   9   8    South's back row  B1 .. B8, left to right

    step +1 walks up the ring   (A1 -> A8 -> B8 -> B1 -> A1, clockwise for its owner)
    step -1 walks down the ring (A8 -> A1 -> B1 -> B8 -> A8, anti-clockwise)

* kichwa: the ends of the front row; kimbi: the pits next to them; nyumba, the house: hole 5.
* Ring pit ``r`` of a front row faces the opponent's ring pit ``7 - r``.
* A *pit* is the number that actions and names use: 0..7 = front holes 1..8, 8..15 = back holes
  1..8, both from the owner's left.
* A *direction* is the side to which the hand leaves a pit, as its owner sees it: LEFT or RIGHT.
  A *down* bit is the step along the ring: 0 = +1, 1 = -1.

Numbering from the left follows Donkers' diagram (2.1) and example game.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

SOUTH = 0
NORTH = 1

SeatName = Literal["south", "north"]
Seat = SeatName | int
"""A seat as callers give it: its name, or SOUTH or NORTH."""
_SEATS = {"south": SOUTH, "north": NORTH, SOUTH: SOUTH, NORTH: NORTH}

LEFT = 0
RIGHT = 1

NUM_SEEDS = 64
HOUSE = 4
"""Ring index and pit index of the nyumba, hole 5 of the front row."""
KICHWA = (0, 7)
"""The left and the right end of a front row: pit and ring index."""
KIMBI = (1, 6)
"""The pits next to the kichwas: pit and ring index."""


def seat_number(seat: object, name: str) -> int:
    """Return SOUTH or NORTH for a :data:`Seat`.

    Args:
        seat: the caller's value.
        name: the argument's name, for the message.

    Raises:
        ValueError: ``seat`` is neither the name nor the number of a seat.
    """
    plain = isinstance(seat, (str, int, np.integer)) and not isinstance(seat, bool)
    number = _SEATS.get(seat) if plain else None
    if number is None:
        raise ValueError(f"{name}={seat!r}: expected 'south' or 'north'")
    return int(number)


def ring_of_pit(pit: int) -> int:
    """Return the ring index of a pit 0..15; the function is its own inverse."""
    return pit if pit < 8 else 23 - pit


def facing(ring: int) -> int:
    """Return the opponent's front ring index opposite the front ring index ``ring`` (0..7)."""
    return 7 - ring


def pit_name(pit: int) -> str:
    """Return a pit's name as its owner writes it: ``A1``..``A8`` front, ``B1``..``B8`` back."""
    return f"{'AB'[pit >> 3]}{(pit & 7) + 1}"
