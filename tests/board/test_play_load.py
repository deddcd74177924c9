"""Test the board's server under load: slow bots, clients that leave, many connections."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from bao_agents.play.api import MAX_GAMES_OF_CLIENT
from bao_agents.play.computing import Allowance, Computing
from bao_agents.play.refused import Refused
from bao_agents.play.roster import Roster
from bao_agents.play.server import create_app, make_server
from tests.play import Lowest, ask, make_client, offer, start

PATIENCE = 60.0
"""Seconds after which a test gives up."""


class Thinking(Lowest):
    """A bot that thinks until it is told to stop."""

    def __init__(self) -> None:
        self.asked = 0
        self.told = threading.Event()

    def act(self, positions: Any, legal: Any) -> Any:
        self.asked += 1
        assert self.told.wait(PATIENCE)
        return super().act(positions, legal)


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


def connect(port: int, address: str = "127.0.0.1") -> httpx2.Client:
    """Return a client with an address of this machine."""
    transport = httpx2.HTTPTransport(local_address=address)
    url = f"http://127.0.0.1:{port}"
    return httpx2.Client(base_url=url, timeout=PATIENCE, transport=transport)


def open_socket(port: int, sent: bytes = b"", address: str = "127.0.0.1") -> socket.socket:
    """Connect from an address of this machine and send some bytes."""
    target = ("127.0.0.1", port)
    connection = socket.create_connection(target, PATIENCE, source_address=(address, 0))
    connection.sendall(sent)
    return connection


def start_slow(http: httpx2.Client) -> str:
    """Begin a game of the slow bot; return its address."""
    return start(http, seats=["mine", "human"])[0].path


def request(path: str, body: str, length: int = 0) -> bytes:
    """Return a request as bytes; ``length`` is that of a body that is still incomplete."""
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
    """While the bots of games think, a person plays, undoes moves and starts games."""
    with serve() as (_, http), ThreadPoolExecutor(6) as pool:
        answers = [pool.submit(ask, http, f"{start_slow(http)}/bot", ply=0) for _ in range(6)]
        until(lambda: bot.asked)
        game, state = start(http)
        for ply in range(3):
            action = state["legal"][0]["action"]
            state = game("play", action=action, ply=ply)["state"]
        assert game("goto", ply=0)["state"]["ply"] == 0
        assert not any(answer.done() for answer in answers)
        bot.told.set()
        for answer in answers:
            assert answer.result(PATIENCE)["state"]


def test_the_page_opens_while_games_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """New games wait for the compiler, and start as soon as it is done."""
    compiled = threading.Event()
    monkeypatch.setattr("bao_agents.play.api.compile_moves", lambda: compiled.wait(PATIENCE))
    with serve() as (_, http), ThreadPoolExecutor(1) as pool:
        game = pool.submit(start, http)
        for path in ("/", "/static/main.js", "/api/setup", "/api/board/wide/south/house"):
            assert http.get(path).status_code == 200
        assert not game.done()
        compiled.set()
        assert game.result(PATIENCE)[1]["legal"]


def test_work_for_a_client_that_has_left_is_dropped(
    bot: Thinking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bao_agents.play.computing.cores", lambda: 1)
    with serve() as (port, http), ThreadPoolExecutor(1) as pool:
        first, left = start_slow(http), start_slow(http)
        busy = pool.submit(ask, http, f"{first}/bot", ply=0)
        until(lambda: bot.asked)
        with open_socket(port, request(f"{left}/bot", '{"ply": 0}')):
            time.sleep(0.5)
        time.sleep(0.5)
        bot.told.set()
        assert busy.result(PATIENCE)["state"]["ply"] == 1
        assert bot.asked == 1 and http.get(left).json()["state"]["ply"] == 0


@pytest.mark.parametrize(
    ("change", "values"),
    [("resign", {"seat": 1, "ply": 0}), ("seats", {"seats": ["human", "human"]})],
)
def test_a_bot_does_not_undo_what_a_person_did_while_it_thought(
    change: str, values: dict[str, Any], bot: Thinking
) -> None:
    """Its move would cancel the resignation, or be played for the person who took its seat."""
    with serve() as (_, http), ThreadPoolExecutor(1) as pool:
        game = start_slow(http)
        answer = pool.submit(http.post, f"{game}/bot", json={"ply": 0})
        until(lambda: bot.asked)
        state = ask(http, f"{game}/{change}", **values)["state"]
        bot.told.set()
        assert answer.result(PATIENCE).status_code == 409
        assert http.get(game).json()["state"] == state


def test_equal_requests_share_an_answer(bot: Thinking) -> None:
    """Two pages of a game ask its bot only once; the work goes on when one page leaves."""
    with serve() as (port, http), ThreadPoolExecutor(2) as pool:
        game = start_slow(http)
        with open_socket(port, request(f"{game}/bot", '{"ply": 0}')):
            until(lambda: bot.asked)
            pages = [pool.submit(ask, http, f"{game}/bot", ply=0) for _ in range(2)]
            time.sleep(0.3)
        time.sleep(0.3)
        bot.told.set()
        answers = [page.result(PATIENCE) for page in pages]
        assert bot.asked == 1 and answers[0] == answers[1]
        assert answers[0]["state"]["ply"] == 1


def test_work_that_takes_too_long_raises() -> None:
    ended = threading.Event()

    def fail() -> None:
        raise TimeoutError("its own")

    async def run() -> None:
        computing = Computing(threads=1)
        for work in (lambda: ended.wait(PATIENCE), lambda: pytest.fail("dropped")):
            with pytest.raises(Refused, match="no answer within"):
                await computing.run(work, 0.01)
        ended.set()
        assert await computing.run(lambda: 5, PATIENCE) == 5
        with pytest.raises(TimeoutError, match="its own"):
            await computing.run(fail, PATIENCE)

    asyncio.run(run())


def test_work_counts_until_it_ends() -> None:
    """A client has one task at a time. The task of a client who leaves still counts until it ends,
    so bursts do not add up."""
    ended, starts = threading.Event(), []

    def work() -> None:
        starts.append(1)
        assert ended.wait(PATIENCE)

    async def run() -> None:
        computing = Computing(threads=4)
        tasks = [asyncio.ensure_future(computing.run(work, 60, object(), "rude")) for _ in range(3)]
        while not starts:
            await asyncio.sleep(0.01)
        tasks[0].cancel()
        await asyncio.sleep(0.05)
        assert tasks[0].cancelled() and len(starts) == 1
        ended.set()
        await asyncio.gather(*tasks[1:])

    asyncio.run(run())


def test_who_used_much_time_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients who used little time do not wait."""
    done: list[str] = []

    async def use(client: str) -> None:
        await computing.briefly(lambda: time.sleep(0.13), client)
        done.append(client)

    async def run() -> None:
        await use("rude")
        late, _ = (asyncio.ensure_future(use("rude")) for _ in range(2))
        await asyncio.sleep(0.01)
        await use("other")
        assert done == ["rude", "other"]
        await late
        assert done == ["rude", "other", "rude"]

    computing = Computing()
    asyncio.run(run())
    # A client may use a tenth of the time, a newcomer a fortieth; four newcomers share a tenth.
    monkeypatch.setattr("bao_agents.play.computing.time", SimpleNamespace(monotonic=lambda: 0.0))
    for allowance, credit, share in (
        (computing._clients, 1, 0.1),
        (computing._newcomers, 1, 0.025),
        (computing._all_newcomers, 4, 0.1),
    ):
        waits = [allowance.use("one", 0.1) for _ in range(credit + 2)]
        assert waits == pytest.approx([0] * (credit + 1) + [0.1 / share])
    for cores, threads in ((1, 2), (3, 2), (8, 7)):  # one is left for the server
        monkeypatch.setattr("bao_agents.play.computing.cores", lambda cores=cores: cores)
        assert Computing()._threads._max_workers == threads
    allowance = Allowance(share=0.5, credit=1)
    assert allowance.use("compiles", 60) == 0  # one use costs at most twice the credit
    assert allowance.use("compiles", 0) == 2


def test_only_a_client_without_a_game_is_a_newcomer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client is charged before and after its request, and a newcomer for all newcomers, too."""
    noted, client = list[tuple[float, str]](), make_client()

    def note(allowance: Allowance, user: str, seconds: float) -> float:
        noted.append((allowance._share, user))
        return 0.0

    monkeypatch.setattr(Allowance, "use", note)
    game, _ = start(client)
    game("look")
    start(client)
    uses_of_newcomer, uses_of_player = (
        [(0.025, "testclient"), (0.1, "")] * 2,
        [(0.1, "testclient")] * 2,
    )
    assert noted == uses_of_newcomer * 3 + uses_of_player * 4


FLOODS = {
    "begin": ("/api/games", json.dumps({"seats": ["human", "human"]})),
    "transcript": (
        "/api/games",
        json.dumps({"seats": ["human", "human"], "transcript": "1: 7L;\n" * 7500}),
    ),
    "comment": (
        "/api/games",
        json.dumps({"seats": ["human", "human"], "transcript": f"1: 7L; {'x ' * 30000}\n2: 9L;"}),
    ),
    "set-up": ("/api/games", json.dumps({"seats": ["human", "human"], "position": "1,1"})),
    "look": ("/api/games/AAAAAAAAAAAAAAAA/look", '{"ply": 0}'),
    "bad JSON": ("/api/games", "[" * 60_000),
    "big body": ("/api/games", " " * 70_000),
}
"""Requests from one address; some of them never begin a game."""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one loopback address")
@pytest.mark.parametrize("flood", FLOODS)
def test_newcomers_do_not_wait_for_one_address(flood: str) -> None:
    """While 25 connections of one address send requests again and again, each newcomer begins a
    game at once."""
    flood_request = request(*FLOODS[flood])
    ended = threading.Event()
    answers: list[bytes] = []

    def ask_again() -> None:
        while not ended.is_set():
            with suppress(OSError), open_socket(port, flood_request, "127.0.0.2") as connection:
                connection.settimeout(1)
                answers.append(connection.recv(100))

    def begin(number: int) -> float:
        clock = time.monotonic()
        with connect(port, address=f"127.0.1.{number}") as newcomer:
            start(newcomer)
        return time.monotonic() - clock

    with serve() as (port, _), ThreadPoolExecutor(25) as pool:
        begin(1)  # compiles and loads
        alone = [begin(number) for number in range(2, 9)]
        for _ in range(25):
            pool.submit(ask_again)
        try:
            until(lambda: answers)
            beside = [begin(number) for number in range(9, 40)]
        finally:
            ended.set()
    # Medians, because a busy machine changes them less. On a server that starves newcomers, all of
    # them would wait.
    assert statistics.median(beside) < 3 * statistics.median(alone) + 1


# --- connections --------------------------------------------------------------------------------


def test_client_that_leaves() -> None:
    """Half a request, or an answer that nobody reads, does not harm the server."""
    with serve() as (port, http):
        game, state = start(http)
        move = json.dumps({"ply": 0, "action": state["legal"][0]["action"]})
        for body in ('{"pl', move):
            open_socket(port, request(f"{game.path}/play", body)).close()
        until(lambda: game.state()["ply"] == 1)
        assert http.get("/api/setup").status_code == 200
        with open_socket(port, b"nonsense\r\n\r\n") as wrong:
            assert wrong.recv(1000).startswith(b"HTTP/1.1 400 ")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one loopback address")
def test_one_address_does_not_fill_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """After many connections from an address, the next one is read late, and connections beyond the
    limit are closed."""
    monkeypatch.setattr("bao_agents.play.server.MAX_CONNECTIONS", 30)
    monkeypatch.setattr("bao_agents.play.server.CONNECTION_SECONDS", 0.03)
    with serve() as (port, http), ExitStack() as stack:
        for _ in range(12):
            stack.enter_context(open_socket(port))
        pool = stack.enter_context(ThreadPoolExecutor(1))
        late = pool.submit(http.get, "/api/setup")
        time.sleep(0.2)
        with connect(port, address="127.0.0.2") as neighbour:
            assert neighbour.get("/api/setup").status_code == 200
        assert not late.done()
        for _ in range(40):
            stack.enter_context(open_socket(port))
        with connect(port) as another, pytest.raises(httpx2.TransportError):
            another.get("/api/setup")
        assert late.result(PATIENCE).status_code == 200


def test_requests_that_are_sent_ahead_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """A connection carries one request; further requests neither wait in memory nor fill the
    log."""
    ask = b"GET /static/icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with serve() as (port, _):
        for _ in range(10):
            received = b""
            with open_socket(port) as ahead, suppress(ConnectionError):
                ahead.sendall(5000 * ask)
                while answer := ahead.recv(1 << 16):
                    received += answer
            assert received.count(b"HTTP/1.1 200 OK") <= 1
        assert connect(port).get("/static/icon.svg").status_code == 200
    assert not [record for record in caplog.records if record.name != "httpx2"]


@pytest.mark.parametrize("proxy", ["", "127.0.0.1"])
def test_forwarded_addresses_are_those_of_a_proxy(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    """Without a proxy, a visitor cannot get more games by inventing addresses. An analysis for one
    of several visitors has one thread."""
    threads = list[int | None]()

    def south_chance(*arguments: Any) -> dict[str, Any]:
        threads.append(arguments[-1])
        return {}

    monkeypatch.setenv("FORWARDED_ALLOW_IPS", proxy)
    monkeypatch.setattr("bao_agents.play.analysis.south_chance", south_chance)
    with serve() as (_, http):
        game, _ = start(http)
        game("evaluation")
        for number in range(MAX_GAMES_OF_CLIENT):
            http.headers["X-Forwarded-For"] = f"10.0.0.{number}"
            last_game, _ = start(http)
            last_game("evaluation")
        assert http.get(game.path).status_code == (200 if proxy else 404)
    assert threads == [None, *[1 if proxy else None] * MAX_GAMES_OF_CLIENT]


def test_late_bodies_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bao_agents.play.server.REQUEST_SECONDS", 0.3)
    with serve() as (port, _), open_socket(port, request("/api/games", "{", 9)) as late:
        assert b" 408 " in late.recv(1000)


SERVER = """
import sys, time
import pytest
from bao_agents.cli.main import main
from tests.play import offer
class Sleeping:
    def act(self, positions, legal):
        time.sleep(600)
offer(pytest.MonkeyPatch(), Sleeping())
sys.argv[1:] = ["play", "--no-browser", "--port", "0"]
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_while_a_bot_thinks(number: signal.Signals) -> None:
    command = [sys.executable, "-c", SERVER]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as server, ExitStack() as stack:
        stack.callback(server.kill)
        match = re.search(r":(\d+)/", server.stdout.readline())  # type: ignore[union-attr]
        assert match
        port = int(match[1])
        with connect(port) as http:
            game = start_slow(http)
            for _ in range(3):
                stack.enter_context(open_socket(port, request(f"{game}/bot", '{"ply": 0}')))
            assert http.get(game).json()["state"]["ply"] == 0
        server.send_signal(number)
        assert "Traceback" not in server.communicate(timeout=PATIENCE)[1]
