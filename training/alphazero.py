"""Self-play guided by search, like AlphaZero with Gumbel search, read from top to bottom.

The source is Danihelka et al., "Policy improvement by planning with Gumbel" (2022): the network
learns the improved policy of its own searches, and the results of the games that they play.

An update (:meth:`AlphaZeroTrainer.train_update`):

1. In each of its games every worker searches ``rollout`` positions with a choice
   (:mod:`agents.search.gumbel.search`) and plays the action that the search chooses
   (:meth:`AlphaZeroWorker.collect`). Forced actions are played, but not learnt from.
2. A position goes into the worker's :class:`ReplayBuffer` with the search's opinion of its actions.
   When the game ends, its result is added; only then can the position be learnt from.
3. Minibatches are drawn from the buffers, enough to learn from each position ``replay_ratio`` times
   on average (:meth:`AlphaZeroWorker.gradient`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
from pydantic import Field

from agents.nets.checkpoint import Arrays
from agents.nets.encoding import encode
from agents.nets.network import PolicyNetwork
from agents.search.gumbel.search import GumbelSearch, SearchOutput
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.batch import Engine
from bao_env.engine.layout import NUM_SEEDS
from bao_env.engine.position import MOVER_FRONT, OTHER_FRONT, PLY, WORDS
from training.config import ConfigError, MethodConfig, TrainConfig
from training.games import Games, check_masks
from training.loss import NOT_VISITED, SEARCH_STATS, action_targets, search_gradient
from training.replica import Replica, chunks
from training.saved import require, under
from training.trainer import Trainer


class AlphaZeroConfig(MethodConfig):
    """The table ``[alphazero]``."""

    simulations: int = Field(24, ge=2, le=100_000)
    """Simulations of each search."""
    buffer: int = Field(1_000_000, ge=1000, le=10**9)
    """Latest positions kept to learn from, over all workers."""
    keep_buffer: bool = True
    """Write the buffer into ``last.safetensors``, so that a resumed run ends as if it had never
    stopped. That takes about 200 bytes a position, 200 MB for a million, with every checkpoint.
    Else a resumed run fills its buffer anew."""
    replay_ratio: float = Field(2.0, ge=0, le=1000)
    """How often each position is learnt from, on average."""
    search_value: float = Field(0.3, ge=0, le=1)
    """Share of the search's own value in the target result; the rest is who won. Also the weight of
    the search's values of actions that were not played (``network_kind = "moves"``)."""

    def check(self, config: TrainConfig) -> None:
        """See :meth:`MethodConfig.check`."""
        learnable = 4 * config.minibatch + config.steps_per_update
        if self.buffer < learnable:
            raise ConfigError(
                f"alphazero.buffer={self.buffer} should be at least "
                f"4 * minibatch + envs * rollout = {learnable}"
            )
        if self.buffer < config.envs * config.max_plies:
            raise ConfigError(
                f"alphazero.buffer={self.buffer} should be at least "
                f"envs * max_plies = {config.envs * config.max_plies}, "
                "so that no game outlives its positions"
            )

    def memory(self, config: TrainConfig) -> int:
        """See :meth:`MethodConfig.memory`."""
        # Bytes of a place in ReplayBuffer and of a ply in Histories.
        return self.buffer * 193 + config.envs * config.max_plies * 17


_BUFFER: Final = ("positions", "masks", "policies", "actions", "values", "qvalues", "results")
_HISTORIES: Final = ("lengths", "places", "seats", "plies")
_COUNTS: Final = 34
"""Bytes of a packed position that count seeds: four rows, two stores."""


class ReplayBuffer:
    """A ring buffer of the latest positions.

    Args:
        size: number of positions.
    """

    def __init__(self, size: int) -> None:
        self.positions = np.zeros((size, WORDS), np.uint64)
        self.masks = np.zeros(size, np.uint64)
        self.policies = np.zeros((size, NUM_ACTIONS), np.uint8)
        """The search's policy in 255ths."""
        self.actions = np.zeros(size, np.uint8)
        """What was played."""
        self.values = np.zeros(size, np.float32)
        """The search's value."""
        self.qvalues = np.zeros((size, NUM_ACTIONS), np.int8)
        """The search's value of each action in 127ths; :data:`NOT_VISITED` if it has none."""
        self.results = np.full(size, np.nan, np.float32)
        """The result for the player who was to move; NaN while the game runs."""
        self._next = 0

    def add(
        self, positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64], found: SearchOutput
    ) -> npt.NDArray[np.int64]:
        """Write searched positions over the oldest ones.

        Args:
            positions: uint64[B, 6].
            masks: uint64[B], their legal actions.
            found: what the search says about them.

        Returns:
            their places in the buffer, int64[B].
        """
        places = (self._next + np.arange(len(masks))) % len(self.masks)
        self._next = int((self._next + len(masks)) % len(self.masks))
        self.positions[places] = positions
        self.masks[places] = masks
        self.policies[places] = np.rint(found.policies * 255.0)
        self.actions[places] = found.actions
        self.values[places] = found.values
        self.qvalues[places] = np.where(
            np.isnan(found.qvalues), float(NOT_VISITED), np.rint(found.qvalues * 127.0)
        )
        self.results[places] = np.nan
        return places

    def count_settled(self) -> int:
        """The number of positions whose results are known."""
        return int((~np.isnan(self.results)).sum())

    def draw(self, generator: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
        """Places of ``count`` random positions whose results are known, int64[count]; int64[0] if
        there are none."""
        settled = np.flatnonzero(~np.isnan(self.results))
        return generator.choice(settled, count) if len(settled) else settled

    def state(self) -> Arrays:
        """Everything in the buffer: the arrays themselves, no copies."""
        arrays = {name: getattr(self, name) for name in _BUFFER}
        return arrays | {"next": np.array([self._next])}

    def check(self, arrays: Arrays, engine: Engine) -> None:
        """Check what :meth:`restore` is to read: searched positions of the engine's rule set.

        Raises:
            ValueError: an array holds something else.
        """
        masks, results, values = arrays["masks"], arrays["results"], arrays["values"]
        size, used = len(masks), masks != 0
        require("buffer.next", (0 <= arrays["next"][0] < size, f"a number from 0 to {size - 1}"))
        positions = arrays["positions"][used]
        counts = positions.view(np.uint8)[:, :_COUNTS].sum(axis=1, dtype=np.int64)
        rows = positions[:, MOVER_FRONT] != 0, positions[:, OTHER_FRONT] != 0
        require(
            "buffer.positions",
            ((counts == NUM_SEEDS).all(), f"{NUM_SEEDS} seeds in each position"),
            (np.logical_and(*rows).all(), "seeds in both front rows of each position"),
        )
        check_masks(engine, positions, masks[used])
        legal = (masks[used] >> arrays["actions"][used].astype(np.uint64)) & np.uint64(1)
        require("buffer.actions", (legal.all(), "legal actions"))
        require("buffer.values", (np.isfinite(values).all(), "finite numbers"))
        require(
            "buffer.results",
            (np.isnan(results[~used]).all(), "none where there is no position"),
            ((np.isnan(results) | (np.abs(results) <= 1.0)).all(), "numbers from -1 to 1"),
        )

    def restore(self, arrays: Arrays) -> None:
        """Restore what :meth:`state` returned and :meth:`check` has accepted."""
        for name in _BUFFER:
            getattr(self, name)[...] = arrays[name]
        self._next = int(arrays["next"][0])


class Histories:
    """For the searched positions of B games: places in the buffer, seats to move, and plies.

    Args:
        games: B.
        max_plies: length of the longest game.
    """

    def __init__(self, games: int, max_plies: int) -> None:
        self.lengths = np.zeros(games, np.int64)
        self.places = np.zeros((games, max_plies), np.int64)
        self.seats = np.zeros((games, max_plies), np.int8)
        self.plies = np.zeros((games, max_plies), np.int64)

    def add(
        self,
        places: npt.NDArray[np.int64],
        seats: npt.NDArray[np.int8],
        plies: npt.NDArray[np.uint64],
    ) -> None:
        """Add one position to each game."""
        every = np.arange(len(self.lengths))
        self.places[every, self.lengths] = places
        self.seats[every, self.lengths] = seats
        self.plies[every, self.lengths] = plies
        self.lengths += 1

    def state(self) -> Arrays:
        """All arrays, no copies."""
        return {name: getattr(self, name) for name in _HISTORIES}

    def check(
        self, arrays: Arrays, plies: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]
    ) -> None:
        """Check what :meth:`restore` is to read.

        Args:
            arrays: as :meth:`state` returns them.
            plies: uint64[B], the actions played so far in each game.
            masks: uint64[N], the buffer's.

        Raises:
            ValueError: an array holds something else than the past of these games.
        """
        lengths, places, seats, past = (arrays[name] for name in _HISTORIES)
        limits = plies.astype(np.int64)
        fit = ((lengths >= 0) & (lengths <= limits)).all()
        require("history.lengths", (fit, "no more positions than the game has plies"))
        used = np.arange(places.shape[1]) < lengths[:, None]
        inside = ((places >= 0) & (places < len(masks))).all()
        require("history.places", (inside, f"numbers from 0 to {len(masks) - 1}"))
        require("history.places", (masks[places[used]].all(), "places of positions"))
        require("history.seats", (np.isin(seats, (0, 1)).all(), "0 or 1"))
        earlier = (past >= 0) & (past < limits[:, None]) | ~used
        require("history.plies", (earlier.all(), "plies before the game's"))

    def restore(self, arrays: Arrays) -> None:
        """Restore what :meth:`state` returned and :meth:`check` has accepted."""
        for name in _HISTORIES:
            getattr(self, name)[...] = arrays[name]


@dataclass
class CollectTotals:
    """Sums over a worker's play in one update."""

    games: int = 0
    """Games that ended."""
    plies: int = 0
    """Plies of those games."""
    network_seconds: float = 0.0
    """Seconds in the network; 0 where it is compiled into the search."""


class AlphaZeroWorker:
    """One thread's games, searches, replay buffer and copy of the network.

    Args:
        config: the common settings.
        alphazero: the method's.
        network: the float32 network to copy.
        seed: of this worker's games.
    """

    def __init__(
        self,
        config: TrainConfig,
        alphazero: AlphaZeroConfig,
        network: PolicyNetwork,
        seed: np.random.SeedSequence,
    ) -> None:
        self.config, self.alphazero = config, alphazero
        self.replica = Replica(network, config.bfloat16)
        self.games = Games(config, seed)
        # The network that the search compiles on a CPU, or the copy on the GPU.
        on_processor = self.replica.device.type == "cpu"
        self._searched_network = network if on_processor else self.replica.network
        self.search = GumbelSearch(
            self.games.engine.rules,
            self._searched_network,
            len(self.games),
            alphazero.simulations,
            config.gamma,
        )
        self.buffer = ReplayBuffer(alphazero.buffer // config.workers)
        self.histories = Histories(len(self.games), config.max_plies)
        self._restart(np.arange(len(self.games)))
        self._play_forced(CollectTotals())

    # Play.

    def _restart(self, index: npt.NDArray[np.int64]) -> None:
        """Restart games int64[N]."""
        self.histories.lengths[index] = 0
        self.games.reset(index)

    def _play_forced(self, totals: CollectTotals) -> None:
        """Play forced actions until every game has a choice; restarts ended games."""
        games = self.games
        while True:
            ended = np.flatnonzero((games.winners >= 0) | (games.plies >= self.config.max_plies))
            if len(ended):
                totals.games += len(ended)
                totals.plies += int(games.plies[ended].sum())
                self._settle(ended)
                self._restart(ended)
            forced = (games.masks & (games.masks - np.uint64(1))) == 0
            if not forced.any():
                return
            games.step_randomly(forced)

    def _settle(self, ended: npt.NDArray[np.int64]) -> None:
        """Write the results of the ended games int64[N] to their positions."""
        histories = self.histories
        for game in ended:
            length = int(histories.lengths[game])
            winner = int(self.games.winners[game])
            sign = np.where(histories.seats[game, :length] == winner, 1.0, -1.0) * (winner >= 0)
            ahead = float(self.games.plies[game]) - histories.plies[game, :length] - 1.0
            places = histories.places[game, :length]
            self.buffer.results[places] = sign * self.config.gamma**ahead

    def collect(self) -> CollectTotals:
        """Play ``config.rollout`` searched actions in every game."""
        games, totals = self.games, CollectTotals()
        self.search.network_seconds = 0.0
        self.search.sync_weights(self._searched_network)
        for _ in range(self.config.rollout):
            found = self.search.search(games.positions, games.rng)
            places = self.buffer.add(games.positions, games.masks, found)
            self.histories.add(places, games.seats, games.plies)
            games.step(found.actions)
            self._play_forced(totals)
        totals.network_seconds = self.search.network_seconds
        return totals

    # Learn.

    def count_settled(self) -> int:
        """The number of positions to learn from."""
        return self.buffer.count_settled()

    def gradient(self, count: int, minibatch: int) -> npt.NDArray[np.float64]:
        """Compute this worker's part of a minibatch's gradient, into ``replica.gradients``.

        Args:
            count: positions to draw.
            minibatch: positions in the minibatch, over all workers.

        Returns:
            sums of :data:`training.loss.SEARCH_STATS` over this worker's positions, float64[4].
        """
        buffer, share = self.buffer, np.float32(self.alphazero.search_value)
        stats = np.zeros(len(SEARCH_STATS))
        self.replica.clear_gradients()
        for index in chunks(np.sort(buffer.draw(self.games.generator, count))):
            encodings, legal_actions, indptr = encode(
                self.games.engine.rules,
                buffer.positions[index],
                buffer.masks[index],
                self.replica.per_action,
            )
            results = share * buffer.values[index] + (1 - share) * buffer.results[index]
            targets, weights = results, np.ones(len(results), np.float32)
            if self.replica.per_action:
                targets = np.empty(len(legal_actions), np.float32)
                weights = np.empty(len(legal_actions), np.float32)
                action_targets(
                    legal_actions,
                    buffer.actions[index],
                    results,
                    buffer.qvalues[index],
                    share,
                    targets,
                    weights,
                )
            forward = self.replica.forward(encodings, legal_actions)
            search_gradient(
                forward.logits,
                forward.values,
                indptr,
                legal_actions,
                buffer.policies[index],
                targets,
                weights,
                np.float32(1.0 / minibatch),
                np.float32(self.config.value_weight),
                forward.logit_gradient,
                forward.value_gradient,
                stats,
            )
            self.replica.backward(forward)
        return stats

    # How it is saved.

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """See :meth:`training.trainer.Worker.state`."""
        arrays, generator = self.games.state()
        if self.alphazero.keep_buffer:
            arrays |= {f"buffer.{name}": array for name, array in self.buffer.state().items()}
            arrays |= {f"history.{name}": array for name, array in self.histories.state().items()}
        return arrays, generator

    def check(self, arrays: Arrays) -> None:
        """See :meth:`training.trainer.Worker.check`."""
        self.games.check(arrays)
        if self.alphazero.keep_buffer:
            buffer, history = under("buffer.", arrays), under("history.", arrays)
            self.buffer.check(buffer, self.games.engine)
            self.histories.check(history, arrays["positions"][:, PLY], buffer["masks"])

    def restore(self, arrays: Arrays, generator: Mapping[str, Any]) -> None:
        """See :meth:`training.trainer.Worker.restore`."""
        self.games.restore(arrays, generator)
        if self.alphazero.keep_buffer:
            self.buffer.restore(under("buffer.", arrays))
            self.histories.restore(under("history.", arrays))
        else:  # the games continue; their past is lost
            self.histories.lengths[:] = 0


class AlphaZeroTrainer(Trainer[AlphaZeroWorker]):
    """A run guided by search; see the module's docstring."""

    OPPONENTS: ClassVar = ("greedy", "alphabeta:2", "alphabeta:4")
    COLUMNS: ClassVar = (
        "update",
        "steps",
        "seconds",
        "steps_per_second",
        "learning_rate",
        "simulations_per_second",
        "search_share",
        "network_share",
        "learn_share",
        *SEARCH_STATS,
        "gradient_norm",
        "plies_per_game",
        *(f"score_against_{name}" for name in OPPONENTS),
    )

    def __init__(self, config: TrainConfig, alphazero: AlphaZeroConfig) -> None:
        self.alphazero = alphazero  # first: make_worker reads it
        super().__init__(config, alphazero)

    def make_worker(self, seed: np.random.SeedSequence) -> AlphaZeroWorker:
        """See :meth:`Trainer.make_worker`."""
        return AlphaZeroWorker(self.config, self.alphazero, self.network, seed)

    def train_update(self) -> dict[str, float]:
        """Searched actions in every game, and the learning; returns the row of metrics."""
        config, start = self.config, time.perf_counter()
        before = dict(self.part_seconds)
        rate = self.set_learning_rate()
        with self.timed("play"):
            totals = self.map_workers(AlphaZeroWorker.collect)
        network = sum(total.network_seconds for total in totals) / config.workers
        self.part_seconds["network"] += network
        with self.timed("learn"):
            learnt = self._learn()
        row = self.finish_update(start) | {"learning_rate": rate} | learnt
        seconds = time.perf_counter() - start
        play, learn = (self.part_seconds[k] - before.get(k, 0.0) for k in ("play", "learn"))
        row |= {
            "simulations_per_second": config.steps_per_update * self.alphazero.simulations / play,
            "search_share": (play - network) / seconds,
            "learn_share": learn / seconds,
        }
        if network:  # else it is compiled into the search
            row["network_share"] = network / seconds
        games = sum(total.games for total in totals)
        if games:
            row["plies_per_game"] = sum(total.plies for total in totals) / games
        return row

    def _learn(self) -> dict[str, float]:
        """Learn from the buffers; returns columns of the metrics."""
        config = self.config
        share = config.minibatch // config.workers
        settled = min(self.map_workers(AlphaZeroWorker.count_settled))
        # While the buffer fills, most games have not ended, and there is little to learn from.
        enough = settled >= min(4 * share, self.alphazero.buffer // config.workers // 2)
        # The total after each update is rounded, so that fractions are not lost.
        per_update = config.steps_per_update * self.alphazero.replay_ratio / config.minibatch
        minibatches = int((self.update + 1) * per_update) - int(self.update * per_update)
        if not enough or not minibatches:
            return {"gradient_norm": 0.0}
        stats, norm = np.zeros(len(SEARCH_STATS)), 0.0
        for _ in range(minibatches):
            results = self.map_workers(AlphaZeroWorker.gradient, share, config.minibatch)
            stats += np.sum(results, axis=0)
            norm += self.optimizer_step()
        means = (stats / (minibatches * config.minibatch)).tolist()
        return {
            **dict(zip(SEARCH_STATS, means, strict=True)),
            "gradient_norm": norm / minibatches,
        }
