"""The server of the board: what it answers, and what it refuses."""

from __future__ import annotations

import copy
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from agents import registry
from agents.base import OnBoard, PlayerKind
from agents.play import server
from agents.play.__main__ import main
from agents.play.analysis import chance, hints, south_chance
from agents.play.geometry import LAYOUTS, board_parts
from agents.play.networks import Networks
from agents.play.refused import Refused
from agents.play.roster import Roster
from agents.play.rule_texts import rule_text, ruleset_text
from agents.play.seated_game import Game, event_values
from agents.play.server import MAX_BYTES, create_app
from agents.play.sessions import Sessions
from agents.play.watch import Watch
from agents.registry import CHECKPOINTS, KINDS, read_network
from bao_env.board import Board, EventKind
from bao_env.engine.ruleset import RULESETS
from bao_env.notation.moves import SPELLINGS
from bao_env.render.drawing import Circle, drawing, ground

STATIC = server.FOLDER
HOUSE = "0,0,1,0,7,0,0,1/0,0,0,0,0,0,1,1/1,0,0,0,7,2,0,1/0,0,0,0,0,0,1,1 20,20 SN S -"


def make_client(roster: Roster | None = None) -> TestClient:
    return TestClient(create_app(roster or Roster()), base_url="http://127.0.0.1:8017")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first move of a bot may have to wait for the compiler."""
    monkeypatch.setattr("agents.play.api.BOT_TIMEOUT", 600.0)


@pytest.fixture(scope="module")
def client() -> TestClient:
    return make_client()


def start(client: TestClient, **how: Any) -> tuple[str, dict[str, Any]]:
    answer = client.post("/api/games", json={"seats": ["human", "human"], **how})
    assert answer.status_code == 200, answer.text
    return f"/api/games/{answer.json()['id']}", answer.json()["state"]


def ask(client: TestClient, path: str, status: int = 200, **data: Any) -> dict[str, Any]:
    answer = client.post(path, json=data)
    assert answer.status_code == status, answer.text
    return answer.json()


# --- a game -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RULESETS)
def test_a_game_shows_what_a_board_shows(client: TestClient, name: str) -> None:
    """Random play: every state, event and legal move is the engine's."""
    path, state = start(client, ruleset=name)
    board = Board(name)
    rng = np.random.default_rng(7)
    for ply in range(60):
        assert state["text"] == board.text() and state["ply"] == ply
        assert [option["name"] for option in state["legal"]] == board.legal_moves
        assert state["counts"] == [list(board.position.pits(seat)) for seat in (0, 1)]
        if not state["legal"]:
            assert state["outcome"]["words"] == str(board.outcome())
            break
        action = int(rng.choice(board.legal_actions))
        expected = [event_values(event) for event in board.trace(action)]
        answer = ask(client, f"{path}/play", action=action, ply=ply)
        board.push(action)
        assert answer["events"] == expected
        assert answer["events"][-1]["counts"] == answer["state"]["counts"]
        state = answer["state"]
    assert state["ply"] > 5


def test_undo_and_redo(client: TestClient) -> None:
    path, state = start(client)
    texts = [state["text"]]
    for ply in range(8):
        action = state["legal"][-1]["action"]
        state = ask(client, f"{path}/play", action=action, ply=ply)["state"]
        texts.append(state["text"])
    for ply in (5, 0, 8, 3):
        state = ask(client, f"{path}/goto", ply=ply)["state"]
        assert (state["text"], state["ply"], state["length"]) == (texts[ply], ply, 8)
    fourth = ask(client, f"{path}/events", ply=3)["events"]
    assert fourth[-1]["counts"] == ask(client, f"{path}/goto", ply=4)["state"]["counts"]
    ask(client, f"{path}/goto", ply=3)
    state = ask(client, f"{path}/play", action=state["legal"][0]["action"], ply=3)["state"]
    assert state["length"] == state["ply"] == 4  # what had been undone is gone
    assert "expected 0 to 4" in ask(client, f"{path}/goto", 400, ply=5)["error"]
    assert "expected 0 to 3" in ask(client, f"{path}/events", 400, ply=4)["error"]


def test_a_move_of_another_ply_is_refused(client: TestClient) -> None:
    """Two clicks, or two pages of one game, must not play twice."""
    path, state = start(client)
    action = state["legal"][0]["action"]
    ask(client, f"{path}/play", action=action, ply=0)
    assert "ply 1, not 0" in ask(client, f"{path}/play", 409, action=action, ply=0)["error"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_transcripts_go_round(client: TestClient, spelling: str) -> None:
    path, state = start(client, ruleset="dutch")
    for ply in range(30):
        action = state["legal"][ply % len(state["legal"])]["action"]
        state = ask(client, f"{path}/play", action=action, ply=ply)["state"]
    text = ask(client, f"{path}/transcript", spelling=spelling)["transcript"]
    other, again = start(client, transcript=text)
    assert again["ruleset"] == "dutch"
    for key in ("text", "moves", "legal", "ply", "start"):
        assert again[key] == state[key]


def test_positions_are_set_up_from_their_text(client: TestClient) -> None:
    _, state = start(client, position=f" {HOUSE}\n")
    assert state["text"] == HOUSE == state["start"]
    answer = ask(
        client, "/api/games", 400, seats=["human"] * 2, position=HOUSE.replace("20,", "9,")
    )
    assert "53 seeds" in answer["error"]


def test_a_byte_order_mark_is_no_reason_to_refuse_a_text(client: TestClient) -> None:
    assert start(client, position=f"\ufeff{HOUSE}")[1]["text"] == HOUSE
    text = "\ufeff" + server.FOLDER.with_name("donkers-example.txt").read_text(encoding="ascii")
    assert start(client, transcript=text)[1]["length"] == 52


def test_the_house_choice(client: TestClient) -> None:
    path, state = start(client, position=HOUSE)
    both = [o for o in state["legal"] if o["pit"] == 7 and o["direction"] == 1]
    assert [option["house"] for option in both] == [0, 1]
    shared = ask(client, f"{path}/choice", pit=7, direction=1)["events"]
    for option, kind in zip(both, ("house stop", "house played"), strict=True):
        played = ask(client, f"{path}/play", action=option["action"], ply=0)["events"]
        assert played[: len(shared)] == shared
        assert played[len(shared)]["kind"] == kind
        ask(client, f"{path}/goto", ply=0)
    assert "no house choice" in ask(client, f"{path}/choice", 400, pit=7, direction=0)["error"]


def test_an_illegal_move_names_its_rule(client: TestClient) -> None:
    path, _ = start(client)
    why = ask(client, f"{path}/why", pit=4, direction=0)
    assert why["rule"] == "Donkers 2.4b" and "no takasa starts from the house" in why["words"]
    assert why["rule_text"].startswith("2.4 Takasa.")
    assert ask(client, f"{path}/why", pit=5, direction=0)["words"] == ""  # it is legal
    assert ask(client, f"{path}/why", pit=9, direction=1)["rule"] == "Donkers 2.3, 2.4"
    refused = ask(client, f"{path}/play", 400, action=0, ply=0)["error"]
    assert "A1 is empty" in refused and "legal: A6L A6R A7L A7R" in refused
    assert client.get(path).json()["state"]["ply"] == 0


def test_every_rule_of_an_event_has_its_text() -> None:
    rules = set()
    for name in RULESETS:
        rng = np.random.default_rng(3)
        for _ in range(25):
            board = Board(name)
            while board.outcome() is None and board.ply < 120:
                action = int(rng.choice(board.legal_actions))
                rules |= {event.rule for event in board.trace(action)}
                board.push(action)
    assert len(rules) > 15
    for rule in rules:
        text, number = rule_text(rule), rule.split(" ", 1)[1]
        assert text and "**" not in text
        if rule.startswith("Donkers"):
            assert number[:3] in text
    assert rule_text("Donkers 9.9") == ""


def test_the_example_game(client: TestClient) -> None:
    answer = ask(client, "/api/example")
    state = answer["state"]
    assert (state["ply"], state["length"]) == (0, 52)
    events = ask(client, f"/api/games/{answer['id']}/events", ply=0)["events"]
    assert events[0]["words"] == "South puts a seed from the store into A7 (Donkers 2.2)"
    assert events[0]["rule_text"].startswith("2.1, 2.2 Namua.")


def test_long_games_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.play.seated_game.MAX_PLIES", 3)
    board = Board()
    for _ in range(3):
        board.push(board.legal_actions[0])
    game = Game(board, ("human", "human"))
    with pytest.raises(Refused, match="at most 3 plies"):
        game.play(board.legal_actions[0], 3)
    board.push(board.legal_actions[0])
    with pytest.raises(Refused, match="4 moves: expected at most 3"):
        Game(board, ("human", "human"))


# --- players ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "player",
    [
        "random",
        "greedy",
        "alphabeta:2",
        "alphabeta:20ms",
        "mcts:20",
        "zanzibar",
        "guided:zanzibar:20ms",
        "solver:20ms",
        "solver:zanzibar:20ms",
    ],
)
def test_bots_move(client: TestClient, player: str) -> None:
    path, _ = start(client, seats=[player, "human"])
    answer = ask(client, f"{path}/bot", ply=0)
    assert answer["state"]["ply"] == 1 and answer["events"]
    assert "played by a person" in ask(client, f"{path}/bot", 400, ply=1)["error"]
    assert "ply 1, not 0" in ask(client, f"{path}/bot", 409, ply=0)["error"]


@pytest.mark.parametrize(
    ("player", "message"),
    [
        ("nobody", "unknown player 'nobody'"),
        ("gredy", "did you mean 'greedy'?"),
        ("alphabeta:99", "from 1 to 10"),
        ("alphabeta:99999ms", "from 1 to 5000"),
        ("alphabeta:20000n", "unknown player"),
        ("mcts:999999", "from 2 to 100000"),
        ("search:zanzibar:99999", "from 2 to 2000"),
        ("search:nobody:10", "no checkpoint 'nobody'"),
        ("guided:zanzibar:99999ms", "from 1 to 5000"),
        ("guided:zanzibar:6", "unknown player"),
        ("solver:99999ms", "from 1 to 5000"),
        ("solver:nobody:10ms", "no checkpoint 'nobody'"),
        ("solver:1s", "unknown player"),
        ("guided:nobody:10ms", "no checkpoint 'nobody'"),
        ("os:system", "unknown player"),
        ("agents.registry:load", "unknown player"),
        ("../agents/checkpoints/zanzibar", "unknown player"),
        (str(CHECKPOINTS / "zanzibar.safetensors"), "unknown player"),
        (f"search:{CHECKPOINTS / 'zanzibar.safetensors'}:10", "no checkpoint"),
        ("zanzibar\0", "unknown player"),
    ],
)
def test_unknown_players_are_refused(client: TestClient, player: str, message: str) -> None:
    answer = client.post("/api/games", json={"seats": [player, "human"]})
    assert answer.status_code == 400 and message in answer.json()["error"]
    path, _ = start(client)
    answer = client.post(f"{path}/hints", json={"evaluator": player})
    assert answer.status_code == 400 and message in answer.json()["error"]


def test_checkpoints_come_from_the_folders_named(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    (folder / "best").mkdir(parents=True)
    shutil.copy(CHECKPOINTS / "zanzibar.safetensors", folder / "best" / "final.safetensors")
    (folder / "broken.safetensors").write_bytes(b"nothing")
    roster = Roster([folder])
    assert roster.checkpoints() == [*registry.shipped(), "runs/best/final", "runs/broken"]
    client = make_client(roster)
    path, _ = start(client, seats=["runs/best/final", "runs/broken"])
    state = ask(client, f"{path}/bot", ply=0)["state"]
    error = ask(client, f"{path}/bot", 502, ply=1)["error"]
    assert "runs/broken cannot play" in error and str(tmp_path) not in error
    assert str(tmp_path) not in ask(client, f"{path}/hints", 502, evaluator="runs/broken")["error"]
    assert client.get(path).json()["state"] == state  # the game is as it was
    ask(client, f"{path}/seats", seats=["human", "greedy"])
    assert ask(client, f"{path}/bot", ply=1)["state"]["ply"] == 2
    with pytest.raises(ValueError, match="not a folder"):
        Roster([folder / "broken.safetensors"])


def test_the_page_is_told_who_may_play(client: TestClient) -> None:
    """Every choice is a player at the least, the default and the highest budget, and no further."""
    setup = client.get("/api/setup").json()
    roster, values = Roster(), set()
    for choice in setup["players"]:
        values.add(choice["value"])
        assert choice["label"]["en"] and "{" not in choice["label"]["en"]
        before, after = choice["spec"]
        if choice["budget"] is None:
            assert roster.check(before + after) == before
            continue
        low, default, high = (choice["budget"][key] for key in ("low", "default", "high"))
        for budget in (low, default, high):
            assert roster.check(f"{before}{budget}{after}") == f"{before}{budget}{after}"
        for budget in (low - 1, high + 1):
            with pytest.raises(Refused, match=f"expected a budget from {low} to {high}"):
                roster.check(f"{before}{budget}{after}")
    assert len(values) == len(setup["players"])
    assert {"random", "greedy", "alphabeta", "alphabeta-ms", "mcts", "network:kibao"} < values
    for name in setup["first_bots"] + setup["first_seats"]:
        assert roster.check(name) == name
    path, _ = start(client)
    for evaluator in setup["evaluators"]:
        if "zanzibar" in evaluator["value"]:  # the networks of other rules are refused
            ask(client, f"{path}/hints", evaluator=evaluator["value"])
    assert "gives no hints" in ask(client, f"{path}/hints", 400, evaluator="greedy")["error"]
    assert (
        "gives no hints"
        in ask(client, f"{path}/hints", 400, evaluator="guided:zanzibar:9ms")["error"]
    )


def test_names_of_players_have_one_spelling(client: TestClient) -> None:
    _, state = start(client, seats=["alphabeta:03", "mcts:50:greedy"])
    assert state["seats"] == ["alphabeta:3", "mcts:50:greedy"]


def test_a_new_bot_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page offers it, it may sit down, and its words need no file of the page."""

    class First:
        def act(self, positions: Any, masks: Any) -> Any:
            return [(int(mask) & -int(mask)).bit_length() - 1 for mask in masks]

    label = {"en": "First of all", "sw": "Wa kwanza"}
    row = PlayerKind(
        "first", "first", {"first": "the lowest"}, lambda _: First(), on_board=OnBoard(label)
    )
    monkeypatch.setattr("agents.registry.KINDS", (row, *KINDS))
    client = make_client()
    offered = client.get("/api/setup").json()["players"]
    assert {"value": "first", "label": label, "spec": ["first", ""], "budget": None} in offered
    path, state = start(client, seats=["first", "human"])
    answer = ask(client, f"{path}/bot", ply=0)
    assert answer["state"]["moves"][0]["texts"] == state["legal"][0]["texts"]


def test_a_new_rule_set_needs_no_words_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = {**RULESETS, "mine": RULESETS["kibao"].replace(name="mine")}
    monkeypatch.setattr("agents.play.api.RULESETS", rules)
    client = make_client()
    last = client.get("/api/setup").json()["rulesets"][-1]
    assert last == {"name": "mine", "first_player": "south", "words": ""}
    assert start(client, ruleset="mine")[1]["ruleset"] == "mine"
    assert "ten seeds in each house" in ruleset_text("malawi")


def test_networks_are_read_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Players, hints and searches share a network until its file is written again."""
    folder = tmp_path / "runs"
    folder.mkdir()
    path = folder / "net.safetensors"
    shutil.copy(CHECKPOINTS / "zanzibar.safetensors", path)
    read: list[Path] = []

    def count(path: Path, ruleset: Any) -> Any:
        read.append(path)
        return read_network(path, ruleset)

    monkeypatch.setattr("agents.play.networks.read_network", count)
    roster, board = Roster([folder]), Board()
    first = hints(board, "runs/net", roster)
    assert hints(board, "search:runs/net:16", roster) == hints(board, "search:runs/net:16", roster)
    for player in ("runs/net", "search:runs/net:8", "guided:runs/net:5ms"):
        assert roster.act(player, board) in board.legal_actions
    assert read == [path]
    with roster.networks.search(path, board.ruleset, 16) as search:
        again = roster.networks.search(path, board.ruleset, 16)
        assert search.network is roster.networks.network(path, board.ruleset)
    with again as same:
        assert same is search
    path.write_bytes(b"nothing")
    with pytest.raises(Refused, match="cannot give hints"):
        hints(board, "runs/net", roster)
    with pytest.raises(Refused, match="cannot play"):
        roster.act("runs/net", board)
    shutil.copy(CHECKPOINTS / "zanzibar.safetensors", path)
    assert hints(board, "runs/net", roster) == first
    assert read == [path] * 4


def test_pipes_are_no_checkpoints(tmp_path: Path) -> None:
    """Reading one would wait for its writer for ever."""
    pipe, later = tmp_path / "pipe.safetensors", tmp_path / "later.safetensors"
    os.mkfifo(pipe)
    later.touch()
    roster, board = Roster([tmp_path]), Board()
    assert f"{tmp_path.name}/later" in roster.checkpoints()
    assert f"{tmp_path.name}/pipe" not in roster.checkpoints()
    later.unlink()
    os.mkfifo(later)
    for ask_it in (roster.act, lambda name, board: hints(board, name, roster)):
        with pytest.raises(Refused, match="later is not a regular file"):
            ask_it(f"{tmp_path.name}/later", board)


@pytest.mark.parametrize("evaluator", ["zanzibar", "search:zanzibar:16"])
def test_hints_of_a_network_that_answers_nan(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, evaluator: str
) -> None:
    def spoil(path: Path, ruleset: Any) -> Any:
        network = copy.deepcopy(read_network(path, ruleset))
        for parameter in network.parameters():
            parameter.data.fill_(float("nan"))
        return network

    monkeypatch.setattr("agents.play.networks.read_network", spoil)
    client = make_client()
    path, _ = start(client)
    error = ask(client, f"{path}/hints", 502, evaluator=evaluator)["error"]
    assert "cannot give hints: the network's outputs are not finite" in error


def test_networks_are_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("agents.play.networks.MAX_NETWORKS", 2)
    monkeypatch.setattr("agents.play.networks.read_network", lambda *_: object())
    networks, rules = Networks(), RULESETS["zanzibar"]
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.touch()
    a, b = (networks.network(path, rules) for path in paths[:2])
    assert networks.network(paths[0], rules) is a
    networks.network(paths[2], rules)  # b has to go
    assert networks.network(paths[0], rules) is a
    assert networks.network(paths[1], rules) is not b


def test_bots_play_with_the_extra_play_alone() -> None:
    program = """
import sys
for name in ("torch", "safetensors", "scipy", "tabulate", "tqdm", "matplotlib"):
    sys.modules[name] = None
from agents.play.refused import Refused
from agents.play.roster import Roster
from agents.play.server import create_app
from bao_env.board import Board
roster = Roster()
create_app(roster)
board = Board()
assert roster.act("greedy", board) in board.legal_actions
try:
    roster.act("zanzibar", board)
except Refused as refused:
    print(refused.message)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "needs torch: pip install -e '.[train]'" in done.stdout, done.stderr


class Failing:
    """A player that misbehaves."""

    def __init__(self, how: str) -> None:
        self.how = how

    def act(self, positions: Any, masks: Any) -> Any:
        if self.how == "raises":
            raise ZeroDivisionError("out of seeds")
        if self.how == "sleeps":
            time.sleep(0.6)
        answers = {"illegal": [0], "wild": [1 << 70], "nothing": None, "many": [20, 20]}
        return answers.get(self.how, [20])


def offer(monkeypatch: pytest.MonkeyPatch, name: str, agent: Any) -> None:
    """Add a player to those of the board."""
    row = PlayerKind(name, name, {}, lambda _: agent, on_board=OnBoard({"en": name}))
    monkeypatch.setattr("agents.registry.KINDS", (*registry.KINDS, row))


@pytest.mark.parametrize(
    ("how", "status", "message"),
    [
        ("raises", 502, "ZeroDivisionError: out of seeds"),
        ("illegal", 502, "chose action 0, which is illegal"),
        ("wild", 502, "expected one integer for each"),
        ("nothing", 502, "expected one integer for each"),
        ("many", 502, "expected one integer for each"),
        ("sleeps", 504, "took longer than"),
    ],
)
def test_a_failing_bot_leaves_the_game_alone(
    monkeypatch: pytest.MonkeyPatch, how: str, status: int, message: str
) -> None:
    offer(monkeypatch, "failing", Failing(how))
    if how == "sleeps":
        monkeypatch.setattr("agents.play.api.BOT_TIMEOUT", 0.2)
    client = make_client()
    path, state = start(client, seats=["failing", "human"])
    assert message in ask(client, f"{path}/bot", status, ply=0)["error"]
    time.sleep(0.6 if how == "sleeps" else 0)  # a late answer must not be played either
    assert client.get(path).json()["state"] == state


def test_a_bot_does_not_play_what_it_found_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it thinks, its opponent takes a move back and makes another."""
    client = make_client()
    path, state = start(client, seats=["human", "greedy"])
    first, other = (option["action"] for option in state["legal"][:2])
    act = Roster.act

    def slow(self: Roster, *asked: Any) -> int:
        ask(client, f"{path}/goto", ply=0)
        ask(client, f"{path}/play", action=other, ply=0)
        return act(self, *asked)

    ask(client, f"{path}/play", action=first, ply=0)
    monkeypatch.setattr(Roster, "act", slow)
    assert "gone on without" in ask(client, f"{path}/bot", 409, ply=1)["error"]
    assert client.get(path).json()["state"]["ply"] == 1


@pytest.mark.parametrize("evaluator", ["alphabeta", "zanzibar", "search:zanzibar:16"])
def test_hints(client: TestClient, evaluator: str) -> None:
    path, state = start(client)
    found = ask(client, f"{path}/hints", evaluator=evaluator)
    assert {m["action"] for m in found["moves"]} == {o["action"] for o in state["legal"]}
    assert all(0 <= move["value"] <= 1 for move in found["moves"])
    if evaluator == "alphabeta":
        assert all(move["probability"] is None for move in found["moves"])
    else:
        assert sum(move["probability"] for move in found["moves"]) == pytest.approx(1, abs=1e-3)
    assert found["line"][0]["texts"] == found["moves"][0]["texts"]
    board = Board()
    for move in found["line"]:  # the line can be played
        assert move["seat"] == board.turn
        board.push(move["texts"][0])


def test_hints_see_a_win() -> None:
    """South's only move captures the last front seed of North."""
    board = Board.from_text(
        "1,9,0,9,1,11,1,0/1,1,3,0,4,1,0,3/0,0,1,0,0,0,0,0/6,3,1,5,1,0,0,2 0,0 - S -"
    )
    found = hints(board, "alphabeta", Roster())
    assert [move["texts"][0] for move in found["moves"]] == ["B8R"]
    assert found["moves"][0]["value"] == 1.0 and south_chance(board)["proven"]
    board.push("B8R")
    assert south_chance(board) == {"south": 1.0, "proven": True, "win": None}
    with pytest.raises(Refused, match="the game is over"):
        hints(board, "alphabeta", Roster())


WON = "1,1,0,5,7,0,4,8/3,0,2,0,2,0,5,1/1,1,2,1,2,0,3,1/0,2,0,2,0,2,1,3 2,2 - S -"
"""South wins in 13 plies by three of eight moves, and loses by the others."""


def test_a_proven_win_is_told_with_its_plies(client: TestClient) -> None:
    """By the evaluation bar and by hints, also where one has gone back."""
    path, state = start(client, position=WON)
    win = {"winner": 0, "plies": 13, "exact": True}
    found = ask(client, f"{path}/hints", evaluator="alphabeta")
    assert found["win"] == win and found["moves"][0]["win"] == win
    winners = [move["win"]["winner"] for move in found["moves"]]
    assert winners == [0] * 3 + [1] * 5
    assert [move["value"] for move in found["moves"]] == [1.0] * 3 + [0.0] * 5
    plies = [move["win"]["plies"] for move in found["moves"]]
    assert plies == sorted(plies[:3]) + sorted(plies[3:], reverse=True)
    for ply, played in enumerate((found["moves"][0], found["moves"][-1])):
        ask(client, f"{path}/goto", ply=0)
        ask(client, f"{path}/play", action=played["action"], ply=0)
        after = ask(client, f"{path}/evaluation")
        assert (after["south"], after["win"]["winner"]) == (1 - ply, ply)
        assert after["win"]["plies"] <= played["win"]["plies"] - 1
    ask(client, f"{path}/goto", ply=0)
    found = ask(client, f"{path}/evaluation")
    assert found == {"ply": 0, "south": 1.0, "proven": True, "win": win}
    path, _ = start(client)
    assert ask(client, f"{path}/evaluation")["win"] is None
    assert ask(client, f"{path}/hints", evaluator="alphabeta")["win"] is None


def test_hints_of_a_network_say_what_is_proven(client: TestClient) -> None:
    path, _ = start(client, position=WON)
    found = ask(client, f"{path}/hints", evaluator="zanzibar")
    assert found["win"] == {"winner": 0, "plies": 13, "exact": True}
    assert sum(move["win"]["winner"] == 0 for move in found["moves"]) == 3
    assert 0 < found["moves"][0]["value"] < 1  # still what the network thinks


def test_the_evaluation_bar(client: TestClient) -> None:
    path, state = start(client)
    found = ask(client, f"{path}/evaluation")
    assert 0.3 < found["south"] < 0.7 and not found["proven"]
    assert chance(0) == 0.5 and chance(32_000) == 1 and chance(-31_990) == 0
    assert chance(200) == pytest.approx(0.731, abs=1e-3)


def test_watching() -> None:
    roster = Roster()
    watch = Watch(RULESETS["zanzibar"], ("greedy", "random"), 4, roster, seed=5)
    first = watch.state()
    assert [board["seats"] for board in first["boards"][:2]] == [
        ["greedy", "random"],
        ["random", "greedy"],
    ]
    assert first["boards"][0]["counts"] == first["boards"][1]["counts"]  # one opening, both sides
    steps = 0
    while watch.state()["running"]:
        turns = watch.turns()
        watch.play(turns, [roster.act(turn.player, turn.board) for turn in turns])
        with pytest.raises(Refused, match="gone on meanwhile"):
            watch.play(turns, [0] * len(turns))
        steps += 1
    last = watch.state()
    assert steps > 5 and sum(last["score"]) == 4 and all(b["over"] for b in last["boards"])
    won = sum(b["seats"][b["winner"]] == "greedy" for b in last["boards"])
    assert last["score"] == [won, 4 - won]


def test_watching_is_limited(client: TestClient) -> None:
    made = ask(client, "/api/watches", players=["greedy", "greedy"], boards=3)
    assert len(ask(client, f"/api/watches/{made['id']}/step")["state"]["boards"]) == 3
    for how in ({"boards": 13}, {"boards": 0}, {"boards": True}, {"players": ["human", "greedy"]}):
        ask(client, "/api/watches", 400, **{"players": ["greedy"] * 2, "boards": 2, **how})


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


def test_swahili_has_words_for_all_that_the_server_says() -> None:
    swahili = json.loads((STATIC / "sw.json").read_text(encoding="utf-8"))
    assert {f"event {kind.value}" for kind in EventKind} <= set(swahili)
    rng = np.random.default_rng(1)
    reasons = set()
    for name in RULESETS:
        for _ in range(2):
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
    offered = [(kind, kind.on_board) for kind in KINDS if kind.on_board is not None]
    assert len(offered) > 5
    for kind, place in offered:
        assert ("{budget}" in kind.spelling) == (place.budget is not None)
        assert {"{checkpoint}" in text for text in place.label.values()} == {kind.has_checkpoint}
        for words in (place.label, *([place.budget.label] if place.budget else [])):
            assert words["en"] and set(words) <= {"en", "sw"}
