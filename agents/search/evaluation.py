"""What a position is worth without search: tables of fitted weights, read by the search.

The value is the sum of one weight for each of 32 pits and one for each of the eight pairs
of front pits that face each other, from tables indexed by how many seeds lie there and by
how far the stores have been spent: a logistic model of who wins, with the seeds as
categories rather than numbers. ``training/fit_evaluation.py`` fits it to the results of
self-play and writes ``agents/search/evaluation.npz``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from bao_env.engine.bits import BYTE, ONE, ZERO, U
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


@jit_inline
def phase_offset(meta):
    """Where the tables of the position's phase begin."""
    stores = store_of(meta) + other_store_of(meta)
    return min((stores + _PHASE_STORES - ONE) // _PHASE_STORES, _PHASE_LIMIT) * _U_PHASE


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
def evaluate(weights, packed):
    """The value of a position for the player to move, int64, in :data:`SCALE` a logit.

    Args:
        weights: int16[WEIGHTS].
        packed: the position, a :class:`Packed`.
    """
    offset = phase_offset(packed.meta)
    house, other_house = _house_tables(packed.meta)
    value = np.int64(0)
    for i in range(8):
        a, b, c, d, e = _indices(packed, house, other_house, i)
        value += weights[offset + a]
        value += weights[offset + b]
        value += weights[offset + c]
        value += weights[offset + d]
        value += weights[offset + e]
    return max(-LIMIT, min(LIMIT, value))


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


def check_weights(weights: npt.NDArray[np.int16]) -> None:
    """Refuse weights that compiled code would read beyond.

    Raises:
        ValueError: they are not int16[WEIGHTS].
    """
    if weights.shape != (WEIGHTS,) or weights.dtype != np.int16:
        raise ValueError(f"weights {weights.dtype}{weights.shape}: expected int16[{WEIGHTS}]")


@cache
def _fitted() -> dict[str, npt.NDArray[np.int16]]:
    """The weights in :data:`FILE`, by rule set."""
    with np.load(FILE, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def load_weights(ruleset: Ruleset) -> npt.NDArray[np.int16]:
    """The fitted weights of a rule set, int16[WEIGHTS].

    A rule set of one's own gets those of the published one that differs from it least.
    """
    fitted = _fitted()
    if ruleset == RULESETS.get(ruleset.name) and ruleset.name in fitted:
        return fitted[ruleset.name]
    settings = ruleset.to_dict()
    settings.pop("name")

    def differences(name: str) -> int:
        other = RULESETS[name].to_dict()
        return sum(other[key] != value for key, value in settings.items())

    return fitted[min(fitted, key=differences)]
