"""Self-play guided by search: one worker's games, and the latest positions to learn from.

Every position with a choice is searched (:mod:`agents.search.gumbel`); the action that the search
settles on is played, and what it thinks of all actions, with who won in the end, is what
the network learns. Positions without a choice are played on and not learnt from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from agents.nets.encoding import encode
from agents.nets.network import PolicyNetwork
from agents.search.gumbel import GumbelSearch
from bao_env.engine.batch import random_actions
from bao_env.engine.position import PLY, WORDS, movers
from training.config import TrainConfig
from training.loss import SEARCH_STATS, action_targets, search_gradient
from training.worker import Arrays, GameWorker

_CHUNK: Final = 2048


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
        self.qvalues = np.zeros((size, 64), np.int8)
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


class SearchWorker(GameWorker):
    """One thread's games, searches and buffer.

    Args:
        config: of the run.
        network: the float32 network whose weights the copy follows.
        seed: of this worker's games.
    """

    def __init__(
        self, config: TrainConfig, network: PolicyNetwork, seed: np.random.SeedSequence
    ) -> None:
        super().__init__(config, network, seed)
        size = len(self.masks)
        # Compiled for a processor, or the copy on the GPU.
        self._searched = network if self.device.type == "cpu" else self.replica
        self.search = GumbelSearch(
            self.engine.rules, self._searched, size, config.simulations, config.gamma
        )
        self.buffer = Buffer(config.buffer // config.workers)
        # Where the positions of each game lie in the buffer, who was to move, and when.
        self._places = np.zeros((size, config.max_plies), np.int64)
        self._seats = np.zeros((size, config.max_plies), np.int8)
        self._plies = np.zeros((size, config.max_plies), np.int64)
        self._lengths = np.zeros(size, np.int64)
        self._restart(np.arange(size))
        self._play_forced()

    def _restart(self, index: npt.NDArray[np.int64]) -> None:
        """Start games anew, each after some random actions that do not end it."""
        self._lengths[index] = 0
        actions = np.zeros(len(self.masks), np.int64)
        while len(index):
            self.set_up(index)
            left = np.zeros(len(self.masks), np.int64)
            left[index] = self.draw_opening_lengths(len(index))
            while left.any():
                playing = np.where(left > 0, self.masks, np.uint64(0))
                random_actions(playing, self.rng, actions)
                self.engine.step(self.positions, actions, playing, self.winners)
                self.masks = np.where(left > 0, playing, self.masks)
                left -= left > 0
            index = index[self.winners[index] >= 0]

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
        self.search.sync_weights(self._searched)
        games = np.arange(len(self.masks))
        for _ in range(self.config.rollout):
            found = self.search.search(self.positions, self.rng)
            places = self.buffer.room(len(games))
            self.buffer.positions[places] = self.positions
            self.buffer.masks[places] = self.masks
            self.buffer.policies[places] = np.rint(found.policies * 255.0)
            self.buffer.actions[places] = found.actions
            self.buffer.values[places] = found.values
            qvalues = np.where(np.isnan(found.qvalues), -128.0, np.rint(found.qvalues * 127.0))
            self.buffer.qvalues[places] = qvalues
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
        rows_read, legal_actions, indptr = encode(
            self.engine.rules,
            buffer.positions[index],
            buffer.masks[index],
            self.network_config.per_action,
        )
        share = np.float32(self.config.search_value)
        targets = share * buffer.values[index] + (1 - share) * buffer.results[index]
        weights = np.ones(len(targets), np.float32)
        if self.network_config.per_action:
            results, targets = targets, np.empty(len(legal_actions), np.float32)
            weights = np.empty(len(legal_actions), np.float32)
            action_targets(
                legal_actions,
                actions,
                results,
                buffer.qvalues[index],
                np.float32(self.config.search_value),
                targets,
                weights,
            )

        def gradient(logits: Any, values: Any, logit_gradient: Any, value_gradient: Any) -> None:
            search_gradient(
                logits,
                values,
                indptr,
                legal_actions,
                policies,
                targets,
                weights,
                np.float32(1.0 / rows),
                np.float32(self.config.value_weight),
                logit_gradient,
                value_gradient,
                stats,
            )

        self.add_gradient(rows_read, legal_actions, gradient)

    def restore(self, arrays: Arrays, generator: Mapping[str, Any]) -> None:
        """See :meth:`GameWorker.restore`. The games go on, their past forgotten; the buffer is
        large and soon filled again, and so not saved."""
        super().restore(arrays, generator)
        self._lengths[:] = 0
