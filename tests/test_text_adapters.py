"""Test adapters to libraries of language models; a test is skipped if its library is missing."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bao_env import Board, GreedyAgent
from bao_env.engine.action import mask_of
from bao_env.engine.position import to_words
from bao_env.engine.ruleset import get_ruleset
from bao_env.text_game import random_board, read_answer
from tests.chat_stub import Stub, greedy_move, read_prompt, serve

DOCS = Path(__file__).parents[1] / "docs"


def greedy_game(board: Board) -> Board:
    """Return a board at the end of a game of two greedy bots."""
    while board.outcome() is None:
        legal = np.array([mask_of(board.legal_actions)], np.uint64)
        board.push(int(GreedyAgent(board.ruleset).act(board.words[None], legal)[0]))
    return board


# --- TextArena ------------------------------------------------------------------------------------


def textarena(name: str, **options: Any) -> Any:
    """Return an environment, and the library with the games."""
    ta = pytest.importorskip("textarena")
    import bao_env.adapters.textarena  # noqa: F401 - registers the games

    return ta.make(name, **options)


@pytest.mark.parametrize(
    ("name", "ruleset"),
    [("Bao-v0", "zanzibar"), ("Bao-v0-train", "dutch"), ("Bao-v0-raw", "kujifunza")],
)
def test_a_rollout_in_textarena(name: str, ruleset: str) -> None:
    env = textarena(name, ruleset=ruleset, opening_plies=3)
    rules = get_ruleset(ruleset)
    env.reset(num_players=2, seed=4)
    done, players, steps = False, set(), 0
    while not done:
        player, observation = env.get_observation()
        if name == "Bao-v0-raw":
            observation = "\n".join(message for _, message, _ in observation)
        assert f"You are {('South', 'North')[player]}." in observation
        shown = observation[observation.rindex("b8:") :]
        players.add(player)
        done, _ = env.step(
            f"I see.\nMove: {greedy_move(to_words(read_prompt(shown, rules)), rules)}"
        )
        steps += 1
    rewards, info = env.close()
    expected = greedy_game(random_board(ruleset, 3, 4))
    outcome = expected.outcome()
    assert outcome is not None and players == {0, 1} and steps == expected.ply - 3
    assert rewards == {outcome.winner: 1, 1 - outcome.winner: -1}
    assert info[0]["reason"] == str(outcome)
    assert info[0]["turn_count"] + info[1]["turn_count"] == steps


def test_textarena_forfeits_after_the_last_retry() -> None:
    env = textarena("Bao-v0", retries=1)
    env.reset(num_players=2)
    assert env.step("Move: A1 towards A2") == (False, {})
    player, observation = env.get_observation()
    assert player == 0 and "A1 is empty" in observation
    assert env.step("Move: A7 towards A6")[0] is False
    assert env.get_observation()[0] == 1
    env.step("pass")
    assert env.step("pass")[0] is True
    rewards, info = env.close()
    assert rewards == {0: 1, 1: -1} and info[1]["invalid_move"] is True


def test_textarena_ends_long_games_as_draws() -> None:
    env = textarena("Bao-v0-raw", max_turns=1)
    env.reset(num_players=2)
    assert env.step("A7L")[0] is True
    assert env.close()[0] == {0: 0, 1: 0}


# --- Verifiers ------------------------------------------------------------------------------------


def episodes(stub: Stub, model: str, count: int, **env: Any) -> list[Any]:
    """Run the first tasks of the example in Verifiers, and return their episodes."""
    vf = pytest.importorskip("verifiers.v1")
    if shutil.which("uv") is None:
        pytest.skip("Verifiers starts its programs with uv: pip install uv")
    from verifiers.v1.utils.loaders import load_environment, resolve_env_config

    config = {"taskset": {"id": "verifiers-game", **env.pop("taskset", {})}, **env}
    environment = load_environment(resolve_env_config(config))
    context = vf.ModelContext(
        model=model, client=vf.EvalClientConfig(base_url=stub.url, api_key_var="STUB_KEY")
    )

    async def run() -> list[Any]:
        async with environment.serving():
            tasks = list(environment.taskset.take(count))
            return [await environment.run_episode(task, context) for task in tasks]

    return asyncio.run(run())


GREEDY = "org/greedy:free"


@pytest.mark.slow
def test_rollouts_in_verifiers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_KEY", "none")
    monkeypatch.syspath_prepend(DOCS)  # the example
    monkeypatch.setenv("PYTHONPATH", str(DOCS), prepend=os.pathsep)
    with serve() as stub:
        late = {"opening_plies": 24}  # few plies remain: each turn starts a process
        [both] = episodes(stub, GREEDY, 1, taskset=late)
        first, second = episodes(stub, GREEDY, 2, taskset=late, opponent="greedy")
        [forfeit] = episodes(stub, "illegal", 1, opponent="greedy", illegal_retries=1)
        moves = episodes(stub, GREEDY, 2, taskset={"proven": True})
    for seed, episode in enumerate((both, second)):
        assert not episode.errors
        game = greedy_game(random_board("zanzibar", 24, seed))
        outcome = game.outcome()
        assert outcome is not None
        for trace in episode.traces:
            seat = trace.info["bao"]["seat"]
            assert Board.from_transcript(trace.info["bao"]["game"]) == game
            assert trace.rewards["result"].score == (1 if seat == outcome.winner else -1)
            assert trace.metrics["illegal tries"] == 0
    assert sorted(trace.info["bao"]["seat"] for trace in both.traces) == [0, 1]
    assert [e.traces[0].info["bao"]["seat"] for e in (first, second)] == [0, 1]
    [trace] = forfeit.traces
    assert trace.rewards["result"].score == -1 and trace.metrics["illegal tries"] == 2
    for episode in moves:
        data, [trace] = episode.task.data, episode.traces
        board = Board.from_text(data.position)
        move = greedy_move(board.words, board.ruleset)
        action = read_answer(move, board.words, board.ruleset)
        assert trace.rewards["proven"].score == (action in data.winning)
