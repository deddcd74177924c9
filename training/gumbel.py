"""Search-guided self-play: the update of a trainer like AlphaZero, with Gumbel search.

Danihelka et al., "Policy improvement by planning with Gumbel" (2022): the network learns the
improved policy of its own searches and the results of the games that they play.
"""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np

from training.loss import SEARCH_STATS
from training.searchplay import SearchWorker
from training.trainer import Trainer


class GumbelTrainer(Trainer):
    """Every worker searches and plays ``rollout`` actions in its games; then minibatches are drawn
    from the latest ``buffer`` positions, so many that each is learnt from ``passes`` times."""

    OPPONENTS: ClassVar[tuple[str, ...]] = ("greedy", "alphabeta:2", "alphabeta:4")
    COLUMNS: ClassVar[list[str]] = [
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
    ]

    def make_worker(self, seed: np.random.SeedSequence) -> SearchWorker:
        """See :meth:`Trainer.make_worker`."""
        return SearchWorker(self.config, self.network, seed)

    def train_update(self) -> dict[str, float]:
        """Searched actions in every game, and what is learnt; returns the row of metrics."""
        config, start = self.config, time.perf_counter()
        rate = self.set_learning_rate()
        self.each("follow", self.network)
        totals = self.each("collect")
        searched = time.perf_counter()
        known = self.each("known")
        share = config.minibatch // config.workers
        new = config.envs * config.rollout
        # While the buffer fills, games that have not ended yet leave little to learn from.
        enough = min(known) >= min(4 * share, config.buffer // config.workers // 2)
        # So many batches in all after each update, that fractions are not lost.
        each = new * config.passes / config.minibatch
        batches = int((self.update + 1) * each) - int(self.update * each) if enough else 0
        stats, norm = np.zeros(len(SEARCH_STATS)), 0.0
        for _ in range(batches):
            stats += np.sum(self.each("gradient", share, config.minibatch), axis=0)
            norm += self.descend()
        network = sum(total["network_seconds"] for total in totals) / config.workers
        row = self.finish_update(start)
        now = time.perf_counter()
        row |= {
            "learning_rate": rate,
            "simulations_per_second": new * config.simulations / (searched - start),
            "search_share": (searched - start - network) / (now - start),
            "learn_share": (now - searched) / (now - start),
            "gradient_norm": norm / max(1, batches),
        }
        if network:  # on a GPU; else it is compiled into the search
            row["network_share"] = network / (now - start)
        if batches:
            means = (stats / (batches * config.minibatch)).tolist()
            row |= dict(zip(SEARCH_STATS, means, strict=True))
        games = sum(total["games"] for total in totals)
        if games:
            row["plies_per_game"] = sum(total["plies"] for total in totals) / games
        return row
