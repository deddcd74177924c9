"""Test custom rule sets: from switches, from files and inside transcripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from bao_env import RULESETS, load_ruleset
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
