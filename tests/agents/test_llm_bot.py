"""Test the example that plays with a language model: its version, and how it reads an answer."""

from __future__ import annotations

import io
import json
import runpy
import sys
import urllib.request

import pytest

from bao_env import Board
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


def test_what_the_server_sent_instead_of_a_move_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The host alone would say that the program found no move, or had a KeyError."""

    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")

    def play(answer: object) -> tuple[str, str]:
        body = json.dumps(answer).encode()
        monkeypatch.setattr(urllib.request, "urlopen", lambda *args, **options: io.BytesIO(body))
        lines = "ruleset zanzibar", f"position {Board().text()}", "legal 20 22", "go movetime 1000"
        monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines)))
        runpy.run_path(str(EXAMPLE))
        return capsys.readouterr()

    choice = {"finish_reason": "stop", "message": {"content": "I think.\n**Move: A6L**"}}
    out, err = play({"choices": [choice]})
    assert out == "move none\n"
    assert err.endswith(r"named no legal move: ...'I think.\n**Move: A6L**'" + "\n")
    with pytest.raises(SystemExit):
        play({"error": "no such model"})
    assert "the server answered {" in (out := capsys.readouterr().out) and "no such model" in out


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
