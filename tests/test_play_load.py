"""The board's server under load: slow bots, clients that leave, connections that hang."""

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
import pytest
from bao_agents.play.computing import MAX_WAITING, Asker, Computing
from bao_agents.play.connections import TimedProtocol, make_server, max_connections
from bao_agents.play.refused import Refused
from bao_agents.play.roster import Roster
from bao_agents.play.server import create_app

from tests.play import Lowest, ask, offer, start

PATIENCE = 60.0
"""Seconds after which a test gives up."""


class Thinking(Lowest):
    """A bot that thinks until it is told to stop."""

    def __init__(self) -> None:
        self.asked = 0
        self.told = threading.Event()

    def act(self, positions: Any, masks: Any) -> Any:
        self.asked += 1
        assert self.told.wait(PATIENCE)
        return super().act(positions, masks)


@pytest.fixture
def bot(monkeypatch: pytest.MonkeyPatch) -> Iterator[Thinking]:
    """Make the player ``mine`` of the board."""
    thinking = Thinking()
    offer(monkeypatch, thinking)
    yield thinking
    thinking.told.set()


@contextmanager
def serve() -> Iterator[tuple[int, httpx2.Client]]:
    """Run a server in a thread; give its port and a client."""
    listener = socket.create_server(("127.0.0.1", 0))
    running = make_server(create_app(Roster()))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    port = listener.getsockname()[1]
    try:
        with connect(port) as http:
            yield port, http
    finally:
        running.should_exit = True
        thread.join()
        listener.close()


def connect(port: int) -> httpx2.Client:
    return httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE)


def open_socket(port: int, sent: bytes = b"") -> socket.socket:
    """Connect and send some bytes."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    connection.sendall(sent)
    return connection


def start_slow(http: httpx2.Client) -> str:
    """Begin a game of the slow bot; return its address."""
    return start(http, seats=["mine", "human"])[0]


def request(path: str, body: str, length: int = 0) -> bytes:
    """Return a request as bytes; ``length`` is that of a body of which more is to come."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length or len(body)}\r\n\r\n{body}"
    ).encode()


def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


# --- computing ----------------------------------------------------------------------------------


def test_person_does_not_wait_for_bots(bot: Thinking) -> None:
    """While the bots of watches and games think, a person plays, takes back and starts games."""
    with serve() as (_, http), ThreadPoolExecutor(6) as pool:
        watches = [ask(http, "/api/watches", players=["mine"] * 2, boards=2) for _ in "abc"]
        asked = [pool.submit(ask, http, f"/api/watches/{made['id']}/step") for made in watches]
        asked += [pool.submit(ask, http, f"{start_slow(http)}/bot", ply=0) for _ in "abc"]
        until(lambda: bot.asked)
        game, state = start(http)
        for ply in range(3):
            action = state["legal"][0]["action"]
            state = ask(http, f"{game}/play", action=action, ply=ply)["state"]
        assert ask(http, f"{game}/goto", ply=0)["state"]["ply"] == 0
        assert not any(one.done() for one in asked)
        bot.told.set()
        for one in asked:
            assert one.result(PATIENCE)["state"]


def test_work_for_a_client_that_has_left_is_dropped(
    bot: Thinking, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[Future[Any]] = []
    submit = Computing._submit

    def remember(self: Computing, asker: Asker, work: Callable[[], Any]) -> Future[Any]:
        waiting.append(submit(self, asker, work))
        return waiting[-1]

    monkeypatch.setattr(Computing, "_submit", remember)
    with serve() as (port, http), ThreadPoolExecutor(1) as pool:
        first, left = start_slow(http), start_slow(http)
        busy = pool.submit(ask, http, f"{first}/bot", ply=0)
        until(lambda: bot.asked)
        with open_socket(port, request(f"{left}/bot", '{"ply": 0}')):
            until(lambda: len(waiting) == 2)
        until(waiting[1].cancelled)
        bot.told.set()
        assert busy.result(PATIENCE)["state"]["ply"] == 1
        assert bot.asked == 1 and http.get(left).json()["state"]["ply"] == 0


def test_queue_of_a_game_is_limited(bot: Thinking) -> None:
    with serve() as (_, http), ThreadPoolExecutor(8) as pool:
        game = start_slow(http)
        asked = [pool.submit(http.post, f"{game}/bot", json={"ply": 0}) for _ in range(8)]
        until(lambda: sum(one.done() for one in asked) == 8 - MAX_WAITING - 1)
        for one in asked:
            if one.done():
                assert one.result().status_code == 429
                assert "wait already" in one.result().json()["error"]
        bot.told.set()
        assert 200 in [one.result(PATIENCE).status_code for one in asked]


def compute(threads: int, works: str) -> list[str]:
    """Return the order in which pieces of work are done, after a first one for game a1.

    Args:
        threads: how many compute. The first piece keeps one until another thread is done, or, if
            it is the only one, until all pieces wait.
        works: names of pieces, with spaces. A name begins with those of the client and the game;
            each + at its end is a second that the piece takes.
    """
    order: list[str] = []
    begun, told = threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        assert told.wait(PATIENCE)

    def work(name: str) -> None:
        order.append(name)
        clock.now += name.count("+")

    async def run() -> None:
        computing = Computing(threads, clock=clock)
        running = [asyncio.create_task(computing.run(Asker("a", "a1"), first, PATIENCE))]
        await asyncio.to_thread(begun.wait, PATIENCE)
        for name in works.split():
            asker = Asker(name[0], name[:2])
            running.append(asyncio.create_task(computing.run(asker, partial(work, name), PATIENCE)))
        await (asyncio.sleep(0) if threads == 1 else running[-1])
        told.set()
        await asyncio.gather(*running)

    clock = Clock()
    asyncio.run(run())
    return order


class Clock:
    """A clock that goes on when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_clients_take_turns() -> None:
    """Much work for one client does not delay the others; each game's own is in order."""
    assert compute(1, "a2++ a3++ a4++ b1+ b1++ c1+ c1") == [
        *("c1+", "b1+", "a4++", "c1", "b1++", "a3++", "a2++")
    ]


def test_slow_games_do_not_delay_quick_ones() -> None:
    assert compute(1, "a2++ a3++ a4 a4- a4--")[:3] == ["a4", "a4-", "a4--"]
    assert compute(1, "a2+ a2++ a3+ a3++ a4+") == ["a4+", "a3+", "a2+", "a3++", "a2++"]


def test_one_game_computes_on_one_thread() -> None:
    """A second thread passes over the game's next piece of work."""
    assert compute(2, "a1 b1") == ["b1", "a1"]


def test_work_that_takes_too_long_raises() -> None:
    told = threading.Event()

    def fail() -> None:
        raise TimeoutError("its own")

    async def run() -> None:
        computing = Computing(threads=1)
        with pytest.raises(Refused, match="took longer than"):
            await computing.run(Asker("a", ""), lambda: told.wait(PATIENCE), 0.01)
        with pytest.raises(Refused, match="took longer than"):
            await computing.run(Asker("b", ""), lambda: pytest.fail("dropped"), 0.01)
        told.set()
        assert await computing.run(Asker("c", ""), lambda: 5, PATIENCE) == 5
        with pytest.raises(TimeoutError, match="its own"):
            await computing.run(Asker("d", ""), fail, PATIENCE)

    asyncio.run(run())


# --- connections --------------------------------------------------------------------------------


def closed_by_server(connection: socket.socket) -> bool:
    """Return whether the other side closes, after what it sent before."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    return True


def test_client_that_leaves() -> None:
    """Half a request, and an answer that nobody reads, do the server no harm."""
    with serve() as (port, http):
        game, state = start(http)
        move = json.dumps({"ply": 0, "action": state["legal"][0]["action"]})
        for body in ('{"pl', move):
            open_socket(port, request(f"{game}/play", body)).close()
        until(lambda: http.get(game).json()["state"]["ply"] == 1)
        huge = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 200_000
        with open_socket(port, huge) as rude:
            assert b"400" in rude.recv(100)
        assert http.get("/api/setup").status_code == 200


@pytest.mark.parametrize(
    "sent",
    [b"POST /api/example HTTP/1.1\r\nHost: 127", request("/api/example", '{"a": ', 100)],
    ids=["head", "body"],
)
def test_half_a_request_is_closed(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr("bao_agents.play.connections.READ_SECONDS", 0.05)
    with serve() as (port, _), open_socket(port, sent) as half:
        assert closed_by_server(half)


def test_trickled_request_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes soon after the last, but the whole takes too long."""
    with serve() as (port, _), open_socket(port, request("/api/example", "{}")) as slow:
        assert b"200 OK" in slow.recv(1 << 16)
        monkeypatch.setattr("bao_agents.play.connections.READ_SECONDS", 0.1)
        with pytest.raises(OSError):
            for byte in request("/api/example", " " * 30_000):
                slow.sendall(bytes([byte]))
                time.sleep(0.01)


def test_slow_answer_is_not_closed(monkeypatch: pytest.MonkeyPatch, bot: Thinking) -> None:
    """The time to read a request is not that to answer it."""
    monkeypatch.setattr("bao_agents.play.connections.READ_SECONDS", 0.2)
    with serve() as (port, http), ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, http, f"{start_slow(http)}/bot", ply=0)
        until(lambda: bot.asked)
        with open_socket(port) as idle:
            assert closed_by_server(idle)  # as soon as the time has passed
        bot.told.set()
        assert asked.result(PATIENCE)["state"]["ply"] == 1


def test_too_many_connections_close_the_idle_ones(
    monkeypatch: pytest.MonkeyPatch, bot: Thinking
) -> None:
    """The newest is served, and so is the one whose answer takes long."""
    monkeypatch.setattr(TimedProtocol, "limit", 10)
    with serve() as (port, http), ThreadPoolExecutor(1) as pool, ExitStack() as stack:
        asked = pool.submit(ask, http, f"{start_slow(http)}/bot", ply=0)
        until(lambda: bot.asked)
        idle = [stack.enter_context(open_socket(port)) for _ in range(40)]
        with connect(port) as another:
            assert another.get("/api/setup").status_code == 200
        assert all(closed_by_server(one) for one in idle[:30])
        bot.told.set()
        assert asked.result(PATIENCE)["state"]["ply"] == 1


SERVER = """
import resource, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
import pytest
from bao_training.cli import main
from tests.play import offer
class Sleeping:
    def act(self, positions, masks):
        time.sleep(600)
offer(pytest.MonkeyPatch(), Sleeping())
sys.exit(main(["play", "--no-browser", "--port", "0"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_few_files_and_a_bot_without_end(how: signal.Signals) -> None:
    """More connections than files do no harm, and a signal ends the server at once."""
    command = [sys.executable, "-c", SERVER]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as server, ExitStack() as stack:
        stack.callback(server.kill)
        found = re.search(r":(\d+)/", server.stdout.readline())  # type: ignore[union-attr]
        assert found
        port = int(found[1])
        for _ in range(260):
            stack.enter_context(open_socket(port))
        with connect(port) as http:
            game = start_slow(http)
            for _ in range(3):
                stack.enter_context(open_socket(port, request(f"{game}/bot", '{"ply": 0}')))
            assert http.get(game).json()["state"]["ply"] == 0
        server.send_signal(how)
        errors = server.communicate(timeout=PATIENCE)[1]
        assert "Too many open files" not in errors and len(errors) < 10_000, errors


def test_max_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    for files, most in ((200, 100), (1 << 20, 256), (resource.RLIM_INFINITY, 256), (20, 8)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, files))
        assert max_connections() == most
