"""The Gymnasium vector environment, against the environments that play one game."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import (
    DictInfoToList,
    NormalizeObservation,
    RecordEpisodeStatistics,
    TransformObservation,
)

from bao_env import RULESETS, BaoEnv, BaoVectorEnv
from bao_env.bots import GreedyAgent, Opponent, RandomAgent
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import unpack
from bao_env.envs.aec import raw_env
from bao_env.envs.arguments import MAX_PLIES
from bao_env.notation import format_position

pytestmark = pytest.mark.filterwarnings("error")

EVERY_RULESET = pytest.mark.parametrize("ruleset", list(RULESETS))
EVERY_MODE = pytest.mark.parametrize("mode", list(AutoresetMode))
ID = "bao_env:bao/Bao-v0"
SAME, NEXT, DISABLED = AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED


def legal_actions(masks: Any, rng: np.random.Generator) -> Any:
    """A random legal action of each row; 0 where there is none."""
    scores = rng.random(masks.shape) * (masks != 0)
    return scores.argmax(1)


def same(one: Any, other: Any) -> bool:
    """Equal values, whatever the dtypes."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray) and one.dtype == object:
        return same(one.tolist(), other.tolist())
    return np.array_equal(one, other)


def run(env: Any, steps: int, seed: int = 0, choose: Any = legal_actions) -> list[Any]:
    """What a reset and some steps return; ended games are reset where nobody else does it."""
    rng = np.random.default_rng(seed)
    results = [env.reset(seed=seed)]
    for _ in range(steps):
        results.append(env.step(choose(results[-1][0]["action_mask"], rng)))
        over = results[-1][2] | results[-1][3]
        if env.metadata["autoreset_mode"] is DISABLED and over.any():
            results.append(env.reset(options={"reset_mask": over}))
    return results


# --- against SyncVectorEnv ----------------------------------------------------------------------


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


# --- self-play ----------------------------------------------------------------------------------


@EVERY_MODE
@EVERY_RULESET
def test_self_play_is_the_aec_environment(ruleset: str, mode: AutoresetMode) -> None:
    """Each game is replayed in the AEC environment: turns, masks, views, rewards, ends."""
    size, limit = 8, 40
    env = BaoVectorEnv(size, ruleset=ruleset, autoreset_mode=mode, max_plies=limit)
    rng = np.random.default_rng(3)
    boards = [raw_env(ruleset=ruleset, max_plies=limit) for _ in range(size)]

    def restart(game: int, player: int) -> None:
        boards[game].reset(options={"first_player": int(player)})

    def agrees(game: int, board: Any, mask: Any, player: int) -> None:
        agent = f"player_{player}"
        assert agent == boards[game].agent_selection
        seen = boards[game].observe(agent)
        assert np.array_equal(seen["observation"], board)
        assert np.array_equal(seen["action_mask"], mask)

    observation, infos = env.reset(seed=5)
    for game in range(size):
        restart(game, infos["player"][game])
    outcomes, over = set(), np.zeros(size, bool)
    for _ in range(130):
        players = infos["player"]
        assert np.array_equal(infos["action_mask"], observation["action_mask"])
        assert np.array_equal(env.action_masks(), observation["action_mask"])
        for game in range(size):
            agrees(
                game,
                observation["observation"][game],
                observation["action_mask"][game],
                players[game],
            )
        if mode is DISABLED and over.any():
            observation, infos = env.reset(options={"reset_mask": over})
            for game in np.flatnonzero(over).tolist():
                restart(game, infos["player"][game])
            over[:] = False
            continue
        waiting = over if mode is NEXT else np.zeros(size, bool)
        actions = legal_actions(observation["action_mask"], rng)
        observation, rewards, terminated, truncated, infos = env.step(actions)
        over = terminated | truncated
        for game in range(size):
            if waiting[game]:
                assert (rewards[game], over[game]) == (0, False)
                restart(game, infos["player"][game])
                continue
            actor = boards[game].agent_selection
            boards[game].step(actions[game])
            assert rewards[game] == boards[game].rewards[actor]
            assert terminated[game] == boards[game].terminations[actor]
            assert truncated[game] == boards[game].truncations[actor]
            if over[game]:
                outcomes.add((rewards[game], bool(truncated[game])))
                if mode is SAME:
                    end = infos["final_obs"][game]
                    last = infos["final_info"]["player"][game]
                    agrees(game, end["observation"], end["action_mask"], last)
                    restart(game, infos["player"][game])
    assert {(1.0, False), (0.0, True)} <= outcomes


def test_same_player_again_in_the_dutch_rules() -> None:
    env = BaoVectorEnv(64, ruleset="dutch")
    _, infos = env.reset(seed=0)
    again = 0
    for _ in range(60):
        players = infos["player"]
        _, _, terminated, truncated, infos = env.step(env.sample_legal_actions())
        for game in np.flatnonzero((infos["player"] == players) & ~terminated & ~truncated):
            again += 1
            assert unpack(env.positions[game]).pending is not None
    assert again > 10


@EVERY_RULESET
def test_random_play_to_the_end(ruleset: str) -> None:
    """Every self-play game ends in a win for somebody, well before the ply limit."""
    env = BaoVectorEnv(100, ruleset=ruleset, autoreset_mode=DISABLED)
    env.reset(seed=1)
    rewards = np.zeros(100)
    ended = np.zeros(100, bool)
    for _ in range(MAX_PLIES):
        _, reward, terminated, truncated, _ = env.step(env.sample_legal_actions())
        assert not truncated.any()
        rewards[~ended] += reward[~ended]
        ended |= terminated
        if ended.all():
            break
        if terminated.any():
            env.reset(options={"reset_mask": terminated})
    assert ended.all()
    assert set(rewards) <= {-1.0, 1.0}


# --- against an opponent ------------------------------------------------------------------------


@EVERY_RULESET
@EVERY_MODE
@pytest.mark.parametrize("opponent", ["random", "greedy"])
def test_learner_is_always_to_move(
    ruleset: str, mode: AutoresetMode, opponent: Opponent | None
) -> None:
    env = BaoVectorEnv(40, ruleset=ruleset, opponent=opponent, autoreset_mode=mode)
    seats, outcomes = set(), set()
    for result in run(env, 60):
        observation, infos = result[0], result[-1]
        over = result[2] | result[3] if len(result) == 5 else np.zeros(40, bool)
        shown_end = over & (mode is not SAME)
        assert np.array_equal(observation["action_mask"].any(1), ~shown_end)
        seats |= set(infos["player"].tolist())
        if len(result) == 5:
            outcomes |= set(result[1][over].tolist())
            assert not result[1][~over].any()
    assert seats == {SOUTH, NORTH}
    assert outcomes == {-1.0, 1.0}
    assert np.array_equal(env.seats, infos["player"])


def test_opponent_of_ones_own_is_asked_in_batches() -> None:
    class Recorder(RandomAgent):
        sizes: tuple[int, ...] = ()

        def act(self, positions: Any, masks: Any) -> Any:
            self.sizes += (len(masks),)
            assert masks.all()
            actions = super().act(positions, masks)
            positions[:] = masks[:] = 0  # an opponent may scribble on what it gets
            return actions

    agent = Recorder(3)
    env = BaoVectorEnv(50, opponent=agent, seat="south", opening_plies=0)
    env.reset(seed=0)
    assert agent.sizes == ()
    env.step(env.sample_legal_actions())
    assert agent.sizes == (50,)
    env.reset(options={"seat": ["north"] * 10 + ["south"] * 40})
    assert agent.sizes == (50, 10)


def test_an_opponent_that_breaks_the_rules_is_named() -> None:
    class Cheat:
        def act(self, positions: Any, masks: Any) -> Any:
            return np.zeros(len(masks), np.int64)

    env = BaoVectorEnv(2, opponent=Cheat(), seat="south", opening_plies=0)
    env.reset(seed=0)
    with pytest.raises(RuntimeError, match="the opponent chose action 0, which is illegal"):
        env.step(env.sample_legal_actions())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda actions: actions[:1],
        lambda actions: np.concatenate([actions, actions]),
        lambda actions: actions + 0.5,
        lambda actions: actions[:, None],
        lambda actions: None,
    ],
    ids=["too short", "too long", "floats", "a column", "nothing"],
)
def test_an_opponent_that_answers_otherwise_is_told(spoil: Callable[[Any], Any]) -> None:
    class Careless:
        def act(self, positions: Any, masks: Any) -> Any:
            return spoil(GreedyAgent().act(positions, masks))

    env = BaoVectorEnv(500, opponent=Careless(), seat="south", opening_plies=0)
    env.reset(seed=0)
    with pytest.raises(RuntimeError, match=r"the opponent answered .* one integer for each"):
        env.step(env.sample_legal_actions())


# --- actions ------------------------------------------------------------------------------------


@EVERY_MODE
@pytest.mark.parametrize("opponent", [None, "greedy"])
def test_an_illegal_action_changes_nothing(mode: AutoresetMode, opponent: Opponent | None) -> None:
    env = BaoVectorEnv(30, opponent=opponent, autoreset_mode=mode, max_plies=9)
    rng = np.random.default_rng(0)
    observation, _ = env.reset(seed=0)
    over = np.zeros(30, bool)
    tried = 0
    for _ in range(25):
        if mode is DISABLED and over.any():
            observation, _ = env.reset(options={"reset_mask": over})
        actions = legal_actions(observation["action_mask"], rng)
        for game in (0, 29):
            if (over[game] and mode is not SAME) or not observation["action_mask"][game].any():
                continue
            wrong = actions.copy()
            wrong[game] = observation["action_mask"][game].argmin()
            before = pickle.dumps(env)
            legal = np.flatnonzero(observation["action_mask"][game]).tolist()
            message = f"action {wrong[game]} is illegal in game {game}; legal there: {legal}"
            with pytest.raises(ValueError, match=re.escape(message)):
                env.step(wrong)
            assert pickle.dumps(env) == before
            tried += 1
        observation, _, terminated, truncated, _ = env.step(actions)
        over = terminated | truncated
    assert tried > 20


@pytest.mark.parametrize(
    "actions", [np.zeros(3, int), np.zeros((4, 1), int), np.full(4, 20.0), [None] * 4, 20]
)
def test_actions_of_a_wrong_form(actions: Any) -> None:
    env = BaoVectorEnv(4)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="expected 4 integers"):
        env.step(actions)


def test_actions_of_any_integer_form() -> None:
    for actions in (
        [20, 22, 20, 22],
        (20, 22, 20, 22),
        np.array([20, 22, 20, 22], np.uint8),
        np.array([20, 22, 20, 22] * 2, np.int32)[:4],
        np.array([20, 0, 22, 0, 20, 0, 22, 0])[::2],
        np.broadcast_to(np.int64(20), 4),
    ):
        env = BaoVectorEnv(4)
        env.reset(seed=0)
        env.step(actions)
        assert {unpack(words).ply for words in env.positions} == {1}


def test_sampled_actions() -> None:
    env = BaoVectorEnv(200)
    observation, _ = env.reset(seed=1)
    drawn = [env.sample_legal_actions() for _ in range(40)]
    assert all(observation["action_mask"][np.arange(200), one].all() for one in drawn)
    assert set(np.concatenate(drawn)) == set(np.flatnonzero(observation["action_mask"][0]))
    assert drawn[0].dtype == np.int64 and drawn[0].shape == (200,)
    env.reset(seed=1)
    assert np.array_equal(env.sample_legal_actions(), drawn[0])
    env.reset(seed=2)
    assert not np.array_equal(env.sample_legal_actions(), drawn[0])


# --- seeds, threads, copies ---------------------------------------------------------------------


@EVERY_RULESET
@pytest.mark.parametrize("opponent", [None, "random", "greedy"])
def test_games_do_not_depend_on_the_threads(ruleset: str, opponent: Opponent | None) -> None:
    """Bit by bit the same with one, two and three threads, for a batch of several blocks."""
    runs = []
    for threads in (1, 2, 3):
        env = BaoVectorEnv(1600, ruleset=ruleset, opponent=opponent, threads=threads, max_plies=40)
        results: list[Any] = [env.reset(seed=4)]
        results += [env.step(env.sample_legal_actions()) for _ in range(50)]
        runs.append((results, env.positions))
    assert same(runs[0], runs[1]) and same(runs[0], runs[2])
    assert any(result[2].any() for result in runs[0][0][1:])


def test_seeds_differ_and_unseeded_games_too() -> None:
    def games(*seeds: int | None) -> list[Any]:
        env = BaoVectorEnv(32, opponent="random")
        return [env.reset(seed=seed) for seed in seeds]

    assert same(games(1, None), games(1, None))
    assert not same(games(1)[0], games(2)[0])
    assert not same(games(None)[0], games(None)[0])
    first, second = games(1, None)
    assert not same(first, second)
    env = BaoVectorEnv(8, opponent="random")
    assert same(run(env, 30), run(env, 30))  # a seed starts everything anew


@EVERY_MODE
def test_lots(mode: AutoresetMode) -> None:
    env = BaoVectorEnv(64, ruleset="kujifunza", max_plies=1, autoreset_mode=mode)
    results = run(env, 6)
    starts = []
    for result in results:
        begins = len(result) == 2 or (mode is SAME) or not result[3].any()
        if begins:
            starts.append(result[-1]["player"])
            assert set(starts[-1]) == {SOUTH, NORTH}
    assert len(starts) >= 4
    assert len({tuple(one) for one in starts}) == len(starts)  # each round draws anew
    env = BaoVectorEnv(64, ruleset="kujifunza", first_player="north")
    assert set(env.reset(seed=0)[1]["player"]) == {NORTH}


@EVERY_MODE
@pytest.mark.parametrize("opponent", [None, "random", "greedy"])
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("fresh", [True, False])
def test_copies_keep_the_running_games(
    mode: AutoresetMode, opponent: Opponent | None, duplicate: Callable[[Any], Any], fresh: bool
) -> None:
    env = BaoVectorEnv(
        20, ruleset="kujifunza", opponent=opponent, autoreset_mode=mode, threads=2, copy=fresh
    )

    def go(one: Any) -> Any:
        result = one.step(one.sample_legal_actions())
        if mode is DISABLED and (over := result[2] | result[3]).any():
            result += one.reset(options={"reset_mask": over})
        return copy.deepcopy(result)

    env.reset(seed=3)
    for _ in range(12):
        go(env)
    twin = duplicate(env)
    assert np.array_equal(twin.positions, env.positions)
    mine = [go(env) for _ in range(30)]
    theirs = [go(twin) for _ in range(30)]
    assert same(mine, theirs)
    assert any(result[2].any() for result in mine)


def arrays_of(result: Any) -> list[Any]:
    """All arrays that a reset or a step has handed out."""
    arrays = [*result[0].values(), *result[1:-1], *result[-1].values()]
    return [array for array in arrays if isinstance(array, np.ndarray) and array.dtype != object]


def test_fresh_arrays() -> None:
    env = BaoVectorEnv(5, max_plies=6)
    results: list[Any] = [env.reset(seed=0)]
    results += [env.step(env.sample_legal_actions()) for _ in range(8)]
    kept = copy.deepcopy(results)
    env.step(env.sample_legal_actions())
    assert same(results, kept)
    for step, one in enumerate(results):
        for other in results[:step]:
            assert not any(np.shares_memory(a, b) for a in arrays_of(one) for b in arrays_of(other))


@pytest.mark.parametrize("opponent", [None, "greedy"])
def test_scribbling_does_the_games_no_harm(opponent: Opponent | None) -> None:
    env = BaoVectorEnv(20, opponent=opponent)
    env.reset(seed=0)
    twin = copy.deepcopy(env)
    wins = 0.0
    for _ in range(60):
        mine, theirs = [one.step(one.sample_legal_actions()) for one in (env, twin)]
        assert same(mine, theirs)
        wins += mine[1].sum()
        for array in (*arrays_of(mine), env.positions, env.masks, env.seats, env.action_masks()):
            array.fill(1)
    assert wins


def test_without_copies_two_sets_take_turns() -> None:
    env, other = BaoVectorEnv(5, copy=False), BaoVectorEnv(5)
    env.reset(seed=0)
    other.reset(seed=0)
    seen: list[Any] = []
    kept: list[Any] = []
    for step in range(6):
        seen.append(env.step(env.sample_legal_actions())[0])
        kept.append(other.step(other.sample_legal_actions())[0])
        assert same(seen[step], kept[step])
        if step > 0:  # one step later an observation still stands
            assert same(seen[step - 1], kept[step - 1])
        if step > 1:
            for key in seen[step]:
                assert not np.shares_memory(seen[step][key], seen[step - 1][key])
                assert np.shares_memory(seen[step][key], seen[step - 2][key])
    with pytest.raises(ValueError, match="illegal"):
        env.step(np.zeros(5, int))
    env.step(env.sample_legal_actions())
    assert same(seen[-1], kept[-1])  # a refused step has not used up a set


# --- starts -------------------------------------------------------------------------------------


def test_reset_mask() -> None:
    env = BaoVectorEnv(6, autoreset_mode=DISABLED, max_plies=4)
    env.reset(seed=0)
    for _ in range(3):
        env.step(env.sample_legal_actions())
    mask = np.array([True, False, False, True, False, False])
    options = {"reset_mask": mask}
    before = env.positions
    observation, _ = env.reset(options=options)
    assert options == {"reset_mask": mask}  # the caller's dict is left alone
    assert np.array_equal(env.positions[~mask], before[~mask])
    assert [unpack(words).ply for words in env.positions] == [0, 3, 3, 0, 3, 3]
    fresh = BaoVectorEnv(6)
    assert same(observation["observation"][mask], fresh.reset(seed=0)[0]["observation"][mask])
    _, _, _, truncated, _ = env.step(env.sample_legal_actions())
    assert np.array_equal(truncated, ~mask)
    with pytest.raises(ResetNeeded, match=r"games \[1, 2, 4, 5\] are over"):
        env.step(env.sample_legal_actions())
    env.reset(options={"reset_mask": ~mask})
    env.step(env.sample_legal_actions())


def test_wrong_reset_masks() -> None:
    env = BaoVectorEnv(3)
    with pytest.raises(ResetNeeded, match="first reset"):
        env.reset(options={"reset_mask": np.array([True, False, True])})
    with pytest.raises(ResetNeeded):
        env.step(np.zeros(3, int))
    env.reset(options={"reset_mask": np.ones(3, bool)})
    for mask, error in (
        ([True, False, True], TypeError),
        (np.ones(3, int), TypeError),
        (np.zeros(3, bool), ValueError),
        (np.ones(4, bool), ValueError),
    ):
        with pytest.raises(error, match="reset_mask"):
            env.reset(options={"reset_mask": mask})


def test_start_options() -> None:
    source = raw_env()
    source.reset()
    rng = np.random.default_rng(4)
    for _ in range(9):
        source.step(int(rng.choice(np.flatnonzero(source.last()[0]["action_mask"]))))
    text = format_position(source.position)
    source.reset()
    opening = format_position(source.position)
    env = BaoVectorEnv(3)
    env.reset(seed=0, options={"position": [text, opening, text]})
    assert [format_position(unpack(words)) for words in env.positions] == [text, opening, text]
    env.reset(options={"position": text})
    assert {format_position(unpack(words)) for words in env.positions} == {text}
    mask = np.array([False, True, False])
    env.reset(options={"reset_mask": mask, "position": [text, opening, text]})
    assert [format_position(unpack(words)) for words in env.positions] == [text, opening, text]
    infos = env.reset(options={"first_player": ["north", "south", "north"]})[1]
    assert infos["player"].tolist() == [NORTH, SOUTH, NORTH]
    infos = env.reset(options={"first_player": "north"})[1]
    assert infos["player"].tolist() == [NORTH] * 3
    infos = env.reset(options={"reset_mask": mask, "first_player": "south"})[1]
    assert infos["player"].tolist() == [NORTH, SOUTH, NORTH]
    assert env.reset()[1]["player"].tolist() == [SOUTH] * 3
    env = BaoVectorEnv(3, first_player="north", max_plies=1)
    env.reset(seed=0)
    env.reset(options={"reset_mask": mask, "first_player": "south"})
    infos = env.step(env.sample_legal_actions())[4]
    assert infos["player"].tolist() == [NORTH] * 3  # an option holds for one game
    env = BaoVectorEnv(3, opponent="greedy", seat="north", opening_plies=0)
    infos = env.reset(seed=0, options={"seat": "south", "first_player": "north"})[1]
    assert infos["player"].tolist() == [SOUTH] * 3
    assert [unpack(words).ply for words in env.positions] == [1] * 3
    infos = env.reset(options={"seat": [SOUTH, NORTH, SOUTH]})[1]
    assert infos["player"].tolist() == [SOUTH, NORTH, SOUTH]
    assert [unpack(words).ply for words in env.positions] == [0, 1, 0]
    assert env.reset()[1]["player"].tolist() == [NORTH] * 3


def test_wrong_options() -> None:
    stuck = "1,1,1,1,1,1,1,1/1,1,1,1,1,1,1,1/0,0,0,0,0,0,0,1/0,0,0,0,0,0,0,47 0,0 - S -"
    env = BaoVectorEnv(2)
    env.reset(seed=0)
    env.step(env.sample_legal_actions())
    before = env.positions
    for options, match in (
        ({"position": "x"}, "fields"),
        ({"position": stuck}, "the game is over"),
        ({"position": [stuck]}, "expected one value or 2"),
        ({"position": stuck, "first_player": "south"}, "drop first_player"),
        ({"first_player": "up"}, "first_player='up'"),
        ({"seat": "south"}, "only against an opponent"),
    ):
        with pytest.raises(ValueError, match=match):
            env.reset(options=options)
        assert np.array_equal(env.positions, before)


def test_an_episode_must_give_the_learner_a_turn() -> None:
    env = BaoVectorEnv(2, opponent="greedy", seat="north", max_plies=1)
    with pytest.raises(ValueError, match="before the learner's first action"):
        env.reset()


# --- the rest -----------------------------------------------------------------------------------


def test_uint8_observations_count_seeds() -> None:
    whole, units = BaoVectorEnv(9, observation_dtype=np.uint8), BaoVectorEnv(9)
    for one, other in zip(run(whole, 80), run(units, 80), strict=True):
        counts, numbers = one[0]["observation"], other[0]["observation"]
        assert counts.dtype == np.uint8 and numbers.dtype == np.float32
        assert one[0] in whole.observation_space and other[0] in units.observation_space
        seeds = [*range(34)]
        flags = [*range(34, 52)]
        assert np.array_equal(counts[:, seeds], numbers[:, seeds] * 8)
        assert np.array_equal(counts[:, flags], numbers[:, flags])
        assert (counts[:, seeds].sum(1) == 64).all()


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


@EVERY_MODE
@pytest.mark.parametrize("opponent", [None, "random"])
def test_infos_say_who_won_and_when(mode: AutoresetMode, opponent: Any) -> None:
    env = BaoVectorEnv(8, opponent=opponent, autoreset_mode=mode, max_plies=60)
    ends: set[int] = set()
    for result in run(env, 150)[1:]:
        if len(result) == 2:
            assert "winner" not in result[1]
            continue
        _, rewards, over, cut, infos = result
        if mode is SAME and "final_info" in infos:
            infos = infos["final_info"]
        assert ("winner" in infos) == ("plies" in infos) == (over | cut).any()
        if "winner" not in infos:
            continue
        assert np.array_equal(infos["_winner"], over | cut)
        assert np.array_equal(infos["_plies"], over | cut)
        assert (infos["winner"][cut] == -1).all() and (infos["plies"][cut] == 60).all()
        assert np.isin(infos["winner"][over], [0, 1]).all() and (infos["plies"][over] > 4).all()
        if opponent is not None:
            seats = infos["player"]
            assert np.array_equal(infos["winner"][over] == seats[over], rewards[over] > 0)
        elif mode is not DISABLED:
            odd = infos["plies"] % 2 == 1  # South began, so they played the last ply
            south = odd == (rewards > 0)
            assert np.array_equal(infos["winner"][over] == 0, south[over])
        ends |= set(infos["winner"][over | cut].tolist())
    assert ends == {-1, 0, 1}


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


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"num_envs": 0}, "num_envs=0"),
        ({"threads": 0}, "threads=0"),
        ({"opponent": "alphago"}, "unknown player"),
        ({"ruleset": "chess"}, "unknown rule set"),
        ({"max_plies": 0}, "max_plies"),
        ({"seat": "middle", "opponent": "greedy"}, "seat='middle'"),
        ({"seat": "south"}, "only against an opponent"),
        ({"first_player": "west"}, "first_player='west'"),
        ({"render_mode": "human"}, "ansi"),
        ({"autoreset_mode": "sometimes"}, "sometimes"),
        ({"observation_dtype": np.float64}, "float32 or uint8"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        BaoVectorEnv(**{"num_envs": 2, **arguments})


def test_the_card_tells_the_truth() -> None:
    """The numbers of the class docstring are those of the code."""
    card = BaoVectorEnv.__doc__ or ""
    envs: dict[Any, Any] = {
        kind: BaoVectorEnv(7, observation_dtype=kind) for kind in (np.float32, np.uint8)
    }
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


def test_greedy_beats_random() -> None:
    """Both sides of the interface at once: a learner that plays greedily wins most games."""
    env = BaoVectorEnv(100, opponent="random")
    env.reset(seed=0)
    greedy = GreedyAgent()
    wins = losses = 0
    for _ in range(60):
        _, rewards, _, _, _ = env.step(greedy.act(env.positions, env.masks))
        wins += (rewards > 0).sum()
        losses += (rewards < 0).sum()
    assert wins > 1.5 * losses > 0
