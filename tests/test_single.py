"""The Gymnasium environment with one learner, and opponents by name."""

from __future__ import annotations

import sys

import bao_agents
import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from bao_env import BaoEnv, Board, GreedyAgent, raw_env
from bao_env.engine.action import actions_of
from tests.rulesets import EVERY_RULESET
from tests.vector import ID

pytestmark = pytest.mark.filterwarnings("error")


@EVERY_RULESET
@pytest.mark.parametrize("flat", [False, True])
def test_check_env(ruleset: str, flat: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    import pygame  # noqa: F401 - skipped where it is missing

    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")  # a window without a screen
    monkeypatch.setitem(BaoEnv.metadata, "render_fps", 10_000)
    env = gymnasium.make(ID, ruleset=ruleset, flat=flat, opponent="greedy", render_mode="ansi")
    check_env(env.unwrapped)


@pytest.mark.parametrize("ruleset", ["zanzibar", "dutch"])
@pytest.mark.parametrize("seat", [0, 1])
def test_games_are_those_of_the_aec_environment(ruleset: str, seat: int, seed: int) -> None:
    """The same actions lead to the same positions, rewards and observations."""
    rng = np.random.default_rng(seed)
    learner = BaoEnv("greedy", ruleset=ruleset, seat=seat, opening_plies=0)
    learner.reset(seed=seed)
    board = raw_env(ruleset=ruleset)
    board.reset()
    greedy = GreedyAgent(ruleset)
    agent = f"player_{seat}"

    def reply() -> None:
        while board.agent_selection != agent and not board.terminations[agent]:
            board.step(greedy.act(board.positions, board.legal)[0])

    reply()
    over = False
    while not over:
        action = int(rng.choice(actions_of(learner.legal[0])))
        observation, reward, over, truncated, info = learner.step(action)
        board.step(action)
        reply()
        assert board.position == learner.position and info["player"] == learner.seat == seat
        np.testing.assert_equal(observation, board.observe(agent))
        assert (reward, over, truncated) == (board.rewards[agent], board.terminations[agent], False)


# --- opponents by name --------------------------------------------------------------------------


def test_players_of_the_checkout_by_name() -> None:
    env = BaoEnv("alphabeta:2", ruleset="dutch", seat="north", opening_plies=0)
    env.reset(seed=0)
    start, after = Board("dutch"), env.position
    start.push(bao_agents.load("alphabeta:2", ruleset="dutch").choose(start))
    assert start.position == after


@pytest.mark.parametrize(
    ("typo", "meant"), [("gredy", "greedy"), ("rnadom", "random"), ("Random", "random")]
)
def test_unknown_opponents_raise_with_a_guess(typo: str, meant: str) -> None:
    with pytest.raises(ValueError, match=rf"'{typo}' \(did you mean '{meant}'\?\)"):
        BaoEnv(typo)


def test_unknown_opponents_raise_without_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bao_agents.registry", None)
    with pytest.raises(ValueError, match=r"unknown opponent 'gredy' \(did you mean 'greedy'\?\)"):
        BaoEnv("gredy")
    with pytest.raises(ValueError, match=r"'random', 'greedy'.*package agents of a checkout"):
        BaoEnv("alphabeta:2")
