"""Test how the examples of other RL libraries are measured."""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bao_agents
import measure
import minimax
from bao_agents.arena.elo import score_pairs
from bao_env import (
    BaoVectorEnv,
    Board,
    check_agent,
)
from bao_training.run_tables import read_runs
from tests.conftest import Capsys
from tests.positions import draw
from tests.processes import ROOT


def test_best_player_takes_the_legal_action_of_the_highest_score() -> None:
    envs = BaoVectorEnv(9, opponent=None, opening_plies=(0, 8))
    envs.reset(seed=1)
    scores = np.random.default_rng(1).random((9, 64)) - 5
    best = np.where(envs.action_masks(), scores, -9).argmax(axis=1)
    player = measure.best_player(lambda boards: scores)
    assert np.array_equal(player.act(envs.positions, envs.legal), best)


@pytest.mark.parametrize("wins", [90, 54])
def test_report_fails_unless_greedy_is_beaten(
    wins: int, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """The report passes the options on to the training."""
    options: dict[str, Any] = {}
    points = np.repeat([[1.0, 1.0], [0.0, 0.0]], (wins, 100 - wins), axis=0)
    score: Any = score_pairs(points)
    monkeypatch.setattr(measure, "play_match", lambda *_, **arguments: SimpleNamespace(score=score))
    monkeypatch.setattr(time, "process_time", iter([3.0, 64.4]).__next__)
    monkeypatch.setattr(sys, "argv", ["page.py", "--steps", "7", "--seed", "3"])
    fails = pytest.raises(SystemExit, match="did not clearly beat")
    with nullcontext() if wins == 90 else fails:
        measure.report(
            "numpy", "some route", lambda **arguments: options.update(arguments), lambda **_: score
        )
    row = capsys.readouterr().out
    assert row.startswith(f"| numpy | {version('numpy')} | some route | 61 | {wins}.0% (")
    assert options.pop("log").folder == "" and options == {"steps": 7, "seed": 3}


def test_a_log_replaces_no_metrics(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.csv"
    metrics.write_text("of a run\n")
    with pytest.raises(argparse.ArgumentTypeError, match="choose another folder"):
        measure.Log(str(tmp_path))(1, lambda _: None, loss=1.0)
    assert metrics.read_text() == "of a run\n"


def test_help_does_not_train() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "training/examples/td.py", "--help"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("usage: td.py [-h] [--steps STEPS] [--seed SEED] [--log ")


PAGES = {
    "td": ("torch", {"GAMES": 16}),
    "cleanrl_vector": ("torch", {"GAMES": 16, "ROLLOUT": 8, "COPY_EVERY": 128}),
    "sb3_vector": ("sb3_contrib", {"GAMES": 16, "ROLLOUT": 8, "COPY_EVERY": 128}),
    "torchrl_vector": ("torchrl", {"GAMES": 16, "FRAMES": 512}),
    "rllib_vector": ("ray.rllib", {"GAMES": 16, "ROLLOUT": 512}),
}
"""The pages, each with its library and small sizes."""


@pytest.mark.parametrize("name", PAGES)
def test_pages_save_players_for_the_commands(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page saves a player beside it, and others in the log; the same seed trains the same player
    again."""
    library, sizes = PAGES[name]
    pytest.importorskip(library)
    page = importlib.import_module(name)
    for constant, value in sizes.items():
        monkeypatch.setattr(page, constant, value)
    monkeypatch.setattr(page, "FILE", tmp_path / page.FILE.name)
    with pytest.raises(ValueError, match=r"cannot be loaded: FileNotFoundError"):
        bao_agents.load(f"{name}:player")
    arrays = draw("dutch")

    def actions(file: str = "") -> Any:
        player = bao_agents.load(f"{name}:player{file}", ruleset="dutch")
        check_agent(player, "dutch")
        return player.act(*arrays).tolist()

    page.train(measure.Log(str(tmp_path / "log")), steps=512)
    first = actions()
    [*_, last] = read_runs(tmp_path / "log")[str(tmp_path / "log")]
    saved_steps = sorted(int(file.stem) for file in tmp_path.glob("log/*.player"))
    assert int(last["steps"]) in range(256, 513) and saved_steps
    if saved_steps[-1] == 512:
        assert actions(f"@{tmp_path}/log/512.player") == first
    page.train(measure.Log(""), steps=512)
    assert actions() == first


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
    observations, _ = envs.reset(seed=1)
    games = mctx_gumbel.Games(envs.positions.view(np.uint32), envs.action_masks())
    step = jax.jit(mctx_gumbel.step)
    over = np.zeros(20, np.bool_)
    while not over.any():
        actions = envs.sample_legal_actions()
        observations, rewards, terminated, truncated, _ = envs.step(actions)
        over = terminated | truncated
        outcome = step(games, actions)
        games = outcome.games
        assert np.array_equal(np.array(games.positions).view(np.uint64), envs.positions)
        assert np.array_equal(outcome.rewards, rewards)
        assert np.array_equal(outcome.signs, np.where(over, 0, -1))
        assert np.array_equal(games.masks[~over], envs.action_masks()[~over])
        assert not games.masks[over].any()
        assert np.array_equal(outcome.boards, observations["observation"])
