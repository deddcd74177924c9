"""Train with masked PPO by self-play (Schulman et al. 2017); read from top to bottom.

An update (:meth:`PpoTrainer.train_update`):

1. Every worker plays ``rollout`` actions in each of its games (:meth:`PpoWorker.collect`). The
   policy plays against itself; in some games a past self takes one seat.
2. Each action gets its generalised advantage (:func:`advantages`).
3. In each of ``epochs`` passes the decisions are split into minibatches. Every worker computes
   its part of a minibatch's gradient (:meth:`PpoWorker.loss`), and the network takes a step.
4. Every ``opponent_pool_every`` updates the network joins the pool of past selves.

The actions of a past self are recorded but not ``trainable``: the network does not learn from them.

The objective (:meth:`PpoWorker.loss`) is eq. 7 and 9 of Schulman et al. 2017, "Proximal Policy
Optimization Algorithms".
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from typing_extensions import override

from bao_agents.array_types import Float32Array, Int64Array, Uint8Array
from bao_agents.nets.checkpoint import Arrays
from bao_agents.nets.encoding import encode, padded_encodings
from bao_agents.nets.legal_actions import find_legal_actions, gather_encodings, sample_actions
from bao_agents.nets.network import PolicyNetwork
from bao_env.engine.compile import jit
from bao_env.engine.position import Words
from bao_training.config import MethodConfig, TrainConfig
from bao_training.saved import join, part
from bao_training.trainer import Trainer, plies_per_game
from bao_training.worker import GameTotals, Rollout, Worker, log_softmax

_MAX_LOG_RATIO = 20.0
"""Limit of a log probability's change, so that its exponential stays finite."""


class PpoConfig(MethodConfig):
    """The table ``[ppo]``."""

    epochs: int = Field(2, ge=1, le=100)
    """Passes over each rollout."""
    gae_lambda: float = Field(0.95, ge=0, le=1)
    """Lambda of the generalised advantages."""
    clip: float = Field(0.2, ge=0, le=1)
    """PPO's epsilon: how far the probability of an action may move in one update."""
    entropy_weight: float = Field(0.03, ge=0, le=10)
    """Weight of the entropy bonus at the start; it falls with the learning rate."""
    opponent_pool_share: float = Field(0.2, ge=0, le=1)
    """Share of the games against past selves."""
    opponent_pool_size: int = Field(8, ge=2, le=1000)
    """Number of past selves: the untrained one stays; newer ones replace others at random."""
    opponent_pool_every: int = Field(20, ge=1, le=1_000_000)
    """Updates between two additions to the past selves."""


class RolloutOutput(NamedTuple):
    """The inputs and outputs of a network for B positions with K legal actions in all."""

    encodings: Uint8Array
    """uint8[R, ENCODING_SIZE], padded."""
    indptr: Int64Array
    """int64[B + 1], where the legal actions of each position lie."""
    legal: Words
    """uint64[B]."""
    logits: Float32Array
    """float32[K]."""
    values: Float32Array
    """float32[R]."""


class PpoRollout(Rollout):
    """T actions in each of B games; every array is [T, B] unless noted.

    Args:
        steps: T.
        games: B.
        per_action: whether the network reads each legal action rather than each position.
        encoding_size: bytes that the network reads at a time.
    """

    def __init__(self, steps: int, games: int, per_action: bool, encoding_size: int) -> None:
        super().__init__(steps, games)
        shape = (steps, games)
        self.per_action = per_action
        self.encodings = np.empty(
            (steps * games * (6 if per_action else 1), encoding_size), np.uint8
        )
        """uint8[capacity, ENCODING_SIZE], the encodings that the network read for all decisions, in
        order: one per decision, or one per legal action of it."""
        self.size = 0
        """Encodings recorded so far."""
        self.starts = np.empty(shape, np.int64)
        """Where the encodings of a decision start."""
        self.legal = np.empty(shape, np.uint64)
        """The legal actions as bits."""
        self.actions = np.empty(shape, np.int64)
        self.log_probs = np.empty(shape, np.float32)
        self.values = np.empty(shape, np.float32)
        """The result that the network expected for the player who acts."""
        self.trainable = np.empty(shape, np.bool_)
        """Whether the action was the policy's own."""
        self.next_values = np.empty(games, np.float32)
        """float32[B], the result expected after the last action, for the player to move."""
        self.advantages = np.empty(shape, np.float32)
        self.returns = np.empty(shape, np.float32)
        """The targets of the expected results."""

    def record_encodings(self, t: int, output: RolloutOutput) -> None:
        """Record the encodings that the network read in step ``t``; allocate memory if needed."""
        games = len(output.legal)
        first = output.indptr[:-1] if self.per_action else np.arange(games)
        count = int(output.indptr[-1]) if self.per_action else games
        end = self.size + count
        if end > len(self.encodings):
            capacity = max(end, 2 * len(self.encodings))
            larger = np.empty((capacity, self.encodings.shape[1]), np.uint8)
            larger[: self.size] = self.encodings[: self.size]
            self.encodings = larger
        self.encodings[self.size : end] = output.encodings[:count]
        self.starts[t] = self.size + first
        self.size = end


@dataclass
class PpoTotals(GameTotals):
    """Sums over the games that ended in a worker's rollout."""

    past_self_games: int = 0
    """Games against a past self."""
    past_self_points: float = 0.0
    """The policy's points in those: 1 for a win, 1/2 for a draw."""


@jit
def advantages(rewards, values, next_values, dones, turn_passed, gamma, lam, out):
    """Compute generalised advantages, for the player who acts at each step.

    The source is Schulman et al. 2016, "High-Dimensional Continuous Control Using Generalized
    Advantage Estimation", eq. 16. The sign changes whenever the turn passes: one player expects to
    lose what the other expects to win.

    Args:
        rewards: float32[T, B], the reward of the player who acts.
        values: float32[T, B], the result expected for the player who acts.
        next_values: float32[B], the result expected after the last step, for the player to move.
        dones: bool[T, B], the game ended with this action.
        turn_passed: bool[T, B], the turn passed to the other player after this action.
        gamma: the discount per ply.
        lam: lambda of the generalised advantages.
        out: float32[T, B], filled.
    """
    for b in range(rewards.shape[1]):
        following = np.float32(0.0)
        expected = next_values[b]
        for t in range(rewards.shape[0] - 1, -1, -1):
            sign = np.float32(-1.0) if turn_passed[t, b] else np.float32(1.0)
            if dones[t, b]:
                sign = np.float32(0.0)
            delta = rewards[t, b] + gamma * sign * expected - values[t, b]
            following = delta + gamma * lam * sign * following
            out[t, b] = following
            expected = values[t, b]


class PpoBatch(NamedTuple):
    """B decisions with K legal actions in all, on the network's device."""

    log_probs: Tensor
    """float[K], log probabilities of the legal actions, decision after decision; with gradient."""
    values: Tensor
    """float[B], expected results; with gradient."""
    decisions: Tensor
    """int64[K], the decision that each legal action belongs to."""
    chosen: Tensor
    """int64[B], the legal action taken, as an index of ``log_probs``."""
    old_log_probs: Tensor
    """float[B], log probabilities of these actions when they were taken."""
    advantages: Tensor
    """float[B], normalised."""
    returns: Tensor
    """float[B], targets of the expected results."""


def ppo_statistics(batch: PpoBatch, clip: float) -> Tensor:
    """Return :attr:`PpoWorker.STATS`, each summed over the decisions, float[5]; with gradient.

    The policy loss is the clipped surrogate (Schulman et al. 2017, eq. 7), for PPO's epsilon
    ``clip``.
    """
    log_ratio = (batch.log_probs[batch.chosen] - batch.old_log_probs).clamp(max=_MAX_LOG_RATIO)
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - clip, 1.0 + clip)
    gain = torch.minimum(ratio * batch.advantages, clipped * batch.advantages)
    policy_loss = -gain.sum()
    value_loss = 0.5 * (batch.values - batch.returns).square().sum()
    entropy = -(batch.log_probs.exp() * batch.log_probs).sum()
    approx_kl = (ratio - 1.0 - log_ratio).sum()
    clip_fraction = (ratio != clipped).sum()
    return torch.stack([policy_loss, value_loss, entropy, approx_kl, clip_fraction])


class PpoWorker(Worker[PpoConfig]):
    """One thread's games, its copy of the network, a past self, and the rollout it learns from."""

    STATS: ClassVar = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction")

    def __init__(
        self,
        config: TrainConfig,
        method_config: PpoConfig,
        network: PolicyNetwork,
        seed: np.random.SeedSequence,
    ) -> None:
        super().__init__(config, method_config, network, seed)
        self.past_self = copy.deepcopy(self.replica.network).requires_grad_(False)
        size = len(self.games)
        # The seat of the past self in each game; -1 for none. Both seats occur equally often.
        past_self_games = round(method_config.opponent_pool_share * size)
        self.past_self_seats = np.full(size, -1, np.int8)
        self.past_self_seats[:past_self_games] = np.arange(past_self_games) % 2
        self.rollout = PpoRollout(
            config.rollout, size, self.replica.per_action, network.encoding_size
        )
        self.entropy_weight = method_config.entropy_weight
        """The weight of the entropy bonus in this update."""

    def choose_past_self(self, pool: list[dict[str, Tensor]]) -> None:
        """Draw the past self for this worker's next rollout."""
        self.past_self.load_state_dict(pool[int(self.games.generator.integers(len(pool)))])

    def _evaluate(self, network: PolicyNetwork, index: Int64Array | None = None) -> RolloutOutput:
        """Run a network on all games, or on games int64[N]."""
        positions, legal = self.games.positions, self.games.legal
        if index is not None:
            positions, legal = positions[index], legal[index]
        rules = self.games.engine.rules
        encodings, legal_actions, indptr = encode(rules, positions, legal, self.config.network_kind)
        with torch.inference_mode():
            logits, values = network(self.replica.make_inputs(encodings, legal_actions))
        return RolloutOutput(encodings, indptr, legal, logits.cpu().numpy(), values.cpu().numpy())

    def _sample(
        self, output: RolloutOutput, rng: Words
    ) -> tuple[Int64Array, Float32Array, Float32Array]:
        """Draw an action for each position; advances ``rng`` uint64[B] in place.

        Returns:
            actions int64[B], their log probabilities float32[B], and the result expected for the
            player to move, float32[B].
        """
        return sample_actions(
            output.logits,
            output.values,
            output.indptr,
            output.legal,
            self.replica.per_action,
            rng,
        )

    def _past_self_actions(self, index: Int64Array) -> Int64Array:
        """Draw the actions of the past self in games int64[N]."""
        output = self._evaluate(self.past_self, index)
        rng = self.games.rng[index]
        actions, _, _ = self._sample(output, rng)
        self.games.rng[index] = rng
        return actions

    def collect(self) -> PpoTotals:
        """Play ``config.rollout`` actions in every game, and record them in :attr:`rollout`.

        Returns:
            sums over the games that ended.
        """
        roll, games, totals = self.rollout, self.games, PpoTotals()
        roll.size = 0
        for t in range(self.config.rollout):
            seats = games.seats
            output = self._evaluate(self.replica.network)
            roll.record_encodings(t, output)
            roll.legal[t] = games.legal
            roll.actions[t], roll.log_probs[t], roll.values[t] = self._sample(output, games.rng)
            by_past_self = np.flatnonzero(self.past_self_seats == seats)
            if len(by_past_self):
                roll.actions[t, by_past_self] = self._past_self_actions(by_past_self)
            roll.trainable[t] = self.past_self_seats != seats
            ended = roll.step(t, games, roll.actions[t])
            totals.count(games, ended)
            met = ended[self.past_self_seats[ended] >= 0]
            totals.past_self_games += len(met)
            winners = games.winners[met]
            points = np.where(winners < 0, 0.5, winners != self.past_self_seats[met])
            totals.past_self_points += float(points.sum())
            games.reset(ended)
        # Only the expected results of this draw matter, so it must not advance the games' states.
        _, _, roll.next_values = self._sample(
            self._evaluate(self.replica.network), games.rng.copy()
        )
        return totals

    def compute_advantages(self) -> tuple[Float32Array, Float32Array]:
        """Compute the advantage of each action.

        Returns:
            those of trainable actions and the results expected before them, both float32[N].
        """
        roll = self.rollout
        advantages(
            roll.rewards,
            roll.values,
            roll.next_values,
            roll.dones,
            roll.turn_passed,
            np.float32(self.config.gamma),
            np.float32(self.method_config.gae_lambda),
            roll.advantages,
        )
        roll.returns = roll.advantages + roll.values
        return roll.advantages[roll.trainable], roll.values[roll.trainable]

    def prepare(self, mean: float, deviation: float, entropy_weight: float) -> None:
        """Normalise the advantages by the mean and deviation over all workers; set the weight of
        the entropy bonus."""
        self.rollout.advantages = (self.rollout.advantages - mean) / deviation
        self.entropy_weight = entropy_weight

    @override
    def draw_minibatches(self, count: int) -> None:
        trainable = np.flatnonzero(self.rollout.trainable)
        self.minibatches = np.array_split(self.games.generator.permutation(trainable), count)

    @override
    def loss(self, index: Int64Array) -> tuple[Tensor, Tensor]:
        stats = ppo_statistics(self.batch(index), self.method_config.clip)
        policy_loss, value_loss, entropy, _, _ = stats
        loss = policy_loss + self.config.value_weight * value_loss - self.entropy_weight * entropy
        return loss, stats

    def batch(self, index: Int64Array) -> PpoBatch:
        """Run the network on decisions int64[B] of the rollout."""
        roll, per_action = self.rollout, self.replica.per_action
        legal, actions = roll.legal.reshape(-1)[index], roll.actions.reshape(-1)[index]
        indptr, legal_actions, chosen = find_legal_actions(legal, actions)
        counts = np.diff(indptr) if per_action else np.ones(len(index), np.int64)
        encodings = padded_encodings(int(counts.sum()), roll.encodings.shape[1])
        gather_encodings(roll.encodings, roll.starts.reshape(-1)[index], counts, encodings)
        logits, values = self.replica.forward(encodings, legal_actions)
        to_device = self.replica.to_device
        taken = to_device(chosen)
        decisions = to_device(np.repeat(np.arange(len(index)), np.diff(indptr)))
        return PpoBatch(
            log_probs=log_softmax(logits, decisions, len(index)),
            values=values[taken] if per_action else values[: len(index)],
            decisions=decisions,
            chosen=taken,
            old_log_probs=to_device(roll.log_probs.reshape(-1)[index]),
            advantages=to_device(roll.advantages.reshape(-1)[index]),
            returns=to_device(roll.returns.reshape(-1)[index]),
        )


class PpoTrainer(Trainer[PpoWorker, PpoConfig]):
    """A run of PPO; see the module's docstring."""

    config_class = PpoConfig
    worker_class = PpoWorker
    COLUMNS: ClassVar = ("explained_variance", "score_against_pool")
    OPPONENTS: ClassVar = ("random", "greedy")

    def __init__(self, config: TrainConfig, method_config: PpoConfig) -> None:
        super().__init__(config, method_config)
        self.pool: list[dict[str, Tensor]] = []
        """Weights of the past selves, the untrained one first."""
        self._remember()

    @override
    def play(self) -> dict[str, float]:
        self.map_workers(PpoWorker.choose_past_self, self.pool)
        totals = self.map_workers(PpoWorker.collect)
        columns = plies_per_game(totals)
        if met := sum(total.past_self_games for total in totals):
            columns["score_against_pool"] = sum(total.past_self_points for total in totals) / met
        return columns

    @override
    def learn(self) -> dict[str, float]:
        config, ppo = self.config, self.method_config
        advantages, values = map(
            np.concatenate, zip(*self.map_workers(PpoWorker.compute_advantages), strict=True)
        )
        mean, deviation = float(advantages.mean()), float(advantages.std()) + 1e-8
        entropy_weight = ppo.entropy_weight * self.learning_rate / max(config.learning_rate, 1e-12)
        self.map_workers(PpoWorker.prepare, mean, deviation, entropy_weight)
        row = self.take_steps(config.steps_per_update // config.minibatch, ppo.epochs)
        # The share of the returns' variance that the values explain.
        spread = float((advantages + values).var())
        share = 1.0 - float(advantages.var()) / spread if spread > 0.0 else 0.0
        if (self.update + 1) % ppo.opponent_pool_every == 0:
            self._remember()
        return row | {"explained_variance": share}

    def _remember(self) -> None:
        """Add the network to the pool of past selves; the first, untrained one stays."""
        past = {name: t.detach().clone() for name, t in self.network.state_dict().items()}
        if len(self.pool) < self.method_config.opponent_pool_size:
            self.pool.append(past)
        else:
            self.pool[int(self.generator.integers(1, len(self.pool)))] = past

    # How a run is saved.

    @override
    def set_update(self, update: int) -> None:
        super().set_update(update)
        ppo = self.method_config
        size = min(1 + update // ppo.opponent_pool_every, ppo.opponent_pool_size)
        self.pool = self.pool[:1] * size

    @override
    def state(self) -> Arrays:
        arrays = super().state()
        for i, past in enumerate(self.pool):
            arrays |= join(f"pool.{i}", {name: t.cpu().numpy() for name, t in past.items()})
        return arrays

    @override
    def load(self, arrays: Arrays) -> None:
        super().load(arrays)
        self.pool = [
            {n: torch.from_numpy(a.copy()) for n, a in part(f"pool.{i}", arrays).items()}
            for i in range(len(self.pool))
        ]
