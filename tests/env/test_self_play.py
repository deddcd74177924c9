"""Test policies as agents, and pools of past policies as opponents."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from multiprocessing import get_all_start_methods, get_context
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from bao_agents.arena.pairs import play_match
from bao_env import (
    RULESETS,
    BaoEnv,
    BaoVectorEnv,
    Board,
    GreedyAgent,
    OpponentPool,
    PolicyAgent,
    RandomAgent,
)
from bao_env.observation import OBSERVATIONS
from tests.positions import OPENING


def first_legal(observations: Any, masks: Any) -> Any:
    return masks.argmax(axis=1)


def last_legal(observations: Any, masks: Any) -> Any:
    return masks.shape[1] - 1 - masks[:, ::-1].argmax(axis=1)


@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize("ruleset", ["zanzibar", "malawi"])
def test_a_policy_sees_what_the_environments_show(observation: str, ruleset: str) -> None:
    arguments: Any = {"observation": observation, "ruleset": ruleset, "dtype": np.uint8}
    envs = BaoVectorEnv(20, opponent=None, autoreset_mode="SameStep", **arguments)
    observations, _ = envs.reset(seed=1)
    policy_view: dict[str, Any] = {}

    def choose(observations: Any, masks: Any) -> Any:
        assert masks.dtype == np.bool_
        policy_view.update(observation=observations, action_mask=masks.view(np.int8))
        return masks.argmax(axis=1).astype(np.uint8)

    agent = PolicyAgent(choose, **arguments)
    for _ in range(12):
        actions = agent.act(envs.positions, envs.legal)
        assert actions.dtype == np.int64
        assert envs.action_masks()[np.arange(20), actions].all()
        np.testing.assert_equal(policy_view, observations)
        observations, *_ = envs.step(envs.sample_legal_actions())


def test_a_full_pool_keeps_the_first_and_the_newest() -> None:
    pool = OpponentPool("greedy", size=4, seed=3)
    added = [RandomAgent(seed) for seed in range(30)]
    ages_held: set[int] = set()
    for number, agent in enumerate(added):
        pool.add(agent)
        assert len(pool.members) == min(4, number + 2)
        assert isinstance(pool.members[0].agent, GreedyAgent) and pool.members[-1].agent is agent
        ages = [added.index(member.agent) for member in pool.members[1:]]  # type: ignore[arg-type]
        assert ages == sorted(ages)
        ages_held |= {number - age for age in ages}
    assert max(ages_held) > 3  # not simply the last three


def test_probabilities_of_the_members() -> None:
    pool = OpponentPool("random", seed=0)
    assert (pool.size, pool.newest) == (20, 0.5)
    for agent in (GreedyAgent(), RandomAgent(1), RandomAgent(2)):
        pool.add(agent)
    draws = []
    for _ in range(2000):
        pool.draw()
        draws.append(pool.playing.number)
    shares = np.bincount(draws) / len(draws)
    np.testing.assert_allclose(shares, [0.125, 0.125, 0.125, 0.625], atol=0.03)


def test_the_drawn_member_plays() -> None:
    """A new member does not play until it is drawn."""
    pool = OpponentPool(PolicyAgent(first_legal), newest=1.0)
    pool.add(PolicyAgent(last_legal))
    env = BaoEnv(pool, seat="north", opening_plies=0)
    for action in (20, 26):
        env.reset(seed=1)
        assert env.board == Board.from_text(OPENING, moves=[action])
        pool.draw()


def test_a_pool_is_seeded_and_can_be_pickled() -> None:
    def players(pool: OpponentPool) -> list[int]:
        drawn = []
        for seed in range(20):
            pool.add(RandomAgent(seed))
            pool.draw()
            drawn.append(pool.members.index(pool.playing))
        return drawn

    pool, twin = (OpponentPool(PolicyAgent(first_legal), size=8, seed=5) for _ in range(2))
    assert players(pool) == players(twin) != players(OpponentPool("random", size=8, seed=6))
    copied = pickle.loads(pickle.dumps(pool))
    assert len(copied.members) == 8 and copied.size == 8
    assert players(pool) == players(copied)


def test_bots_take_the_rules_of_the_game_or_refuse() -> None:
    own = RULESETS["dutch"].replace(name="own", house_min=7)
    for ruleset in (RULESETS["dutch"], own):
        pool = OpponentPool("greedy")
        pool.add(PolicyAgent(first_legal, "replies"))
        BaoVectorEnv(2, pool, ruleset=ruleset)
        agents: list[Any] = [member.agent for member in pool.members]
        assert {pool.ruleset, *(agent.ruleset for agent in agents)} == {ruleset}
        pool_with_rules = OpponentPool("greedy", ruleset=ruleset)
        policy = PolicyAgent(first_legal, ruleset=ruleset)
        for bot in (pool, pool_with_rules, GreedyAgent(ruleset), policy):
            calls: list[Callable[[Any], Any]] = [
                lambda bot: BaoEnv(bot, ruleset="kibao"),
                OpponentPool(ruleset="kibao").add,
                lambda bot: bot.choose(Board("kibao")),
                lambda bot: play_match(bot, bot, ruleset="kibao", pairs=2, balance=None),
            ]
            for refuse in calls:
                with pytest.raises(ValueError, match=f"'{ruleset.name}', not 'kibao'"):
                    refuse(bot)


def test_a_member_that_plays_takes_the_rules_after_it_was_replaced() -> None:
    pool = OpponentPool(size=2, newest=1.0)
    pool.add("greedy")
    pool.draw()
    pool.add("random")
    playing: Any = pool.playing
    BaoVectorEnv(2, opponent=pool, ruleset="dutch")
    assert pool.playing.number == playing.number == 1 and pool.playing not in pool.members
    playing = pool.playing
    assert playing.agent.ruleset == pool.ruleset == RULESETS["dutch"]


def test_games_name_the_member_that_they_were_played_against() -> None:
    pool = OpponentPool("random", size=2)
    for _ in range(3):
        pool.add("greedy")
    assert [member.number for member in pool.members] == [0, 3]
    single, envs = BaoEnv(pool), BaoVectorEnv(4, pool, autoreset_mode="SAME_STEP")
    for weights, number in (([1, 0], 0), ([0, 2], 3)):
        for _ in range(9):
            pool.draw(weights)
            assert pool.playing.number == number
        single.reset(seed=1)
        envs.reset(seed=1)
        over = False
        while not over:
            *_, over, _, info = single.step(single.sample_legal_actions())
        assert info["opponent"] == pool.playing.number == number
        while not (ended := envs.step(envs.sample_legal_actions()))[2].any():
            pass
        assert (ended[4]["final_info"]["opponent"][ended[2]] == number).all()
    for wrong in ([1], [0, 0], [-1, 2], [np.nan, 1]):
        with pytest.raises(ValueError, match="expected 2 numbers of 0 or more"):
            pool.draw(wrong)


def ask(pool: OpponentPool, queue: Any) -> None:
    """Let a pool play twice, and put its warnings into a queue."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            pool.choose(Board())
    queue.put([str(warning.message) for warning in caught])


@pytest.mark.parametrize("method", sorted({"fork", "spawn"} & {*get_all_start_methods()}))
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_pool_in_a_subprocess_warns(method: str) -> None:
    pool, context = OpponentPool(PolicyAgent(first_legal)), get_context(method)
    queue = context.Queue()
    child = context.Process(target=ask, args=(pool, queue), daemon=True)  # type: ignore[attr-defined]
    child.start()
    [messages] = queue.get(timeout=120)
    assert "a copy in a subprocess" in messages
    child.join()
    own_queue: Any = SimpleQueue()
    ask(pickle.loads(pickle.dumps(pool)), own_queue)
    assert own_queue.get() == []
