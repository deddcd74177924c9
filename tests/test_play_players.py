"""The server of the board: who may play, networks, and players that fail."""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from agents import registry
from agents.base import OnBoard, PlayerKind
from agents.play.analysis import hints
from agents.play.networks import Networks
from agents.play.refused import Refused
from agents.play.roster import Roster
from agents.play.rule_texts import ruleset_text
from agents.registry import CHECKPOINTS, KINDS, read_network
from bao_env.board import Board
from bao_env.engine.ruleset import RULESETS
from tests.play import ask, make_client, start

pytestmark = pytest.mark.usefixtures("patience")


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
        "first", "first", {"first": "the lowest"}, lambda _: First(), on_board={"": OnBoard(label)}
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


# --- networks -----------------------------------------------------------------------------------


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


# --- players that fail --------------------------------------------------------------------------


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
    row = PlayerKind(name, name, {}, lambda _: agent, on_board={"": OnBoard({"en": name})})
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
