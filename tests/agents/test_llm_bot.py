"""Test the example that plays with a language model: its version, and how it reads an answer."""

from __future__ import annotations

import io
import runpy
import sys

import pytest

from tests.processes import ROOT

EXAMPLE = ROOT / "training" / "examples" / "llm_bot.py"


def test_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    read_move = runpy.run_path(str(EXAMPLE))["read_move"]
    for text, move in (
        ("Move: A6L\nNo, rather this:\nMove: A6R \nThank you.", 22),
        ("Move: A6L\nNo, rather this:\nMove: A1L", "none"),
        ("The best one is Move: A6L", "none"),
        ("", "none"),
    ):
        assert read_move(text, {"A6L": 20, "A6R": 22}) == move, text


def test_a_continued_match_keeps_the_games_of_the_same_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A match plays games again unless the program reports a version, the same as before."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
    versions = []
    for model in ("small", "small", "large"):
        monkeypatch.setenv("OPENAI_MODEL", model)
        monkeypatch.setattr(sys, "stdin", io.StringIO("ruleset zanzibar\nisready\n"))
        runpy.run_path(str(EXAMPLE))
        versions += [line for line in capsys.readouterr().out.splitlines() if "version" in line]
    assert versions[0] == versions[1] != versions[2]
