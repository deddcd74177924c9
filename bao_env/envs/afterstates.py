"""The position after each legal action: what a method that learns values of positions reads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bao_env.engine.batch import Engine
from bao_env.engine.position import movers
from bao_env.observation.kinds import Observer


class Afterstates(NamedTuple):
    """The K legal actions of B games, those of each game side by side, and where they lead."""

    observations: Any
    """What the player to move after the action sees, K rows; as the environment's observations,
    without masks."""
    masks: npt.NDArray[np.uint64]
    """What they may play then, uint64[K], bit a = action a; 0 where the game is over."""
    actions: npt.NDArray[np.int64]
    """The actions, int64[K]."""
    indptr: npt.NDArray[np.int64]
    """int64[B + 1]; those of game g are ``indptr[g]`` to ``indptr[g + 1] - 1``."""
    results: npt.NDArray[np.int8]
    """int8[K]: 1 if the action wins at once, -1 if it loses, else 0."""
    signs: npt.NDArray[np.int8]
    """int8[K]: -1 where the opponent moves next, so that what is good for them is bad for the
    player who acted; 1 where the same player acts again (rule set ``dutch``)."""
    positions: npt.NDArray[np.uint64]
    """Packed positions, uint64[K, 6]."""


def list_afterstates(
    engine: Engine,
    observer: Observer,
    positions: npt.NDArray[np.uint64],
    masks: npt.NDArray[np.uint64],
) -> Afterstates:
    """Play every legal action.

    Args:
        engine: the rules.
        observer: writes the observations.
        positions: uint64[B, 6], not changed.
        masks: uint64[B], their legal actions; a game with mask 0 has no rows.
    """
    bits = np.arange(64, dtype=np.uint64)
    games, actions = np.nonzero((masks[:, None] >> bits) & np.uint64(1))
    after, legal = positions[games], masks[games]
    winners = np.full(len(games), -1, np.int8)
    before = movers(after)
    engine.step(after, actions, legal, winners)
    now = movers(after)
    arrays = observer.empty(len(games))
    observer.fill(after, legal, now, arrays)
    return Afterstates(
        observations=observer.value(arrays),
        masks=legal,
        actions=actions,
        indptr=np.searchsorted(games, np.arange(len(masks) + 1)),
        results=np.where(winners < 0, 0, np.where(winners == before, 1, -1)).astype(np.int8),
        signs=np.where(now == before, 1, -1).astype(np.int8),
        positions=after,
    )
