"""What a search or a network thinks of a position: a value for each move, and the best line."""

from __future__ import annotations

import math
import threading
from functools import lru_cache
from typing import Any, Final

from agents.play.refused import Refused
from agents.play.roster import Roster
from agents.search.alphabeta import AlphaBetaAgent
from agents.search.evaluation import SCALE
from agents.search.transposition import PROVEN, WIN
from bao_env.board import Board
from bao_env.engine.ruleset import Ruleset
from bao_env.notation.moves import SPELLINGS

NODES: Final = 200_000
"""Positions that a hint's search visits for all moves together."""
BAR_NODES: Final = 60_000
"""The same for the evaluation bar."""
_LINE: Final = 8
"""Most moves of a line."""
_CACHED: Final = 4
"""Searchers kept, each with some 32 MiB."""
_lock = threading.Lock()


def chance(value: float) -> float:
    """The share of games that an alpha-beta value stands for, 0 to 1."""
    if abs(value) > PROVEN:
        return 1.0 if value > 0 else 0.0
    return 1 / (1 + math.exp(-value / SCALE))


@lru_cache(maxsize=_CACHED)  # a transcript may bring rules of its own
def _searcher(ruleset: Ruleset, nodes: int) -> AlphaBetaAgent:
    return AlphaBetaAgent(ruleset, nodes=nodes, threads=1)


def _search(ruleset: Ruleset, board: Board, nodes: int) -> tuple[float, tuple[int, ...]]:
    """Value for the player to move, and best play."""
    outcome = board.outcome()
    if outcome is not None:
        return (WIN if outcome.winner == board.turn else -WIN), ()
    with _lock:  # a searcher reuses its memory
        found = _searcher(ruleset, nodes).search(board.words)
    return found.value, found.line


def south_chance(board: Board) -> dict[str, Any]:
    """For the evaluation bar: South's chance to win, 0 to 1, as alpha-beta judges it."""
    outcome = board.outcome()
    if outcome is not None:
        return {"south": float(outcome.winner == 0), "proven": True}
    value, _ = _search(board.ruleset, board, BAR_NODES)
    share = chance(value)
    return {"south": share if board.turn == 0 else 1 - share, "proven": abs(value) > PROVEN}


def hints(board: Board, judge: str, roster: Roster) -> dict[str, Any]:
    """What a judge says of every legal move, best first.

    Args:
        board: a game that is not over.
        judge: ``alphabeta``, or a checkpoint as the roster names it, alone or as
            ``search:CHECKPOINT:SIMULATIONS``.
        roster: where checkpoints are looked up.

    Raises:
        Refused: the game is over, or the judge is unknown or fails.
    """
    legal = board.legal_actions
    if not legal:
        raise Refused("the game is over: there is nothing to judge")
    if judge == "alphabeta":
        shares, values, lines = _by_search(board, legal)
    else:
        shares, values = _by_network(board, legal, roster.check(judge), roster)
        lines = {}

    def merit(action: int) -> tuple[float, float]:
        return shares.get(action, 0.0), values[action]

    best = max(legal, key=merit)
    if best not in lines:  # a network has no line: the search goes on from its choice
        after = board.copy()
        after.push(best)
        lines[best] = _search(board.ruleset, after, NODES)[1]
    line = [best, *lines[best]]
    moves = [
        {
            "action": action,
            "texts": [board.move_text(action, spelling) for spelling in SPELLINGS],
            "value": values[action],
            "probability": shares.get(action),
        }
        for action in sorted(legal, key=merit, reverse=True)
    ]
    return {"judge": judge, "mover": board.turn, "moves": moves, "line": _texts(board, line)}


def _texts(board: Board, line: list[int]) -> list[dict[str, Any]]:
    """A line of actions as move texts, each with the seat that plays it."""
    board = board.copy()
    texts = []
    for action in line[:_LINE]:
        spelled = [board.move_text(action, spelling) for spelling in SPELLINGS]
        texts.append({"seat": board.turn, "texts": spelled})
        board.push(action)
    return texts


def _by_search(
    board: Board, legal: list[int]
) -> tuple[dict[int, float], dict[int, float], dict[int, tuple[int, ...]]]:
    """No probabilities; the mover's chance after each action, and the line that shows it."""
    values, lines = {}, {}
    nodes = max(1000, NODES // len(legal))
    for action in legal:
        after = board.copy()
        after.push(action)
        value, line = _search(board.ruleset, after, nodes)
        values[action] = chance(value if after.turn == board.turn else -value)
        lines[action] = line
    return {}, values, lines


def _by_network(
    board: Board, legal: list[int], judge: str, roster: Roster
) -> tuple[dict[int, float], dict[int, float]]:
    """The policy's probability of each action, and the mover's chance after it."""
    kind, _, rest = judge.partition(":")
    name, simulations = judge, 0
    if kind == "search":
        name, _, number = rest.rpartition(":")
        simulations = int(number)
    path = roster.path(name)
    try:
        # Torch is slow to import and the bots don't need it.
        from agents.play import network_hints

        return network_hints.evaluate(path, board, legal, simulations)
    except ImportError as error:
        raise Refused(
            f"{judge}: a checkpoint needs torch, pip install 'bao_env[train]' ({error})", 502
        ) from error
    except Exception as error:  # a damaged file or one for other rules must not stop the server
        raise Refused(f"{judge} cannot judge: {roster.without_paths(error)}", 502) from error
