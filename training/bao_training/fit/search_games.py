"""Play games of a search against itself to learn from, with its choices and values."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bao_agents.arena.openings import draw_openings
from bao_agents.array_types import Int8Array, Int16Array, Int32Array, Uint8Array
from bao_agents.cli.files import write_atomically
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_env.engine.batch import Engine
from bao_env.engine.position import WORDS, Flags, Words, movers
from bao_env.engine.ruleset import Ruleset

OPENINGS = range(2, 42, 4)
"""Random plies before a game."""
SHORT_OPENINGS = (400, 50)
"""Numbers of openings to try for a length that has too few."""
MAX_PLIES = 250
"""Longer games are not used."""
HELD_OUT = 20
"""One game in twenty is held out of a fit."""


class SearchGames(NamedTuple):
    """P positions of finished games."""

    positions: Words
    """uint64[P, 6], packed."""
    actions: Uint8Array
    """uint8[P], the actions played."""
    values: Int16Array
    """int16[P], the search's values for the mover, in units of
    :data:`bao_agents.search.alphabeta.evaluation.SCALE` per logit."""
    results: Int8Array
    """int8[P], 1 where the mover has won, else 0."""
    games: Int32Array
    """int32[P], the number of the game."""

    @classmethod
    def concatenate(cls, parts: list[SearchGames]) -> SearchGames:
        """Join parts in order."""
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    @classmethod
    def join(cls, parts: list[SearchGames]) -> SearchGames:
        """Join parts whose games are each numbered from 0.

        Games get distinct numbers, and those that are :attr:`held_out` stay so."""
        numbered, first = [], 0
        for part in parts:
            numbered.append(part._replace(games=part.games + np.int32(first)))
            first += (int(part.games.max(initial=0)) // HELD_OUT + 1) * HELD_OUT
        return cls.concatenate(numbered)

    @property
    def held_out(self) -> Flags:
        """bool[P], whether a position comes from a held-out game."""
        return self.games % HELD_OUT == 0

    def write(self, path: Path) -> None:
        """Write them to a file."""
        memory = io.BytesIO()
        np.savez(memory, **self._asdict())
        write_atomically(path, memory.getvalue())

    @classmethod
    def read(cls, path: Path) -> SearchGames:
        """Read what :meth:`write` wrote.

        Raises:
            ValueError: the file is damaged or holds something else.
        """
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays: dict[str, Any] = {name: archive[name] for name in cls._fields}
            games = cls(**arrays)
            shapes = [(len(games.games), *shape) for shape in ((WORDS,), (), (), (), ())]
            types = ["uint64", "uint8", "int16", "int8", "int32"]
            if [(a.shape, a.dtype.name) for a in games] != list(zip(shapes, types, strict=True)):
                raise ValueError("an array has another shape or type")
        except Exception as error:  # zip, zlib and numpy raise a dozen kinds
            raise ValueError(f"{path} holds no games of a search ({error!s:.100})") from error
        return games


def play(agent: AlphaBetaAgent, ruleset: Ruleset, games: int, seed: int) -> SearchGames:
    """Play games of a search against itself, equally many from random openings of each length.

    Args:
        agent: the player of both sides.
        ruleset: its rules.
        games: number of games; fewer if there are too few openings of a length.
        seed: seed of the openings.
    """
    engine = Engine(ruleset)
    parts, done = [], 0
    for length in OPENINGS:
        positions = _openings(ruleset, games // len(OPENINGS), length, seed)
        if len(positions):
            parts.append(_play_on(agent, engine, positions, done))
        done += len(positions)
    return SearchGames.concatenate(parts)


def _openings(ruleset: Ruleset, count: int, plies: int, seed: int) -> Words:
    """Draw up to ``count`` different positions after ``plies`` random actions."""
    for fewer in (count, *SHORT_OPENINGS):
        with suppress(ValueError):
            return draw_openings(ruleset, min(count, fewer), plies, seed, balance=None).positions
    return np.empty((0, WORDS), np.uint64)


def _play_on(agent: AlphaBetaAgent, engine: Engine, positions: Words, first: int) -> SearchGames:
    """Play on from positions uint64[G, 6]; number the games from ``first``."""
    positions = positions.copy()
    masks = np.empty(len(positions), np.uint64)
    winners = np.full(len(positions), -1, np.int8)
    engine.legal_masks(positions, masks, winners)
    plies = []
    for _ in range(MAX_PLIES):
        going = np.flatnonzero(masks)
        if not len(going):
            break
        before = positions[going]
        chosen, said = agent.actions_and_values(before, masks[going])
        plies.append((before, chosen.astype(np.uint8), said.astype(np.int16), going))
        actions = np.zeros(len(positions), np.int64)
        actions[going] = chosen
        engine.step(positions, actions, masks, winners)
    finished = []
    for before, played, values, game in plies:
        ended = winners[game] >= 0
        before, game = before[ended], game[ended]
        results = (movers(before) == winners[game]).astype(np.int8)
        numbers = (first + game).astype(np.int32)
        finished.append(SearchGames(before, played[ended], values[ended], results, numbers))
    return SearchGames.concatenate(finished)
