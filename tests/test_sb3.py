"""Test the adapter to Stable-Baselines3; skipped if it is missing."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecNormalize

from bao_env import BaoVectorEnv, Board, OpponentPool
from bao_env.adapters import sb3


def maskable_ppo(envs: Any, policy: str = "MultiInputPolicy", **settings: Any) -> Any:
    """Return a small model on some games."""
    small = {"n_steps": 16, "batch_size": 32, "n_epochs": 1, "seed": 1, "device": "cpu"}
    return MaskablePPO(policy, envs, **{**small, **settings})


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
                episode = info["episode"]
                assert (episode["r"], episode["l"]) == (rewards[game], lengths[game])
                lengths[game] = 0
                ends.add(bool(truncated[game]))
    assert ends == {False, True}


def test_options_and_invalid_arguments() -> None:
    make = sb3.SB3VecEnv
    envs = make(3)
    envs.set_options({"seat": ["north", "south", "north"]})
    envs.reset()
    assert [info["seat"] for info in envs.reset_infos] == [1, 0, 1]
    envs.set_options([{"seat": "north"}, {}, {}])
    with pytest.raises(ValueError, match="one dict"):
        envs.reset()
    assert envs.has_attr("action_masks") and not envs.has_attr("nothing")
    assert len(envs.env_method("action_masks", indices=[0, 2])) == 2
    assert envs.get_attr("max_plies", 1) == [500]
    for arguments, match in (
        ({"opponent": None}, "opponent=None"),
        ({"observation": "planes+replies"}, "nested dicts; add flat=True"),
    ):
        with pytest.raises(ValueError, match=match):
            make(3, **arguments)
    with pytest.raises(NotImplementedError, match="new SB3VecEnv"):
        envs.set_attr("max_plies", 3)
    with pytest.raises(NotImplementedError, match="'action_masks' or 'render'"):
        envs.env_method("step")


def test_self_play_continues_from_a_saved_model(tmp_path: Path) -> None:
    def games(pool: OpponentPool) -> Any:
        return sb3.SB3VecEnv(8, opponent=pool, observation="captures")

    def train() -> tuple[Any, OpponentPool]:
        pool = OpponentPool("greedy", size=3, seed=1)
        model = maskable_ppo(games(pool), batch_size=128, n_epochs=2)
        return model.learn(640, callback=sb3.SelfPlayCallback(every=128)), pool

    (model, pool), (again, _) = train(), train()
    assert len(pool.members) == 3 and pool.members[0] is not pool.members[1]
    for key, value in model.policy.state_dict().items():
        assert value.equal(again.policy.state_dict()[key])

    plain = BaoVectorEnv(50, opponent=None)
    plain.reset(seed=1)

    def answers(pool: OpponentPool) -> Any:
        torch.manual_seed(3)
        return [member.act(plain.positions, plain.legal) for member in pool.members]

    before = answers(pool)
    assert not np.array_equal(before[1], before[2])
    model.save(tmp_path / "model")
    fresh = OpponentPool("random")
    loaded = MaskablePPO.load(tmp_path / "model", env=games(fresh))
    callback = sb3.SelfPlayCallback(every=128)
    callback.init_callback(loaded)
    assert np.array_equal(answers(fresh), before) and fresh.size == 3
    loaded.learn(256, callback=callback, reset_num_timesteps=False)
    assert loaded.num_timesteps == 896 and len(fresh.members) == 3
    assert loaded.predict(loaded.env.reset())[0].shape == (8,)


def test_self_play_without_a_new_member_warns() -> None:
    pool = OpponentPool()
    model = maskable_ppo(sb3.SB3VecEnv(4, opponent=pool), n_steps=32, batch_size=64)
    with pytest.warns(UserWarning, match=r"in 128 steps no copy .* num_envs = 128 steps") as caught:
        model.learn(100, callback=sb3.SelfPlayCallback(every=64))
    assert len(caught) == 1 and len(pool.members) == 1
    with warnings.catch_warnings(action="error"):
        model.learn(200, callback=sb3.SelfPlayCallback(every=64))
    assert len(pool.members) == 2


@pytest.mark.parametrize(
    ("observation", "options"),
    [
        ("board", {}),
        ("captures", {}),
        ("replies", {"flat": True}),
        ("planes", {"dtype": np.uint8}),
        ("planes+replies", {"flat": True}),
    ],
)
def test_saved_model_is_a_player(observation: str, options: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "bao.zip"
    pool = OpponentPool()
    envs = sb3.SB3VecEnv(6, opponent=pool, observation=observation, ruleset="dutch", **options)
    box = observation != "planes+replies" and "flat" in options
    model = maskable_ppo(envs, "MlpPolicy" if box else "MultiInputPolicy")
    model.learn(192, callback=sb3.SelfPlayCallback(every=96))
    assert len(pool.members) == 2  # of the start, and after 96 steps
    model.save(file)
    player = sb3.player(file, ruleset="dutch")
    seen = envs.reset()
    masks = np.stack(envs.env_method("action_masks"))
    expected, _ = model.predict(seen, action_masks=masks, deterministic=True)
    for one in (player, sb3.player(model, ruleset="dutch")):
        assert np.array_equal(one.act(envs.envs.positions, envs.envs.legal), expected)
    with pytest.raises(FileNotFoundError, match="there is no model at none"):
        sb3.player("none.zip")
    assert masks[np.arange(6), expected].all()


def test_player_of_an_observation_without_a_name(tmp_path: Path) -> None:
    class Ones:
        space = gymnasium.spaces.Box(0, 9, (52,), np.float32)

        def fill(self, positions: Any, legal: Any, viewers: Any, arrays: Any) -> None:
            arrays[:] = 1

    model = maskable_ppo(sb3.SB3VecEnv(2, observation=Ones()))
    model.save(tmp_path / "bao.zip")
    with pytest.raises(ValueError, match="pass observation="):
        sb3.player(tmp_path / "bao.zip")
    own = sb3.player(tmp_path / "bao.zip", observation=Ones())
    words = Board().words[None]
    assert own.act(words, np.array([1 << 22], np.uint64)) == 22


def test_invalid_self_play_raises() -> None:
    callback = sb3.SelfPlayCallback
    with pytest.raises(ValueError, match="every=0"):
        callback(every=0)
    with pytest.raises(ValueError, match="opponent=OpponentPool"):
        maskable_ppo(sb3.SB3VecEnv(2)).learn(32, callback=callback())
    envs = sb3.SB3VecEnv(2, opponent=OpponentPool(), flat=True)
    with pytest.raises(ValueError, match="norm_obs=False"):
        maskable_ppo(VecNormalize(envs), "MlpPolicy").learn(32, callback=callback())
