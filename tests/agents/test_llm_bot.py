"""Test the example that plays with a language model, against a server that answers anything."""

from __future__ import annotations

import io
import json
import re
import runpy
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from bao_env import RULESETS, Board
from tests.conftest import Capsys, Says
from tests.positions import OPENING, WAITING
from tests.processes import ROOT

EXAMPLE = ROOT / "training" / "examples" / "llm_bot.py"
LEGAL = "Your legal moves: "


class Server(ThreadingHTTPServer):
    """Answers every request with ``status`` and ``text``, else with the first legal move.

    After ``moves`` moves it resigns.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status, self.finish_reason = 200, "stop"
        self.text: str | None = None
        self.moves = 99
        self.requests: list[dict[str, Any]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(asked)
        text = self.server.text
        if text is None and len(self.server.requests) > self.server.moves:
            text = "I resign."
        if text is None:
            text = f"Move: {asked['messages'][-1]['content'].partition(LEGAL)[2].split()[0]}"
        choice = {"message": {"content": text}, "finish_reason": self.server.finish_reason}
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(json.dumps({"choices": [choice]}).encode())

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_address[1]}/v1")
        monkeypatch.setenv("OPENAI_MODEL", "stub")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def play(
    monkeypatch: pytest.MonkeyPatch, capsys: Capsys, name: str = "zanzibar", at: str = OPENING
) -> str:
    """Run the example for one move, and return the last line that it writes."""
    legal = " ".join(map(str, Board.from_text(at, name).legal_actions))
    rules = json.dumps(RULESETS[name].to_dict())
    host = ("bao 1", f"ruleset {rules}", "isready", f"position {at}", f"legal {legal}")
    lines = "\n".join([*host, "go movetime 5000", "quit\n"])
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    try:
        runpy.run_path(str(EXAMPLE))
    except SystemExit as end:
        assert end.code == 1
    *started, last = capsys.readouterr().out.splitlines()
    assert started in ([], ["name stub", "ready"]) and last.isascii() and last.isprintable()
    return last


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("I take A7.\nMove: A7R", "move 26"),
        ("Move: A6L\nNo, rather this:\nMove: A6R\nThank you.", "move 22"),
        ("Move: A6L\nNo, rather this:\nMove: A1L", "move none"),
        ("Move: A6L\nIt is not Move: A6R", "move 20"),
        ("The best one is Move: A6L", "move none"),
        ("Move: \x1b[31m\u202e", "move none"),
        ("", "move none"),
    ],
)
def test_answers(
    text: str, answer: str, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    server.text = text
    assert re.match(answer, play(monkeypatch, capsys))
    assert len(server.requests) == 1
    system, asked = (message["content"] for message in server.requests[0]["messages"])
    assert "TAKASIA." in system and str(Board()) in asked and f"{LEGAL}A6L A6R A7L A7R" in asked


def test_what_is_cut_off_is_no_move(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    server.finish_reason = "length"
    assert play(monkeypatch, capsys) == "move none"
    assert len(server.requests) == 1


def test_a_server_that_refuses(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    server.status = 429
    assert play(monkeypatch, capsys).startswith("error ValueError: 'HTTP Error 429")


def test_a_capture_that_waits(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    assert play(monkeypatch, capsys, "dutch", WAITING).startswith("move ")


def test_no_model_in_the_environment(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    monkeypatch.delenv("OPENAI_MODEL", raising=False)
    assert "set OPENAI_BASE_URL and OPENAI_MODEL" in play(monkeypatch, capsys)


def test_in_a_match(server: Server, says: Says) -> None:
    """What cannot be read loses the game."""
    server.moves = 6
    # Named: a match seeds its players by their names, and this command holds a path.
    said = says(f"match 'model=pipe:{sys.executable} {EXAMPLE}' random --pairs 1")
    assert "model lost 2 games by faults: found no move" in said
    assert len(server.requests) == 8
