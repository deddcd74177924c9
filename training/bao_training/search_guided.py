"""Train by self-play guided by search, as in AlphaZero; read from top to bottom.

The network learns the policy of its own searches, and the results of the games that they play. The
search is a Gumbel tree search (Danihelka et al., "Policy improvement by planning with Gumbel",
2022), or guided alpha-beta: then the policy is its choice alone (expert iteration, Anthony et al.,
"Thinking fast and slow with deep learning and tree search", 2017).

Guided alpha-beta needs two things: the network, which orders the actions of few nodes, and an NNUE
(:mod:`bao_agents.evaluators.learning`), which evaluates millions of positions a second. The NNUE
learns the values of the searches, and the network's values of the board after every action, which
cost nothing here. It learns a position fifty times as fast as the network, so it learns each more
often.

An update (:meth:`AlphaZeroTrainer.train_update`):

1. Play: in each of its games every worker searches ``rollout`` positions with a choice and plays
   the action that the search chooses (:meth:`AlphaZeroWorker.play`). Forced actions are played
   without a search. Each searched position goes into the worker's
   :class:`~bao_training.replay_buffer.ReplayBuffer`, with the search's policy and values. When the
   game ends, its result is added.
2. Learn: enough minibatches are drawn from the buffers for the network to learn from each position
   ``replay_ratio`` times on average, and the NNUE ``nnue_replay_ratio`` times. What the network
   should say about a position whose game has ended is the search's policy, and a mean of the game's
   result and the search's value (:meth:`AlphaZeroWorker.targets`, :meth:`AlphaZeroWorker.loss`).
"""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from typing_extensions import override

from bao_agents.evaluators.learning import NNUEModel
from bao_agents.evaluators.tables import SCALE
from bao_agents.nets.checkpoint import Arrays, Checkpoint
from bao_agents.nets.encoding import encode
from bao_agents.nets.legal_actions import list_legal_actions
from bao_agents.nets.network import PolicyNetwork
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.gumbel.search import GumbelSearch, SearchOutput
from bao_agents.search.limits import Limit
from bao_agents.support.array_types import Float32Array, Int64Array
from bao_env.compiled.compile import jit
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.bits import FULL
from bao_env.engine.position import PLY, PackedPositions, movers
from bao_env.engine.ruleset import Ruleset
from bao_env.engine.sampling import RandomStates
from bao_training.config import ConfigError, MethodConfig, TrainConfig
from bao_training.replay_buffer import NOT_VISITED, Histories, ReplayBuffer
from bao_training.saved import join, part
from bao_training.trainer import Trainer, plies_per_game
from bao_training.worker import GameTotals, Model, Worker, log_softmax


class AlphaZeroConfig(MethodConfig):
    """The table ``[alphazero]``."""

    search: Literal["gumbel", "alphabeta"] = "gumbel"
    """The search that plays: a Gumbel tree search, or guided alpha-beta."""
    nodes: int = Field(500, ge=1, le=10**9)
    """Nodes of each alpha-beta search."""
    simulations: int = Field(24, ge=2, le=100_000)
    """Simulations of each Gumbel search."""
    buffer: int = Field(1_000_000, ge=1000, le=10**9)
    """Size of the replay buffer: the latest positions, over all workers."""
    keep_buffer: bool = True
    """Write the buffer into ``last.safetensors``, so that a resumed run ends as if it had never
    stopped. Each checkpoint then takes about 200 bytes per position, 200 MB for a million. Without
    it, a resumed run fills its buffer again."""
    replay_ratio: float = Field(2.0, ge=0, le=1000)
    """How often the network learns from each position, on average."""
    nnue_replay_ratio: float = Field(4.0, ge=0, le=1000)
    """How often the NNUE does. It learns only in a step of the network."""
    value_weight: float = Field(1.0, ge=0, le=100)
    """Weight of the loss of the network's values; its policy's loss has weight 1."""
    search_value: float = Field(0.3, ge=0, le=1)
    """Share of the search's value in the target result; the rest is who won. Also the weight of the
    search's values of actions that were not played."""

    @override
    def check(self, config: TrainConfig) -> None:
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


@jit
def action_targets(legal_actions, actions, results, qvalues, other_weight, targets, weights):
    """Compute targets for the value of each legal action.

    The target of the action played is the result. The target of another action is the search's
    value, if the search visited it.

    Args:
        legal_actions: int64[K], position * 64 + action.
        actions: uint8[B], the actions played.
        results: float32[B], targets of these actions.
        qvalues: int8[B, 64], the search's values in 127ths; :data:`NOT_VISITED` if it has none.
        other_weight: the weight of a legal action that was not played.
        targets: float32[K], filled.
        weights: float32[K], filled.
    """
    for k in range(legal_actions.shape[0]):
        i, action = legal_actions[k] >> 6, legal_actions[k] & 63
        targets[k] = 0.0
        weights[k] = 0.0
        if action == actions[i]:
            targets[k] = results[i]
            weights[k] = 1.0
        elif qvalues[i, action] != NOT_VISITED:
            targets[k] = np.float32(qvalues[i, action]) / np.float32(127.0)
            weights[k] = other_weight


def chances(results: Float32Array) -> Float32Array:
    """Return the chances of winning, 0 to 1, that expected results, -1 to 1, mean."""
    half = np.float32(0.5)
    return half + half * results


class AlphaBetaSearch:
    """Guided alpha-beta, called like a :class:`GumbelSearch`.

    Args:
        ruleset: the rules.
        nodes: the nodes of each search.
        nnue: the NNUE that the run trains.
    """

    def __init__(self, ruleset: Ruleset, nodes: int, nnue: NNUEModel) -> None:
        self._ruleset = ruleset
        self._nodes = nodes
        self._nnue = nnue

    def sync_weights(self, network: PolicyNetwork) -> None:
        """Copy the weights of a network, and those of the NNUE."""
        guide = Checkpoint(network.arrays(), self._ruleset, nnue=self._nnue.quantised())
        limit = Limit(nodes=self._nodes)
        self._agent = AlphaBetaAgent(self._ruleset, limit, guide=guide, threads=1)

    def search(self, positions: PackedPositions, rng: RandomStates) -> SearchOutput:
        """Search positions uint64[B, 6], none of them over.

        The policy is the best action alone, and no other action has a value.
        """
        del rng  # nothing is random
        actions, values = self._agent.actions_and_values(
            positions, np.full(len(positions), FULL, np.uint64)
        )
        results = np.tanh(values / (2 * SCALE)).astype(np.float32)
        policies = np.zeros((len(actions), NUM_ACTIONS), np.float32)
        qvalues = np.full_like(policies, np.nan)
        games = np.arange(len(actions))
        policies[games, actions], qvalues[games, actions] = 1.0, results
        return SearchOutput(actions, policies, results, qvalues)


class Targets(NamedTuple):
    """What the model should say about B positions with K legal actions, on the model's device."""

    legal_actions: Tensor
    """int64[K], position * 64 + action."""
    policies: Tensor
    """uint8[B, 64], the improved policies in 255ths."""
    values: Tensor
    """float[K], of the legal actions."""
    weights: Tensor
    """float[K], weights of the values' errors."""


def search_statistics(log_probs: Tensor, values: Tensor, targets: Targets) -> Tensor:
    """Return :attr:`AlphaZeroWorker.STATS` without the last, as means; float[4] with gradient.

    Args:
        log_probs: float[K], log probabilities of the legal actions, position after position.
        values: float[K], their values.
        targets: those of the B positions.
    """
    legal_actions, policies = targets.legal_actions, targets.policies.to(log_probs.dtype)
    target = (policies / policies.sum(dim=1, keepdim=True)).flatten()[legal_actions]
    policy_loss = -(target * log_probs).sum()
    value_loss = (targets.weights * (values - targets.values).square()).sum()
    entropy = -(log_probs.exp() * log_probs).sum()
    dense = torch.full_like(policies, -torch.inf)
    dense.view(-1)[legal_actions] = log_probs.detach()
    agreement = (dense.argmax(dim=1) == policies.argmax(dim=1)).sum()
    return torch.stack([policy_loss, value_loss, entropy, agreement]) / len(policies)


class AlphaZeroWorker(Worker[AlphaZeroConfig]):
    """One thread's games, searches, replay buffer and copy of the model."""

    STATS: ClassVar = ("policy_loss", "value_loss", "entropy", "agreement", "nnue_loss")
    """``agreement`` is the share of positions where network and search prefer the same action."""

    def __init__(
        self,
        config: TrainConfig,
        method_config: AlphaZeroConfig,
        model: Model,
        seed: np.random.SeedSequence,
    ) -> None:
        super().__init__(config, method_config, model, seed)
        assert model.nnue is not None
        self._network = model.network
        self.search: AlphaBetaSearch | GumbelSearch
        if method_config.search == "alphabeta":
            self.search = AlphaBetaSearch(
                self.games.engine.ruleset, method_config.nodes, model.nnue
            )
        else:
            self.search = GumbelSearch(
                self.games.engine.rules,
                model.network,
                len(self.games),
                method_config.simulations,
                config.gamma,
            )
        self.buffer = ReplayBuffer(method_config.buffer // config.workers)
        self.histories = Histories(len(self.games), config.max_plies)
        self._play_forced(GameTotals())

    def _play_forced(self, totals: GameTotals) -> None:
        """Play forced actions until every game has a choice; restarts games that end."""
        games = self.games
        while True:
            ended = np.flatnonzero(games.ended)
            totals.count(games, ended)
            self._settle(ended)
            self.histories.lengths[ended] = 0
            games.reset(ended)
            forced = (games.legal & (games.legal - np.uint64(1))) == 0
            if not forced.any():
                return
            games.step_randomly(forced)

    def _settle(self, ended: Int64Array) -> None:
        """Write the results of ended games, int64[N], to their positions."""
        for game in ended:
            places = self.histories.places[game, : self.histories.lengths[game]]
            positions, winner = self.buffer.positions[places], int(self.games.winners[game])
            sign = np.where(movers(positions) == winner, 1.0, -1.0) * (winner >= 0)
            ahead = float(self.games.plies[game]) - positions[:, PLY].astype(np.int64) - 1.0
            self.buffer.results[places] = sign * self.config.gamma**ahead

    def play(self) -> GameTotals:
        """Play ``config.rollout`` searched actions in every game.

        Returns:
            sums over the games that ended.
        """
        games, totals = self.games, GameTotals()
        self.search.sync_weights(self._network)
        for _ in range(self.config.rollout):
            output = self.search.search(games.positions, games.rng)
            places = self.buffer.add(games.positions, games.legal, output)
            self.histories.add(places)
            games.step(output.actions)
            self._play_forced(totals)
        return totals

    @override
    def targets(self, index: Int64Array) -> Targets:
        """Return what the search and the results say about the buffer's positions int64[N]."""
        buffer, to_device = self.buffer, self.replica.to_device
        share = np.float32(self.method_config.search_value)
        results = share * buffer.values[index] + (1 - share) * buffer.results[index]
        _, legal_actions = list_legal_actions(buffer.legal[index])
        values, weights = np.empty((2, len(legal_actions)), np.float32)
        action_targets(
            legal_actions,
            buffer.actions[index],
            results,
            buffer.qvalues[index],
            share,
            values,
            weights,
        )
        policies = buffer.policies[index]
        return Targets(*[to_device(one) for one in (legal_actions, policies, values, weights)])

    @override
    def draw_minibatches(self, count: int) -> None:
        share, rng = self.config.minibatch // self.config.workers, self.games.generator
        self.minibatches = [np.sort(self.buffer.draw(rng, share)) for _ in range(count)]

    @override
    def loss(self, index: Int64Array, targets: Targets) -> tuple[Tensor, Tensor]:
        """See :meth:`Worker.loss`: the loss is the cross-entropy to the search's policy, plus
        ``value_weight`` times the squared error of the values, plus the loss of the NNUE."""
        buffer = self.buffer
        encodings, legal_actions, _ = encode(
            self.games.engine.rules, buffer.positions[index], buffer.legal[index]
        )
        logits, values = self.replica.network(torch.from_numpy(encodings))
        logits, values = logits[: len(legal_actions)], values[: len(legal_actions)]
        log_probs = log_softmax(logits, targets.legal_actions >> 6, len(index))
        stats = search_statistics(log_probs, values, targets)
        nnue_loss = self.nnue_loss(index, legal_actions, values.detach().cpu().numpy())
        loss = stats[0] + self.method_config.value_weight * stats[1] + nnue_loss
        return loss, torch.cat([stats, nnue_loss[None]])

    def nnue_loss(
        self, index: Int64Array, legal_actions: Int64Array, values: Float32Array
    ) -> Tensor:
        """Return the loss of the NNUE.

        It is the sum of two means: over the boards after each legal action, whose values the
        network knows, and over other positions of the buffer, with the values of their searches.

        Args:
            index: int64[N], positions of the buffer.
            legal_actions: int64[K], their legal actions (position * 64 + action).
            values: float32[K], the network's values of these actions.
        """
        nnue, engine, buffer = self.replica.nnue, self.games.engine, self.buffer
        assert nnue is not None
        positions = buffer.positions[index]
        before, actions = np.divmod(legal_actions, 64)
        after, legal = positions[before], buffer.legal[index][before]
        winners = np.full(len(actions), -1, np.int8)
        engine.step(after, actions, legal, winners)
        running = winners < 0
        same_mover = movers(after) == movers(positions)[before]
        results = np.where(same_mover, values, -values)[running]
        loss = nnue.loss(after[running], chances(results)) / max(1, len(results))
        ratio = self.method_config.nnue_replay_ratio / self.method_config.replay_ratio
        drawn = buffer.draw(self.games.generator, round(ratio * len(index)))
        if len(drawn):
            searched = nnue.loss(buffer.positions[drawn], chances(buffer.values[drawn]))
            loss = loss + searched / len(drawn)
        return loss

    # How a worker is saved.

    @override
    def state(self) -> Arrays:
        arrays = super().state()
        if self.method_config.keep_buffer:
            arrays |= join("buffer", self.buffer.state()) | join("history", self.histories.state())
        return arrays

    @override
    def load(self, arrays: Arrays) -> None:
        super().load(arrays)
        if self.method_config.keep_buffer:
            self.buffer.load(part("buffer", arrays), self.games.engine)
            self.histories.load(part("history", arrays), self.buffer)
        else:  # the games continue without their past
            self.histories.lengths[:] = 0


class AlphaZeroTrainer(Trainer[AlphaZeroWorker, AlphaZeroConfig]):
    """A run guided by search; see the module's docstring."""

    config_class = AlphaZeroConfig
    worker_class = AlphaZeroWorker

    @override
    def make_model(self) -> Model:
        return Model(PolicyNetwork(self.config.hidden), NNUEModel())

    @override
    def collect(self) -> dict[str, float]:
        return plies_per_game(self.map_workers(AlphaZeroWorker.play))

    @override
    def learn(self) -> dict[str, float]:
        config, alphazero = self.config, self.method_config
        settled = min(self.map_workers(lambda worker: worker.buffer.count_settled()))
        # While the buffer fills, most games are still running, so there is little to learn from.
        share = config.minibatch // config.workers
        enough = settled >= min(4 * share, alphazero.buffer // config.workers // 2)
        # The total after each update is rounded, so no fractions are lost.
        per_update = config.steps_per_update * alphazero.replay_ratio / config.minibatch
        minibatches = int((self.update + 1) * per_update) - int(self.update * per_update)
        if not enough or not minibatches:
            return {"gradient_norm": 0.0}
        return self.take_steps(minibatches)
