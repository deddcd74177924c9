"""The adapters to RL libraries; what needs a library is skipped where it is missing."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bao_env import RULESETS, BaoVectorEnv
from bao_env.bots import GreedyAgent, Opponent
from bao_env.observation import OBSERVATION_SIZE, OBSERVATIONS
from bao_env.self_play import OpponentPool

LIBRARIES = {
    "sb3": ("stable_baselines3", "sb3-contrib"),
    "torchrl": ("torchrl", "torchrl"),
    "rllib": ("ray", "ray[rllib]"),
    "open_spiel": ("pyspiel", "open_spiel"),
}


@pytest.mark.parametrize("adapter", LIBRARIES)
def test_a_missing_library_is_named(adapter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    library, package = LIBRARIES[adapter]
    for name in [name for name in sys.modules if name.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"bao_env.adapters.{adapter}", raising=False)
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(f"bao_env.adapters.{adapter}")
    notes = " ".join(caught.value.__notes__)
    assert f"bao_env.adapters.{adapter} needs" in notes and "pip install" in notes
    assert package in notes


# --- Stable-Baselines3 --------------------------------------------------------------------------


def sb3() -> Any:
    pytest.importorskip("stable_baselines3")
    return importlib.import_module("bao_env.adapters.sb3")


def test_sb3_plays_the_games_of_the_vector_environment() -> None:
    ours = sb3().SB3VecEnv(6, opponent="greedy", max_plies=30)
    plain = BaoVectorEnv(6, opponent="greedy", max_plies=30)
    ours.seed(4)
    mine = ours.reset()
    theirs, infos = plain.reset(seed=4)
    assert [info["player"] for info in ours.reset_infos] == infos["player"].tolist()
    ends, cuts = 0, 0
    for _ in range(60):
        assert all(np.array_equal(mine[key], theirs[key]) for key in theirs)
        masks = np.stack(ours.env_method("action_masks"))
        assert np.array_equal(masks, plain.action_masks())
        actions = plain.sample_legal_actions()
        mine, rewards, dones, split = ours.step(actions)
        theirs, reward, terminated, truncated, infos = plain.step(actions)
        assert np.array_equal(rewards, reward) and rewards.dtype == np.float32
        assert np.array_equal(dones, terminated | truncated)
        for game, info in enumerate(split):
            assert ("terminal_observation" in info) == dones[game]
            if dones[game]:
                end = infos["final_obs"][game]
                assert np.array_equal(
                    info["terminal_observation"]["observation"], end["observation"]
                )
                assert info["TimeLimit.truncated"] == truncated[game]
                ends += not truncated[game]
                cuts += truncated[game]
    assert ends and cuts


def test_sb3_options_and_what_is_refused() -> None:
    module = sb3()
    envs = module.SB3VecEnv(3)
    envs.set_options({"seat": ["north", "south", "north"]})
    envs.reset()
    assert [info["player"] for info in envs.reset_infos] == [1, 0, 1]
    envs.set_options([{"seat": "north"}, {}, {}])
    with pytest.raises(ValueError, match="one dict"):
        envs.reset()
    assert envs.has_attr("action_masks") and not envs.has_attr("nothing")
    assert len(envs.env_method("action_masks", indices=[0, 2])) == 2
    assert envs.get_attr("max_plies", 1) == [500]
    with pytest.raises(ValueError, match="opponent=None"):
        module.SB3VecEnv(3, opponent=None)
    with pytest.raises(ValueError, match="SAME_STEP"):
        module.SB3VecEnv(3, autoreset_mode="NextStep")
    with pytest.raises(NotImplementedError, match="new SB3VecEnv"):
        envs.set_attr("max_plies", 3)
    with pytest.raises(NotImplementedError, match="'action_masks' or 'render'"):
        envs.env_method("step")


def test_sb3_logs_the_return_and_length_of_ended_games() -> None:
    module = sb3()
    contrib = pytest.importorskip("sb3_contrib")
    from stable_baselines3.common.monitor import Monitor

    envs = module.SB3VecEnv(4, max_plies=30)
    assert envs.env_is_wrapped(Monitor) == [True] * 4
    envs.seed(1)
    envs.reset()
    returns, lengths = np.zeros(4), np.zeros(4, np.int64)
    ends = 0
    for step in range(60):
        if step == 30:
            envs.reset()
            returns[:] = lengths[:] = 0
        actions = np.stack(envs.env_method("action_masks")).argmax(axis=1)
        _, rewards, dones, infos = envs.step(actions)
        returns += rewards
        lengths += 1
        for game, info in enumerate(infos):
            assert ("episode" in info) == dones[game]
            if dones[game]:
                assert info["episode"]["r"] == returns[game] == rewards[game]
                assert info["episode"]["l"] == lengths[game] and info["episode"]["t"] >= 0
                returns[game] = lengths[game] = 0
                ends += 1
    assert ends > 4

    model = contrib.MaskablePPO("MultiInputPolicy", envs, n_steps=64, batch_size=64, n_epochs=1)
    model.learn(256)
    assert model.ep_info_buffer is not None and len(model.ep_info_buffer) > 4
    assert all(abs(info["r"]) <= 1 and 1 <= info["l"] <= 16 for info in model.ep_info_buffer)


@pytest.mark.parametrize("observation", ["captures", "planes", "planes+replies"])
def test_sb3_learns_from_every_observation(observation: str) -> None:
    module = sb3()
    contrib = pytest.importorskip("sb3_contrib")
    if observation == "planes+replies":
        with pytest.raises(ValueError, match="no dict within a dict; add flat=True"):
            module.SB3VecEnv(4, observation=observation)
    flat = observation != "captures"
    pool = OpponentPool()
    envs = module.SB3VecEnv(
        4, opponent=pool, observation=observation, flat=flat, opening_plies=(2, 5)
    )
    policy = "MlpPolicy" if observation == "planes" else "MultiInputPolicy"
    model = contrib.MaskablePPO(policy, envs, n_steps=16, batch_size=32, n_epochs=1)
    model.learn(192, callback=module.SelfPlayCallback(every=64))
    assert len(pool.members) == 3  # of the start, and after 64 and 128 steps


def test_sb3_self_play_goes_on_from_a_saved_model(tmp_path: Path) -> None:
    module = sb3()
    contrib = pytest.importorskip("sb3_contrib")

    def games(pool: OpponentPool) -> Any:
        return module.SB3VecEnv(8, opponent=pool, observation="captures")

    def train() -> tuple[Any, OpponentPool]:
        pool = OpponentPool("greedy", size=3, seed=1)
        settings = {"n_steps": 16, "batch_size": 128, "n_epochs": 2, "seed": 1, "device": "cpu"}
        model = contrib.MaskablePPO("MultiInputPolicy", games(pool), **settings)
        return model.learn(640, callback=module.SelfPlayCallback(every=128)), pool

    (model, pool), (again, _) = train(), train()
    assert len(pool.members) == 3 and pool.members[0] is not pool.members[1]
    for key, value in model.policy.state_dict().items():
        assert value.equal(again.policy.state_dict()[key])

    plain = BaoVectorEnv(50, seat=None)
    plain.reset(seed=1)
    asked = plain.positions, plain.masks
    import torch

    def answers(pool: OpponentPool) -> Any:
        torch.manual_seed(3)
        return [member.act(*asked) for member in pool.members]

    before = answers(pool)
    assert not np.array_equal(before[1], before[2])
    model.save(tmp_path / "model")
    fresh = OpponentPool("random")
    loaded = contrib.MaskablePPO.load(tmp_path / "model", env=games(fresh))
    callback = module.SelfPlayCallback(every=128)
    callback.init_callback(loaded)
    assert np.array_equal(answers(fresh), before) and fresh.size == 3
    loaded.learn(256, callback=callback, reset_num_timesteps=False)
    assert loaded.num_timesteps == 896 and len(fresh.members) == 3
    assert loaded.predict(loaded.env.reset())[0].shape == (8,)


def test_sb3_what_self_play_refuses() -> None:
    module = sb3()
    contrib = pytest.importorskip("sb3_contrib")
    from stable_baselines3.common.vec_env import VecNormalize

    with pytest.raises(ValueError, match="every=0"):
        module.SelfPlayCallback(every=0)
    model = contrib.MaskablePPO("MultiInputPolicy", module.SB3VecEnv(2), n_steps=16)
    with pytest.raises(ValueError, match="opponent=OpponentPool"):
        model.learn(32, callback=module.SelfPlayCallback())
    envs = module.SB3VecEnv(2, opponent=OpponentPool(), flat=True)
    model = contrib.MaskablePPO("MlpPolicy", VecNormalize(envs), n_steps=16)
    with pytest.raises(ValueError, match="norm_obs=False"):
        model.learn(32, callback=module.SelfPlayCallback())


def test_sb3_learns_and_games_live_in_child_processes() -> None:
    module = sb3()
    contrib = pytest.importorskip("sb3_contrib")
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor

    with pytest.warns(UserWarning, match="statistics will be"):
        envs = VecMonitor(module.SB3VecEnv(8))  # not needed, but it may be
    model = contrib.MaskablePPO("MultiInputPolicy", envs, n_steps=16, batch_size=64, seed=1)
    model.learn(256)
    assert model.num_timesteps == 256
    seen = []
    for kind in (DummyVecEnv, SubprocVecEnv):
        children = make_vec_env("bao_env:bao/Bao-v0", n_envs=2, seed=3, vec_env_cls=kind)
        observation = children.reset()
        for _ in range(40):
            masks = np.stack(children.env_method("action_masks"))
            observation, *_ = children.step(masks.argmax(axis=1))
        seen.append(observation["observation"])
        children.close()
    assert np.array_equal(*seen)


# --- TorchRL ------------------------------------------------------------------------------------


@pytest.mark.parametrize("opponent", [None, "greedy"])
def test_torchrl(opponent: Opponent | None) -> None:
    pytest.importorskip("torchrl")
    import torch
    from torchrl.envs import ActionMask, TransformedEnv
    from torchrl.envs.utils import check_env_specs

    from bao_env.adapters.torchrl import BaoTorchEnv

    check_env_specs(TransformedEnv(BaoTorchEnv(5, opponent=opponent), ActionMask()))
    env = TransformedEnv(BaoTorchEnv(5, opponent=opponent, seed=2, max_plies=40), ActionMask())
    steps = env.rollout(90, break_when_any_done=False)
    assert steps["action_mask"].dtype == torch.bool
    assert steps["action_mask"].gather(-1, steps["action"][..., None]).all()
    ended = steps["next", "done"][..., 0]
    assert steps["next", "terminated"].any() and steps["next", "truncated"].any()
    assert (steps["next", "reward"][..., 0][~ended] == 0).all()

    plain = BaoVectorEnv(5, opponent=opponent, autoreset_mode="Disabled", max_plies=40)
    observation, infos = plain.reset(seed=2)
    for t in range(90):
        assert np.array_equal(steps["observation"][:, t].numpy(), observation["observation"])
        assert np.array_equal(steps["player"][:, t, 0].numpy(), infos["player"])
        observation, rewards, terminated, truncated, infos = plain.step(
            steps["action"][:, t].numpy()
        )
        assert np.array_equal(steps["next", "reward"][:, t, 0].numpy(), rewards)
        over = terminated | truncated
        if over.any():
            observation, infos = plain.reset(options={"reset_mask": over})


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_torchrl_plays_a_pool_on_every_observation(observation: str) -> None:
    pytest.importorskip("torchrl")
    from torchrl.envs import ActionMask, TransformedEnv
    from torchrl.envs.utils import check_env_specs

    from bao_env.adapters.torchrl import BaoTorchEnv

    options: dict[str, Any] = {"observation": observation, "opening_plies": 3, "max_plies": 40}
    if observation == "planes+replies":
        with pytest.raises(ValueError, match="expected one of a single array"):
            BaoTorchEnv(3, **options)
        return
    pool = OpponentPool()
    env = TransformedEnv(BaoTorchEnv(3, opponent=pool, seed=1, **options), ActionMask())
    check_env_specs(env)
    (shape,) = OBSERVATIONS[observation].shapes.values()
    member = GreedyAgent()
    pool.add(member)
    while pool.current is not member:
        pool.draw()
        steps = env.rollout(10, break_when_any_done=False)
        assert steps["observation"].shape == (3, 10, *shape)


# --- RLlib --------------------------------------------------------------------------------------


def test_rllib_module_gives_illegal_actions_no_chance() -> None:
    pytest.importorskip("ray.rllib")
    import torch
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.columns import Columns

    from bao_env.adapters import rllib

    envs = BaoVectorEnv(10, opponent="random")
    observation, _ = envs.reset(seed=0)
    module = rllib.MaskedModule(
        observation_space=envs.single_observation_space,
        action_space=envs.single_action_space,
        model_config={"hidden": 16},
        catalog_class=None,
    )
    batch = {Columns.OBS: {key: torch.from_numpy(value) for key, value in observation.items()}}
    logits = module.forward_inference(batch)[Columns.ACTION_DIST_INPUTS]
    chances = torch.softmax(logits, dim=-1)
    legal = torch.from_numpy(envs.action_masks())
    assert (chances[~legal] == 0).all() and torch.isfinite(logits).all()
    assert torch.allclose(chances.sum(dim=-1), torch.ones(10))
    assert module.compute_values(batch).shape == (10,)

    for kind in OBSERVATIONS:
        envs = BaoVectorEnv(10, observation=kind)  # type: ignore[arg-type]
        observation, _ = envs.reset(seed=0)
        module = rllib.MaskedModule(
            observation_space=envs.single_observation_space,
            action_space=envs.single_action_space,
            model_config={"hidden": 16},
            catalog_class=None,
        )
        seen: Any = torch.utils._pytree.tree_map(torch.from_numpy, observation)
        assert module.compute_values({Columns.OBS: seen}).shape == (10,)

    config = rllib.against(PPOConfig(), "greedy", games=7, max_plies=40)
    assert config.env == "bao-vector" and config.num_envs_per_env_runner == 7
    assert config.env_config == {"opponent": "greedy", "max_plies": 40}
    config = rllib.self_play(PPOConfig(), ruleset="dutch")
    assert config.env == "bao-aec" and set(config.policies) == {"shared"}


# --- OpenSpiel ----------------------------------------------------------------------------------


def open_spiel() -> Any:
    pyspiel = pytest.importorskip("pyspiel")
    importlib.import_module("bao_env.adapters.open_spiel")
    return pyspiel


@pytest.mark.parametrize("ruleset", RULESETS)
def test_open_spiels_own_test_of_games(ruleset: str) -> None:
    pyspiel = open_spiel()
    game = pyspiel.load_game(f"python_bao(ruleset={ruleset})")
    pyspiel.random_sim_test(game, num_sims=3, serialize=True, verbose=False)


def test_open_spiel_states() -> None:
    pyspiel = open_spiel()
    game = pyspiel.load_game("python_bao", {"max_plies": 60})
    rng = np.random.default_rng(3)
    results = set()
    for _ in range(20):
        state = game.new_initial_state()
        while not state.is_terminal():
            assert state.legal_actions() == sorted(state.legal_actions()) != []
            board = state.single_game.observation(state.current_player())
            twin = state.clone()
            twin.apply_action(twin.legal_actions()[0])
            assert np.array_equal(state.single_game.observation(state.current_player()), board)
            state.apply_action(int(rng.choice(state.legal_actions())))
        assert state.legal_actions() == [] and sum(state.returns()) == 0
        assert (state.returns() == [0.0, 0.0]) == ("cut short" in str(state))
        results.add(tuple(state.returns()))
    assert results == {(1.0, -1.0), (-1.0, 1.0), (0.0, 0.0)}
    with pytest.raises(ValueError, match="unknown rule set 'chess'"):
        pyspiel.load_game("python_bao(ruleset=chess)")
    with pytest.raises(ValueError, match="expected one of a single array"):
        pyspiel.load_game("python_bao(observation=planes+replies)")


@pytest.mark.parametrize("observation", ["replies", "planes"])
def test_open_spiel_shows_other_observations(observation: str) -> None:
    open_spiel()
    from open_spiel.python import rl_environment

    environment = rl_environment.Environment("python_bao", observation=observation)
    step = environment.reset()
    (shape,) = OBSERVATIONS[observation].shapes.values()
    plain, _ = BaoVectorEnv(1, observation=observation).reset(seed=0)  # type: ignore[arg-type]
    assert environment.observation_spec()["info_state"] == (np.prod(shape),)
    assert np.array_equal(step.observations["info_state"][0], plain["observation"].ravel())


def test_open_spiels_search_beats_random() -> None:
    pyspiel = open_spiel()
    from open_spiel.python import rl_environment
    from open_spiel.python.algorithms import mcts

    game = pyspiel.load_game("python_bao")
    evaluator = mcts.RandomRolloutEvaluator(1, np.random.RandomState(1))
    rng = np.random.default_rng(3)
    points = 0
    for seat in (0, 1, 0, 1):
        bot = mcts.MCTSBot(game, 1.4, 25, evaluator, random_state=np.random.RandomState(2))
        state = game.new_initial_state()
        while not state.is_terminal():
            if state.current_player() == seat:
                action = bot.step(state)
            else:
                action = int(rng.choice(state.legal_actions()))
            state.apply_action(action)
        points += state.returns()[seat]
    assert points >= 2
    step = rl_environment.Environment("python_bao").reset()
    assert len(step.observations["info_state"][0]) == OBSERVATION_SIZE
    assert step.observations["legal_actions"][0] == [20, 22, 24, 26]
