"""Save and load the state of a run: a dictionary of arrays, checked before any of it is used.

Each part of a run (games, buffer, network, optimiser, generator) returns its state as arrays and
loads them again. :func:`check_arrays` compares names, types and shapes with those that this run
would write, :func:`digest` detects damage, and :func:`check_positions` looks at what compiled code
trusts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from bao_agents.nets.checkpoint import Arrays
from bao_env.engine.batch import Engine
from bao_env.engine.layout import HOUSE, NUM_SEEDS
from bao_env.engine.position import (
    META,
    MOVER_FRONT,
    NO_WINNER,
    OTHER_FRONT,
    PLY,
    Legal,
    PackedPositions,
    to_packed,
    unpack,
)
from bao_env.engine.validation import validate


def digest(info: Mapping[str, Any], arrays: Arrays) -> str:
    """Return a SHA-256 of a run's plain values and arrays.

    Args:
        info: plain values for JSON; an entry ``digest`` does not count.
        arrays: every array of the run.
    """
    values = {key: value for key, value in info.items() if key != "digest"}
    total = hashlib.sha256(json.dumps(values, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        total.update(name.encode())
        total.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def check_arrays(arrays: Arrays, expected: Arrays) -> None:
    """Check that saved arrays have the names, types and shapes of the expected ones.

    Raises:
        ValueError: an array is missing, unknown, or of another type or shape.
    """
    if missing := sorted(expected.keys() - arrays.keys()):
        raise ValueError(f"it has no array {missing[0]!r}")
    if unknown := sorted(arrays.keys() - expected.keys()):
        raise ValueError(f"it has an array {unknown[0]!r:.200}, which this run does not know")
    for name, ours in expected.items():
        theirs = arrays[name]
        if (theirs.dtype, theirs.shape) != (ours.dtype, ours.shape):
            raise ValueError(
                f"{name}: {theirs.dtype}{list(theirs.shape)}"[:200]
                + f", expected {ours.dtype}{list(ours.shape)}"
            )


def join(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays with ``prefix.`` before each name."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def part(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays whose names begin with ``prefix.``, without it."""
    start = prefix + "."
    return {
        name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)
    }


def check_positions(positions: PackedPositions, legal: Legal, engine: Engine) -> None:
    """Check that games can go on from positions: compiled code trusts them.

    Args:
        positions: uint64[N, 6].
        legal: uint64[N], their legal actions.
        engine: has the rules.

    Raises:
        ValueError: one of them is impossible, has other legal actions, or is the end of a game.
    """
    ruleset = engine.ruleset
    pits = np.ascontiguousarray(positions[:, :META]).view(np.uint8)
    meta = np.ascontiguousarray(positions[:, META : META + 1]).view(np.uint8)
    stores, flags, waiting = meta[:, :2], meta[:, 2], meta[:, 3:]
    seeds = pits.sum(axis=1, dtype=np.int64) + stores.sum(axis=1, dtype=np.int64)
    usual = (seeds == NUM_SEEDS) & (flags < 8) & (waiting == [255, 255, 0, 0, 0]).all(axis=1)
    usual &= (positions[:, [MOVER_FRONT, OTHER_FRONT]] != 0).all(axis=1)
    usual &= positions[:, PLY] < 2**31
    least = ruleset.house_min if ruleset.house_lost_below_min else 1
    for bit, house in ((1, HOUSE), (2, 16 + HOUSE)):
        usual &= (flags & bit == 0) | (ruleset.house & (pits[:, house] >= least))
    for packed in positions[~usual]:
        position = unpack(packed)
        validate(position, ruleset)  # takes 15 microseconds
        sown = position.pending is None and position.pending_sown
        if sown or (to_packed(position) != packed).any():
            raise ValueError("a position with unknown flags")
    found, winners = np.zeros_like(legal), np.full(len(legal), NO_WINNER, np.int8)
    engine.find_legal(positions, found, winners)
    if (winners != NO_WINNER).any():
        raise ValueError("the position of a running game is over")
    if (found != legal).any():
        raise ValueError("the legal actions of a position are not those of the engine")
