"""Positions to solve or to learn from: of games still going, and no two the same.

The same seed, players and arguments give the same positions, on any number of threads.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from agents.arena.match import GAME_OVER, MAX_PLIES, play_games
from bao_env.bots import Agent, RandomAgent
from bao_env.engine.batch import Engine
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import META, MOVER_IS_NORTH, PLY, WORDS, Words, movers
from bao_env.engine.ruleset import Ruleset
from bao_env.envs.openings import Openings, check_opening_plies

_ROUND: Final = 8192
"""Games that are played at once, at most."""
_YIELD: Final = 0.01
"""New positions a game; where there are fewer, nearly all have been found."""


class Sample(NamedTuple):
    """N positions, those of a game side by side and in order."""

    positions: Words
    """uint64[N, 6]."""
    masks: Words
    """uint64[N], their legal actions, none of them 0."""
    plies: npt.NDArray[np.int64]
    """int64[N], actions played before them."""


def without_seats(positions: Words) -> Words:
    """Positions as the player to move sees them, from whichever seat and after however many plies.

    What the rules allow and who wins depends on nothing else.

    Args:
        positions: uint64[N, 6].

    Returns:
        uint64[N, 6], a copy with South to move and ply 0.
    """
    found = positions.copy()
    found[:, META] &= ~MOVER_IS_NORTH
    found[:, PLY] = 0
    return found


def random_play(
    ruleset: str | Ruleset,
    count: int,
    *,
    plies: tuple[int, int] = (0, MAX_PLIES - 1),
    seed: int | np.random.SeedSequence = 0,
) -> Sample:
    """Positions of random games; see :func:`games`."""
    players = _sequence(seed).spawn(2)
    return games(
        ruleset,
        RandomAgent(players[0]),
        RandomAgent(players[1]),
        count,
        opening_plies=(0, 0),
        plies=plies,
        seed=seed,
    )


def games(
    ruleset: str | Ruleset,
    player: Agent,
    opponent: Agent,
    count: int,
    *,
    opening_plies: tuple[int, int] = (0, 8),
    plies: tuple[int, int] = (0, MAX_PLIES - 1),
    per_game: int | None = 1,
    own_turns: bool = False,
    seed: int | np.random.SeedSequence = 0,
) -> Sample:
    """Positions of games between two players, in which each begins about half of the games.

    Two positions are the same if :func:`without_seats` makes them so.

    Args:
        ruleset: the rules.
        player, opponent: the players; may be the same one.
        count: how many positions.
        opening_plies: the lowest and the highest number of random plies that open a game.
        plies: the lowest and the highest ply of a position.
        per_game: positions of a game, at most, drawn from all that it has; None for all of them.
        own_turns: only positions in which ``player`` is to move.
        seed: of openings, seats and what is drawn. Players have their own.

    Returns:
        the first ``count`` positions found.

    Raises:
        ValueError: an argument is out of range, there are too few different positions, or a player
            chose an illegal action; the message says which.
    """
    if count < 1 or (per_game is not None and per_game < 1):
        raise ValueError(f"count={count}, per_game={per_game}: expected at least 1")
    if not 0 <= plies[0] <= plies[1] < MAX_PLIES:
        raise ValueError(f"plies={plies}: expected two in order, from 0 to {MAX_PLIES - 1}")
    opening_plies = check_opening_plies(opening_plies, MAX_PLIES)
    if opening_plies[1] > plies[1]:
        raise ValueError(
            f"opening_plies={opening_plies}: expected no more than the highest of plies={plies}"
        )
    engine = Engine(ruleset)
    openings = Openings(engine.ruleset, opening_plies)
    sequence = _sequence(seed)
    found = np.empty((0, WORDS), np.uint64)
    masks = np.empty(0, np.uint64)
    while len(found) < count:
        rng = np.random.default_rng(sequence.spawn(1)[0])
        size = min(_ROUND, 64 + 2 * (count - len(found)) // (per_game or 8))
        starts, _ = openings.draw(size, rng)
        seats = rng.integers(SOUTH, NORTH + 1, size=size, dtype=np.int8)
        played = play_games((player, opponent), starts, seats, engine, max_plies=plies[1] + 1)
        owners, new, new_masks = _replay(starts, played.actions, engine, plies[0])
        kept = np.ones(len(new), bool)
        if own_turns:
            kept = movers(new) == seats[owners]
        if per_game is not None:
            kept[kept] = _some_of_each(owners[kept], per_game, rng)
        before = len(found)
        found = np.concatenate([found, new[kept]])
        masks = np.concatenate([masks, new_masks[kept]])
        first = np.sort(np.unique(without_seats(found), axis=0, return_index=True)[1])
        found, masks = found[first], masks[first]
        if len(found) < count and len(found) - before < _YIELD * size:
            raise ValueError(
                f"rule set {engine.ruleset.name!r}: fewer than {count} different positions at "
                f"plies {plies[0]} to {plies[1]} ({len(found)} found): ask for fewer or for more "
                "plies"
            )
    found, masks = found[:count], masks[:count]
    return Sample(found, masks, found[:, PLY].astype(np.int64))


def _sequence(seed: int | np.random.SeedSequence) -> np.random.SeedSequence:
    """A sequence of its own, so that what is spawned here changes nothing for the caller."""
    if isinstance(seed, np.random.SeedSequence):
        return np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)
    return np.random.SeedSequence(seed)


def _replay(
    starts: Words, actions: npt.NDArray[np.uint8], engine: Engine, lowest: int
) -> tuple[npt.NDArray[np.int64], Words, Words]:
    """The positions of games from a ply on in which an action was played.

    Args:
        starts: uint64[G, 6].
        actions: uint8[G, longest], :data:`GAME_OVER` after the end.
        engine: the rules.
        lowest: ply of the first positions wanted.

    Returns:
        the game of each, int64[P], in order; positions uint64[P, 6]; and masks uint64[P].
    """
    positions = starts.copy()
    masks = np.empty(len(starts), np.uint64)
    winners = np.empty(len(starts), np.int8)
    engine.legal_masks(positions, masks, winners)
    owners, found, found_masks = [], [], []
    for chosen in actions.T:
        masks[chosen == GAME_OVER] = 0
        going = np.flatnonzero((masks != 0) & (positions[:, PLY] >= lowest))
        owners.append(going)
        found.append(positions[going])
        found_masks.append(masks[going])
        engine.step(positions, chosen, masks, winners)
    order = np.argsort(np.concatenate(owners), kind="stable")
    return (
        np.concatenate(owners)[order],
        np.concatenate(found)[order],
        np.concatenate(found_masks)[order],
    )


def _some_of_each(
    owners: npt.NDArray[np.int64], per_game: int, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Which positions to keep, bool[P]: ``per_game`` at random of each game, or all it has."""
    shuffled = rng.permutation(len(owners))
    order = shuffled[np.argsort(owners[shuffled], kind="stable")]
    firsts = np.searchsorted(owners, owners)  # where the positions of the game begin
    kept = np.empty(len(owners), bool)
    kept[order] = np.arange(len(owners)) - firsts < per_game
    return kept
