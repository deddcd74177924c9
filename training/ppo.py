"""Masked PPO by self-play (Schulman et al. 2017), read from top to bottom.

An update (:meth:`PpoTrainer.train_update`):

1. Every worker plays ``rollout`` actions in each of its games (:meth:`PpoWorker.collect`). The
   policy plays itself; in some games a past self, or a fixed opponent, has one seat.
2. Each action gets its generalised advantage (:func:`training.loss.advantages`).
3. In each of ``epochs`` passes the decisions are split into minibatches. Every worker computes
   its part of a minibatch's gradient (:meth:`PpoWorker.gradient`), and the network takes a step.
4. Now and then the network joins the pool of past selves.

The actions of the past self are recorded but not ``trainable``: the network does not learn from
them.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field, field_validator
from torch import Tensor

from agents.nets.checkpoint import Arrays
from agents.nets.encoding import encode, padded_encodings
from agents.nets.features import ENCODING_SIZE
from agents.nets.legal_actions import (
    best_legal_actions,
    find_legal_actions,
    gather_encodings,
    sample_actions,
)
from agents.nets.network import PolicyNetwork
from training.config import MethodConfig, TrainConfig
from training.games import Games
from training.loss import LOSSES, PPO_STATS, advantages
from training.replica import Replica, chunks
from training.saved import Layout, require
from training.trainer import Trainer


class PpoConfig(MethodConfig):
    """The table ``[ppo]``."""

    epochs: int = Field(2, ge=1, le=100)
    """Passes over each rollout."""
    gae_lambda: float = Field(0.95, ge=0, le=1)
    """Lambda of the generalised advantages."""
    clip: float = Field(0.2, ge=0, le=1)
    """How far the probability of an action may move in one update: PPO's epsilon."""
    loss: str = "clipped"
    """The loss: PPO's clipped objective, or your own (``package.module:name``, a function of a
    :class:`training.loss.PpoBatch`)."""
    entropy_weight: float = Field(0.03, ge=0, le=10)
    """Weight of the entropy bonus at the start; it falls with the learning rate."""
    opponent_pool_share: float = Field(0.2, ge=0, le=1)
    """Share of the games against past selves."""
    opponent_pool_size: int = Field(8, ge=2, le=1000)
    """Past selves kept: the untrained one stays; newer ones replace others at random."""
    opponent_pool_every: int = Field(20, ge=1, le=1_000_000)
    """Updates between two new past selves."""
    fixed_opponent: str = ""
    """Play against this checkpoint (a path, or the name of a shipped one) instead of past selves.
    It plays its most probable actions. With ``opponent_pool_share = 1`` the run trains an adversary
    against it."""

    @field_validator("loss")
    @classmethod
    def _check_loss(cls, loss: str) -> str:
        if loss not in LOSSES:
            raise ValueError(
                f"ppo.loss={loss!r:.200} should be one of {', '.join(LOSSES)}; your own, "
                "MODULE:NAME, is imported only if --config or --set names it"
            )
        return loss

    def memory(self, config: TrainConfig) -> int:
        """See :meth:`MethodConfig.memory`."""
        return config.steps_per_update * ENCODING_SIZE  # one encoding a step, or several


@dataclass
class Rollout:
    """T actions in each of B games; every array is [T, B] unless noted."""

    encodings: npt.NDArray[np.uint8]
    """uint8[capacity, ENCODING_SIZE], what the network read for all decisions in order: one
    encoding a decision, or one for each of its legal actions."""
    starts: npt.NDArray[np.int64]
    """Where the encodings of a decision start."""
    masks: npt.NDArray[np.uint64]
    actions: npt.NDArray[np.int64]
    log_probs: npt.NDArray[np.float32]
    values: npt.NDArray[np.float32]
    """The result that the network expected for the player who acts."""
    rewards: npt.NDArray[np.float32]
    """+1 or -1 to the player whose action ends the game, else 0."""
    dones: npt.NDArray[np.bool_]
    """The game ended with this action."""
    turn_passed: npt.NDArray[np.bool_]
    """The turn passed to the other player."""
    trainable: npt.NDArray[np.bool_]
    """The action was the policy's own."""
    advantages: npt.NDArray[np.float32]
    size: int = 0
    """Encodings kept so far."""

    @classmethod
    def empty(cls, steps: int, games: int, per_action: bool) -> Rollout:
        """Room for ``steps`` actions in each of ``games`` games."""
        shape = (steps, games)
        return cls(
            encodings=np.empty((steps * games * (6 if per_action else 1), ENCODING_SIZE), np.uint8),
            starts=np.empty(shape, np.int64),
            masks=np.empty(shape, np.uint64),
            actions=np.empty(shape, np.int64),
            log_probs=np.empty(shape, np.float32),
            values=np.empty(shape, np.float32),
            rewards=np.empty(shape, np.float32),
            dones=np.empty(shape, np.bool_),
            turn_passed=np.empty(shape, np.bool_),
            trainable=np.empty(shape, np.bool_),
            advantages=np.empty(shape, np.float32),
        )

    def keep_encodings(self, t: int, read: RolloutOutput, per_action: bool) -> None:
        """Keep what the network read in step ``t``; allocates more memory if needed."""
        first = read.indptr[:-1] if per_action else np.arange(len(read.masks))
        count = int(read.indptr[-1]) if per_action else len(read.masks)
        end = self.size + count
        if end > len(self.encodings):
            capacity = max(end, 2 * len(self.encodings))
            larger = np.empty((capacity, ENCODING_SIZE), np.uint8)
            larger[: self.size] = self.encodings[: self.size]
            self.encodings = larger
        self.encodings[self.size : end] = read.encodings[:count]
        self.starts[t] = self.size + first
        self.size = end


class RolloutOutput(NamedTuple):
    """What a network read and said about B positions with K legal actions in all."""

    encodings: npt.NDArray[np.uint8]
    """uint8[R, ENCODING_SIZE], padded."""
    indptr: npt.NDArray[np.int64]
    """int64[B + 1], where the legal actions of each position lie."""
    masks: npt.NDArray[np.uint64]
    """uint64[B]."""
    logits: npt.NDArray[np.float32]
    """float32[K]."""
    values: npt.NDArray[np.float32]
    """float32[R]."""


class ActionSample(NamedTuple):
    """What was drawn for B positions."""

    actions: npt.NDArray[np.int64]
    """int64[B]."""
    log_probs: npt.NDArray[np.float32]
    """float32[B]."""
    expected: npt.NDArray[np.float32]
    """float32[B], the result expected for the player to move."""


@dataclass
class GameTotals:
    """Sums over the games that ended in a worker's rollout."""

    games: int = 0
    plies: int = 0
    past_self_games: int = 0
    """Games against a past self or the fixed opponent."""
    past_self_points: float = 0.0
    """The policy's points in those: 1 for a win, 1/2 for a draw."""


class PpoWorker:
    """One thread's games, its copy of the network, and the rollout it learns from.

    Args:
        config: the common settings.
        ppo: the method's.
        network: the float32 network to copy.
        seed: of this worker's games.
    """

    def __init__(
        self,
        config: TrainConfig,
        ppo: PpoConfig,
        network: PolicyNetwork,
        seed: np.random.SeedSequence,
    ) -> None:
        self.config, self.ppo = config, ppo
        self.replica = Replica(network, config.bfloat16)
        self.games = Games(config, seed)
        self.past_self = copy.deepcopy(self.replica.network).requires_grad_(False)
        size = len(self.games)
        self.games.reset(np.arange(size))
        # The seat of the past self in each game; -1 = none. Both seats occur equally often.
        past_self_games = round(ppo.opponent_pool_share * size)
        self.past_self_seats = np.full(size, -1, np.int8)
        self.past_self_seats[:past_self_games] = np.arange(past_self_games) % 2
        self.rollout = Rollout.empty(config.rollout, size, self.replica.per_action)
        self._loss_gradient = LOSSES[ppo.loss]
        self._minibatches: list[npt.NDArray[np.int64]] = []

    def choose_past_self(self, pool: list[dict[str, Tensor]]) -> None:
        """Draw the past self that this worker's next rollout meets."""
        self.past_self.load_state_dict(pool[int(self.games.generator.integers(len(pool)))])

    # Play.

    def _evaluate(
        self, network: PolicyNetwork, index: npt.NDArray[np.int64] | None = None
    ) -> RolloutOutput:
        """What a network says about all games, or about games int64[N]."""
        positions, masks = self.games.positions, self.games.masks
        if index is not None:
            positions, masks = positions[index], masks[index]
        rules = self.games.engine.rules
        encodings, legal_actions, indptr = encode(rules, positions, masks, self.replica.per_action)
        with torch.inference_mode():
            logits, values = network(self.replica.make_inputs(encodings, legal_actions))
        return RolloutOutput(encodings, indptr, masks, logits.cpu().numpy(), values.cpu().numpy())

    def _sample(self, output: RolloutOutput, rng: npt.NDArray[np.uint64]) -> ActionSample:
        """An action for each position, drawn by ``rng`` uint64[B], advanced in place."""
        size = len(output.masks)
        sample = ActionSample(
            np.empty(size, np.int64), np.empty(size, np.float32), np.empty(size, np.float32)
        )
        sample_actions(
            output.logits,
            output.values,
            output.indptr,
            output.masks,
            self.replica.per_action,
            rng,
            *sample,
        )
        return sample

    def _past_self_actions(self, index: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """What the past self, or the fixed opponent, plays in games int64[N]."""
        output = self._evaluate(self.past_self, index)
        if self.ppo.fixed_opponent:
            actions = np.empty(len(index), np.int64)
            best_legal_actions(output.logits, output.indptr, output.masks, actions)
            return actions
        rng = self.games.rng[index]
        actions = self._sample(output, rng).actions
        self.games.rng[index] = rng
        return actions

    def collect(self) -> GameTotals:
        """Play ``config.rollout`` actions in every game and record them in :attr:`rollout`; returns
        sums over the ended games."""
        roll, games, totals = self.rollout, self.games, GameTotals()
        roll.size = 0
        for t in range(self.config.rollout):
            seats = games.seats
            output = self._evaluate(self.replica.network)
            roll.keep_encodings(t, output, self.replica.per_action)
            roll.masks[t] = games.masks
            roll.actions[t], roll.log_probs[t], roll.values[t] = self._sample(output, games.rng)
            by_past_self = np.flatnonzero(self.past_self_seats == seats)
            if len(by_past_self):
                roll.actions[t, by_past_self] = self._past_self_actions(by_past_self)
            roll.trainable[t] = self.past_self_seats != seats

            games.step(roll.actions[t])
            won = games.winners >= 0
            roll.rewards[t] = np.where(won, np.where(games.winners == seats, 1.0, -1.0), 0.0)
            roll.dones[t] = won | (games.plies >= self.config.max_plies)
            roll.turn_passed[t] = games.seats != seats
            ended = np.flatnonzero(roll.dones[t])
            if len(ended):
                self._count(ended, totals)
                games.reset(ended)
        # A copy of the random states: this draw is only for the expected results.
        last = self._sample(self._evaluate(self.replica.network), games.rng.copy())
        advantages(
            roll.rewards,
            roll.values,
            last.expected,
            roll.dones,
            roll.turn_passed,
            np.float32(self.config.gamma),
            np.float32(self.ppo.gae_lambda),
            roll.advantages,
        )
        return totals

    def _count(self, ended: npt.NDArray[np.int64], totals: GameTotals) -> None:
        """Add the ended games int64[N] to ``totals``."""
        totals.games += len(ended)
        totals.plies += int(self.games.plies[ended].sum())
        met = ended[self.past_self_seats[ended] >= 0]
        totals.past_self_games += len(met)
        winners = self.games.winners[met]
        points = np.where(winners < 0, 0.5, winners != self.past_self_seats[met])
        totals.past_self_points += float(points.sum())

    # Learn.

    def trainable_values(self) -> npt.NDArray[np.float32]:
        """The result expected before each trainable action, float32[N]."""
        return self.rollout.values[self.rollout.trainable]

    def trainable_advantages(self) -> npt.NDArray[np.float32]:
        """The advantages of the trainable actions, float32[N]."""
        return self.rollout.advantages[self.rollout.trainable]

    def split_minibatches(self, count: int) -> list[int]:
        """Shuffle the trainable decisions into ``count`` parts; returns their sizes."""
        decisions = self.games.generator.permutation(np.flatnonzero(self.rollout.trainable))
        self._minibatches = np.array_split(decisions, count)
        return [len(part) for part in self._minibatches]

    def gradient(
        self, minibatch: int, decisions: int, mean: float, deviation: float, entropy_weight: float
    ) -> npt.NDArray[np.float64]:
        """Compute this worker's part of a minibatch's gradient, into ``replica.gradients``.

        Args:
            minibatch: its index.
            decisions: its decisions, over all workers.
            mean, deviation: of the advantages, to normalise them.
            entropy_weight: of the entropy bonus.

        Returns:
            sums of :data:`training.loss.PPO_STATS` over this worker's decisions, float64[5].
        """
        roll, per_action = self.rollout, self.replica.per_action
        stats = np.zeros(len(PPO_STATS))
        self.replica.clear_gradients()
        for index in chunks(self._minibatches[minibatch]):
            masks, actions = roll.masks.reshape(-1)[index], roll.actions.reshape(-1)[index]
            indptr, legal_actions, chosen = find_legal_actions(masks, actions)
            counts = np.diff(indptr) if per_action else np.ones(len(index), np.int64)
            encodings = padded_encodings(int(counts.sum()))
            gather_encodings(roll.encodings, roll.starts.reshape(-1)[index], counts, encodings)
            advantage = roll.advantages.reshape(-1)[index]
            forward = self.replica.forward(encodings, legal_actions)
            self._loss_gradient(
                forward.logits,
                forward.values,
                indptr,
                chosen,
                chosen if per_action else np.arange(len(index)),
                roll.log_probs.reshape(-1)[index],
                (advantage - np.float32(mean)) / np.float32(deviation),
                advantage + roll.values.reshape(-1)[index],
                np.float32(1.0 / decisions),
                np.float32(self.ppo.clip),
                np.float32(self.config.value_weight),
                np.float32(entropy_weight),
                forward.logit_gradient,
                forward.value_gradient,
                stats,
            )
            self.replica.backward(forward)
        return stats

    # How it is saved.

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """See :meth:`training.trainer.Worker.state`. The rollout is not needed any more."""
        return self.games.state()

    def check(self, arrays: Arrays) -> None:
        """See :meth:`training.trainer.Worker.check`."""
        self.games.check(arrays)

    def restore(self, arrays: Arrays, generator: Mapping[str, Any]) -> None:
        """See :meth:`training.trainer.Worker.restore`."""
        self.games.restore(arrays, generator)


class PpoTrainer(Trainer[PpoWorker]):
    """A run of PPO; see the module's docstring."""

    COLUMNS: ClassVar = (
        "update",
        "steps",
        "seconds",
        "steps_per_second",
        "learning_rate",
        *PPO_STATS,
        "explained_variance",
        "gradient_norm",
        "plies_per_game",
        "score_against_pool",
        "score_against_random",
        "score_against_greedy",
    )

    def __init__(self, config: TrainConfig, ppo: PpoConfig) -> None:
        self.ppo = ppo  # first: make_worker reads it
        super().__init__(config, ppo)
        self.pool: list[dict[str, Tensor]] = []
        """Weights of the past selves, the untrained one first; or of the fixed opponent alone."""
        if ppo.fixed_opponent:
            self.pool = [self.load_weights("ppo.fixed_opponent", ppo.fixed_opponent)]
        else:
            self._remember()

    def make_worker(self, seed: np.random.SeedSequence) -> PpoWorker:
        """See :meth:`Trainer.make_worker`."""
        return PpoWorker(self.config, self.ppo, self.network, seed)

    def train_update(self) -> dict[str, float]:
        """One rollout, and the learning from it; returns the row of metrics."""
        start = time.perf_counter()
        rate = self.set_learning_rate()
        with self.timed("play"):
            self.map_workers(PpoWorker.choose_past_self, self.pool)
            totals = self.map_workers(PpoWorker.collect)
        with self.timed("learn"):
            learnt = self._learn(
                self.ppo.entropy_weight * rate / max(self.config.learning_rate, 1e-12)
            )
        row = self.finish_update(start) | {"learning_rate": rate} | learnt
        if self.update % self.ppo.opponent_pool_every == 0 and not self.ppo.fixed_opponent:
            self._remember()
        games = sum(total.games for total in totals)
        met = sum(total.past_self_games for total in totals)
        if games:
            row["plies_per_game"] = sum(total.plies for total in totals) / games
        if met:
            row["score_against_pool"] = sum(total.past_self_points for total in totals) / met
        return row

    def _learn(self, entropy_weight: float) -> dict[str, float]:
        """Learn from the rollouts for ``epochs`` passes; returns columns of the metrics."""
        config, epochs = self.config, self.ppo.epochs
        advantages = np.concatenate(self.map_workers(PpoWorker.trainable_advantages))
        values = np.concatenate(self.map_workers(PpoWorker.trainable_values))
        mean, deviation = float(advantages.mean()), float(advantages.std()) + 1e-8
        minibatches = config.steps_per_update // config.minibatch
        stats = np.zeros(len(PPO_STATS))
        decisions, norm = 0, 0.0
        for _ in range(epochs):
            sizes = np.sum(self.map_workers(PpoWorker.split_minibatches, minibatches), axis=0)
            for minibatch in range(minibatches):
                size = int(sizes[minibatch])
                if not size:
                    continue
                results = self.map_workers(
                    PpoWorker.gradient, minibatch, size, mean, deviation, entropy_weight
                )
                norm += self.optimizer_step()
                stats += np.sum(results, axis=0)
                decisions += size
        # The share of the returns' variance that the values explain.
        spread = float((advantages + values).var())
        return {
            **dict(zip(PPO_STATS, (stats / max(1, decisions)).tolist(), strict=True)),
            "explained_variance": 1.0 - float(advantages.var()) / spread if spread > 0.0 else 0.0,
            "gradient_norm": norm / (epochs * minibatches),
        }

    def _remember(self) -> None:
        """Add the network to the pool of past selves; the first, untrained one stays."""
        past = {name: t.detach().clone() for name, t in self.network.state_dict().items()}
        if len(self.pool) < self.ppo.opponent_pool_size:
            self.pool.append(past)
        else:
            self.pool[int(self.generator.integers(1, len(self.pool)))] = past

    def _pool_size(self, update: int) -> int:
        """The number of past selves after so many updates."""
        if self.ppo.fixed_opponent:
            return 1
        return min(1 + update // self.ppo.opponent_pool_every, self.ppo.opponent_pool_size)

    def extra_state(self) -> Arrays:
        """See :meth:`Trainer.extra_state`."""
        return {
            f"pool.{i}.{name}": t.cpu().numpy()
            for i, past in enumerate(self.pool)
            for name, t in past.items()
        }

    def extra_layout(self, update: int) -> Layout:
        """See :meth:`Trainer.extra_layout`."""
        return {
            f"pool.{i}.{name}": (np.dtype(np.float32), tuple(t.shape))
            for i in range(self._pool_size(update))
            for name, t in self.network.state_dict().items()
        }

    def load_extra_state(self, arrays: Arrays) -> None:
        """See :meth:`Trainer.load_extra_state`."""
        names = list(self.network.state_dict())
        pool = [
            {name: arrays[f"pool.{i}.{name}"] for name in names}
            for i in range(self._pool_size(self.update))
        ]
        for i, past in enumerate(pool):
            for name, array in past.items():
                require(f"pool.{i}.{name}", (np.isfinite(array).all(), "finite numbers"))
        self.pool = [
            {name: torch.from_numpy(array.copy()) for name, array in past.items()} for past in pool
        ]
