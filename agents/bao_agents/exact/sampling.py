"""Draw distinct positions from games, to solve or to learn from.

The same seed, players and arguments give the same positions, on any number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bao_agents.arena.games import MAX_MATCH_PLIES, play_games
from bao_agents.arena.openings import play_opening
from bao_agents.exact.solved_positions import without_seats
from bao_agents.players.player import as_player
from bao_agents.support.array_types import Int64Array, Uint8Array
from bao_env.bots import ActFunction, Agent
from bao_env.engine.batch import Engine
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import PLY, WORDS, Legal, PackedPositions
from bao_env.engine.ruleset import Ruleset
from bao_env.envs.openings import Openings, check_opening_plies

_ROUND = 8192
"""The most games played at once."""
_YIELD = 0.01
"""If games give fewer new positions each than this, nearly all have been found."""


class Sample(NamedTuple):
    """N positions of different games."""

    positions: PackedPositions
    """uint64[N, 6]."""
    legal: Legal
    """uint64[N], their legal actions, none of them 0."""


def games(
    ruleset: str | Ruleset,
    player: Agent | ActFunction,
    opponent: Agent | ActFunction,
    count: int,
    *,
    opening_plies: tuple[int, int] = (0, 8),
    plies: tuple[int, int] = (0, MAX_MATCH_PLIES - 1),
    seed: int | tuple[int, ...] = 0,
) -> Sample:
    """Draw positions from games between two players, at most one from each game.

    Each player moves first in about half of the games. Two positions count as the same if
    :func:`without_seats` returns the same for both.

    Args:
        ruleset: the rules.
        player, opponent: the players, who may be the same.
        count: number of positions.
        opening_plies: the lowest and the highest number of random plies that open a game.
        plies: the lowest and the highest ply of a position.
        seed: seed of openings, seats and draws. Players have their own seeds.

    Returns:
        the first ``count`` positions found.

    Raises:
        ValueError: an argument is out of range, there are too few different positions, or a player
            chose an illegal action; the message says which.
    """
    check_arguments(count, opening_plies, plies)
    engine = Engine(ruleset)
    players = as_player(player, "the player"), as_player(opponent, "the opponent")
    openings = Openings(engine.ruleset, opening_plies)
    sequence = np.random.SeedSequence(seed)
    positions = np.empty((0, WORDS), np.uint64)
    legal = np.empty(0, np.uint64)
    while len(positions) < count:
        rng = np.random.default_rng(sequence.spawn(1)[0])
        size = min(_ROUND, 64 + 2 * (count - len(positions)))
        starts, _ = openings.draw(size, rng)
        seats = rng.integers(SOUTH, NORTH + 1, size=size, dtype=np.int8)
        played = play_games(players, starts, seats, engine, max_plies=plies[1] + 1)
        owners, new, new_legal = _positions_of(starts, played.actions, engine, plies[0])
        chosen_rows = _one_of_each(owners, rng)
        before = len(positions)
        positions = np.concatenate([positions, new[chosen_rows]])
        legal = np.concatenate([legal, new_legal[chosen_rows]])
        first = np.sort(np.unique(without_seats(positions), axis=0, return_index=True)[1])
        positions, legal = positions[first], legal[first]
        if len(positions) < count and len(positions) - before < _YIELD * size:
            raise ValueError(
                f"rule set {engine.ruleset.name!r}: fewer than {count} different positions at "
                f"plies {plies[0]} to {plies[1]} ({len(positions)} found): ask for fewer "
                "positions, or for a wider range of plies"
            )
    return Sample(positions[:count], legal[:count])


def check_arguments(count: int, opening_plies: tuple[int, int], plies: tuple[int, int]) -> None:
    """Validate arguments of :func:`games`.

    Raises:
        ValueError: an argument is out of range; the message says which.
    """
    if count < 1:
        raise ValueError(f"count={count}: expected at least 1")
    if not 0 <= plies[0] <= plies[1] < MAX_MATCH_PLIES:
        raise ValueError(
            f"plies {plies[0]} to {plies[1]}: expected 0 to {MAX_MATCH_PLIES - 1}, the lower "
            "number first"
        )
    if check_opening_plies(opening_plies, MAX_MATCH_PLIES)[1] > plies[1]:
        raise ValueError(
            f"opening_plies={opening_plies}: expected no more than {plies[1]}, the most plies of a "
            "position"
        )


def _positions_of(
    starts: PackedPositions, actions: Uint8Array, engine: Engine, lowest: int
) -> tuple[Int64Array, PackedPositions, Legal]:
    """Return the positions of played games, from a given ply on.

    Args:
        starts: uint64[G, 6].
        actions: uint8[G, longest], the actions of each game, then 255.
        engine: the rules.
        lowest: the first ply.

    Returns:
        the index of each position's game, int64[P], ascending; positions uint64[P, 6]; and
        their legal actions uint64[P].
    """
    owners, position_parts, legal_parts = [], [], []
    for (positions, legal), _ in zip(
        play_opening(starts, actions, engine), actions.T, strict=False
    ):
        going = np.flatnonzero((legal != 0) & (positions[:, PLY] >= lowest))
        owners.append(going)
        position_parts.append(positions[going])
        legal_parts.append(legal[going])
    order = np.argsort(np.concatenate(owners), kind="stable")
    return (
        np.concatenate(owners)[order],
        np.concatenate(position_parts)[order],
        np.concatenate(legal_parts)[order],
    )


def _one_of_each(owners: Int64Array, rng: np.random.Generator) -> Int64Array:
    """Choose a random position of each game; return their indices in ascending order."""
    shuffled = rng.permutation(len(owners))
    return np.sort(shuffled[np.unique(owners[shuffled], return_index=True)[1]])
