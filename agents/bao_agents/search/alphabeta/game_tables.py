"""Keep a transposition table for each game, from one move to the next.

A table is small, and belongs to one game: a choice then depends on the game so far, but not on the
other games of a batch or on the threads. All tables are one array, so compiled code finds that of a
game by its row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bao_agents.search.alphabeta.transposition import TABLE_BYTES, game_table_words, next_epoch
from bao_agents.search.player import NO_MEMORY, GameMemory
from bao_agents.support.array_types import Int64Array, Uint64Array

MAX_BYTES = 1 << 28
"""The most memory of all tables of a player, unless it has been given more: 256 MiB."""


class _Tables(NamedTuple):
    """All that is kept of games."""

    tables: Uint64Array
    epochs: Uint64Array
    rows: dict[int, int]
    """The row of each game; the game that has waited longest comes first."""


class GameTables:
    """The tables of the games that a player plays.

    A table has 8 KiB for up to 500 nodes a move, 512 KiB for 25,000, 4 MiB for a million and 32 MiB
    for more than four million, so there is space for 32,768, 512, 64 or 8 games. After that the
    game that has waited longest for a move is forgotten. If a batch alone has more games, none of
    it is remembered. The system gives memory to a table only when it is first used; where it has
    none to give, nothing is remembered.

    Args:
        nodes: about how many nodes a search visits.
        memory: the most bytes of all tables; one table may then have all of them. None for 32 MiB a
            table and 256 MiB together.
    """

    def __init__(self, nodes: float, memory: int | None = None) -> None:
        self._words = game_table_words(nodes, memory or TABLE_BYTES)
        self.most = max(1, (memory or MAX_BYTES) // (8 * self._words))
        """The most games that are remembered at once."""
        self._games: _Tables | None = None
        """None while it is being changed, so an exception leaves tables that are empty."""

    def find(self, games: Int64Array) -> GameMemory:
        """Return the memory of games, which get an empty table if they are new.

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
        # The known ones come last then, so none of them is forgotten for a new one.
        rows.update([(game, rows.pop(game)) for game in numbers if game in rows])
        for game in numbers:
            if game not in rows:
                full = len(rows) == self.most
                rows[game] = row = rows.pop(next(iter(rows))) if full else len(rows)
                epochs[row] = next_epoch(tables[row], epochs[row])
        of_games = GameMemory(tables, epochs, np.array([rows[game] for game in numbers], np.int64))
        self._games = memory
        return of_games
