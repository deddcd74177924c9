"""A worker's games: positions, engine, random numbers and openings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from agents.nets.checkpoint import Arrays
from bao_env.engine.batch import Engine
from bao_env.engine.position import PLY, WORDS, movers, unpack, validate
from bao_env.engine.sampling import random_actions, random_states
from bao_env.envs.openings import Openings
from training.config import TrainConfig
from training.saved import require

_SAVED: Final = ("positions", "masks", "rng")


class Games:
    """The B games that one worker plays at once.

    Args:
        config: of the run.
        seed: of all random numbers in these games.
    """

    def __init__(self, config: TrainConfig, seed: np.random.SeedSequence) -> None:
        size = config.envs // config.workers
        generator_seed, game_seed = seed.spawn(2)
        self.engine = Engine(config.get_ruleset())
        self.max_plies = config.max_plies
        self.generator = np.random.Generator(np.random.PCG64(generator_seed))
        """For random numbers of the worker as a whole."""
        self.rng = random_states(size, game_seed)
        """uint64[B], the random state of each game."""
        self.positions = np.empty((size, WORDS), np.uint64)
        """uint64[B, 6], packed (:mod:`bao_env.engine.position`)."""
        self.masks = np.zeros(size, np.uint64)
        """uint64[B], the legal actions; 0 where a game is over."""
        self.winners = np.full(size, -1, np.int8)
        """int8[B], the seat that has won; -1 while the game runs."""
        opening_plies = min(config.opening_plies, config.max_plies - 1)
        self._openings = Openings(self.engine.ruleset, (0, opening_plies))

    def __len__(self) -> int:
        return len(self.masks)

    @property
    def seats(self) -> npt.NDArray[np.int8]:
        """int8[B], the seat to move in each game."""
        return movers(self.positions)

    @property
    def plies(self) -> npt.NDArray[np.uint64]:
        """uint64[B], the actions played so far in each game."""
        return self.positions[:, PLY]

    def reset(self, index: npt.NDArray[np.int64]) -> None:
        """Begin games int64[N] anew, each after some random actions that do not end it."""
        starts = self._openings.draw(len(index), self.generator)
        self.positions[index], self.masks[index] = starts
        self.winners[index] = -1

    def step(self, actions: npt.NDArray[np.int64]) -> None:
        """Play an action, int64[B], in every game that is not over."""
        self.engine.step(self.positions, actions, self.masks, self.winners)

    def step_randomly(self, chosen: npt.NDArray[np.bool_]) -> None:
        """Play a random legal action in each of the games bool[B] that are not over."""
        masks = np.where(chosen, self.masks, np.uint64(0))
        actions = np.zeros(len(masks), np.int64)
        random_actions(masks, self.rng, actions)
        self.engine.step(self.positions, actions, masks, self.winners)
        self.masks = np.where(chosen, masks, self.masks)

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """The running games: arrays, and the generator's state as plain values for JSON."""
        arrays = {name: getattr(self, name).copy() for name in _SAVED}
        return arrays, dict(self.generator.bit_generator.state)

    def check(self, arrays: Arrays) -> None:
        """Check what :meth:`restore` is to read: running games of this rule set.

        Raises:
            ValueError: an array holds something else.
        """
        positions, masks, rng = (arrays[name] for name in _SAVED)
        for game, words in enumerate(positions):
            try:
                validate(unpack(words), self.engine.ruleset)
            except ValueError as error:
                raise ValueError(f"positions of game {game}: {error}") from None
        require("positions", ((positions[:, PLY] < self.max_plies).all(), "games that still run"))
        check_masks(self.engine, positions, masks)
        require("masks", (masks.all(), "games that still run"))
        require("rng", (rng.all(), "numbers other than 0"))

    def restore(self, arrays: Arrays, generator: Mapping[str, Any]) -> None:
        """Restore what :meth:`state` returned and :meth:`check` has accepted."""
        for name in _SAVED:
            getattr(self, name)[...] = arrays[name]
        self.generator.bit_generator.state = dict(generator)


def check_masks(
    engine: Engine, positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]
) -> None:
    """Check that ``masks`` uint64[B] are the legal actions of ``positions`` uint64[B, 6].

    Raises:
        ValueError: they are not.
    """
    legal = np.empty_like(masks)
    engine.legal_masks(positions, legal, np.full(len(masks), -1, np.int8))
    require("masks", (np.array_equal(masks, legal), "the legal actions of the positions"))
