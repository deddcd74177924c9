"""The compiled objectives against torch, and advantages against their definition."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from training.loss import (
    NOT_VISITED,
    PPO_STATS,
    PpoBatch,
    action_targets,
    advantages,
    ppo_gradient,
    search_gradient,
    torch_gradient,
)


def clipped(batch: PpoBatch) -> Tensor:
    """Return PPO's objective."""
    ratio = (batch.log_probs[batch.chosen] - batch.old_log_probs).exp()
    limited = ratio.clamp(1 - batch.clip, 1 + batch.clip)
    policy = -torch.minimum(ratio * batch.advantages, limited * batch.advantages).sum()
    value = 0.5 * (batch.values - batch.returns).square().sum()
    entropy = -(batch.log_probs.exp() * batch.log_probs).sum()
    return policy + batch.value_weight * value - batch.entropy_weight * entropy


@pytest.mark.parametrize("per_action", [False, True])
def test_ppo_gradient_is_torchs(per_action: bool) -> None:
    """With values of positions (``board``) and of legal actions (``moves``), and padding."""
    rng = np.random.default_rng(0)
    size, padding = 500, 30
    counts = rng.integers(1, 9, size)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    chosen = indptr[:-1] + rng.integers(0, counts)
    rows = indptr[-1] + padding if per_action else size + padding
    logits = rng.normal(0, 2, rows if per_action else indptr[-1]).astype(np.float32)
    values = np.tanh(rng.normal(0, 1, rows)).astype(np.float32)
    old = (-rng.exponential(1.0, size)).astype(np.float32)
    advantage, returns = rng.normal(0, 1, (2, size)).astype(np.float32)
    arguments = (logits, values, indptr, chosen, chosen if per_action else np.arange(size))
    weights = np.array([1 / size, 0.2, 0.7, 0.03], np.float32)  # scale, clip, value, entropy
    batches: list[PpoBatch] = []

    def loss(batch: PpoBatch) -> Tensor:
        batches.append(batch)
        return clipped(batch)

    filled: list[list[np.ndarray]] = []
    gradients: list[Callable[..., None]] = [ppo_gradient, torch_gradient(loss)]
    for gradient in gradients:
        filled.append([np.zeros_like(logits), np.zeros_like(values), np.zeros(len(PPO_STATS))])
        gradient(*arguments, old, advantage, returns, *weights, *filled[-1])
    compiled, torchs = filled
    np.testing.assert_allclose(compiled[0], torchs[0], atol=1e-6)
    np.testing.assert_allclose(compiled[1], torchs[1], atol=1e-6)

    [batch] = batches
    for low, high in pairwise(indptr):
        expected = torch.from_numpy(logits[low:high]).log_softmax(0)
        torch.testing.assert_close(batch.log_probs[low:high], expected)
    change = batch.log_probs[chosen] - batch.old_log_probs
    ratio = change.exp()
    plain = batch._replace(value_weight=0.0, entropy_weight=0.0)
    stats = [
        clipped(plain),
        clipped(plain._replace(value_weight=1.0)) - clipped(plain),
        clipped(plain) - clipped(plain._replace(entropy_weight=1.0)),
        (ratio - 1 - change).sum(),
        ((ratio - 1).abs() > batch.clip).sum(),
    ]
    np.testing.assert_allclose(compiled[2], [stat.item() for stat in stats], rtol=1e-4)


@pytest.mark.parametrize("gamma, lam", [(1.0, 1.0), (0.99, 0.9), (1.0, 0.0)])
def test_advantages_follow_their_definition(gamma: float, lam: float) -> None:
    rng = np.random.default_rng(1)
    steps, games = 12, 40
    rewards = rng.normal(size=(steps, games)).astype(np.float32)
    values = rng.normal(size=(steps + 1, games)).astype(np.float32)
    dones = rng.random((steps, games)) < 0.15
    turn_passed = rng.random((steps, games)) < 0.8
    out = np.empty((steps, games), np.float32)
    advantages(
        rewards,
        values[:-1],
        values[-1],
        dones,
        turn_passed,
        np.float32(gamma),
        np.float32(lam),
        out,
    )
    for b in range(games):
        for t in range(steps):
            total, weight = 0.0, 1.0  # eq. 16, each later error seen by the player of step t
            for k in range(t, steps):
                sign = 0.0 if dones[k, b] else (-1.0 if turn_passed[k, b] else 1.0)
                error = rewards[k, b] + gamma * sign * values[k + 1, b] - values[k, b]
                total += weight * error
                weight *= gamma * lam * sign
            assert out[t, b] == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("per_action", [False, True])
def test_search_gradient_is_torchs(per_action: bool) -> None:
    rng = np.random.default_rng(5)
    size = 40
    legal = rng.random((size, 64)) < 0.06
    legal[:, 7] = True
    place = np.nonzero(legal)
    indptr = np.concatenate([[0], np.cumsum(legal.sum(axis=1))])
    legal_actions = place[0] * 64 + place[1]
    policies = np.where(legal, rng.integers(1, 200, legal.shape), 0).astype(np.uint8)
    actions = legal.argmax(axis=1).astype(np.uint8)
    results = rng.uniform(-1, 1, size).astype(np.float32)
    visited = legal & (rng.random(legal.shape) < 0.5)
    qvalues = np.where(visited, rng.integers(-127, 128, legal.shape), NOT_VISITED).astype(np.int8)
    targets, weights = results, np.ones(size, np.float32)
    if per_action:
        targets, weights = np.empty((2, len(legal_actions)), np.float32)
        action_targets(legal_actions, actions, results, qvalues, np.float32(0.3), targets, weights)
        played, other = actions[place[0]] == place[1], visited[place]
        np.testing.assert_array_equal(targets[played], results)
        expected = qvalues[place] / 127
        np.testing.assert_allclose(targets[other & ~played], expected[other & ~played], rtol=1e-6)
        np.testing.assert_allclose(weights, np.where(played, 1, np.where(other, 0.3, 0)))
    logits = rng.normal(0, 1, len(legal_actions)).astype(np.float32)
    values = rng.uniform(-1, 1, len(targets)).astype(np.float32)
    found: list[np.ndarray] = [np.empty_like(logits), np.empty_like(values), np.zeros(4)]
    data = (logits, values, indptr, legal_actions, policies, targets, weights)
    search_gradient(*data, np.float32(0.25), np.float32(0.7), *found)

    x, v = torch.tensor(logits, requires_grad=True), torch.tensor(values, requires_grad=True)
    dense = torch.full(legal.shape, -torch.inf)
    dense[place] = x
    log_probs = dense.log_softmax(1)[place]
    target = torch.from_numpy(policies / policies.sum(axis=1, keepdims=True))[place]
    policy_loss = -(target * log_probs).sum()
    error = ((v - torch.tensor(targets)).square() * torch.tensor(weights)).sum()
    (0.25 * (policy_loss + 0.7 * error)).backward()
    for gradient, variable in zip(found, (x, v), strict=False):
        assert variable.grad is not None
        np.testing.assert_allclose(gradient, variable.grad.numpy(), atol=1e-6)
    entropy = -(log_probs.exp() * log_probs).sum()
    agreement = (dense.argmax(1).numpy() == policies.argmax(axis=1)).sum()
    stats = [policy_loss.item(), error.item(), entropy.item(), agreement]
    np.testing.assert_allclose(found[2], stats, rtol=1e-4)
