"""Test policies as agents, and pools of past policies as opponents."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from bao_env import BaoEnv, BaoVectorEnv, GreedyAgent, OpponentPool, PolicyAgent, RandomAgent
from bao_env.observation import OBSERVATIONS


def first_legal(observations: Any, masks: Any) -> Any:
    return masks.argmax(axis=1)


def last_legal(observations: Any, masks: Any) -> Any:
    return masks.shape[1] - 1 - masks[:, ::-1].argmax(axis=1)


@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize("ruleset", ["zanzibar", "malawi"])
def test_a_policy_sees_what_the_environments_show(observation: str, ruleset: str) -> None:
    arguments: Any = {"observation": observation, "ruleset": ruleset, "dtype": np.uint8}
    envs = BaoVectorEnv(20, opponent=None, autoreset_mode="SameStep", **arguments)
    shown, _ = envs.reset(seed=1)
    seen: dict[str, Any] = {}

    def choose(observations: Any, masks: Any) -> Any:
        assert masks.dtype == np.bool_
        seen.update(observation=observations, action_mask=masks.view(np.int8))
        return masks.argmax(axis=1).astype(np.uint8)

    agent = PolicyAgent(choose, **arguments)
    for _ in range(12):
        actions = agent.act(envs.positions, envs.legal)
        assert actions.dtype == np.int64
        assert envs.action_masks()[np.arange(20), actions].all()
        np.testing.assert_equal(seen, shown)
        shown, *_ = envs.step(envs.sample_legal_actions())


def test_a_full_pool_keeps_the_first_and_the_newest() -> None:
    pool = OpponentPool("greedy", size=4, seed=3)
    added = [RandomAgent(seed) for seed in range(30)]
    held: set[int] = set()
    for number, agent in enumerate(added):
        pool.add(agent)
        assert len(pool.members) == min(4, number + 2)
        assert isinstance(pool.members[0], GreedyAgent) and pool.members[-1] is agent
        ages = [added.index(member) for member in pool.members[1:]]  # type: ignore[arg-type]
        assert ages == sorted(ages)
        held |= {number - age for age in ages}
    assert max(held) > 3  # not simply the last three


def test_probabilities_of_the_members() -> None:
    pool = OpponentPool("random", newest=0.5, seed=0)
    for agent in (GreedyAgent(), RandomAgent(1), RandomAgent(2)):
        pool.add(agent)
    draws = []
    for _ in range(2000):
        pool.draw()
        draws.append(pool.members.index(pool.current))
    shares = np.bincount(draws) / len(draws)
    np.testing.assert_allclose(shares, [0.125, 0.125, 0.125, 0.625], atol=0.03)


def test_the_drawn_member_plays() -> None:
    """The games are those against that member; another one may be drawn while they run."""
    first, last = PolicyAgent(first_legal), PolicyAgent(last_legal)
    pool = OpponentPool(first, newest=1.0)
    ours, plain = BaoVectorEnv(6, opponent=pool), BaoVectorEnv(6, opponent=first)
    ours.reset(seed=2)
    plain.reset(seed=2)
    assert np.array_equal(ours.positions, plain.positions)
    pool.add(last)
    for changed in (False, True):
        actions = ours.sample_legal_actions()
        ours.step(actions)
        plain.step(actions)
        assert np.array_equal(ours.positions, plain.positions) != changed
        pool.draw()
    single = BaoEnv(pool, seat="north", opening_plies=0)
    single.reset(seed=1)
    assert single.opponent is pool and single.position.ply == 1


def test_a_pool_is_seeded_and_can_be_pickled() -> None:
    def players(pool: OpponentPool) -> list[int]:
        drawn = []
        for seed in range(20):
            pool.add(RandomAgent(seed))
            pool.draw()
            drawn.append(pool.members.index(pool.current))
        return drawn

    one, other = (OpponentPool(PolicyAgent(first_legal), size=8, seed=5) for _ in range(2))
    assert players(one) == players(other) != players(OpponentPool("random", size=8, seed=6))
    copied = pickle.loads(pickle.dumps(one))
    assert len(copied.members) == 8 and copied.size == 8
    assert players(one) == players(copied)
