"""Test that the vector environment plays the games of the environments with one game."""

from __future__ import annotations

from itertools import cycle, product
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from bao_env import RULESETS, BaoEnv, BaoVectorEnv
from bao_env.bots import Opponent
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.observation import OBSERVATIONS
from tests.vector import EVERY_MODE, SAME, arrays_of, legal_actions, run, same

pytestmark = pytest.mark.filterwarnings("error")


AGAINST = {"opponent": "greedy", "opening_plies": 0}
SELF_PLAY = {"opponent": None}
CASES: list[dict[str, Any]] = [
    SELF_PLAY,
    *({**AGAINST, "seat": 1, "observation": kind, "flat": True} for kind in OBSERVATIONS),
    {**SELF_PLAY, "dtype": np.uint8},
    {**AGAINST, "seat": 0, "ruleset": "dutch"},
]


def choose(masks: Any, rng: np.random.Generator) -> Any:
    """Return random actions, legal except for a few."""
    mistaken = rng.random(len(masks)) < 0.02
    return np.where(mistaken, rng.choice([0, 64]), legal_actions(masks, rng))


@pytest.mark.parametrize("arguments", [{"opponent": "greedy"}, {"opponent": "random"}, SELF_PLAY])
def test_each_game_begins_as_its_seed_says(arguments: dict[str, Any]) -> None:
    arguments = {**arguments, "ruleset": "kujifunza", "opening_plies": (0, 9)}
    env = BaoVectorEnv(4, **arguments)

    def begin(*seeds: int) -> list[Any]:
        return [BaoEnv(**arguments).reset(seed=seed)[0]["observation"] for seed in seeds]

    shown = env.reset(seed=[5, 6, 6, 2**40])[0]["observation"]
    assert same([*shown], begin(5, 6, 6, 2**40))
    some = {"reset_mask": np.array([False, True, True, False])}
    shown = env.reset(seed=range(4), options=some)[0]["observation"]
    assert same([*shown], begin(5, 1, 2, 2**40))
    north = env.reset(seed=range(4), options={"first_player": ["north"] * 4})
    assert same(north, env.reset(seed=range(4), options={"first_player": "north"}))
    assert not same([*north[0]["observation"]], begin(*range(4)))


@pytest.mark.parametrize(("mode", "arguments"), [*product(AutoresetMode, CASES)])
def test_equals_sync_vector_env(mode: AutoresetMode, arguments: dict[str, Any], seed: int) -> None:
    """Each game and key has the results of Gymnasium's own batch of single environments."""
    arguments = {**arguments, "max_plies": 40, "illegal": "lose"}
    ours = BaoVectorEnv(8, autoreset_mode=mode, max_episode_steps=-1, **arguments)
    sync = SyncVectorEnv([lambda: BaoEnv(**arguments)] * 8, autoreset_mode=mode)
    assert ours.observation_space == sync.observation_space
    assert ours.action_space == sync.action_space
    mine, theirs = (run(env, 160, seed, choose) for env in (ours, sync))
    terminated = truncated = illegal = False
    for one, other in zip(mine, theirs, strict=True):
        assert one[0] in ours.observation_space
        if len(one) == 2:  # Gymnasium's infos are empty for games that were not reset
            assert same(one[0], other[0])
            games = other[1]["_action_mask"]
            assert all(same(one[1][key][games], other[1][key][games]) for key in other[1])
        else:
            assert same(one, other)
            assert one[1].dtype == other[1].dtype and one[2].dtype == one[3].dtype == bool
            terminated |= one[2].any()
            truncated |= one[3].any()
            illegal |= "illegal" in one[4].get("final_info", one[4])
    assert terminated and truncated and illegal
    assert same(ours.action_masks(), mine[-1][-1]["action_mask"])
    assert (ours.seats == (mine[-1][-1]["seat"] if arguments["opponent"] else -1)).all()


@EVERY_MODE
@pytest.mark.parametrize("arguments", [{**AGAINST, "seat": "north"}, SELF_PLAY])
def test_gymnasiums_own_limit(mode: AutoresetMode, arguments: dict[str, Any]) -> None:
    """`max_episode_steps` cuts a game short as Gymnasium's wrapper does, but not one just won."""
    ours = BaoVectorEnv(4, autoreset_mode=mode, max_episode_steps=7, **arguments)
    single = [lambda: TimeLimit(BaoEnv(**arguments), 7)] * 4
    theirs = run(SyncVectorEnv(single, autoreset_mode=mode), 60, choose=choose)
    cut = 0
    for one, other in zip(run(ours, 60, choose=choose), theirs, strict=True):
        assert same(one[0], other[0])
        if len(one) == 5:
            assert same(one[1:4], (*other[1:3], other[3] & ~other[2]))
            ends = one[4].get("final_info", one[4])
            for game in np.flatnonzero(one[3]):
                assert ends["winner"][game] == -1 and ends["_plies"][game]
                cut += 1
    assert cut > 5


@pytest.mark.parametrize(
    ("ruleset", "opponent"), [*zip(RULESETS, cycle((None, "greedy", "random")))]
)
def test_games_do_not_depend_on_the_threads(ruleset: str, opponent: Opponent | None) -> None:
    """They are the same, bit by bit, with one and with three threads, in several blocks."""
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


@EVERY_MODE
def test_each_restart_draws_lots(mode: AutoresetMode) -> None:
    env = BaoVectorEnv(64, ruleset="kujifunza", max_plies=1, autoreset_mode=mode, opponent=None)
    starts = []
    for result in run(env, 6):
        if len(result) == 2 or mode is SAME or not result[3].any():
            starts.append(tuple(result[-1]["seat"].tolist()))
            assert set(starts[-1]) == {SOUTH, NORTH}
    assert len(set(starts)) == len(starts) >= 4


@EVERY_MODE
@pytest.mark.parametrize("opponent", [None, "greedy"])
@pytest.mark.parametrize("flat", [False, True])
def test_no_two_arrays_of_a_return_share_memory(mode: Any, opponent: Any, flat: bool) -> None:
    env = BaoVectorEnv(4, opponent=opponent, autoreset_mode=mode, flat=flat, max_plies=12)
    for result in run(env, 30):
        arrays = arrays_of(result)
        for index, array in enumerate(arrays):
            assert not any(np.shares_memory(array, other) for other in arrays[:index])
