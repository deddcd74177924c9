"""Train with TD(lambda) on afterstates by self-play; read from top to bottom.

The sources are Sutton and Barto, "Reinforcement Learning: An Introduction" (2nd edition 2018),
sections 6.8 (afterstates) and 12.1 (the lambda-return), and Tesauro, "Temporal Difference Learning
and TD-Gammon" (1995). The network values the board after each legal action, for the player who
chooses it. There is no policy to learn: a player takes the action with the highest value.

An update (:meth:`TdTrainer.train_update`):

1. Play: every worker plays ``rollout`` actions in each of its games (:meth:`TdWorker.play`). The
   player to move adds noise to the values and takes the best action, or occasionally a random one.
   Then each action gets its lambda-return: what the following positions turned out to be worth.
2. Learn: in ``epochs`` passes, in minibatches, the value of each action that was played moves
   towards its return (:meth:`TdWorker.targets`, :meth:`TdWorker.loss`).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from bao_agents.nets.compiled import Weights, compile_if_faster, evaluate_network
from bao_agents.nets.encoding import ENCODING_STEP, encode
from bao_agents.nets.features import ENCODING_SIZE
from bao_agents.support.array_types import Float32Array, Float64Array, Int64Array, Uint8Array
from bao_env.compiled.compile import jit
from bao_env.engine.bits import U, popcount, select_bit, xorshift
from bao_env.engine.position import Actions, Flags, Legal
from bao_env.engine.sampling import RandomStates
from bao_training.config import TdConfig, TrainConfig
from bao_training.trainer import Trainer, plies_per_game
from bao_training.worker import Games, Model, Worker


class Rollout:
    """T actions in each of B games; every array is [T, B] unless noted.

    Args:
        steps: T.
        games: B.
    """

    def __init__(self, steps: int, games: int) -> None:
        shape = (steps, games)
        self.encodings: Uint8Array = np.empty((steps, games, ENCODING_SIZE), np.uint8)
        """uint8[T, B, ENCODING_SIZE], the encodings of the boards after the actions played."""
        self.best_values: Float32Array = np.empty((steps + 1, games), np.float32)
        """float32[T + 1, B], the highest value for the player to move."""
        self.costs: Float32Array = np.empty(shape, np.float32)
        """How much less the played action is worth than the best one."""
        self.rewards: Float32Array = np.empty(shape, np.float32)
        """+1 or -1 for the player whose action ends the game, else 0."""
        self.dones: Flags = np.empty(shape, np.bool_)
        """Whether the game ended with this action."""
        self.turn_passed: Flags = np.empty(shape, np.bool_)
        """Whether the turn passed to the other player."""
        self.returns: Float32Array = np.empty(shape, np.float32)
        """The targets of the actions' values."""

    def step(self, t: int, games: Games, actions: Actions) -> Int64Array:
        """Play and record actions, int64[B]; return the indices of the games that end, int64[N]."""
        seats = games.seats
        games.step(actions)
        won = games.winners >= 0
        self.rewards[t] = np.where(won, np.where(games.winners == seats, 1.0, -1.0), 0.0)
        self.dones[t] = games.ended
        self.turn_passed[t] = games.seats != seats
        return np.flatnonzero(self.dones[t])


@jit
def choose_actions(
    values: Float32Array,
    indptr: Int64Array,
    legal: Legal,
    noise: np.float32,
    exploration: np.float32,
    rng: RandomStates,
    indices: Int64Array,
    actions: Actions,
    best_values: Float32Array,
) -> None:
    """Choose an action in each of B games: the best by noisy values, or a random one.

    The noise is Gumbel noise, so an action is taken with a probability proportional to
    exp(value / noise).

    Args:
        values: float32[K], the values of the legal actions of all games, game by game.
        indptr: int64[B + 1]; the values of game b are ``values[indptr[b] : indptr[b + 1]]``.
        legal: uint64[B], the legal actions.
        noise: the scale of the noise, float32; 0 for none.
        exploration: the probability of a random action, float32.
        rng: uint64[B], non-zero xorshift states, advanced in place.
        indices: int64[B], filled with the index in ``values`` of each action.
        actions: int64[B], filled with the actions.
        best_values: float32[B], filled with the highest value of each game.
    """
    for b in range(legal.shape[0]):
        low, high = indptr[b], indptr[b + 1]
        state = xorshift(rng[b])
        explores = np.float32(state >> U(40)) * np.float32(2.0**-24) < exploration
        state = xorshift(state)
        pick = low + np.int64((state >> U(32)) * popcount(legal[b]) >> U(32))
        top = np.float32(-np.inf)
        best_values[b] = values[low]
        for k in range(low, high):
            best_values[b] = max(best_values[b], values[k])
            state = xorshift(state)
            uniform = (np.float32(state >> U(40)) + np.float32(0.5)) * np.float32(2.0**-24)
            noisy = values[k] - noise * np.log(-np.log(uniform))
            if not explores and noisy > top:
                top = noisy
                pick = k
        rng[b] = state
        indices[b] = pick
        actions[b] = np.int64(select_bit(legal[b], U(pick - low)))


@jit
def lambda_returns(
    rewards: Float32Array,
    best_values: Float32Array,
    costs: Float32Array,
    dones: Flags,
    turn_passed: Flags,
    gamma: np.float32,
    lam: np.float32,
    max_cost: np.float32,
    returns: Float32Array,
) -> None:
    """Compute the lambda-return of each action, for the player who takes it.

    This is equation 12.20 of Sutton and Barto, with the value of the best action as the value of a
    position. A return is cut at an action that costs more than ``max_cost``: play that follows a
    bad, exploratory action says little about good play (compare Watkins's Q(lambda), section
    12.10).

    Args:
        rewards: float32[T, B], for the player who acts; only rewards at the end of games are read.
        best_values: float32[T + 1, B], the highest value of an action, for the player who acts.
        costs: float32[T, B], the highest value minus the value of the action taken.
        dones: bool[T, B], whether the game ended with this action.
        turn_passed: bool[T, B], whether the turn passed to the other player after this action.
        gamma: the discount per ply, float32.
        lam: lambda, float32.
        max_cost: the cost above which a return is cut, float32.
        returns: float32[T, B], filled with the returns.
    """
    steps = rewards.shape[0]
    for b in range(rewards.shape[1]):
        for t in range(steps - 1, -1, -1):
            if dones[t, b]:
                returns[t, b] = rewards[t, b]
                continue
            following = best_values[t + 1, b]
            if t + 1 < steps and costs[t + 1, b] <= max_cost:
                following += lam * (returns[t + 1, b] - following)
            sign = np.float32(-1.0) if turn_passed[t, b] else np.float32(1.0)
            returns[t, b] = gamma * sign * following


class TdWorker(Worker[TdConfig, Model]):
    """One thread's games, its copy of the network, and the rollout that it learns from."""

    STATS: ClassVar[tuple[str, ...]] = ("value_loss",)

    def __init__(
        self,
        config: TrainConfig,
        method_config: TdConfig,
        model: Model,
        seed: np.random.SeedSequence,
    ) -> None:
        super().__init__(config, method_config, model, seed)
        self.rollout: Rollout = Rollout(config.rollout, len(self.games))

    def play(self, exploration: float, weights: Weights | None = None) -> Int64Array:
        """Play ``config.rollout`` actions in every game; record them and their returns.

        Args:
            exploration: the probability of a random action.
            weights: the weights of the compiled network; None lets torch run the network.

        Returns:
            int64[2], the number of games that ended, and the sum of their plies.
        """
        rollout, games, totals = self.rollout, self.games, np.zeros(2, np.int64)
        size, noise = len(games), np.float32(self.method_config.noise)
        indices, actions = np.empty(size, np.int64), np.empty(size, np.int64)
        for t in range(self.config.rollout + 1):
            encodings, values, indptr = self._value_actions(weights)
            # Of the last position only the value is needed.
            last = t == self.config.rollout
            rng = games.rng.copy() if last else games.rng
            choose_actions(
                values,
                indptr,
                games.legal,
                noise,
                np.float32(exploration),
                rng,
                indices,
                actions,
                rollout.best_values[t],
            )
            if last:
                break
            rollout.encodings[t] = encodings[indices]
            rollout.costs[t] = rollout.best_values[t] - values[indices]
            ended = rollout.step(t, games, actions)
            totals += games.totals(ended)
            games.reset(ended)
        lambda_returns(
            rollout.rewards,
            rollout.best_values,
            rollout.costs,
            rollout.dones,
            rollout.turn_passed,
            np.float32(self.config.gamma),
            np.float32(self.method_config.td_lambda),
            np.float32(self.method_config.max_cost),
            rollout.returns,
        )
        return totals

    def _value_actions(
        self, weights: Weights | None
    ) -> tuple[Uint8Array, Float32Array, Int64Array]:
        """Value the K legal actions of all B games.

        Returns:
            encodings uint8[R, ENCODING_SIZE], of which the first K rows belong to the actions;
            values float32[K]; and indptr int64[B + 1].
        """
        games = self.games
        step = ENCODING_STEP if weights is None else 1
        encodings, legal_actions, indptr = encode(
            games.engine.rules, games.positions, games.legal, step
        )
        _, values = evaluate_network(self.replica.network, encodings, weights)
        return encodings, values[: len(legal_actions)], indptr

    def variances(self) -> Float64Array:
        """Return float64[2], the variance of the returns and the variance of the values' errors."""
        rollout = self.rollout
        values = rollout.best_values[:-1] - rollout.costs
        return np.array([rollout.returns.var(), (rollout.returns - values).var()], np.float64)

    @override
    def draw_minibatches(self, count: int) -> None:
        shuffled = self.games.generator.permutation(self.rollout.returns.size)
        self.minibatches: list[Int64Array] = np.array_split(shuffled, count)

    @override
    def targets(self, decisions: Int64Array) -> Float32Array:
        """Return float32[N], the lambda-returns of the actions at int64[N] in the rollout."""
        return self.rollout.returns.reshape(-1)[decisions]

    @override
    def loss(self, decisions: Int64Array, targets: Float32Array) -> tuple[Tensor, Tensor]:
        """See :meth:`Worker.loss`: the loss is the squared error of the values."""
        encodings = self.rollout.encodings.reshape(-1, ENCODING_SIZE)[decisions]
        _, values = self.replica.network(torch.from_numpy(encodings))
        loss = (values - self.replica.to_device(targets)).square().mean()
        return loss, loss[None]


class TdTrainer(Trainer[TdWorker, TdConfig]):
    """A run of TD(lambda); see the module's docstring."""

    worker_class = TdWorker
    COLUMNS: ClassVar[tuple[str, ...]] = ("exploration", "explained_variance")

    @override
    def make_model(self) -> Model:
        model = super().make_model()
        with torch.no_grad():  # the policy is not learnt: players choose by the values alone
            model.network.head.weight[0] = 0.0
            model.network.head.bias[0] = 0.0
        return model

    @override
    def collect(self) -> dict[str, float]:
        settings, progress = self.method_config, self.update / max(1, self.updates)
        exploration = settings.exploration + progress * (
            settings.final_exploration - settings.exploration
        )
        weights = compile_if_faster(self.workers[0].replica.network)
        totals = self.map_workers(TdWorker.play, exploration, weights)
        returns, errors = np.mean(self.map_workers(TdWorker.variances), axis=0)
        row = {"exploration": exploration, "explained_variance": 1.0 - errors / max(returns, 1e-8)}
        return row | plies_per_game(totals)

    @override
    def learn(self) -> dict[str, float]:
        minibatches = self.config.steps_per_update // self.config.minibatch
        return self.take_steps(minibatches, self.method_config.epochs)
