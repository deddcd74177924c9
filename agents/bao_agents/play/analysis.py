"""Analyse positions for the page: hints, the evaluation bar, and the review of a game.

The functions return plain values, for JSON.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any

from cachetools import LRUCache, cached

from bao_agents.analysis import PROOF_NODES, Analysis, Line, analyse, review_move
from bao_agents.nets.checkpoint_files import version
from bao_agents.play.refused import Refused
from bao_agents.play.roster import NETWORK, Roster
from bao_agents.play.seated_game import hand_way, move_texts, position_values
from bao_agents.players import registry
from bao_agents.players.names import PlayerName
from bao_agents.search.solver.solver import Solution
from bao_env.board import Board

SEARCH = "alphabeta"
"""The evaluator that is always available."""
PLAYER = "alphabeta:100000n"
"""The search for hints and for the evaluation bar, which share one analysis."""
REVIEW_PLAYER = "alphabeta:60000n"
"""The search for reviews."""
_MAX_ANALYSES = 64
"""The number of analyses kept, so that the bar and the hints of a position share one."""
_MAX_LINE = 8
"""The longest line shown, in moves."""


def share_of(score: float, seat: int) -> float:
    """Convert a value for a seat, -1 to 1, into South's share of wins, 0 to 1."""
    return (1 + (score if seat == 0 else -score)) / 2


def _win(solution: Solution) -> dict[str, Any] | None:
    """Return the winner and the plies to the end as plain values; None if unknown or 0 plies."""
    winner, plies, is_shortest, *_ = solution
    return {"winner": winner, "plies": plies, "exact": is_shortest} if plies else None


def south_chance(
    board: Board, evaluator: str, roster: Roster, threads: int | None = 1
) -> dict[str, Any]:
    """Return South's chance of winning, 0 to 1, by proof or by an evaluator.

    In a game that was cut short it is a half.

    Args:
        board: the game, which may be over.
        evaluator, roster, threads: as for :func:`hints`.

    Raises:
        Refused: the evaluator is unknown or fails.
    """
    if (outcome := board.outcome()) is not None:
        south = 0.5 if outcome.winner is None else float(outcome.winner == 0)
        return {"south": south, "proven": outcome.winner is not None, "win": None}
    analysis = _analyse(board, evaluator, roster, threads)
    return {
        "south": share_of(analysis.score, board.turn),
        "proven": analysis.proof.winner is not None,
        "win": _win(analysis.proof),
    }


def evaluators(roster: Roster) -> list[dict[str, Any]]:
    """Return the evaluators that :func:`hints` accepts, each with its kind and its rules."""
    networks = [
        {"value": choice["checkpoint"], "kind": NETWORK, "rulesets": choice["rulesets"]}
        for choice in roster.choices()
        if choice["kind"] == NETWORK
    ]
    return [{"value": SEARCH, "kind": "hints", "rulesets": list(roster.rulesets)}, *networks]


def hints(board: Board, evaluator: str, roster: Roster, threads: int | None = 1) -> dict[str, Any]:
    """Evaluate every legal move with a search or a network, best first.

    Args:
        board: a game that is not over.
        evaluator: the ``value`` of one of :func:`evaluators`.
        roster: the roster of checkpoints.
        threads: the number of threads; None for all cores.

    Raises:
        Refused: the game is over, or the evaluator is unknown or fails.
    """
    if board.outcome() is not None:
        raise Refused("the game is over: there is no move to evaluate")
    analysis = _analyse(board, evaluator, roster, threads)
    return {
        "mover": board.turn,
        "win": _win(analysis.proof),
        "moves": [_move(board, line) for line in analysis.lines],
        "line": _line(board, analysis),
    }


def _analyse(board: Board, evaluator: str, roster: Roster, threads: int | None) -> Analysis:
    """Analyse a position with an evaluator of :func:`evaluators`; the latest analyses are kept."""
    spec = registry.parse(PLAYER) if evaluator == SEARCH else roster.parse(evaluator)
    if evaluator != SEARCH and spec.kind.name != NETWORK:
        names = ", ".join(offered["value"] for offered in evaluators(roster))
        raise Refused(f"{spec} gives no hints: expected one of {names}")
    try:
        return _analysis(board, spec, threads)
    except Exception as error:  # a damaged file or one for other rules must not stop the server
        raise roster.unusable(f"{spec} cannot give hints", error) from error


def _key(board: Board, spec: PlayerName, threads: int | None) -> Hashable:
    return str(spec), spec.path and version(spec.path), board.ruleset, board.text()


@cached(LRUCache(_MAX_ANALYSES), _key, threading.Lock())
def _analysis(board: Board, spec: PlayerName, threads: int | None) -> Analysis:
    return analyse(board, spec, lines=None, threads=threads)


def _move(board: Board, line: Line) -> dict[str, Any]:
    return {
        **move_texts(board, line.action),
        **hand_way(board, line.action),
        "value": share_of(line.score, 0),
        "probability": line.probability,
        "win": _win(line.proof),
    }


def _line(board: Board, analysis: Analysis) -> list[dict[str, Any]]:
    """Return the moves of the best line, each with the position after it."""
    moves, after = [], board.copy()
    for action in analysis.lines[0].actions[:_MAX_LINE]:
        move = move_texts(after, action)
        after.push(action)
        moves.append(move | {"after": position_values(after)})
    return moves


def review(board: Board, threads: int | None = 1) -> dict[str, Any]:
    """Analyse the last move of a game.

    ``south`` is South's chance before the move. ``played`` and ``best`` are moves, and ``line`` is
    the best line, in the form of :func:`hints`.

    Args:
        board: a game with at least one move.
        threads: the number of threads; None for all cores.
    """
    ply, before = len(board.move_stack) - 1, board.copy()
    before.pop()
    nodes = PROOF_NODES // 2
    verdict = review_move(board, ply, REVIEW_PLAYER, proof_nodes=nodes, threads=threads)
    return {
        "ply": ply,
        "south": share_of(verdict.analysis.score, verdict.seat),
        "mark": verdict.mark,
        "given_away": verdict.gives_win_away,
        "played": _move(before, verdict.played),
        "best": _move(before, verdict.analysis.lines[0]),
        "line": _line(before, verdict.analysis),
    }
