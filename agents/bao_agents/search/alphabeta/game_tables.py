"""Keep a transposition table for each game, from one move to the next.

A table is small, and belongs to one game. So a choice depends on the game so far, but not on the
other games of a batch or on the threads. All tables are in one array, and compiled code finds a
game's table by its row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bao_agents.search.alphabeta.transposition import TABLE_BYTES, game_table_words, next_epoch
from bao_agents.search.player import NO_MEMORY, GameMemory
from bao_agents.support.array_types import Int64Array, Uint64Array

MAX_BYTES = 1 << 28
"""The most bytes of all tables of a player, 256 MiB, unless the player has its own limit."""


class _Tables(NamedTuple):
    """The tables, their epochs and the games that they belong to."""

    tables: Uint64Array
    epochs: Uint64Array
    rows: dict[int, int]
    """The row of each game; the game whose last move is longest ago comes first."""


class GameTables:
    """The tables of the games that a player plays.

    A table has 8 KiB for up to 500 nodes a move, 512 KiB for 25,000, 4 MiB for a million and 32 MiB
    for more than four million, so there is space for 32,768, 512, 64 or 8 games. When the space is
    full, the game whose last move is longest ago is forgotten. If a single batch has more games
    than that, none of them is remembered. The system provides the memory of a table only when the
    table is first used. If the tables cannot be allocated, nothing is remembered.

    Args:
        nodes: about how many nodes a search visits.
        memory: the most bytes of all tables together; a single table may then take all of them.
            None for 32 MiB per table and 256 MiB together.
    """

    def __init__(self, nodes: float, memory: int | None = None) -> None:
        self._words = game_table_words(nodes, memory or TABLE_BYTES)
        self.most: int = max(1, (memory or MAX_BYTES) // (8 * self._words))
        """The most games that are remembered at once."""
        self._games: _Tables | None = None
        """None during a change, so that after an exception all tables are made again, empty."""

    def find(self, games: Int64Array) -> GameMemory:
        """Return the memory of games; new games get an empty table.

        Args:
            games: int64[B], the numbers of the games, all different.
        """
        numbers = games.tolist()
        if len(numbers) > self.most:
            return NO_MEMORY
        try:
            memory = self._games or _Tables(
                np.zeros((self.most, self._words), np.uint64), np.zeros(self.most, np.uint64), {}
            )
        except MemoryError:
            return NO_MEMORY
        self._games = None
        tables, epochs, rows = memory
        # Move the known games to the end, so none of them is forgotten for a new one.
        rows.update([(game, rows.pop(game)) for game in numbers if game in rows])
        for game in numbers:
            if game not in rows:
                full = len(rows) == self.most
                rows[game] = row = rows.pop(next(iter(rows))) if full else len(rows)
                epochs[row] = next_epoch(tables[row], epochs[row])
        of_games = GameMemory(tables, epochs, np.array([rows[game] for game in numbers], np.int64))
        self._games = memory
        return of_games
