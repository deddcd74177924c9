"""Analyse a position with a search or a network: a value for each move, and the best line.

If the solver can prove the winner quickly, the analysis gives the winner and the number of plies.
"""

from __future__ import annotations

import math
import threading
from functools import lru_cache
from typing import Any, Final

from agents.play.refused import Refused
from agents.play.roster import Roster
from agents.search.alphabeta.evaluation import SCALE
from agents.search.alphabeta.player import AlphaBetaAgent
from agents.search.alphabeta.transposition import PROVEN, WIN_VALUE
from agents.search.solver.solver import Solution, Solver
from bao_env.board import Board
from bao_env.engine.ruleset import Ruleset
from bao_env.notation.moves import SPELLINGS

SEARCH: Final = "alphabeta"
"""The evaluator that is always available."""
SEARCH_LABEL: Final = {"en": "Alpha-beta search", "sw": "Utafutaji wa alpha-beta"}
NODES: Final = 200_000
"""Positions that a hint's search visits, for all moves together."""
BAR_NODES: Final = 60_000
"""Positions that the evaluation bar's search visits."""
PROOF_NODES: Final = 200_000
"""Positions that the solver visits to prove who wins, and as many for the moves of a hint."""
_MAX_LINE: Final = 8
"""Longest line, in moves."""
_MAX_SEARCHERS: Final = 4
"""Searchers kept, each with some 32 MiB, and as many solvers."""
_lock = threading.Lock()


def chance(value: float) -> float:
    """Return the share of games, 0 to 1, that an alpha-beta value stands for."""
    if abs(value) > PROVEN:
        return 1.0 if value > 0 else 0.0
    return 1 / (1 + math.exp(-value / SCALE))


@lru_cache(maxsize=_MAX_SEARCHERS)  # a transcript may have its own rules
def _searcher(ruleset: Ruleset, nodes: int) -> AlphaBetaAgent:
    return AlphaBetaAgent(ruleset, nodes=nodes, threads=1)


def _search(ruleset: Ruleset, board: Board, nodes: int) -> tuple[float, tuple[int, ...]]:
    """Return the value for the player to move, and the best line."""
    outcome = board.outcome()
    if outcome is not None:
        return (WIN_VALUE if outcome.winner == board.turn else -WIN_VALUE), ()
    with _lock:  # a searcher reuses its memory
        found = _searcher(ruleset, nodes).search(board.words)
    return found.value, found.line


@lru_cache(maxsize=_MAX_SEARCHERS)
def _solver(ruleset: Ruleset) -> Solver:
    return Solver(ruleset, nodes=PROOF_NODES)


def _solve(board: Board, nodes: int) -> Solution:
    """Solve a position with at most ``nodes`` visited positions."""
    outcome = board.outcome()
    if outcome is not None:
        return Solution(outcome.winner, 0, True, (), 0)
    with _lock:
        return _solver(board.ruleset).solve(board.words, shortest=True, nodes=nodes)


def _win(solution: Solution, plies_before: int = 0) -> dict[str, Any] | None:
    """Return the winner and the plies to the end, as plain values; None if unknown.

    Args:
        solution: the solution of a position.
        plies_before: the number of plies that lead to it.
    """
    if solution.plies is None:
        return None
    plies = solution.plies + plies_before
    return {"winner": solution.winner, "plies": plies, "exact": solution.is_shortest}


def south_chance(board: Board) -> dict[str, Any]:
    """Return South's chance to win, 0 to 1, by proof or by alpha-beta, for the evaluation bar."""
    solution = _solve(board, PROOF_NODES)
    if solution.winner is not None:
        win = _win(solution) if solution.plies else None
        return {"south": float(solution.winner == 0), "proven": True, "win": win}
    value, _ = _search(board.ruleset, board, BAR_NODES)
    share = chance(value)
    return {
        "south": share if board.turn == 0 else 1 - share,
        "proven": abs(value) > PROVEN,
        "win": None,
    }


def evaluators(roster: Roster) -> list[dict[str, Any]]:
    """Return the evaluators that :func:`hints` accepts, each with a label by language."""
    return [{"value": SEARCH, "label": SEARCH_LABEL}, *roster.evaluators()]


def hints(board: Board, evaluator: str, roster: Roster) -> dict[str, Any]:
    """Evaluate every legal move with a search or a network, best first.

    Args:
        board: a game that is not over.
        evaluator: one of :func:`evaluators`, with its default number of simulations or another.
        roster: the roster of checkpoints.

    Raises:
        Refused: the game is over, or the evaluator is unknown or fails.
    """
    legal = board.legal_actions
    if not legal:
        raise Refused("the game is over: there is no move to evaluate")
    win = _win(_solve(board, PROOF_NODES))
    solutions = _solve_moves(board, legal)
    if evaluator == SEARCH:
        shares, values, lines = _by_search(board, legal, solutions)
    else:
        shares, values = _by_network(board, legal, evaluator, roster)
        lines = {}

    def merit(action: int) -> tuple[float, float, int]:
        plies = solutions[action].plies or 0
        won = solutions[action].winner == board.turn
        return shares.get(action, 0.0), values[action], -plies if won else plies

    best = max(legal, key=merit)
    if best not in lines:  # a network has no line: a proof or a search continues from its choice
        after = board.copy()
        after.push(best)
        lines[best] = solutions[best].line or _search(board.ruleset, after, NODES)[1]
    line = [best, *lines[best]]
    moves = [
        {
            "action": action,
            "texts": [board.move_text(action, spelling) for spelling in SPELLINGS],
            "value": values[action],
            "probability": shares.get(action),
            "win": _win(solutions[action], 1),
        }
        for action in sorted(legal, key=merit, reverse=True)
    ]
    return {
        "evaluator": evaluator,
        "mover": board.turn,
        "win": win,
        "moves": moves,
        "line": _texts(board, line),
    }


def _texts(board: Board, line: list[int]) -> list[dict[str, Any]]:
    """Return a line of actions as move texts, each with its seat."""
    board = board.copy()
    texts = []
    for action in line[:_MAX_LINE]:
        spelled = [board.move_text(action, spelling) for spelling in SPELLINGS]
        texts.append({"seat": board.turn, "texts": spelled})
        board.push(action)
    return texts


def _solve_moves(board: Board, legal: list[int]) -> dict[int, Solution]:
    """Solve the position after each action."""
    solutions = {}
    for action in legal:
        after = board.copy()
        after.push(action)
        solutions[action] = _solve(after, PROOF_NODES // len(legal))
    return solutions


def _by_search(
    board: Board, legal: list[int], solutions: dict[int, Solution]
) -> tuple[dict[int, float], dict[int, float], dict[int, tuple[int, ...]]]:
    """Return no probabilities, the mover's chance after each action, and the line after it."""
    values, lines = {}, {}
    nodes = max(1000, NODES // len(legal))
    for action in legal:
        if solutions[action].winner is not None:
            values[action] = float(solutions[action].winner == board.turn)
            lines[action] = solutions[action].line
            continue
        after = board.copy()
        after.push(action)
        value, line = _search(board.ruleset, after, nodes)
        values[action] = chance(value if after.turn == board.turn else -value)
        lines[action] = line
    return {}, values, lines


def _by_network(
    board: Board, legal: list[int], evaluator: str, roster: Roster
) -> tuple[dict[int, float], dict[int, float]]:
    """Return the policy's probability of each action, and the mover's chance after it."""
    spec = roster.parse(evaluator)
    if spec.path is None or not spec.kind.gives_hints:
        known = ", ".join(one["value"] for one in evaluators(roster))
        raise Refused(f"{spec} gives no hints: expected one of {known}")
    try:
        # Torch is slow to import, and the bots do not need it.
        from agents.play import network_hints

        return network_hints.evaluate(roster.networks, spec.path, board, legal, spec.budget)
    except Exception as error:  # a damaged file or one for other rules must not stop the server
        raise roster.unusable(f"{spec} cannot give hints", error) from error
