"""Test custom rule sets: from switches, from files and inside transcripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from bao_env import RULESETS, Board, load_ruleset
from bao_env.notation import NotationError
from tests.conftest import Says


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_file_changes_switches(tmp_path: Path, encoding: str, says: Says) -> None:
    path = tmp_path / "mild.toml"
    path.write_text('base = "dutch"\ntakasia = "none"\nsow_limit = 500\n', encoding)
    assert load_ruleset(path) == RULESETS["dutch"].replace(
        name="mild", takasia="none", sow_limit=500
    )
    says(f"bench perft 3 --ruleset {path}")
    path.write_text("sow_limit = 500")
    assert load_ruleset(path) == RULESETS["zanzibar"].replace(name="mild", sow_limit=500)


@pytest.mark.parametrize(
    "text, message",
    [
        ("sow = 3", "unknown rule switch 'sow'; the switches are"),
        ("opening_store = 21", "each player must start with 32 seeds"),
        ('house_min = "six"', "house_min='six': expected an integer, such as 6"),
        ("house = 1", "house=1: expected a boolean, such as True"),
        ('takasia = "some"', "expected one of none, zanzibar, dutch"),
        ('base = "chess"', "unknown rule set 'chess'"),
        ("sow_limit = 10", "expected an integer from 64"),
        ("house = false\nhouse_lost_below_min = true", "set both to False"),
        ("opening_front = [0, 0, 0, 0, 0, 5, 5, 0]", "house=True needs seeds in hole 5"),
        ("opening_front = 3", "expected eight counts"),
        ("opening_front = [6, 2, 2]", "expected eight counts of seeds"),
        ("a = = 3", "not valid TOML"),
        ("a = " + "[" * 5000, "not valid TOML"),
        ("a" + ".a" * 32_000 + " = 1", "at most 8192 bytes"),  # would take 49 s to parse
    ],
)
def test_invalid_files_raise(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_ruleset(path)


def test_own_rules_travel_in_transcripts() -> None:
    rules = RULESETS["malawi"].replace(name="mine", sow_limit=300, takasia="none")
    board = Board(ruleset=rules)
    for _ in range(9):
        board.push(board.legal_actions[-1])
    text = board.transcript()
    assert "ruleset: mine" in text
    again = Board.from_transcript(text)
    assert again == board and again.ruleset == rules
    named = Board(ruleset="kibao")
    assert "rules:" not in named.transcript()


@pytest.mark.parametrize(
    "switches", ["{", "[]", '{"sow": 3}', "3", '{"house_min": []}', "[" * 3000]
)
def test_invalid_rules_in_a_transcript_raise(switches: str) -> None:
    with pytest.raises(NotationError):
        Board.from_transcript(f"rules: {switches}\n1: 6L*;\n")
