"""Test legal actions as flat arrays: chosen by their logits, and their probabilities."""

from __future__ import annotations

import numpy as np

from bao_agents.nets.legal_actions import (
    best_legal_actions,
    probabilities,
)


def test_best_legal_actions() -> None:
    masks = np.array([0b1010, 0, 0b100, 0b11], np.uint64)
    indptr = np.array([0, 2, 2, 3, 5])
    actions = best_legal_actions(np.array([1, 2, 0, 5, 5], np.float32), indptr, masks)
    assert actions.tolist() == [3, 0, 2, 0]


def test_probabilities_are_the_softmax() -> None:
    logits = np.log(np.array([1.0, 2.0, 5.0], np.float32)) + 700  # exp() alone would overflow
    np.testing.assert_allclose(probabilities(logits), [0.125, 0.25, 0.625], rtol=1e-4)
