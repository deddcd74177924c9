"""Two players on many boards at once, a ply at a time, for people to watch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from agents.arena.openings import draw_openings
from agents.play.refused import Refused
from agents.play.roster import HUMAN, Roster
from bao_env.board import Board
from bao_env.engine.action import unpack_action
from bao_env.engine.position import turn_of
from bao_env.engine.ruleset import Ruleset

MAX_BOARDS: Final = 12
"""Boards side by side."""
_OPENING_PLIES: Final = 6
_MAX_PLIES: Final = 1000


class Turn(NamedTuple):
    """A board on which a player is to move."""

    number: int
    board: Board
    player: str


class Watch:
    """Games between two players from balanced openings; each plays half of them as South.

    Args:
        ruleset: the rules.
        players: names that the roster takes; the first plays South on boards 0, 2, 4 ...
        boards: their number, 1 to MAX_BOARDS.
        roster: knows the players.
        seed: of the openings.

    Raises:
        Refused: the number is out of range, or a player may not play here.
    """

    def __init__(
        self, ruleset: Ruleset, players: tuple[str, str], boards: int, roster: Roster, seed: int
    ) -> None:
        if not 1 <= boards <= MAX_BOARDS:
            raise Refused(f"{boards} boards: expected 1 to {MAX_BOARDS}")
        if HUMAN in players:
            raise Refused("people cannot play here: choose two bots")
        self.ruleset = ruleset
        self.players = tuple(roster.check(player) for player in players)
        # Two boards share an opening, so that each player gets both sides of it.
        openings = draw_openings(ruleset, -(-boards // 2), _OPENING_PLIES, seed)
        self._boards = []
        for i in range(boards):
            board = Board(ruleset, int(openings.first_players[i // 2]))
            for action in openings.actions[i // 2]:
                board.push(int(action))
            self._boards.append(board)
        self._over: list[int | None] = [None] * boards

    def turns(self) -> list[Turn]:
        """The boards that are not over, as copies, each with its player to move."""
        return [
            Turn(i, board.copy(), self.players[self._player_at(i)])
            for i, board in enumerate(self._boards)
            if self._running(board)
        ]

    def play(self, turns: list[Turn], actions: Sequence[int]) -> None:
        """Play an action on each board of ``turns``, which :meth:`turns` returned.

        Raises:
            Refused: the boards have changed since.
        """
        if turns != self.turns():
            raise Refused("the games have gone on meanwhile: look again", 409)
        for turn, action in zip(turns, actions, strict=True):
            self._boards[turn.number].push(action)

    def _running(self, board: Board) -> bool:
        return board.outcome() is None and len(board.move_stack) < _MAX_PLIES

    def _player_at(self, i: int) -> int:
        """Which of the two players is to move on a board."""
        return turn_of(self._boards[i].words) ^ (i & 1)

    def state(self) -> dict[str, Any]:
        """All boards and the score so far, as plain values."""
        boards, score = [], [0, 0]
        for i, board in enumerate(self._boards):
            position, outcome = board.position, board.outcome()
            if outcome is not None and outcome.winner is not None:
                score[outcome.winner ^ (i & 1)] += 1
            before = board.copy()
            action = before.pop() if before.move_stack else None
            boards.append(
                {
                    "seats": [self.players[i & 1], self.players[1 - (i & 1)]],
                    "ply": len(board.move_stack),
                    "mover": position.mover,
                    "counts": [list(position.pits(seat)) for seat in (0, 1)],
                    "store": list(position.store),
                    "owns_house": list(position.owns_house),
                    "winner": outcome.winner if outcome else None,
                    "over": not self._running(board),
                    "last": None
                    if action is None
                    else {"seat": before.turn, "pit": unpack_action(action)[0]},
                }
            )
        running = any(not board["over"] for board in boards)
        return {
            "players": list(self.players),
            "ruleset": self.ruleset.name,
            "score": score,
            "running": running,
            "boards": boards,
        }
