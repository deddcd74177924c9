"""Analyse positions and games: score each move, show a line of play, and find the mistakes.

A player gives the scores: alpha-beta, guided or plain, a network, or the solver. In addition, the
solver tries to prove who wins. Its proofs are certain; a player's scores are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from bao_agents.players import registry
from bao_agents.players.names import PlayerName
from bao_agents.players.player import NamedPlayer
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.limits import Limit
from bao_agents.search.solver.solver import Solution, Solver
from bao_env.board import Board

PLAYER = "alphabeta:100ms"
PROOF_NODES = 200_000
"""Most positions that the solver visits to prove who wins; the moves together get as many again."""
MISTAKE, BLUNDER = 0.3, 0.6
"""A move that loses this much score or more gets ``?`` or ``??``; a win scores 1 and a loss -1."""
_LINE = Limit(nodes=100_000)
"""The limit of alpha-beta when it continues the best move of a player that gives no line."""
_UNKNOWN = Solution(None, None, False, (), 0)


class Line(NamedTuple):
    """A move, and how the game would continue."""

    action: int
    score: float
    """The value for the player to move, -1 (a loss) to 1 (a win): proven, or by the analysing
    player."""
    proof: Solution
    """Who wins after the move, if the solver has proven it; its plies include the move itself."""
    probability: float | None
    """The move's probability in a network's policy; None for other players."""
    actions: tuple[int, ...]
    """Best play for both sides, beginning with ``action``; only ``action`` if no more is known."""


class Analysis(NamedTuple):
    """The analysis of a position."""

    score: float
    """The value for the player to move, -1 (a loss) to 1 (a win): proven, or by the player."""
    proof: Solution
    """Who wins, and within how many plies, if the solver has proven it."""
    lines: tuple[Line, ...]
    """The best moves, best first; proven wins come first and proven losses last."""


def analyse(
    board: Board,
    player: str | PlayerName | NamedPlayer = PLAYER,
    *,
    lines: int | None = 3,
    proof_nodes: int = PROOF_NODES,
    threads: int | None = None,
) -> Analysis:
    """Analyse a position: return a player's opinion of it, and what the solver can prove.

    >>> from bao_agents import analyse
    >>> from bao_env import Board
    >>> rows = "0,0,2,0,1,6,1,7/2,3,2,3,2,1,5,0/0,0,0,0,0,1,4,2/4,3,2,0,5,0,8,0"
    >>> board = Board.from_text(f"{rows} 0,0 - S -")
    >>> analysis = analyse(board, "alphabeta:6")
    >>> analysis.score, analysis.proof.winner, analysis.proof.plies
    (1.0, 0, 5)
    >>> [(board.move_text(line.action), line.score) for line in analysis.lines]
    [('A8R*', 1.0), ('A6R*', 1.0), ('A3L*', -1.0)]

    Args:
        board: a game that is not over.
        player: a player that gives opinions (:meth:`~bao_agents.players.player.Player.analyse`):
            alpha-beta, guided or plain, the solver, or a network. All moves together share its
            limit.
        lines: the number of moves to return; None for all.
        proof_nodes: the most positions that the solver visits to prove who wins; it may visit as
            many again for the proofs of all moves together.
        threads: number of threads; all cores by default. With one thread and a limit of nodes, the
            same position always gets the same analysis.

    Raises:
        ValueError: the game is over, or the player is unknown, cannot be used under these rules or
            gives no analysis.
    """
    legal, mover = board.legal_actions, board.turn
    if not legal:
        raise ValueError("the game is over: there is no move to analyse")
    if not isinstance(player, NamedPlayer):
        player = registry.load(player, ruleset=board.ruleset, threads=threads)
    opinions = player.analyse(board)
    if opinions is None:
        raise ValueError(f"{player.name} gives no analysis: expected a player such as {PLAYER}")
    solver = Solver(board.ruleset, nodes=proof_nodes, threads=threads)
    proof = solver.solve(board.packed, shortest=True)
    proofs = {action: _prove(solver, board, action, proof_nodes // len(legal)) for action in legal}
    if proof.line:  # the proof of the position also proves its best move
        proofs[proof.line[0]] = proof._replace(line=proof.line[1:])
    candidates = [
        _with_proof(Line(action, score, _UNKNOWN, chance, (action, *line)), proofs[action], mover)
        for action, score, chance, line in opinions
    ]
    best_action = proof.line[0] if proof.line else None
    # Moves of equal merit keep the player's order.
    candidates.sort(key=lambda line: _merit(line.proof, mover), reverse=True)
    candidates.sort(key=lambda line: line.action != best_action)
    best = candidates[0]
    if best.proof.winner is None and len(best.actions) == 1:
        candidates[0] = best = _continued(best, board)
    if proof.winner is None and best.proof.winner is not None:
        # A proven best move proves the position.
        proof = best.proof._replace(is_shortest=False, line=(best.action, *best.proof.line))
    score = best.score
    if proof.winner is not None:
        score = 1.0 if proof.winner == mover else -1.0
    return Analysis(score, proof, tuple(candidates[:lines]))


def _prove(solver: Solver, board: Board, action: int, nodes: int) -> Solution:
    """Solve the position after a move; the result's plies include the move itself."""
    board_after = board.copy()
    board_after.push(action)
    outcome = board_after.outcome()
    if outcome is not None:
        return Solution(outcome.winner, 1, True, (), 0)
    if nodes < 1:
        return _UNKNOWN
    solution = solver.solve(board_after.packed, shortest=True, nodes=nodes)
    return solution._replace(plies=solution.plies and solution.plies + 1)


def _merit(proof: Solution, mover: int) -> tuple[int, int]:
    """Return a key that is highest for the proof of a quick win, and lowest for a quick loss."""
    if proof.winner is None:
        return 0, 0
    plies = proof.plies or 0
    return (1, -plies) if proof.winner == mover else (-1, plies)


def _continued(line: Line, board: Board) -> Line:
    """Return a line that has only its first move, continued by a search."""
    board_after = board.copy()
    board_after.push(line.action)
    searched = AlphaBetaAgent(board.ruleset, _LINE, threads=1).search(board_after.packed)
    return line._replace(actions=(line.action, *searched.line))


def _with_proof(line: Line, proof: Solution, mover: int) -> Line:
    """Return ``line`` with the proof of its move by ``mover``, if there is a proof."""
    if proof.winner is None:
        return line
    score = 1.0 if proof.winner == mover else -1.0
    return line._replace(score=score, proof=proof, actions=(line.action, *proof.line))


# --- whole games ----------------------------------------------------------------------------------


class Reviewed(NamedTuple):
    """A move of a game, and its analysis."""

    ply: int
    """The number of actions before the move."""
    seat: int
    """The seat that played the move."""
    played: Line
    analysis: Analysis
    """The analysis of the position before the move, with all moves."""

    @property
    def gives_win_away(self) -> bool:
        """Whether a proven win became a proven loss."""
        before, after = self.analysis.proof.winner, self.played.proof.winner
        return before == self.seat and after == 1 - self.seat

    @property
    def mark(self) -> str:
        """``??`` for a blunder, ``?`` for a mistake, as in chess; else ``?!`` or empty.

        A proof outweighs an opinion. In a proven win, a move gets ``?`` or ``??`` only if it is
        proven to lose. If the winner after it is unknown, it gets ``?!``. In a proven loss, no move
        is marked. If the best move has no proof, other moves are compared with the player's opinion
        of it, which may be wrong.
        """
        loss = self.analysis.score - self.played.score
        if self.analysis.proof.winner == 1 - self.seat or loss < MISTAKE:
            return ""
        if self.leaves_win_open:
            return "?!"
        return "??" if loss >= BLUNDER else "?"

    @property
    def leaves_win_open(self) -> bool:
        """Whether the position was a proven win, but the winner after the move is unknown."""
        return self.analysis.proof.winner == self.seat and self.played.proof.winner is None


def review(
    board: Board,
    player: str | PlayerName | NamedPlayer = PLAYER,
    *,
    proof_nodes: int = PROOF_NODES,
    threads: int | None = None,
) -> Iterator[Reviewed]:
    """Analyse each move of a game, from the first to the last.

    Args:
        board: the game at its end.
        player, proof_nodes, threads: see :func:`analyse`.

    Raises:
        ValueError: see :func:`analyse`.
    """
    if not isinstance(player, NamedPlayer):
        player = registry.load(player, ruleset=board.ruleset, threads=threads)
    for ply in range(len(board.move_stack)):
        yield review_move(board, ply, player, proof_nodes=proof_nodes, threads=threads)


def review_move(
    board: Board,
    ply: int,
    player: str | PlayerName | NamedPlayer = PLAYER,
    *,
    proof_nodes: int = PROOF_NODES,
    threads: int | None = None,
) -> Reviewed:
    """Analyse the move of a game at ``ply``, 0 for the first one; see :func:`review`."""
    solver = partial(Solver, board.ruleset, nodes=proof_nodes, threads=threads)
    board_before, actions = board.copy(), board.move_stack
    for _ in actions[ply:]:
        board_before.pop()
    analysis = analyse(board_before, player, lines=None, proof_nodes=proof_nodes, threads=threads)
    played = next(line for line in analysis.lines if line.action == actions[ply])
    reviewed = Reviewed(ply, board_before.turn, played, analysis)
    if reviewed.mark and ply and analysis.proof.winner is None:
        # A position that was proven lost one move earlier has no mistakes.
        reviewed = reviewed._replace(analysis=_with_earlier_loss(analysis, board_before, solver()))
    if reviewed.leaves_win_open and analysis.score - played.score >= MISTAKE:
        # Before the move is marked, the solver may spend as much on it as on the position.
        proof = _prove(solver(), board_before, played.action, proof_nodes)
        played = _with_proof(played, proof, board_before.turn)
        reviewed = reviewed._replace(played=played)
    return reviewed


def _with_earlier_loss(analysis: Analysis, board: Board, solver: Solver) -> Analysis:
    """Return the analysis of a position as lost, if the solver can prove that from the one before.

    What it learns about the earlier position may settle this one within the limit of nodes.
    """
    earlier = board.copy()
    earlier.pop()
    solver.solve(earlier.packed, shortest=True)
    proof = solver.solve(board.packed, shortest=True)
    is_lost = proof.winner == 1 - board.turn
    return analysis._replace(score=-1.0, proof=proof) if is_lost else analysis
