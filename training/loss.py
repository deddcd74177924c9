"""The objectives and generalised advantages of alternating self-play, compiled.

The functions here take the network's logits and values, and fill in the loss's gradient with
respect to both, in one pass over the few legal actions of each decision. Autograd does the rest.
A loss of one's own is written in torch (:class:`PpoBatch`).
``tests/test_loss.py`` checks the gradients against torch's own.

Shapes: B decisions or positions have K legal actions in all. The network gives K logits and R
values: one for each encoding that it read, padding included. It reads one encoding a position, or
one a legal action (:mod:`agents.nets.network`).

PPO: Schulman et al. 2017, "Proximal Policy Optimization Algorithms", eq. 7 and 9.
GAE: Schulman et al. 2016, "High-Dimensional Continuous Control Using Generalized Advantage
Estimation", eq. 16, with the sign changed whenever the turn passes: what the next player expects to
win, this one expects to lose.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents import plugins
from bao_env.engine.compile import jit

PPO_STATS: Final = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction")
"""What :func:`ppo_gradient` sums up, in this order."""


@jit
def advantages(rewards, values, next_values, dones, turn_passed, gamma, lam, out):
    """Generalised advantages, for the player who acts at each step.

    Args:
        rewards: float32[T, B], what the player who acts gets from that action.
        values: float32[T, B], the result expected for the player who acts.
        next_values: float32[B], the result expected after the last step, for the player then to
            act.
        dones: bool[T, B], the game ended with this action.
        turn_passed: bool[T, B], the turn passed to the other player after this action.
        gamma: discount a ply.
        lam: GAE's lambda.
        out: float32[T, B], filled.
    """
    for b in range(rewards.shape[1]):
        following = np.float32(0.0)
        expected = next_values[b]
        for t in range(rewards.shape[0] - 1, -1, -1):
            sign = np.float32(-1.0) if turn_passed[t, b] else np.float32(1.0)
            if dones[t, b]:
                sign = np.float32(0.0)
            delta = rewards[t, b] + gamma * sign * expected - values[t, b]
            following = delta + gamma * lam * sign * following
            out[t, b] = following
            expected = values[t, b]


@jit
def ppo_gradient(
    logits,
    values,
    indptr,
    chosen,
    value_index,
    old_log_probs,
    advantage,
    returns,
    scale,
    clip,
    value_weight,
    entropy_weight,
    logit_gradient,
    value_gradient,
    stats,
):
    """Gradient of the PPO loss, summed over decisions and multiplied by ``scale``.

    A decision's loss is the clipped surrogate, plus ``value_weight`` times half the squared
    value error, minus ``entropy_weight`` times the entropy over its legal actions.

    Args:
        logits: float32[K], of the legal actions (:mod:`agents.nets.legal_actions`).
        values: float32[R], expected results.
        indptr: int64[B + 1], where each decision's legal actions lie.
        chosen: int64[B], the legal action taken, as an index of ``logits``.
        value_index: int64[B], which of ``values`` is compared with the decision's return.
        old_log_probs: float32[B], log probabilities of these actions when they were taken.
        advantage: float32[B], normalised by the caller.
        returns: float32[B], targets of the expected results.
        scale: 1 / decisions of the whole minibatch.
        clip: PPO's epsilon.
        value_weight, entropy_weight: of the loss's parts.
        logit_gradient: float32[K], filled.
        value_gradient: float32[R], filled.
        stats: float64[5], sums over decisions of :data:`PPO_STATS`, added to.
    """
    value_gradient[:] = 0.0
    for i in range(chosen.shape[0]):
        low, high = indptr[i], indptr[i + 1]
        top = logits[low]
        for k in range(low + 1, high):
            top = max(top, logits[k])
        total = np.float32(0.0)
        for k in range(low, high):
            total += np.float32(math.exp(logits[k] - top))
        log_total = top + np.float32(math.log(total))
        entropy = np.float32(0.0)
        for k in range(low, high):
            log_prob = logits[k] - log_total
            entropy -= np.float32(math.exp(log_prob)) * log_prob

        change = logits[chosen[i]] - log_total - old_log_probs[i]
        ratio = np.float32(math.exp(min(change, np.float32(20.0))))
        gain = advantage[i]
        outside = (gain >= 0.0 and ratio > 1.0 + clip) or (gain < 0.0 and ratio < 1.0 - clip)
        pull = np.float32(0.0) if outside else -gain * ratio
        limited = min(max(ratio, np.float32(1.0) - clip), np.float32(1.0) + clip)
        for k in range(low, high):
            log_prob = logits[k] - log_total
            p = np.float32(math.exp(log_prob))
            slope = -pull * p + entropy_weight * p * (log_prob + entropy)
            logit_gradient[k] = scale * slope
        logit_gradient[chosen[i]] += scale * pull
        error = values[value_index[i]] - returns[i]
        value_gradient[value_index[i]] += scale * value_weight * error

        stats[0] -= min(ratio * gain, limited * gain)
        stats[1] += 0.5 * error * error
        stats[2] += entropy
        stats[3] += ratio - 1.0 - change
        stats[4] += 1.0 if abs(ratio - 1.0) > clip else 0.0


class PpoBatch(NamedTuple):
    """B decisions with K legal actions in all, for a loss of one's own; float32 on the CPU."""

    log_probs: Tensor
    """float[K], log probabilities of the legal actions, decision after decision; with gradient."""
    values: Tensor
    """float[B], expected results; with gradient."""
    decisions: Tensor
    """int64[K], the decision that each legal action belongs to."""
    chosen: Tensor
    """int64[B], the legal action taken, as an index of ``log_probs``."""
    old_log_probs: Tensor
    """float[B], log probabilities of these actions when they were taken."""
    advantages: Tensor
    """float[B], normalised."""
    returns: Tensor
    """float[B], targets of the expected results."""
    clip: float
    """PPO's epsilon."""
    value_weight: float
    """Of the value loss."""
    entropy_weight: float
    """Of the entropy bonus; it falls with the learning rate."""


def torch_gradient(loss: Callable[[PpoBatch], Tensor]) -> Callable[..., None]:
    """:func:`ppo_gradient` of another loss, by torch's autograd.

    Args:
        loss: the loss, summed over the decisions of a batch.

    Returns:
        a function of the same arguments as :func:`ppo_gradient`, whose statistics it keeps.
    """

    def gradient(
        logits: Any,
        values: Any,
        indptr: Any,
        chosen: Any,
        value_index: Any,
        old_log_probs: Any,
        advantage: Any,
        returns: Any,
        scale: Any,
        clip: Any,
        value_weight: Any,
        entropy_weight: Any,
        logit_gradient: Any,
        value_gradient: Any,
        stats: Any,
    ) -> None:
        decided = (indptr, chosen, value_index, old_log_probs, advantage, returns)
        weights = (clip, value_weight, entropy_weight)
        ppo_gradient(
            logits, values, *decided, scale, *weights, logit_gradient, value_gradient, stats
        )
        likings = torch.from_numpy(logits[: indptr[-1]]).requires_grad_()
        expected = torch.from_numpy(values[value_index]).requires_grad_()
        decisions = torch.from_numpy(np.repeat(np.arange(len(chosen)), np.diff(indptr)))
        top = torch.from_numpy(np.maximum.reduceat(logits[: indptr[-1]], indptr[:-1]))
        above = likings - top[decisions]
        total = torch.zeros(len(chosen)).index_add(0, decisions, above.exp())
        batch = PpoBatch(
            above - total.log()[decisions],
            expected,
            decisions,
            torch.from_numpy(chosen),
            torch.from_numpy(old_log_probs),
            torch.from_numpy(advantage),
            torch.from_numpy(returns),
            float(clip),
            float(value_weight),
            float(entropy_weight),
        )
        slopes = torch.autograd.grad(
            loss(batch), (likings, expected), allow_unused=True, materialize_grads=True
        )
        logit_gradient[: indptr[-1]] = scale * slopes[0].numpy()
        value_gradient[:] = 0.0
        value_gradient[value_index] = scale * slopes[1].numpy()

    return gradient


LOSSES: Final[dict[str, Callable[..., None]]] = {"clipped": ppo_gradient}
"""The losses of PPO, by name: functions like :func:`ppo_gradient`."""


def allow_loss(name: str) -> None:
    """Import a loss of one's own, ``package.module:name``, and enter it in :data:`LOSSES`: a
    function from :class:`PpoBatch` to the sum of the decisions' losses.

    Raises:
        ValueError: it cannot be imported, or is no function.
    """
    if name in LOSSES:
        return
    loss = plugins.find(name)
    if not callable(loss):
        raise ValueError(
            f"ppo.loss={name} is {loss!r:.200}: expected a function of a training.loss.PpoBatch"
        )
    LOSSES[name] = torch_gradient(loss)


NOT_VISITED: Final = -128
"""The q-value of an action that a search has not visited."""
SEARCH_STATS: Final = ("policy_loss", "value_loss", "entropy", "agreement")
"""What :func:`search_gradient` sums up; ``agreement`` counts positions in which network and search
have the same likeliest action."""


@jit
def action_targets(legal_actions, actions, results, qvalues, other_weight, targets, weights):
    """Targets for a network that values each legal action.

    The target of the action played is the result; of another action that the search visited, it is
    the search's value.

    Args:
        legal_actions: int64[K], position * 64 + action.
        actions: uint8[B], the actions played.
        results: float32[B], their targets.
        qvalues: int8[B, 64], the search's values in 127ths; :data:`NOT_VISITED` for none.
        other_weight: weight of a legal action that was not played.
        targets: float32[K], filled.
        weights: float32[K], filled.
    """
    for k in range(legal_actions.shape[0]):
        i, action = legal_actions[k] >> 6, legal_actions[k] & 63
        targets[k] = 0.0
        weights[k] = 0.0
        if action == actions[i]:
            targets[k] = results[i]
            weights[k] = 1.0
        elif qvalues[i, action] != NOT_VISITED:
            targets[k] = np.float32(qvalues[i, action]) / np.float32(127.0)
            weights[k] = other_weight


@jit
def search_gradient(
    logits,
    values,
    indptr,
    legal_actions,
    policies,
    targets,
    weights,
    scale,
    value_weight,
    logit_gradient,
    value_gradient,
    stats,
):
    """Gradient of learning from a search: cross-entropy to its policy, squared error to results.

    Args:
        logits: float32[K].
        values: float32[R], expected results, of which the first V count. V is B, or K for a network
            that values each legal action.
        indptr: int64[B + 1], where each position's legal actions lie.
        legal_actions: int64[K], position * 64 + action.
        policies: uint8[B, 64], the improved policies in 255ths.
        targets: float32[V], targets of the expected results.
        weights: float32[V], of their errors.
        scale: 1 / positions of the whole minibatch.
        value_weight: of the squared error.
        logit_gradient: float32[K], filled.
        value_gradient: float32[R], the first V filled.
        stats: float64[4], sums of :data:`SEARCH_STATS`, added to.
    """
    for i in range(indptr.shape[0] - 1):
        low, high = indptr[i], indptr[i + 1]
        top = logits[low]
        total_target = np.float32(0.0)
        for k in range(low, high):
            top = max(top, logits[k])
            total_target += np.float32(policies[i, legal_actions[k] & 63])
        total = np.float32(0.0)
        for k in range(low, high):
            total += np.float32(math.exp(logits[k] - top))
        log_total = np.float32(math.log(total))
        likeliest = low
        wanted = low
        for k in range(low, high):
            log_probability = logits[k] - top - log_total
            probability = np.float32(math.exp(log_probability))
            target = np.float32(policies[i, legal_actions[k] & 63]) / total_target
            logit_gradient[k] = scale * (probability - target)
            stats[0] -= target * log_probability
            stats[2] -= probability * log_probability
            if logits[k] > logits[likeliest]:
                likeliest = k
            if policies[i, legal_actions[k] & 63] > policies[i, legal_actions[wanted] & 63]:
                wanted = k
        if likeliest == wanted:
            stats[3] += 1.0
    for v in range(targets.shape[0]):
        error = values[v] - targets[v]
        value_gradient[v] = scale * value_weight * weights[v] * np.float32(2.0) * error
        stats[1] += weights[v] * error * error
