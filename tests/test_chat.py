"""Test the player ``chat:MODEL`` against a server on loopback."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("openai")  # the extra chat

from bao_agents import chat_client
from bao_agents.arena.games import GAME_OVER
from bao_agents.arena.match import play_match
from bao_agents.arena.solved_positions import shipped_won_positions
from bao_agents.base import NamedPlayer
from bao_agents.chat import DEFAULTS, ChatAgent, parse_name
from bao_env.bots import GreedyAgent, RandomAgent
from bao_env.engine.masks import is_legal
from bao_env.engine.ruleset import get_ruleset
from tests.chat_stub import Stub, serve
from tests.conftest import Says
from tests.positions import random_play

GREEDY = "org/greedy:free"


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Stub]:
    """Run a server, and set the environment that leads to it."""
    with serve() as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
        monkeypatch.setenv("BAO_CHAT_LOG", str(tmp_path / "log" / "chat.jsonl"))
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        yield stub


def exchanges(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "log/chat.jsonl").read_text().splitlines()]


def test_a_model_that_answers_as_greedy_does_scores_what_greedy_scores(stub: Stub) -> None:
    agent = ChatAgent(GREEDY)
    matches = [
        play_match(player, RandomAgent(3), pairs=4, seed=5, balance=None)
        for player in (agent, GreedyAgent())
    ]
    assert (matches[0].actions == matches[1].actions).all()
    assert matches[0].score == matches[1].score
    assert agent.tally == {"moves": matches[0].moves[0], "illegal tries": 0, "forfeits": 0}


@pytest.mark.parametrize("ruleset", ["kibao", "kujifunza", "malawi", "dutch"])
def test_the_road_has_no_gap_under_any_rules(
    ruleset: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BAO_CHAT_LOG", str(tmp_path / "log"))
    positions, legal = random_play(ruleset, 30)
    with serve(ruleset) as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
        actions = ChatAgent(f"{GREEDY}?legal=false", ruleset).act(positions[:40], legal[:40])
    running = legal[:40] != 0
    greedy = GreedyAgent(ruleset).act(positions[:40], legal[:40])
    assert (actions == greedy)[running].all()
    assert "Your legal moves" not in stub.requests[0]["messages"][1]["content"]


def test_the_reason_of_an_illegal_move_comes_back(stub: Stub) -> None:
    positions, legal = random_play("zanzibar", 30)
    agent = ChatAgent("late?retries=1")
    actions = agent.act(positions[:20], legal[:20])
    assert (actions == GreedyAgent().act(positions[:20], legal[:20]))[legal[:20] != 0].all()
    assert agent.tally["illegal tries"] == agent.tally["moves"] == (legal[:20] != 0).sum()
    last = stub.requests[-1]["messages"]
    assert [message["role"] for message in last] == ["system", "user", "assistant", "user"]
    assert "This is not a legal move" in last[3]["content"]


FAILED = ["huge", "html", "nested", "no choices", "number", "zip", "500", "429", "cut"]
FAILED += ["half-open", "drip", "utf-16"]
WRONG = ["illegal", "rambling", "echo", "echo all", "silent", "parts", "control"]


@pytest.mark.parametrize("model", [*FAILED, *WRONG])
def test_hostile_answers_cost_a_forfeit_and_nothing_else(
    model: str, stub: Stub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BAO_CHAT_SECONDS", "1")
    positions, legal = random_play("zanzibar", 5)
    agent = ChatAgent(f"{model}?retries=1")
    actions = agent.act(positions[:3], legal[:3])
    assert is_legal(actions, legal[:3]).all()
    assert agent.forfeits.tolist() == [True] * 3
    tries = 0 if model in FAILED else 6
    assert agent.tally == {"moves": 3, "illegal tries": tries, "forfeits": 3}
    log = exchanges(tmp_path)
    assert all(bool(line["problem"]) == (model in FAILED) for line in log)
    assert all(len(line["answer"] or "") <= chat_client.MAX_ANSWER for line in log)


@pytest.mark.parametrize(("model", "problem"), [("401", "401.*who are you"), ("404", "404")])
def test_a_server_that_refuses_is_an_error(model: str, problem: str, stub: Stub) -> None:
    with pytest.raises(ValueError, match=f"chat:{model}: status {problem}"):
        ChatAgent(model).act(*random_play("zanzibar", 5))
    assert len(stub.requests) <= 8


def test_no_server_is_an_error(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(ValueError, match=r"there is no server at http://127\.0\.0\.1:9/v1"):
        ChatAgent(GREEDY).act(*random_play("zanzibar", 5))


def test_nothing_is_asked_twice(stub: Stub, tmp_path: Path) -> None:
    positions, legal = random_play("zanzibar", 5)
    twice = np.concatenate([positions[:9], positions[:9]]), np.concatenate([legal[:9]] * 2)
    first = ChatAgent(GREEDY).act(*twice)
    asked = len(stub.requests)
    assert asked <= 9
    with (tmp_path / "log/chat.jsonl").open("a") as file:
        file.write('{"key": "torn')  # a process was killed while it wrote
    again = ChatAgent(GREEDY)
    assert (again.act(*twice) == first).all() and len(stub.requests) == asked
    ChatAgent(f"{GREEDY}?temperature=0.5").act(positions[:1], legal[:1])
    assert len(stub.requests) == asked + 1
    assert stub.requests[-1]["temperature"] == 0.5
    assert "temperature" not in stub.requests[0]


@pytest.mark.parametrize("name", ["CALLS", "TOKENS"])
def test_limits_count_what_the_log_has(
    name: str, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    positions, legal = random_play("zanzibar", 12)
    monkeypatch.setenv("BAO_CHAT_CONCURRENCY", "1")
    monkeypatch.setenv(f"BAO_CHAT_{name}", {"CALLS": "3", "TOKENS": "300"}[name])
    for _ in range(2):
        with pytest.raises(ValueError, match=f"BAO_CHAT_{name}=3"):
            ChatAgent(GREEDY).act(positions, legal)
        assert len(stub.requests) == 3
    monkeypatch.setenv(f"BAO_CHAT_{name}", "0")
    with pytest.raises(ValueError, match=f"BAO_CHAT_{name}='0': expected a whole number above 0"):
        ChatAgent(GREEDY)


def test_a_busy_server_is_asked_again(stub: Stub) -> None:
    positions, legal = random_play("zanzibar", 5)
    agent = ChatAgent("flaky")
    agent.act(positions[:4], legal[:4])
    assert agent.tally["forfeits"] == 0


def test_it_plays_inside_an_event_loop(stub: Stub) -> None:
    positions, legal = random_play("zanzibar", 5)

    async def act() -> Any:
        return ChatAgent(GREEDY).act(positions[:2], legal[:2])

    assert is_legal(asyncio.run(act()), legal[:2]).all()


def test_names() -> None:
    assert parse_name("a/b:c") == ("a/b:c", DEFAULTS)
    assert parse_name("odd?name?") == ("odd?name", DEFAULTS)
    assert parse_name("a?legal=false&temperature=0.5&effort=low&max_completion_tokens=9") == (
        "a",
        {"legal": False, "retries": 2}
        | {"temperature": 0.5, "effort": "low", "max_completion_tokens": 9},
    )
    for name in ("", "?legal=false", "a?legal=5", "a?retries=x", "a?retries=-1", "a?stream=true"):
        with pytest.raises(ValueError, match=r"^chat:.*expected chat:MODEL"):
            ChatAgent(name)


def test_a_forfeit_loses_the_game(stub: Stub) -> None:
    agent = NamedPlayer("chat", ChatAgent("illegal?retries=1"))
    match = play_match(agent, RandomAgent(3), pairs=3, opening_plies=4, seed=5, balance=None)
    assert match.score.losses == 6
    played = (match.actions != GAME_OVER).sum(axis=-1)
    assert played.tolist() == [[0, 1]] * 3  # South is to move: as North, the opponent moves first
    assert (match.plies == played + 4).all()
    assert match.tallies == ({"moves": 6, "illegal tries": 12, "forfeits": 6}, {})
    won = shipped_won_positions(get_ruleset("zanzibar"))
    assert won is not None
    assert (won[:40].mistakes(agent) == won[:40].choices).all() and won[:40].choices.any()


def test_commands_report_illegal_tries_and_forfeits(stub: Stub, tmp_path: Path, says: Says) -> None:
    out = says(f"match chat:{GREEDY} chat:illegal --pairs 2 --json {tmp_path}/match.json")
    assert "against chat:illegal, chat:illegal: 4 moves, 12 illegal tries, 4 forfeits" in out
    [result] = json.loads((tmp_path / "match.json").read_text())["results"]
    assert result["wins"] == 4 and result["opponent_answers"]["forfeits"] == 4
    assert result["answers"]["illegal tries"] == 0

    how = "--ruleset kujifunza --positions 3 --plies 2 3 --sources random --nodes 20000"
    out = says(f"blunders chat:html {how} --threads 1 --cache {tmp_path}/cache")
    assert re.search(r"chat:html: (\d+) moves, 0 illegal tries, \1 forfeits", out)
