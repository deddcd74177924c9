"""Masked PPO: its update, and the pool of past selves."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from agents.nets.checkpoint import Arrays
from training.config import TrainConfig
from training.loss import STATS
from training.selfplay import Worker
from training.trainer import Trainer


class PpoTrainer(Trainer):
    """Every worker plays ``rollout`` actions in its games, against itself and in part against past
    selves; advantages are normalised over all workers; then ``epochs`` passes are learnt from."""

    COLUMNS: ClassVar[list[str]] = [
        "update",
        "steps",
        "seconds",
        "steps_per_second",
        "learning_rate",
        *STATS,
        "explained_variance",
        "gradient_norm",
        "plies_per_game",
        "score_against_pool",
        "score_against_random",
        "score_against_greedy",
    ]

    def __init__(self, config: TrainConfig) -> None:
        super().__init__(config)
        self.pool: list[dict[str, Tensor]] = []
        if config.rival:
            self.pool = [self.load_weights("rival", config.rival)]
        else:
            self._remember()

    def make_worker(self, seed: np.random.SeedSequence) -> Worker:
        """See :meth:`Trainer.make_worker`."""
        return Worker(self.config, self.network, seed)

    def train_update(self) -> dict[str, float]:
        """One rollout and what is learnt from it; returns the row of metrics."""
        config, start = self.config, time.perf_counter()
        rate = self.set_learning_rate()
        entropy_weight = config.entropy_weight * rate / max(config.learning_rate, 1e-12)

        self.each("follow", self.network)
        self.each("choose_rival", self.pool)
        totals = self.each("collect")
        learnt = np.concatenate(self.each("learnt_advantages"))
        mean, deviation = float(learnt.mean()), float(learnt.std()) + 1e-8
        stats = np.zeros(len(STATS))
        rows, norm = 0, 0.0
        batches = config.envs * config.rollout // config.minibatch
        for _ in range(config.epochs):
            sizes = np.sum(self.each("deal", batches), axis=0)
            for batch in range(batches):
                size = int(sizes[batch])
                if not size:
                    continue
                results = self.each("gradient", batch, size, mean, deviation, entropy_weight)
                stats += np.sum(results, axis=0)
                rows += size
                norm += self.descend()
        row = self.finish_update(start)
        if self.update % config.pool_every == 0 and not config.rival:
            self._remember()
        row |= {
            "learning_rate": rate,
            **dict(zip(STATS, (stats / max(1, rows)).tolist(), strict=True)),
            "explained_variance": self._explained_variance(),
            "gradient_norm": norm / (config.epochs * batches),
        }
        games = sum(total["games"] for total in totals)
        met = sum(total["pool_games"] for total in totals)
        if games:
            row["plies_per_game"] = sum(total["plies"] for total in totals) / games
        if met and self.workers[0].has_rival:
            row["score_against_pool"] = sum(total["pool_points"] for total in totals) / met
        return row

    def _explained_variance(self) -> float:
        """How much of the returns' variance the values explained in the last rollout."""
        errors = np.concatenate(self.each("learnt_advantages"))
        values = np.concatenate(self.each("learnt_values"))
        spread = float((errors + values).var())
        return 1.0 - float(errors.var()) / spread if spread > 0.0 else 0.0

    def _remember(self) -> None:
        """Add the network to the pool of past selves; the untrained first one stays in it."""
        past = {name: t.detach().clone() for name, t in self.network.state_dict().items()}
        if len(self.pool) < self.config.pool_size:
            self.pool.append(past)
        else:
            self.pool[int(self.generator.integers(1, len(self.pool)))] = past

    def own_state(self) -> tuple[Arrays, dict[str, Any]]:
        """See :meth:`Trainer.own_state`."""
        arrays: Arrays = {
            f"pool.{i}.{name}": t.cpu().numpy()
            for i, past in enumerate(self.pool)
            for name, t in past.items()
        }
        return arrays, {"pool": len(self.pool)}

    def take_own_state(self, arrays: Arrays, info: dict[str, Any]) -> None:
        """See :meth:`Trainer.take_own_state`."""
        names = list(self.network.state_dict())
        self.pool = [
            {name: torch.from_numpy(arrays[f"pool.{i}.{name}"].copy()) for name in names}
            for i in range(info["pool"])
        ]
