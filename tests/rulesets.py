"""Rule sets as parameters of tests."""

from __future__ import annotations

import pytest

from bao_env.engine.ruleset import RULESETS


def every_ruleset(*quick: str, name: str = "ruleset") -> pytest.MarkDecorator:
    """For each rule set a test, which is slow but for those in ``quick``.

    Args:
        quick: names of rule sets.
        name: of the test's parameter.
    """
    return pytest.mark.parametrize(
        name,
        [
            ruleset if ruleset in quick else pytest.param(ruleset, marks=pytest.mark.slow)
            for ruleset in RULESETS
        ],
    )
