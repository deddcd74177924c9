"""The board in a browser: clients that know no manners."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import resource
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from bao_env.engine.ruleset import RULESETS
from tests.attacks.hostile import mutated, replaced_somewhere
from tests.attacks.limits import GIB, ROOT, wait_until
from tests.make_golden import DATA
from tests.positions import random_position

POSTS: Final = ("play", "goto", "seats", "events", "choice", "why", "transcript", "hints", "bot")
PLAYERS: Final = ("human", "random", "greedy", "alphabeta:3", "alphabeta:9", "mcts:50", "zanzibar")
MAX_SERVER_BYTES: Final = 3 * GIB
ANSWER_SECONDS: Final = 3.0


class Client:
    """A client of the board that knows no manners.

    Args:
        rng: draws what it does.
        port: of the server on this machine.
    """

    def __init__(self, rng: random.Random, port: int) -> None:
        self._rng = rng
        self._port = port
        self._games: list[str] = []
        self._idle: list[socket.socket] = []

    def act(self) -> None:
        """Do one thing."""
        rng = self._rng
        with contextlib.suppress(OSError):  # it may be cut off; only what it is told counts
            way = rng.random()
            if way < 0.6:
                self.answer(self._request(*self._call()))
            elif way < 0.75:  # a request of which every byte may be wrong
                text = self._request(*self._call()).decode("latin-1")
                changed = mutated(rng, text, "GET /static/../../x HTTP/1.1\r\nTransfer-Encoding: ")
                self.answer(changed.encode("latin-1", "replace"), 1.0)
            elif way < 0.9:  # asks, and is gone before the answer
                connection = self._connect()
                data = self._request(*self._call())
                connection.sendall(data[: rng.choice((len(data), rng.randrange(len(data))))])
                linger = struct.pack("ii", 1, 0)  # a reset instead of an orderly end
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                connection.close()
            else:  # says little or nothing, and stays
                connection = self._connect()
                connection.sendall(rng.choice((b"", b"GET", b"POST /api/games HTTP/1.1\r\n")))
                self._idle.append(connection)
                if len(self._idle) > 30:
                    self._idle.pop(0).close()

    def answer(self, data: bytes, seconds: float = 30.0) -> bytes:
        """Send bytes; returns what the server says, as far as it comes in time.

        Raises:
            OSError: the server cut the connection.
            AssertionError: the server says that it made a mistake.
        """
        said = b""
        with self._connect() as connection:
            connection.settimeout(seconds)
            connection.sendall(data)
            with contextlib.suppress(TimeoutError):
                while len(said) < 1 << 20 and (more := connection.recv(1 << 16)):
                    said += more
        assert not re.match(rb"HTTP/1\.\d 500", said), (data[:3000], said[:1000])
        found = re.search(rb'"id": ?"([\w-]+)"', said)
        if found:
            kind = "watches" if b"/watches" in data[:40] else "games"
            self._games = [*self._games[-20:], f"/api/{kind}/{found[1].decode()}"]
        return said

    def is_answered(self) -> bool:
        """Whether the server answers a plain request."""
        try:
            return b" 200 " in self.answer(self._request("/api/setup", {}))[:20]
        except OSError:
            return False

    def _connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), timeout=10.0)

    def _call(self) -> tuple[str, dict[str, Any]]:
        """A path and values for it, some of them wrong."""
        rng = self._rng
        data: dict[str, Any] = {
            "ply": rng.choice((0, 0, 1, 2, 3, 10_000)),
            "action": rng.randrange(64),
            "pit": rng.randrange(16),
            "direction": rng.randrange(2),
            "seats": rng.choices(PLAYERS, k=2),
            "players": rng.choices(PLAYERS, k=2),
            "boards": rng.choice((1, 2, 8)),
            "ruleset": rng.choice(list(RULESETS)),
        }
        if rng.random() < 0.2:
            golden = sorted(DATA.glob("golden/*.txt"))
            data["transcript"] = mutated(rng, rng.choice(golden).read_text(), "[{")
        if rng.random() < 0.2:
            position = random_position(rng, RULESETS[data["ruleset"]])
            data["position"] = rng.choice((position, mutated(rng, position, "[{")))
        if rng.random() < 0.3:
            data = replaced_somewhere(rng, data)
        new = rng.choice(("/api/games", "/api/watches", "/api/example", "/api/setup", "/"))
        if not self._games or rng.random() < 0.3:
            return new, data
        game = rng.choice(self._games)
        return f"{game}/{rng.choice(('step',) if 'watches' in game else POSTS)}", data

    def _request(self, path: str, data: Any) -> bytes:
        get = path in ("/", "/api/setup")
        body = b"" if get else json.dumps(data).encode()
        head = [
            f"{'GET' if get else 'POST'} {path} HTTP/1.1",
            f"Host: 127.0.0.1:{self._port}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "Connection: close",
        ]
        return ("\r\n".join(head) + "\r\n\r\n").encode() + body


def _memory(process: int) -> int:
    """Bytes that a process holds in memory."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def board(rng: random.Random, folder: Path) -> None:
    """The server outlives bad clients: it soon answers again, makes no mistake, stays small."""
    command = [sys.executable, "-u", "-m", "agents.play", "--no-browser", "--port", "0"]
    server = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    assert server.stdout is not None
    found = re.search(rb":(\d+)/", server.stdout.readline())
    assert found is not None
    port = int(found[1])
    seeds = [rng.randrange(1 << 30) for _ in range(6)]
    errors: list[BaseException] = []

    def misbehave(seed: int) -> None:
        client = Client(random.Random(seed), port)
        end = time.monotonic() + 20.0
        try:
            while time.monotonic() < end:
                client.act()
        except BaseException as error:
            errors.append(error)

    try:
        friend = Client(random.Random(0), port)
        wait_until(friend.is_answered, 60, "the board does not start")
        threads = [threading.Thread(target=misbehave, args=(seed,)) for seed in seeds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for error in errors:
            raise error
        begun = time.monotonic()
        assert friend.is_answered()
        took = time.monotonic() - begun
        assert took < ANSWER_SECONDS, f"the board needed {took:.1f} s for an answer"
        assert server.poll() is None
        assert _memory(server.pid) < MAX_SERVER_BYTES, f"{_memory(server.pid)} bytes"
    finally:
        server.kill()
        server.wait()
