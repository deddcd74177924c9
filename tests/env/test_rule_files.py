"""Test custom rule sets: from switches, from files and inside transcripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from bao_env import RULESETS, Board, load_ruleset
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
