"""Serve on loopback what language models may answer: well, badly, late, or not at all."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from bao_env.bots import GreedyAgent
from bao_env.engine.action import NUM_ACTIONS, mask_of
from bao_env.engine.position import Position, Words, to_words
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.game import legal_actions
from bao_env.notation.positions import parse_position
from bao_env.text_game import say_move

_CELL = re.compile(r"([abAB])([1-8]): ?(\d+)")


def read_prompt(prompt: str, ruleset: Ruleset) -> Position:
    """Return the position that a prompt shows, read only from its words.

    It does not show the seeds that a waiting move has sown.
    """
    counts = {row: ["0"] * 8 for row in "ABab"}
    for row, hole, count in _CELL.findall(prompt):
        counts[row][int(hole) - 1] = count
    stores = re.findall(r"(?:South|North): (\d+) in store", prompt)
    mover = re.search(r"(South|North) to move, (?:namua|mtaji)", prompt)
    assert len(stores) == 2 and mover
    owners = "".join("SN"[row == "a"] for row in re.findall("owns the house ([aA])5", prompt))
    barred = re.search(r"takasia bars (\w\d)", prompt)
    waiting = re.search(r"the capture at (\w\d) waits", prompt)
    fields = [
        "/".join(",".join(row) for row in counts.values()),
        ",".join(stores),
        owners or "-",
        mover[1][0],
        barred[1] if barred else "-",
        *([f"{waiting[1]}:0"] if waiting else []),
    ]
    return parse_position(" ".join(fields), ruleset)


def greedy_move(words: Words, ruleset: Ruleset) -> str:
    """Return the move of the greedy bot in words."""
    legal = np.array([mask_of(legal_actions(words, ruleset))], np.uint64)
    return say_move(words, ruleset, int(GreedyAgent(ruleset).act(words[None], legal)[0]))


# --- models: what they answer, as text or as (status, headers, body) ------------------------------


def _shown(stub: Stub, messages: list[dict[str, str]]) -> Words:
    """Return the last position that a conversation shows."""
    shown = [message["content"] for message in messages if "in store" in message["content"]]
    return to_words(read_prompt(shown[-1], stub.ruleset))


def _greedy(stub: Stub, messages: list[dict[str, str]]) -> str:
    words = _shown(stub, messages)
    return f"A5 is full, so not A1 towards A2.\n\n**Move:** {greedy_move(words, stub.ruleset)}."


def _illegal(stub: Stub, messages: list[dict[str, str]]) -> str:
    words = _shown(stub, messages)
    legal = legal_actions(words, stub.ruleset)
    action = next(action for action in range(NUM_ACTIONS) if action not in legal)
    return f"Move: {say_move(words, stub.ruleset, action)}"


def _late(stub: Stub, messages: list[dict[str, str]]) -> str:
    """Play an illegal move first, then the greedy one once told so."""
    return (_illegal if len(messages) < 4 else _greedy)(stub, messages)


def _flaky(stub: Stub, messages: list[dict[str, str]]) -> Any:
    stub.asked[messages[1]["content"]] += 1
    first = stub.asked[messages[1]["content"]] == 1
    return (503, {"Retry-After": "0.01"}, b"busy") if first else _greedy(stub, messages)


def _completion(content: object) -> bytes:
    message = {"role": "assistant", "content": content}
    usage = {"total_tokens": 100}
    return json.dumps({"choices": [{"index": 0, "message": message}], "usage": usage}).encode()


def _stream(content: str) -> bytes:
    """Return a completion as server-sent events, which Verifiers asks for."""
    head = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "stub"}
    delta: dict[str, str] = {"role": "assistant", "content": content}
    choices = {"index": 0, "delta": delta}, {"index": 0, "delta": {}, "finish_reason": "stop"}
    events = [head | {"choices": [choice]} for choice in choices]
    return "".join(f"data: {data}\n\n" for data in (*map(json.dumps, events), "[DONE]")).encode()


MODELS: dict[str, Callable[[Stub, list[dict[str, str]]], Any]] = {
    "org/greedy:free": _greedy,
    "illegal": _illegal,
    "late": _late,
    "flaky": _flaky,
    "rambling": lambda stub, messages: "Well, hole A4 and hole A5 ... " * 5000,
    "echo": lambda stub, messages: messages[-1]["content"],
    "echo all": lambda stub, messages: json.dumps(messages),
    "silent": lambda stub, messages: (200, {}, _completion(None)),
    "parts": lambda stub, messages: (200, {}, _completion([{"text": "A6L"}])),
    "control": lambda stub, messages: "\x00\x1b]0;x\x07\u202e\ud800 Move: \udfff",
    "huge": lambda stub, messages: "x" * (9 << 20),
    "html": lambda stub, messages: (200, {}, b"<html>"),
    "utf-16": lambda stub, messages: (200, {}, _completion("A6L").decode().encode("utf-16")),
    "nested": lambda stub, messages: (200, {}, b"[" * 100_000),
    "no choices": lambda stub, messages: (200, {}, b'{"choices": []}'),
    "number": lambda stub, messages: (200, {}, b'{"choices": 7, "usage": "many"}'),
    "zip": lambda stub, messages: (200, {"Content-Encoding": "gzip"}, b"no gzip"),
    "500": lambda stub, messages: (500, {}, b"\xff\x00" * 100),
    "429": lambda stub, messages: (429, {"Retry-After": "soon"}, b"{}"),
    "cut": lambda stub, messages: (200, {"Content-Length": "100000"}, b'{"choices":'),
    "401": lambda stub, messages: (401, {}, b'{"error": {"message": "who are you?"}}'),
    "404": lambda stub, messages: (404, {}, b"no such \xff model"),
    "half-open": lambda stub, messages: stub.ended.wait(),
    "drip": lambda stub, messages: None,
}
"""What a model answers, by its name."""


class Stub(ThreadingHTTPServer):
    """A server of :data:`MODELS`, which see positions of ``ruleset``."""

    daemon_threads = True
    ended: threading.Event

    def __init__(self, ruleset: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.ruleset = get_ruleset(ruleset)
        self.requests: list[dict[str, Any]] = []
        """The bodies of all requests."""
        self.asked: Counter[str] = Counter()
        self.ended = threading.Event()
        """Set when the server ends."""

    @property
    def url(self) -> str:
        """The address for ``OPENAI_BASE_URL``."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that have hung up."""


class _Handler(BaseHTTPRequestHandler):
    server: Stub

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        answer = MODELS[body["model"]](self.server, body["messages"])
        if body["model"] == "drip":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not self.server.ended.wait(0.1):
                self.wfile.write(b"X-A: b\r\n")
        if isinstance(answer, str) and body.get("stream"):
            answer = 200, {"Content-Type": "text/event-stream"}, _stream(answer)
        elif isinstance(answer, str):
            answer = 200, {}, _completion(answer)
        if isinstance(answer, tuple):
            status, headers, data = answer
            self.send_response(status)
            for name, value in ({"Content-Length": str(len(data))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@contextmanager
def serve(ruleset: str = "zanzibar") -> Iterator[Stub]:
    """Run a stub in a thread."""
    stub = Stub(ruleset)
    thread = threading.Thread(target=stub.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield stub
    finally:
        stub.ended.set()
        stub.shutdown()
        thread.join()
        stub.server_close()
