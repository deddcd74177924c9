"""Test ``bao rules``, which prints the rules of a rule set."""

from __future__ import annotations

from pathlib import Path

import pytest

from bao_agents.cli.main import main as bao
from bao_env import RULESETS
from bao_env.rules_in_words import rules_in_words
from tests.conftest import Capsys


@pytest.mark.parametrize("name", ["", *RULESETS])
def test_the_page_is_printed_in_short_lines(name: str, capsys: Capsys) -> None:
    assert bao(["rules", *name.split()]) == 0
    text = capsys.readouterr().out
    assert text.split() == rules_in_words(RULESETS[name or "zanzibar"]).split()
    assert max(len(line) for line in text.splitlines()) <= 100


def test_your_rules_are_printed(tmp_path: Path, capsys: Capsys) -> None:
    file = tmp_path / "four.toml"
    file.write_text(
        "opening_front = [4, 4, 4, 4, 4, 4, 4, 4]\nopening_store = 0\nhouse = false\n",
        encoding="utf-8",
    )
    assert bao(["rules", str(file)]) == 0
    assert "Front row: 4 in every hole" in capsys.readouterr().out
