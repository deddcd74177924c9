"""Test the checks of agents and observers; refused/environments.txt shows what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict

from bao_env import RandomAgent, check_agent, check_observer
from bao_env.observation import OBSERVATIONS
from bao_env.observation.observer import get_observer
from tests.rulesets import EVERY_RULESET

SPACE = Box(0, 64, (2,), np.float32)


@EVERY_RULESET
def test_our_own_pass(ruleset: str) -> None:
    check_agent(RandomAgent(1), ruleset)
    check_agent("greedy", ruleset, deterministic=True)
    for name in OBSERVATIONS:
        for dtype in (np.float32, np.uint8):
            check_observer(get_observer(name, ruleset, dtype), ruleset)


@pytest.mark.parametrize(
    ("fill", "space"),
    [
        (lambda arrays: None, SPACE),
        (lambda arrays: arrays[:, :1].fill(1), SPACE),
        (lambda arrays: arrays["a"].fill(1), Dict({"a": SPACE, "b": SPACE})),
        (lambda arrays: arrays.fill(np.nan), SPACE),
        (lambda arrays: arrays.fill(65), SPACE),
        (lambda arrays: arrays[1:].fill(1), Box(0, 255, (2,), np.uint8)),
        (lambda arrays: arrays.fill(0 if len(arrays) == 2 else 65), SPACE),
        (lambda arrays: arrays.fill(len(arrays)), SPACE),
        (None, SPACE),
    ],
    ids=["nothing", "half", "key", "NaN", "outside", "row", "later", "batch", "no-fill"],
)
def test_what_is_wrong_with_an_observer(fill: Any, space: Any) -> None:
    class Wrong:
        pass

    wrong: Any = Wrong()
    wrong.space = space
    if fill is not None:
        wrong.fill = lambda positions, legal, viewers, arrays: fill(arrays)
    with pytest.raises(ValueError, match=r"observation=.*(fill|outside|alike)"):
        check_observer(wrong)
