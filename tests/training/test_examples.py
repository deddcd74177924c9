"""Test how the examples of other RL libraries are measured."""

from __future__ import annotations

import importlib
import time
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

import bao_agents.arena
import measure
import minimax
from bao_agents.arena.elo import Score, score_pairs
from bao_env import (
    Agent,
    BaoVectorEnv,
    Board,
    GreedyAgent,
    PolicyAgent,
    RandomAgent,
    check_agent,
)
from tests.conftest import Capsys
from tests.positions import draw


def test_best_player_takes_the_legal_action_of_the_highest_score() -> None:
    envs = BaoVectorEnv(9, opponent=None, opening_plies=(0, 8))
    envs.reset(seed=1)
    scores = np.random.default_rng(1).random((9, 64)) - 5
    best = np.where(envs.action_masks(), scores, -9).argmax(axis=1)
    player = measure.best_player(lambda boards: scores)
    assert np.array_equal(player.act(envs.positions, envs.legal), best)


def test_score_against_a_bot() -> None:
    """The players read observations of 308 numbers."""
    shapes: set[tuple[int, ...]] = set()

    def choose(observations: Any, masks: np.ndarray) -> Any:
        shapes.add(observations.shape[1:])
        return masks.argmax(axis=1)

    player = PolicyAgent(choose, measure.OBSERVATION)
    score = measure.score_against(RandomAgent(1), player)
    assert score.games == 400 and 0.2 < score.rate < 0.8
    assert shapes == {(measure.INPUTS,)} == {(308,)}


@pytest.mark.parametrize(("wins", "passes"), [(90, True), (54, False)])
def test_report_fails_unless_greedy_is_beaten(
    wins: int, passes: bool, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    def score(bot: Agent, player: Agent) -> Score:
        points = np.arange(100) % 50 < (wins / 2 if isinstance(bot, GreedyAgent) else 49)
        return score_pairs(points.astype(float).reshape(2, 50).T)

    monkeypatch.setattr(measure, "score_against", score)
    monkeypatch.setattr(time, "process_time", iter([3.0, 64.4]).__next__)
    with nullcontext() if passes else pytest.raises(SystemExit, match="did not clearly beat"):
        measure.report("numpy", "some route", lambda: None, lambda **how: RandomAgent(how["seed"]))
    row = capsys.readouterr().out
    assert row.startswith(f"| numpy | {version('numpy')} | some route | 61 | 98.0 % (")
    assert f" %) | {wins}.0 % (" in row


@pytest.fixture
def page(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A page that saves into a folder of the test; skipped if its library is missing."""
    library, name = request.param
    pytest.importorskip(library)
    module = importlib.import_module(name)
    monkeypatch.setattr(module, "FILE", tmp_path / module.FILE.name)
    return module


PAGES = {
    "td": ("torch", {"updates": 1, "games": 16}),
    "cleanrl_vector": ("torch", {"steps": 128, "games": 16, "rollout": 8}),
    "sb3_vector": ("sb3_contrib", {"steps": 128, "games": 16, "rollout": 8}),
    "torchrl_vector": ("torchrl", {"total": 128, "games": 16, "frames": 128}),
    "rllib_vector": ("ray.rllib", {"updates": 1, "games": 16, "steps": 512}),
}


@pytest.mark.parametrize(
    ("page", "sizes"),
    [((library, name), sizes) for name, (library, sizes) in PAGES.items()],
    indirect=["page"],
    ids=PAGES,
)
def test_pages_save_a_player_for_the_commands(page: Any, sizes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"cannot be loaded: FileNotFoundError"):
        bao_agents.load(f"{page.__name__}:player")
    page.train(**sizes)
    arrays = draw("dutch")

    def actions() -> Any:
        player = bao_agents.load(f"{page.__name__}:player", ruleset="dutch")
        check_agent(player, "dutch")
        return player.act(*arrays).tolist()

    first = actions()
    assert actions() == first
    page.train(**sizes)
    assert actions() == first


@pytest.mark.parametrize("page", [("torch", "cleanrl_vector")], indirect=True)
def test_ppo_continues_where_it_stopped(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "COPY_EVERY", 128)

    def saved(steps: int) -> Any:
        page.train(steps, games=16, rollout=8)
        return load_file(page.FILE)

    first = saved(256)
    assert first["steps"] == 256 and first["optimizer.0.step"] == 2 * 4
    assert saved(256).keys() == first.keys()  # nothing is left to do
    second = saved(512)
    assert second["steps"] == 512 and second["optimizer.0.step"] == 4 * 4
    pools = [key for key in first if key.startswith("pool.")]
    assert pools and all(second[key].equal(first[key]) for key in pools)
    assert not second["generator"].equal(first["generator"])


def test_minimax_values_two_moves() -> None:
    def lead_after(*actions: int) -> int:
        board = Board()
        for action in actions:
            board.push(action)
        return minimax.lead(board)

    board, replies = Board(), {}
    for action in board.legal_actions:
        board.push(action)
        replies[action] = min(lead_after(action, reply) for reply in board.legal_actions)
        board.pop()
    assert len(set(replies.values())) > 1
    assert minimax.value(board, 2) == max(replies.values())
    assert minimax.Minimax("zanzibar").choose(board) == max(replies, key=replies.__getitem__)
    assert board == Board()


def test_step_in_jax_plays_the_games_of_the_vector_environment() -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("mctx")
    import mctx_gumbel

    envs = BaoVectorEnv(
        20, opponent=None, observation=measure.OBSERVATION, autoreset_mode="Disabled"
    )
    seen, _ = envs.reset(seed=1)
    games = mctx_gumbel.Games(envs.positions.view(np.uint32), envs.action_masks())
    step = jax.jit(mctx_gumbel.step)
    over = np.zeros(20, np.bool_)
    while not over.any():
        actions = envs.sample_legal_actions()
        seen, rewards, terminated, truncated, _ = envs.step(actions)
        over = terminated | truncated
        outcome = step(games, actions)
        games = outcome.games
        assert np.array_equal(np.array(games.positions).view(np.uint64), envs.positions)
        assert np.array_equal(outcome.rewards, rewards)
        assert np.array_equal(outcome.signs, np.where(over, 0, -1))
        assert np.array_equal(games.masks[~over], envs.action_masks()[~over])
        assert not games.masks[over].any()
        assert np.array_equal(outcome.boards, seen["observation"])
