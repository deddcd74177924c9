"""List, draw and choose the legal actions of a batch of positions, as flat, ragged arrays.

About four of 64 actions are legal, so a dense masked softmax would spend most of its time on
actions that cannot be chosen. Instead the K legal actions of B positions are concatenated, ordered
by position and action. Those of position i are ``indptr[i]`` to ``indptr[i + 1]``, as in a sparse
matrix. Logits and other numbers per action have the same order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from bao_agents.array_types import Float64Array
from bao_env.engine.bits import ONE, ZERO, U, popcount, select_bit, trailing_zeros, xorshift
from bao_env.engine.compile import jit

_FRACTION_SHIFT = U(40)  # leaves the 24 bits that a float32 holds exactly


@jit
def list_legal_actions(masks):
    """List the legal actions of masks uint64[B].

    Returns:
        indptr int64[B + 1] and legal actions int64[K], position * 64 + action.
    """
    indptr = np.zeros(masks.shape[0] + 1, np.int64)
    for i in range(masks.shape[0]):
        indptr[i + 1] = indptr[i] + np.int64(popcount(masks[i]))
    legal_actions = np.empty(indptr[-1], np.int64)
    k = 0
    for i in range(masks.shape[0]):
        rest = masks[i]
        while rest != ZERO:
            legal_actions[k] = i * 64 + np.int64(trailing_zeros(rest))
            rest &= rest - ONE
            k += 1
    return indptr, legal_actions


@jit
def find_legal_actions(masks, actions):
    """List the legal actions of a batch, and find one of each position among them.

    Args:
        masks: uint64[B], the legal actions of each position.
        actions: int64[B], a legal action of each.

    Returns:
        indptr int64[B + 1], legal actions int64[K] and the index among them of each action,
        int64[B].
    """
    indptr, legal_actions = list_legal_actions(masks)
    chosen = np.empty(masks.shape[0], np.int64)
    for i in range(masks.shape[0]):
        below = masks[i] & ((ONE << U(actions[i])) - ONE)
        chosen[i] = indptr[i] + np.int64(popcount(below))
    return indptr, legal_actions, chosen


@jit
def sample_actions(logits, values, indptr, masks, per_action, rng):
    """Draw one legal action of each position from the softmax over its logits.

    Args:
        logits: float32[K].
        values: float32[K or B], expected results of the legal actions or of the positions.
        indptr: int64[B + 1].
        masks: uint64[B].
        per_action: whether ``values`` are of legal actions.
        rng: uint64[B], non-zero xorshift states, advanced in place.

    Returns:
        the actions, int64[B]; the log probability of each action, float32[B]; each position's
        expected result, float32[B], its own or that of its legal actions under the policy. All are
        0 for positions with mask 0.
    """
    actions = np.zeros(masks.shape[0], np.int64)
    log_probs = np.zeros(masks.shape[0], np.float32)
    expected = np.zeros(masks.shape[0], np.float32)
    for i in range(masks.shape[0]):
        low, high = indptr[i], indptr[i + 1]
        if low == high:
            continue
        top = logits[low]
        for k in range(low + 1, high):
            top = max(top, logits[k])
        total = np.float32(0.0)
        for k in range(low, high):
            total += np.float32(math.exp(logits[k] - top))
        x = xorshift(rng[i])
        rng[i] = x
        left = np.float32(x >> _FRACTION_SHIFT) * np.float32(2.0**-24) * total
        chosen = low
        for k in range(low, high):
            weight = np.float32(math.exp(logits[k] - top))
            if weight > np.float32(0.0):
                chosen = k
                left -= weight
                if left < np.float32(0.0):
                    break
        actions[i] = np.int64(select_bit(masks[i], U(chosen - low)))
        log_probs[i] = logits[chosen] - top - np.float32(math.log(total))
        if not per_action:
            expected[i] = values[i]
            continue
        for k in range(low, high):
            expected[i] += np.float32(math.exp(logits[k] - top)) / total * values[k]
    return actions, log_probs, expected


@jit
def best_legal_actions(logits, indptr, masks):
    """Return the legal action with the highest logit of each position, int64[B].

    Among equals take the lowest action; for positions with mask 0 return 0.

    Args:
        logits: float32[K].
        indptr: int64[B + 1].
        masks: uint64[B].
    """
    actions = np.zeros(masks.shape[0], np.int64)
    for i in range(masks.shape[0]):
        best = indptr[i]
        for k in range(indptr[i], indptr[i + 1]):
            if logits[k] > logits[best]:
                best = k
        if masks[i] != ZERO:
            actions[i] = np.int64(select_bit(masks[i], U(best - indptr[i])))
    return actions


@jit
def gather_encodings(source, starts, counts, out):
    """Copy runs of encodings into one array, one after another.

    Args:
        source: uint8[R, size].
        starts: int64[N], the first encoding of each run.
        counts: int64[N], the number of encodings of each run.
        out: uint8[sum of counts, size], filled.
    """
    k = 0
    for i in range(starts.shape[0]):
        for r in range(starts[i], starts[i] + counts[i]):
            for byte in range(source.shape[1]):
                out[k, byte] = source[r, byte]
            k += 1


def probabilities(logits: npt.NDArray[Any]) -> Float64Array:
    """Return the softmax of logits float[K], of one position's legal actions."""
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return weights / weights.sum()
