"""Analyse positions and games: a score and a line of play for each move, and what was missed.

>>> from bao_agents import analyse
>>> from bao_env import Board
>>> board = Board("kujifunza")
>>> analysis = analyse(board, "alphabeta:20000n")
>>> board.push(analysis.lines[0].action)

Alpha-beta, guided or plain, can be asked, and so can a network with or without a search. The solver
also tries to prove who wins. Its proofs are certain; a player's scores are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bao_agents.evaluators.tables import SCALE
from bao_agents.nets.checkpoint_files import find_guide
from bao_agents.players import registry
from bao_agents.players.base import PlayerName
from bao_agents.players.registry import read_network
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.alphabeta.transposition import PROVEN
from bao_agents.search.solver.solver import Solution, Solver
from bao_agents.support.legal_bits import bits_of
from bao_env.board import Board
from bao_env.engine.ruleset import Ruleset

if TYPE_CHECKING:
    from bao_agents.nets.network import PolicyNetwork

PLAYER = "alphabeta:100ms"
PROOF_NODES = 200_000
"""Positions that the solver visits to prove who wins, and as many for all moves together."""
MISTAKE, BLUNDER = 0.3, 0.6
"""Points that a move marked ``?`` or ``??`` loses at least; a win is 1 and a loss -1."""
_LINE_NODES = 100_000
"""Positions that alpha-beta visits to continue the line of a player that has none."""
_LEAST_NODES, _LEAST_SECONDS = 1000, 0.001
_UNKNOWN = Solution(None, None, False, (), 0)
_SEARCHES = ("alphabeta", "guided", "guided-by", "solver")
NETWORKS = ("network", "search")
Read = Callable[[Path, Ruleset], "PolicyNetwork"]


class Line(NamedTuple):
    """A move, and how the game would continue."""

    action: int
    score: float
    """The value for the player to move, -1 (a loss) to 1 (a win), as the analysing player
    sees it."""
    proof: Solution
    """Who wins after the move, if the solver has proved it; its plies count the move itself."""
    probability: float | None
    """The move's probability in a network's policy; None for other players."""
    actions: tuple[int, ...]
    """Best play for both sides, beginning with ``action``; only that if no more is known."""


class Analysis(NamedTuple):
    """The analysis of a position."""

    score: float
    """The value for the player to move, -1 (a loss) to 1 (a win), or a proven result."""
    proof: Solution
    """Who wins, and within how many plies, if the solver has proved it."""
    lines: tuple[Line, ...]
    """The best moves, best first; proven wins come before all others, proven losses after them."""


def analyse(
    board: Board,
    player: str | PlayerName = PLAYER,
    *,
    lines: int | None = 3,
    proof_nodes: int = PROOF_NODES,
    read: Read = read_network,
) -> Analysis:
    """Return what a player thinks of a position, and what the solver can prove about it.

    Args:
        board: a game that is not over.
        player: alpha-beta, guided or plain, the solver, or a network. Its limit is shared by the
            moves.
        lines: the number of moves to return; None for all.
        proof_nodes: positions that the solver visits to prove who wins, and as many for the moves.
        read: returns the network of a checkpoint.

    Raises:
        ValueError: the game is over, or the player is unknown, cannot be used under these rules or
            gives no analysis.
    """
    spec = registry.parse(player) if isinstance(player, str) else player
    after = {action: board.copy() for action in board.legal_actions}
    if not after:
        raise ValueError("the game is over: there is no move to analyse")
    for action, child in after.items():
        child.push(action)
    solver = Solver(board.ruleset, nodes=proof_nodes)
    root = solver.solve(board.packed, shortest=True)
    proofs = {
        action: _prove(solver, child, proof_nodes // len(after)) for action, child in after.items()
    }
    kind = spec.kind.name
    policy: dict[int, float | None] = dict.fromkeys(after)
    continued: dict[int, tuple[int, ...]] = {}
    if kind in _SEARCHES:
        searcher = _searcher(spec, board.ruleset, len(after), read)
        scores, continued = _by_search(searcher, board, after, proofs)
    elif kind in NETWORKS:
        policy, scores = _by_network(board, after, spec, read)
    else:
        raise ValueError(f"{spec} gives no analysis: expected a player such as {PLAYER}")

    def merit(action: int) -> tuple[int, float, float, int]:
        winner, plies, *_ = proofs[action]
        if winner is None:
            return 0, policy[action] or 0.0, scores[action], 0
        won, distance = winner == board.turn, plies or 0
        return (1, 0.0, 0.0, -distance) if won else (-1, 0.0, 0.0, distance)

    order = sorted(after, key=merit, reverse=True)
    best = order[0]
    if best not in continued:
        line_searcher = AlphaBetaAgent(board.ruleset, nodes=_LINE_NODES, threads=1)
        _, continued = _by_search(line_searcher, board, {best: after[best]}, proofs)
    found = tuple(
        Line(a, scores[a], proofs[a], policy[a], (a, *continued.get(a, ()))) for a in order[:lines]
    )
    score = scores[best]
    if root.winner is not None:
        score = 1.0 if root.winner == board.turn else -1.0
    return Analysis(score, root, found)


def _prove(solver: Solver, board: Board, nodes: int) -> Solution:
    """Solve the position after a move; the move itself counts as a ply."""
    outcome = board.outcome()
    if outcome is not None:
        return Solution(outcome.winner, 1, True, (), 0)
    if nodes < 1:
        return _UNKNOWN
    found = solver.solve(board.packed, shortest=True, nodes=nodes)
    return found._replace(plies=found.plies and found.plies + 1)


def points(value: float) -> float:
    """Return the value from -1 to 1 that stands for one of alpha-beta."""
    if abs(value) > PROVEN:
        return math.copysign(1.0, value)
    return math.tanh(value / (2 * SCALE))


def _searcher(spec: PlayerName, rules: Ruleset, parts: int, read: Read) -> AlphaBetaAgent:
    """Return an alpha-beta search with a part of a player's limit, and one ply shallower."""
    network = None
    if spec.kind.name in ("guided", "guided-by"):
        network = read(spec.path or find_guide(rules.name), rules)
    plies, seconds, nodes = spec.limit
    return AlphaBetaAgent(
        rules,
        depth=plies and max(1, plies - 1),
        seconds=seconds and max(seconds / parts, _LEAST_SECONDS),
        nodes=nodes and max(nodes // parts, _LEAST_NODES),
        network=network,
        threads=1,
    )


def _by_search(
    searcher: AlphaBetaAgent,
    board: Board,
    after: Mapping[int, Board],
    proofs: Mapping[int, Solution],
) -> tuple[dict[int, float], dict[int, tuple[int, ...]]]:
    """Return the score of each action, and the line after it."""
    scores, lines = {}, {}
    for action, child in after.items():
        winner, *_, line, _ = proofs[action]
        if winner is not None:
            scores[action] = 1.0 if winner == board.turn else -1.0
            lines[action] = line
        else:
            found = searcher.search(child.packed)
            scores[action] = points(found.value if child.turn == board.turn else -found.value)
            lines[action] = found.line
    return scores, lines


def _by_network(
    board: Board, after: Mapping[int, Board], spec: PlayerName, read: Read
) -> tuple[dict[int, float | None], dict[int, float]]:
    """Return the policy's probability of each action, and the value of the board after it."""
    # Torch is slow to import, and the bots do not need it.
    from bao_agents.nets.legal_actions import probabilities
    from bao_agents.nets.player import NetworkAgent

    assert spec.path is not None
    network = read(spec.path, board.ruleset)
    agent = NetworkAgent(network, board.ruleset)
    found = agent.evaluate(board.packed[None], np.array([bits_of(after)], np.uint64))
    shares: dict[int, float | None] = dict(
        zip(after, probabilities(found.logits).tolist(), strict=True)
    )
    results = dict(zip(after, found.values.tolist(), strict=True))
    if spec.number:
        from bao_agents.search.gumbel.search import GumbelSearch

        search = GumbelSearch(board.ruleset.kernel, network, 1, spec.number)
        searched = search.search(board.packed[None])
        for action in after:
            shares[action] = float(searched.policies[0, action])
            if np.isfinite(searched.qvalues[0, action]):
                results[action] = float(searched.qvalues[0, action])
    return shares, {action: min(1.0, max(-1.0, result)) for action, result in results.items()}


# --- whole games ----------------------------------------------------------------------------------


class Reviewed(NamedTuple):
    """A move of a game, and its analysis."""

    ply: int
    """Actions before it."""
    seat: int
    """Who played it."""
    played: Line
    analysis: Analysis
    """The analysis of the position before the move, with all moves."""

    @property
    def gives_win_away(self) -> bool:
        """Whether a proved win became a proved loss."""
        before, after = self.analysis.proof.winner, self.played.proof.winner
        return before == self.seat and after == 1 - self.seat

    @property
    def mark(self) -> str:
        """``??`` for a blunder, ``?`` for a mistake, as in chess; else empty."""
        score = self.played.score
        if self.played.proof.winner is not None:
            score = 1.0 if self.played.proof.winner == self.seat else -1.0
        lost = self.analysis.score - score
        if self.gives_win_away or lost >= BLUNDER:
            return "??"
        return "?" if lost >= MISTAKE else ""


def review(
    board: Board,
    player: str | PlayerName = PLAYER,
    *,
    proof_nodes: int = PROOF_NODES,
) -> Iterator[Reviewed]:
    """Analyse each move of a game, from the first to the last.

    Args:
        board: the game at its end.
        player, proof_nodes: see :func:`analyse`.

    Raises:
        ValueError: see :func:`analyse`.
    """
    for ply in range(len(board.move_stack)):
        yield review_move(board, ply, player, proof_nodes=proof_nodes)


def review_move(
    board: Board, ply: int, player: str | PlayerName = PLAYER, *, proof_nodes: int = PROOF_NODES
) -> Reviewed:
    """Analyse the move of a game after ``ply`` others; see :func:`review`."""
    before, actions = board.copy(), board.move_stack
    for _ in actions[ply:]:
        before.pop()
    analysis = analyse(before, player, lines=None, proof_nodes=proof_nodes)
    played = next(line for line in analysis.lines if line.action == actions[ply])
    return Reviewed(ply, before.turn, played, analysis)
