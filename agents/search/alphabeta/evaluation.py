"""What a position is worth without search: tables of fitted weights, read by the search.

The value is the sum of one weight for each of 32 pits and one for each of the eight pairs
of front pits that face each other, from tables indexed by how many seeds lie there and by
how far the stores have been spent: a logistic model of who wins, with the seeds as
categories rather than numbers. ``training/fit.py`` fits it to the results of
self-play and writes ``agents/search/alphabeta/evaluation.npz``.

To read 40 weights takes a search too long. :func:`merge` adds them up in advance for every two
pits that belong together, so that :func:`evaluate` reads 16 sums.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from bao_env.engine.bits import BYTE, ONE, TOPS, ZERO, U, byteswap
from bao_env.engine.compile import jit, jit_inline
from bao_env.engine.layout import HOUSE
from bao_env.engine.position import (
    other_owns_house,
    other_store_of,
    owns_house,
    read_at,
    store_of,
)
from bao_env.engine.ruleset import RULESETS, Ruleset

SCALE: Final = 200
"""Units of an evaluation in one logit: +200 means that e to 1 games are won."""
LIMIT: Final = 20_000
"""Evaluations lie within plus and minus this; proven results lie beyond."""

PHASES: Final = 4
"""Stores spent (mtaji); 1 to 14 seeds in them; 15 to 28; more."""
_PITS: Final = 17  # ring pits 0..15, and hole 5 as an owned house
_COUNTS: Final = 32
_PAIR_COUNTS: Final = 12
FEATURES: Final = 40
"""Weights that add up to one evaluation."""

_SIDE = _PITS * _COUNTS
_PAIRS = 2 * _SIDE
PHASE_WEIGHTS: Final = _PAIRS + 8 * _PAIR_COUNTS * _PAIR_COUNTS
WEIGHTS: Final = PHASES * PHASE_WEIGHTS
"""Length of the weights of one rule set."""

# Tables of pairs within a phase: eight of the pits that face each other, two of those with an
# owned house, and four of each player's back pits.
MY_HOUSE, THEIR_HOUSE, MY_BACK, THEIR_BACK = 8, 9, 10, 14
TABLES: Final = 18
FACES_HOUSE: Final = 7 - HOUSE
"""The own front pit that the opponent's house faces."""
_PAIR_SUMS = _COUNTS * _COUNTS
SUMS: Final = PHASES * TABLES * _PAIR_SUMS
"""Number of the sums of weights that :func:`merge` makes for one rule set."""

FILE: Final = Path(__file__).with_name("evaluation.npz")

_PIT_BITS_SHIFT = U(3)
_LAST_IN_ROW = U(7)
_ROW = U(8)
_PHASE_STORES = U(14)  # seeds in both stores that make a phase
_MAX_COUNT = U(_COUNTS - 1)
_PAIR_MAX_COUNT = U(_PAIR_COUNTS - 1)
_U_COUNTS = U(_COUNTS)
_U_SIDE = U(_SIDE)
_U_PAIRS = U(_PAIRS)
_U_PAIR = U(_PAIR_COUNTS)
_U_PAIR_SQUARE = U(_PAIR_COUNTS * _PAIR_COUNTS)
_U_PHASE = U(PHASE_WEIGHTS)
_HOUSE = U(HOUSE)
_HOUSE_TABLE = U(16)
_PHASE_LIMIT = U(PHASES - 1)
_PHASE_SUMS = U(TABLES * _PAIR_SUMS)

# Rows of counts, a byte a pit, and lanes of two counts, 16 bits each.
_TO_TOP_FROM_32 = U(0x6060606060606060)  # added to a count, sets its top bit from 32 on
TOP_BIT = U(7)
_COUNT_BITS = U(0x1F1F1F1F1F1F1F1F)
_COUNT_WIDTH = U(5)
BYTE_BITS = U(8)
_EVEN_BYTES = U(0x00FF00FF00FF00FF)
LANE = U(0xFFFF)
_LANE_BITS_SHIFT = U(4)


@jit_inline
def phase(meta):
    """How far the stores have been spent, 0 to PHASES - 1."""
    stores = store_of(meta) + other_store_of(meta)
    return min((stores + _PHASE_STORES - ONE) // _PHASE_STORES, _PHASE_LIMIT)


@jit_inline
def phase_offset(meta):
    """Where the weights of the position's phase begin."""
    return phase(meta) * _U_PHASE


@jit_inline
def pit_index(side, table, seeds):
    """Index within a phase of the weight of a pit; ``side`` is 0 for the mover's."""
    return side * _U_SIDE + table * _U_COUNTS + min(seeds, _MAX_COUNT)


@jit_inline
def pair_index(ring, mine, theirs):
    """Index within a phase of the weight of front pit ``ring`` and the pit it faces."""
    pair = min(mine, _PAIR_MAX_COUNT) * _U_PAIR + min(theirs, _PAIR_MAX_COUNT)
    return _U_PAIRS + ring * _U_PAIR_SQUARE + pair


@jit_inline
def _house_tables(meta):
    """Tables of hole 5 of the mover and of the opponent: another one while it is an owned house."""
    mine = _HOUSE_TABLE if owns_house(meta) else _HOUSE
    return mine, _HOUSE_TABLE if other_owns_house(meta) else _HOUSE


@jit_inline
def _indices(packed, house, other_house, i):
    """Indices within a phase of the five weights of column ``i`` (0..7).

    They are those of the mover's and the opponent's front pits ``i``, of the back pits behind
    ring pit ``8 + i``, and of the mover's front pit with the one it faces.
    """
    ring = U(i)
    shift = ring << _PIT_BITS_SHIFT
    mine = (packed.front >> shift) & BYTE
    theirs = (packed.other_front >> shift) & BYTE
    facing = (packed.other_front >> ((_LAST_IN_ROW - ring) << _PIT_BITS_SHIFT)) & BYTE
    back_ring = ring + _ROW
    return (
        pit_index(ZERO, house if ring == _HOUSE else ring, mine),
        pit_index(ONE, other_house if ring == _HOUSE else ring, theirs),
        pit_index(ZERO, back_ring, (packed.back >> shift) & BYTE),
        pit_index(ONE, back_ring, (packed.other_back >> shift) & BYTE),
        pair_index(ring, mine, facing),
    )


@jit
def evaluate(sums, packed):
    """The value of a position for the player to move, int64, in :data:`SCALE` a logit.

    Args:
        sums: int16[SUMS] from :func:`merge`.
        packed: the position, a :class:`Packed`.
    """
    meta = packed.meta
    front, facing = _limited(packed.front), _limited(byteswap(packed.other_front))
    back, other_back = _limited(packed.back), _limited(packed.other_back)
    base = np.int64(phase(meta) * _PHASE_SUMS)
    my_house = base + (MY_HOUSE if owns_house(meta) else HOUSE) * _PAIR_SUMS
    their_house = base + (THEIR_HOUSE if other_owns_house(meta) else FACES_HOUSE) * _PAIR_SUMS
    even = pairs(front, facing, _COUNT_WIDTH)
    odd = pairs(front >> BYTE_BITS, facing >> BYTE_BITS, _COUNT_WIDTH)
    mine = pairs(back, back >> BYTE_BITS, _COUNT_WIDTH)
    theirs = pairs(other_back, other_back >> BYTE_BITS, _COUNT_WIDTH)
    value = np.int64(0)
    for i in range(4):
        lane = U(i) << _LANE_BITS_SHIFT
        front_even, front_odd = 2 * i, 2 * i + 1
        at_even = my_house if front_even == HOUSE else base + front_even * _PAIR_SUMS
        at_odd = their_house if front_odd == FACES_HOUSE else base + front_odd * _PAIR_SUMS
        value += sums[at_even + np.int64((even >> lane) & LANE)]
        value += sums[at_odd + np.int64((odd >> lane) & LANE)]
        value += sums[base + (MY_BACK + i) * _PAIR_SUMS + np.int64((mine >> lane) & LANE)]
        value += sums[base + (THEIR_BACK + i) * _PAIR_SUMS + np.int64((theirs >> lane) & LANE)]
    return max(-LIMIT, min(LIMIT, value))


@jit_inline
def _limited(row):
    """A row whose counts above 31 are 31."""
    above = ((row + _TO_TOP_FROM_32) & TOPS) >> TOP_BIT
    return (row | ((above << BYTE_BITS) - above)) & _COUNT_BITS


@jit_inline
def pairs(first, second, width):
    """Four lanes of 16 bits: bytes 0, 2, 4, 6 of two rows, the second ``width`` bits above."""
    return (first & _EVEN_BYTES) | ((second & _EVEN_BYTES) << width)


@jit
def features(positions, out):
    """Indices of the weights that add up to each position's evaluation.

    Args:
        positions: uint64[B, 6].
        out: int32[B, FEATURES], filled; ``weights[out[i]].sum()`` is the evaluation but for
            the limit.
    """
    for g in range(positions.shape[0]):
        packed = read_at(positions, g)
        offset = phase_offset(packed.meta)
        house, other_house = _house_tables(packed.meta)
        for i in range(8):
            a, b, c, d, e = _indices(packed, house, other_house, i)
            out[g, 5 * i] = offset + a
            out[g, 5 * i + 1] = offset + b
            out[g, 5 * i + 2] = offset + c
            out[g, 5 * i + 3] = offset + d
            out[g, 5 * i + 4] = offset + e


def merge(weights: npt.NDArray[np.int16]) -> npt.NDArray[np.int16]:
    """The sums of weights that :func:`evaluate` reads.

    A phase has a table of 32 x 32 sums for each front pit and the pit that it faces, once more
    for either of the two pairs with a house in it while that house is owned, and for each two
    neighbours of a back row.

    Args:
        weights: int16[WEIGHTS].

    Returns:
        int16[SUMS].

    Raises:
        ValueError: ``weights`` have another shape or dtype, or are too large to be added up.
    """
    if weights.shape != (WEIGHTS,) or weights.dtype != np.int16:
        raise ValueError(f"weights {weights.dtype}{weights.shape}: expected int16[{WEIGHTS}]")
    most = np.iinfo(np.int16).max // 3
    if np.abs(weights.astype(np.int32)).max() > most:
        raise ValueError(f"weights beyond {most}: three of them must add up to an int16")
    sums = np.empty((PHASES, TABLES, _COUNTS, _COUNTS), np.int16)  # the first pit's count is last
    for table, of_phase in zip(sums, weights.reshape(PHASES, PHASE_WEIGHTS), strict=True):
        mine, theirs = of_phase[:_PAIRS].reshape(2, _PITS, _COUNTS)
        weight = of_phase[_PAIRS:].reshape(8, _PAIR_COUNTS, _PAIR_COUNTS)
        for ring in range(8):
            table[ring] = _facing(weight[ring], mine[ring], theirs[7 - ring])
        table[MY_HOUSE] = _facing(weight[HOUSE], mine[_PITS - 1], theirs[FACES_HOUSE])
        table[THEIR_HOUSE] = _facing(weight[FACES_HOUSE], mine[FACES_HOUSE], theirs[_PITS - 1])
        for i in range(4):
            ring = 8 + 2 * i
            table[MY_BACK + i] = mine[ring] + mine[ring + 1][:, None]
            table[THEIR_BACK + i] = theirs[ring] + theirs[ring + 1][:, None]
    return sums.reshape(SUMS)


def _facing(
    pair: npt.NDArray[np.int16], mine: npt.NDArray[np.int16], theirs: npt.NDArray[np.int16]
) -> npt.NDArray[np.int16]:
    """The sums int16[32, 32] of a front pit and the one it faces, by its count, then by mine.

    Args:
        pair: int16[12, 12], weights of both counts.
        mine, theirs: int16[32], weights of either.
    """
    limited = np.minimum(np.arange(_COUNTS), _PAIR_COUNTS - 1)
    return pair[limited][:, limited].T + mine + theirs[:, None]


def read_fitted(
    file: Path, shape: tuple[int, ...], without: Collection[str] = ()
) -> dict[str, npt.NDArray[np.int16]]:
    """Return the fitted numbers of the published rule sets, int16, by rule set.

    Args:
        file: the file, one of this package's.
        shape: the shape of each rule set's numbers.
        without: the published rule sets of which the file has none.

    Raises:
        ValueError: the file cannot be read, or an array is missing or has another shape or dtype.
    """
    try:
        with np.load(file, allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
    except Exception as error:  # a damaged archive raises almost anything
        raise ValueError(
            f"{file} cannot be read ({error!r:.100}): take it from the repository again"
        ) from error
    names = [name for name in RULESETS if name not in without]
    for name in names:
        array = found.get(name)
        if array is None or array.shape != shape or array.dtype != np.int16:
            has = "none" if array is None else f"{array.dtype}{list(array.shape)}"
            raise ValueError(
                f"{file}: expected int16{list(shape)} for the rule set {name}, found {has}: "
                "take it from the repository again"
            )
    return {name: found[name] for name in names}


@cache
def _fitted() -> dict[str, npt.NDArray[np.int16]]:
    """The weights in :data:`FILE`, by rule set."""
    return read_fitted(FILE, (WEIGHTS,))


def load_weights(ruleset: Ruleset) -> npt.NDArray[np.int16]:
    """The fitted weights of a rule set, int16[WEIGHTS].

    A rule set of one's own gets those of the published one that differs from it least.

    Raises:
        ValueError: the file is damaged; see :func:`read_fitted`.
    """
    fitted = _fitted()
    if ruleset == RULESETS.get(ruleset.name):
        return fitted[ruleset.name]
    settings = ruleset.to_dict()
    settings.pop("name")

    def differences(name: str) -> int:
        other = RULESETS[name].to_dict()
        return sum(other[key] != value for key, value in settings.items())

    return fitted[min(fitted, key=differences)]
