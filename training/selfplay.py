"""THE self-play loop: one worker's games, the policy's side of them recorded to learn from.

A worker is one thread with its own games, engine and copy of the network. In part of
its games one seat is played by a past self; that seat's actions, like the random
actions that open a game, are recorded but not learnt from.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agents.nets.encoding import encode, padded_encodings
from agents.nets.features import ENCODING_SIZE
from agents.nets.legal_actions import (
    best_legal_actions,
    find_legal_actions,
    gather_encodings,
    sample_actions,
)
from agents.nets.network import PolicyNetwork
from bao_env.engine.batch import random_actions
from bao_env.engine.position import PLY, movers
from training.config import TrainConfig
from training.loss import STATS, advantages, ppo_gradient
from training.worker import GameWorker

_CHUNK: Final = 2048
"""Decisions that go through the network at a time while learning: their activations stay in
the second-level cache."""


@dataclass
class Rollout:
    """T actions in each of B games; every array is [T, B] unless noted."""

    rows: npt.NDArray[np.uint8]
    """uint8[capacity, ENCODING_SIZE], the network's rows of all decisions, one after another."""
    starts: npt.NDArray[np.int64]
    """Where the rows of a decision start."""
    masks: npt.NDArray[np.uint64]
    actions: npt.NDArray[np.int64]
    log_probs: npt.NDArray[np.float32]
    values: npt.NDArray[np.float32]
    """Expected result for the player who acts."""
    rewards: npt.NDArray[np.float32]
    """+1 or -1 to the player who acts, with the action that ends the game."""
    ends: npt.NDArray[np.bool_]
    passes: npt.NDArray[np.bool_]
    """The turn passed to the other player."""
    learns: npt.NDArray[np.bool_]
    """The action was the policy's own."""
    advantages: npt.NDArray[np.float32]


class _Outputs(NamedTuple):
    """What a network said of some positions."""

    rows: npt.NDArray[np.uint8]
    indptr: npt.NDArray[np.int64]
    masks: npt.NDArray[np.uint64]
    logits: npt.NDArray[np.float32]
    values: npt.NDArray[np.float32]


class _Draws(NamedTuple):
    """What was drawn for some positions."""

    actions: npt.NDArray[np.int64]
    log_probs: npt.NDArray[np.float32]
    expected: npt.NDArray[np.float32]


class Worker(GameWorker):
    """One thread's games and its copy of the network.

    Args:
        config: of the run.
        network: the float32 network whose weights the copy follows.
        seed: of this worker's games.
    """

    SAVED: ClassVar = (*GameWorker.SAVED, "opening_left")

    def __init__(
        self, config: TrainConfig, network: PolicyNetwork, seed: np.random.SeedSequence
    ) -> None:
        super().__init__(config, network, seed)
        self.rival = copy.deepcopy(network).to(self.dtype).requires_grad_(False)
        self.has_rival = False
        self.per_action = network.config.per_action

        size, steps = len(self.masks), config.rollout
        self.opening_left = np.zeros(size, np.int64)
        self._restart(np.arange(size))
        pool_games = round(config.pool_games * size)
        # The seat of the past self in each game; -1 = none. Both seats come equally often.
        self.rival_seat = np.full(size, -1, np.int8)
        self.rival_seat[:pool_games] = np.arange(pool_games) % 2

        self.rollout = Rollout(
            rows=np.empty((steps * size * (6 if self.per_action else 1), ENCODING_SIZE), np.uint8),
            starts=np.empty((steps, size), np.int64),
            masks=np.empty((steps, size), np.uint64),
            actions=np.empty((steps, size), np.int64),
            log_probs=np.empty((steps, size), np.float32),
            values=np.empty((steps, size), np.float32),
            rewards=np.empty((steps, size), np.float32),
            ends=np.empty((steps, size), np.bool_),
            passes=np.empty((steps, size), np.bool_),
            learns=np.empty((steps, size), np.bool_),
            advantages=np.empty((steps, size), np.float32),
        )
        self._random = np.empty(size, np.int64)
        self._batches: list[npt.NDArray[np.int64]] = []

    def _restart(self, index: npt.NDArray[np.int64]) -> None:
        """Start games anew."""
        self.set_up(index)
        self.opening_left[index] = self.draw_opening_lengths(len(index))

    def choose_rival(self, pool: list[dict[str, Tensor]]) -> None:
        """Draw the past self that this worker's next rollout meets."""
        self.has_rival = bool(pool)
        if pool:
            self.rival.load_state_dict(pool[int(self.generator.integers(len(pool)))])

    def _forward(
        self, network: PolicyNetwork, index: npt.NDArray[np.int64] | None = None
    ) -> _Outputs:
        """What a network says of all games, or of some."""
        positions, masks = self.positions, self.masks
        if index is not None:
            positions, masks = positions[index], masks[index]
        rows, legal_actions, indptr = encode(self.engine.rules, positions, masks, self.per_action)
        with torch.inference_mode():
            logits, values = network(self.inputs(rows, legal_actions))
        return _Outputs(rows, indptr, masks, logits.cpu().numpy(), values.cpu().numpy())

    def _draw(self, outputs: _Outputs, index: npt.NDArray[np.int64] | None = None) -> _Draws:
        """An action for each position, drawn by its game's generator."""
        size = len(outputs.masks)
        rng = self.rng if index is None else self.rng[index]
        draws = _Draws(
            np.empty(size, np.int64), np.empty(size, np.float32), np.empty(size, np.float32)
        )
        sample_actions(
            outputs.logits,
            outputs.values,
            outputs.indptr,
            outputs.masks,
            self.per_action,
            rng,
            *draws,
        )
        if index is not None:
            self.rng[index] = rng
        return draws

    def _record_rows(self, t: int, outputs: _Outputs, filled: int) -> int:
        """Keep the network's rows of step t; returns how many rows are kept now."""
        roll = self.rollout
        count = int(outputs.indptr[-1]) if self.per_action else len(outputs.masks)
        end = filled + count
        if end > len(roll.rows):
            more = np.empty((max(end, 2 * len(roll.rows)), roll.rows.shape[1]), np.uint8)
            more[:filled] = roll.rows[:filled]
            roll.rows = more
        roll.rows[filled:end] = outputs.rows[:count]
        within = outputs.indptr[:-1] if self.per_action else np.arange(len(outputs.masks))
        roll.starts[t] = filled + within
        return end

    def collect(self) -> dict[str, float]:
        """Play ``config.rollout`` actions in every game; returns sums over the ended games."""
        roll, config = self.rollout, self.config
        totals = {"games": 0.0, "plies": 0.0, "pool_games": 0.0, "pool_points": 0.0}
        rival_seat = self.rival_seat if self.has_rival else np.full_like(self.rival_seat, -1)
        filled = 0
        for t in range(config.rollout):
            roll.masks[t] = self.masks
            outputs = self._forward(self.replica)
            filled = self._record_rows(t, outputs, filled)
            roll.actions[t], roll.log_probs[t], roll.values[t] = self._draw(outputs)
            seats = movers(self.positions)
            others = np.flatnonzero(rival_seat == seats)
            if len(others):
                outputs = self._forward(self.rival, others)
                if config.rival:
                    chosen = np.empty(len(others), np.int64)
                    best_legal_actions(outputs.logits, outputs.indptr, outputs.masks, chosen)
                    roll.actions[t, others] = chosen
                else:
                    roll.actions[t, others] = self._draw(outputs, others).actions
            opens = self.opening_left > 0
            random_actions(self.masks, self.rng, self._random)
            np.copyto(roll.actions[t], self._random, where=opens)
            self.opening_left -= opens
            roll.learns[t] = ~opens & (rival_seat != seats)

            self.engine.step(self.positions, roll.actions[t], self.masks, self.winners)
            won = self.winners >= 0
            roll.rewards[t] = np.where(won, np.where(self.winners == seats, 1.0, -1.0), 0.0)
            roll.ends[t] = won | (self.positions[:, PLY] >= config.max_plies)
            roll.passes[t] = movers(self.positions) != seats
            ended = np.flatnonzero(roll.ends[t])
            if len(ended):
                totals["games"] += len(ended)
                totals["plies"] += float(self.positions[ended, PLY].sum())
                met = ended[rival_seat[ended] >= 0]
                totals["pool_games"] += len(met)
                points = np.where(self.winners[met] < 0, 0.5, self.winners[met] != rival_seat[met])
                totals["pool_points"] += float(points.sum())
                self._restart(ended)
        rng = self.rng.copy()
        next_values = self._draw(self._forward(self.replica)).expected
        self.rng = rng  # that draw was only for the expected results
        advantages(
            roll.rewards,
            roll.values,
            next_values,
            roll.ends,
            roll.passes,
            np.float32(config.gamma),
            np.float32(config.gae_lambda),
            roll.advantages,
        )
        return totals

    def deal(self, batches: int) -> list[int]:
        """Shuffle the rows to learn from into ``batches`` parts; returns their sizes."""
        rows = self.generator.permutation(np.flatnonzero(self.rollout.learns))
        self._batches = np.array_split(rows, batches)
        return [len(part) for part in self._batches]

    def learnt_values(self) -> npt.NDArray[np.float32]:
        """What was expected where there is something to learn from, float32[rows]."""
        return self.rollout.values[self.rollout.learns]

    def learnt_advantages(self) -> npt.NDArray[np.float32]:
        """The advantages to learn from, float32[rows]."""
        return self.rollout.advantages[self.rollout.learns]

    def gradient(
        self, batch: int, rows: int, mean: float, deviation: float, entropy_weight: float
    ) -> npt.NDArray[np.float64]:
        """Compute this worker's part of a minibatch's gradient, into ``gradients``.

        Args:
            batch: which part, as dealt.
            rows: decisions in the minibatch over all workers.
            mean, deviation: of the advantages, to normalise them.
            entropy_weight: of the entropy bonus.

        Returns the sums of :data:`training.loss.STATS`.
        """
        stats = np.zeros(len(STATS))
        self.clear_gradients()
        index = self._batches[batch]
        for low in range(0, len(index), _CHUNK):
            self._accumulate(
                index[low : low + _CHUNK], rows, mean, deviation, entropy_weight, stats
            )
        return stats

    def _accumulate(
        self,
        index: npt.NDArray[np.int64],
        rows: int,
        mean: float,
        deviation: float,
        entropy_weight: float,
        stats: npt.NDArray[np.float64],
    ) -> None:
        """Add the gradient of some decisions."""
        roll = self.rollout
        masks, actions = roll.masks.reshape(-1)[index], roll.actions.reshape(-1)[index]
        indptr, legal_actions, chosen = find_legal_actions(masks, actions)
        counts = np.diff(indptr) if self.per_action else np.ones(len(index), np.int64)
        rows_read = padded_encodings(int(counts.sum()))
        gather_encodings(roll.rows, roll.starts.reshape(-1)[index], counts, rows_read)
        advantage = roll.advantages.reshape(-1)[index]

        def gradient(logits: Any, values: Any, logit_gradient: Any, value_gradient: Any) -> None:
            ppo_gradient(
                logits,
                values,
                indptr,
                chosen,
                chosen if self.per_action else np.arange(len(index)),
                roll.log_probs.reshape(-1)[index],
                (advantage - np.float32(mean)) / np.float32(deviation),
                advantage + roll.values.reshape(-1)[index],
                np.float32(1.0 / rows),
                np.float32(self.config.clip),
                np.float32(self.config.value_weight),
                np.float32(entropy_weight),
                logit_gradient,
                value_gradient,
                stats,
            )

        self.add_gradient(rows_read, legal_actions, gradient)
