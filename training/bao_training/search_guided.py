"""Train by self-play guided by search; read from top to bottom.

Guided alpha-beta plays, and the network learns which actions it chooses and who wins (expert
iteration, Anthony et al., "Thinking fast and slow with deep learning and tree search", 2017).
In AlphaZero, the network learns from a tree search that spreads its visits by the policy; here it
learns from alpha-beta, and only the action that the search chooses.

Guided alpha-beta needs two things: the network, which orders the actions at a few nodes, and an
NNUE (:mod:`bao_training.nnue_model`), which evaluates millions of positions a second. The NNUE
learns the values of the searches. It also learns the network's values of the boards after every
action, which are computed anyway. It learns a position fifty times as fast as the network, so it
learns from each position more often.

An update (:meth:`SearchGuidedTrainer.train_update`):

1. Play: in each of its games, every worker searches ``rollout`` positions that have a choice, and
   plays the action that the search chooses (:meth:`SearchGuidedWorker.play`). Forced actions are
   played without a search. Each searched position goes into the worker's
   :class:`~bao_training.replay_buffer.ReplayBuffer`, with the search's action and value. When the
   game ends, its result is added.
2. Learn: enough minibatches are drawn from the buffers for the network to learn from each position
   ``replay_ratio`` times on average, and the NNUE ``nnue_replay_ratio`` times. Only positions of
   ended games are drawn. The targets of a position are the search's action, and a mean of the
   game's result and the search's value (:meth:`SearchGuidedWorker.targets`,
   :meth:`SearchGuidedWorker.loss`).
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from bao_agents.evaluators.nnue import NNUE
from bao_agents.nets.checkpoint import Arrays, Checkpoint
from bao_agents.nets.encoding import encode
from bao_agents.nets.network import PolicyNetwork
from bao_agents.search.alphabeta.player import AlphaBetaAgent, to_unit_scores
from bao_agents.search.limits import Limit
from bao_agents.support.array_types import Float32Array, Int64Array
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.position import PLY, movers
from bao_training.config import SearchGuidedConfig, TrainConfig
from bao_training.evaluation import GUIDED_OPPONENT, OPPONENTS, Opponent
from bao_training.nnue_model import NNUEModel
from bao_training.replay_buffer import Histories, ReplayBuffer
from bao_training.run_state import with_prefix
from bao_training.trainer import Trainer, plies_per_game
from bao_training.worker import Model, Worker, log_softmax


def chances(results: Float32Array) -> Float32Array:
    """Convert expected results, -1 to 1, into chances of winning, 0 to 1."""
    half = np.float32(0.5)
    return half + half * results


class Targets(NamedTuple):
    """The targets of B positions, on the model's device."""

    actions: Tensor
    """int64[B], the actions that the searches chose."""
    values: Tensor
    """float32[B], the values of these actions."""


def search_statistics(
    legal_actions: Tensor, log_probs: Tensor, values: Tensor, targets: Targets
) -> Tensor:
    """Return float[4] with gradient, the means of all ``SearchGuidedWorker.STATS`` but the last.

    Args:
        legal_actions: int64[K], position * 64 + action, in ascending order.
        log_probs: float[K], their log probabilities.
        values: float[K], their values.
        targets: the targets of the B positions.
    """
    count = len(targets.actions)
    keys = torch.arange(count, device=values.device) * NUM_ACTIONS + targets.actions
    chosen_indices = torch.searchsorted(legal_actions, keys)
    policy_loss = -log_probs[chosen_indices].sum()
    value_loss = (values[chosen_indices] - targets.values).square().sum()
    entropy = -(log_probs.exp() * log_probs).sum()
    dense = log_probs.new_full((count, NUM_ACTIONS), -torch.inf)
    dense.view(-1)[legal_actions] = log_probs.detach()
    agreement = (dense.argmax(dim=1) == targets.actions).sum()
    return torch.stack([policy_loss, value_loss, entropy, agreement]) / count


class GuidedModel(Model):
    """The model that guides alpha-beta: a policy network and an NNUE."""

    def __init__(self, network: PolicyNetwork) -> None:
        super().__init__(network)
        self.nnue: NNUEModel = NNUEModel()

    @override
    def take_over(self, start: Checkpoint) -> None:
        super().take_over(start)
        if start.nnue is not None:
            self.nnue.load_state_dict(NNUEModel(start.nnue).state_dict())

    @override
    def quantised_nnue(self) -> NNUE:
        return self.nnue.quantised()

    @override
    def unsaved_tensors(self) -> dict[str, Tensor]:
        return {f"nnue.{name}": tensor for name, tensor in self.nnue.state_dict().items()}


class SearchGuidedWorker(Worker[SearchGuidedConfig, GuidedModel]):
    """One thread's games, searches, replay buffer and copy of the model."""

    STATS: ClassVar[tuple[str, ...]] = (
        "policy_loss",
        "value_loss",
        "entropy",
        "agreement",
        "nnue_loss",
    )
    """``agreement`` is the share of positions where network and search prefer the same action."""

    def __init__(
        self,
        config: TrainConfig,
        method_config: SearchGuidedConfig,
        model: GuidedModel,
        seed: np.random.SeedSequence,
    ) -> None:
        super().__init__(config, method_config, model, seed)
        self._model = model
        self.buffer: ReplayBuffer = ReplayBuffer(method_config.buffer // config.workers)
        self.histories: Histories = Histories(len(self.games), config.max_plies)
        self._play_forced()

    def _play_forced(self) -> Int64Array:
        """Play forced actions until every game has a choice, and restart games that have ended.

        Returns:
            int64[2], the number of games that have ended, and the sum of their plies.
        """
        games, totals = self.games, np.zeros(2, np.int64)
        while True:
            ended = np.flatnonzero(games.ended)
            totals += games.totals(ended)
            self._settle(ended)
            self.histories.lengths[ended] = 0
            games.reset(ended)
            forced = (games.legal & (games.legal - np.uint64(1))) == 0
            if not forced.any():
                return totals
            games.step_randomly(forced)

    def _settle(self, ended: Int64Array) -> None:
        """Write the result of each ended game to its positions in the buffer.

        Args:
            ended: int64[N], the numbers of the ended games.
        """
        for game in ended:
            slots = self.histories.slots[game, : self.histories.lengths[game]]
            positions, winner = self.buffer.positions[slots], int(self.games.winners[game])
            sign = np.where(movers(positions) == winner, 1.0, -1.0) * (winner >= 0)
            ahead = float(self.games.plies[game]) - positions[:, PLY].astype(np.int64) - 1.0
            self.buffer.results[slots] = sign * self.config.gamma**ahead

    def play(self) -> Int64Array:
        """Play ``config.rollout`` searched actions in every game.

        Returns:
            int64[2], the number of games that ended, and the sum of their plies.
        """
        games, totals = self.games, np.zeros(2, np.int64)
        ruleset, model = games.engine.ruleset, self._model
        guide = Checkpoint(model.network.arrays(), ruleset, nnue=model.quantised_nnue())
        limit = Limit(nodes=self.method_config.nodes)
        search = AlphaBetaAgent(ruleset, limit, guide=guide, threads=1)
        for _ in range(self.config.rollout):
            actions, scores = search.actions_and_values(games.positions, games.legal)
            values = to_unit_scores(scores).astype(np.float32)
            self.histories.add(self.buffer.add(games.positions, games.legal, actions, values))
            games.step(actions)
            totals += self._play_forced()
        return totals

    @override
    def targets(self, decisions: Int64Array) -> Targets:
        """Return the targets of positions, from their searches and the results of their games.

        Args:
            decisions: int64[N], the slots of the positions in the buffer.
        """
        buffer, to_device = self.buffer, self.replica.to_device
        share = np.float32(self.method_config.search_value)
        values = share * buffer.values[decisions] + (1 - share) * buffer.results[decisions]
        return Targets(to_device(buffer.actions[decisions].astype(np.int64)), to_device(values))

    @override
    def draw_minibatches(self, count: int) -> None:
        share, rng = self.config.minibatch // self.config.workers, self.games.generator
        self.minibatches: list[Int64Array] = [
            np.sort(self.buffer.draw(rng, share)) for _ in range(count)
        ]

    @override
    def loss(self, decisions: Int64Array, targets: Targets) -> tuple[Tensor, Tensor]:
        """See :meth:`Worker.loss`: the loss is the cross-entropy to the search's action, plus
        ``value_weight`` times the squared error of the values, plus the loss of the NNUE."""
        buffer = self.buffer
        encodings, legal_actions, _ = encode(
            self.games.engine.rules, buffer.positions[decisions], buffer.legal[decisions]
        )
        logits, values = self.replica.network(torch.from_numpy(encodings))
        logits, values = logits[: len(legal_actions)], values[: len(legal_actions)]
        listed = self.replica.to_device(legal_actions)
        log_probs = log_softmax(logits, listed >> 6, len(decisions))
        stats = search_statistics(listed, log_probs, values, targets)
        nnue_loss = self.nnue_loss(decisions, legal_actions, values.detach().cpu().numpy())
        loss = stats[0] + self.method_config.value_weight * stats[1] + nnue_loss
        return loss, torch.cat([stats, nnue_loss[None]])

    def nnue_loss(
        self, decisions: Int64Array, legal_actions: Int64Array, values: Float32Array
    ) -> Tensor:
        """Return the loss of the NNUE.

        It is the sum of two means: over the boards after each legal action, with the network's
        values, and over further positions drawn from the buffer, with the values of their searches.

        Args:
            decisions: int64[N], positions of the buffer.
            legal_actions: int64[K], their legal actions (position * 64 + action).
            values: float32[K], the network's values of these actions.
        """
        nnue, engine, buffer = self.replica.model.nnue, self.games.engine, self.buffer
        positions = buffer.positions[decisions]
        rows, actions = np.divmod(legal_actions, 64)
        after, legal = positions[rows], buffer.legal[decisions][rows]
        winners = np.full(len(actions), -1, np.int8)
        engine.step(after, actions, legal, winners)
        running = winners < 0
        same_mover = movers(after) == movers(positions)[rows]
        results = np.where(same_mover, values, -values)[running]
        loss = nnue.loss(after[running], chances(results)) / max(1, len(results))
        ratio = self.method_config.nnue_replay_ratio / self.method_config.replay_ratio
        drawn = buffer.draw(self.games.generator, round(ratio * len(decisions)))
        if len(drawn):
            searched = nnue.loss(buffer.positions[drawn], chances(buffer.values[drawn]))
            loss = loss + searched / len(drawn)
        return loss

    @override
    def state(self) -> Arrays:
        # Checkpoints call the slots "places".
        history = {"lengths": self.histories.lengths, "places": self.histories.slots}
        return (
            super().state()
            | with_prefix("buffer", vars(self.buffer))
            | with_prefix("history", history)
        )


class SearchGuidedTrainer(Trainer[SearchGuidedWorker, SearchGuidedConfig]):
    """A run guided by search; see the module's docstring."""

    worker_class = SearchGuidedWorker
    OPPONENTS: ClassVar[tuple[Opponent, ...]] = (*OPPONENTS, GUIDED_OPPONENT)

    @override
    def make_model(self) -> GuidedModel:
        return GuidedModel(PolicyNetwork(self.config.hidden))

    @override
    def collect(self) -> dict[str, float]:
        return plies_per_game(self.map_workers(SearchGuidedWorker.play))

    @override
    def learn(self) -> dict[str, float]:
        config, settings = self.config, self.method_config
        settled = min(self.map_workers(lambda worker: worker.buffer.count_settled()))
        # While the buffer fills, most games are still running, so there is little to learn from.
        share = config.minibatch // config.workers
        enough = settled >= min(4 * share, settings.buffer // config.workers // 2)
        # The total is rounded, not the share of each update, so that no fractions are lost.
        per_update = config.steps_per_update * settings.replay_ratio / config.minibatch
        minibatches = int((self.update + 1) * per_update) - int(self.update * per_update)
        if not enough or not minibatches:
            return {"gradient_norm": 0.0}
        return self.take_steps(minibatches)
