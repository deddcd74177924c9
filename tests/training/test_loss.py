"""Compare the objective of search-guided training with its formula, decision by decision."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from bao_training.replay_buffer import NOT_VISITED
from bao_training.search_guided import Targets, action_targets, search_statistics
from bao_training.worker import log_softmax

SIZE = 300


def decisions(rng: np.random.Generator) -> tuple[np.ndarray, Tensor, Tensor]:
    """Return position * 64 + action of all legal actions, the owners, and log probabilities."""
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
    position, action = legal_actions >> 6, legal_actions & 63
    policies = np.zeros((SIZE, 64), np.uint8)
    policies[position, action] = rng.integers(1, 200, len(legal_actions))
    first = np.unique(position, return_index=True)[1]
    played = action[first].astype(np.uint8)
    results = rng.uniform(-1, 1, SIZE).astype(np.float32)
    qvalues = np.full((SIZE, 64), NOT_VISITED, np.int8)
    half = rng.random(len(legal_actions)) < 0.5
    qvalues[position[half], action[half]] = rng.integers(-127, 128, half.sum())
    targets, weights = np.empty((2, len(legal_actions)), np.float32)
    action_targets(legal_actions, played, results, qvalues, np.float32(0.3), targets, weights)
    for k, (i, a) in enumerate(zip(position, action, strict=True)):
        if a == played[i]:
            assert (targets[k], weights[k]) == (results[i], 1.0)
        elif qvalues[i, a] == NOT_VISITED:
            assert weights[k] == 0.0
        else:
            assert targets[k] == pytest.approx(qvalues[i, a] / 127)
            assert weights[k] == pytest.approx(0.3)
    values = rng.uniform(-1, 1, len(targets))
    arrays = (legal_actions, policies, targets, weights)
    made = Targets(*map(torch.from_numpy, arrays))
    found = search_statistics(log_probs, torch.from_numpy(values), made)
    expected = np.zeros(4)
    for i in range(SIZE):
        mine = log_probs[owners == i].numpy()
        target = policies[i, action[position == i]].astype(float)
        expected[0] -= (target / target.sum() * mine).sum()
        expected[2] -= (np.exp(mine) * mine).sum()
        expected[3] += mine.argmax() == target.argmax()
    expected[1] = (weights * (values - targets) ** 2).sum()
    np.testing.assert_allclose(found, expected / SIZE, rtol=1e-5)
