"""The board's server under load: slow bots, clients that leave, and connections that hang."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import httpx2
import numpy as np
import pytest

from agents import registry
from agents.base import OnBoard, PlayerKind
from agents.play.computing import MAX_WAITING, Computing
from agents.play.connections import TimedProtocol, make_server, max_connections
from agents.play.refused import Refused
from agents.play.roster import Roster
from agents.play.server import create_app

PATIENCE = 60.0
"""Seconds for what takes far less, even on a busy machine."""


class Thinking:
    """A bot that thinks until it is told to stop."""

    def __init__(self) -> None:
        self.asked = 0
        self.told = threading.Event()

    def act(self, positions: Any, masks: Any) -> Any:
        self.asked += 1
        assert self.told.wait(PATIENCE)
        return np.array([int(mask & -mask).bit_length() - 1 for mask in masks.tolist()])


@pytest.fixture
def bot(monkeypatch: pytest.MonkeyPatch) -> Iterator[Thinking]:
    """The player ``thinking`` of the board."""
    found = Thinking()
    label = {"": OnBoard({"en": "Thinking"})}
    row = PlayerKind("thinking", "thinking", {}, lambda _: found, on_board=label)
    monkeypatch.setattr("agents.registry.KINDS", (*registry.KINDS, row))
    yield found
    found.told.set()


@contextmanager
def serve() -> Iterator[int]:
    """A server as the command runs it, in a thread; gives its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    running = make_server(create_app(Roster()))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        running.should_exit = True
        thread.join()
        listener.close()


def connect(port: int) -> httpx2.Client:
    return httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE)


def post(http: httpx2.Client, path: str, status: int = 200, **data: Any) -> dict[str, Any]:
    answer = http.post(path, json=data)
    assert answer.status_code == status, answer.text
    return answer.json()


def start(http: httpx2.Client, *seats: str) -> str:
    return f"/api/games/{post(http, '/api/games', seats=seats)['id']}"


def request(path: str, body: str, length: int = 0) -> bytes:
    """A request as bytes; ``length`` is that of a body of which more is to come."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length or len(body)}\r\n\r\n{body}"
    ).encode()


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


# --- computing ----------------------------------------------------------------------------------


def test_a_person_does_not_wait_for_bots(bot: Thinking) -> None:
    """Bots of six watches and four games think as long as a person plays, undoes and starts."""
    with serve() as port, connect(port) as http, ThreadPoolExecutor(10) as pool:
        watches = [
            post(http, "/api/watches", players=["thinking"] * 2, boards=2)["id"] for _ in range(6)
        ]
        asked = [pool.submit(post, http, f"/api/watches/{name}/step") for name in watches] + [
            pool.submit(post, http, f"{start(http, 'thinking', 'human')}/bot", ply=0)
            for _ in "abcd"
        ]
        until(lambda: bot.asked > 0)
        game = start(http, "human", "human")
        for ply in range(3):
            state = http.get(game).json()["state"]
            action = state["legal"][0]["action"]
            assert post(http, f"{game}/play", action=action, ply=ply)["state"]["ply"] == ply + 1
        assert post(http, f"{game}/goto", ply=0)["state"]["ply"] == 0
        assert not any(one.done() for one in asked)
        bot.told.set()
        for one in asked:
            assert one.result(PATIENCE)["state"]


def test_nobody_waits_for_a_client_that_has_left(
    bot: Thinking, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[Future[Any]] = []
    submit = Computing._submit

    def remember(self: Computing, client: str, work: Callable[[], Any]) -> Future[Any]:
        waiting.append(submit(self, client, work))
        return waiting[-1]

    monkeypatch.setattr(Computing, "_submit", remember)
    with serve() as port, connect(port) as http, ThreadPoolExecutor(1) as pool:
        first, left = start(http, "thinking", "human"), start(http, "thinking", "human")
        busy = [pool.submit(post, http, f"{first}/bot", ply=0)]
        until(lambda: bot.asked > 0)
        with socket.create_connection(("127.0.0.1", port)) as leaving:
            leaving.sendall(request(f"{left}/bot", '{"ply": 0}'))
            until(lambda: len(waiting) == 2)
        until(lambda: waiting[1].cancelled())
        bot.told.set()
        assert busy[0].result(PATIENCE)["state"]["ply"] == 1
        assert bot.asked == 1 and http.get(left).json()["state"]["ply"] == 0


def test_a_client_cannot_queue_without_end(bot: Thinking) -> None:
    with serve() as port, connect(port) as http, ThreadPoolExecutor(8) as pool:
        game = start(http, "thinking", "human")
        asked = [pool.submit(http.post, f"{game}/bot", json={"ply": 0}) for _ in range(8)]
        until(lambda: sum(one.done() for one in asked) == 8 - MAX_WAITING - 1)
        for one in asked:
            if one.done():
                assert one.result().status_code == 429
                assert "wait already" in one.result().json()["error"]
        bot.told.set()
        assert sorted(one.result(PATIENCE).status_code for one in asked)[0] == 200


def test_clients_take_turns() -> None:
    """One who asks for much does not hold up the others; a client's own work is in order."""
    order: list[str] = []
    begun, told = threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        assert told.wait(PATIENCE)

    async def ask() -> None:
        computing = Computing(threads=1)
        running = [asyncio.create_task(computing.run("a", first, PATIENCE))]
        await asyncio.to_thread(begun.wait, PATIENCE)
        for name in ("a1", "a2", "a3", "b1", "b2", "c1"):
            work = partial(order.append, name)
            running.append(asyncio.create_task(computing.run(name[0], work, PATIENCE)))
        await asyncio.sleep(0)  # all of them are in their queues
        told.set()
        await asyncio.gather(*running)

    asyncio.run(ask())
    assert order == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_one_client_computes_on_one_thread() -> None:
    running, most = [0], [0]

    def work() -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        time.sleep(0.02)
        running[0] -= 1

    async def ask() -> None:
        computing = Computing(threads=3)
        await asyncio.gather(*(computing.run("one", work, PATIENCE) for _ in range(MAX_WAITING)))

    asyncio.run(ask())
    assert most == [1]


def test_what_computes_too_long_is_given_up() -> None:
    told = threading.Event()

    async def ask() -> None:
        computing = Computing(threads=1)
        with pytest.raises(Refused, match="took longer than"):
            await computing.run("a", lambda: told.wait(PATIENCE), 0.05)
        with pytest.raises(Refused, match="took longer than"):
            await computing.run("b", lambda: pytest.fail("dropped"), 0.05)
        told.set()
        assert await computing.run("c", lambda: 5, PATIENCE) == 5
        with pytest.raises(TimeoutError, match="its own"):
            await computing.run("d", fail, PATIENCE)

    def fail() -> None:
        raise TimeoutError("its own")

    asyncio.run(ask())


# --- connections --------------------------------------------------------------------------------


def closed_by_server(connection: socket.socket) -> bool:
    """Whether the other side closes within the patience; what it sent before is read."""
    connection.settimeout(PATIENCE)
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    return True


def test_a_client_that_leaves() -> None:
    """Half a request, and an answer that nobody waits for, do the server no harm."""
    with serve() as port, connect(port) as http:
        game = start(http, "human", "human")
        action = http.get(game).json()["state"]["legal"][0]["action"]
        for body in ('{"pl', json.dumps({"ply": 0, "action": action})):
            with socket.create_connection(("127.0.0.1", port)) as leaving:
                leaving.sendall(request(f"{game}/play", body))
        until(lambda: http.get(game).json()["state"]["ply"] == 1)  # it is served all the same
        huge = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + "x" * 200_000
        with socket.create_connection(("127.0.0.1", port)) as rude:
            rude.sendall(huge.encode())
            assert b"400" in rude.recv(100)
        assert http.get("/api/setup").status_code == 200


@pytest.mark.parametrize(
    "sent",
    [b"", b"POST /api/example HTTP/1.1\r\nHost: 127", request("/api/example", '{"a": ', 100)],
    ids=["nothing", "head", "body"],
)
def test_half_a_request_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr("agents.play.connections.READ_SECONDS", 0.3)
    with serve() as port, socket.create_connection(("127.0.0.1", port)) as half:
        half.sendall(sent)
        assert closed_by_server(half)


def test_a_trickled_request_has_one_time_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes soon after the last, but the whole takes too long."""
    monkeypatch.setattr("agents.play.connections.READ_SECONDS", 0.5)
    whole = request("/api/example", " " * 30_000)
    with serve() as port, socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(request("/api/example", "{}"))
        assert b"200 OK" in slow.recv(1 << 16)
        with pytest.raises(OSError):
            for byte in whole:
                slow.sendall(bytes([byte]))
                time.sleep(0.01)


def test_a_slow_answer_is_waited_for(monkeypatch: pytest.MonkeyPatch, bot: Thinking) -> None:
    """The time to read a request is not that to answer it."""
    monkeypatch.setattr("agents.play.connections.READ_SECONDS", 0.3)
    with serve() as port, connect(port) as http, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(post, http, f"{start(http, 'thinking', 'human')}/bot", ply=0)
        until(lambda: bot.asked > 0)
        time.sleep(0.6)
        bot.told.set()
        assert asked.result(PATIENCE)["state"]["ply"] == 1


def test_too_many_connections_close_the_idle_ones(
    monkeypatch: pytest.MonkeyPatch, bot: Thinking
) -> None:
    """The newest is served, and so is the one whose answer takes long."""
    monkeypatch.setattr(TimedProtocol, "limit", 10)
    with (
        serve() as port,
        connect(port) as http,
        ThreadPoolExecutor(1) as pool,
        ExitStack() as stack,
    ):
        asked = pool.submit(post, http, f"{start(http, 'thinking', 'human')}/bot", ply=0)
        until(lambda: bot.asked > 0)
        idle = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(40)
        ]
        with connect(port) as another:
            assert another.get("/api/setup").status_code == 200
        assert all(closed_by_server(one) for one in idle[:30])
        bot.told.set()
        assert asked.result(PATIENCE)["state"]["ply"] == 1


SERVER = """
import resource, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
from agents import registry
from agents.base import OnBoard, PlayerKind
from agents.play.__main__ import main
class Sleeping:
    def act(self, positions, masks):
        time.sleep(600)
label = {"": OnBoard({"en": "Sleeping"})}
row = PlayerKind("sleeping", "sleeping", {}, lambda _: Sleeping(), on_board=label)
registry.KINDS = (*registry.KINDS, row)
sys.exit(main(["--no-browser", "--port", "0"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_few_files_and_a_bot_without_end(how: signal.Signals) -> None:
    """More connections than files do no harm, and a signal ends the server whatever computes."""
    command = [sys.executable, "-c", SERVER]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as server, ExitStack() as stack:
        stack.callback(server.kill)
        found = re.search(r":(\d+)/", server.stdout.readline())  # type: ignore[union-attr]
        assert found
        port = int(found[1])
        for _ in range(260):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        with connect(port) as http:
            game = start(http, "sleeping", "human")
            for _ in range(3):
                asking = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                asking.sendall(request(f"{game}/bot", '{"ply": 0}'))
            assert http.get(game).json()["state"]["ply"] == 0
        server.send_signal(how)
        said = server.communicate(timeout=PATIENCE)[1]
        assert "Too many open files" not in said and len(said) < 10_000, said


def test_connections_leave_files_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    for files, most in ((200, 100), (1 << 20, 256), (resource.RLIM_INFINITY, 256), (20, 8)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, files))
        assert max_connections() == most
