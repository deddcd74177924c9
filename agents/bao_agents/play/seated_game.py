"""Play one game at the board: seats, moves with undo and redo, and its state as plain values."""

from __future__ import annotations

from dataclasses import asdict
from itertools import takewhile
from typing import Annotated, Any, Literal

from pydantic import Field

from bao_agents.play.refused import Refused, check_types
from bao_agents.play.roster import HUMAN
from bao_agents.play.rule_texts import rule_text
from bao_env.board import Board, Event, EventKind, IllegalMoveError
from bao_env.engine.action import pack_action, unpack_action
from bao_env.game import SEAT_NAMES
from bao_env.notation.moves import SPELLINGS, why_illegal
from bao_env.notation.positions import NotationError

MAX_PLIES = 2000
"""The longest game; people do not play longer ones."""
_TOLD = {
    EventKind.HOUSE_PLAYED,
    EventKind.HOUSE_STOP,
    EventKind.HOUSE_LOST,
    EventKind.TAKASIA_STOP,
    EventKind.TAKASIA,
}
"""The events that the summary of a move mentions, besides captures and the end of the game."""

Data = dict[str, Any]
Pit = Annotated[int, Field(ge=0, le=15)]
Direction = Annotated[int, Field(ge=0, le=1)]


def event_values(event: Event) -> Data:
    """Return an event as plain values, with its words and the text of its rule."""
    return asdict(event) | {"rule_text": rule_text(event.rule), **_event_words(event)}


def _event_words(event: Event) -> Data:
    """Return what a page needs to describe an event in any language."""
    return {
        "kind": event.kind.value,
        "seat": event.seat,
        "seeds": event.seeds,
        "names": event.names(),
        "words": str(event),
    }


def position_values(board: Board) -> Data:
    """Return the values that a drawing of a board needs."""
    position, before, last = board.position, board.copy(), None
    if board.move_stack:
        pit, direction, _ = unpack_action(before.pop())
        last = {"seat": before.turn, "pit": pit, "direction": direction}
    return {
        "ply": len(board.move_stack),
        "mover": position.mover,
        "counts": [position.pits(seat) for seat in (0, 1)],
        "store": position.store,
        "owns_house": position.owns_house,
        "last": last,
        "barred": position.barred,
        "pending": position.pending,
    }


def move_texts(board: Board, action: int) -> Data:
    """Return a legal move in each of SPELLINGS, and its seat, as plain values."""
    texts = [board.move_text(action, spelling) for spelling in SPELLINGS]
    return {"seat": board.turn, "texts": texts}


def _move_values(board: Board, action: int) -> Data:
    """Return a move for the list, with what it did.

    ``joined`` says that it continues the last turn (Dutch I.a); ``seeds`` are the captured seeds,
    ``laps`` the sowings, and ``told`` the other events worth mentioning.
    """
    joined = board.position.pending is not None and bool(board.move_stack)
    events = board.trace(action)
    return {
        **move_texts(board, action),
        "joined": joined,
        "seeds": sum(event.seeds for event in events if event.kind is EventKind.CAPTURE),
        "laps": sum(event.kind is EventKind.SOW for event in events),
        "told": [_event_words(event) for event in events if event.kind in _TOLD],
    }


def _up_to(board: Board, ply: int) -> Board:
    """Return a copy of a board with only its first moves."""
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
        """The game, including moves that have been undone."""
        self._version = 0
        """Increased by each change, so that a page notices those made by another."""
        self.ply = len(board.move_stack)
        """Actions from the start to the position shown."""
        if self.ply > MAX_PLIES:
            raise Refused(f"{self.ply} moves: expected at most {MAX_PLIES}")
        self._moves = []
        replayed = _up_to(board, 0)
        for action in board.move_stack:
            self._moves.append(_move_values(replayed, action))
            replayed.push(action)

    def board(self, ply: int | None = None) -> Board:
        """Return a copy of the board at a ply; None means the current position.

        Raises:
            Refused: the game has no such ply.
        """
        ply = self.ply if ply is None else ply
        if not 0 <= ply <= len(self._moves):
            raise Refused(f"ply {ply}: expected 0 to {len(self._moves)}")
        return _up_to(self._board, ply)

    @check_types
    def show(self) -> Data:
        """Return the game at its current position."""
        return {"state": self.state()}

    @check_types
    def look(self, ply: int) -> Data:
        """Return the game at any ply, without moving it there.

        Raises:
            Refused: the game has no such ply.
        """
        return {"state": self.state(ply)}

    def take_seats(self, seats: tuple[str, str]) -> Data:
        """Change the players."""
        self.seats = seats
        self._version += 1
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
        self._version += 1
        return {"events": events, **self.show()}

    def _check_ply(self, ply: int) -> None:
        if ply != self.ply:
            raise Refused(f"the game is at ply {self.ply}, not {ply}: look again", 409)

    @check_types
    def turn(self, ply: int) -> tuple[Board, str]:
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
        return board, player

    def advance(self, board: Board, action: int) -> Data:
        """Play the action of a bot on the board that :meth:`turn` returned.

        Raises:
            Refused: the board has changed since.
        """
        if board != self.board():
            raise Refused("the game has continued without this bot: look again", 409)
        return self.play(action, self.ply)

    @check_types
    def go_to(self, ply: int) -> Data:
        """Undo or redo until the game stands at ``ply``.

        Raises:
            Refused: the game has no such ply.
        """
        self.ply = len(self.board(ply).move_stack)
        self._version += 1
        return self.show()

    @check_types
    def events(self, ply: int) -> Data:
        """Return the events of the action played at ``ply``, and the state before it.

        Raises:
            Refused: no action was played there.
        """
        if not 0 <= ply < len(self._moves):
            raise Refused(f"ply {ply}: expected 0 to {len(self._moves) - 1}")
        events = self.board(ply).trace(self._board.move_stack[ply])
        return {"events": [event_values(event) for event in events], "state": self.state(ply)}

    @check_types
    def choice(self, pit: Pit, direction: Direction) -> Data:
        """Return the events of a move up to its house choice.

        Raises:
            Refused: the move does not come to a house choice.
        """
        board = self.board()
        stop, go = (pack_action(pit, direction, house) for house in (0, 1))
        if not {stop, go} <= set(board.legal_actions):
            raise Refused("this move does not come to a house choice")
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
            Refused: the name of a player cannot be written in a transcript.
        """
        head = {name.lower(): who for name, who in zip(SEAT_NAMES, self.seats, strict=True)}
        try:
            return {"transcript": self.board().transcript(head, spelling)}
        except NotationError as error:
            raise Refused(str(error)) from error

    def state(self, ply: int | None = None) -> Data:
        """Return everything that a screen shows at a ply, as plain values.

        ``at`` is the current ply of the game, and ``must`` says what the legal moves have in
        common: they are captures, ``takasa``, or the ``side`` of a capture.
        """
        board = self.board(ply)
        position, outcome, legal = board.position, board.outcome(), board.legal_actions
        must = None
        if legal:
            takasa = board.move_text(legal[0]).endswith("*")
            must = "takasa" if takasa else "capture" if position.pending is None else "side"
        return {
            **position_values(board),
            "version": self._version,
            "at": self.ply,
            "must": must,
            "ruleset": board.ruleset.name,
            "seats": self.seats,
            "length": len(self._moves),
            "text": board.text(),
            "stage": board.stage.value,
            "outcome": outcome and {"winner": outcome.winner, "how": outcome.termination.value},
            "legal": [_option(action) for action in legal],
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
