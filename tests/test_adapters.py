"""Test the adapters to RL libraries; a test is skipped if its library is missing."""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from bao_env import RULESETS, BaoVectorEnv, Board, GreedyAgent, OpponentPool
from bao_env.bots import Opponent
from bao_env.observation import OBSERVATIONS
from bao_env.observation.observer import get_observer

LIBRARIES = {
    "sb3": ("stable_baselines3", "sb3-contrib"),
    "torchrl": ("torchrl", "torchrl"),
    "rllib": ("ray", "ray[rllib]"),
    "open_spiel": ("pyspiel", "open_spiel"),
    "pgx": ("pgx", "pgx jax"),
    "textarena": ("textarena", "textarena"),
    "verifiers": ("verifiers", "verifiers"),
}


@pytest.mark.parametrize("adapter", LIBRARIES)
def test_a_missing_library_raises_with_its_name(
    adapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    """Return the adapter."""
    return importlib.import_module("bao_env.adapters.sb3")


def maskable_ppo(envs: Any, policy: str = "MultiInputPolicy", **settings: Any) -> Any:
    """Return a small model on some games."""
    from sb3_contrib import MaskablePPO

    small = {"n_steps": 16, "batch_size": 32, "n_epochs": 1, "seed": 1, "device": "cpu"}
    return MaskablePPO(policy, envs, **{**small, **settings})


def test_sb3_plays_the_games_of_the_vector_environment() -> None:
    from stable_baselines3.common.monitor import Monitor

    ours = sb3().SB3VecEnv(6, opponent="greedy", max_plies=30)
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


def test_sb3_options_and_invalid_arguments() -> None:
    make = sb3().SB3VecEnv
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


def test_sb3_self_play_continues_from_a_saved_model(tmp_path: Path) -> None:
    import torch
    from sb3_contrib import MaskablePPO

    def games(pool: OpponentPool) -> Any:
        return sb3().SB3VecEnv(8, opponent=pool, observation="captures")

    def train() -> tuple[Any, OpponentPool]:
        pool = OpponentPool("greedy", size=3, seed=1)
        model = maskable_ppo(games(pool), batch_size=128, n_epochs=2)
        return model.learn(640, callback=sb3().SelfPlayCallback(every=128)), pool

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
    callback = sb3().SelfPlayCallback(every=128)
    callback.init_callback(loaded)
    assert np.array_equal(answers(fresh), before) and fresh.size == 3
    loaded.learn(256, callback=callback, reset_num_timesteps=False)
    assert loaded.num_timesteps == 896 and len(fresh.members) == 3
    assert loaded.predict(loaded.env.reset())[0].shape == (8,)


def test_sb3_self_play_without_a_new_member_warns() -> None:
    pool = OpponentPool()
    model = maskable_ppo(sb3().SB3VecEnv(4, opponent=pool), n_steps=32, batch_size=64)
    with pytest.warns(UserWarning, match=r"in 128 steps no copy .* num_envs = 128 steps") as caught:
        model.learn(100, callback=sb3().SelfPlayCallback(every=64))
    assert len(caught) == 1 and len(pool.members) == 1
    with warnings.catch_warnings(action="error"):
        model.learn(200, callback=sb3().SelfPlayCallback(every=64))
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
def test_sb3_saved_model_is_a_player(
    observation: str, options: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "bao.zip"
    pool = OpponentPool()
    envs = sb3().SB3VecEnv(6, opponent=pool, observation=observation, ruleset="dutch", **options)
    box = observation != "planes+replies" and "flat" in options
    model = maskable_ppo(envs, "MlpPolicy" if box else "MultiInputPolicy")
    model.learn(192, callback=sb3().SelfPlayCallback(every=96))
    assert len(pool.members) == 2  # of the start, and after 96 steps
    model.save(file)
    player = sb3().player(file, ruleset="dutch")
    seen = envs.reset()
    masks = np.stack(envs.env_method("action_masks"))
    expected, _ = model.predict(seen, action_masks=masks, deterministic=True)
    for one in (player, sb3().player(model, ruleset="dutch")):
        assert np.array_equal(one.act(envs.envs.positions, envs.envs.legal), expected)
    with pytest.raises(FileNotFoundError, match="there is no model at none"):
        sb3().player("none.zip")
    assert masks[np.arange(6), expected].all()


def test_sb3_player_of_an_observation_without_a_name(tmp_path: Path) -> None:
    class Ones:
        space = gymnasium.spaces.Box(0, 9, (52,), np.float32)

        def fill(self, positions: Any, legal: Any, viewers: Any, arrays: Any) -> None:
            arrays[:] = 1

    model = maskable_ppo(sb3().SB3VecEnv(2, observation=Ones()))
    model.save(tmp_path / "bao.zip")
    with pytest.raises(ValueError, match="pass observation="):
        sb3().player(tmp_path / "bao.zip")
    own = sb3().player(tmp_path / "bao.zip", observation=Ones())
    words = Board().words[None]
    assert own.act(words, np.array([1 << 22], np.uint64)) == 22


def test_sb3_invalid_self_play_raises() -> None:
    from stable_baselines3.common.vec_env import VecNormalize

    callback = sb3().SelfPlayCallback
    with pytest.raises(ValueError, match="every=0"):
        callback(every=0)
    with pytest.raises(ValueError, match="opponent=OpponentPool"):
        maskable_ppo(sb3().SB3VecEnv(2)).learn(32, callback=callback())
    envs = sb3().SB3VecEnv(2, opponent=OpponentPool(), flat=True)
    with pytest.raises(ValueError, match="norm_obs=False"):
        maskable_ppo(VecNormalize(envs), "MlpPolicy").learn(32, callback=callback())


# --- TorchRL ------------------------------------------------------------------------------------


def torchrl(size: int, **arguments: Any) -> Any:
    """Return the environment, after TorchRL's own check."""
    from torchrl.envs import ActionMask, TransformedEnv
    from torchrl.envs.utils import check_env_specs

    from bao_env.adapters.torchrl import BaoTorchEnv

    checked, env = (TransformedEnv(BaoTorchEnv(size, **arguments), ActionMask()) for _ in range(2))
    check_env_specs(checked)
    return env


@pytest.mark.parametrize("opponent", [None, "greedy"])
def test_torchrl_plays_the_games_of_the_vector_environment(opponent: Opponent | None) -> None:
    env = torchrl(5, opponent=opponent, seed=2, max_plies=40)
    steps = env.rollout(90, break_when_any_done=False)
    assert steps["action_mask"].gather(-1, steps["action"][..., None]).all()
    ended = steps["next", "done"][..., 0]
    assert steps["next", "terminated"].any() and steps["next", "truncated"].any()
    assert (steps["next", "reward"][..., 0][~ended] == 0).all()

    plain = BaoVectorEnv(5, opponent=opponent, autoreset_mode="Disabled", max_plies=40)
    observation, infos = plain.reset(seed=2)
    for t in range(90):
        now = steps[:, t]
        assert np.array_equal(now["observation"].numpy(), observation["observation"])
        assert np.array_equal(now["seat"][:, 0].numpy(), infos["seat"])
        observation, rewards, terminated, truncated, infos = plain.step(now["action"].numpy())
        assert np.array_equal(now["next", "reward"][:, 0].numpy(), rewards)
        over = terminated | truncated
        if over.any():
            observation, infos = plain.reset(options={"reset_mask": over})


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_torchrl_plays_a_pool_on_every_observation(observation: str) -> None:
    pool = OpponentPool()
    options: Any = {"observation": observation, "opening_plies": 3, "max_plies": 40, "seed": 1}
    if observation == "planes+replies":
        with pytest.raises(ValueError, match="a single array"):
            torchrl(3, **options)
        return
    env = torchrl(3, opponent=pool, **options)
    member = GreedyAgent()
    pool.add(member)
    while pool.current is not member:
        pool.draw()
        steps = env.rollout(10, break_when_any_done=False)
        shape = get_observer(observation).space.shape or ()
        assert steps["observation"].shape == (3, 10, *shape)


@pytest.mark.parametrize("observation", ["board", "planes"])
def test_torchrl_actor_is_a_player(observation: str) -> None:
    import torch
    from tensordict.nn import TensorDictModule
    from torchrl.modules import MaskedCategorical, ProbabilisticActor

    from bao_env.adapters.torchrl import player

    torch.manual_seed(1)
    size = get_observer(observation).space.shape or ()
    layers = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(int(np.prod(size)), 64))
    actor = ProbabilisticActor(
        TensorDictModule(layers, in_keys=["observation"], out_keys=["logits"]),
        in_keys={"logits": "logits", "mask": "action_mask"},
        distribution_class=MaskedCategorical,
    )
    envs = BaoVectorEnv(20, observation=observation, opening_plies=4, opponent=None)
    seen, _ = envs.reset(seed=1)
    with torch.no_grad():
        scores = layers(torch.from_numpy(seen["observation"])).numpy()
    expected = np.where(envs.action_masks(), scores, -np.inf).argmax(axis=1)
    agent = player(actor, observation)
    assert np.array_equal(agent.act(envs.positions, envs.legal), expected)
    legal = envs.legal.copy()
    legal[3] = 0  # a game that is over
    assert np.array_equal(np.delete(agent.act(envs.positions, legal), 3), np.delete(expected, 3))


# --- RLlib --------------------------------------------------------------------------------------


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_rllib_module_gives_illegal_actions_no_probability(observation: str) -> None:
    import torch
    from ray.rllib.core.columns import Columns

    from bao_env.adapters import rllib

    envs = BaoVectorEnv(10, opponent="random", observation=observation)
    seen, _ = envs.reset(seed=0)
    module = rllib.MaskedModule(
        observation_space=envs.single_observation_space,
        action_space=envs.single_action_space,
        model_config={"hidden": 16},
        catalog_class=None,
    )
    batch: Any = {Columns.OBS: torch.utils._pytree.tree_map(torch.from_numpy, seen)}
    logits = module.forward_inference(batch)[Columns.ACTION_DIST_INPUTS]
    probabilities = torch.softmax(logits, dim=-1)
    legal = torch.from_numpy(envs.action_masks())
    assert (probabilities[~legal] == 0).all() and torch.isfinite(logits).all()
    assert torch.allclose(probabilities.sum(dim=-1), torch.ones(10))
    assert module.compute_values(batch).shape == (10,)


def test_rllib_configurations() -> None:
    from ray.rllib.algorithms.ppo import PPOConfig

    from bao_env.adapters import rllib

    config = rllib.against(PPOConfig(), "greedy", games=7, max_plies=40)
    assert config.env == "bao-vector" and config.num_envs_per_env_runner == 7
    assert config.env_config == {"opponent": "greedy", "max_plies": 40}
    config = rllib.self_play(PPOConfig(), ruleset="dutch")
    assert config.env == "bao-aec" and set(config.policies) == {"shared"}


# --- OpenSpiel ----------------------------------------------------------------------------------


def open_spiel() -> Any:
    """Return pyspiel, with the game registered."""
    importlib.import_module("bao_env.adapters.open_spiel")
    return importlib.import_module("pyspiel")


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
    with pytest.raises(ValueError, match="a single array"):
        pyspiel.load_game("python_bao(observation=planes+replies)")


@pytest.mark.parametrize("observation", ["board", "replies", "planes"])
def test_open_spiel_shows_observations(observation: str) -> None:
    open_spiel()
    from open_spiel.python import rl_environment

    environment = rl_environment.Environment("python_bao", observation=observation)
    step = environment.reset()
    plain, _ = BaoVectorEnv(1, observation=observation, opponent=None).reset(seed=0)
    assert environment.observation_spec()["info_state"] == (plain["observation"].size,)
    assert np.array_equal(step.observations["info_state"][0], plain["observation"].ravel())
    assert step.observations["legal_actions"][0] == [20, 22, 24, 26]
