"""The games of the vector environment are those of the environments that play one game."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from bao_env import BaoEnv, BaoVectorEnv, raw_env
from bao_env.bots import Opponent
from bao_env.engine.layout import NORTH, SOUTH
from tests.rulesets import EVERY_RULESET, every_ruleset
from tests.vector import DISABLED, EVERY_MODE, NEXT, SAME, legal_actions, run, same

pytestmark = pytest.mark.filterwarnings("error")


@EVERY_MODE
@EVERY_RULESET
def test_self_play_is_the_aec_environment(ruleset: str, mode: AutoresetMode, seed: int) -> None:
    """Each game is replayed in the AEC environment: turns, masks, views, rewards, ends."""
    size, limit = 12, 40
    env = BaoVectorEnv(size, ruleset=ruleset, autoreset_mode=mode, max_plies=limit)
    rng = np.random.default_rng(seed)
    boards = [raw_env(ruleset=ruleset, max_plies=limit) for _ in range(size)]

    def restart(game: int) -> None:
        boards[game].reset(options={"first_player": int(infos["player"][game])})

    def agrees(game: int, seen: Any, player: int) -> None:
        agent = f"player_{player}"
        assert agent == boards[game].agent_selection
        np.testing.assert_equal(boards[game].observe(agent), seen)

    observation, infos = env.reset(seed=seed)
    for game in range(size):
        restart(game)
    outcomes, over = set(), np.zeros(size, bool)
    for _ in range(160):
        assert np.array_equal(infos["action_mask"], observation["action_mask"])
        assert np.array_equal(env.action_masks(), observation["action_mask"])
        for game in range(size):
            row = {key: array[game] for key, array in observation.items()}
            agrees(game, row, infos["player"][game])
        if mode is DISABLED and over.any():
            observation, infos = env.reset(options={"reset_mask": over})
            for game in np.flatnonzero(over).tolist():
                restart(game)
            over[:] = False
            continue
        waiting = over if mode is NEXT else np.zeros(size, bool)
        actions = legal_actions(observation["action_mask"], rng)
        observation, rewards, terminated, truncated, infos = env.step(actions)
        over = terminated | truncated
        ends = infos.get("final_info", {}) if mode is SAME else infos
        assert ("winner" in ends) == over.any()
        for game in range(size):
            if waiting[game]:
                assert (rewards[game], over[game]) == (0, False)
                restart(game)
                continue
            board = boards[game]
            actor = board.agent_selection
            board.step(actions[game])
            assert rewards[game] == board.rewards[actor]
            assert terminated[game] == board.terminations[actor]
            assert truncated[game] == board.truncations[actor]
            if over[game]:
                outcomes.add((rewards[game], bool(truncated[game])))
                winners = [seat for seat in (0, 1) if board.rewards[f"player_{seat}"] > 0]
                assert ends["_winner"][game] and ends["_plies"][game]
                assert ends["winner"][game] == (winners or [-1])[0]
                assert ends["plies"][game] == board.position.ply
                if mode is SAME:
                    agrees(game, infos["final_obs"][game], ends["player"][game])
                    restart(game)
    assert {(1.0, False), (0.0, True)} <= outcomes


@EVERY_MODE
@pytest.mark.parametrize("ruleset", ["zanzibar", "dutch", "malawi"])
@pytest.mark.parametrize("seat", ["south", "north"])
def test_equals_sync_vector_env(mode: AutoresetMode, ruleset: str, seat: str, seed: int) -> None:
    """Game by game, key by key the results of Gymnasium's own batch of single environments."""
    arguments: dict[str, Any] = {
        "opponent": "greedy",
        "ruleset": ruleset,
        "seat": seat,
        "max_plies": 40,
        "opening_plies": 0,
    }
    ours = BaoVectorEnv(6, autoreset_mode=mode, **arguments)
    sync = SyncVectorEnv([lambda: BaoEnv(**arguments)] * 6, autoreset_mode=mode)
    assert ours.observation_space == sync.observation_space
    assert ours.action_space == sync.action_space
    mine, theirs = run(ours, 90, seed), run(sync, 90, seed)
    ends: set[Any] = set()
    for one, other in zip(mine, theirs, strict=True):
        if len(one) == 2:  # Gymnasium's infos are empty for games that were not reset
            assert same(one[0], other[0])
            games = other[1]["_action_mask"]
            assert all(same(one[1][key][games], other[1][key][games]) for key in other[1])
        else:
            assert same(one, other)
            assert one[1].dtype == other[1].dtype and one[2].dtype == one[3].dtype == bool
            ends |= {*one[1][one[2]].tolist(), *one[3].tolist()}
    assert True in ends and len(ends) > 2
    assert np.array_equal(ours.seats, mine[-1][-1]["player"])


@every_ruleset("zanzibar", "dutch")
@pytest.mark.parametrize("opponent", [None, "random", "greedy"])
def test_games_do_not_depend_on_the_threads(ruleset: str, opponent: Opponent | None) -> None:
    """Bit by bit the same with one, two and three threads, for a batch of several blocks."""
    runs = []
    for threads in (1, 2, 3):
        env = BaoVectorEnv(
            1100,
            ruleset=ruleset,
            opponent=opponent,
            observation="replies",
            threads=threads,
            max_plies=40,
        )
        results: list[Any] = [env.reset(seed=4)]
        results += [env.step(env.sample_legal_actions()) for _ in range(50)]
        runs.append((results, env.positions))
    assert same(runs[0], runs[1]) and same(runs[0], runs[2])
    assert any(result[2].any() for result in runs[0][0][1:])


@EVERY_MODE
def test_each_restart_draws_lots(mode: AutoresetMode) -> None:
    env = BaoVectorEnv(64, ruleset="kujifunza", max_plies=1, autoreset_mode=mode)
    starts = []
    for result in run(env, 6):
        if len(result) == 2 or mode is SAME or not result[3].any():
            starts.append(tuple(result[-1]["player"].tolist()))
            assert set(starts[-1]) == {SOUTH, NORTH}
    assert len(set(starts)) == len(starts) >= 4
