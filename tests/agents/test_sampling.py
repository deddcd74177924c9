"""Test positions to solve or to learn from: the games are not over, and all positions differ."""

from __future__ import annotations

import numpy as np
import pytest

from bao_agents.exact import sampling
from bao_agents.exact.sampling import Sample, games
from bao_agents.exact.solved_positions import without_seats
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.limits import Limit
from bao_env.bots import GreedyAgent, RandomAgent
from bao_env.engine.batch import Engine
from bao_env.engine.position import PLY, movers
from bao_env.observation import observe
from tests.positions import draw


def boards(positions: np.ndarray) -> np.ndarray:
    """Return what the players to move see, uint8[N, 52]."""
    observations = np.empty((len(positions), 52), np.uint8)
    observe(positions, observations)
    return observations


def check(sample: Sample, ruleset: str, count: int) -> None:
    """Check that no game is over, and that all positions differ."""
    assert len(sample.positions) == len(sample.legal) == count
    legal, winners = np.empty(count, np.uint64), np.empty(count, np.int8)
    Engine(ruleset).find_legal(sample.positions, legal, winners)
    np.testing.assert_array_equal(sample.legal, legal)
    assert legal.all()
    assert len(np.unique(boards(sample.positions), axis=0)) == count


@pytest.mark.parametrize("ruleset", ["kujifunza", "zanzibar", "dutch"])
def test_random_games(ruleset: str) -> None:
    sample, repeated, reseeded = (
        games(
            ruleset,
            RandomAgent(seed),
            RandomAgent(seed),
            300,
            opening_plies=(0, 0),
            plies=(4, 30),
            seed=seed,
        )
        for seed in (1, 1, 2)
    )
    check(sample, ruleset, 300)
    assert sample.positions[:, PLY].min() == 4
    assert 25 < sample.positions[:, PLY].max() <= 30
    np.testing.assert_array_equal(repeated.positions, sample.positions)
    assert (reseeded.positions != sample.positions).any()


def test_games_of_players(monkeypatch: pytest.MonkeyPatch) -> None:
    alphabeta, greedy = AlphaBetaAgent("kujifunza", Limit(plies=2)), GreedyAgent("kujifunza")
    sample = games("kujifunza", alphabeta, greedy, 200, opening_plies=(2, 4), seed=3)
    check(sample, "kujifunza", 200)
    assert sample.positions[:, PLY].min() >= 2
    monkeypatch.setattr(sampling, "_YIELD", 1.0)  # one position of 66 games is a low yield
    start = games("kujifunza", greedy, greedy, 1, opening_plies=(0, 0), plies=(0, 0), seed=3)
    check(start, "kujifunza", 1)  # there are no others
    monkeypatch.undo()
    monkeypatch.setattr(sampling, "_ROUND", 4)  # the games of one round are not enough
    check(games("kujifunza", greedy, greedy, 10, opening_plies=(2, 4), seed=3), "kujifunza", 10)
    monkeypatch.undo()
    late = games("zanzibar", RandomAgent(1), RandomAgent(2), 100, plies=(44, 60), seed=3)
    check(late, "zanzibar", 100)
    assert late.positions[:, PLY].min() >= 44


def test_without_seats() -> None:
    positions, _ = draw("kujifunza", 200, seed=5)
    same = without_seats(positions)
    assert not movers(same).any()
    assert not same[:, PLY].any()
    np.testing.assert_array_equal(boards(same), boards(positions))
