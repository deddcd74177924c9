"""Play a batch of games to the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bao_agents.array_types import Int64Array, Uint8Array
from bao_env.bots import Agent, check_actions
from bao_env.engine.batch import Engine
from bao_env.engine.position import PLY, Seats, Words, movers

MAX_PLIES = 1000
GAME_OVER = 255
"""Fills the rows of :attr:`MatchGames.actions` after the end of a game."""


@dataclass(frozen=True)
class MatchGames:
    """The results of a batch of games."""

    actions: Uint8Array
    """uint8[G, longest], the actions after each start; 255 after the end."""
    winners: Seats
    """int8[G], the seat that won; -1 for a draw."""
    plies: Int64Array
    """int64[G], length of each game, including plies before its start."""
    moves: tuple[int, int]
    """Actions that the first and the second player chose."""
    seconds: tuple[float, float]
    """Wall-clock time that these took the two players, over all games."""


def play_games(
    players: tuple[Agent, Agent],
    positions: Words,
    first_seats: Seats,
    engine: Engine,
    *,
    max_plies: int = MAX_PLIES,
    progress: Callable[[int], None] = lambda ended: None,
) -> MatchGames:
    """Play a batch of games to the end.

    Args:
        players: each gets all of its positions of a ply in one call.
        positions: uint64[G, 6], the starts; not changed.
        first_seats: int8[G], the seat of the first player in each game.
        engine: the rules.
        max_plies: a game that reaches this length is a draw.
        progress: called after each ply with the number of games that have just ended.

    Raises:
        ValueError: a player chose an illegal action; the message names it.
    """
    positions = positions.copy()
    size = len(positions)
    masks = np.empty(size, np.uint64)
    winners = np.empty(size, np.int8)
    engine.legal_masks(positions, masks, winners)
    masks[positions[:, PLY] >= max_plies] = 0
    running = np.flatnonzero(masks)
    actions = np.zeros(size, np.int64)
    played = []
    moves, seconds = [0, 0], [0.0, 0.0]
    while len(running):
        first_moves = movers(positions[running]) == first_seats[running]
        for i, index in enumerate((running[first_moves], running[~first_moves])):
            if len(index):
                start = time.perf_counter()
                chosen = players[i].act(positions[index], masks[index])
                seconds[i] += time.perf_counter() - start
                who = getattr(players[i], "name", ("the first player", "the second player")[i])
                actions[index] = check_actions(chosen, masks[index], who)
                moves[i] += len(index)
        row = np.where(masks != 0, actions, GAME_OVER).astype(np.uint8)
        engine.step(positions, actions, masks, winners)
        played.append(row)
        masks[positions[:, PLY] >= max_plies] = 0
        before = len(running)
        running = np.flatnonzero(masks)
        progress(before - len(running))
    return MatchGames(
        actions=np.stack(played, axis=1) if played else np.empty((size, 0), np.uint8),
        winners=winners,
        plies=positions[:, PLY].astype(np.int64),
        moves=(moves[0], moves[1]),
        seconds=(seconds[0], seconds[1]),
    )
