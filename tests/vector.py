"""What the tests of the vector environment share: random runs, and how to compare them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from bao_env import RULESETS

EVERY_RULESET = pytest.mark.parametrize("ruleset", list(RULESETS))
EVERY_MODE = pytest.mark.parametrize("mode", list(AutoresetMode))
ID = "bao_env:bao/Bao-v0"
SAME, NEXT, DISABLED = AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED


def legal_actions(masks: Any, rng: np.random.Generator) -> Any:
    """A random legal action of each row; 0 where there is none."""
    scores = rng.random(masks.shape) * (masks != 0)
    return scores.argmax(1)


def same(one: Any, other: Any) -> bool:
    """Equal values, whatever the dtypes."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray) and one.dtype == object:
        return same(one.tolist(), other.tolist())
    return np.array_equal(one, other)


def run(env: Any, steps: int, seed: int = 0, choose: Any = legal_actions) -> list[Any]:
    """What a reset and some steps return; ended games are reset where nobody else does it."""
    rng = np.random.default_rng(seed)
    results = [env.reset(seed=seed)]
    for _ in range(steps):
        results.append(env.step(choose(results[-1][0]["action_mask"], rng)))
        over = results[-1][2] | results[-1][3]
        if env.metadata["autoreset_mode"] is DISABLED and over.any():
            results.append(env.reset(options={"reset_mask": over}))
    return results
