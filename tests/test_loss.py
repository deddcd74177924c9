"""The compiled PPO objective against torch, and advantages against their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from training.alphazero import SEARCH_STATS, action_targets, search_gradient
from training.ppo import PPO_STATS, Decisions, advantages, ppo_gradient
from training.replay_buffer import NOT_VISITED


@pytest.mark.parametrize("per_action", [False, True])
def test_gradient_is_torchs(per_action: bool) -> None:
    """Values of positions (``board``) and of legal actions (``moves``)."""
    rng = np.random.default_rng(0)
    size, clip, value_weight, entropy_weight = 500, 0.2, 0.7, 0.03
    counts = rng.integers(1, 9, size)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    chosen = indptr[:-1] + rng.integers(0, counts)
    value_index = chosen if per_action else np.arange(size)
    logits = rng.normal(0, 2, indptr[-1]).astype(np.float32)
    values = np.tanh(rng.normal(0, 1, indptr[-1] if per_action else size)).astype(np.float32)
    old = (-rng.exponential(1.0, size)).astype(np.float32)
    advantage = rng.normal(0, 1, size).astype(np.float32)
    returns = rng.normal(0, 1, size).astype(np.float32)
    logit_gradient = np.full(len(logits), 9, np.float32)
    value_gradient = np.full(len(values), 9, np.float32)
    stats = np.zeros(len(PPO_STATS))
    decisions = Decisions(
        indptr,
        chosen,
        value_index,
        old,
        advantage,
        returns,
        scale=np.float32(1 / size),
        clip=np.float32(clip),
        value_weight=np.float32(value_weight),
        entropy_weight=np.float32(entropy_weight),
    )
    ppo_gradient(logits, values, decisions, logit_gradient, value_gradient, stats)

    flat = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    judgements = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    dense = torch.full((size, 8), -torch.inf, dtype=torch.float64)
    owner = np.repeat(np.arange(size), counts)
    column = np.arange(len(logits)) - indptr[owner]
    dense[owner, column] = flat
    logs = dense.log_softmax(1)
    change = logs[np.arange(size), chosen - indptr[:-1]] - torch.tensor(old)
    ratio = change.exp()
    gain = torch.tensor(advantage)
    policy_loss = -torch.minimum(ratio * gain, ratio.clamp(1 - clip, 1 + clip) * gain)
    value_loss = 0.5 * (judgements[value_index] - torch.tensor(returns)) ** 2
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
    counts = rng.integers(1, 7, size)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    legal_actions = np.concatenate(
        [i * 64 + np.sort(rng.choice(64, n, replace=False)) for i, n in enumerate(counts)]
    )
    policies = np.zeros((size, 64), np.uint8)
    policies[legal_actions >> 6, legal_actions & 63] = rng.integers(1, 200, len(legal_actions))
    actions = (legal_actions[indptr[:-1]] & 63).astype(np.uint8)
    results = rng.uniform(-1, 1, size).astype(np.float32)
    qvalues = np.full((size, 64), NOT_VISITED, np.int8)
    half = legal_actions[rng.random(len(legal_actions)) < 0.5]
    qvalues[half >> 6, half & 63] = rng.integers(-127, 128, len(half))
    targets, weights = results, np.ones(size, np.float32)
    if per_action:
        targets = np.empty(len(legal_actions), np.float32)
        weights = np.empty(len(legal_actions), np.float32)
        action_targets(legal_actions, actions, results, qvalues, np.float32(0.3), targets, weights)
        for k, legal_action in enumerate(legal_actions):
            i, action = divmod(int(legal_action), 64)
            if action == actions[i]:
                assert (targets[k], weights[k]) == (results[i], 1.0)
            elif qvalues[i, action] == NOT_VISITED:
                assert weights[k] == 0.0
            else:
                assert targets[k] == pytest.approx(qvalues[i, action] / 127)
                assert weights[k] == pytest.approx(0.3)
    logits = rng.normal(0, 1, len(legal_actions)).astype(np.float32)
    values = rng.uniform(-1, 1, len(targets)).astype(np.float32)
    found: list[Any] = [np.empty_like(logits), np.empty_like(values)]
    stats = np.zeros(len(SEARCH_STATS))
    scale, weight = np.float32(0.25), np.float32(0.7)
    search_gradient(
        logits,
        values,
        indptr,
        legal_actions,
        policies,
        targets,
        weights,
        scale,
        weight,
        found[0],
        found[1],
        stats,
    )

    x = torch.tensor(logits, requires_grad=True)
    v = torch.tensor(values, requires_grad=True)
    policy_loss = torch.zeros(())
    entropy = torch.zeros(())
    agreement = 0
    for i in range(size):
        part = slice(indptr[i], indptr[i + 1])
        target = torch.tensor(policies[i, legal_actions[part] & 63].astype(np.float32))
        log_probabilities = x[part].log_softmax(0)
        policy_loss = policy_loss - (target / target.sum() * log_probabilities).sum()
        entropy = entropy - (log_probabilities.exp() * log_probabilities).sum()
        agreement += int(x[part].argmax()) == int(target.argmax())
    error = (v - torch.tensor(targets)).square() * torch.tensor(weights)
    (float(scale) * (policy_loss + float(weight) * error.sum())).backward()
    np.testing.assert_allclose(found[0], np.asarray(x.grad), atol=1e-6)
    np.testing.assert_allclose(found[1], np.asarray(v.grad), atol=1e-6)
    sums = (policy_loss, error.sum(), entropy)
    expected = [*(value.item() for value in sums), agreement]
    np.testing.assert_allclose(stats, expected, rtol=1e-4)
