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
from bao_env.engine.kernel import OTHER_OWNS_HOUSE, OWNS_HOUSE
from bao_env.engine.layout import HOUSE
from bao_env.engine.position import META, MOVER_BACK, MOVER_FRONT, OTHER_BACK, OTHER_FRONT
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

_3 = U(3)
_4 = U(4)
_7 = U(7)
_8 = U(8)
_13 = U(13)
_14 = U(14)
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
    stores = (meta & BYTE) + ((meta >> _8) & BYTE)
    return min((stores + _13) // _14, _PHASE_LIMIT) * _U_PHASE


@jit_inline
def pit_index(side, table, seeds):
    """Index within a phase of the weight of a pit; ``side`` is 0 for the mover's."""
    return side * _U_SIDE + table * _U_COUNTS + min(seeds, _MAX_COUNT)


@jit_inline
def pair_index(ring, mine, theirs):
    """Index within a phase of the weight of front pit ``ring`` and the pit it faces."""
    pair = min(mine, _PAIR_MAX_COUNT) * _U_PAIR + min(theirs, _PAIR_MAX_COUNT)
    return _U_PAIRS + ring * _U_PAIR_SQUARE + pair


@jit
def evaluate(weights, front, back, other_front, other_back, meta):
    """The value of a position for the player to move, int64, in :data:`SCALE` a logit.

    Args:
        weights: int16[WEIGHTS].
        front, back, other_front, other_back, meta: words of the position.
    """
    offset = phase_offset(meta)
    house = _HOUSE_TABLE if meta & OWNS_HOUSE else _HOUSE
    other_house = _HOUSE_TABLE if meta & OTHER_OWNS_HOUSE else _HOUSE
    value = np.int64(0)
    for i in range(8):
        ring = U(i)
        shift = ring << _3
        mine = (front >> shift) & BYTE
        theirs = (other_front >> shift) & BYTE
        facing = (other_front >> ((_7 - ring) << _3)) & BYTE
        mine_table = house if ring == _HOUSE else ring
        their_table = other_house if ring == _HOUSE else ring
        value += weights[offset + pit_index(ZERO, mine_table, mine)]
        value += weights[offset + pit_index(ONE, their_table, theirs)]
        value += weights[offset + pit_index(ZERO, ring + _8, (back >> shift) & BYTE)]
        value += weights[offset + pit_index(ONE, ring + _8, (other_back >> shift) & BYTE)]
        value += weights[offset + pair_index(ring, mine, facing)]
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
        front = positions[g, MOVER_FRONT]
        back = positions[g, MOVER_BACK]
        other_front = positions[g, OTHER_FRONT]
        other_back = positions[g, OTHER_BACK]
        meta = positions[g, META]
        offset = phase_offset(meta)
        k = 0
        for i in range(8):
            ring = U(i)
            shift = ring << _3
            mine = (front >> shift) & BYTE
            theirs = (other_front >> shift) & BYTE
            facing = (other_front >> ((_7 - ring) << _3)) & BYTE
            mine_table = ring
            their_table = ring
            if ring == _HOUSE and meta & OWNS_HOUSE:
                mine_table = _HOUSE_TABLE
            if ring == _HOUSE and meta & OTHER_OWNS_HOUSE:
                their_table = _HOUSE_TABLE
            out[g, k] = offset + pit_index(ZERO, mine_table, mine)
            out[g, k + 1] = offset + pit_index(ONE, their_table, theirs)
            out[g, k + 2] = offset + pit_index(ZERO, ring + _8, (back >> shift) & BYTE)
            out[g, k + 3] = offset + pit_index(ONE, ring + _8, (other_back >> shift) & BYTE)
            out[g, k + 4] = offset + pair_index(ring, mine, facing)
            k += 5


def check_weights(weights: npt.NDArray[np.int16]) -> None:
    """Refuse weights that compiled code would read beyond.

    Raises:
        ValueError: they are not int16[WEIGHTS].
    """
    if weights.shape != (WEIGHTS,) or weights.dtype != np.int16:
        raise ValueError(f"weights {weights.dtype}{weights.shape}: expected int16[{WEIGHTS}]")


@cache
def _fitted() -> dict[str, npt.NDArray[np.int16]]:
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
