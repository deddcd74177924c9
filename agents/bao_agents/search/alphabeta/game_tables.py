"""Keep a transposition table for each game, from one move to the next.

A table is small, and belongs to one game: a choice then depends on the game so far, but not on the
other games of a batch or on the threads. All tables are one array, so compiled code finds that of a
game by its row.
"""

from __future__ import annotations

import numpy as np

from bao_agents.search.alphabeta.transposition import game_table_words
from bao_agents.support.array_types import Int64Array, Uint64Array

MAX_BYTES = 1 << 28
"""The most memory of all tables of a player: 256 MiB."""


class GameTables:
    """The tables of the games that a player plays.

    A table has 8 KiB for up to 500 nodes a move, 512 KiB for 25,000 and 4 MiB for a million, so
    there is space for 32,768, 512 or 64 games. After that the game that has waited longest for a
    move is forgotten. If a batch alone has more games, none of them is remembered.

    Args:
        nodes: about how many nodes a search visits.
    """

    def __init__(self, nodes: float) -> None:
        words = game_table_words(nodes)
        self._most = MAX_BYTES // (8 * words)
        self._rows: dict[int, int] = {}
        """The row of each game; the game that has waited longest comes first."""
        self._epoch = np.uint64(0)
        self.tables: Uint64Array = np.zeros((0, words), np.uint64)
        """uint64[rows, words]."""
        self.epochs: Uint64Array = np.zeros(0, np.uint64)
        """uint64[rows], the epoch of each row's game."""

    def rows(self, games: Int64Array) -> Int64Array:
        """Return the rows of games, int64[B], which get an empty table if they are new.

        int64[0] if there are too many.

        Args:
            games: int64[B], the numbers of the games.

        Raises:
            ValueError: two of them are equal.
        """
        rows, numbers = self._rows, games.tolist()
        if len(set(numbers)) < len(numbers):
            raise ValueError("games: expected a different number for each position")
        if len(numbers) > self._most:
            return np.zeros(0, np.int64)
        # The known ones come last now, so none of them is forgotten for a new one.
        rows.update([(game, rows.pop(game)) for game in numbers if game in rows])
        for game in numbers:
            if game not in rows:
                full = len(rows) == self._most
                rows[game] = row = rows.pop(next(iter(rows))) if full else len(rows)
                self._reserve(row)
                self._epoch += np.uint64(1)
                self.epochs[row] = self._epoch
        return np.array([rows[game] for game in numbers], np.int64)

    def _reserve(self, row: int) -> None:
        """Make sure that a row exists; their number doubles, up to the most."""
        have, words = self.tables.shape
        if row < have:
            return
        more = min(max(1, have), self._most - have)
        self.tables = np.concatenate([self.tables, np.zeros((more, words), np.uint64)])
        self.epochs = np.concatenate([self.epochs, np.zeros(more, np.uint64)])
