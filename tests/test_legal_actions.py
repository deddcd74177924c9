"""Test legal actions as flat arrays: listed, drawn and chosen."""

from __future__ import annotations

import numpy as np

from bao_agents.nets.legal_actions import (
    best_legal_actions,
    probabilities,
    sample_actions,
)
from bao_env.engine.sampling import random_states


def test_draws_follow_the_softmax() -> None:
    size = 40_000
    masks = np.full(size, 0b1011 << 7, np.uint64)
    indptr = 3 * np.arange(size + 1)
    logits = np.tile(np.log([0.2, 0.5, 0.3]).astype(np.float32), size)
    values = np.tile(np.array([1.0, -1.0, 0.0], np.float32), size)
    rng = random_states(size, 0)
    actions, log_probs, expected = sample_actions(logits, values, indptr, masks, True, rng)
    for action, p in ((7, 0.2), (8, 0.5), (10, 0.3)):
        drawn = actions == action
        assert abs(drawn.mean() - p) < 5 * np.sqrt(p * (1 - p) / size)
        np.testing.assert_allclose(log_probs[drawn], np.log(p), atol=1e-5)
    np.testing.assert_allclose(expected, 0.2 - 0.5, atol=1e-5)


def test_best_legal_actions() -> None:
    masks = np.array([0b1010, 0, 0b100, 0b11], np.uint64)
    indptr = np.array([0, 2, 2, 3, 5])
    actions = best_legal_actions(np.array([1, 2, 0, 5, 5], np.float32), indptr, masks)
    assert actions.tolist() == [3, 0, 2, 0]


def test_probabilities_are_the_softmax() -> None:
    logits = np.log(np.array([1.0, 2.0, 5.0], np.float32)) + 700  # exp() alone would overflow
    np.testing.assert_allclose(probabilities(logits), [0.125, 0.25, 0.625], rtol=1e-4)
