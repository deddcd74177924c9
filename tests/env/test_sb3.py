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
from tests.positions import HOUSE_CHOICE


def test_plays_the_games_of_the_vector_environment() -> None:
    ours = sb3.SB3VecEnv(6, opponent="greedy", max_plies=30)
    assert ours.env_is_wrapped(Monitor) == [True] * 6
    plain = BaoVectorEnv(6, opponent="greedy", max_plies=30, autoreset_mode="SameStep")
    ours.seed(4)
    mine = first = ours.reset()
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
                assert 0 <= episode["t"] < 3600
                lengths[game] = 0
                ends.add(bool(truncated[game]))
    assert ends == {False, True}
    *_, lost, split = ours.step(plain.action_masks().argmin(axis=1))
    assert lost.all() and all(info["illegal"] is True for info in split)
    assert not np.array_equal(
        ours.reset()["observation"], first["observation"]
    )  # a seed is used once
    ours.close()
    assert ours.envs.closed


def test_options_and_invalid_arguments() -> None:
    make = sb3.SB3VecEnv
    envs = make(3)
    envs.set_options({"seat": "north", "position": HOUSE_CHOICE})
    envs.reset()
    assert [info["seat"] for info in envs.reset_infos] == [1, 1, 1]
    assert envs.envs.board(2).text() == HOUSE_CHOICE
    envs.reset()  # without the options
    assert envs.envs.board(2).text() != HOUSE_CHOICE
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
