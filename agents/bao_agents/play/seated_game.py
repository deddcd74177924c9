"""One game at the board: its seats, its moves with undo and redo, and its state as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import takewhile
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from bao_agents.play.refused import Refused, check_types
from bao_agents.play.roster import HUMAN
from bao_agents.play.rule_texts import rule_text
from bao_env.board import Board, Event, IllegalMoveError
from bao_env.engine.action import pack_action, unpack_action
from bao_env.game import SEAT_NAMES
from bao_env.notation.moves import SPELLINGS, why_illegal
from bao_env.notation.positions import NotationError

MAX_PLIES = 2000
"""The longest game: the board is for people."""

Data = dict[str, Any]
Pit = Annotated[int, Field(ge=0, le=15)]
Direction = Annotated[int, Field(ge=0, le=1)]


class Turn(NamedTuple):
    """A board, and the player who is to move on it."""

    board: Board
    player: str


def event_values(event: Event) -> Data:
    """Return an event as plain values, with its words and the text of its rule."""
    return asdict(event) | {
        "kind": event.kind.value,
        "rule_text": rule_text(event.rule),
        "names": event.names(),
        "words": str(event),
    }


def position_values(board: Board) -> Data:
    """Return the values that a drawing of a board needs."""
    position, before, last = board.position, board.copy(), None
    if board.move_stack:
        pit = unpack_action(before.pop())[0]
        last = {"seat": before.turn, "pit": pit}
    return {
        "ply": len(board.move_stack),
        "mover": position.mover,
        "counts": [position.pits(seat) for seat in (0, 1)],
        "store": position.store,
        "owns_house": position.owns_house,
        "last": last,
    }


def move_texts(board: Board, action: int) -> Data:
    """Return a legal move in each of SPELLINGS, and its seat, as plain values."""
    texts = [board.move_text(action, spelling) for spelling in SPELLINGS]
    return {"seat": board.turn, "texts": texts}


def _move_values(board: Board, action: int) -> Data:
    """Return a move for the list; ``joined`` says that it continues the last turn (Dutch I.a)."""
    joined = board.position.pending is not None and bool(board.move_stack)
    return {**move_texts(board, action), "joined": joined}


def _up_to(board: Board, ply: int) -> Board:
    """Return a copy of a board with its first moves only."""
    copy = board.copy()
    for _ in board.move_stack[ply:]:
        copy.pop()
    return copy


class Game:
    """A board with two seats and a list of moves to step back and forth in.

    Methods that take or return values of a request check their types.

    Args:
        board: the start, with the moves made so far.
        seats: the players of South and North, as :meth:`bao_agents.play.roster.Roster.check` takes
            them.

    Raises:
        Refused: the game has more than MAX_PLIES moves.
    """

    def __init__(self, board: Board, seats: tuple[str, str]) -> None:
        self.seats = seats
        self._board = board.copy()
        """The game with the moves that have been undone."""
        self.ply = len(board.move_stack)
        """Actions from the start to the position shown."""
        if self.ply > MAX_PLIES:
            raise Refused(f"{self.ply} moves: expected at most {MAX_PLIES}")
        self._moves = []
        replayed = _up_to(board, 0)
        for action in board.move_stack:
            self._moves.append(_move_values(replayed, action))
            replayed.push(action)

    def board(self) -> Board:
        """Return a copy of the board as shown."""
        return _up_to(self._board, self.ply)

    @check_types
    def show(self) -> Data:
        """Return the game as shown."""
        return {"state": self.state()}

    def take_seats(self, seats: tuple[str, str]) -> Data:
        """Change the players."""
        self.seats = seats
        return self.show()

    @check_types
    def play(self, action: int, ply: int) -> Data:
        """Play an action at ``ply``, drop the undone moves, and return the action's events.

        Raises:
            Refused: the game stands at another ply, is too long, or the action is illegal.
        """
        self._check_ply(ply)
        if ply >= MAX_PLIES:
            raise Refused(f"a game here has at most {MAX_PLIES} plies")
        board = self.board()
        try:
            board.parse_move(action)
        except IllegalMoveError as error:
            raise Refused(str(error)) from error
        events = [event_values(event) for event in board.trace(action)]
        self._moves[ply:] = [_move_values(board, action)]
        board.push(action)
        self._board, self.ply = board, ply + 1
        return {"events": events, **self.show()}

    def _check_ply(self, ply: int) -> None:
        if ply != self.ply:
            raise Refused(f"the game is at ply {self.ply}, not {ply}: look again", 409)

    @check_types
    def turns(self, ply: int) -> list[Turn]:
        """Return the board at ``ply`` and the bot that is to move on it.

        Raises:
            Refused: the game stands at another ply, is over, or a person is to move.
        """
        self._check_ply(ply)
        board = self.board()
        player = self.seats[board.turn]
        if board.outcome() is not None:
            raise Refused("the game is over")
        if player == HUMAN:
            raise Refused(f"{SEAT_NAMES[board.turn]} is played by a person")
        return [Turn(board, player)]

    def advance(self, turns: list[Turn], actions: Sequence[int]) -> Data:
        """Play the action of a bot on the board that :meth:`turns` returned.

        Raises:
            Refused: the board has changed since.
        """
        if turns[0].board != self.board():
            raise Refused("the game has continued without this bot: look again", 409)
        return self.play(actions[0], self.ply)

    @check_types
    def go_to(self, ply: int) -> Data:
        """Undo or redo until the game stands at ``ply``.

        Raises:
            Refused: the game has no such ply.
        """
        if not 0 <= ply <= len(self._moves):
            raise Refused(f"ply {ply}: expected 0 to {len(self._moves)}")
        self.ply = ply
        return self.show()

    @check_types
    def events(self, ply: int) -> Data:
        """Return the events of the action played at ``ply``, at any point of the game.

        Raises:
            Refused: no action was played there.
        """
        if not 0 <= ply < len(self._moves):
            raise Refused(f"ply {ply}: expected 0 to {len(self._moves) - 1}")
        events = _up_to(self._board, ply).trace(self._board.move_stack[ply])
        return {"events": [event_values(event) for event in events]}

    @check_types
    def choice(self, pit: Pit, direction: Direction) -> Data:
        """Return the events of a move up to its house choice.

        Raises:
            Refused: the move comes to no house choice.
        """
        board = self.board()
        stop, go = (pack_action(pit, direction, house) for house in (0, 1))
        if not {stop, go} <= set(board.legal_actions):
            raise Refused("this move comes to no house choice")
        both = zip(board.trace(stop), board.trace(go), strict=False)
        shared = takewhile(lambda events: events[0] == events[1], both)
        return {"events": [event_values(event) for event, _ in shared]}

    @check_types
    def why_not(self, pit: Pit, direction: Direction) -> dict[str, str]:
        """Return the rule that forbids a pit and a direction; empty texts if it is legal.

        Raises:
            Refused: the game is over.
        """
        action = pack_action(pit, direction)
        board = self.board()
        if board.outcome() is not None:
            raise Refused(f"the game is over: {board.outcome()}")
        words = rule = ""
        if not {action, action + 1} & set(board.legal_actions):
            words, rule = why_illegal(board.words, board.ruleset, action)
        return {"words": words, "rule": rule, "rule_text": rule_text(rule.split(",")[0])}

    @check_types
    def transcript(self, spelling: Literal["donkers", "kibao"] = "donkers") -> dict[str, str]:
        """Return the game as text, up to the position shown.

        Raises:
            Refused: the name of a player cannot stand in a transcript.
        """
        head = {name.lower(): who for name, who in zip(SEAT_NAMES, self.seats, strict=True)}
        try:
            return {"transcript": self.board().transcript(head, spelling)}
        except NotationError as error:
            raise Refused(str(error)) from error

    def state(self) -> Data:
        """Return everything that a screen shows, as plain values."""
        board = self.board()
        position, outcome = board.position, board.outcome()
        return {
            **position_values(board),
            "ruleset": board.ruleset.name,
            "seats": self.seats,
            "length": len(self._moves),
            "text": board.text(),
            "stage": board.stage.value,
            "barred": position.barred,
            "pending": position.pending,
            "outcome": outcome and {"winner": outcome.winner, "how": outcome.termination.value},
            "legal": [_option(action) for action in board.legal_actions],
            "moves": self._moves,
        }


def _option(action: int) -> Data:
    pit, direction, house = unpack_action(action)
    return {
        "action": action,
        "pit": pit,
        "direction": direction,
        "house": house,
    }
