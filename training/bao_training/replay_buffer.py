"""Keep searched positions in a replay buffer, and record which running game each belongs to."""

from __future__ import annotations

import numpy as np

from bao_agents.support.array_types import Float32Array, Int64Array, Uint8Array
from bao_env.engine.position import WORDS, Actions, Legal, PackedPositions


class ReplayBuffer:
    """A ring buffer of the latest positions.

    Args:
        size: the number of positions.
    """

    def __init__(self, size: int) -> None:
        self.positions: PackedPositions = np.zeros((size, WORDS), np.uint64)
        self.legal: Legal = np.zeros(size, np.uint64)
        """uint64[size], the legal actions as bits."""
        self.actions: Uint8Array = np.zeros(size, np.uint8)
        """uint8[size], the actions played."""
        self.values: Float32Array = np.zeros(size, np.float32)
        """float32[size], the searches' values."""
        self.results: Float32Array = np.full(size, np.nan, np.float32)
        """float32[size], the results for the players to move; NaN while the game runs."""
        self.next: Int64Array = np.zeros(1, np.int64)
        """int64[1], the slot of the next position; an array, because a resumed run fills arrays."""

    def add(
        self, positions: PackedPositions, legal: Legal, actions: Actions, values: Float32Array
    ) -> Int64Array:
        """Write searched positions over the oldest ones.

        Args:
            positions: uint64[B, 6].
            legal: uint64[B], their legal actions.
            actions: int64[B], the actions that the searches chose.
            values: float32[B], the searches' values.

        Returns:
            int64[B], the slots of the positions in the buffer.
        """
        size = len(self.legal)
        slots = (self.next + np.arange(len(legal))) % size
        self.next[:] = (self.next + len(legal)) % size
        self.positions[slots] = positions
        self.legal[slots] = legal
        self.actions[slots] = actions
        self.values[slots] = values
        self.results[slots] = np.nan
        return slots

    def count_settled(self) -> int:
        """Return the number of positions whose results are known."""
        return int((~np.isnan(self.results)).sum())

    def draw(self, generator: np.random.Generator, count: int) -> Int64Array:
        """Draw the slots of ``count`` positions with known results, int64[count].

        Return int64[0] if no result is known.
        """
        settled = np.flatnonzero(~np.isnan(self.results))
        return generator.choice(settled, count) if len(settled) else settled


class Histories:
    """The searched positions of B running games, as slots in the buffer.

    Args:
        games: B.
        max_plies: the length of the longest game.
    """

    def __init__(self, games: int, max_plies: int) -> None:
        self.lengths: Int64Array = np.zeros(games, np.int64)
        self.slots: Int64Array = np.zeros((games, max_plies), np.int64)

    def add(self, slots: Int64Array) -> None:
        """Add a position to each game.

        Args:
            slots: int64[B], the positions' slots in the buffer.
        """
        self.slots[np.arange(len(slots)), self.lengths] = slots
        self.lengths += 1
