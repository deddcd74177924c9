"""What every worker plays with: a thread's own games, engine and random numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from agents.nets.network import PolicyNetwork
from bao_env.engine.batch import Engine, random_states
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import WORDS
from training.config import TrainConfig
from training.learner import Learner

Arrays = dict[str, npt.NDArray[Any]]


class GameWorker(Learner):
    """One thread's games and its copy of the network.

    Args:
        config: of the run.
        network: the float32 network whose weights the copy follows.
        seed: of this worker's games.
    """

    SAVED: ClassVar[tuple[str, ...]] = ("positions", "masks", "rng")
    """The arrays that :meth:`state` holds."""

    def __init__(
        self, config: TrainConfig, network: PolicyNetwork, seed: np.random.SeedSequence
    ) -> None:
        super().__init__(config, network)
        self.engine = Engine(config.get_ruleset())
        size = config.envs // config.workers
        generator_seed, game_seed = seed.spawn(2)
        self.generator = np.random.Generator(np.random.PCG64(generator_seed))
        self.rng = random_states(size, game_seed)
        self._openings = [self.engine.opening(first) for first in (SOUTH, NORTH)]
        self.positions = np.empty((size, WORDS), np.uint64)
        self.masks = np.zeros(size, np.uint64)
        self.winners = np.full(size, -1, np.int8)

    def set_up(self, index: npt.NDArray[np.int64]) -> None:
        """Put games int64[N] back to the opening, with the first player by the rule set."""
        lot = self.engine.ruleset.first_player == "lot"
        first = self.generator.integers(2, size=len(index)) if lot else np.zeros(len(index), int)
        for seat, (words, mask) in enumerate(self._openings):
            self.positions[index[first == seat]] = words
            self.masks[index[first == seat]] = mask
        self.winners[index] = -1

    def draw_opening_lengths(self, count: int) -> npt.NDArray[np.int64]:
        """How many random actions open each of ``count`` games, int64[count]."""
        return self.generator.integers(self.config.opening_plies + 1, size=count)

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """The games under way: arrays, and plain values for JSON."""
        arrays = {name: getattr(self, name).copy() for name in self.SAVED}
        return arrays, dict(self.generator.bit_generator.state)

    def restore(self, arrays: Arrays, generator: Mapping[str, Any]) -> None:
        """Take over what :meth:`state` gave.

        Raises:
            KeyError, ValueError: arrays are missing or have other shapes than this worker's.
        """
        for name in self.SAVED:
            mine, saved = getattr(self, name), arrays[name]
            if mine.shape != saved.shape or mine.dtype != saved.dtype:
                raise ValueError(f"{name}: {saved.shape} does not fit {mine.shape}")
            mine[...] = saved
        self.generator.bit_generator.state = dict(generator)
