"""Test that the pages show what ``python docs/generated.py`` generates from the code."""

from __future__ import annotations

import pytest

from bao_agents.cli.main import COMMANDS
from bao_env import RULESETS
from docs import generated

PAGES = {str(page.relative_to(generated.ROOT)): page for page in generated.pages()}
REMAKE = "run python docs/generated.py, and read the difference"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_what_the_code_says(name: str) -> None:
    text, pictures = generated.make(PAGES[name])
    assert PAGES[name].read_text(encoding="utf-8") == text, REMAKE
    for picture, drawn in pictures.items():
        assert (generated.BOARDS / picture).read_text(encoding="utf-8") == drawn, REMAKE


def test_every_picture_is_on_a_page() -> None:
    pictures = {picture for page in PAGES.values() for picture in generated.make(page)[1]}
    assert {file.name for file in generated.BOARDS.glob("*.svg")} == pictures, REMAKE


def test_the_pages_have_every_rule_set_and_command() -> None:
    rules, commands = (
        PAGES[name].read_text(encoding="utf-8")
        for name in ("docs/rules-in-words.md", "docs/commands.md")
    )
    assert [name for name in RULESETS if f"<!-- rules {name} -->" not in rules] == []
    assert [name for name in COMMANDS if f"\n## bao {name}\n" not in commands] == [], REMAKE
