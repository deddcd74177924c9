"""Run environments at random, and compare the runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

EVERY_MODE = pytest.mark.parametrize("mode", list(AutoresetMode))
ID = "bao_env:bao/Bao-v0"
SAME, NEXT, DISABLED = AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED


def legal_actions(masks: Any, rng: np.random.Generator) -> Any:
    """Return a random legal action for each row; 0 where there is none."""
    scores = rng.random(masks.shape) * (masks != 0)
    return scores.argmax(1)


def same(one: Any, other: Any) -> bool:
    """Return whether nested values are equal; dtypes may differ."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray) and one.dtype == object:
        return same(one.tolist(), other.tolist())
    return np.array_equal(one, other)


def arrays_of(value: Any) -> list[Any]:
    """Return all arrays in nested values, those of objects and what is in them included."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [array for part in value for array in arrays_of(part)]
    if isinstance(value, np.ndarray):
        return [value, *(arrays_of(value.tolist()) if value.dtype == object else [])]
    return []


def run(env: Any, steps: int, seed: int = 0) -> list[Any]:
    """Return the results of a reset and some steps.

    In mode DISABLED ended games are reset, first those with an even number.
    """
    even = np.arange(env.num_envs) % 2 == 0
    rng = np.random.default_rng(seed)
    results = [env.reset(seed=seed)]
    masks = results[0][1]["action_mask"]
    for _ in range(steps):
        results.append(env.step(legal_actions(masks, rng)))
        masks = results[-1][4]["action_mask"]
        over = results[-1][2] | results[-1][3]
        for some in (over & even, over & ~even):
            if env.metadata["autoreset_mode"] is DISABLED and some.any():
                results.append(env.reset(options={"reset_mask": some}))
                masks = np.where(some[:, None], results[-1][1]["action_mask"], masks)
    return results
