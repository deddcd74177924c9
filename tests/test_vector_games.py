"""The Gymnasium vector environment: the games, against the environments that play one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from bao_env import BaoVectorEnv
from bao_env.bots import GreedyAgent, Opponent, RandomAgent
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import unpack
from bao_env.envs.aec import raw_env
from bao_env.envs.arguments import MAX_PLIES
from tests.rulesets import every_ruleset
from tests.vector import (
    DISABLED,
    EVERY_MODE,
    EVERY_RULESET,
    NEXT,
    SAME,
    legal_actions,
    run,
    same,
)

pytestmark = pytest.mark.filterwarnings("error")


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


def test_greedy_beats_random() -> None:
    """Both sides of the interface at once: a learner that plays greedily wins most games."""
    env = BaoVectorEnv(100, opponent="random")
    env.reset(seed=0)
    greedy = GreedyAgent()
    wins = losses = 0
    for _ in range(60):
        _, rewards, _, _, _ = env.step(greedy.act(env.positions, env.legal))
        wins += (rewards > 0).sum()
        losses += (rewards < 0).sum()
    assert wins > 1.5 * losses > 0


# --- ends ---------------------------------------------------------------------------------------


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


# --- seeds and threads --------------------------------------------------------------------------


@every_ruleset("zanzibar", "dutch")
@pytest.mark.parametrize("opponent", [None, "random", "greedy"])
def test_games_do_not_depend_on_the_threads(ruleset: str, opponent: Opponent | None) -> None:
    """Bit by bit the same with one, two and three threads, for a batch of several blocks."""
    runs = []
    for threads in (1, 2, 3):
        env = BaoVectorEnv(1100, ruleset=ruleset, opponent=opponent, threads=threads, max_plies=40)
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
