"""Parametrise tests by rule set."""

from __future__ import annotations

import pytest

from bao_env.engine.ruleset import RULESETS


def every_ruleset(*quick: str, name: str = "ruleset") -> pytest.MarkDecorator:
    """Parametrise a test by rule set; all but those in ``quick`` are slow.

    Args:
        quick: names of rule sets.
        name: the test's parameter.
    """
    return pytest.mark.parametrize(
        name,
        [
            ruleset if ruleset in quick else pytest.param(ruleset, marks=pytest.mark.slow)
            for ruleset in RULESETS
        ],
    )


EVERY_RULESET = every_ruleset(*RULESETS)
"""Parametrises a test by rule set; no rule set is slow."""
