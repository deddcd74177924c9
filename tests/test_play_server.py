"""The server of the board: what it refuses, its command line, and the page."""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from agents.play import server
from agents.play.__main__ import main
from agents.play.geometry import LAYOUTS, board_parts
from agents.play.refused import Refused
from agents.play.roster import Roster
from agents.play.seated_game import Game
from agents.play.server import MAX_BYTES, create_app
from agents.play.sessions import Sessions
from agents.registry import KINDS
from bao_env.board import Board, EventKind
from bao_env.engine.ruleset import RULESETS
from bao_env.render.drawing import Circle, drawing, ground
from tests.play import HOUSE, start

pytestmark = pytest.mark.usefixtures("patience")

STATIC = server.FOLDER


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"seats": "human"},
        {"seats": ["human"]},
        {"seats": ["human", 3]},
        {"seats": ["human", None]},
        {"seats": ["human", "\ud800"]},
        {"seats": ["human", "human"], "ruleset": "\ud800"},
        {"seats": ["human", "human"], "first_player": "\ud800"},
        {"seats": ["human", "human"], "position": "\ud800"},
        {"seats": ["human", "human"], "transcript": "\ud800: 1"},
        {"seats": ["human", "human"], "transcript": "a: 1\n1: \ud800;"},
        {"seats": ["human", "human"], "ruleset": "chess"},
        {"seats": ["human", "human"], "ruleset": 5},
        {"seats": ["human", "human"], "first_player": "me"},
        {"seats": ["human", "human"], "position": "x" * 500},
        {"seats": ["human", "human"], "position": ["x"]},
        {"seats": ["human", "human"], "position": "nonsense"},
        {"seats": ["human", "human"], "transcript": "1: 9L;"},
        {"seats": ["human", "human"], "transcript": 'rules: {"a": ' + "[" * 900},
        {"seats": ["human", "human"], "transcript": "South: a\n\n\n1: 7L* 5R;\n2: x;"},
    ],
)
def test_malformed_games_are_refused(client: TestClient, data: dict[str, Any]) -> None:
    answer = client.post(
        "/api/games",
        content=json.dumps(data),
        headers={"content-type": "application/json"},
    )
    assert answer.status_code in (400, 404) and len(answer.json()["error"]) > 10


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 200),
        (b"[]", 400),
        (b"null", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[" * 20_000, 400),
        (b'{"x": "' + b"y" * MAX_BYTES + b'"}', 413),
    ],
)
def test_bodies(client: TestClient, body: bytes, status: int) -> None:
    kind = {"content-type": "application/json"}
    answer = client.post("/api/example", content=body, headers=kind)
    assert answer.status_code == status
    assert client.post("/api/example", content=b"{}").status_code == 415  # a form could send it


@pytest.mark.parametrize("value", [None, "0", 1.5, -1, 64, 10**30, True, [], {}])
def test_numbers_are_checked(client: TestClient, value: Any) -> None:
    path, _ = start(client)
    answer = client.post(
        f"{path}/play",
        content=json.dumps({"action": value, "ply": 0}),
        headers={"content-type": "application/json"},
    )
    assert answer.status_code == 400 and "action: expected an integer" in answer.json()["error"]


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static/..%2fserver.py",
        "/static/%2fetc%2fpasswd",
        "/static/",
        "/api",
        "/api/games/unknown",
        "/api/board/huge/south",
        "/api/board/wide/east",
        "/.git/config",
    ],
)
def test_nothing_else_is_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_only_this_host_and_its_own_page_are_answered(client: TestClient) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "", "[::1", "localhost@evil.example"):
        assert client.get("/api/setup", headers={"host": host}).status_code == 403
    for host in ("localhost", "127.0.0.1:1", "[::1]:8017", "LOCALHOST:8017"):
        assert client.get("/api/setup", headers={"host": host}).status_code == 200
    for origin in ("http://evil.example", "http://127.0.0.1:9", "null", "http://[", ""):
        theirs = {"origin": origin}
        assert client.post("/api/example", json={}, headers=theirs).status_code == 403
    ours = {"origin": "http://127.0.0.1:8017"}
    assert client.post("/api/example", json={}, headers=ours).status_code == 200


def test_every_answer_has_the_headers(client: TestClient) -> None:
    for path in ("/", "/static/main.js", "/api/setup", "/nowhere"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "script-src 'self'" in policy and "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_the_page_has_no_inline_code() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert " style=" not in page and " on" + "click" not in page
    assert page.count("<script") == page.count('<script type="module" src=') == 1


def test_mistakes_of_the_server_are_told_without_details(monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(Roster())
    address = "http://127.0.0.1:8017"
    client = TestClient(app, base_url=address, raise_server_exceptions=False)
    path, _ = start(client)
    monkeypatch.setattr(Game, "state", lambda self: 1 // 0)
    answer = client.get(path)
    assert answer.status_code == 500 and "ZeroDivision" not in answer.text
    assert "the server made a mistake" in answer.json()["error"]
    assert "content-security-policy" in answer.headers
    with pytest.raises(ZeroDivisionError):  # the server that runs it hears of it and logs it
        TestClient(app, base_url=address).get(path)


def test_sessions_are_bounded_and_busy_ones_wait() -> None:
    sessions: Sessions[int] = Sessions(3)
    names = [sessions.add(i) for i in range(3)]
    with sessions.use(names[0]) as item:
        assert item == 0
    names.append(sessions.add(3))
    assert len(sessions) == 3
    with pytest.raises(Refused, match="no longer"), sessions.use(names[1]):
        pass  # the longest untouched has gone
    order = []

    def second() -> None:
        with sessions.use(names[0]):
            order.append("second")

    with sessions.use(names[0]):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--port", "99999999"], "cannot listen on 127.0.0.1 port 99999999"),
        (["--host", "203.0.113.1"], "cannot listen on 203.0.113.1"),
        (["--checkpoints", "no-such-folder"], "no-such-folder is not a folder"),
    ],
)
def test_the_command_line_refuses(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([*arguments, "--no-browser"])
    assert message in capsys.readouterr().err


def test_the_command_line_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "agents.play.server", None)
    with pytest.raises(SystemExit):
        main(["--no-browser"])
    assert "the board needs the extra play: pip install -e '.[play]'" in capsys.readouterr().err


# --- the page -----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["wide", "tall"])
@pytest.mark.parametrize("viewer", [0, 1])
def test_the_parts_are_the_drawing(layout: str, viewer: int) -> None:
    """With the first seeds of each place, the parts are the circles of the whole drawing."""
    parts = board_parts(layout, viewer)
    places = {(p["seat"], p["pit"]): p for p in parts["places"]}
    assert len(places) == 34 and all(len(p["spots"]) == 64 for p in parts["places"])
    assert places[viewer, 0]["y"] > places[1 - viewer, 0]["y"]  # the viewer is below
    assert places[viewer, 0]["x"] < places[viewer, 7]["x"]  # and counts from the left
    assert places[viewer, 0]["x"] == places[1 - viewer, 7]["x"]
    position = Board.from_text(HOUSE).position
    spots = set()
    for (seat, pit), place in places.items():
        count = position.store[seat] if pit is None else position.pits(seat)[pit]
        spots |= {tuple(spot[:2]) for spot in place["spots"][:count]}
    whole = drawing(position, layout=LAYOUTS[layout], viewer=viewer)
    seeds = [s for s in whole if isinstance(s, Circle) and s.radius == 5]
    assert spots == {(round(s.x, 1), round(s.y, 1)) for s in seeds} and len(spots) == 64
    for shape in ground(LAYOUTS[layout], viewer):
        assert shape in whole
    x, y, w, h = places[viewer, None]["box"]
    assert x > 0 and x + w < parts["width"] and y + h < LAYOUTS[layout].board


def test_swahili_has_words_for_all_that_the_server_says(thorough: bool) -> None:
    swahili = json.loads((STATIC / "sw.json").read_text(encoding="utf-8"))
    assert {f"event {kind.value}" for kind in EventKind} <= set(swahili)
    rng = np.random.default_rng(1)
    reasons = set()
    for name in RULESETS:
        for _ in range(4 if thorough else 1):
            game = Game(Board(name), ("human", "human"))
            while (legal := game.board().legal_actions) and game.ply < 60:
                for pit, direction in itertools.product(range(16), range(2)):
                    why = game.why_not(pit, direction)
                    if why["words"]:
                        reasons.add(f"reason {why['rule']}")
                game.play(int(rng.choice(legal)), game.ply)
    assert len(reasons) > 8 and reasons <= set(swahili)


def test_both_languages_say_the_same_things() -> None:
    english, swahili = (
        json.loads((STATIC / f"{name}.json").read_text(encoding="utf-8")) for name in ("en", "sw")
    )
    assert set(english) <= set(swahili)
    extra = set(swahili) - set(english)  # in English the server says these itself
    assert extra and all(key.startswith(("event ", "reason ")) for key in extra)
    for key, text in english.items():
        if isinstance(text, str):
            names = {part.split("}")[0] for part in text.split("{")[1:]}
            assert names == {part.split("}")[0] for part in swahili[key].split("{")[1:]}, key
        else:
            assert len(text) == len(swahili[key])
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    used = {part.split('"')[0] for part in page.split('data-text="')[1:]}
    assert used <= set(english)


def test_players_have_words_in_the_languages_of_the_page() -> None:
    offered = [(kind, place) for kind in KINDS for place in kind.on_board.values()]
    assert len(offered) > 5
    for kind, place in offered:
        assert ("{budget}" in kind.spelling) == (place.budget is not None)
        assert {"{checkpoint}" in text for text in place.label.values()} == {kind.has_checkpoint}
        for words in (place.label, *([place.budget.label] if place.budget else [])):
            assert words["en"] and set(words) <= {"en", "sw"}
