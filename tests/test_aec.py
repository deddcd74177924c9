"""The PettingZoo environment: PettingZoo's own checks, and what they leave unchecked."""

from __future__ import annotations

import copy
import itertools
import pickle
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import api_test, performance_benchmark, seed_test

from bao_env import RULESETS, bao_v0
from bao_env.board import Board, IllegalMoveError
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import META, PLY, unpack
from bao_env.envs.aec import env, raw_env
from bao_env.envs.arguments import MAX_PLIES
from bao_env.notation import NotationError, format_position
from bao_env.observation import OBSERVATION_SIZE, SEED_UNIT, observe

pytestmark = pytest.mark.filterwarnings("error")

# api_test warns about every dict observation outside PettingZoo's own list of environments.
DICT_OBSERVATION = (
    "Observation is not a NumPy array",
    "Observation space for each agent probably should be gymnasium.spaces.box",
)
AGENTS = ["player_0", "player_1"]
EVERY_RULESET = pytest.mark.parametrize("ruleset", list(RULESETS))


def random_action(game: raw_env, rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(game.last()[0]["action_mask"])))


def play_to_the_end(game: raw_env, rng: np.random.Generator) -> list[int]:
    """Random legal actions until nobody is alive; the dead steps are left to the caller."""
    actions = []
    while not any(game.last()[2:4]):
        actions.append(random_action(game, rng))
        game.step(actions[-1])
    return actions


def play_plies(game: raw_env, plies: int, rng: np.random.Generator) -> None:
    """Random legal actions from a fresh game on, a new one where it ends too soon."""
    while game.position.ply < plies:
        if any(game.terminations.values()):
            game.reset()
        game.step(random_action(game, rng))


def state_of(game: raw_env) -> tuple[Any, ...]:
    return (
        game.positions.tolist(),
        game.masks.tolist(),
        game.agent_selection,
        dict(game.rewards),
        dict(game._cumulative_rewards),
        dict(game.terminations),
        dict(game.truncations),
    )


# --- PettingZoo's checks ------------------------------------------------------------------------


@EVERY_RULESET
@pytest.mark.parametrize("make", [env, raw_env])
def test_api(make: Callable[..., Any], ruleset: str) -> None:
    with warnings.catch_warnings():
        for message in DICT_OBSERVATION:
            warnings.filterwarnings("ignore", message)
        api_test(make(ruleset=ruleset), num_cycles=150)


@EVERY_RULESET
def test_seed(ruleset: str) -> None:
    seed_test(lambda: env(ruleset=ruleset), num_cycles=100)


def test_performance_benchmark_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ticks = itertools.count()
    monkeypatch.setattr("time.time", lambda: float(next(ticks)))
    performance_benchmark(env())
    assert "turns per second" in capsys.readouterr().out


# --- actions and masks --------------------------------------------------------------------------


@EVERY_RULESET
def test_mask_is_legality(ruleset: str) -> None:
    rng = np.random.default_rng(5)
    game = raw_env(ruleset=ruleset)
    for plies in (0, 7, 30):
        game.reset(seed=1)
        play_plies(game, plies, rng)
        mask = game.observe(game.agent_selection)["action_mask"]
        board = Board.from_text(format_position(game.position), ruleset)
        assert np.flatnonzero(mask).tolist() == board.legal_actions
        before = state_of(game)
        for action in range(NUM_ACTIONS):
            if mask[action]:
                other = copy.deepcopy(game)
                other.step(action)
                assert other.position.ply == plies + 1
            else:
                with pytest.raises(IllegalMoveError, match=f"action {action} .*legal: "):
                    game.step(action)
                assert state_of(game) == before


@pytest.mark.parametrize("action", [-1, NUM_ACTIONS, 10**30])
def test_actions_outside_the_space_are_illegal(action: Any) -> None:
    game = raw_env()
    game.reset()
    with pytest.raises(ValueError, match=r"legal: 20 \(A6L\), 22 \(A6R\)"):
        game.step(action)
    assert game.position.ply == 0


@pytest.mark.parametrize("action", [None, 20.0, "20"])
def test_actions_that_are_no_integers(action: Any) -> None:
    game = raw_env()
    game.reset()
    with pytest.raises(TypeError):
        game.step(action)
    assert game.position.ply == 0


def test_any_integer_type_will_do() -> None:
    for kind in (int, np.int8, np.int32, np.int64, np.uint64):
        game = raw_env()
        game.reset()
        game.step(kind(20))
        assert game.position.ply == 1


def test_wrapped_environment_ends_on_an_illegal_action() -> None:
    game = env()
    game.reset()
    game.last()
    game.step(0)  # 20 and 22 would be legal
    assert game.rewards == {"player_0": -1.0, "player_1": 0}
    assert all(game.terminations.values())
    assert not game.observe("player_0")["action_mask"].any()
    game.step(None)
    game.step(None)
    assert game.agents == []


# --- observations -------------------------------------------------------------------------------


@EVERY_RULESET
def test_observations_of_both_seats(ruleset: str) -> None:
    rng = np.random.default_rng(0)
    game = raw_env(ruleset=ruleset)
    for seed in range(3):
        game.reset(seed=seed)
        while True:
            views = [game.observe(agent) for agent in AGENTS]
            expected = np.empty((2, OBSERVATION_SIZE), np.float32)
            observe(np.repeat(game.positions, 2, 0), expected, np.array([SOUTH, NORTH], np.int8))
            for seat, agent in enumerate(AGENTS):
                assert np.array_equal(views[seat]["observation"], expected[seat])
                assert views[seat] in game.observation_space(agent)
                if game.agent_selection != agent:
                    assert not views[seat]["action_mask"].any()
            if any(game.terminations.values()):
                break
            assert views[AGENTS.index(game.agent_selection)]["action_mask"].any()
            game.step(random_action(game, rng))


def test_arrays_are_fresh() -> None:
    game = raw_env()
    game.reset()
    for agent in AGENTS:
        first, second = game.observe(agent), game.observe(agent)
        for key in first:
            assert not np.shares_memory(first[key], second[key])
            first[key][:] = 1
        third = game.observe(agent)
        assert all(np.array_equal(second[key], third[key]) for key in third)
    before = state_of(game)
    game.positions[:] = 0
    game.masks[:] = 0
    assert state_of(game) == before


def test_spaces_are_the_same_objects_each_time() -> None:
    game = raw_env()
    for agent in AGENTS:
        assert game.observation_space(agent) is game.observation_space(agent)
        assert game.action_space(agent) is game.action_space(agent)


# --- turns --------------------------------------------------------------------------------------


@EVERY_RULESET
def test_the_position_says_who_acts(ruleset: str) -> None:
    rng = np.random.default_rng(3)
    game = raw_env(ruleset=ruleset)
    repeated = 0
    for seed in range(10):
        game.reset(seed=seed)
        last = None
        while not any(game.terminations.values()):
            position = game.position
            assert game.agent_selection == AGENTS[position.mover]
            if position.pending is not None:
                assert game.agent_selection == last
                repeated += 1
            else:
                assert game.agent_selection != last
            last = game.agent_selection
            game.step(random_action(game, rng))
    assert (repeated > 0) == (RULESETS[ruleset].capture_side == "free")


# --- rewards and ends ---------------------------------------------------------------------------


@EVERY_RULESET
def test_rewards_come_on_the_last_ply_for_both(ruleset: str) -> None:
    rng = np.random.default_rng(11)
    game = raw_env(ruleset=ruleset)
    winners = set()
    for seed in range(8):
        game.reset(seed=seed)
        while not any(game.terminations.values()):
            assert game.rewards == {"player_0": 0, "player_1": 0}
            assert game.last()[1] == 0
            game.step(random_action(game, rng))
        assert sorted(game.rewards.values()) == [-1, 1]
        assert all(game.terminations.values()) and not any(game.truncations.values())
        rewards = dict(game.rewards)
        loser = min(rewards, key=rewards.__getitem__)
        winners.add(max(rewards, key=rewards.__getitem__))
        position = game.position
        lost_front = not any(position.front[AGENTS.index(loser)])
        lone_kichwa = RULESETS[ruleset].lone_kichwa_takasa == "loses"
        assert lost_front or AGENTS[position.mover] == loser or lone_kichwa
        seen = {}
        for agent in game.agent_iter():
            _, reward, terminated, truncated, _ = game.last()
            seen[agent] = reward
            assert terminated is True and truncated is False
            with pytest.raises(ValueError, match="None"):
                game.step(0)
            game.step(None)
        assert seen == rewards
        assert game.agents == []
    assert winners == set(AGENTS)


def test_reset_amid_dead_steps() -> None:
    game = raw_env()
    rng = np.random.default_rng(0)
    game.reset()
    play_to_the_end(game, rng)
    game.step(None)
    game.reset()
    fresh = raw_env()
    fresh.reset()
    assert game._skip_agent_selection is fresh._skip_agent_selection is None
    assert state_of(game) == state_of(fresh)
    assert game.agents == fresh.agents == AGENTS


@EVERY_RULESET
def test_truncation(ruleset: str) -> None:
    rng = np.random.default_rng(2)
    game = raw_env(ruleset=ruleset, max_plies=6)
    game.reset(seed=0)
    actions = play_to_the_end(game, rng)
    assert len(actions) == 6
    assert game.truncations == dict.fromkeys(AGENTS, True)
    assert game.terminations == dict.fromkeys(AGENTS, False)
    assert game.rewards == {"player_0": 0, "player_1": 0}
    for _ in game.agent_iter():
        assert game.last()[1:4] == (0, False, True)
        game.step(None)


def test_a_win_on_the_last_allowed_ply_is_a_win() -> None:
    game = raw_env()
    game.reset()
    actions = play_to_the_end(game, np.random.default_rng(1))
    for limit in (len(actions), len(actions) - 1):
        game = raw_env(max_plies=limit)
        game.reset()
        for action in actions[:limit]:
            game.step(action)
        won = limit == len(actions)
        assert game.terminations == dict.fromkeys(AGENTS, won)
        assert game.truncations == dict.fromkeys(AGENTS, not won)


# --- starts -------------------------------------------------------------------------------------


def test_south_begins_unless_told_otherwise() -> None:
    game = raw_env()
    for seed in range(4):
        game.reset(seed=seed)
        assert game.agent_selection == "player_0"
    game.reset(options={"first_player": "north"})
    assert game.agent_selection == "player_1"
    game.reset()
    assert game.agent_selection == "player_0"
    game = raw_env(first_player="north")
    game.reset()
    assert game.agent_selection == "player_1"
    game.reset(options={"first_player": "south"})
    assert game.agent_selection == "player_0"


def test_the_lot_is_seeded() -> None:
    def starts() -> list[str]:
        game = raw_env(ruleset="kujifunza")
        game.reset(seed=7)
        drawn = [game.agent_selection]
        for _ in range(30):
            game.reset()
            drawn.append(game.agent_selection)
        return drawn

    assert starts() == starts()
    assert set(starts()) == set(AGENTS)
    game = raw_env(ruleset="kujifunza", first_player="south")
    for seed in range(8):
        game.reset(seed=seed)
        assert game.agent_selection == "player_0"


def test_start_at_a_position() -> None:
    game = raw_env()
    game.reset()
    play_plies(game, 9, np.random.default_rng(4))
    text = format_position(game.position)
    other = raw_env()
    other.reset(options={"position": text})
    assert format_position(other.position) == text
    assert other.position.ply == 0
    assert other.agent_selection == game.agent_selection == "player_1"
    for agent in AGENTS:
        assert np.array_equal(
            other.observe(agent)["action_mask"], game.observe(agent)["action_mask"]
        )
    other.reset()
    assert other.position.ply == 0 and format_position(other.position) != text


def test_wrong_options_leave_the_game_as_it_was() -> None:
    stuck = "1,1,1,1,1,1,1,1/1,1,1,1,1,1,1,1/0,0,0,0,0,0,0,1/0,0,0,0,0,0,0,47 0,0 - S -"
    game = raw_env()
    game.reset()
    game.step(20)
    before = state_of(game)
    error: type[ValueError]
    for options, error, match in (
        ({"position": "nonsense"}, NotationError, "fields"),
        ({"position": stuck}, ValueError, "the game is over"),
        ({"first_player": "east"}, ValueError, "expected 'south' or 'north'"),
        ({"position": stuck, "first_player": "south"}, ValueError, "drop first_player"),
    ):
        with pytest.raises(error, match=match):
            game.reset(options=options)
        assert state_of(game) == before


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"ruleset": "chess"}, "unknown rule set"),
        ({"max_plies": 0}, "max_plies"),
        ({"max_plies": 1.5}, "max_plies"),
        ({"render_mode": "video"}, "human, ansi, rgb_array"),
        ({"first_player": "west"}, "first_player='west'"),
        ({"first_player": [0]}, "first_player"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        raw_env(**arguments)


# --- copies, pictures, names --------------------------------------------------------------------


@pytest.mark.parametrize("make", [env, raw_env])
@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda game: pickle.loads(pickle.dumps(game))]
)
def test_copies_keep_the_running_game(
    make: Callable[..., Any], duplicate: Callable[[Any], Any]
) -> None:
    rng = np.random.default_rng(8)
    game = make(ruleset="kujifunza")
    game.reset(seed=3)
    play_plies(game, 12, rng)
    twin = duplicate(game)
    assert twin.unwrapped.position == game.unwrapped.position
    actions = play_to_the_end(game, rng)
    assert twin.unwrapped.position.ply == 12  # the copy did not move along
    for action in actions:
        twin.last()
        twin.step(action)
    assert state_of(twin.unwrapped) == state_of(game.unwrapped)
    for _ in range(5):  # and its lots are the same
        game.reset()
        twin.reset()
        assert twin.agent_selection == game.agent_selection


def test_pictures() -> None:
    game: Any = raw_env(render_mode="ansi")
    game.reset()
    assert "South to move" in game.render()
    play_to_the_end(game, np.random.default_rng(0))
    winner = ["South", "North"][AGENTS.index(max(game.rewards, key=game.rewards.__getitem__))]
    assert f"{winner} wins" in game.render()
    game = raw_env(render_mode="ansi", max_plies=1)
    game.reset()
    game.step(20)
    assert "cut short after 1 plies" in game.render()
    game = raw_env()
    game.reset()
    with pytest.warns(UserWarning, match="render_mode"):
        assert game.render() is None


def test_versioned_module() -> None:
    assert bao_v0.env is env and bao_v0.raw_env is raw_env
    assert str(raw_env()) == raw_env.metadata["name"] == "bao_v0"
    assert raw_env.metadata["is_parallelizable"] is False


def test_the_card_tells_the_truth() -> None:
    """The numbers of the class docstring are those of the code."""
    card = raw_env.__doc__ or ""
    game: Any = raw_env()
    space = game.observation_space("player_0")
    assert re.findall(r"Discrete\((\d+)\)", card) == [str(game.action_space("player_0").n)]
    board, mask = space["observation"], space["action_mask"]
    assert re.findall(r"float32\[(\d+)\] from (\d+) to (\d+)", card) == [
        (str(board.shape[0]), f"{board.low.min():g}", f"{board.high.max():g}")
    ]
    assert re.findall(r"int8\[(\d+)\]", card) == [str(mask.shape[0])]
    assert re.findall(r"After (\d+) plies", card) == [str(MAX_PLIES)]
    assert SEED_UNIT == 8 and "of eight seeds" in card
    assert f"v{game.metadata['name'].rpartition('_v')[2]}: first version" in card
    assert f"``{game.possible_agents[SOUTH]}`` (South)" in card
    assert f"``{game.possible_agents[NORTH]}`` (North)" in card


def test_packed_position() -> None:
    game = raw_env()
    game.reset()
    game.step(20)
    words = game.positions[0]
    assert unpack(words) == game.position
    assert int(words[PLY]) == 1 and int(words[META]) >> 18 & 1 == NORTH
