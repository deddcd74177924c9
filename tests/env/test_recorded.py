"""Compare the recorded data of each rule set with the reference and the engine."""

from __future__ import annotations

import pytest

from tests.record import compare
from tests.rulesets import EVERY_RULESET


@EVERY_RULESET
@pytest.mark.parametrize("folder", ["playthroughs", "numbers"])
def test_what_is_recorded_is_made_again(folder: str, ruleset: str) -> None:
    """A changed signature means that the rules or the action encoding have changed: then increase
    RULES_VERSION.

    The perft numbers of zanzibar agree with those of other programs.
    """
    compare(folder, ruleset)
