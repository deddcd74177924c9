"""Test the example that plays with a language model: what it reads in an answer."""

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
