"""List afterstates, the positions after each legal action, to learn the values of positions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bao_env.engine.batch import Engine
from bao_env.engine.position import NO_WINNER, Actions, Legal, PackedPositions, movers
from bao_env.observation.observer import Observer, make_observations


class Afterstates(NamedTuple):
    """The K legal actions of B games, grouped by game, and the positions they lead to."""

    observations: Any
    """The observations of the player who moves after the action, K rows in the environment's
    format, without action masks."""
    legal: Legal
    """The legal actions in the positions reached, uint64[K]; 0 where the game is over."""
    actions: Actions
    """The actions that lead to these positions, int64[K]."""
    indptr: npt.NDArray[np.int64]
    """int64[B + 1]: the rows of game g are ``indptr[g]`` to ``indptr[g + 1] - 1``."""
    results: npt.NDArray[np.int8]
    """int8[K]: 1 if the action wins at once, -1 if it loses, else 0."""
    signs: npt.NDArray[np.int8]
    """int8[K]: -1 where the opponent moves next, because a gain for the opponent is a loss for the
    player who acted; 1 where the same player acts again (rule set ``dutch``)."""
    positions: PackedPositions
    """The packed positions reached, uint64[K, 6]."""


def list_afterstates(
    engine: Engine,
    observer: Observer,
    positions: PackedPositions,
    legal: Legal,
) -> Afterstates:
    """Return the position after every legal action of every position.

    Args:
        engine: the rules.
        observer: writes the observations.
        positions: uint64[B, 6], not changed.
        legal: uint64[B], the legal actions; a game without any has no rows.
    """
    bits = np.arange(64, dtype=np.uint64)
    games, actions = np.nonzero((legal[:, None] >> bits) & np.uint64(1))
    positions_after, legal_after = positions[games], legal[games]
    winners = np.full(len(games), NO_WINNER, np.int8)
    acting_movers = movers(positions_after)
    engine.step(positions_after, actions, legal_after, winners)
    next_movers = movers(positions_after)
    return Afterstates(
        observations=make_observations(observer, positions_after, legal_after, next_movers),
        legal=legal_after,
        actions=actions,
        indptr=np.searchsorted(games, np.arange(len(legal) + 1)),
        results=np.where(winners < 0, 0, np.where(winners == acting_movers, 1, -1)).astype(np.int8),
        signs=np.where(next_movers == acting_movers, 1, -1).astype(np.int8),
        positions=positions_after,
    )
