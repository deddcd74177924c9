"""Test the PettingZoo environment: whole games against Board, and their ends."""

from __future__ import annotations

import numpy as np
import pytest

from bao_env import Board, IllegalMoveError, bao_v0
from bao_env.engine.action import NUM_ACTIONS
from bao_env.envs.aec import env, raw_env
from tests.rulesets import EVERY_RULESET

pytestmark = pytest.mark.filterwarnings("error")

AGENTS = ["player_0", "player_1"]


@EVERY_RULESET
def test_games_are_those_of_board(ruleset: str, seed: int) -> None:
    """Turns, masks, illegal actions, rewards and the end, up to the dead steps."""
    rng = np.random.default_rng(seed)
    game = raw_env(ruleset=ruleset, illegal="raise")
    for first_player in (0, 1):
        game.reset(options={"first_player": first_player})  # even during dead steps
        assert game.agents == AGENTS
        board = Board(ruleset, first_player)
        while board.outcome() is None:
            assert game.agent_selection == AGENTS[board.turn]
            observation, *rest = game.last()
            assert rest[:3] == [0, False, False] and game.rewards == dict.fromkeys(AGENTS, 0)
            assert np.flatnonzero(observation["action_mask"]).tolist() == board.legal_actions
            for action in {*range(-1, NUM_ACTIONS + 1)} - {*board.legal_actions}:
                with pytest.raises(IllegalMoveError, match=f"action {action} .*legal: "):
                    game.step(action)
            action = int(rng.choice(board.legal_actions))
            game.step(action)
            board.push(action)
            assert game.position == board.position
        outcome = board.outcome()
        assert outcome is not None and outcome.winner is not None
        rewards = {AGENTS[outcome.winner]: 1, AGENTS[1 - outcome.winner]: -1}
        assert game.rewards == rewards
        for agent in game.agent_iter(max_iter=2 - first_player):
            assert game.last()[1:4] == (rewards[agent], True, False)
            with pytest.raises(ValueError, match="None"):
                game.step(0)
            game.step(None)
        assert len(game.agents) == first_player


def test_versioned_module() -> None:
    assert bao_v0.env is env and bao_v0.raw_env is raw_env
    assert str(raw_env()) == raw_env.metadata["name"] == "bao_v0"
    assert raw_env.metadata["is_parallelizable"] is False
