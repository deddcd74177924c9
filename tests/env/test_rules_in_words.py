"""Test that the rules in words tell every switch; docs/rules-in-words.md has the pages."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from bao_env.engine.ruleset import CHOICES, RULESETS, Ruleset
from bao_env.rules_in_words import rules_in_words

ZANZIBAR = RULESETS["zanzibar"]
SWITCHES = [field.name for field in dataclasses.fields(Ruleset) if field.name != "name"]
OPENINGS: dict[str, dict[str, Any]] = {
    "opening_front": {"opening_front": (0, 0, 0, 0, 6, 2, 1, 1)},
    "opening_back": {"opening_back": (2, *(0,) * 7), "opening_store": 20},
    "opening_store": {"opening_front": (0, 0, 0, 0, 6, 2, 2, 22), "opening_store": 0},
}
"""Other values of the opening switches; each side must keep its 32 seeds."""


def other_rules(switch: str) -> list[Ruleset]:
    """Return zanzibar with every other value of a switch; a number is increased by one."""
    value = getattr(ZANZIBAR, switch)
    if switch in OPENINGS:
        return [ZANZIBAR.replace(**OPENINGS[switch])]
    values: list[Any] = [not value] if isinstance(value, bool) else []
    if isinstance(value, str):
        values = [word for word in CHOICES[switch] if word != value]
    elif not values:
        values = [value + 1]
    return [ZANZIBAR.replace(**{switch: new_value}) for new_value in values]


@pytest.mark.parametrize("switch", SWITCHES)
def test_each_value_of_a_switch_changes_the_page(switch: str) -> None:
    rules = [ZANZIBAR, *other_rules(switch)]
    assert len({rules_in_words(ruleset) for ruleset in rules}) == len(rules) > 1


def test_a_game_without_houses_does_not_mention_them() -> None:
    assert "house" not in rules_in_words(ZANZIBAR.replace(house=False)).lower()
