"""List and choose the legal actions of a batch of positions, as flat, ragged arrays.

About four of 64 actions are legal, so a dense masked softmax would spend most of its time on
actions that cannot be chosen. Instead the K legal actions of B positions are concatenated, ordered
by position and action. The actions of position i are in ``indptr[i]`` to ``indptr[i + 1]``, as in a
sparse matrix. Logits and other numbers per action have the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bao_agents.support.array_types import Float32Array, Float64Array, Int64Array
from bao_env.compiled.compile import jit
from bao_env.engine.bits import ONE, ZERO, U, popcount, select_bit, trailing_zeros
from bao_env.engine.position import Actions, Legal


def list_legal_actions(legal: Legal) -> tuple[Int64Array, Int64Array]:
    """List the legal actions of each position, given as bits uint64[B].

    Returns:
        indptr int64[B + 1] and legal actions int64[K], position * 64 + action.
    """
    indptr = np.zeros(len(legal) + 1, np.int64)
    _count_actions(legal, indptr)
    legal_actions = np.empty(indptr[-1], np.int64)
    _list_actions(legal, legal_actions)
    return indptr, legal_actions


@jit
def _count_actions(legal: Legal, indptr: Int64Array) -> None:
    """Write the running totals of legal actions to ``indptr``, int64[B + 1], whose first is 0."""
    for i in range(legal.shape[0]):
        indptr[i + 1] = indptr[i] + np.int64(popcount(legal[i]))


@jit
def _list_actions(legal: Legal, legal_actions: Int64Array) -> None:
    """Write the legal actions, int64[K]."""
    k = 0
    for i in range(legal.shape[0]):
        remaining = legal[i]
        while remaining != ZERO:
            legal_actions[k] = i * 64 + np.int64(trailing_zeros(remaining))
            remaining &= remaining - ONE
            k += 1


def best_legal_actions(logits: Float32Array, indptr: Int64Array, legal: Legal) -> Actions:
    """Return the legal action with the highest logit of each position, int64[B].

    Among equals this is the lowest action. In a position without legal actions it is 0.

    Args:
        logits: float32[K].
        indptr: int64[B + 1].
        legal: uint64[B].
    """
    actions = np.zeros(len(legal), np.int64)
    _choose_best(logits, indptr, legal, actions)
    return actions


@jit
def _choose_best(logits: Float32Array, indptr: Int64Array, legal: Legal, actions: Actions) -> None:
    """Write the actions of :func:`best_legal_actions` where a position has legal actions."""
    for i in range(legal.shape[0]):
        best = indptr[i]
        for k in range(indptr[i], indptr[i + 1]):
            if logits[k] > logits[best]:
                best = k
        if legal[i] != ZERO:
            actions[i] = np.int64(select_bit(legal[i], U(best - indptr[i])))


def probabilities(logits: npt.NDArray[Any]) -> Float64Array:
    """Return the softmax of the logits, float[K], of one position's legal actions."""
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return weights / weights.sum()
