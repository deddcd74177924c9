"""Play by plain minimax: look two moves ahead, and take the best move. Copy this to write a player.

    bao match minimax:player greedy --path training/examples

There is nothing to train. Do not run this file: commands call :func:`player`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bao_env import NORTH, SOUTH, Board, Ruleset

DEPTH = 2


def lead(board: Board) -> int:
    """Return how many seeds more South has than North."""
    position = board.position
    south, north = (sum(position.pits(seat)) + position.store[seat] for seat in (SOUTH, NORTH))
    return south - north


def value(board: Board, depth: int) -> int:
    """Return what a board is worth to South if both look ``depth`` moves ahead."""
    outcome = board.outcome()
    if outcome is not None:
        return 1000 if outcome.winner == SOUTH else -1000
    if depth == 0:
        return lead(board)
    values = [value_after(board, action, depth) for action in board.legal_actions]
    return max(values) if board.turn == SOUTH else min(values)


def value_after(board: Board, action: int, depth: int) -> int:
    """Return what an action is worth to South; the board itself stays as it was."""
    board.push(action)
    action_value = value(board, depth - 1)
    board.pop()
    return action_value


class Minimax:
    """A player under some rules."""

    def __init__(self, ruleset: str | Ruleset) -> None:
        self.ruleset = ruleset

    def act(
        self, positions: npt.NDArray[np.uint64], legal: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """Choose an action in each of B games; see :meth:`bao_env.Agent.act`."""
        return np.array([self.choose(Board.from_packed(row, self.ruleset)) for row in positions])

    def choose(self, board: Board) -> int:
        """Return the best action, the first of several; 0 if the game is over."""
        best = max if board.turn == SOUTH else min
        return best(
            board.legal_actions,
            key=lambda action: value_after(board, action, DEPTH),
            default=0,
        )


def player(ruleset: str | Ruleset, seed: int) -> Minimax:
    """Return the player; it makes no random choices, so it does not use the seed."""
    return Minimax(ruleset)
