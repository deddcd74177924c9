"""Choosing actions from a network's logits: softmax over the few legal ones, compiled.

About four of 64 actions are legal, so a dense masked softmax would spend most of its
time on actions that cannot be chosen.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from bao_env.engine.bits import ONE, U, ZERO, trailing_zeros
from bao_env.engine.compile import jit

_RNG_A = U(13)
_RNG_B = U(7)
_RNG_C = U(17)
_40 = U(40)


@jit
def sample_actions(logits, masks, rng, actions, log_probs):
    """Draw one legal action a row from the softmax over its legal logits.

    Args:
        logits: float32[B, 64].
        masks: uint64[B], bit a = action a is legal; rows with mask 0 get action 0.
        rng: uint64[B], non-zero xorshift states, advanced in place.
        actions: int64[B], filled.
        log_probs: float32[B], filled with the log probability of each action.
    """
    weights = np.empty(64, np.float32)
    for i in range(masks.shape[0]):
        actions[i] = 0
        log_probs[i] = 0.0
        mask = masks[i]
        if mask == ZERO:
            continue
        top = -np.float32(np.inf)
        rest = mask
        while rest != ZERO:
            top = max(top, logits[i, np.int64(trailing_zeros(rest))])
            rest &= rest - ONE
        total = np.float32(0.0)
        rest = mask
        while rest != ZERO:
            action = np.int64(trailing_zeros(rest))
            rest &= rest - ONE
            weights[action] = math.exp(logits[i, action] - top)
            total += weights[action]
        x = rng[i]
        x ^= x << _RNG_A
        x ^= x >> _RNG_B
        x ^= x << _RNG_C
        rng[i] = x
        left = np.float32(x >> _40) * np.float32(2.0**-24) * total
        rest = mask
        chosen = np.int64(trailing_zeros(rest))
        while rest != ZERO:
            action = np.int64(trailing_zeros(rest))
            rest &= rest - ONE
            if weights[action] > np.float32(0.0):
                chosen = action
                left -= weights[action]
                if left < np.float32(0.0):
                    break
        actions[i] = chosen
        log_probs[i] = logits[i, chosen] - top - math.log(total)


@jit
def best_actions(logits, masks, actions):
    """The legal action with the highest logit of each row; of equals, the lowest action.

    Args:
        logits: float32[B, 64].
        masks: uint64[B]; rows with mask 0 get action 0.
        actions: int64[B], filled.
    """
    for i in range(masks.shape[0]):
        actions[i] = 0
        top = -np.float32(np.inf)
        rest = masks[i]
        if rest != ZERO:
            actions[i] = np.int64(trailing_zeros(rest))
        while rest != ZERO:
            action = np.int64(trailing_zeros(rest))
            rest &= rest - ONE
            if logits[i, action] > top:
                top = logits[i, action]
                actions[i] = action


def legal_probabilities(
    logits: npt.NDArray[np.float32], legal: list[int]
) -> npt.NDArray[np.float64]:
    """Softmax of one row of logits, float32[64], over the ``legal`` actions, in their order."""
    chosen = logits[legal].astype(np.float64)
    weights = np.exp(chosen - chosen.max())
    return weights / weights.sum()
