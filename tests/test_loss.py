"""The compiled PPO objective against torch, and advantages against their definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from training.loss import STATS, advantages, ppo_gradient


@pytest.mark.parametrize("per_option", [False, True])
def test_gradient_is_torchs(per_option: bool) -> None:
    """Values of positions (``board``) and of options (``moves``)."""
    rng = np.random.default_rng(0)
    size, clip, value_weight, entropy_weight = 500, 0.2, 0.7, 0.03
    counts = rng.integers(1, 9, size)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    chosen = offsets[:-1] + rng.integers(0, counts)
    judged = chosen if per_option else np.arange(size)
    logits = rng.normal(0, 2, offsets[-1]).astype(np.float32)
    values = np.tanh(rng.normal(0, 1, offsets[-1] if per_option else size)).astype(np.float32)
    old = (-rng.exponential(1.0, size)).astype(np.float32)
    advantage = rng.normal(0, 1, size).astype(np.float32)
    returns = rng.normal(0, 1, size).astype(np.float32)
    logit_gradient = np.full(len(logits), 9, np.float32)
    value_gradient = np.full(len(values), 9, np.float32)
    stats = np.zeros(len(STATS))
    ppo_gradient(
        logits,
        values,
        offsets,
        chosen,
        judged,
        old,
        advantage,
        returns,
        np.float32(1 / size),
        np.float32(clip),
        np.float32(value_weight),
        np.float32(entropy_weight),
        logit_gradient,
        value_gradient,
        stats,
    )

    flat = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    judgements = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    dense = torch.full((size, 8), -torch.inf, dtype=torch.float64)
    owner = np.repeat(np.arange(size), counts)
    column = np.arange(len(logits)) - offsets[owner]
    dense[owner, column] = flat
    logs = dense.log_softmax(1)
    change = logs[np.arange(size), chosen - offsets[:-1]] - torch.tensor(old)
    ratio = change.exp()
    gain = torch.tensor(advantage)
    policy_loss = -torch.minimum(ratio * gain, ratio.clamp(1 - clip, 1 + clip) * gain)
    value_loss = 0.5 * (judgements[judged] - torch.tensor(returns)) ** 2
    entropy = -(logs.exp() * logs.masked_fill(torch.isinf(logs), 0.0)).sum(1)
    loss = (policy_loss + value_weight * value_loss - entropy_weight * entropy).mean()
    loss.backward()

    assert flat.grad is not None and judgements.grad is not None
    np.testing.assert_allclose(logit_gradient, flat.grad, atol=2e-7)
    np.testing.assert_allclose(value_gradient, judgements.grad, atol=1e-7)
    expected = [
        policy_loss.sum(),
        value_loss.sum(),
        entropy.sum(),
        (ratio - 1 - change).sum(),
        ((ratio - 1).abs() > clip).sum(),
    ]
    np.testing.assert_allclose(stats, [x.item() for x in expected], rtol=1e-4)


@pytest.mark.parametrize("gamma, lam", [(1.0, 1.0), (0.99, 0.9), (1.0, 0.0)])
def test_advantages_follow_their_definition(gamma: float, lam: float) -> None:
    rng = np.random.default_rng(1)
    steps, games = 12, 40
    rewards = rng.normal(size=(steps, games)).astype(np.float32)
    values = rng.normal(size=(steps + 1, games)).astype(np.float32)
    ends = rng.random((steps, games)) < 0.15
    passes = rng.random((steps, games)) < 0.8
    out = np.empty((steps, games), np.float32)
    advantages(
        rewards, values[:-1], values[-1], ends, passes, np.float32(gamma), np.float32(lam), out
    )
    for b in range(games):
        for t in range(steps):
            total, weight = 0.0, 1.0  # eq. 16, each later error seen by the player of step t
            for k in range(t, steps):
                sign = 0.0 if ends[k, b] else (-1.0 if passes[k, b] else 1.0)
                error = rewards[k, b] + gamma * sign * values[k + 1, b] - values[k, b]
                total += weight * error
                weight *= gamma * lam * sign
            assert out[t, b] == pytest.approx(total, abs=1e-4)
