"""THE match loop: two players, paired openings, both seats, all games at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from agents.elo import Score, score_pairs
from bao_env.bots import Agent
from bao_env.engine.batch import Engine, random_actions, random_states
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import META, PLY, WORDS
from bao_env.engine.ruleset import Ruleset, get_ruleset

OPENING_PLIES: Final = 6
MAX_PLIES: Final = 1000

_NORTH_BIT: Final = np.uint64(18)


@dataclass(frozen=True)
class Match:
    """Every result of a match; ``score`` sums it up."""

    openings: npt.NDArray[np.uint64]
    """uint64[pairs, 6], the positions from which both games of a pair start."""
    points: npt.NDArray[np.float64]
    """float64[pairs, 2], what the first player got as South and as North."""
    plies: npt.NDArray[np.int64]
    """int64[pairs, 2], length of each game, its opening included."""
    score: Score


def movers(positions: npt.NDArray[np.uint64]) -> npt.NDArray[np.int8]:
    """The seat to move in each position, int8[B]."""
    return ((positions[:, META] >> _NORTH_BIT) & np.uint64(1)).astype(np.int8)


def draw_openings(
    ruleset: str | Ruleset, pairs: int, plies: int, seed: int
) -> npt.NDArray[np.uint64]:
    """Positions after ``plies`` random legal actions, all different, uint64[pairs, 6].

    Games that end within the opening are drawn again.

    Raises:
        ValueError: there are not that many different openings of this length.
    """
    engine = Engine(ruleset)
    sequence = np.random.SeedSequence(seed)
    first_players = (SOUTH, NORTH) if engine.ruleset.first_player == "lot" else (SOUTH,)
    found: dict[bytes, npt.NDArray[np.uint64]] = {}
    for _ in range(64):
        batch = max(256, 2 * (pairs - len(found)))
        openings = [engine.opening(first) for first in first_players]
        positions = np.array([openings[i % len(openings)][0] for i in range(batch)])
        masks = np.array([openings[i % len(openings)][1] for i in range(batch)])
        winners = np.full(batch, -1, np.int8)
        rng = random_states(batch, sequence.spawn(1)[0])
        actions = np.empty(batch, np.int64)
        for _ in range(plies):
            random_actions(masks, rng, actions)
            engine.step(positions, actions, masks, winners)
        for words in positions[winners < 0]:
            found.setdefault(words.tobytes(), words)
            if len(found) == pairs:
                return np.array(list(found.values())).reshape(pairs, WORDS)
    raise ValueError(
        f"rule set {engine.ruleset.name!r} has fewer than {pairs} different openings of {plies} "
        f"plies ({len(found)} found): ask for longer openings or fewer games"
    )


def play_match(
    first: Agent,
    second: Agent,
    *,
    ruleset: str | Ruleset = "zanzibar",
    pairs: int,
    opening_plies: int = OPENING_PLIES,
    seed: int = 0,
    max_plies: int = MAX_PLIES,
    progress: Callable[[int], None] = lambda ended: None,
) -> Match:
    """Play ``pairs`` pairs of games: each opening once with ``first`` as South, once as North.

    Args:
        first, second: the players; each sees all of its positions of a ply in one call.
        pairs: number of openings; twice as many games are played.
        opening_plies: random legal plies that make an opening.
        seed: of the openings. Players have their own.
        max_plies: a game that reaches this length is a draw.
        progress: called after each ply with the number of games that have just ended.

    Raises:
        ValueError: no pairs, or not enough different openings; or a player chose an illegal
            action (the message names it).
    """
    if pairs < 1:
        raise ValueError(f"pairs={pairs}: expected at least 1")
    engine = Engine(get_ruleset(ruleset))
    openings = draw_openings(engine.ruleset, pairs, opening_plies, seed)
    positions = np.repeat(openings, 2, axis=0)
    size = len(positions)
    first_seat = np.tile(np.array([SOUTH, NORTH], np.int8), pairs)
    masks = np.empty(size, np.uint64)
    winners = np.empty(size, np.int8)
    engine.legal_masks(positions, masks, winners)
    running = np.flatnonzero(masks)
    actions = np.zeros(size, np.int64)
    while len(running):
        first_moves = movers(positions[running]) == first_seat[running]
        for player, index in ((first, running[first_moves]), (second, running[~first_moves])):
            if len(index):
                actions[index] = player.act(positions[index], masks[index])
        engine.step(positions, actions, masks, winners)
        masks[positions[:, PLY] >= max_plies] = 0
        before = len(running)
        running = np.flatnonzero(masks)
        progress(before - len(running))
    points = np.where(winners < 0, 0.5, (winners == first_seat).astype(np.float64))
    paired = points.reshape(pairs, 2)
    plies = positions[:, PLY].astype(np.int64).reshape(pairs, 2)
    return Match(openings, paired, plies, score_pairs(paired))
