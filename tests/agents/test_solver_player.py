"""Test the solver as a player: it wins soonest, loses latest, and keeps its limits."""

from __future__ import annotations

import time
from unittest.mock import Mock

import numpy as np
import pytest

from bao_agents.players.player import NamedPlayer
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.limits import Limit, nanoseconds
from bao_agents.search.player import Question
from bao_agents.search.solver.player import PROOF_PART, SolverAgent
from bao_agents.search.solver.proof_number import LOSS, UNKNOWN, WIN
from bao_agents.search.solver.proof_search import Distance, KnownAction, ProofSearch
from bao_agents.search.solver.solver import Solver, table_bits
from bao_env import RULESETS, BaoVectorEnv, Board
from bao_env.engine.action import actions_of
from tests.positions import board_of, draw
from tests.rulesets import every_ruleset
from tests.searches import solved_values

EVERY_RULESET = every_ruleset("zanzibar", "kujifunza")


@EVERY_RULESET
def test_wins_soonest_and_loses_latest(ruleset: str, thorough: bool) -> None:
    """Whoever wins, the move played shortens the shortest win by one ply."""
    count = 80 if thorough else 16
    positions, legal = draw(ruleset, count, (8, 14) if ruleset == "kujifunza" else (38, 44), seed=2)
    solver = Solver(ruleset, nodes=30_000)
    actions = SolverAgent(ruleset, Limit(nodes=200_000), threads=1).act(positions, legal)
    won = lost = 0
    for position, action in zip(positions, actions, strict=True):
        before = solver.solve(position, shortest=True)
        if not before.is_shortest:
            continue
        assert before.plies is not None
        board = board_of(position, ruleset)
        won, lost = won + (before.winner == board.turn), lost + (before.winner != board.turn)
        board.push(int(action))
        if outcome := board.outcome():
            assert (outcome.winner, before.plies) == (before.winner, 1)
            continue
        after = solver.solve(board.packed, shortest=True, nodes=200_000)
        assert after.winner == before.winner
        assert not after.is_shortest or after.plies == before.plies - 1
    assert won > 1 and lost > 1


def test_avoids_what_is_proven_to_lose() -> None:
    """The solver prefers an action that is not proven to lose, even if alpha-beta prefers
    another."""
    nodes = 4000
    positions, legal = draw("zanzibar", 150, (26, 34), seed=3)
    search = ProofSearch(RULESETS["zanzibar"], 14)
    actions = SolverAgent("zanzibar", Limit(nodes=nodes), threads=1).act(positions, legal)
    avoided = 0
    for position, action in zip(positions, actions, strict=True):
        search.table.clear()
        search.begin(nodes // PROOF_PART)
        value = search.prove(position)
        values = {action.action: action.value for action in search.known()}
        if value == UNKNOWN and LOSS in values.values():
            assert values[action] == UNKNOWN
            avoided += 1
        elif value == WIN:
            assert values[action] == WIN or search.nodes > nodes // 8
    assert avoided > 5


@pytest.mark.parametrize("value", [UNKNOWN, WIN])
def test_a_proof_gets_an_eighth_of_the_limit(value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is for a shorter win if the position is proven, else for alpha-beta."""
    agent, board = SolverAgent("zanzibar", Limit(nodes=10), threads=1), Board()
    agent._is_ready = True  # nothing is searched here
    [search] = agent._proofs
    first, second, *_ = board.legal_actions
    proof_limits: list[tuple[int, object]] = []
    searched: list[tuple[Limit, list[int]]] = []

    def begin(nodes: int, deadline: int, threads: int) -> None:
        assert threads == 1
        proof_limits.append((nodes, (deadline - start) / 1e9))
        search.nodes = 600

    def find(question: Question, thread: int) -> np.ndarray:
        searched.append((question.limit, actions_of(question.legal[0])))
        return np.array([[second, 0]])

    monkeypatch.setattr(search, "begin", begin)
    monkeypatch.setattr(search, "prove", lambda _: value)
    monkeypatch.setattr(search, "known", lambda: [KnownAction(first, 0, 9, 1)])  # it loses
    monkeypatch.setattr(search, "bisect", lambda *_: Distance(9, False, first))
    monkeypatch.setattr(agent, "_find", find)
    start, limit = nanoseconds(), Limit(seconds=800.0, nodes=8003)
    action = agent.act(*board.batch(), limit=limit)[0]
    if value == UNKNOWN:
        rest_limit = Limit(seconds=800.0, nodes=7003)
        assert action == second and searched == [(rest_limit, board.legal_actions[1:])]
        assert proof_limits == [(1000, pytest.approx(100, abs=50))]
    else:
        assert action == first and not searched
        assert proof_limits == [
            (1000, pytest.approx(100, abs=50)),
            (7403, pytest.approx(800, abs=50)),
        ]


def test_alphabeta_chooses_among_what_a_proof_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several threads search a position together."""
    limit, board = Limit(seconds=16.0), Board()
    agent = SolverAgent("zanzibar", limit, threads=2)
    monkeypatch.setattr(agent._proofs[0], "allow", allow := Mock())
    first, second, *_ = board.legal_actions
    monkeypatch.setattr(AlphaBetaAgent, "_choose_alone", lambda *_: first)
    for left, expected in ((1 << first | 1 << second, first), (1 << second, second)):
        legal = np.array([left], np.uint64)
        monkeypatch.setattr(
            agent, "_prove", lambda question, *_, legal=legal: question._replace(legal=legal)
        )
        assert agent.act(*board.batch(), together=True).tolist() == [expected]
        allow.assert_called_with(table_bits(limit, 2, None))


def test_nothing_is_kept_between_positions() -> None:
    """With a node limit, later positions of the same games do not change a choice."""
    env = BaoVectorEnv(16, opening_plies=24, opponent=None)
    env.reset(seed=3)
    batches = []
    for _ in range(20):
        env.step(env.sample_legal_actions())
        batches.append((env.positions, env.legal))
    agent, twin = (SolverAgent("zanzibar", Limit(nodes=4000), threads=1) for _ in range(2))
    forwards = [agent.act(*batch) for batch in batches]
    backwards = [twin.act(*batch) for batch in batches[::-1]]
    np.testing.assert_array_equal(forwards, backwards[::-1])


def test_only_action_is_played_at_once() -> None:
    positions, legal = draw("zanzibar", 200, (10, 40), seed=5)
    only = np.flatnonzero(legal & (legal - np.uint64(1)) == 0)[:3]
    assert len(only) == 3
    start = time.monotonic()
    actions = SolverAgent("zanzibar", Limit(seconds=60.0), threads=1).act(
        positions[only], legal[only]
    )
    assert time.monotonic() - start < 30
    np.testing.assert_array_equal(np.uint64(1) << actions.astype(np.uint64), legal[only])


def test_proof_is_kept_for_the_next_move() -> None:
    """A win that has been proven is not lost when time runs out."""
    positions, legal = draw("kujifunza", 6, (6, 10), seed=6)
    solver = Solver("kujifunza")
    player = NamedPlayer("quick", SolverAgent("kujifunza", Limit(seconds=1.0), threads=1))
    for position in positions[solved_values(solver, positions, legal) == WIN]:
        board = board_of(position, "kujifunza")
        seat = board.turn
        limit = Limit(seconds=1.0)
        while (outcome := board.outcome()) is None:
            if board.turn == seat:
                board.push(player.choose(board, limit))
                limit = Limit(seconds=0.001)
            else:
                assert solver.solve(board.packed).winner == seat
                board.push(board.legal_actions[-1])
        assert outcome.winner == seat
