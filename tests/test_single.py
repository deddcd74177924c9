"""The Gymnasium environment with one learner."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any, get_args

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

import agents
from bao_env import RULESETS, BaoEnv, Board, IllegalMoveError
from bao_env.bots import BotName, GreedyAgent, Opponent, RandomAgent, get_agent
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.envs.aec import raw_env
from bao_env.envs.arguments import MAX_PLIES
from bao_env.notation import format_position

pytestmark = pytest.mark.filterwarnings("error")

EVERY_RULESET = pytest.mark.parametrize("ruleset", list(RULESETS))
ID = "bao_env:bao/Bao-v0"


class LowestAction:
    """An opponent of one's own making; keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, ...]] = []

    def act(self, positions: Any, masks: Any) -> Any:
        self.asked.append(positions.shape)
        actions = [int(mask & -mask).bit_length() - 1 for mask in masks.astype(object)]
        positions[:] = 0  # an opponent may scribble on what it gets
        return np.array(actions)


@pytest.fixture
def headless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window without a screen, and no waiting between frames."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setitem(BaoEnv.metadata, "render_fps", 10_000)


def random_action(mask: Any, rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(mask)))


def play_to_the_end(env: BaoEnv, rng: np.random.Generator) -> list[Any]:
    """Actions, and the last result of step()."""
    actions, result = [], None
    while result is None or not (result[2] or result[3]):
        actions.append(random_action(env.action_masks(), rng))
        result = env.step(actions[-1])
    return [actions, result]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return np.array_equal(one, other)


# --- Gymnasium's checks -------------------------------------------------------------------------


@EVERY_RULESET
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("opponent", ["random", "greedy"])
def test_check_env(ruleset: str, flat: bool, opponent: Opponent, headless: None) -> None:
    env = gymnasium.make(
        ID, ruleset=ruleset, flat=flat, opponent=opponent, render_mode="ansi"
    ).unwrapped
    assert isinstance(env, BaoEnv)
    check_env(env)


def test_make() -> None:
    env = gymnasium.make(ID, opponent="greedy")
    observation, info = env.reset(seed=1)
    assert env.spec is not None and env.spec.max_episode_steps is None
    for _ in range(300):
        assert observation in env.observation_space
        action = env.action_space.sample(info["action_mask"])
        assert info["action_mask"][action]
        observation, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            observation, info = env.reset()


# --- turns, masks, rewards ----------------------------------------------------------------------


@EVERY_RULESET
@pytest.mark.parametrize("opponent", ["random", "greedy"])
def test_whole_games(ruleset: str, opponent: Opponent) -> None:
    rng = np.random.default_rng(1)
    env: Any = BaoEnv(opponent, ruleset=ruleset)
    outcomes = set()
    for seed in range(12):
        observation, info = env.reset(seed=seed)
        terminated = False
        while not terminated:
            mask = info["action_mask"]
            assert env.position.mover == env.seat == info["player"]
            assert mask.any() and mask.dtype == np.int8
            assert np.array_equal(mask, observation["action_mask"])
            assert np.array_equal(mask, env.action_masks())
            assert not np.shares_memory(mask, observation["action_mask"])
            bits = int(env.legal[0])
            assert [bits >> a & 1 for a in range(64)] == mask.tolist()
            observation, reward, terminated, truncated, info = env.step(random_action(mask, rng))
            assert truncated is False
            assert reward == 0 or terminated
        assert reward in (-1, 1) and not info["action_mask"].any()
        assert "illegal" not in info
        outcomes.add(reward)
    assert outcomes == {-1, 1} or opponent == "greedy"


def test_plays_the_game_of_the_aec_environment() -> None:
    """The same actions in the AEC environment lead to the same position and rewards."""
    rng = np.random.default_rng(6)
    for seed, ruleset in enumerate(["zanzibar", "dutch"] * 3):
        learner = BaoEnv("greedy", ruleset=ruleset, seat=seed % 2, opening_plies=0)
        learner.reset(seed=seed)
        actions, result = play_to_the_end(learner, rng)
        board = raw_env(ruleset=ruleset)
        board.reset()
        greedy = GreedyAgent(ruleset)
        while not any(board.terminations.values()):
            if board.agent_selection == f"player_{seed % 2}":
                board.step(actions.pop(0))
            else:
                board.step(greedy.act(board.positions, board.masks)[0])
        assert not actions
        assert board.position == learner.position
        assert board.rewards[f"player_{seed % 2}"] == result[1]
        expected = board.observe(f"player_{seed % 2}")["observation"]
        assert np.array_equal(result[0]["observation"], expected)


def test_learner_may_act_twice_in_the_dutch_rules() -> None:
    env = BaoEnv("greedy", ruleset="dutch", seat="south")
    rng = np.random.default_rng(0)
    repeated = 0
    for seed in range(20):
        _, info = env.reset(seed=seed)
        over = False
        while not over:
            if env.position.pending is not None:
                repeated += 1
                assert len(np.flatnonzero(info["action_mask"])) <= 4
            plies = env.position.ply
            _, _, terminated, truncated, info = env.step(random_action(info["action_mask"], rng))
            over = terminated or truncated
            if not over and env.position.pending is not None:
                assert env.position.ply == plies + 1  # the opponent has not moved between
    assert repeated


def test_opponent_of_ones_own() -> None:
    agent = LowestAction()
    env = BaoEnv(agent, seat="north", opening_plies=0)
    env.reset()
    assert agent.asked == [(1, 6)]
    _, result = play_to_the_end(env, np.random.default_rng(0))
    assert result[2] and len(agent.asked) > 5


def test_an_opponent_that_breaks_the_rules_is_named() -> None:
    class Cheat:
        def act(self, positions: Any, masks: Any) -> Any:
            return np.array([0])

    env = BaoEnv(Cheat(), seat="south", opening_plies=0)
    env.reset()
    with pytest.raises(RuntimeError, match=r"the opponent's action 0 .* illegal"):
        env.step(20)


@pytest.mark.parametrize("answer", [[], [1, 2], [26.5], 26, None])
def test_an_opponent_that_answers_otherwise_is_told(answer: Any) -> None:
    class Careless:
        def act(self, positions: Any, masks: Any) -> Any:
            return answer

    env = BaoEnv(Careless(), seat="south", opening_plies=0)
    env.reset()
    with pytest.raises(RuntimeError, match=r"the opponent answered .* one integer for each"):
        env.step(int(env.action_masks().argmax()))


def test_illegal_action_loses() -> None:
    env: Any = BaoEnv("greedy")
    for seed in range(4):
        env.reset(seed=seed)
        observation, reward, terminated, truncated, info = env.step(63)
        assert (reward, terminated, truncated) == (-1.0, True, False)
        assert info["illegal"] is True
        assert not observation["action_mask"].any() and not env.action_masks().any()
        with pytest.raises(ResetNeeded):
            env.step(0)


def test_illegal_action_raises_on_demand() -> None:
    env = BaoEnv("greedy", illegal="raise", seat="south", opening_plies=0)
    env.reset()
    with pytest.raises(IllegalMoveError, match=r"legal: 20 \(A6L\), 22 \(A6R\)"):
        env.step(0)
    assert env.position.ply == 0
    assert env.step(20)[2] is False


@pytest.mark.parametrize("illegal", ["lose", "raise"])
def test_actions_that_are_no_integers(illegal: str) -> None:
    env = BaoEnv("greedy", illegal=illegal)
    env.reset()
    with pytest.raises(TypeError):
        env.step(1.0)  # type: ignore[arg-type]


@EVERY_RULESET
def test_truncation(ruleset: str) -> None:
    rng = np.random.default_rng(0)
    seen = set()
    for seed in range(20):
        limit = 5 + seed % 2
        env = BaoEnv("greedy", ruleset=ruleset, max_plies=limit)
        env.reset(seed=seed)
        _, (observation, reward, terminated, truncated, _) = play_to_the_end(env, rng)
        if terminated:
            assert env.position.ply <= limit and not truncated
            continue
        assert (reward, truncated) == (0.0, True)
        assert env.position.ply == limit
        learner_next = env.position.mover == env.seat
        assert observation["action_mask"].any() == learner_next
        seen.add(learner_next)
    assert seen == {False, True}


def test_an_episode_must_give_the_learner_a_turn() -> None:
    env = BaoEnv("greedy", max_plies=1, seat="north")
    with pytest.raises(ValueError, match="before the learner's first action"):
        env.reset()
    with pytest.raises(ResetNeeded):
        env.step(20)


@EVERY_RULESET
@pytest.mark.parametrize("first", [SOUTH, NORTH])
def test_no_opening_is_lost_at_once(ruleset: str, first: int) -> None:
    """So an opponent that begins leaves the learner a turn in every named rule set."""
    game = raw_env(ruleset=ruleset, first_player=first)
    game.reset()
    for action in np.flatnonzero(game.observe(game.agent_selection)["action_mask"]):
        other = copy.deepcopy(game)
        other.step(action)
        assert not any(other.terminations.values())


# --- starts and seeds ---------------------------------------------------------------------------


def test_seats() -> None:
    env = BaoEnv("greedy")
    env.reset(seed=0)
    drawn = []
    for _ in range(30):
        env.reset()
        drawn.append(env.seat)
    assert set(drawn) == {SOUTH, NORTH}
    for seat, number in (("south", SOUTH), ("north", NORTH), (1, NORTH)):
        assert BaoEnv("greedy", seat=seat).reset(seed=1)[1]["player"] == number
        assert env.reset(seed=1, options={"seat": seat})[1]["player"] == number
        fixed = BaoEnv("greedy", seat="south")
        assert fixed.reset(options={"seat": seat})[1]["player"] == number
        assert fixed.reset()[1]["player"] == SOUTH


def test_first_player() -> None:
    env = BaoEnv("greedy", seat="south", first_player="north", opening_plies=0)
    env.reset()
    assert env.position.ply == 1
    env.reset(options={"first_player": "south"})
    assert env.position.ply == 0
    lots = BaoEnv("greedy", seat="south", ruleset="kujifunza", opening_plies=0)
    lots.reset(seed=0)
    plies = set()
    for _ in range(20):
        lots.reset()
        plies.add(lots.position.ply)
    assert plies == {0, 1}


def test_start_at_a_position() -> None:
    source = raw_env()
    source.reset()
    rng = np.random.default_rng(4)
    for _ in range(9):
        source.step(random_action(source.last()[0]["action_mask"], rng))
    text = format_position(source.position)
    env = BaoEnv("greedy")
    env.reset(options={"position": text, "seat": "north"})
    assert format_position(env.position) == text
    env.reset(options={"position": text, "seat": "south"})
    assert env.position.ply == 1 and format_position(env.position) != text


@EVERY_RULESET
@pytest.mark.parametrize("opponent", ["random", "greedy"])
def test_same_seed_same_episodes(ruleset: str, opponent: Opponent) -> None:
    def episodes() -> list[Any]:
        env = BaoEnv(opponent, ruleset=ruleset)
        rng = np.random.default_rng(0)
        results: list[Any] = [env.reset(seed=9)]
        for _ in range(60):
            results.append(env.step(random_action(env.action_masks(), rng)))
            if results[-1][2] or results[-1][3]:
                results.append(env.reset())
        return results

    assert all(map(same, episodes(), episodes()))


def test_seeds_differ() -> None:
    def plies(seed: int | None) -> Any:
        env = BaoEnv("random", seat="north")
        env.reset(seed=seed)
        return play_to_the_end(env, np.random.default_rng(0))[0]

    assert plies(1) == plies(1)
    assert plies(1) != plies(2)
    assert plies(None) != plies(None)  # unseeded random bots do not all play the same


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("opponent", ["random", "greedy", RandomAgent(5)])
def test_copies_keep_the_running_game(duplicate: Callable[[Any], Any], opponent: Opponent) -> None:
    rng = np.random.default_rng(8)
    env = BaoEnv(opponent)
    env.reset(seed=3)
    for _ in range(5):
        env.step(random_action(env.action_masks(), rng))
    twin = duplicate(env)
    assert twin.position == env.position
    actions, result = play_to_the_end(env, rng)
    for action in actions:
        last = twin.step(action)
    assert same(last, result)
    assert twin.position == env.position
    assert same(twin.reset(), env.reset())


# --- the rest -----------------------------------------------------------------------------------


def test_observations_are_fresh_and_flat_is_the_same_board() -> None:
    full: Any = BaoEnv("greedy", seat=0)
    flat: Any = BaoEnv("greedy", seat=0, flat=True)
    seen = [full.reset(seed=1)[0]]
    assert np.array_equal(flat.reset(seed=1)[0], seen[0]["observation"])
    rng = np.random.default_rng(0)
    for _ in range(4):
        action = random_action(full.action_masks(), rng)
        seen.append(full.step(action)[0])
        board = flat.step(action)[0]
        assert board in flat.observation_space
        assert np.array_equal(board, seen[-1]["observation"])
    for one in range(5):
        for other in range(one):
            for key in seen[one]:
                assert not np.shares_memory(seen[one][key], seen[other][key])


def test_step_needs_a_reset() -> None:
    with pytest.raises(ResetNeeded):
        BaoEnv().step(20)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"opponent": "alphago"}, "unknown player"),
        ({"ruleset": "chess"}, "unknown rule set"),
        ({"max_plies": 0}, "max_plies"),
        ({"seat": "middle"}, "seat='middle'"),
        ({"first_player": "west"}, "first_player='west'"),
        ({"render_mode": "video"}, "human, ansi, rgb_array"),
        ({"illegal": "ignore"}, "'lose' or 'raise'"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        BaoEnv(**arguments)


def test_bots_by_name() -> None:
    """The names that the type allows are those that the function knows."""
    kinds = {name: type(get_agent(name)) for name in get_args(BotName)}
    assert kinds == {"random": RandomAgent, "greedy": GreedyAgent}
    agent = LowestAction()
    assert get_agent(agent) is agent


def test_a_function_as_opponent() -> None:
    asked = []

    def lowest(positions: Any, masks: Any) -> Any:
        asked.append(positions.shape)
        return LowestAction().act(positions, masks)

    env = BaoEnv(lowest, seat="north", opening_plies=0)
    env.reset(seed=1)
    assert asked == [(1, 6)]
    assert env.position.ply == 1


def test_players_of_the_checkout_by_name() -> None:
    env = BaoEnv("alphabeta:2", "dutch", seat="north", opening_plies=0)
    env.reset(seed=0)
    start, after = Board("dutch"), env.position
    start.push(agents.load("alphabeta:2", ruleset="dutch").choose(start))
    assert start.position == after


def test_without_the_checkout_the_bots_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agents.registry", None)
    with pytest.raises(ValueError, match="unknown opponent") as caught:
        BaoEnv("alphabeta:2")
    message = str(caught.value)
    assert "\n" not in message
    assert "'random', 'greedy'" in message
    assert "did you" not in message
    assert "package agents of a checkout" in message
    with pytest.raises(ValueError, match=r"did you mean 'greedy'\?"):
        BaoEnv("gredy")


@pytest.mark.parametrize(
    ("typo", "meant"), [("gredy", "greedy"), ("rnadom", "random"), ("Random", "random")]
)
def test_a_misspelt_opponent_is_guessed(typo: str, meant: str) -> None:
    with pytest.raises(ValueError, match=rf"'{typo}' \(did you mean '{meant}'\?\)"):
        BaoEnv(typo)


@pytest.mark.parametrize("opponent", [5, object(), GreedyAgent.act.__name__.encode(), ()])
def test_what_is_no_opponent_is_refused(opponent: Any) -> None:
    with pytest.raises(ValueError, match=r"opponent=.*expected a name, an object"):
        BaoEnv(opponent)


def test_wrong_options() -> None:
    env = BaoEnv("greedy")
    for options, match in (
        ({"seat": "up"}, "seat='up'"),
        ({"first_player": 3}, "first_player=3"),
        ({"position": "x"}, "fields"),
    ):
        with pytest.raises(ValueError, match=match):
            env.reset(options=options)


def test_pictures() -> None:
    env: Any = BaoEnv("greedy", render_mode="ansi", seat="south", opening_plies=0)
    env.reset()
    assert "South to move" in env.render()
    env.step(20)
    assert "South to move" in env.render()
    env.step(63)
    assert "North wins" in env.render()
    env = BaoEnv("greedy")
    env.reset()
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


def test_the_card_tells_the_truth() -> None:
    """The numbers of the class docstring are those of the code."""
    card = BaoEnv.__doc__ or ""
    env: Any = BaoEnv()
    board, mask = env.observation_space["observation"], env.observation_space["action_mask"]
    assert re.findall(r"Discrete\((\d+)\)", card) == [str(env.action_space.n)]
    assert re.findall(r"float32\[(\d+)\] from (\d+) to (\d+)", card) == [
        (str(board.shape[0]), f"{board.low.min():g}", f"{board.high.max():g}")
    ]
    assert set(re.findall(r"(?:int8|bool)\[(\d+)\]", card)) == {str(mask.shape[0])}
    assert re.findall(r"after (\d+) plies", card) == [str(MAX_PLIES)]
    assert "v0: first version" in card and ID.endswith("-v0")


def test_gymnasiums_check_passes_without_pygame() -> None:
    """It renders in every mode that the environment names."""
    code = """if True:
        import sys
        sys.modules["pygame"] = None
        import gymnasium, warnings
        from gymnasium.error import DependencyNotInstalled
        from gymnasium.utils.env_checker import check_env
        warnings.simplefilter("error")
        check_env(gymnasium.make("bao_env:bao/Bao-v0", render_mode="ansi").unwrapped)
        import bao_env
        for make in (bao_env.BaoEnv, bao_env.BaoVectorEnv, bao_env.raw_env):
            assert make.metadata["render_modes"] == ["ansi"]
            try:
                make(render_mode="rgb_array")
            except DependencyNotInstalled as error:
                assert "pip install pygame" in str(error)
            else:
                raise AssertionError
    """
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
