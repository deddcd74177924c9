"""Play one game at the board: seats, moves with undo and redo, and its state as plain values."""

from __future__ import annotations

import time
from functools import cache
from itertools import takewhile
from typing import Annotated, Any, Literal

from pydantic import Field

from bao_agents.play.refused import Refused, check_types
from bao_agents.play.roster import HUMAN
from bao_agents.play.rule_texts import rule_numbers, rule_text
from bao_agents.players.player import new_games
from bao_env.board import Board, EventKind, IllegalMoveError, MoveEvent
from bao_env.engine.action import pack_action, unpack_action
from bao_env.engine.layout import KICHWA
from bao_env.engine.ruleset import Ruleset
from bao_env.game import SEAT_NAMES, Stage
from bao_env.notation.game_record import format_rules
from bao_env.notation.moves import SPELLINGS, why_illegal
from bao_env.notation.transcript import Transcript
from bao_env.rules_in_words import rules_in_words

MAX_BOARD_PLIES = 400
"""The most plies of a game; the longest of 4,000 random games has 221."""
MAX_LINES, MAX_LINE = 5, 6
"""The most side lines kept for a game, and the most moves of each that the page shows."""
_MENTIONED = {
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
Ply = Annotated[int, Field(ge=0)]


def event_values(event: MoveEvent, rules: Ruleset) -> Data:
    """Return an event as plain values, with its words and the text of its rule."""
    text = rule_text(event.rule, rules)
    return vars(event) | {"rule_text": text, **_event_words(event)}


def _event_words(event: MoveEvent) -> Data:
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
        action = before.pop()
        last = {"seat": before.turn, **hand_way(before, action)}
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


def hand_way(board: Board, action: int) -> Data:
    """Return a legal action, with the pit and the direction in which its sowing starts.

    ``choice`` says what the player chooses with the direction of the action. It is ``way`` for the
    way in which the hand sows. In a capture of namua it is ``end``: the end of the front row from
    which the captured seeds are sown inwards (Donkers 1.4).
    """
    pit, direction, house = unpack_action(action)
    namua = board.stage is Stage.NAMUA or board.position.pending is not None
    start, hand_direction, choice = pit, direction, "way"
    if namua and "*" not in board.move_text(action):
        start, hand_direction, choice = KICHWA[direction], 1 - direction, "end"
    return {
        "action": action,
        "pit": pit,
        "direction": direction,
        "house": house,
        "start": start,
        "way": hand_direction,
        "choice": choice,
    }


def move_texts(board: Board, action: int) -> Data:
    """Return the seat of a legal move and its text in each of SPELLINGS, as plain values."""
    texts = [board.move_text(action, spelling) for spelling in SPELLINGS]
    return {"seat": board.turn, "texts": texts}


def _move_values(board: Board, action: int, events: list[MoveEvent]) -> Data:
    """Return a move for the list of moves, with a summary of its events.

    ``joined`` says whether the move continues the last turn (Dutch I.a). ``seeds`` is the number of
    captured seeds, and ``laps`` the number of sowings. ``mentioned`` has the other events worth
    mentioning.
    """
    joined = board.position.pending is not None and bool(board.move_stack)
    return {
        **move_texts(board, action),
        "joined": joined,
        "seeds": sum(event.seeds for event in events if event.kind is EventKind.CAPTURE),
        "laps": sum(event.kind is EventKind.SOW for event in events),
        "mentioned": [_event_words(event) for event in events if event.kind in _MENTIONED],
    }


def _up_to(board: Board, ply: int) -> Board:
    """Return a copy of a board after its first ``ply`` moves."""
    copy = board.copy()
    for _ in board.move_stack[ply:]:
        copy.pop()
    return copy


@cache
def compile_moves() -> None:
    """Compile what games need by playing a move; return at once if that has been done."""
    game = Game(Board(), (HUMAN, HUMAN))
    game.play(game.board().legal_actions[0], 0)


class Game:
    """A board with two seats and a list of moves to step back and forth in.

    Methods that take the values of a request check their types. Call :meth:`read` until it returns
    True before any other method.

    Args:
        board: the start, with the moves made so far.
        seats: the players of South and North, as :meth:`bao_agents.play.roster.Roster.check` takes
            them.

    Raises:
        Refused: the game has more than MAX_BOARD_PLIES moves.
    """

    def __init__(self, board: Board, seats: tuple[str, str]) -> None:
        self.seats: tuple[str, str] = seats
        self.number: int = int(new_games(1)[0])
        """The number of the game, for players that remember their games."""
        self._board = board.copy()
        """The game, including moves that have been undone."""
        self.version: int = time.time_ns() // 1_000_000
        """Increased by each change, so that a page notices the changes of another page.

        It starts with the time in milliseconds. If the server has lost a game and a page restarts
        it, the new version is therefore higher than the lost one."""
        self.ply: int = len(board.move_stack)
        """The number of actions from the start to the current position."""
        if self.ply > MAX_BOARD_PLIES:
            raise Refused(f"the game has {self.ply} moves: expected at most {MAX_BOARD_PLIES}")
        self._moves: list[Data] = []
        self._lines: list[tuple[Board, list[Data]]] = []
        """The side lines, latest first: the board and the moves of each.

        A side line is a continuation that the players abandoned for another one."""
        self._stated_winner = Transcript(board.record().head).stated_winner()
        """The seat that won because the other resigned after the last move, or None."""

    def read(self) -> bool:
        """Describe the next move of the board; return whether all moves are now described."""
        done = len(self._moves)
        if done < self.ply:
            board, action = self.board(done), self._board.move_stack[done]
            self._moves.append(_move_values(board, action, board.trace(action)))
        return len(self._moves) == self.ply

    def catch_up(self, copy: Game) -> Data:
        """Take over the moves of a longer copy of this game; return the state.

        After a restart of the server, the first page that restarts the game may have missed the
        last moves.
        """
        length = len(self._moves)
        shared_moves = copy._board.move_stack[:length]
        is_longer = copy.ply > self.ply == length and shared_moves == self._board.move_stack
        if is_longer and copy.board(length) == self.board():
            self._board, self._moves, self.ply = copy._board, copy._moves, copy.ply
            self._stated_winner = copy._stated_winner
            self.version += 1
        return self.show()

    def board(self, ply: int | None = None) -> Board:
        """Return a copy of the board at a ply; None means the current position.

        Raises:
            Refused: the game has no such ply.
        """
        ply = self.ply if ply is None else ply
        if not 0 <= ply <= len(self._moves):
            raise Refused(f"no such position or move: the game ends at ply {len(self._moves)}")
        return _up_to(self._board, ply)

    @check_types
    def show(self, ply: int | None = None) -> Data:
        """Return the state at a ply, without going there; None means the current position.

        Raises:
            Refused: the game has no such ply.
        """
        return {"state": self.state(ply)}

    def take_seats(self, seats: tuple[str, str]) -> Data:
        """Change the players."""
        self.seats = seats
        self.version += 1
        return self.show()

    @check_types
    def play(self, action: int, ply: int) -> Data:
        """Play an action at ``ply``; return its events and the new state.

        Undone moves are kept as a side line.

        Raises:
            Refused: the game stands at another ply, is too long, or the action is illegal.
        """
        board = self._board_at(ply)
        if ply >= MAX_BOARD_PLIES:
            raise Refused(f"a game here has at most {MAX_BOARD_PLIES} plies")
        try:
            board.parse_move(action)
        except IllegalMoveError as error:
            raise Refused(str(error)) from error
        events = board.trace(action)
        if self._board.move_stack[ply:] != [action]:
            self._keep_undone()
        self._moves = [*self._moves[:ply], _move_values(board, action, events)]
        board.push(action)
        self._board, self.ply, self._stated_winner = board, ply + 1, None
        self.version += 1
        return {"events": [event_values(event, board.ruleset) for event in events], **self.show()}

    @check_types
    def play_text(self, text: str, ply: int, spelling: Literal[0, 1] = 0) -> Data:
        """Play a move in any notation; see :meth:`play`.

        Raises:
            Refused: the text is not a legal move; the message lists the legal ones in one of
                SPELLINGS.
        """
        board = self._board_at(ply)
        try:
            return self.play(board.parse_move(text.strip()), ply)
        except IllegalMoveError as error:
            actions = board.legal_actions
            listed = " ".join(board.move_text(action, SPELLINGS[spelling]) for action in actions)
            raise Refused(str(error).replace(" ".join(board.legal_moves), listed)) from error

    def _board_at(self, ply: int) -> Board:
        """Return the current board; refuse the request if the page saw the game at another ply."""
        if ply != self.ply:
            raise Refused(f"the game is at ply {self.ply}, not {ply}: load it again", 409)
        return self.board()

    @check_types
    def turn(self, ply: int) -> tuple[Board, str, int]:
        """Return the board at ``ply``, the bot to move, and the game's number.

        Raises:
            Refused: the game stands at another ply, is over, or a person is to move.
        """
        board = self._board_at(ply)
        player = self.seats[board.turn]
        if board.outcome() is not None or self._winner_at(ply) is not None:
            raise Refused("the game is over")
        if player == HUMAN:
            raise Refused("it is a person's turn, not a bot's")
        return board, player, self.number

    @check_types
    def resign(self, seat: Literal[0, 1], ply: int) -> Data:
        """End the game at ``ply`` because a person resigns.

        Going back, or another move, cancels the resignation. Undone moves are kept as a side line.

        Raises:
            Refused: the game stands at another ply, is over, or a bot has the seat.
        """
        if self._board_at(ply).outcome() is not None:
            raise Refused("the game is over")
        if self.seats[seat] != HUMAN:
            raise Refused("only a person can resign")
        self._keep_undone()
        self._board, self._moves = self.board(), self._moves[:ply]
        self._stated_winner = 1 - seat
        self.version += 1
        return self.show()

    def _keep_undone(self) -> None:
        """Keep the game as a side line if some of its moves are undone."""
        if self.ply < len(self._moves):
            self._lines = [(self._board, self._moves), *self._lines][:MAX_LINES]

    def _winner_at(self, ply: int) -> int | None:
        """Return the seat that won because the other resigned at a ply, or None."""
        return self._stated_winner if ply == len(self._moves) else None

    def advance(self, board: Board, player: str, action: int) -> Data:
        """Play the action of a bot, on the board that :meth:`turn` returned with the bot.

        Raises:
            Refused: since then the game has gone on, a person has resigned, or the bot has lost
                its seat.
        """
        is_over = self._winner_at(self.ply) is not None
        if is_over or (board, player) != (self.board(), self.seats[board.turn]):
            raise Refused("the game has continued without this bot: load it again", 409)
        return self.play(action, self.ply)

    @check_types
    def go_to(self, ply: int) -> Data:
        """Undo or redo until the game stands at ``ply``.

        Raises:
            Refused: the game has no such ply.
        """
        self.ply = len(self.board(ply).move_stack)
        self.version += 1
        return self.show()

    @check_types
    def take_line(self, index: Annotated[int, Field(ge=0)]) -> Data:
        """Swap the game with a side line, and go to the ply where the two diverge.

        Raises:
            Refused: there is no such line.
        """
        if index >= len(self._lines):
            raise Refused(f"no such line: the game has {len(self._lines)} side lines")
        line, game = self._lines.pop(index), (self._board, self._moves)
        self.ply = self._shared_plies(line[0])
        if self.ply < len(self._moves):
            self._lines.insert(0, game)
        self._board, self._moves = line
        self._stated_winner = None
        self.version += 1
        return self.show()

    def _shared_plies(self, line: Board) -> int:
        """Return how many plies a line has in common with the game."""
        pairs = zip(line.move_stack, self._board.move_stack, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    def _line(self, line: Board, moves: list[Data]) -> Data:
        """Return a line as plain values: the ply where it leaves, and some moves from there."""
        ply = self._shared_plies(line)
        return {"ply": ply, "moves": moves[ply : ply + MAX_LINE]}

    @check_types
    def events(self, ply: Ply) -> Data:
        """Return the events of the action played at ``ply``, and the state before it.

        Raises:
            Refused: no action was played there.
        """
        board = self.board(ply + 1)
        action = board.pop()
        events = [event_values(event, board.ruleset) for event in board.trace(action)]
        return {"events": events, "state": self.state(ply)}

    def rules(self) -> dict[str, str]:
        """Return the rules in plain English words."""
        return {"text": rules_in_words(self._board.ruleset)}

    @check_types
    def picture(self, ply: Ply, viewer: Literal[0, 1]) -> dict[str, str]:
        """Return the board at a ply as SVG, with the seat ``viewer`` at the bottom."""
        return {"svg": self.board(ply).svg(viewer=viewer)}

    @check_types
    def choice(self, pit: Pit, direction: Direction, ply: int) -> Data:
        """Return the events of a move at ``ply`` up to its house choice.

        Raises:
            Refused: the game stands at another ply, or the move does not come to a house choice.
        """
        board = self._board_at(ply)
        stop, go = (pack_action(pit, direction, house) for house in (0, 1))
        if not {stop, go} <= set(board.legal_actions):
            raise Refused("this move leads to no choice about the house")
        pairs = zip(board.trace(stop), board.trace(go), strict=False)
        shared = takewhile(lambda events: events[0] == events[1], pairs)
        return {"events": [event_values(event, board.ruleset) for event, _ in shared]}

    @check_types
    def preview(self, pit: Pit, ply: int) -> Data:
        """Return each legal move of a pit at ``ply``, with its events but not their boards.

        Raises:
            Refused: the game stands at another ply.
        """
        board = self._board_at(ply)
        actions = [action for action in board.legal_actions if unpack_action(action)[0] == pit]
        return {
            "moves": [
                {
                    **hand_way(board, action),
                    "events": [
                        {**_event_words(event), "pits": event.pits, "at": event.at}
                        for event in board.trace(action)
                    ],
                }
                for action in actions
            ]
        }

    @check_types
    def why_not(self, pit: Pit, direction: Direction, ply: int) -> dict[str, str]:
        """Return why a pit and a direction are illegal at ``ply``; the texts are empty if legal.

        Raises:
            Refused: the game stands at another ply, or is over.
        """
        board = self._board_at(ply)
        action = pack_action(pit, direction)
        if board.outcome() is not None:
            raise Refused(f"the game is over: {board.outcome()}")
        words, rule, rules = "", "", board.ruleset
        if not {action, action + 1} & set(board.legal_actions):
            words, rule = why_illegal(board.packed, rules, action)
        return {
            "words": words,
            "rule": rule,
            "rule_text": rule_text(rule.split(",")[0], rules),
        }

    def state(self, ply: int | None = None) -> Data:
        """Return everything that the page shows at a ply, as plain values.

        ``current_ply`` is the ply where the game stands. ``must`` is the kind of all legal moves:
        ``capture``, ``takasa``, or ``side`` for the side of a capture; None if there is no move.
        ``rules`` are the switches, as in a transcript, or None if ``ruleset`` is the name of
        shipped rules. ``names`` are the names of the players in transcripts. ``transcripts`` has
        the game up to the current ply in each of SPELLINGS, for the page to keep.
        """
        board = self.board(ply)
        position, outcome, legal = board.position, board.outcome(), board.legal_actions
        end = outcome and {"winner": outcome.winner, "how": outcome.reason.value}
        if end is None and (winner := self._winner_at(len(board.move_stack))) is not None:
            end, legal = {"winner": winner, "how": "resigned"}, []
        must = None
        if legal:
            takasa = board.move_text(legal[0]).endswith("*")
            must = "takasa" if takasa else "capture" if position.pending is None else "side"
        return {
            **position_values(board),
            "version": self.version,
            "current_ply": self.ply,
            "must": must,
            "ruleset": board.ruleset.name,
            "rules": format_rules(board.ruleset).get("rules"),
            "seats": self.seats,
            "names": [*self._players().values()][:2],
            "house": board.ruleset.house,
            "rule_numbers": rule_numbers(board.ruleset),
            "has_store": any(position.store) or board.ruleset.opening_store > 0,
            "opening_plies": self._board.record().opening_plies,
            "length": len(self._moves),
            "text": board.text(),
            "stage": board.stage.value,
            "outcome": end,
            "legal": [hand_way(board, action) for action in legal],
            "moves": self._moves,
            "lines": [self._line(*line) for line in self._lines],
            "transcripts": [
                self.board().transcript(self._players(), spelling) for spelling in SPELLINGS
            ],
        }

    def _players(self) -> dict[str, str]:
        """Return a transcript's header lines: South, North, and a winner by resignation.

        A person keeps the name in the transcript that the game was started from.
        """
        head = {key.casefold(): (key, name) for key, name in self._board.record().head.items()}
        lines = {}
        for seat, player in zip(("south", "north"), self.seats, strict=True):
            key, name = head.get(seat, (seat, HUMAN))
            lines[key] = name if player == HUMAN else player
        if (winner := self._winner_at(self.ply)) is not None:
            key, _ = head.get("winner", ("winner", ""))
            lines[key] = SEAT_NAMES[winner]
        return lines
