"""One game at the board: its seats, its moves with undo and redo, and its state as plain values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from agents.play.refused import Refused
from agents.play.rule_texts import rule_text
from bao_env.board import Board, Event, IllegalMoveError
from bao_env.engine.action import pack_action, unpack_action
from bao_env.engine.ruleset import Ruleset
from bao_env.game import SEAT_NAMES
from bao_env.notation.moves import SPELLINGS
from bao_env.notation.positions import action_to_move, hole_name

MAX_PLIES: Final = 2000
"""The longest game: the board is for people."""
_RULE: Final = re.compile(r"(.*) \(([^()]*)\)")


@dataclass(frozen=True)
class Ply:
    """An action in the game's list, undone ones included."""

    action: int
    seat: int
    texts: tuple[str, ...]
    """One for each of SPELLINGS."""
    joined: bool
    """Whether it belongs to the turn of the action before it (Dutch I.a)."""


def event_values(event: Event) -> dict[str, Any]:
    """An event as plain values, with its words and the text of its rule."""
    return {
        "kind": event.kind.value,
        "seat": event.seat,
        "pits": list(event.pits),
        "seeds": event.seeds,
        "at": event.at,
        "rule": event.rule,
        "rule_text": rule_text(event.rule),
        "names": event.names(),
        "words": str(event),
        "counts": [list(side) for side in event.counts],
        "store": list(event.store),
        "hand": event.hand,
    }


class Game:
    """A board with two seats and a list of moves to step back and forth in.

    Args:
        board: the start, with the moves made so far.
        seats: who plays South and North, as :meth:`agents.play.roster.Roster.check` takes them.

    Raises:
        Refused: the game has more than MAX_PLIES moves.
    """

    def __init__(self, board: Board, seats: tuple[str, str]) -> None:
        self.seats = seats
        actions = board.move_stack
        self._board = board.copy()
        while self._board.move_stack:
            self._board.pop()
        self.start = self._board.text()
        self._plies: list[Ply] = []
        if len(actions) > MAX_PLIES:
            raise Refused(f"{len(actions)} moves: expected at most {MAX_PLIES}")
        for action in actions:
            self._append(action)

    @property
    def ruleset(self) -> Ruleset:
        """The rules in force."""
        return self._board.ruleset

    @property
    def ply(self) -> int:
        """Actions from the start to the position shown."""
        return len(self._board.move_stack)

    @property
    def player(self) -> str:
        """The player to move."""
        return self.seats[self._board.turn]

    def board(self) -> Board:
        """A copy of the board as shown."""
        return self._board.copy()

    def _append(self, action: int) -> None:
        board = self._board
        texts = tuple(board.move_text(action, spelling) for spelling in SPELLINGS)
        joined = board.position.pending is not None and bool(board.move_stack)
        entry = Ply(action, board.turn, texts, joined)
        del self._plies[self.ply :]
        board.push(action)
        self._plies.append(entry)

    def play(self, action: int, ply: int) -> list[dict[str, Any]]:
        """Play an action at ``ply``, dropping what had been undone; returns its events.

        Raises:
            Refused: the game stands at another ply, is too long, or the action is illegal.
        """
        if ply != self.ply:
            raise Refused(f"the game is at ply {self.ply}, not {ply}: look again", 409)
        if ply >= MAX_PLIES:
            raise Refused(f"a game here has at most {MAX_PLIES} plies")
        try:
            events = self._board.trace(self._board.parse_move(action))
        except IllegalMoveError as error:
            raise Refused(str(error)) from error
        self._append(action)
        return [event_values(event) for event in events]

    def go_to(self, ply: int) -> None:
        """Undo or redo until the game stands at ``ply``.

        Raises:
            Refused: the game has no such ply.
        """
        if not 0 <= ply <= len(self._plies):
            raise Refused(f"ply {ply}: expected 0 to {len(self._plies)}")
        while self.ply > ply:
            self._board.pop()
        while self.ply < ply:
            self._board.push(self._plies[self.ply].action)

    def events(self, ply: int) -> list[dict[str, Any]]:
        """The events of the action played at ``ply``, wherever the game stands now.

        Raises:
            Refused: no action was played there.
        """
        if not 0 <= ply < len(self._plies):
            raise Refused(f"ply {ply}: expected 0 to {len(self._plies) - 1}")
        board = self._at(ply)
        return [event_values(event) for event in board.trace(self._plies[ply].action)]

    def _at(self, ply: int) -> Board:
        board = self._board.copy()
        while len(board.move_stack) > ply:
            board.pop()
        while len(board.move_stack) < ply:
            board.push(self._plies[len(board.move_stack)].action)
        return board

    def choice(self, pit: int, direction: int) -> list[dict[str, Any]]:
        """The events of a move up to its house choice.

        Raises:
            Refused: the move comes to no house choice.
        """
        board = self._board
        stop, go = (pack_action(pit, direction, house) for house in (0, 1))
        if not {stop, go} <= set(board.legal_actions):
            raise Refused("this move comes to no house choice")
        shared = []
        for kept, played in zip(board.trace(stop), board.trace(go), strict=False):
            if kept != played:
                break
            shared.append(event_values(kept))
        return shared

    def why_not(self, pit: int, direction: int) -> dict[str, str]:
        """The rule that forbids a pit and a direction, in words; empty texts if it is legal."""
        action = pack_action(pit, direction)
        board = self._board
        if {action, action + 1} & set(board.legal_actions):
            return {"words": "", "rule": "", "rule_text": ""}
        try:
            board.parse_move(action)
        except IllegalMoveError as error:
            words = str(error).partition(": ")[2].partition("; legal:")[0]
            found = _RULE.fullmatch(words)
            rule = found[2] if found else ""
            text = rule_text(rule.split(",")[0])
            return {"words": found[1] if found else words, "rule": rule, "rule_text": text}
        raise AssertionError("an action that is not legal was parsed")

    def transcript(self, spelling: str) -> str:
        """The game up to the position shown, as text.

        Raises:
            Refused: the spelling is unknown.
        """
        if spelling not in SPELLINGS:
            raise Refused(f"unknown spelling; expected {' or '.join(SPELLINGS)}")
        head = {name.lower(): who for name, who in zip(SEAT_NAMES, self.seats, strict=True)}
        return self._board.transcript(head, spelling)

    def state(self) -> dict[str, Any]:
        """Everything that a screen shows, as plain values."""
        board = self._board
        position, outcome = board.position, board.outcome()
        last = self._plies[self.ply - 1] if self.ply else None
        return {
            "ruleset": board.ruleset.name,
            "seats": list(self.seats),
            "ply": self.ply,
            "length": len(self._plies),
            "text": board.text(),
            "start": self.start,
            "mover": position.mover,
            "stage": board.stage.value,
            "counts": [list(position.pits(seat)) for seat in (0, 1)],
            "store": list(position.store),
            "owns_house": list(position.owns_house),
            "barred": position.barred,
            "pending": position.pending,
            "outcome": outcome
            and {
                "winner": outcome.winner,
                "how": outcome.termination.value,
                "words": str(outcome),
            },
            "legal": [self._option(action) for action in board.legal_actions],
            "last": last and {"seat": last.seat, "pit": unpack_action(last.action)[0]},
            "moves": [
                {"seat": entry.seat, "texts": list(entry.texts), "joined": entry.joined}
                for entry in self._plies
            ],
        }

    def _option(self, action: int) -> dict[str, Any]:
        pit, direction, house = unpack_action(action)
        mover = self._board.turn
        return {
            "action": action,
            "name": action_to_move(action),
            "hole": hole_name(mover, pit),
            "texts": [self._board.move_text(action, spelling) for spelling in SPELLINGS],
            "pit": pit,
            "direction": direction,
            "house": house,
        }
