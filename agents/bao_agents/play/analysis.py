"""Analyse a position with a search or a network: a value for each move, and the best line.

If the solver can prove the winner quickly, the analysis gives the winner and the number of plies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bao_agents.base import PlayerSpec
from bao_agents.play.refused import Refused
from bao_agents.play.roster import Roster
from bao_agents.play.seated_game import move_texts, position_values
from bao_agents.search.alphabeta.evaluation import SCALE
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.alphabeta.transposition import PROVEN
from bao_agents.search.solver.solver import Solution, Solver, solve
from bao_env.board import Board
from bao_env.engine.action import mask_of

SEARCH = "alphabeta"
"""The evaluator that is always available."""
NODES = 200_000
"""Positions that a hint's search visits, for all moves together."""
BAR_NODES = 60_000
"""Positions that the evaluation bar's search visits."""
PROOF_NODES = 200_000
"""Positions that the solver visits to prove who wins, and as many for the moves of a hint."""
_MAX_LINE = 8
"""Longest line, in moves."""
Shares = dict[int, float]
"""A number from 0 to 1 for each action."""


def chance(value: float) -> float:
    """Return the share of games, 0 to 1, that a player with this alpha-beta value wins."""
    if abs(value) > PROVEN:
        return 1.0 if value > 0 else 0.0
    return 1 / (1 + math.exp(-value / SCALE))


def _win(solution: Solution) -> dict[str, Any] | None:
    """Return the winner and the plies to the end, as plain values; None if unknown, or no plies."""
    winner, plies, is_shortest, *_ = solution
    return {"winner": winner, "plies": plies, "exact": is_shortest} if plies else None


def south_chance(board: Board) -> dict[str, Any]:
    """Return South's chance to win, 0 to 1, by proof or by alpha-beta, for the evaluation bar."""
    solution = solve(board, nodes=PROOF_NODES, shortest=True)
    if solution.winner is not None:
        return {"south": float(solution.winner == 0), "proven": True, "win": _win(solution)}
    value = _searcher(board, BAR_NODES).search(board.words).value
    share = chance(value)
    return {
        "south": share if board.turn == 0 else 1 - share,
        "proven": abs(value) > PROVEN,
        "win": None,
    }


def _searcher(board: Board, nodes: int) -> AlphaBetaAgent:
    return AlphaBetaAgent(board.ruleset, nodes=nodes, threads=1)


def evaluators(roster: Roster) -> list[dict[str, Any]]:
    """Return the evaluators that :func:`hints` accepts, each with the parts of its label."""
    search: dict[str, Any] = {"value": SEARCH, "kind": "hints", "checkpoint": "", "budget": ""}
    return [search | {"rulesets": list(roster.rulesets)}, *roster.evaluators()]


def hints(board: Board, evaluator: str, roster: Roster) -> dict[str, Any]:
    """Evaluate every legal move with a search or a network, best first.

    Args:
        board: a game that is not over.
        evaluator: one of :func:`evaluators`, with its default number of simulations or another.
        roster: the roster of checkpoints.

    Raises:
        Refused: the game is over, or the evaluator is unknown or fails.
    """
    after = {action: board.copy() for action in board.legal_actions}
    if not after:
        raise Refused("the game is over: there is no move to evaluate")
    for action, child in after.items():
        child.push(action)
    solver = Solver(board.ruleset, nodes=PROOF_NODES)
    win = _win(solver.solve(board.words, shortest=True))
    solutions = {action: _solve(solver, child, len(after)) for action, child in after.items()}
    shares: Shares = {}
    if evaluator == SEARCH:
        values, lines = _by_search(board, after, solutions)
    else:
        spec = roster.parse(evaluator)
        if not roster.gives_hints(spec):
            known = ", ".join(one["value"] for one in evaluators(roster))
            raise Refused(f"{spec} gives no hints: expected one of {known}")
        try:
            shares, values = _by_network(board, after, spec, roster)
        except Exception as error:  # a damaged file or one for other rules must not stop the server
            raise roster.unusable(f"{spec} cannot give hints", error) from error
        lines = {}

    def merit(action: int) -> tuple[float, float, int]:
        plies = solutions[action].plies or 0
        won = solutions[action].winner == board.turn
        return shares.get(action, 0.0), values[action], -plies if won else plies

    actions = sorted(after, key=merit, reverse=True)
    best = actions[0]
    if best not in lines:  # a network has no line: a proof or a search continues from its choice
        _, lines = _by_search(board, {best: after[best]}, solutions)
    texts, shown = [], board.copy()
    for action in (best, *lines[best])[:_MAX_LINE]:
        texts.append(move_texts(shown, action))
        shown.push(action)
        texts[-1]["after"] = position_values(shown)
    return {
        "mover": board.turn,
        "win": win,
        "moves": [
            {
                **move_texts(board, action),
                "action": action,
                "value": values[action],
                "probability": shares.get(action),
                "win": _win(solutions[action]),
            }
            for action in actions
        ],
        "line": texts,
    }


def _solve(solver: Solver, board: Board, moves: int) -> Solution:
    """Solve the position after one of several moves, which share the limit; that move counts."""
    outcome = board.outcome()
    if outcome is not None:
        return Solution(outcome.winner, 1, True, (), 0)
    found = solver.solve(board.words, shortest=True, nodes=PROOF_NODES // moves)
    return found._replace(plies=found.plies and found.plies + 1)


def _by_search(
    board: Board, after: Mapping[int, Board], solutions: Mapping[int, Solution]
) -> tuple[Shares, dict[int, tuple[int, ...]]]:
    """Return the mover's chance after each action, and the line after it.

    Args:
        board: the position.
        after: the boards after some actions.
        solutions: their solutions.
    """
    values, lines = {}, {}
    searcher = _searcher(board, max(1000, NODES // len(after)))
    for action, child in after.items():
        solution = solutions[action]
        if solution.winner is not None:
            values[action] = float(solution.winner == board.turn)
            lines[action] = solution.line
        else:
            found = searcher.search(child.words)
            values[action] = chance(found.value if child.turn == board.turn else -found.value)
            lines[action] = found.line
    return values, lines


def _by_network(
    board: Board, after: Mapping[int, Board], spec: PlayerSpec, roster: Roster
) -> tuple[Shares, Shares]:
    """Return the policy's probability of each action, and the mover's chance after it.

    Raises:
        ImportError: torch is not installed.
        OSError, ValueError: the checkpoint cannot be used under these rules, or answers with
            infinities or NaN.
    """
    # Torch is slow to import, and the bots do not need it.
    from bao_agents.nets.legal_actions import probabilities
    from bao_agents.nets.policy import NetworkAgent

    assert spec.path is not None
    network = roster.network(spec.path, board.ruleset)
    agent = NetworkAgent(network, board.ruleset)
    found = agent.evaluate(board.words[None], np.array([mask_of(after)], np.uint64))
    shares = dict(zip(after, probabilities(found.logits).tolist(), strict=True))
    if network.config.per_action:
        results = dict(zip(after, found.values.tolist(), strict=True))
    else:
        results = {}
        for action, child in after.items():
            outcome = child.outcome()
            if outcome is not None:
                results[action] = 1.0 if outcome.winner == board.turn else -1.0
            else:
                value = agent.evaluate_board(child).value
                results[action] = value if child.turn == board.turn else -value
    if spec.budget:
        from bao_agents.search.gumbel.search import GumbelSearch

        search = GumbelSearch(board.ruleset.kernel, network, 1, spec.budget)
        searched = search.search(board.words[None])
        for action in after:
            shares[action] = float(searched.policies[0, action])
            if np.isfinite(searched.qvalues[0, action]):
                results[action] = float(searched.qvalues[0, action])
    return shares, {
        action: min(1.0, max(0.0, (result + 1) / 2)) for action, result in results.items()
    }
