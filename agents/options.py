"""The options of a batch of positions: what may be played, as flat arrays, compiled.

About four of 64 actions are legal, so logits live in one flat array over all legal
actions, the *options*, in the order of positions and actions: position i has the options
``offsets[i]`` to ``offsets[i + 1]``. A dense masked softmax would spend most of its time
on actions that cannot be chosen.

What the network reads of a board is a *row* (:mod:`agents.features`). With what the player to
move can capture in it, a network that judges options (``moves``) knows the replies to each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.features import OUTLOOK
from agents.network import NetworkConfig
from agents.rows import outlook, padded_rows
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
from bao_env.engine.kernel import play
from bao_env.engine.position import META, WORDS
from bao_env.engine.ruleset import KernelRules
from bao_env.observation import observe_compiled

_18 = U(18)
_40 = U(40)


@jit
def _offsets(masks, offsets):
    total = 0
    for i in range(masks.shape[0]):
        offsets[i] = total
        total += np.int64(popcount(masks[i]))
    offsets[masks.shape[0]] = total


@jit
def _list_options(masks, options):
    k = 0
    for i in range(masks.shape[0]):
        rest = masks[i]
        while rest != ZERO:
            options[k] = i * 64 + np.int64(trailing_zeros(rest))
            rest &= rest - ONE
            k += 1


@jit
def _boards(rules, positions, rows):
    viewer = np.empty(1, np.int8)
    for i in range(positions.shape[0]):
        viewer[0] = np.int8((positions[i, META] >> _18) & ONE)
        observe_compiled(positions[i : i + 1], viewer, ONE, rows[i : i + 1])
        outlook(rules, positions[i], rows[i])


@jit
def _afterstates(rules, positions, options, rows):
    words = np.empty((1, WORDS), np.uint64)
    viewer = np.empty(1, np.int8)
    for k in range(options.shape[0]):
        position = options[k] >> 6
        for word in range(WORDS):
            words[0, word] = positions[position, word]
        viewer[0] = np.int8((words[0, META] >> _18) & ONE)
        result = play(rules, words[0], U(options[k] & 63))
        observe_compiled(words, viewer, ONE, rows[k : k + 1])
        if result == ZERO:
            outlook(rules, words[0], rows[k])
        else:
            rows[k, OUTLOOK:] = 0
            rows[k, OUTLOOK + 2] = 1  # over: won, or (kujifunza) lost, as the rows show


def encode(
    rules: KernelRules,
    positions: npt.NDArray[np.uint64],
    masks: npt.NDArray[np.uint64],
    config: NetworkConfig,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """What the network reads of a batch of positions.

    Args:
        rules: the rules to play options out by.
        positions: uint64[B, 6].
        masks: uint64[B], their legal actions.
        config: of the network: for ``moves`` a row for each option, the board after it, seen by
            the player who chooses; else a row for each position.

    Returns:
        rows uint8[K or B and more, ROW_SIZE] (:func:`padded_rows`), options int64[K] (position *
        64 + action) and offsets int64[B + 1].
    """
    offsets = np.empty(len(masks) + 1, np.int64)
    _offsets(masks, offsets)
    options = np.empty(offsets[-1], np.int64)
    _list_options(masks, options)
    rows = padded_rows(len(options) if config.per_option else len(positions))
    if config.per_option:
        _afterstates(rules, positions, options, rows)
    else:
        _boards(rules, positions, rows)
    return rows, options, offsets


@jit
def _find_chosen(options, offsets, actions, chosen):
    for i in range(actions.shape[0]):
        for k in range(offsets[i], offsets[i + 1]):
            if options[k] & 63 == actions[i]:
                chosen[i] = k


def list_options(
    masks: npt.NDArray[np.uint64], actions: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Offsets int64[B + 1] and options int64[K] of legal actions uint64[B], and which option
    each of ``actions`` int64[B] is, int64[B]."""
    offsets = np.empty(len(masks) + 1, np.int64)
    _offsets(masks, offsets)
    options = np.empty(offsets[-1], np.int64)
    _list_options(masks, options)
    chosen = np.empty(len(masks), np.int64)
    _find_chosen(options, offsets, actions, chosen)
    return offsets, options, chosen


@jit
def _expected(logits, values, low, high, top, total, per_option, i):
    """Expected result of a position: its own, or that of its options under the policy."""
    if not per_option:
        return values[i]
    mean = np.float32(0.0)
    for k in range(low, high):
        mean += np.float32(math.exp(logits[k] - top)) / total * values[k]
    return mean


@jit
def sample_options(logits, values, offsets, masks, per_option, rng, actions, log_probs, expected):
    """Draw one option of each position from the softmax over its logits.

    Args:
        logits: float32[K].
        values: float32[K or B], expected results of the rows.
        offsets: int64[B + 1].
        masks: uint64[B]; positions with mask 0 get action 0.
        per_option: whether ``values`` are of options.
        rng: uint64[B], non-zero xorshift states, advanced in place.
        actions: int64[B], filled.
        log_probs: float32[B], filled with the log probability of each action.
        expected: float32[B], filled with each position's expected result.
    """
    for i in range(masks.shape[0]):
        actions[i] = 0
        log_probs[i] = 0.0
        expected[i] = 0.0
        low, high = offsets[i], offsets[i + 1]
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
        left = np.float32(x >> _40) * np.float32(2.0**-24) * total
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
        expected[i] = _expected(logits, values, low, high, top, total, per_option, i)


@jit
def best_options(logits, offsets, masks, actions):
    """The option with the highest logit of each position; of equals, the lowest action.

    Args:
        logits: float32[K].
        offsets: int64[B + 1].
        masks: uint64[B]; positions with mask 0 get action 0.
        actions: int64[B], filled.
    """
    for i in range(masks.shape[0]):
        actions[i] = 0
        best = offsets[i]
        for k in range(offsets[i], offsets[i + 1]):
            if logits[k] > logits[best]:
                best = k
        if offsets[i] < offsets[i + 1]:
            actions[i] = np.int64(select_bit(masks[i], U(best - offsets[i])))


@jit
def gather_rows(source, starts, counts, out):
    """Copy runs of rows one after another: ``counts[i]`` rows from ``starts[i]``, for each i."""
    k = 0
    for i in range(starts.shape[0]):
        for row in range(starts[i], starts[i] + counts[i]):
            for column in range(source.shape[1]):
                out[k, column] = source[row, column]
            k += 1


def probabilities(logits: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Softmax of the logits of one position's options."""
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return weights / weights.sum()
