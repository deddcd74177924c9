"""Test that the vector environment plays the games of the environments with one game."""

from __future__ import annotations

from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from bao_env import RULESETS, BaoEnv, BaoVectorEnv
from bao_env.bots import Opponent
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.observation import OBSERVATIONS
from tests.vector import EVERY_MODE, SAME, run, same

pytestmark = pytest.mark.filterwarnings("error")


AGAINST = {"opponent": "greedy", "opening_plies": 0}
CASES: list[dict[str, Any]] = [
    {**AGAINST, "seat": "north"},
    {"opponent": None, "dtype": np.uint8},
    *({**AGAINST, "seat": "south", "observation": kind, "flat": True} for kind in OBSERVATIONS),
]


@EVERY_MODE
@pytest.mark.parametrize("arguments", CASES)
def test_games_are_gymnasiums_own(mode: AutoresetMode, arguments: dict[str, Any]) -> None:
    """test_model compares the infos."""
    ours = BaoVectorEnv(4, autoreset_mode=mode, max_plies=9, **arguments)
    single = [lambda: BaoEnv(max_plies=9, **arguments)] * 4
    sync = SyncVectorEnv(single, autoreset_mode=mode)
    assert ours.observation_space == sync.observation_space
    assert ours.action_space == sync.action_space
    cut = 0
    for result, expected in zip(run(ours, 60), run(sync, 60), strict=True):
        assert result[0] in ours.observation_space and same(result[0], expected[0])
        if len(result) == 5:
            assert same(result[1:4], expected[1:4])
            assert [array.dtype for array in result[1:4]] == [
                array.dtype for array in expected[1:4]
            ]
            ends = result[4].get("final_info", result[4])
            for game in np.flatnonzero(result[3]):
                assert ends["winner"][game] == -1 and ends["_plies"][game]
                cut += 1
    assert cut > 5
    assert same(ours.call("action_masks"), sync.call("action_masks"))
    assert ours.get_attr("ruleset") == sync.get_attr("ruleset")
    assert ours.call("close") == sync.call("close")
    assert (ours.seats == (result[-1]["seat"] if arguments["opponent"] else -1)).all()


@pytest.mark.parametrize(
    ("ruleset", "opponent"), [*zip(RULESETS, cycle((None, "greedy", "random")))]
)
def test_games_do_not_depend_on_the_threads(ruleset: str, opponent: Opponent | None) -> None:
    """The games are the same, bit by bit, with one and with three threads, in several blocks."""
    runs = []
    for threads in (1, 3):
        env = BaoVectorEnv(
            1100,
            ruleset=ruleset,
            opponent=opponent,
            observation="replies",
            threads=threads,
            opening_plies=20,
            max_plies=40,
        )
        results: list[Any] = [env.reset(seed=4)]
        results += [env.step(env.sample_legal_actions()) for _ in range(24)]
        runs.append((results, env.positions))
    assert same(*runs)
    assert any(result[2].any() for result in runs[0][0][1:])


@pytest.mark.parametrize("arguments", [{"opponent": None}, {"opponent": "greedy", "seat": "south"}])
def test_a_game_stays_the_same_in_a_wider_batch(arguments: dict[str, Any]) -> None:
    """So a batch can be divided among machines, or grow, where nothing is drawn for all games."""
    positions = list[np.ndarray]()
    for num_envs in (4, 7):
        env = BaoVectorEnv(num_envs, opening_plies=0, **arguments)
        env.reset(seed=7)
        for _ in range(100):
            env.step(env.sample_legal_actions())
            positions.append(env.positions[3])
    np.testing.assert_array_equal(positions[:100], positions[100:])


@pytest.mark.parametrize("kind", [BaoEnv, partial(BaoVectorEnv, 2)])
def test_without_a_seed_each_environment_plays_other_games(kind: Any) -> None:
    games: list[Any] = []
    for _ in range(2):
        env = kind(opponent=None, opening_plies=0)
        games.append([env.reset()])
        games[-1] += [env.step(env.sample_legal_actions()) for _ in range(6)]
    assert not same(*games)


@EVERY_MODE
def test_each_restart_draws_who_begins(mode: AutoresetMode) -> None:
    env = BaoVectorEnv(64, ruleset="kujifunza", max_plies=1, autoreset_mode=mode, opponent=None)
    starts = []
    for result in run(env, 6):
        if len(result) == 2 or mode is SAME or not result[3].any():
            starts.append(tuple(result[-1]["seat"].tolist()))
            assert set(starts[-1]) == {SOUTH, NORTH}
    assert len(set(starts)) == len(starts) >= 4
