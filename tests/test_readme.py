"""The README's examples run and print what it says."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from bao_env.engine.ruleset import RULESETS, Ruleset

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_examples() -> None:
    for package in ("pygame", "scipy"):
        pytest.importorskip(package)
    results = doctest.testfile(
        str(ROOT / "README.md"), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert results.attempted > 20 and results.failed == 0


def test_commands_are_marked_for_ci() -> None:
    for name in ("train", "test"):
        assert len(re.findall(rf"<!-- {name} -->\n```sh\npip install [^\n]+\n```", README)) == 1


def test_files_that_it_links_exist() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    assert links and all((ROOT / link).exists() for link in links)


def test_rule_page_and_readme_name_every_rule_set_and_switch() -> None:
    rules = (ROOT / "bao_env" / "RULES.md").read_text(encoding="utf-8")
    for name in RULESETS:
        assert f"| `{name}` |" in README
        assert f"`{name}`" in rules or name == "zanzibar"
    plain = Ruleset().to_dict()
    for ruleset in RULESETS.values():
        for switch, value in ruleset.to_dict().items():
            assert value == plain[switch] or switch == "name" or switch in rules, switch
