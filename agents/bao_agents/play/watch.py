"""Let two players play on many boards at once, one ply at a time, for people to watch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bao_agents.arena.openings import draw_openings
from bao_agents.play.refused import Refused, check_types
from bao_agents.play.roster import HUMAN
from bao_agents.play.seated_game import Turn, position_values
from bao_env.board import Board
from bao_env.engine.ruleset import Ruleset

MAX_BOARDS = 12
"""The most boards side by side."""
_OPENING_PLIES = 6
_MAX_PLIES = 1000


class Watch:
    """Games between two players from balanced openings; each plays half of them as South.

    Args:
        ruleset: the rules.
        players: names that the roster accepts; the first plays South on boards 0, 2, 4 ...
        boards: the number of boards, 1 to MAX_BOARDS.
        seed: the seed of the openings.

    Raises:
        Refused: the number is out of range, or a player is a person.
    """

    def __init__(self, ruleset: Ruleset, players: tuple[str, str], boards: int, seed: int) -> None:
        if not 1 <= boards <= MAX_BOARDS:
            raise Refused(f"{boards} boards: expected 1 to {MAX_BOARDS}")
        if HUMAN in players:
            raise Refused("people cannot play here: choose two bots")
        self._players = players
        # Two boards share an opening, so each player gets both sides of it.
        openings = draw_openings(ruleset, -(-boards // 2), _OPENING_PLIES, seed)
        self._boards = []
        for i in range(boards):
            board = Board(ruleset, int(openings.first_players[i // 2]))
            for action in openings.actions[i // 2]:
                board.push(int(action))
            self._boards.append(board)

    @check_types
    def turns(self) -> list[Turn]:
        """Return copies of the boards that are not over, each with its player to move."""
        return [
            Turn(board.copy(), self._seats(i)[board.turn])
            for i, board in enumerate(self._boards)
            if not _is_over(board)
        ]

    def advance(self, turns: list[Turn], actions: Sequence[int]) -> dict[str, Any]:
        """Play an action on each board of ``turns``, which :meth:`turns` returned.

        Raises:
            Refused: the boards have changed since.
        """
        if turns != self.turns():
            raise Refused("the games have continued meanwhile: look again", 409)
        running = [board for board in self._boards if not _is_over(board)]
        for board, action in zip(running, actions, strict=True):
            board.push(action)
        return {"state": self.state()}

    def _seats(self, i: int) -> tuple[str, str]:
        """Return the players of South and North on a board."""
        first, second = self._players
        return (second, first) if i % 2 else (first, second)

    def state(self) -> dict[str, Any]:
        """Return all boards and the score so far, as plain values."""
        boards, score = [], [0, 0]
        for i, board in enumerate(self._boards):
            outcome = board.outcome()
            winner = outcome.winner if outcome else None
            if winner is not None:
                score[winner ^ (i & 1)] += 1
            boards.append(
                {
                    **position_values(board),
                    "seats": self._seats(i),
                    "winner": winner,
                    "over": _is_over(board),
                }
            )
        running = any(not board["over"] for board in boards)
        return {"players": self._players, "score": score, "running": running, "boards": boards}


def _is_over(board: Board) -> bool:
    return board.outcome() is not None or len(board.move_stack) >= _MAX_PLIES
