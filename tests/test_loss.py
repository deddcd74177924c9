"""Compare the objectives with their formulas, decision by decision, and the advantages."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from bao_training.alphazero import SearchBatch, action_targets, search_statistics
from bao_training.ppo import (
    PpoBatch,
    PpoTrainer,
    advantages,
    ppo_statistics,
)
from bao_training.replay_buffer import NOT_VISITED
from bao_training.train import load_config
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


def test_ppo_statistics() -> None:
    """Clipping stops the gradient only for a change that the advantage asks for."""
    rng = np.random.default_rng(0)
    _, owners, log_probs = decisions(rng)
    chosen = torch.from_numpy(np.unique(owners, return_index=True)[1])
    log_probs.requires_grad_()
    old, gains, values, returns = (torch.from_numpy(rng.normal(0, 1, SIZE)) for _ in range(4))
    batch = PpoBatch(log_probs, values, owners, chosen, old, gains, returns)
    expected, slopes = np.zeros(5), np.zeros(SIZE)
    for i, ratio in enumerate((log_probs.detach()[chosen] - old).exp().tolist()):
        gain = float(gains[i])
        if not (ratio > 1.2 if gain > 0 else ratio < 0.8):
            slopes[i] = -ratio * gain
        expected[0] -= min(ratio * gain, min(max(ratio, 0.8), 1.2) * gain)
        expected[1] += 0.5 * float(values[i] - returns[i]) ** 2
        expected[2] -= sum(p * math.exp(p) for p in log_probs[owners == i].tolist())
        expected[3] += ratio - 1 - math.log(ratio)
        expected[4] += not 0.8 <= ratio <= 1.2
    sums = ppo_statistics(batch, 0.2)
    np.testing.assert_allclose(sums.detach(), expected)
    (gradient,) = torch.autograd.grad(sums[0], log_probs, retain_graph=True)
    np.testing.assert_allclose(gradient[chosen], slopes)
    assert 0.1 < (slopes == 0.0).mean() < 0.9


@pytest.mark.parametrize("kind", ["position", "afterstate"])
def test_what_a_worker_learns_from(kind: str) -> None:
    """Before the first step, the network's outputs are those of the rollout."""
    settings = ["envs=16", "workers=1", "rollout=8", "minibatch=128", "hidden=[16]"]
    settings += ["method=ppo", f"network_kind={kind}", "bfloat16=false", "value_weight=0.7"]
    trainer = PpoTrainer(*load_config(None, [*settings, "ppo.opponent_pool_share=0.0"]))
    worker, roll = trainer.workers[0], trainer.workers[0].rollout
    worker.collect()
    advantages, _ = worker.compute_advantages()
    worker.prepare(0.25, 2.0, 0.01)
    worker.draw_minibatches(1)
    (index,) = worker.minibatches
    assert sorted(index) == list(range(128))
    batch, values = worker.batch(index), roll.values.reshape(-1)[index]
    np.testing.assert_allclose(batch.returns, advantages[index] + values, rtol=1e-6)
    np.testing.assert_allclose(batch.advantages, (advantages[index] - 0.25) / 2.0, rtol=1e-6)
    log_probs = batch.log_probs.detach()
    np.testing.assert_allclose(log_probs[batch.chosen], batch.old_log_probs, atol=1e-5)
    if kind == "position":
        np.testing.assert_allclose(batch.values.detach(), values, atol=1e-5)
    loss, stats = worker.loss(index)
    policy_loss, value_loss, entropy = stats[:3].tolist()
    assert loss.item() == pytest.approx(policy_loss + 0.7 * value_loss - 0.01 * entropy)


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
def test_search_statistics(per_action: bool) -> None:
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
    targets, weights = results, np.ones(SIZE, np.float32)
    if per_action:
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
    arrays = (values, legal_actions, policies, targets, weights)
    found = search_statistics(SearchBatch(log_probs, *map(torch.from_numpy, arrays)))
    expected = np.zeros(4)
    for i in range(SIZE):
        mine = log_probs[owners == i].numpy()
        target = policies[i, action[position == i]].astype(float)
        expected[0] -= (target / target.sum() * mine).sum()
        expected[2] -= (np.exp(mine) * mine).sum()
        expected[3] += mine.argmax() == target.argmax()
    expected[1] = (weights * (values - targets) ** 2).sum()
    np.testing.assert_allclose(found, expected, rtol=1e-5)
