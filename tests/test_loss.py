"""The compiled PPO objective against torch, and advantages against their definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from training.loss import STATS, advantages, ppo_gradient


def random_batch(rng: np.random.Generator, rows: int) -> dict[str, np.ndarray]:
    legal = rng.random((rows, 64)) < 0.08
    legal[np.arange(rows), rng.integers(64, size=rows)] = True
    masks = np.array([sum(1 << int(a) for a in np.flatnonzero(row)) for row in legal], np.uint64)
    actions = np.array([rng.choice(np.flatnonzero(row)) for row in legal])
    return {
        "logits": rng.normal(0, 2, (rows, 64)).astype(np.float32),
        "values": np.tanh(rng.normal(0, 1, rows)).astype(np.float32),
        "legal": legal,
        "masks": masks,
        "actions": actions,
        "old": (-rng.exponential(1.0, rows)).astype(np.float32),
        "advantage": rng.normal(0, 1, rows).astype(np.float32),
        "returns": rng.normal(0, 1, rows).astype(np.float32),
    }


def test_gradient_is_torchs() -> None:
    batch = random_batch(np.random.default_rng(0), 500)
    clip, value_weight, entropy_weight = 0.2, 0.7, 0.03
    logit_gradient, value_gradient = np.full((500, 64), 9, np.float32), np.empty(500, np.float32)
    stats = np.zeros(len(STATS))
    ppo_gradient(
        batch["logits"],
        batch["values"],
        batch["masks"],
        batch["actions"],
        batch["old"],
        batch["advantage"],
        batch["returns"],
        np.float32(1 / 500),
        np.float32(clip),
        np.float32(value_weight),
        np.float32(entropy_weight),
        logit_gradient,
        value_gradient,
        stats,
    )

    logits = torch.tensor(batch["logits"], dtype=torch.float64, requires_grad=True)
    values = torch.tensor(batch["values"], dtype=torch.float64, requires_grad=True)
    masked = logits.masked_fill(~torch.tensor(batch["legal"]), -torch.inf)
    policy = torch.distributions.Categorical(logits=masked)
    change = policy.log_prob(torch.tensor(batch["actions"])) - torch.tensor(batch["old"])
    ratio = change.exp()
    gain = torch.tensor(batch["advantage"])
    policy_loss = -torch.minimum(ratio * gain, ratio.clamp(1 - clip, 1 + clip) * gain)
    value_loss = 0.5 * (values - torch.tensor(batch["returns"])) ** 2
    logs = masked.log_softmax(1)
    entropy = -(logs.exp() * logs.masked_fill(torch.isinf(logs), 0.0)).sum(1)
    loss = (policy_loss + value_weight * value_loss - entropy_weight * entropy).mean()
    loss.backward()

    np.testing.assert_allclose(logit_gradient, logits.grad, atol=2e-7)
    np.testing.assert_allclose(value_gradient, values.grad, atol=1e-7)
    assert (logit_gradient[~batch["legal"]] == 0).all()
    expected = [
        policy_loss.sum(),
        value_loss.sum(),
        entropy.sum(),
        (ratio - 1 - change).sum(),
        ((ratio - 1).abs() > clip).sum(),
    ]
    np.testing.assert_allclose(stats, [float(x) for x in expected], rtol=1e-4)


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
