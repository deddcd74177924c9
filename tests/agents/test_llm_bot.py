"""Test the example that plays with a language model, against a server that answers anything."""

from __future__ import annotations

import io
import json
import runpy
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.conftest import Says
from tests.processes import ROOT

EXAMPLE = ROOT / "training" / "examples" / "llm_bot.py"
asked: list[str] = []
"""The questions so far."""


class _Model(BaseHTTPRequestHandler):
    """Plays the first legal move, and resigns after six."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked.append(request["messages"][-1]["content"])
        first = asked[-1].partition("Your legal moves: ")[2].split()[0]
        text = f"Move: {first}" if len(asked) <= 6 else "I resign."
        choice = {"message": {"content": text}, "finish_reason": "stop"}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"choices": [choice]}).encode())


def test_in_a_match(says: Says, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be read loses the game."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Model) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_address[1]}/v1")
        monkeypatch.setenv("OPENAI_MODEL", "stub")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        # Named: a match seeds its players by their names, and this command holds a path.
        said = says(f"match 'model=pipe:{sys.executable} {EXAMPLE}' random --pairs 1")
        server.shutdown()
    assert "model lost 2 games by faults: found no move" in said
    assert len(asked) == 8


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
