"""Test that our own agents and observers pass; refused/environments.txt has some that fail."""

from __future__ import annotations

import numpy as np

from bao_env import RandomAgent, check_agent, check_observer
from bao_env.observation import OBSERVATIONS
from bao_env.observation.observer import get_observer
from tests.rulesets import EVERY_RULESET


@EVERY_RULESET
def test_our_own_pass(ruleset: str) -> None:
    check_agent(RandomAgent(1), ruleset)
    check_agent("greedy", ruleset, deterministic=True)
    for name in OBSERVATIONS:
        for dtype in (np.float32, np.uint8):
            check_observer(get_observer(name, ruleset, dtype), ruleset)
