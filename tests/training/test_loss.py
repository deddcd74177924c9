"""Compare the objective of search-guided training with its formula, decision by decision."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from bao_training.search_guided import Targets, search_statistics
from bao_training.worker import log_softmax

SIZE = 300


def decisions(rng: np.random.Generator) -> tuple[np.ndarray, Tensor, Tensor]:
    """Return position * 64 + action of all legal actions, the position of each, and log
    probabilities."""
    counts = rng.integers(1, 9, SIZE)
    legal_actions = np.concatenate(
        [i * 64 + np.sort(rng.choice(64, n, replace=False)) for i, n in enumerate(counts)]
    )
    owners = torch.from_numpy(legal_actions >> 6)
    logits = torch.from_numpy(rng.normal(0, 2, len(legal_actions)))
    log_probs = log_softmax(logits, owners, SIZE)
    for i in range(SIZE):
        torch.testing.assert_close(log_probs[owners == i], logits[owners == i].log_softmax(0))
    return legal_actions, owners, log_probs


def test_search_statistics() -> None:
    rng = np.random.default_rng(5)
    legal_actions, owners, log_probs = decisions(rng)
    action = torch.from_numpy(legal_actions & 63)
    values = torch.from_numpy(rng.uniform(-1, 1, len(legal_actions)))
    best = np.array([rng.choice(np.flatnonzero(owners == i)) for i in range(SIZE)])
    results = torch.from_numpy(rng.uniform(-1, 1, SIZE))
    targets = Targets(action[best], results)
    statistics = search_statistics(torch.from_numpy(legal_actions), log_probs, values, targets)
    expected = np.zeros(4)
    for i in range(SIZE):
        mine = log_probs[owners == i].numpy()
        expected[0] -= log_probs[best[i]]
        expected[1] += (values[best[i]] - results[i]) ** 2
        expected[2] -= (np.exp(mine) * mine).sum()
        expected[3] += log_probs[best[i]] == mine.max()
    np.testing.assert_allclose(statistics, expected / SIZE, rtol=1e-5)
