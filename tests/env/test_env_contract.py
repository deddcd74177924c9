"""Test the contract of all environments: arguments, options, opponents, copies, pictures."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled
from gymnasium.spaces import Box, Dict
from gymnasium.vector import VectorEnv

import bao_env.envs
from bao_env import BaoEnv, BaoVectorEnv, RandomAgent, bao_v0, raw_env
from bao_env.engine.action import NUM_ACTIONS, actions_of
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import PLY
from bao_env.envs.arguments import MAX_PLIES
from bao_env.observation import SEED_UNIT
from bao_env.observation.observer import get_observer
from tests.vector import NEXT, SAME, same

pytestmark = pytest.mark.filterwarnings("error")

Make = Callable[..., Any]
BATCH = partial(BaoVectorEnv, num_envs=3, opponent=None)
AGAINST: dict[str, Make] = {
    "single": partial(BaoEnv, opponent="greedy", seat="south", opening_plies=0),
    "vector-opponent": partial(BATCH, opponent="greedy", seat="south", opening_plies=0),
}
ALL: dict[str, Make] = {"aec": raw_env, "vector": BATCH, **AGAINST}
EVERY_ENV = pytest.mark.parametrize("make", list(ALL.values()), ids=list(ALL))
WITH_OPPONENT = pytest.mark.parametrize("make", list(AGAINST.values()), ids=list(AGAINST))


def step(env: Any, action: Any) -> Any:
    """Play an action, the same in every game of a vector environment."""
    return env.step([action] * env.num_envs if isinstance(env, VectorEnv) else action) or env.last()


def play(env: Any, steps: int, rng: np.random.Generator) -> list[Any]:
    """Play random legal actions; return the results, including those of resets after a game."""
    results: list[Any] = []
    vector = isinstance(env, VectorEnv)
    for _ in range(steps):
        actions = [rng.choice(actions_of(legal) or [0]) for legal in env.legal]
        results.append(copy.deepcopy(env.step(actions if vector else actions[0]) or env.last()))
        if not vector and (results[-1][2] or results[-1][3]):
            results.append(env.reset())
    return results


# --- arguments and reset options ----------------------------------------------------------------


def test_the_contract_tells_the_truth() -> None:
    """The numbers and names in the contract are those of the code."""
    assert bao_v0.env is bao_env.env and bao_v0.raw_env is raw_env
    assert str(raw_env()) == raw_env.metadata["name"] == "bao_v0"
    assert raw_env.metadata["is_parallelizable"] is False
    fps = [kind.metadata["render_fps"] for kind in (raw_env, BaoEnv, BaoVectorEnv)]
    assert fps == [2, 2, 2] and BaoVectorEnv().num_envs == 1
    card = " ".join((bao_env.envs.__doc__ or "").split())
    board = get_observer("board").space
    assert isinstance(board, Box)
    shape, low, high = board.shape[0], board.low.min(), board.high.max()
    assert f"float32[{shape}] from {low:g} to {high:g}, in units of eight seeds" in card
    assert SEED_UNIT == 8 and f"Discrete({NUM_ACTIONS})" in card
    assert f"int8[{NUM_ACTIONS}], 1 = legal" in card and f"after {MAX_PLIES} plies" in card
    space = BaoEnv().observation_space
    assert isinstance(space, Dict)
    assert space["action_mask"] == Box(0, 1, (NUM_ACTIONS,), np.int8)


def test_the_classes_have_the_same_defaults() -> None:
    defaults = [
        {
            name: parameter.default
            for name, parameter in signature(kind).parameters.items()
            if name not in ("num_envs", "autoreset_mode", "threads")
        }
        for kind in (BaoEnv, BaoVectorEnv)
    ]
    assert defaults[0] == defaults[1]
    for name, parameter in signature(raw_env).parameters.items():
        assert parameter.default == defaults[0][name] or name == "opening_plies"


@pytest.mark.parametrize("options", [{}, {"opponent": None}])
def test_ids(options: dict[str, Any]) -> None:
    """`make` and every mode of `make_vec` make the classes with these defaults; test_vector_games
    compares the games."""
    name = "bao_env:bao/Bao-v0"
    single: Any = gymnasium.make(name, ruleset="dutch", **options)
    sync: Any = gymnasium.make_vec(name, 2, "sync", ruleset="dutch", **options)
    ours: Any = gymnasium.make_vec(name, 2, ruleset="dutch", **options)
    assert type(ours) is BaoVectorEnv and ours.num_envs == 2
    assert single.spec.id == "bao/Bao-v0" and single.spec.max_episode_steps is None
    for env in (single.unwrapped, sync.envs[0].unwrapped, ours):
        assert (env.opponent, env.ruleset.name) == (options.get("opponent", "random"), "dutch")
    assert sync.metadata["autoreset_mode"] is ours.metadata["autoreset_mode"] is NEXT
    same_step: Any = gymnasium.make_vec(name, 3, autoreset_mode="SameStep")
    assert same_step.metadata["autoreset_mode"] is SAME
    assert BaoVectorEnv.metadata["autoreset_mode"] is NEXT


# --- starts -------------------------------------------------------------------------------------


@EVERY_ENV
def test_the_random_first_player_is_drawn(make: Make) -> None:
    env = make(ruleset="kujifunza")
    env.reset(seed=7)
    starts: set[str] = set()
    for _ in range(30):
        env.reset()
        starts.update(map(str, env.positions))
    assert len(starts) == 2


def test_the_learners_seat_is_drawn() -> None:
    assert {BaoEnv().reset(seed=seed)[1]["seat"] for seed in range(9)} == {SOUTH, NORTH}


@EVERY_ENV
def test_seeds(make: Make) -> None:
    """The same seed gives the same games and seats; another seed, or none, gives other games."""

    def games(seed: int | None) -> list[Any]:
        env = make(ruleset="kujifunza", opening_plies=(0, 9))
        first = [env.reset(seed=seed), env.positions, env.sample_legal_actions()]
        return [*first, *play(env, 80, np.random.default_rng(0))]

    assert same(games(1), games(1))
    assert not same(games(1), games(2))
    assert not same(games(None), games(None))


@EVERY_ENV
def test_every_legal_action_is_drawn(make: Make) -> None:
    env = make()
    env.reset(seed=1)
    drawn = {int(np.ravel(env.sample_legal_actions())[0]) for _ in range(60)}
    assert drawn == {20, 22, 24, 26}


# --- opponents ----------------------------------------------------------------------------------


@WITH_OPPONENT
def test_an_opponent_answers_all_games_at_once(make: Make) -> None:
    """An opponent may be an object or a function."""

    class Recorder(RandomAgent):
        sizes: list[int]

        def act(self, positions: Any, legal: Any) -> Any:
            self.sizes.append(len(legal))
            assert legal.all()
            actions = super().act(positions, legal)
            positions[:] = legal[:] = 0  # its arrays are copies
            return actions

    agent = Recorder(3)
    for opponent in (agent, agent.act):
        agent.sizes = []
        env = make(opponent=opponent)
        env.reset(seed=0)
        assert env.opponent == opponent and agent.sizes == []
        step(env, 20)
        env.reset(options={"seat": "north"})
        assert agent.sizes == [len(env.legal)] * 2 == [getattr(env, "num_envs", 1)] * 2


@pytest.mark.parametrize("make", [BaoEnv, BaoVectorEnv])
@pytest.mark.parametrize("seeded", [False, True, None])
def test_an_opponent_by_name_is_loaded_when_needed(
    make: Make, seeded: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment loads the opponent when it is made, so a wrong name raises there. A reset with
    a seed loads it again if its play depends on a seed."""
    seeds, cores, rules = list[int](), list[int](), set[str]()

    def load(name: str, ruleset: Any, seed: int, threads: int) -> Any:
        seeds.append(seed)
        cores.append(threads)
        rules.add(ruleset.name)
        agent = RandomAgent(seed)
        if seeded is not None:  # without the attribute, it depends on a seed
            agent.seeded = seeded  # type: ignore[attr-defined]
        return agent

    monkeypatch.setattr("bao_env.bots.load_from_packages", load)
    env = make(opponent="mine", ruleset="dutch")
    for number in (1, 1, None, 2):
        env.reset(seed=number)
    assert len(seeds) == (1 if seeded is False else 4)
    assert seeded is False or seeds[1] == seeds[2] != seeds[3]
    assert {*cores} == {1} and rules == {"dutch"}
    BaoVectorEnv(opponent="mine", threads=3)
    assert cores[-1] == 3


# --- copies -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        partial(BaoEnv, "random"),
        partial(BaoEnv, RandomAgent(5)),
        partial(BaoVectorEnv, 20, threads=2),
        partial(BaoVectorEnv, 20, RandomAgent(5)),
    ],
)
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_continue_the_games(make: Make, duplicate: Callable[[Any], Any]) -> None:
    """The opponents of both copies draw the same actions; test_model copies games against other
    opponents."""
    env = make(ruleset="kujifunza", observation="replies")
    env.reset(seed=3)
    play(env, 12, np.random.default_rng(8))
    twin = duplicate(env)
    if duplicate is copy.deepcopy and not isinstance(env, VectorEnv):
        assert (
            twin.ruleset is env.ruleset and twin.observer is env.observer
        )  # otherwise a copy takes long
    mine, theirs = (play(copied, 60, np.random.default_rng(9)) for copied in (env, twin))
    assert same(mine, theirs) and np.array_equal(env.positions, twin.positions)
    assert any(np.any(result[2]) for result in mine if result is not None and len(result) == 5)


# --- pictures -----------------------------------------------------------------------------------


def pictures(env: Any) -> tuple[Any, ...]:
    """Return the pictures of all games."""
    rendered = env.render()
    return rendered if isinstance(rendered, tuple) else (rendered,)


@EVERY_ENV
def test_no_picture_without_a_render_mode(make: Make) -> None:
    env = make()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


@EVERY_ENV
def test_pictures_without_pygame(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures in characters say how a game ended."""
    monkeypatch.setitem(sys.modules, "pygame", None)
    env = make(render_mode="ansi", illegal="lose", max_plies=2)
    env.reset(seed=0)
    assert all("South to move" in picture for picture in pictures(env))
    while env.positions[0, PLY] < 2:
        step(env, int(env.legal[0]).bit_length() - 1)
    assert all("cut short" in picture for picture in pictures(env))
    env.reset(seed=0)
    step(env, 0)
    assert all("North wins" in picture for picture in pictures(env))
    for mode in {"human", "rgb_array"} & {*env.metadata["render_modes"]}:
        with pytest.raises(DependencyNotInstalled, match=r"pip install 'bao_env\[render\]'"):
            make(render_mode=mode)


def test_a_specification_is_json() -> None:
    env = gymnasium.make("bao_env:bao/Bao-v0", ruleset=bao_env.RULESETS["dutch"])
    assert env.spec is not None
    env_of_json: Any = gymnasium.make(
        gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json())
    )
    assert env_of_json.unwrapped.ruleset == bao_env.RULESETS["dutch"]
    assert BaoEnv().sample_legal_actions() == raw_env().sample_legal_actions() == 0
    assert not BaoVectorEnv(9).action_masks().any()
