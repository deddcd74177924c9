"""Play a batch of games to the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bao_agents.players.faults import PlayerFault
from bao_agents.players.player import NamedPlayer, new_games
from bao_agents.search.limits import Clock, Limit
from bao_agents.support.array_types import Float64Array, Int64Array, Uint8Array
from bao_env.bots import check_actions
from bao_env.engine.batch import Engine
from bao_env.engine.position import PLY, Actions, Flags, Legal, PackedPositions, Seats, movers

MAX_MATCH_PLIES = 1000
GAME_OVER = 255
"""The value that fills the rows of :attr:`MatchGames.actions` after the end of a game."""
_LATE = -2
"""The action of a player who has used up their clock; -1 stands for any other failure."""


@dataclass(frozen=True)
class MatchGames:
    """The results of a batch of games."""

    actions: Uint8Array
    """uint8[G, longest], the actions after each start; 255 after the end."""
    winners: Seats
    """int8[G], the seat that won; -1 for a draw."""
    plies: Int64Array
    """int64[G], length of each game, including plies before its start."""
    moves: Int64Array
    """int64[2], the number of actions that each player chose."""
    seconds: Float64Array
    """float64[2], the seconds of processor time that each player took, over all games."""
    faults: tuple[list[str], list[str]]
    """For each player, the cause of each fault by which it lost a game."""
    lost_on_time: Flags
    """bool[G], the games in which a player used up its clock."""


def choose(
    player: NamedPlayer,
    positions: PackedPositions,
    legal: Legal,
    games: Int64Array | None = None,
    limit: Limit | None = None,
) -> tuple[Actions, list[str]]:
    """Ask a player for its actions; after a fault, ask again for the remaining positions.

    Args:
        player: the player.
        positions: uint64[B, 6]; not changed.
        legal: uint64[B], the legal actions.
        games: int64[B], the numbers of the games; None if each position stands alone.
        limit: the limit for each position, in place of the limit in the player's name.

    Returns:
        int64[B], the actions, -1 where the player failed; and the causes of the failures, in order.

    Raises:
        ValueError: an action is illegal.
    """
    actions = np.full(len(legal), -1, np.int64)
    causes: list[str] = []
    start = 0
    while start < len(legal):
        left = legal[start:]
        try:
            numbers = None if games is None else games[start:]
            answer = player.act(positions[start:], left, games=numbers, limit=limit)
            accepted = check_actions(answer, left, player.name)
        except PlayerFault as fault:
            causes.append(fault.cause)
            answered = np.array(fault.actions, np.int64)
            accepted = check_actions(answered, left[: len(answered)], player.name)
        actions[start : start + len(accepted)] = accepted
        start += len(accepted) + 1
    return actions, causes


class _Side:
    """A player in a batch of games: its clocks, and a record of its moves.

    Args:
        player: the player. If its name has no time limit, it searches as if there were no clock,
            but its time still runs.
        games: the number of games, G.
        clock: its clock in a game; None to play without clocks.
    """

    def __init__(self, player: NamedPlayer, games: int, clock: Clock | None) -> None:
        self._player = player
        self._clocks = None if clock is None else [clock] * games
        """The player's remaining time in each game."""
        self.moves: int = 0
        """The number of actions that the player chose."""
        self.seconds: float = 0.0
        """The seconds of processor time that it took."""
        self.faults: list[str] = []
        """The cause of each fault."""

    def choose(
        self, games: Int64Array, positions: PackedPositions, legal: Legal, numbers: Int64Array
    ) -> Actions:
        """Return the player's actions in n games, int64[n]: -1 after a fault, -2 if it is too late.

        Args:
            games: int64[n], the indices of the games.
            positions, legal: uint64[n, 6] and uint64[n].
            numbers: int64[n], the numbers of the games for players that remember games.
        """
        seconds_before = self._player.processor_seconds()
        if self._clocks is None:
            actions, causes = choose(self._player, positions, legal, numbers)
        else:
            actions, causes = self._choose_by_clock(games, positions, legal, numbers, self._clocks)
        self.seconds += self._player.processor_seconds() - seconds_before
        self.moves += len(games) - len(causes)
        self.faults += causes
        return actions

    def _choose_by_clock(
        self,
        games: Int64Array,
        positions: PackedPositions,
        legal: Legal,
        numbers: Int64Array,
        clocks: list[Clock],
    ) -> tuple[Actions, list[str]]:
        """Choose actions one by one, each within the time left on its game's clock."""
        player = self._player
        actions, causes = np.full(len(legal), -1, np.int64), list[str]()
        takes_clock = player.limit is not None and player.limit.seconds is not None
        for i, game in enumerate(games.tolist()):
            player.get_ready()
            left, part = clocks[game], slice(i, i + 1)
            limit = Limit.by_clock(left) if takes_clock else None
            start = time.perf_counter()
            actions[part], faults = choose(
                player, positions[part], legal[part], numbers[part], limit
            )
            seconds = left.seconds - (time.perf_counter() - start)
            if seconds < 0:  # also if it then gave up, as a program does that gives no answer
                actions[part] = _LATE
                faults = faults or [f"lost on time, by {-seconds:.3f} s"]
            causes += faults
            clocks[game] = left._replace(seconds=max(0.0, seconds) + left.increment)
        return actions, causes


def play_games(
    players: tuple[NamedPlayer, NamedPlayer],
    positions: PackedPositions,
    first_seats: Seats,
    engine: Engine,
    *,
    max_plies: int = MAX_MATCH_PLIES,
    clock: Clock | None = None,
    progress: Callable[[int], None] = lambda ended: None,
) -> MatchGames:
    """Play a batch of games to the end. A fault of a player loses one game.

    Args:
        players: each gets all its positions of a ply in one call and, if it remembers games, their
            numbers.
        positions: uint64[G, 6], the starts; not changed.
        first_seats: int8[G], the seat of ``players[0]`` in each game.
        engine: the rules.
        max_plies: a game that reaches this length is a draw.
        clock: the clock of each player in a game. With a clock, a player gets the positions of a
            ply one by one, and loses a game in which it uses up its time.
        progress: called after each ply with the number of games that have just ended.

    Raises:
        ValueError: a player chose an illegal action; the message names it.
    """
    positions = positions.copy()
    size, numbers = len(positions), new_games(len(positions))
    legal = np.empty(size, np.uint64)
    winners = np.empty(size, np.int8)
    engine.find_legal(positions, legal, winners)
    legal[positions[:, PLY] >= max_plies] = 0
    running = np.flatnonzero(legal)
    actions = np.zeros(size, np.int64)
    lost_on_time = np.zeros(size, np.bool_)
    rows = []
    sides = [_Side(player, size, clock) for player in players]
    while len(running):
        is_turn_of_first = movers(positions[running]) == first_seats[running]
        turns = running[is_turn_of_first], running[~is_turn_of_first]
        for side, games in zip(sides, turns, strict=True):
            if len(games):
                choices = side.choose(games, positions[games], legal[games], numbers[games])
                lost = games[choices < 0]
                winners[lost] = 1 - movers(positions[lost])
                lost_on_time[games] = choices == _LATE
                legal[lost] = 0
                actions[games] = choices
        ply_actions = np.where(legal != 0, actions, GAME_OVER).astype(np.uint8)
        engine.step(positions, actions, legal, winners)
        rows.append(ply_actions)
        legal[positions[:, PLY] >= max_plies] = 0
        running_before = len(running)
        running = np.flatnonzero(legal)
        progress(running_before - len(running))
    return MatchGames(
        actions=np.stack(rows, axis=1) if rows else np.empty((size, 0), np.uint8),
        winners=winners,
        plies=positions[:, PLY].astype(np.int64),
        moves=np.array([side.moves for side in sides]),
        seconds=np.array([side.seconds for side in sides]),
        faults=(sides[0].faults, sides[1].faults),
        lost_on_time=lost_on_time,
    )
