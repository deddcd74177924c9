"""Compare the recorded data of each rule set with the reference and the engine."""

from __future__ import annotations

from bao_env.engine.ruleset import RULESETS
from bao_env.engine.signature import signature
from tests.make_golden import (
    perft_numbers,
    playthrough,
    playthrough_file,
    recorded_numbers,
)
from tests.rulesets import EVERY_RULESET


@EVERY_RULESET
def test_playthrough(ruleset: str) -> None:
    """If a difference is intended, make the file again, and read it before you commit it."""
    text = playthrough_file(ruleset).read_text(encoding="ascii")
    assert playthrough(RULESETS[ruleset]) == text


@EVERY_RULESET
def test_signature(ruleset: str) -> None:
    """A change here is a change of the rules or of the encoding: then increase RULES_VERSION."""
    assert signature(ruleset) == recorded_numbers(ruleset)["signature"]


@EVERY_RULESET
def test_perft(ruleset: str) -> None:
    """The numbers of zanzibar agree with those of other programs."""
    numbers = recorded_numbers(ruleset)["perft"]
    assert perft_numbers(RULESETS[ruleset], len(numbers)) == numbers
