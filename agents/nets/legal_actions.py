"""The legal actions of a batch of positions as flat, ragged arrays: listed, drawn and chosen.

About four of 64 actions are legal, so a dense masked softmax would spend most of its time on
actions that cannot be chosen. Instead the K legal actions of B positions lie one after another, in
the order of positions and actions, and those of position i are ``indptr[i]`` to ``indptr[i + 1]``,
as in a sparse matrix. Logits and whatever else belongs to an action lie in the same order.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from bao_env.engine.bits import (
    ONE,
    ZERO,
    U,
    popcount,
    select_bit,
    trailing_zeros,
    xorshift,
)
from bao_env.engine.compile import jit
from bao_env.engine.position import Actions, Words

_FRACTION_SHIFT: Final = U(40)  # leaves the 24 bits that a float32 holds exactly


@jit
def fill_indptr(masks, indptr):
    """Count the legal actions of masks uint64[B] into ``indptr``, int64[B + 1], filled."""
    total = 0
    for i in range(masks.shape[0]):
        indptr[i] = total
        total += np.int64(popcount(masks[i]))
    indptr[masks.shape[0]] = total


@jit
def list_legal_actions(masks, legal_actions):
    """List the legal actions of masks uint64[B] into ``legal_actions``, int64[K], filled with
    position * 64 + action."""
    k = 0
    for i in range(masks.shape[0]):
        rest = masks[i]
        while rest != ZERO:
            legal_actions[k] = i * 64 + np.int64(trailing_zeros(rest))
            rest &= rest - ONE
            k += 1


@jit
def _find_chosen(legal_actions, indptr, actions, chosen):
    """Where the actions int64[B] lie among legal actions int64[K]: ``chosen`` int64[B], filled."""
    for i in range(actions.shape[0]):
        for k in range(indptr[i], indptr[i + 1]):
            if legal_actions[k] & 63 == actions[i]:
                chosen[i] = k


def find_legal_actions(
    masks: Words, actions: Actions
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """List the legal actions of a batch, and find one of each position among them.

    Args:
        masks: uint64[B], the legal actions of each position.
        actions: int64[B], a legal action of each.

    Returns:
        indptr int64[B + 1], legal actions int64[K] and the index among them of each action,
        int64[B].
    """
    indptr = np.empty(len(masks) + 1, np.int64)
    fill_indptr(masks, indptr)
    legal_actions = np.empty(indptr[-1], np.int64)
    list_legal_actions(masks, legal_actions)
    chosen = np.empty(len(masks), np.int64)
    _find_chosen(legal_actions, indptr, actions, chosen)
    return indptr, legal_actions, chosen


@jit
def _expected(logits, values, low, high, top, total, per_action, i):
    """Expected result of a position: its own, or that of its legal actions under the policy.

    Args:
        logits: float32[K].
        values: float32[K or B], expected results.
        low, high: where the position's legal actions lie.
        top: float32, the highest of their logits.
        total: float32, the sum of exp(logit - top) over them.
        per_action: whether ``values`` are of legal actions.
        i: the position.
    """
    if not per_action:
        return values[i]
    mean = np.float32(0.0)
    for k in range(low, high):
        mean += np.float32(math.exp(logits[k] - top)) / total * values[k]
    return mean


@jit
def sample_actions(logits, values, indptr, masks, per_action, rng, actions, log_probs, expected):
    """Draw one legal action of each position from the softmax over its logits.

    Args:
        logits: float32[K].
        values: float32[K or B], expected results of the legal actions or of the positions.
        indptr: int64[B + 1].
        masks: uint64[B]; positions with mask 0 get action 0.
        per_action: whether ``values`` are of legal actions.
        rng: uint64[B], non-zero xorshift states, advanced in place.
        actions: int64[B], filled.
        log_probs: float32[B], filled with the log probability of each action.
        expected: float32[B], filled with each position's expected result.
    """
    for i in range(masks.shape[0]):
        actions[i] = 0
        log_probs[i] = 0.0
        expected[i] = 0.0
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
        expected[i] = _expected(logits, values, low, high, top, total, per_action, i)


@jit
def best_legal_actions(logits, indptr, masks, actions):
    """The legal action with the highest logit of each position; of equals, the lowest action.

    Args:
        logits: float32[K].
        indptr: int64[B + 1].
        masks: uint64[B]; positions with mask 0 get action 0.
        actions: int64[B], filled.
    """
    for i in range(masks.shape[0]):
        actions[i] = 0
        best = indptr[i]
        for k in range(indptr[i], indptr[i + 1]):
            if logits[k] > logits[best]:
                best = k
        if indptr[i] < indptr[i + 1]:
            actions[i] = np.int64(select_bit(masks[i], U(best - indptr[i])))


@jit
def gather_encodings(source, starts, counts, out):
    """Copy runs of encodings one after another.

    Args:
        source: uint8[R, ENCODING_SIZE].
        starts: int64[N], the first encoding of each run.
        counts: int64[N], how many each run has.
        out: uint8[sum of counts, ENCODING_SIZE], filled.
    """
    k = 0
    for i in range(starts.shape[0]):
        for r in range(starts[i], starts[i] + counts[i]):
            for byte in range(source.shape[1]):
                out[k, byte] = source[r, byte]
            k += 1


def probabilities(logits: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Softmax of the logits float[K] of one position's legal actions."""
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return weights / weights.sum()
