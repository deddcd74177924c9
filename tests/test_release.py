"""Test what prevents a release, and which commit a package names."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

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
    reasons = obstacles(tag, PACKAGE, f"# Changelog\n\n{head}\n\n## 0.0.1, 2026-01-01\n")
    if not head:
        reasons = obstacles(tag, PACKAGE, "")
    assert reason in "".join(reasons) and bool(reason) == bool(reasons)


def test_a_package_names_the_commit_of_its_own_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make = runpy.run_path(str(ROOT / ".ci" / "hatch_build.py"))["BuildHook"]
    hook = make(str(ROOT), {}, None, None, str(tmp_path), "wheel")
    commit = hook._commit()
    monkeypatch.setenv("GIT_DIR", str(tmp_path))  # as in a hook of another repository
    assert hook._commit() == commit
