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


def same(first: Any, second: Any) -> bool:
    """Return whether nested values are equal; dtypes may differ."""
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, (tuple, list)):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, np.ndarray) and first.dtype == object:
        return same(first.tolist(), second.tolist())
    return np.array_equal(first, second)


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
    action_masks = results[0][1]["action_mask"]
    for _ in range(steps):
        results.append(env.step(legal_actions(action_masks, rng)))
        action_masks = results[-1][4]["action_mask"]
        over = results[-1][2] | results[-1][3]
        for mask in (over & even, over & ~even):
            if env.metadata["autoreset_mode"] is DISABLED and mask.any():
                results.append(env.reset(options={"reset_mask": mask}))
                action_masks = np.where(mask[:, None], results[-1][1]["action_mask"], action_masks)
    return results
