"""Test what prevents a release, and what a package index shows."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.metadata.spec import get_core_metadata_constructors
from hatchling.plugin.manager import PluginManager

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


def metadata() -> str:
    """Return the metadata that a build of the checkout writes."""
    project = ProjectMetadata(str(ROOT), PluginManager())
    return str(get_core_metadata_constructors()["2.4"](project))


def test_metadata_have_the_readme_for_readers_without_a_checkout() -> None:
    head, _, text = metadata().partition("\n\n")
    assert "\nDescription-Content-Type: text/markdown" in head
    assert "`pip install bao_env`" in text and "pip install 'bao_env[train]' && bao train" in text
    for word in ("-e ", "clone", "<!--", "pytest", "Contributing", "\n\n\n"):
        assert word not in text, word
    if "\nProject-URL" not in head:  # then files are named, and exist
        assert not re.search(r"\]\((?!http|#)", text)
        files = re.findall(r"\(`([\w./-]+)`\)", text)
        assert "bao_env/RULES.md" in files and all((ROOT / file).exists() for file in files)


def test_description_names_files_if_there_is_no_address() -> None:
    readme = "![board](a.gif)\n[The rules](RULES.md#end) and [b](#c).\n\n<!-- cite -->\n## Cite\n"
    text = hatch_build.description(readme, "", "1.0")
    assert text == "\nThe rules (`RULES.md`) and [b](#c).\n\n## Cite\n"


def test_description_and_addresses_come_from_one_line() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    address = hatch_build.repository(citation + 'repository-code: "https://git.example/bao/"\n')
    assert address == "https://git.example/bao" and not hatch_build.repository("# " + citation)
    readme = "![board](agents/move.gif) [rules](bao_env/RULES.md) [site](https://x.org) [a](#b)"
    assert hatch_build.description(readme, address, "1.0") == (
        "![board](https://git.example/bao/raw/v1.0/agents/move.gif) "
        "[rules](https://git.example/bao/blob/v1.0/bao_env/RULES.md) [site](https://x.org) [a](#b)"
    )
