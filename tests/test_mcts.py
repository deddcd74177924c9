"""Monte Carlo tree search: legal, reproducible, right where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from agents import load
from agents.arena.match import play_match
from agents.arena.openings import draw_openings
from agents.search.alphabeta.player import AlphaBetaAgent
from agents.search.alphabeta.transposition import PROVEN
from agents.search.mcts import MctsAgent, _playout, _random_move
from bao_env import Board
from bao_env.bots import GreedyAgent
from bao_env.engine.bits import U
from bao_env.engine.kernel import legal_mask, play
from bao_env.engine.position import Packed, movers
from bao_env.engine.ruleset import RULESETS, get_ruleset


def batch_of(ruleset: str, count: int, plies: int) -> tuple[np.ndarray, np.ndarray]:
    rules = get_ruleset(ruleset).kernel_rules()
    positions = draw_openings(ruleset, count, plies, 3, None).positions
    return positions, np.array([legal_mask(rules, words) for words in positions], np.uint64)


@pytest.mark.parametrize("name", RULESETS)
def test_random_moves_are_the_legal_moves(name: str) -> None:
    """Drawing without a mask reaches exactly what the legal actions lead to."""
    rules = get_ruleset(name).kernel_rules()
    for plies in (4, 20):
        for words in batch_of(name, 40 if plies > 4 else 3, plies)[0]:
            mask = int(legal_mask(rules, words))
            legal = set()
            for action in range(64):
                if mask >> action & 1:
                    after = words.copy()
                    result = play(rules, after, U(action))
                    legal.add((*map(int, after[:5]), int(result)))
            drawn = set()
            rng = U(88172645463325252)
            for _ in range(400):
                rng, after, result = _random_move(rules, Packed.of(words), rng)
                rng = U(rng)
                drawn.add((*map(int, after), int(result)))
            assert drawn == legal


@pytest.mark.parametrize("greedy", [False, True])
def test_playouts_end_with_a_winner(greedy: bool) -> None:
    """From one position both sides win some; the sign is the first mover's."""
    rules = get_ruleset("zanzibar").kernel_rules()
    positions, _ = batch_of("zanzibar", 1, 8)
    rng = U(1234567)
    results = []
    for _ in range(300):
        rng, result = _playout(rules, Packed.of(positions[0]), rng, greedy)
        rng = U(rng)
        results.append(int(result))
    assert set(results) == {-1, 1}


@pytest.mark.parametrize("name", RULESETS)
def test_it_finds_wins(name: str) -> None:
    """Where alpha-beta proves a win, enough simulations play a move that wins, or keeps it."""
    rules = get_ruleset(name).kernel_rules()
    judge = AlphaBetaAgent(name, depth=5, threads=1)
    agent = MctsAgent(name, simulations=3000, seed=1)
    positions, masks = batch_of(name, 300, 18)
    proven = kept = 0
    for i in np.flatnonzero(judge.values(positions, masks) > PROVEN):
        after = positions[i].copy()
        result = play(rules, after, U(agent.act(positions[i : i + 1], masks[i : i + 1])[0]))
        proven += 1
        sign = 1 if movers(after[None]) == movers(positions[i : i + 1]) else -1
        kept += result == 1 or sign * judge.search(after).value > PROVEN
    assert proven >= 8
    assert kept >= 0.8 * proven


def test_choice_depends_on_position_and_seed_alone() -> None:
    positions, masks = batch_of("zanzibar", 60, 10)
    actions = MctsAgent(simulations=200, seed=5, threads=2).act(positions, masks)
    agent = MctsAgent(simulations=200, seed=5, threads=1)
    for i in reversed(range(len(positions))):
        part = slice(i, i + 1)
        assert agent.act(positions[part], masks[part])[0] == actions[i]
    other = MctsAgent(simulations=200, seed=6).act(positions, masks)
    assert (other != actions).any()


@pytest.mark.slow
def test_strength_grows() -> None:
    few, many = MctsAgent(simulations=20), MctsAgent(simulations=400)
    assert play_match(many, few, pairs=40, seed=1).score.low > 0.6
    assert play_match(many, GreedyAgent(), pairs=40, seed=1).score.low > 0.6
    greedy = MctsAgent(simulations=200, greedy=True)
    assert play_match(greedy, GreedyAgent(), pairs=40, seed=1).score.low > 0.6


def test_limits() -> None:
    board = Board()
    for spec in ("mcts:2", "mcts:100", "mcts:50:greedy", "mcts:20ms", "mcts:20 ms"):
        assert load(spec, seed=1).choose(board) in board.legal_actions
    for bad in ({}, {"simulations": 1}, {"seconds": 1e-5}, {"simulations": 9, "seconds": 1.0}):
        with pytest.raises(ValueError, match="mcts: "):
            MctsAgent("zanzibar", **bad)
