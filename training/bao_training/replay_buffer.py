"""Store searched positions in a replay buffer, and the history of each running game in it."""

from __future__ import annotations

import numpy as np

from bao_agents.nets.checkpoint import Arrays
from bao_agents.search.gumbel.search import SearchOutput
from bao_agents.support.array_types import Int64Array
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.batch import Engine
from bao_env.engine.position import WORDS, Legal, PackedPositions
from bao_training.saved import check_positions

NOT_VISITED = -128
"""The q-value of an action that a search has not visited."""


class ReplayBuffer:
    """A ring buffer of the latest positions.

    Args:
        size: the number of positions.
    """

    def __init__(self, size: int) -> None:
        self.positions = np.zeros((size, WORDS), np.uint64)
        self.legal = np.zeros(size, np.uint64)
        """The legal actions as bits."""
        self.policies = np.zeros((size, NUM_ACTIONS), np.uint8)
        """The search's policy in 255ths."""
        self.actions = np.zeros(size, np.uint8)
        """The action played."""
        self.values = np.zeros(size, np.float32)
        """The search's value."""
        self.qvalues = np.zeros((size, NUM_ACTIONS), np.int8)
        """The search's value of each action in 127ths; :data:`NOT_VISITED` if it has none."""
        self.results = np.full(size, np.nan, np.float32)
        """The result for the player who was to move; NaN while the game runs."""
        self.next = np.zeros(1, np.int64)
        """The place of the next position."""

    def add(self, positions: PackedPositions, legal: Legal, output: SearchOutput) -> Int64Array:
        """Write searched positions over the oldest ones.

        Args:
            positions: uint64[B, 6].
            legal: uint64[B], their legal actions.
            output: the search's output for them.

        Returns:
            their places in the buffer, int64[B].
        """
        size = len(self.legal)
        places = (self.next + np.arange(len(legal))) % size
        self.next[:] = (self.next + len(legal)) % size
        self.positions[places] = positions
        self.legal[places] = legal
        self.policies[places] = np.rint(output.policies * 255.0)
        self.actions[places] = output.actions
        self.values[places] = output.values
        self.qvalues[places] = np.where(
            np.isnan(output.qvalues), float(NOT_VISITED), np.rint(output.qvalues * 127.0)
        )
        self.results[places] = np.nan
        return places

    def count_settled(self) -> int:
        """Return the number of positions whose results are known."""
        return int((~np.isnan(self.results)).sum())

    def draw(self, generator: np.random.Generator, count: int) -> Int64Array:
        """Draw the places of ``count`` positions with known results, int64[count]; int64[0] if
        there are none."""
        settled = np.flatnonzero(~np.isnan(self.results))
        return generator.choice(settled, count) if len(settled) else settled

    def state(self) -> Arrays:
        """Return the arrays themselves, not copies."""
        return dict(vars(self))

    def load(self, arrays: Arrays, engine: Engine) -> None:
        """Continue with what :meth:`state` returned.

        Raises:
            ValueError: it has positions that the engine's rules do not allow, or illegal actions.
        """
        positions, legal, actions = arrays["positions"], arrays["legal"], arrays["actions"]
        filled = legal != 0
        check_positions(positions[filled], legal[filled], engine)
        if not 0 <= arrays["next"][0] < len(legal):
            raise ValueError("the next place lies outside the buffer")
        if positions[~filled].any() or not np.isnan(arrays["results"][~filled]).all():
            raise ValueError("a place of the buffer that is not empty has no legal action")
        played = legal[filled] >> np.minimum(actions[filled], 63).astype(np.uint64)
        if (actions > 63).any() or not (played & np.uint64(1)).all():
            raise ValueError("an action in the buffer is illegal")
        for name, array in self.state().items():
            array[:] = arrays[name]


class Histories:
    """The searched positions of B running games, as places in the buffer.

    Args:
        games: B.
        max_plies: the length of the longest game.
    """

    def __init__(self, games: int, max_plies: int) -> None:
        self.lengths = np.zeros(games, np.int64)
        self.places = np.zeros((games, max_plies), np.int64)

    def add(self, places: Int64Array) -> None:
        """Add one position, at ``places`` int64[B], to each game."""
        self.places[np.arange(len(places)), self.lengths] = places
        self.lengths += 1

    def state(self) -> Arrays:
        """Return the arrays themselves, not copies."""
        return dict(vars(self))

    def load(self, arrays: Arrays, buffer: ReplayBuffer) -> None:
        """Continue with what :meth:`state` returned, as histories of games in a buffer.

        Raises:
            ValueError: a length or a place is out of range, or a place holds an ended game.
        """
        lengths, places = arrays["lengths"], arrays["places"]
        if ((lengths < 0) | (lengths >= places.shape[1])).any():
            raise ValueError(f"the history of a game is not 0 to {places.shape[1] - 1} long")
        if ((places < 0) | (places >= len(buffer.legal))).any():
            raise ValueError("the history of a game lies outside the buffer")
        known = np.arange(places.shape[1]) < lengths[:, None]
        if not np.isnan(buffer.results[places[known]]).all():
            raise ValueError("the history of a running game holds a position of another game")
        self.lengths[:], self.places[:] = lengths, places
