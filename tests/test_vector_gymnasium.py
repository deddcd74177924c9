"""The Gymnasium vector environment beside Gymnasium's: others of its kind, wrappers, pictures."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import (
    DictInfoToList,
    NormalizeObservation,
    RecordEpisodeStatistics,
    TransformObservation,
)

from bao_env import BaoEnv, BaoVectorEnv
from bao_env.envs.arguments import MAX_PLIES
from tests.vector import (
    EVERY_MODE,
    ID,
    NEXT,
    SAME,
    run,
    same,
)

pytestmark = pytest.mark.filterwarnings("error")


@EVERY_MODE
@pytest.mark.parametrize("ruleset", ["zanzibar", "dutch", "malawi"])
@pytest.mark.parametrize("seat", ["south", "north"])
def test_equals_sync_vector_env(mode: AutoresetMode, ruleset: str, seat: str) -> None:
    """Game by game, key by key what Gymnasium makes of as many single environments."""
    arguments: dict[str, Any] = {
        "opponent": "greedy",
        "ruleset": ruleset,
        "seat": seat,
        "max_plies": 30,
        "opening_plies": 0,
    }
    ours = BaoVectorEnv(6, autoreset_mode=mode, **arguments)
    sync = SyncVectorEnv([lambda: BaoEnv(**arguments)] * 6, autoreset_mode=mode)
    assert ours.observation_space == sync.observation_space
    assert ours.action_space == sync.action_space
    mine, theirs = run(ours, 60), run(sync, 60)
    ends: set[Any] = set()
    for one, other in zip(mine, theirs, strict=True):
        if len(one) == 2 and other[1]["_action_mask"].all():  # a full reset
            assert same(one, other)
        elif len(one) == 2:  # Gymnasium's infos are empty for games that were not reset
            assert same(one[0], other[0])
            games = other[1]["_action_mask"]
            assert all(same(one[1][key][games], other[1][key][games]) for key in other[1])
        else:
            assert same(one, other)
            assert one[1].dtype == other[1].dtype and one[2].dtype == one[3].dtype == bool
            ends |= {("win", *one[1][one[2]].tolist())} if one[2].any() else set()
            ends |= {"cut"} if one[3].any() else set()
    assert "cut" in ends and len(ends) > 1


def test_final_infos_are_gymnasiums() -> None:
    env = BaoVectorEnv(8, opponent="greedy", seat="south", max_plies=20)
    results = run(env, 40)
    final = [result for result in results[1:] if "final_obs" in result[4]]
    assert final
    for observation, _, terminated, truncated, infos in final:
        over = terminated | truncated
        assert np.array_equal(infos["_final_obs"], over)
        assert np.array_equal(infos["_final_info"], over)
        for game, end in enumerate(infos["final_obs"]):
            assert (end is not None) == over[game]
            if end is None:
                continue
            assert end in env.single_observation_space
            assert not np.array_equal(end["observation"], observation["observation"][game])
            assert np.array_equal(end["action_mask"], infos["final_info"]["action_mask"][game])
            if terminated[game]:
                assert not end["action_mask"].any()
    for result in results[1:]:
        over = result[2] | result[3]
        assert ("final_obs" in result[4]) == over.any()
        assert result[0]["action_mask"].any(1).all()  # SAME_STEP never shows an empty mask


@EVERY_MODE
def test_gymnasium_wrappers(mode: AutoresetMode) -> None:
    env: Any = RecordEpisodeStatistics(BaoVectorEnv(4, autoreset_mode=mode, max_plies=10))
    lengths = []
    for result in run(env, 40):
        if len(result) == 5 and "episode" in result[4]:
            lengths += result[4]["episode"]["l"].tolist()  # 0 where no game ended
    assert max(lengths) == 10
    env = DictInfoToList(BaoVectorEnv(4, autoreset_mode=mode, max_plies=10))
    for result in run(env, 40):
        assert len(result[-1]) == 4
        for game, info in enumerate(result[-1]):
            assert np.array_equal(info["action_mask"], result[0]["action_mask"][game])


@pytest.mark.parametrize("opponent", [None, "greedy"])
def test_gymnasium_wrappers_that_change_flat_observations(opponent: Any) -> None:
    def make(**more: Any) -> Any:
        return BaoVectorEnv(
            4,
            opponent=opponent,
            observation="replies",
            flat=True,
            max_plies=80,
            opening_plies=(0, 20),
            **more,
        )

    games = make(autoreset_mode=NEXT)
    env: Any = RecordEpisodeStatistics(games)
    env = TransformObservation(
        NormalizeObservation(env), lambda rows: rows * 2, Box(-np.inf, np.inf, (4, 308), np.float32)
    )
    env.reset(seed=1)
    plain = make(autoreset_mode=NEXT)
    plain.reset(seed=1)
    seen, returns, lengths = [], [], []
    for _ in range(200):
        masks = games.action_masks()
        assert np.array_equal(masks, plain.action_masks())
        actions = masks.argmax(axis=1)
        rows, rewards, over, cut, infos = env.step(actions)
        _, *theirs = plain.step(actions)
        assert np.array_equal(rewards, theirs[0]) and np.array_equal(
            over | cut, theirs[1] | theirs[2]
        )
        assert np.array_equal(infos["action_mask"], games.action_masks())
        assert rows.shape == (4, 308) and rows.dtype == np.float32
        seen.append(rows)
        if "episode" in infos:
            returns += infos["episode"]["r"][infos["_episode"]].tolist()
            lengths += infos["episode"]["l"][infos["_episode"]].tolist()
    late = np.concatenate(seen[100:]) / 2
    assert abs(late.mean()) < 0.1 and 0.7 < late[:, late.std(0) > 0].std(0).mean() < 1.3
    assert set(returns) <= {-1.0, 0.0, 1.0} and len(set(returns)) > 1
    assert 5 < max(lengths) <= 80
    for wrapper in (NormalizeObservation, lambda env: TransformObservation(env, lambda rows: rows)):
        with pytest.raises((AssertionError, ValueError)):
            wrapper(make())


def test_make_vec() -> None:
    env: Any = gymnasium.make_vec(ID, num_envs=8)
    assert isinstance(env, BaoVectorEnv)
    assert env.num_envs == 8 and env.spec is not None and env.spec.id == "bao/Bao-v0"
    assert env.autoreset_mode is SAME and env.metadata["autoreset_mode"] is SAME
    assert BaoVectorEnv.metadata["autoreset_mode"] is SAME
    env = gymnasium.make_vec(ID, num_envs=3, opponent="greedy", autoreset_mode="NextStep")
    assert env.metadata["autoreset_mode"] is NEXT
    assert BaoVectorEnv.metadata["autoreset_mode"] is SAME
    run(env, 5)
    env.close()
    env = gymnasium.make_vec(ID, num_envs=2, max_episode_steps=7)
    assert env.max_plies == MAX_PLIES
    for mode in ("sync", "async"):
        env = gymnasium.make_vec(ID, num_envs=2, vectorization_mode=mode, opponent="greedy")
        observation, _ = env.reset(seed=0)
        assert observation in env.observation_space
        env.close()


def test_a_fresh_process_plays_the_same_games() -> None:
    """A spawned child knows only the identifier; seed for seed its games are ours, to the bit."""
    arguments: dict[str, Any] = {"num_envs": 2, "opponent": "random", "ruleset": "kujifunza"}
    here = gymnasium.make_vec(ID, vectorization_mode="sync", **arguments)
    there = gymnasium.make_vec(
        ID, vectorization_mode="async", vector_kwargs={"context": "spawn"}, **arguments
    )
    mine, theirs = run(here, 60, seed=6), run(there, 60, seed=6)
    there.close()
    assert same(mine, theirs)
    assert any(result[2].any() for result in mine[1:])


def test_pictures() -> None:
    env = BaoVectorEnv(3, render_mode="ansi", autoreset_mode=NEXT, max_plies=2)
    env.reset(seed=0)
    boards = env.render()
    assert boards is not None and len(boards) == 3
    assert all("South to move" in board for board in boards)
    run(env, 2)
    cut_short = env.render()
    assert cut_short is not None and len(cut_short) == 3
    assert all("cut short after 2 plies" in board for board in cut_short)
    env = BaoVectorEnv(30, render_mode="ansi", autoreset_mode=NEXT)
    env.reset(seed=0)
    won = np.zeros(30, bool)
    while not won.any():
        won = env.step(env.sample_legal_actions())[2]
    boards = env.render()
    assert boards is not None
    assert ["wins" in board for board in boards] == won.tolist()
    assert BaoVectorEnv(3).render() is None


def test_images() -> None:
    pytest.importorskip("pygame")
    envs = BaoVectorEnv(2, render_mode="rgb_array", opening_plies=5)
    envs.reset(seed=1)
    frames = envs.render()
    assert frames is not None
    assert [frame.shape for frame in frames] == [(406, 820, 3)] * 2
    assert (frames[0] != frames[1]).any()


def test_the_card_tells_the_truth() -> None:
    """The numbers of the class docstring are those of the code."""
    card = BaoVectorEnv.__doc__ or ""
    envs: dict[Any, Any] = {kind: BaoVectorEnv(7, dtype=kind) for kind in (np.float32, np.uint8)}
    shapes = set()
    for kind, env in envs.items():
        board = env.single_observation_space["observation"]
        pattern = rf"{np.dtype(kind).name}\[B, (\d+)\] from (\d+) to (\d+)"
        found = re.findall(pattern, card)
        shape = str(board.shape[0])
        assert found == [(shape, f"{board.low.min():g}", f"{board.high.max():g}")]
        shapes.add(shape)
        assert env.observation_space["observation"].shape == (7, int(shape))
        assert re.findall(r"Discrete\((\d+)\)", card) == [str(env.single_action_space.n)]
        mask = env.single_observation_space["action_mask"]
        assert re.findall(r"int8\[B, (\d+)\], 1 = legal", card) == [str(mask.shape[0])]
    assert len(shapes) == 1
    assert re.findall(r"after (\d+) plies", card) == [str(MAX_PLIES)]
    assert "v0: first version" in card and ID.endswith("-v0")
