"""Self-play guided by search: one worker's games, and the latest positions to learn from.

Every position with a choice is searched (:mod:`agents.gumbel`); the action that the search
settles on is played, and what it thinks of all actions, with who won in the end, is what
the network learns. Positions without a choice are played on and not learnt from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from agents.arena import movers
from agents.gumbel import GumbelSearch
from agents.network import PolicyNetwork
from agents.options import encode
from bao_env.engine.batch import Engine, random_actions, random_states
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import PLY, WORDS
from training.config import TrainConfig
from training.learner import Learner
from training.loss import SEARCH_STATS, option_targets, search_gradient

Arrays = dict[str, npt.NDArray[Any]]

_CHUNK: Final = 2048
_SAVED: Final = ("positions", "masks", "rng")


class Buffer:
    """A ring of the latest positions.

    Args:
        size: how many.
    """

    def __init__(self, size: int) -> None:
        self.positions = np.zeros((size, WORDS), np.uint64)
        self.masks = np.zeros(size, np.uint64)
        self.policies = np.zeros((size, 64), np.uint8)
        """The search's policy in 255ths."""
        self.actions = np.zeros(size, np.uint8)
        """What was played."""
        self.values = np.zeros(size, np.float32)
        """The search's value."""
        self.worths = np.zeros((size, 64), np.int8)
        """The search's value of each action in 127ths; -128 for none."""
        self.results = np.full(size, np.nan, np.float32)
        """Who won, for the player who was to move; not a number while the game goes on."""
        self.next = 0

    def room(self, count: int) -> npt.NDArray[np.int64]:
        """Places for ``count`` new positions, over the oldest ones."""
        places = (self.next + np.arange(count)) % len(self.masks)
        self.next = int((self.next + count) % len(self.masks))
        self.results[places] = np.nan
        return places

    def draw(self, generator: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
        """Places of ``count`` random positions whose results are known."""
        known = np.flatnonzero(~np.isnan(self.results))
        return generator.choice(known, count) if len(known) else known


class SearchWorker(Learner):
    """One thread's games, searches and buffer.

    Args:
        config: of the run.
        network: the float32 network whose weights the copy follows.
        seed: of this worker's games.
    """

    def __init__(
        self, config: TrainConfig, network: PolicyNetwork, seed: np.random.SeedSequence
    ) -> None:
        super().__init__(config, network)
        self.engine = Engine(config.get_ruleset())
        size = config.envs // config.workers
        generator_seed, game_seed = seed.spawn(2)
        self.generator = np.random.Generator(np.random.PCG64(generator_seed))
        self.rng = random_states(size, game_seed)
        self.search = GumbelSearch(
            self.engine.rules, self.replica, size, config.simulations, config.gamma
        )
        self.buffer = Buffer(config.buffer // config.workers)
        self._openings = [self.engine.opening(first) for first in (SOUTH, NORTH)]
        self.positions = np.empty((size, WORDS), np.uint64)
        self.masks = np.zeros(size, np.uint64)
        self.winners = np.full(size, -1, np.int8)
        # Where the positions of each game lie in the buffer, who was to move, and when.
        self._places = np.zeros((size, config.max_plies), np.int64)
        self._seats = np.zeros((size, config.max_plies), np.int8)
        self._plies = np.zeros((size, config.max_plies), np.int64)
        self._lengths = np.zeros(size, np.int64)
        self._restart(np.arange(size))
        self._play_forced()

    def _restart(self, index: npt.NDArray[np.int64]) -> None:
        """Start games anew, each after some random actions that do not end it."""
        lot = self.engine.ruleset.first_player == "lot"
        while len(index):
            first = self.generator.integers(2, size=len(index)) if lot else 0 * index
            positions = np.array([self._openings[seat][0] for seat in first])
            masks = np.array([self._openings[seat][1] for seat in first])
            winners = np.full(len(index), -1, np.int8)
            left = self.generator.integers(self.config.opening_plies + 1, size=len(index))
            rng, actions = self.rng[index], np.empty(len(index), np.int64)
            for ply in range(int(left.max())):
                random_actions(masks, rng, actions)
                playing = np.where(left > ply, masks, np.uint64(0))
                self.engine.step(positions, actions, playing, winners)
                masks = np.where(left > ply, playing, masks)
            self.rng[index] = rng
            self.positions[index], self.masks[index] = positions, masks
            self._lengths[index] = 0
            index = index[winners >= 0]
        self.winners[:] = -1

    def _play_forced(self) -> dict[str, float]:
        """Play on wherever there is no choice, and start ended games anew."""
        totals = {"games": 0.0, "plies": 0.0}
        while True:
            ended = np.flatnonzero(
                (self.winners >= 0) | (self.positions[:, PLY] >= self.config.max_plies)
            )
            if len(ended):
                totals["games"] += len(ended)
                totals["plies"] += float(self.positions[ended, PLY].sum())
                self._settle(ended)
                self._restart(ended)
            forced = (self.masks & (self.masks - np.uint64(1))) == 0
            if not forced.any():
                return totals
            masks = np.where(forced, self.masks, np.uint64(0))
            actions = np.zeros(len(masks), np.int64)
            random_actions(masks, self.rng, actions)
            self.engine.step(self.positions, actions, masks, self.winners)
            self.masks = np.where(forced, masks, self.masks)

    def _settle(self, ended: npt.NDArray[np.int64]) -> None:
        """Enter who won into the positions of games that have ended."""
        for game in ended:
            length = int(self._lengths[game])
            winner = int(self.winners[game])
            sign = np.where(self._seats[game, :length] == winner, 1.0, -1.0) * (winner >= 0)
            ahead = float(self.positions[game, PLY]) - self._plies[game, :length] - 1.0
            self.buffer.results[self._places[game, :length]] = sign * self.config.gamma**ahead

    def collect(self) -> dict[str, float]:
        """Play ``config.rollout`` searched actions in every game; returns sums."""
        totals = {"games": 0.0, "plies": 0.0}
        self.search.network_seconds = 0.0
        games = np.arange(len(self.masks))
        for _ in range(self.config.rollout):
            found = self.search.search(self.positions, self.rng)
            places = self.buffer.room(len(games))
            self.buffer.positions[places] = self.positions
            self.buffer.masks[places] = self.masks
            self.buffer.policies[places] = np.rint(found.policies * 255.0)
            self.buffer.actions[places] = found.actions
            self.buffer.values[places] = found.values
            worths = np.where(np.isnan(found.worths), -128.0, np.rint(found.worths * 127.0))
            self.buffer.worths[places] = worths
            self._places[games, self._lengths] = places
            self._seats[games, self._lengths] = movers(self.positions)
            self._plies[games, self._lengths] = self.positions[:, PLY]
            self._lengths += 1
            self.engine.step(self.positions, found.actions, self.masks, self.winners)
            for key, value in self._play_forced().items():
                totals[key] += value
        totals["network_seconds"] = self.search.network_seconds
        return totals

    def known(self) -> int:
        """Positions to learn from."""
        return int((~np.isnan(self.buffer.results)).sum())

    def gradient(self, count: int, rows: int) -> npt.NDArray[np.float64]:
        """Compute this worker's part of a minibatch's gradient, into ``gradients``.

        Args:
            count: positions to draw.
            rows: positions in the minibatch over all workers.

        Returns the sums of :data:`training.loss.SEARCH_STATS`.
        """
        stats = np.zeros(len(SEARCH_STATS))
        self.clear_gradients()
        index = np.sort(self.buffer.draw(self.generator, count))
        for low in range(0, len(index), _CHUNK):
            self._accumulate(index[low : low + _CHUNK], rows, stats)
        return stats

    def _accumulate(
        self, index: npt.NDArray[np.int64], rows: int, stats: npt.NDArray[np.float64]
    ) -> None:
        """Add the gradient of some positions."""
        buffer = self.buffer
        policies, actions = buffer.policies[index], buffer.actions[index]
        rows_read, options, offsets = encode(
            self.engine.rules, buffer.positions[index], buffer.masks[index], self.network_config
        )
        share = np.float32(self.config.search_value)
        targets = share * buffer.values[index] + (1 - share) * buffer.results[index]
        weights = np.ones(len(targets), np.float32)
        if self.network_config.per_option:
            results, targets = targets, np.empty(len(options), np.float32)
            weights = np.empty(len(options), np.float32)
            option_targets(
                options,
                actions,
                results,
                buffer.worths[index],
                np.float32(self.config.search_value),
                targets,
                weights,
            )

        def gradient(logits: Any, values: Any, logit_gradient: Any, value_gradient: Any) -> None:
            search_gradient(
                logits,
                values,
                offsets,
                options,
                policies,
                targets,
                weights,
                np.float32(1.0 / rows),
                np.float32(self.config.value_weight),
                logit_gradient,
                value_gradient,
                stats,
            )

        self.add_gradient(rows_read, options, gradient)

    def state(self, prefix: str) -> tuple[Arrays, dict[str, Any]]:
        """The games under way and the generator. The buffer is left out: it is large, and soon
        filled again."""
        arrays = {f"{prefix}{name}": getattr(self, name).copy() for name in _SAVED}
        return arrays, dict(self.generator.bit_generator.state)

    def restore(self, prefix: str, arrays: Arrays, generator: Mapping[str, Any]) -> None:
        """Take over what :meth:`state` gave; the games go on, their past forgotten.

        Raises:
            ValueError: the arrays have other shapes than this worker's.
        """
        for name in _SAVED:
            mine, saved = getattr(self, name), arrays[f"{prefix}{name}"]
            if mine.shape != saved.shape or mine.dtype != saved.dtype:
                raise ValueError(f"{prefix}{name}: {saved.shape} does not fit {mine.shape}")
            mine[...] = saved
        self._lengths[:] = 0
        self.generator.bit_generator.state = dict(generator)
