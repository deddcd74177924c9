"""Test how the examples of other RL libraries are measured."""

from __future__ import annotations

from contextlib import nullcontext
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest

import cleanrl_vector
import measure
from bao_agents.arena.elo import Score, score_pairs
from bao_env import Agent, BaoVectorEnv, GreedyAgent, PolicyAgent, RandomAgent
from tests.conftest import Capsys


def test_masked_argmax() -> None:
    scores = np.array([[3.0, 2.0, 1.0], [-9.0, -8.0, -7.0]])
    legal = np.array([[False, True, True], [True, True, False]])
    assert measure.masked_argmax(scores, legal).tolist() == [1, 1]


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
    with nullcontext() if passes else pytest.raises(SystemExit, match="did not clearly beat"):
        measure.report("numpy", "some route", 61.4, lambda boards, masks: masks.argmax(axis=1))
    row = capsys.readouterr().out
    assert row.startswith(f"| numpy | {version('numpy')} | some route | 61 | 98.0 % (")
    assert f" %) | {wins}.0 % (" in row


def test_plain_ppo_is_reproducible() -> None:
    boards = np.random.default_rng(0).random((50, measure.INPUTS)).astype(np.float32)
    legal = np.ones((50, 64), np.bool_)
    first, again = (cleanrl_vector.train(300, games=16, rollout=8) for _ in range(2))
    assert (first(boards, legal) == again(boards, legal)).all()


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
        assert np.array_equal(games.legal[~over], envs.action_masks()[~over])
        assert not games.legal[over].any()
        assert np.array_equal(outcome.boards, seen["observation"])
    again = step(games, actions * 0 + np.argmax(games.legal, axis=1))
    assert np.array_equal(again.games.positions[over], games.positions[over])
    assert not again.rewards[over].any() and not again.signs[over].any()
