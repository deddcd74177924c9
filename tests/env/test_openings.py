"""Test random plies before a game."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bao_env import RULESETS, BaoEnv, BaoVectorEnv
from bao_env.engine.position import PLY, movers
from bao_env.envs.openings import Openings
from tests.rulesets import EVERY_RULESET


@EVERY_RULESET
def test_openings_have_the_plies_asked_for(ruleset: str) -> None:
    """No opening ends the game, although most games of kujifunza end within forty plies."""
    openings = Openings(RULESETS[ruleset], (3, 40))
    positions, legal = openings.draw(3000, np.random.default_rng(1))
    assert legal.all()
    plies = positions[:, PLY]
    lengths, counts = np.unique(plies, return_counts=True)
    assert lengths.tolist() == [*range(3, 41)]
    assert counts.min() > 3000 / 38 / 2  # all lengths are about equally frequent
    assert len(np.unique(positions[plies > 8], axis=0)) > 0.95 * (plies > 8).sum()


def test_every_first_action_is_played() -> None:
    positions, _ = Openings(RULESETS["zanzibar"], (1, 1)).draw(1000, np.random.default_rng(1))
    _, counts = np.unique(positions, axis=0, return_counts=True)
    assert len(counts) == 4 and counts.min() > 1000 / 4 / 2


@pytest.mark.parametrize("opponent", ["random", "greedy"])
@EVERY_RULESET
def test_against_an_opponent_games_differ_by_default(opponent: Any, ruleset: str) -> None:
    envs = BaoVectorEnv(300, ruleset=ruleset, opponent=opponent)
    envs.reset(seed=2)
    plies = envs.positions[:, PLY]
    assert plies.min() <= 2 and plies.max() >= 8
    assert (movers(envs.positions) == envs.seats).all()
    assert 0.3 < envs.seats.mean() < 0.7
    assert len(np.unique(envs.positions, axis=0)) > 100


def test_openings_leave_something_to_play() -> None:
    env = BaoEnv("greedy", max_plies=3, seat="south")
    plies = set()
    for seed in range(20):
        env.reset(seed=seed)
        plies.add(env.position.ply)
    assert plies == {0, 2}
    alone = BaoVectorEnv(50, opponent=None)
    alone.reset(seed=1)
    assert not alone.positions[:, PLY].any()
