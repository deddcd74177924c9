"""Documents: links and commands exist, examples run, tables match their data."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from types import ModuleType

import pytest

from bao_env.engine.ruleset import RULESETS, Ruleset

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted(
    path
    for folder in (".", "bao_env", "agents", "training", "tests")
    for path in (ROOT / folder).glob("*.md" if folder == "." else "**/*.md")
)
TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in DOCUMENTS}


def anchors(text: str) -> set[str]:
    """Return the anchors of a document: its headings as GitHub spells them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture
def tables() -> ModuleType:
    """The command that makes tables, which needs SciPy."""
    from training.lab import tables

    return tables


@pytest.mark.parametrize("name", TEXTS)
def test_links_exist(name: str) -> None:
    missing = []
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", TEXTS[name]):
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        if not target.exists() or (
            anchor and anchor not in anchors(target.read_text(encoding="utf-8"))
        ):
            missing.append(link)
    assert not missing


@pytest.mark.parametrize("name", sorted(TEXTS.keys() - {"training/lab/NOTES.md"}))
def test_commands_exist(name: str) -> None:
    modules = re.findall(r"-m (?:-- )?((?:bao_env|agents|training|tests)\b[\w.]*)", TEXTS[name])
    paths = [ROOT / module.rstrip(".").replace(".", "/") for module in modules]
    missing = [
        path
        for path in paths
        if not (path.with_suffix(".py").is_file() or (path / "__main__.py").is_file())
    ]
    assert not missing


@pytest.mark.parametrize("name", ["README.md", "bao_env/README.md", "agents/README.md"])
def test_examples(name: str) -> None:
    if not name.startswith("bao_env"):
        import pygame  # noqa: F401 - skipped where it is missing
        import scipy  # noqa: F401
    results = doctest.testfile(
        str(ROOT / name), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert results.attempted > 5 and results.failed == 0


def test_set_up_commands_are_marked_for_ci() -> None:
    for name in ("train", "test"):
        pattern = rf"<!-- {name} -->\n```sh\npip install [^\n]+\n```"
        assert len(re.findall(pattern, TEXTS["README.md"])) == 1


def test_rules_and_readme_name_every_ruleset_and_switch() -> None:
    rules = TEXTS["bao_env/RULES.md"]
    plain = Ruleset().to_dict()
    for name, ruleset in RULESETS.items():
        assert f"| `{name}` |" in TEXTS["README.md"]
        assert f"`{name}`" in rules or name == "zanzibar"
        for switch, value in ruleset.to_dict().items():
            assert value == plain[switch] or switch == "name" or switch in rules, switch


def test_tables_are_current(tables: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert tables.main(["--check"]) == 0, capsys.readouterr().err


def test_stale_tables_are_found_and_rewritten(
    tables: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "RESULTS.md"
    good = TEXTS["training/RESULTS.md"]
    results.write_text(good.replace("+1760", "+1761"), encoding="utf-8")
    monkeypatch.setattr(tables, "RESULTS", results)
    assert tables.main(["--check"]) == 1
    assert tables.main([]) == 0 and results.read_text(encoding="utf-8") == good


@pytest.mark.parametrize(
    "text", ["", "<!-- a -->\n", "<!-- /a -->\n<!-- a -->\n", "<!-- a -->\n" * 2 + "<!-- /a -->\n"]
)
def test_a_document_without_its_marks_raises(tables: ModuleType, text: str) -> None:
    with pytest.raises(ValueError, match="expected one line"):
        tables.replace_between(text, "a", "part")


def test_the_readme_stays_short() -> None:
    assert len(TEXTS["README.md"].splitlines()) <= 190
