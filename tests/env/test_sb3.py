"""Test the adapter to Stable-Baselines3; skipped if it is missing."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

from gymnasium.spaces import Box, Dict
from stable_baselines3.common.monitor import Monitor

from bao_env import BaoVectorEnv
from bao_env.adapters import sb3


def test_plays_the_games_of_the_vector_environment() -> None:
    ours = sb3.SB3VecEnv(6, opponent="greedy", max_plies=30)
    assert ours.env_is_wrapped(Monitor) == [True] * 6
    plain = BaoVectorEnv(6, opponent="greedy", max_plies=30, autoreset_mode="SameStep")
    ours.seed(4)
    mine = ours.reset()
    theirs, infos = plain.reset(seed=4)
    assert [info["seat"] for info in ours.reset_infos] == infos["seat"].tolist()
    ends, lengths = set(), np.zeros(6, np.int64)
    for _ in range(60):
        np.testing.assert_equal(mine, theirs)
        masks = np.stack(ours.env_method("action_masks"))
        assert np.array_equal(masks, plain.action_masks())
        actions = plain.sample_legal_actions()
        mine, rewards, dones, split = ours.step(actions)
        theirs, reward, terminated, truncated, infos = plain.step(actions)
        assert np.array_equal(rewards, reward) and rewards.dtype == np.float32
        assert np.array_equal(dones, terminated | truncated)
        lengths += 1
        for game, info in enumerate(split):
            assert ("terminal_observation" in info) == ("episode" in info) == dones[game]
            if dones[game]:
                end = infos["final_obs"][game]
                np.testing.assert_equal(info["terminal_observation"], end)
                assert info["TimeLimit.truncated"] == truncated[game]
                for key in ("winner", "plies"):
                    assert info[key] == infos["final_info"][key][game]
                episode = info["episode"]
                assert (episode["r"], episode["l"]) == (rewards[game], lengths[game])
                lengths[game] = 0
                ends.add(bool(truncated[game]))
    assert ends == {False, True}


def test_options_and_invalid_arguments() -> None:
    make = sb3.SB3VecEnv
    envs = make(3)
    envs.set_options({"seat": "north"})
    envs.reset()
    assert [info["seat"] for info in envs.reset_infos] == [1, 1, 1]
    envs.set_options([{"seat": "north"}, {}, {}])
    with pytest.raises(ValueError, match="the same dict"):
        envs.reset()
    assert envs.has_attr("action_masks") and not envs.has_attr("nothing")
    assert len(envs.env_method("action_masks", indices=[0, 2])) == 2
    assert envs.get_attr("max_plies", 1) == [500]
    observer = SimpleNamespace(
        space=Dict(one=Box(0, 1)),
        fill=lambda positions, legal, viewers, arrays: arrays["one"].fill(0),
    )
    for arguments, match in (
        ({"opponent": None}, "opponent=None"),
        ({"observation": observer}, "nested dicts: pass flat=True"),
    ):
        with pytest.raises(ValueError, match=match):
            make(3, **arguments)
    with pytest.raises(NotImplementedError, match="new SB3VecEnv"):
        envs.set_attr("max_plies", 3)
    with pytest.raises(NotImplementedError, match="'action_masks' or 'render'"):
        envs.env_method("step")


def test_pictures() -> None:
    envs = sb3.SB3VecEnv(3, render_mode="rgb_array")
    envs.reset()
    images, boards = np.array(envs.get_images()), envs.envs.render()
    assert boards is not None and np.array_equal(images, boards)
    height, width = images.shape[1:3]
    grid = envs.render()
    assert grid is not None and grid.shape == (2 * height, 2 * width, 3)
    assert sb3.SB3VecEnv(3).get_images() == [None] * 3
