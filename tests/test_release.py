"""Test what prevents a release, and what a package index shows."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import hatch_build

ROOT = Path(__file__).parent.parent
PACKAGE = '__version__ = "0.2.0"\n'


@pytest.mark.parametrize(
    ("tag", "head", "reason"),
    [
        ("v0.2.0", "## 0.2.0, 2027-01-31", ""),
        ("v0.2.1", "## 0.2.0, 2027-01-31", "expected the tag v0.2.0"),
        ("v0.2.0", "## 0.1.0, 2027-01-31", "CHANGELOG.md begins with 0.1.0"),
        ("v0.2.0", "## 0.2.0, unreleased", "says 'unreleased' of 0.2.0"),
        ("v0.2.0", "", "expected __version__"),
    ],
)
def test_what_stops_a_release(tag: str, head: str, reason: str) -> None:
    obstacles = runpy.run_path(str(ROOT / ".ci" / "release.py"))["obstacles"]
    found = obstacles(tag, PACKAGE, f"# Changelog\n\n{head}\n\n## 0.0.1, 2026-01-01\n")
    if not head:
        found = obstacles(tag, PACKAGE, "")
    assert reason in "".join(found) and bool(reason) == bool(found)


def test_description_without_an_address_has_no_dead_links() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    text = hatch_build.description(readme, "", "1.0")
    assert not re.search(r"\]\((?!http|#)", text) and "-e " not in text
    assert "pip install 'bao_env[train]' && bao train quick" in text


def test_description_and_addresses_come_from_one_line() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    address = hatch_build.repository(citation + 'repository-code: "https://git.example/bao/"\n')
    assert address == "https://git.example/bao" and not hatch_build.repository("# " + citation)
    readme = "![board](agents/move.gif) [rules](bao_env/RULES.md) [site](https://x.org) [a](#b)"
    assert hatch_build.description(readme, address, "1.0") == (
        "![board](https://git.example/bao/raw/v1.0/agents/move.gif) "
        "[rules](https://git.example/bao/blob/v1.0/bao_env/RULES.md) [site](https://x.org) [a](#b)"
    )
