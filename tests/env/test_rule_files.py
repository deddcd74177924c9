"""Test custom rule sets: from switches, from files and inside transcripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bao_env import RULESETS, Board, Ruleset, load_ruleset
from tests.conftest import Says


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_file_changes_switches(tmp_path: Path, encoding: str, says: Says) -> None:
    path = tmp_path / "mild.toml"
    path.write_text('base = "dutch"\ntakasia = "none"\nsow_limit = 500\n', encoding)
    mild = RULESETS["dutch"].replace(name="mild", takasia="none", sow_limit=500)
    assert load_ruleset(path) == mild and load_ruleset(path).name == "mild"
    says(f"bench perft 3 --ruleset {path}")
    path.write_text("sow_limit = 500".ljust(8192))  # the longest file
    assert load_ruleset(path) == RULESETS["zanzibar"].replace(name="mild", sow_limit=500)
    bounds = {"house_min": (2, 64), "capture_limit": (2, 63), "sow_limit": (64, 1_000_000)}
    for switch, (lowest, highest) in bounds.items():
        for value in (lowest, highest):
            path.write_text(f"{switch} = {value}")
            assert getattr(load_ruleset(path), switch) == value
        for value in (lowest - 1, highest + 1):
            path.write_text(f"{switch} = {value}")
            with pytest.raises(ValueError, match=f"from {lowest} to {highest}"):
                load_ruleset(path)


def test_a_shipped_name_belongs_to_shipped_rules() -> None:
    own = Ruleset(house_min=8)
    assert own.name == Ruleset.from_dict({"name": "zanzibar", "house_min": 8}).name == "zanzibar+"
    assert RULESETS["dutch"].replace(name="malawi").name == "malawi+"
    for name, shipped in RULESETS.items():
        assert Ruleset.from_dict(shipped.to_dict()).name == name == shipped.name
    assert own == Ruleset("mine", house_min=8) != Ruleset("zanzibar+")
    for name, changed in ("a", "a+"), ("x" * 100, "x" * 99 + "+"):
        assert Ruleset(name).replace(house_min=8).name == changed


@given(st.text(max_size=30))
@example(" mine")
@example("12: 7L*;")
@example("a\u00a0")
@example("\u202eab")
def test_a_transcript_holds_each_name(name: str) -> None:
    """A rule set cannot be made with any other name."""
    try:
        rules = Ruleset(name, house_min=8)
    except ValueError:
        return
    assert Board.from_transcript(Board(rules).transcript()).ruleset.name == rules.name


def test_errors_tell_two_rule_sets_apart() -> None:
    mine, namesake = Ruleset("mine", house_min=8), Ruleset("mine", takasia="none")
    assert mine.contrast(namesake) == "'mine' (house_min=8, not 6; takasia='zanzibar', not 'none')"
    assert mine.contrast(RULESETS["zanzibar"]) == "'mine', not 'zanzibar' (house_min=8, not 6)"
    assert RULESETS["dutch"].contrast(RULESETS["kibao"]) == "'dutch', not 'kibao'"


def test_rules_of_earlier_versions_are_read() -> None:
    """Earlier versions wrote "lot" for a player drawn at random, and names could have spaces around
    them."""
    rules = RULESETS["kujifunza"]
    old = Ruleset.from_dict({**rules.to_dict(), "first_player": "lot", "name": " kujifunza "})
    assert (old, old.name, rules.first_player) == (rules, "kujifunza", "random")
