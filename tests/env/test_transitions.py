"""Test transitions for offline learning against the same games in an environment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict

from bao_env import BaoEnv, Board
from bao_env.engine.ruleset import RULESETS
from bao_env.game import CUT_SHORT
from bao_env.notation import parse_transcripts, replay
from bao_env.transitions import transitions
from tests.positions import played
from tests.rulesets import EVERY_RULESET


class Follows:
    """An opponent that plays the actions of a recorded game."""

    seeded = False

    def __init__(self, board: Board) -> None:
        self.actions = board.move_stack

    def act(self, positions: np.ndarray, legal: np.ndarray) -> np.ndarray:
        return np.array([self.actions[ply] for ply in positions[:, 5]])


@EVERY_RULESET
@pytest.mark.parametrize("observation", ["board", "replies"])
def test_rows_are_the_steps_of_an_environment(ruleset: str, observation: str, seed: int) -> None:
    boards = [played(ruleset, seed + game, game % 2) for game in range(4)]
    texts = "".join(f"opening plies: 3\n{board.transcript()}" for board in boards)
    data = transitions(map(replay, parse_transcripts(texts)), observation)
    row = 0
    for game, board in enumerate(boards):
        env = BaoEnv(Follows(board), ruleset=ruleset, observation=observation, opening_plies=(0, 0))
        for seat in (0, 1):
            after, _ = env.reset(options={"seat": seat, "first_player": game % 2})
            ended = False
            while not ended:
                action = int(data.actions[row])
                before, (after, reward, ended, _, info) = after, env.step(action)
                assert np.array_equal(data.observations[row], before["observation"])
                assert np.array_equal(data.masks[row], before["action_mask"])
                assert np.array_equal(data.next_observations[row], after["observation"])
                assert np.array_equal(data.next_masks[row], after["action_mask"])
                assert (data.rewards[row], data.terminated[row]) == (reward, ended)
                assert (data.games[row], data.seats[row], data.truncated[row]) == (
                    game,
                    seat,
                    False,
                )
                row += 1
            assert data.results[row - 1] == reward == (1 if info["winner"] == seat else -1)
    assert row == len(data.actions) == len(data.openings) and data.openings.sum() == 3 * len(boards)


def test_a_game_that_stopped_is_truncated() -> None:
    """Every row has legal actions at the player's next turn, and nobody wins."""
    board = Board.from_text("start", RULESETS["zanzibar"], "7L 5R 6R 6R 7R")
    for outcome in (None, CUT_SHORT):
        data = transitions([board.record()._replace(outcome=outcome)])
        assert data.seats.tolist() == [0, 0, 1, 1] and not data.rewards.any()
        assert data.truncated.tolist() == [False, True] * 2 and not data.terminated.any()
        assert not data.results.any()
        assert data.next_masks.any(axis=1).all()
    board = Board.from_text("start", moves="7L 5R")
    assert transitions([board.record()]).seats.tolist() == [0]  # North never sees a next turn
    with pytest.raises(ValueError, match="these games have no moves"):
        transitions([Board().record()])


class Parts:
    """An observer that shows a dict: the seat, and the plies."""

    space = Dict(seat=Box(0, 1, (1,), np.int8), plies=Box(0, 500, (1,), np.int64))

    def fill(self, positions: Any, legal: Any, viewers: Any, arrays: Any) -> None:
        self.may_write = [array.flags.writeable for array in (positions, legal, viewers)]
        arrays["seat"][:, 0] = viewers
        arrays["plies"][:, 0] = positions[:, 5]


def test_observations_may_be_dicts() -> None:
    record = Board.from_text("start", moves="7L 5R 6R").record()
    parts = Parts()
    data = transitions([record] * 2, parts)
    assert parts.may_write == [False] * 3
    assert data.observations["seat"].ravel().tolist() == [0, 1] * 2 == data.seats.tolist()
    assert data.observations["plies"].ravel().tolist() == [0, 1] * 2
    assert data.next_observations["plies"].ravel().tolist() == [2, 3] * 2
    episode = transitions([record._replace(actions=record.actions[:2])], parts)
    assert episode.observations["plies"].tolist() == [[0]]
