"""Test the server of the board: who may play, networks, and players that fail."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint import load
from bao_agents.nets.checkpoint_files import CHECKPOINTS, shipped
from bao_agents.play.analysis import hints
from bao_agents.play.roster import Roster
from bao_agents.play.server import FOLDER
from bao_agents.players.player import NamedPlayer
from bao_agents.players.registry import load as load_player
from bao_env.board import Board
from bao_env.engine.ruleset import RULESETS
from tests.conftest import Capsys
from tests.play import ask, make_client, offer, start
from tests.processes import python

pytestmark = pytest.mark.usefixtures("patience")
ZANZIBAR = CHECKPOINTS / "zanzibar.safetensors"


@pytest.mark.parametrize(
    "player",
    [
        "random",
        "greedy",
        "alphabeta:2",
        "alphabeta:20ms",
        "mcts:20",
        "zanzibar",
        "guided:20ms",
        "guided:zanzibar:20ms",
        "solver:20ms",
    ],
)
def test_bots_move(client: TestClient, player: str) -> None:
    game, _ = start(client, seats=[player, "human"])
    answer = game("bot", ply=0)
    assert answer["state"]["ply"] == 1 and answer["events"]


def test_checkpoints_come_from_the_named_folders(tmp_path: Path) -> None:
    """If a checkpoint can no longer be read, the game stays as it is, and the path is not shown."""
    folder = tmp_path / "runs"
    (folder / "best").mkdir(parents=True)
    for name in ("best/final", "broken"):
        shutil.copy(ZANZIBAR, folder / f"{name}.safetensors")
    roster = Roster([folder])
    assert list(roster.files) == [*shipped(), "runs/best/final", "runs/broken"]
    client = make_client(roster)
    game, _ = start(client, seats=["runs/best/final", "runs/broken"])
    (folder / "broken.safetensors").write_bytes(b"nothing")
    state = game("bot", ply=0)["state"]
    error = game("bot", 502, ply=1)["error"]
    assert "runs/broken cannot play" in error and str(tmp_path) not in error
    assert str(tmp_path) not in game("hints", 502, evaluator="runs/broken")["error"]
    assert game.state() == state
    game("seats", seats=["human", "greedy"])
    assert game("bot", ply=1)["state"]["ply"] == 2
    with pytest.raises(ValueError, match="not a folder"):
        Roster([folder / "broken.safetensors"])


def test_no_checkpoint_is_left_out_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    folders = [tmp_path / name / "runs" for name in "ab"]
    for folder in folders:
        folder.mkdir(parents=True)
        shutil.copy(ZANZIBAR, folder / "net.safetensors")
    with pytest.raises(ValueError, match="two checkpoints are called runs/net"):
        Roster(folders)
    shutil.copy(ZANZIBAR, folders[0] / "other.safetensors")
    monkeypatch.setattr("bao_agents.play.roster._MAX_CHECKPOINTS", 1)
    assert [*Roster([folders[0]] * 2).files] == [*shipped(), "runs/net"]
    assert "runs has 2 checkpoints: the board offers the first 1," in capsys.readouterr().err
    Roster([folders[1]])
    assert capsys.readouterr().err == ""


def test_own_players_and_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Players and rules from the command line are offered first; other players of the same module
    are refused."""
    (tmp_path / "board_mine.py").write_text(
        "from bao_env import GreedyAgent\n\n"
        "def greedy(ruleset, seed):\n    return GreedyAgent(ruleset)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    rules = replace(RULESETS["zanzibar"], name="mine", singleton_takasa="singletons")
    client = make_client(Roster(players=["board_mine:greedy"], ruleset=rules))
    setup = client.get("/api/setup").json()
    assert [rules["name"] for rules in setup["rulesets"]] == ["mine", *RULESETS]
    assert setup["players"][0]["spec"] == ["board_mine:greedy", ""]
    game, state = start(client, seats=["board_mine:greedy", "human"], ruleset="mine")
    assert state["ruleset"] == "mine"
    assert game("bot", ply=0)["state"]["ply"] == 1
    error = ask(client, "/api/games", 400, seats=["board_mine:other", "human"])["error"]
    assert "unknown player" in error


def test_setup_lists_players_and_budgets(client: TestClient) -> None:
    """Each choice is a player within its budgets."""
    setup, roster = client.get("/api/setup").json(), Roster()
    words = json.loads((FOLDER / "en.json").read_text(encoding="utf-8"))
    choices = setup["players"] + setup["evaluators"]
    labels = {f"player {choice['kind']}" for choice in choices}
    labels |= {f"level {level['name']}" for level in setup["levels"]}
    assert labels - words.keys() == set()
    for choice in setup["players"]:
        rules = roster.rulesets[choice["rulesets"][0]]
        budget = choice["budget"] or {"low": "", "default": "", "high": ""}
        assert not choice["budget"] or f"unit {budget['unit']}" in words
        for limit in ("low", "default", "high"):
            name = str(budget[limit]).join(choice["spec"])
            assert roster.check(name, rules) == name
    budgets = {
        choice["value"]: choice["budget"] and [*choice["budget"].values()]
        for choice in setup["players"]
        if not choice["checkpoint"]
    }
    assert budgets == {
        "random": None,
        "greedy": None,
        "alphabeta": ["plies", 1, 10, 4],
        "alphabeta-ms": ["ms", 1, 5000, 500],
        "mcts": ["playouts", 2, 100_000, 1000],
        "guided-ms": ["ms", 1, 5000, 500],
        "solver-ms": ["ms", 1, 5000, 500],
    }
    begins = {rules["name"]: rules["first_player"] for rules in setup["rulesets"]}
    assert begins == {name: rules.first_player for name, rules in RULESETS.items()}
    everywhere = {"elo": 0, "rulesets": [*RULESETS]}
    assert setup["levels"][0] == {"name": "first steps", "spec": "random", **everywhere}
    assert [level["elo"] for level in setup["levels"][-3:]] == [1622, 1891, None]
    evaluators = [evaluator["value"] for evaluator in setup["evaluators"]]
    assert evaluators == ["alphabeta", *roster.files]
    offered = {choice["value"]: choice["rulesets"] for choice in setup["players"]}
    assert offered["network:kibao"] == ["kibao"]
    assert setup["levels"][-1]["rulesets"] == offered["guided-ms"]


# --- networks -----------------------------------------------------------------------------------


def test_networks_are_read_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Players, hints and searches share a network until its file changes."""
    path = tmp_path / "net.safetensors"
    shutil.copy(ZANZIBAR, path)
    name = f"{tmp_path.name}/net"
    read: list[Path] = []

    def count(path: Path, ruleset: Any) -> Any:
        read.append(path)
        return load(path, ruleset)

    monkeypatch.setattr(checkpoint, "load", count)
    roster, board = Roster([path.parent]), Board()
    for _ in range(2):
        hints(board, name, roster)
        roster.act(name, board, 0)
    assert read == [path]
    path.touch()
    hints(board, name, roster)
    assert read == [path] * 2
    path.touch()
    roster.act(name, board, 0)
    assert read == [path] * 3


def test_a_bot_gets_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = list[Any]()

    def note(player: Any, **settings: Any) -> NamedPlayer:
        loaded.append(settings)
        return load_player(player, **settings)

    monkeypatch.setattr("bao_agents.players.registry.load", note)
    assert Roster(seed=5).act("greedy", Board(), 0) in Board().legal_actions
    assert loaded == [{"ruleset": RULESETS["zanzibar"], "seed": 5, "threads": 1}]


def test_a_bot_is_told_the_number_of_its_game(monkeypatch: pytest.MonkeyPatch) -> None:
    games, client = list[int](), make_client()

    def choose(player: NamedPlayer, board: Board, *, game: int) -> int:
        games.append(game)
        return board.legal_actions[0]

    monkeypatch.setattr(NamedPlayer, "choose", choose)
    for table in [start(client, seats=["greedy", "greedy"])[0] for _ in range(2)]:
        for ply in range(2):
            table("bot", ply=ply)
    assert games == sorted(games) and len({*games}) == 2


def test_bots_play_with_the_extra_play_alone() -> None:
    program = """
import sys
for name in ("torch", "matplotlib"):
    sys.modules[name] = None
import bao_agents
from bao_agents.play.refused import Refused
from bao_agents.play.roster import Roster
from bao_agents.play.server import create_app
from bao_env.board import Board
from bao_agents.play.analysis import evaluators
roster = Roster()
create_app(roster)
board = Board()
assert roster.act("greedy", board, 0) in board.legal_actions
listed = (*roster.choices(), *roster.levels(), *evaluators(roster))
names = " ".join(one.get("value", one.get("spec")) for one in listed if one["rulesets"])
assert "alphabeta:10" in names and "solver" in names and "guided" in names
assert "network" not in names, names
try:
    roster.act("zanzibar", board, 0)
except Refused as refused:
    print(refused.message)
try:
    bao_agents.load("zanzibar")
except ModuleNotFoundError as error:
    print(error.name)
"""
    refusal, package = python(program).stdout.splitlines()[-2:]
    assert "needs torch: pip install 'bao_env[train]'" in refusal and package == "torch"


# --- players that fail --------------------------------------------------------------------------


class Failing:
    """A player that raises, or answers wrongly."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def act(self, positions: Any, legal: Any) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (ZeroDivisionError("out of seeds"), "ZeroDivisionError: out of seeds"),
        (SystemExit(3), "SystemExit: 3"),
        ([0], "chose action 0, which is illegal"),
        ([1 << 70], "expected 1 integer, "),
        ([20, 20], "expected 1 integer, "),
    ],
)
def test_failing_bot_leaves_the_game_alone(
    monkeypatch: pytest.MonkeyPatch, answer: Any, message: str
) -> None:
    offer(monkeypatch, Failing(answer))
    game, state = start(make_client(), seats=["mine", "human"])
    assert message in game("bot", 502, ply=0)["error"]
    assert game.state() == state


def test_bot_does_not_play_after_the_game_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the bot thinks, its opponent takes a move back and makes another."""
    client = make_client()
    game, state = start(client, seats=["human", "greedy"])
    first, second = (option["action"] for option in state["legal"][:2])
    act = Roster.act

    def slow(self: Roster, *arguments: Any) -> int:
        game("goto", ply=0)
        game("play", action=second, ply=0)
        return act(self, *arguments)

    game("play", action=first, ply=0)
    monkeypatch.setattr(Roster, "act", slow)
    assert "continued without" in game("bot", 409, ply=1)["error"]
    assert game.state()["ply"] == 1
