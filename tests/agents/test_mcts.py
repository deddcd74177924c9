"""Test Monte Carlo tree search: legal actions, determinism, play where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.alphabeta.transposition import PROVEN
from bao_agents.search.limits import Limit
from bao_agents.search.mcts import MctsAgent, _random_move
from bao_env.engine.action import actions_of
from bao_env.engine.bits import U
from bao_env.engine.kernel import play
from bao_env.engine.position import Rows
from bao_env.engine.ruleset import RULESETS, get_ruleset
from tests.positions import draw
from tests.searches import wins_by


@pytest.mark.parametrize("name", RULESETS)
def test_random_moves_are_the_legal_moves(name: str) -> None:
    """Randomly drawn moves reach exactly the positions after the legal actions."""
    rules = get_ruleset(name).kernel
    for plies in (4, 20):
        positions, legal = draw(name, 40 if plies > 4 else 3, plies)
        for position, bits in zip(positions, legal, strict=True):
            expected = set()
            for action in actions_of(bits):
                after = position.copy()
                result = play(rules, after, U(action))
                expected.add((*map(int, after[:5]), int(result)))
            drawn = set()
            rng = U(88172645463325252)
            for _ in range(400):
                rng, hand, result = _random_move(rules, Rows.of(position), rng)
                rng = U(rng)
                drawn.add((*map(int, hand), int(result)))
            assert drawn == expected


def test_trees_fit_their_memory() -> None:
    """The trees of two threads share four megabytes, apart from a small reserve."""
    agent = MctsAgent("zanzibar", Limit(nodes=100_000), threads=2, memory=4)
    sizes = [sum(array.nbytes for array in tree) for tree in agent._trees]
    assert len(sizes) == 2 and 0.99 < sum(sizes) / (4 << 20) < 1.02


@pytest.mark.parametrize("name", RULESETS)
def test_it_finds_wins(name: str) -> None:
    """Where alpha-beta proves a win, most chosen actions keep it."""
    judge = AlphaBetaAgent(name, Limit(plies=5), threads=1)
    positions, legal = draw(name, 300, 18)
    won = judge.values(positions, legal) > PROVEN
    actions = MctsAgent(name, Limit(nodes=3000), seed=1).act(positions[won], legal[won])
    wins = [wins_by(name, judge, *pair) for pair in zip(positions[won], actions, strict=True)]
    assert len(wins) >= 8 and np.mean(wins) >= 0.8
