"""Play one game with moves by name, undo, notation and pictures."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import ClassVar, NamedTuple

import numpy as np

from bao_env.engine.action import NUM_ACTIONS, IllegalMoveError, actions_of
from bao_env.engine.argument_checks import MAX_COUNT, as_integer, check_array
from bao_env.engine.layout import SOUTH, Seat, seat_number
from bao_env.engine.position import (
    WORDS,
    Legal,
    PackedPositions,
    Position,
    opening,
    to_packed,
    turn_of,
    unpack,
)
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.game import (
    Outcome,
    Stage,
    Termination,
    legal_and_outcome,
    make_move,
    stage_of,
)
from bao_env.notation.events import EventKind, MoveEvent, trace_move
from bao_env.notation.game_record import GameRecord, replay, transcribe
from bao_env.notation.moves import format_move, may_start, read_move, why_illegal
from bao_env.notation.positions import (
    NotationError,
    action_to_move,
    format_position,
    move_to_action,
    parse_position,
    quoted,
)
from bao_env.notation.transcript import Transcript, format_transcript, iterate_transcripts
from bao_env.render.drawing import drawing
from bao_env.render.marks import Mark, MarkKind, action_marks
from bao_env.render.shapes import Shape
from bao_env.render.svg import svg_document
from bao_env.render.text import ascii_board

__all__ = [
    "Board",
    "EventKind",
    "IllegalMoveError",
    "MoveEvent",
    "Outcome",
    "Stage",
    "Termination",
]


class _Ply(NamedTuple):
    """One position of a game; it never changes."""

    packed: PackedPositions
    """The packed position, uint64[6]."""
    legal: int
    """The legal actions, as bits."""
    outcome: Outcome | None
    """How the game ended, or None while it runs."""
    action: int
    """The action that led here; -1 at the start."""
    stated: bool = False
    """Whether the caller set the outcome, rather than the rules."""


class Board:
    """A game of Bao, from its start to the current position.

    >>> board = Board()
    >>> board.push("A7L")
    >>> board.push("5R")
    >>> board.legal_moves
    ['A6L', 'A6R']
    >>> board.pop()
    18

    Args:
        ruleset: name of a rule set, or a :class:`Ruleset`.
        first_player: who begins, ``"south"`` or ``"north"``. A board never draws who begins, not
            even under rules in which chance decides.

    Raises:
        ValueError: ``ruleset`` or ``first_player`` is unknown.
    """

    def __init__(self, ruleset: str | Ruleset = "zanzibar", first_player: Seat = SOUTH) -> None:
        if isinstance(ruleset, str) and "/" in ruleset:
            raise ValueError(
                f"unknown rule set {ruleset!r:.80}: expected its name; to read a position use "
                "Board.from_text, and to read the file of a rule set bao_env.load_ruleset"
            )
        rules = get_ruleset(ruleset)
        self._reset(rules, opening(rules, seat_number(first_player, "first_player")))

    def _reset(self, ruleset: Ruleset, start: Position) -> None:
        self._ruleset = ruleset
        self._source = GameRecord(ruleset, start, ())
        """The game that the board was made from, with its head and comments."""
        packed = to_packed(start)
        self._plies = [_Ply(packed, *legal_and_outcome(packed, ruleset), action=-1)]
        """The start, and the position after each action. A move adds one item, and undoing it
        drops one, so an interrupt leaves the board as it was before the change or after it."""

    @classmethod
    def from_text(
        cls,
        text: str,
        ruleset: str | Ruleset = "zanzibar",
        moves: str | Iterable[str | int] = (),
    ) -> Board:
        """Return a board that starts from a position text, with ``moves`` played on it.

        Args:
            text: a position text (:mod:`bao_env.notation`). Plies count from 0 at this position,
                where the game may already be over.
            ruleset: name of a rule set, or a :class:`Ruleset`.
            moves: moves in any form that :meth:`push` takes, or one string of moves with spaces
                between them.

        Raises:
            NotationError: ``text`` is not a position that these rules allow.
            IllegalMoveError: one of the moves cannot be made.
            ValueError: the rule set is unknown.
        """
        board = cls(ruleset)
        board._reset(board._ruleset, parse_position(text, board._ruleset, finished=True))
        for move in moves.split() if isinstance(moves, str) else moves:
            board.push(move)
        return board

    @classmethod
    def from_packed(
        cls,
        packed: PackedPositions,
        ruleset: str | Ruleset = "zanzibar",
        outcome: Outcome | None = None,
    ) -> Board:
        """Return a board that starts from a packed position of a game.

        Args:
            packed: uint64[6]; that it is a position of the game is not validated.
            ruleset: name of a rule set, or a :class:`Ruleset`.
            outcome: the outcome, if the rules alone do not give it (after an illegal action, for
                example); None if they do.

        Raises:
            TypeError, ValueError: ``packed`` is not uint64[6], ``outcome`` is not an
                :class:`Outcome`, or the rule set is unknown.
        """
        check_array("packed", packed, np.uint64, (WORDS,))
        board = cls(ruleset)
        board._reset(board._ruleset, unpack(packed))
        board.end(outcome)
        return board

    def end(self, outcome: Outcome | None) -> None:
        """Set an outcome that the rules alone do not give, such as a loss by an illegal action.

        None changes nothing.

        Raises:
            TypeError: ``outcome`` is neither an :class:`Outcome` nor None.
        """
        if not isinstance(outcome, Outcome | None):
            raise TypeError(f"outcome={outcome!r:.80}: expected an Outcome or None")
        if outcome not in (None, self._now.outcome):
            self._plies[-1] = self._now._replace(legal=0, outcome=outcome, stated=True)

    @classmethod
    def from_transcript(
        cls,
        transcript: str | Transcript,
        ruleset: str | Ruleset | None = None,
        *,
        spelling: str | None = None,
        strict: bool = True,
    ) -> Board:
        """Return the board at the end of a game, with all its moves.

        The board keeps the head and the comments, and :meth:`transcript` writes them again.

        Args:
            transcript: one game, as text or parsed.
            ruleset: the rules; None means the rules that the head names, or else zanzibar.
            spelling: the spelling of the moves; None means the spelling that the head names, or
                else the spelling recognised by the signs in the moves.
            strict: whether the stars of a takasa and the case of letters must be right.

        Raises:
            NotationError: the text is not one game, or a move in it is wrong.
            TypeError: ``transcript`` is neither a string nor a transcript.
            ValueError: the rule set or the spelling is unknown.
        """
        if not isinstance(transcript, (str, Transcript)):
            raise TypeError(
                f"transcript: expected a string or a Transcript, not {type(transcript).__name__}"
            )
        if isinstance(transcript, str):
            games = list(islice(iterate_transcripts(transcript), 2))
            if len(games) != 1:
                number = "more than one game" if games else "no game"
                raise NotationError(f"the text contains {number}; expected exactly one")
            transcript = games[0]
        record = replay(transcript, ruleset, spelling=spelling, strict=strict)
        board = cls(record.ruleset)
        board._reset(record.ruleset, record.start)
        for action in record.actions:
            board.push(action)
        board.end(record.outcome)
        board._source = record
        return board

    # --- the position --------------------------------------------------------------------------

    @property
    def _now(self) -> _Ply:
        return self._plies[-1]

    @property
    def ruleset(self) -> Ruleset:
        """The rules in force."""
        return self._ruleset

    @property
    def packed(self) -> PackedPositions:
        """The packed position, uint64[6]; a copy."""
        return self._now.packed.copy()

    def batch(self) -> tuple[PackedPositions, Legal]:
        """Return the position and its legal actions as a batch of one: uint64[1, 6], uint64[1]."""
        return self.packed[None], np.array([self._now.legal], np.uint64)

    @property
    def position(self) -> Position:
        """The position in plain Python."""
        return unpack(self._now.packed)

    @property
    def turn(self) -> int:
        """The seat to move, SOUTH or NORTH; after the end, the seat that would be next."""
        return turn_of(self._now.packed)

    @property
    def stage(self) -> Stage:
        """The stage of the player to move."""
        return stage_of(self.position)

    @property
    def ply(self) -> int:
        """Actions played since the start."""
        return self.position.ply

    def text(self) -> str:
        """Return the position text, which :meth:`from_text` reads."""
        return format_position(self.position)

    def outcome(self) -> Outcome | None:
        """Return how the game ended, or None while it runs."""
        return self._now.outcome

    def is_game_over(self) -> bool:
        """Return whether the game has ended."""
        return self._now.outcome is not None

    # --- moves ---------------------------------------------------------------------------------

    @property
    def legal_actions(self) -> list[int]:
        """The legal actions in ascending order; empty after the end."""
        return actions_of(self._now.legal)

    @property
    def legal_moves(self) -> list[str]:
        """The canonical names of :attr:`legal_actions`, in the same order."""
        return [action_to_move(action) for action in self.legal_actions]

    @property
    def move_stack(self) -> list[int]:
        """The actions played, first to last; a copy."""
        return [ply.action for ply in self._plies[1:]]

    def peek(self) -> int:
        """Return the last action without undoing it.

        Raises:
            IndexError: no action has been played.
        """
        if len(self._plies) == 1:
            raise IndexError("there is no last move: none has been played on this board")
        return self._now.action

    def parse_move(self, move: str | int) -> int:
        """Return the legal action that ``move`` means, without playing it.

        Args:
            move: an action; a canonical name such as ``A6L``, which names the mover's own rows, for
                North too; or a move text in Donkers' or the kibao spelling. Upper and lower case,
                spaces and the stars of a takasa do not matter.

        Raises:
            IllegalMoveError: ``move`` is not a move, or is illegal now.
        """
        if self._now.outcome:
            raise IllegalMoveError(f"{_shown(move)}: the game is over, {self._now.outcome}")
        if move == "":
            raise IllegalMoveError(f"expected a move; legal: {' '.join(self.legal_moves)}")
        action = self._named(move)
        if action is None:
            try:
                return read_move(str(move), self._now.packed, self._ruleset, strict=False)
            except NotationError as error:
                reason = error.reason
        elif 0 <= action < NUM_ACTIONS:
            if self._now.legal >> action & 1:
                return action
            reason = str(why_illegal(self._now.packed, self._ruleset, action))
        else:
            reason = f"an action is an integer from 0 to {NUM_ACTIONS - 1}"
        if isinstance(move, str):
            legal = " ".join(self.legal_moves)
        else:  # programs pass numbers: show these too
            legal = ", ".join(_shown(legal_action) for legal_action in actions_of(self._now.legal))
        raise IllegalMoveError(f"{_shown(move)}: {reason}; legal: {legal}")

    def _named(self, move: str | int) -> int | None:
        """Return the action of an integer or a canonical name; None for other strings."""
        if not isinstance(move, str):
            with suppress(TypeError):
                if not isinstance(move, bool):
                    return operator.index(move)
            raise TypeError(
                f"move {move!r}: expected a string, or an integer from 0 to {NUM_ACTIONS - 1}"
            )
        try:
            return move_to_action(move)
        except NotationError:
            return None

    def push(self, move: str | int) -> None:
        """Play a move, in any form that :meth:`parse_move` takes.

        Raises:
            IllegalMoveError: the move cannot be made; nothing has changed.
        """
        action = self.parse_move(move)
        after = self.packed
        self._plies.append(_Ply(after, *make_move(after, self._ruleset, action), action))

    def pop(self) -> int:
        """Undo the last action and return it.

        Raises:
            IndexError: no action has been played.
        """
        if len(self._plies) == 1:
            raise IndexError("there is no move to take back: none has been played on this board")
        return self._plies.pop().action

    def move_text(self, move: str | int, spelling: str = "donkers") -> str:
        """Return a legal move as players write it, with stars.

        Raises:
            IllegalMoveError: the move cannot be made.
            ValueError: the spelling is neither ``donkers`` nor ``kibao``.
        """
        return format_move(self._now.packed, self._ruleset, self.parse_move(move), spelling)

    def trace(self, move: str | int) -> list[MoveEvent]:
        """Return the events of a move without playing it.

        An infinite move can be traced as well, although it is illegal: its last event is then of
        kind ``INFINITE``.

        Raises:
            IllegalMoveError: the move cannot be made for another reason.
        """
        position = self._now.packed, self._ruleset
        action = self._named(move)
        on_board = action is not None and 0 <= action < NUM_ACTIONS and not self._now.outcome
        if action is not None and on_board and may_start(*position, action):
            events = trace_move(*position, action)
            if events[-1].kind is EventKind.INFINITE:
                return events
        return trace_move(*position, self.parse_move(move))

    # --- copies and texts ----------------------------------------------------------------------

    def copy(self) -> Board:
        """Return an independent board with the same game."""
        board = type(self).__new__(type(self))  # five times as fast as __reduce_ex__
        board.__dict__.update(self.__dict__)
        board._plies = list(self._plies)
        return board

    __copy__ = copy  # copy.copy would let both boards share their moves

    def record(self) -> GameRecord:
        """Return the game with its rules, start, actions, outcome, header and comments.

        The header and the comments come from the transcript that the board was made from. Header
        lines and comments that no longer fit the moves are left out.
        """
        return self._source.continued(self.move_stack, self._now.outcome)

    def transcript(self, head: Mapping[str, str] | None = None, spelling: str = "donkers") -> str:
        """Return the game as text that :meth:`from_transcript` reads.

        The head names the rule set (with its switches, if it is your own), the start if it
        is not the opening, the winner, and how the game ended if the moves do not show it. If the
        board was made from a transcript, the text also contains the transcript's other header lines
        and its comments.

        Args:
            head: further header lines, such as ``{"south": "Omar", "north": "Shamte"}``.
            spelling: ``donkers`` or ``kibao``.

        Raises:
            NotationError: a line of ``head`` is not a valid header line.
            ValueError: the spelling is unknown.
        """
        record = self.record()
        record = record._replace(head={**record.head, **(head or {})})
        return format_transcript(transcribe(record, spelling))

    def __eq__(self, other: object) -> bool:
        """Return whether rules, position and outcome are the same; the moves may differ."""
        if not isinstance(other, Board):
            return NotImplemented
        return (
            self._ruleset == other._ruleset
            and self.text() == other.text()
            and self._now.outcome == other._now.outcome
        )

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # boards change

    def __repr__(self) -> str:
        """Return an expression that makes this board again, with its moves."""
        ruleset = self._ruleset.name if self._ruleset.is_shipped else self._ruleset
        moves = " ".join(map(action_to_move, self.move_stack))
        if self._now.stated:
            return f"Board.from_transcript({self.transcript()!r})"
        return f"Board.from_text({format_position(self._source.start)!r}, {ruleset!r}, {moves!r})"

    def __str__(self) -> str:
        """Return the board in plain characters, seen from South."""
        return self.ascii()

    def ascii(self, viewer: Seat = SOUTH) -> str:
        """Return the board in plain characters.

        Args:
            viewer: the seat at the bottom.

        Raises:
            ValueError: ``viewer`` is not a seat.
        """
        seat = seat_number(viewer, "viewer")
        return ascii_board(self.position, status=self._status(), viewer=seat)

    def svg(self, *, legal: bool = False, width: int = 760, viewer: Seat = SOUTH) -> str:
        """Return the board as an SVG document, with the last action's hole and direction marked.

        Args:
            legal: also mark the legal actions.
            width: the width of the picture, in pixels.
            viewer: the seat at the bottom.

        Raises:
            ValueError: ``width`` is not an integer of at least 1, or ``viewer`` is not a seat.
        """
        pixels = as_integer(width, "width", 1, MAX_COUNT)
        return svg_document(self.shapes(legal=legal, viewer=viewer), pixels)

    def shapes(self, *, legal: bool = False, viewer: Seat = SOUTH) -> list[Shape]:
        """Return the shapes that :meth:`svg` draws.

        :mod:`bao_env.render.raster` paints them in pixels.
        """
        marks: list[Mark] = []
        if legal:
            marks += action_marks(MarkKind.LEGAL, self.packed, self._ruleset, self.legal_actions)
        if len(self._plies) > 1:
            before, last = self._plies[-2].packed, [self._now.action]
            marks += action_marks(MarkKind.LAST, before, self._ruleset, last)
        seat = seat_number(viewer, "viewer")
        return drawing(
            self.position,
            marks=marks,
            status=self._status(),
            viewer=seat,
            house=self._ruleset.house,
        )

    def _repr_svg_(self) -> str:
        """Return the board as SVG, for notebooks."""
        return self.svg()

    def _status(self) -> str | None:
        return str(self._now.outcome) if self._now.outcome else None


def _shown(move: str | int) -> str:
    """Return a move as error messages quote it."""
    if isinstance(move, str):
        return quoted(move)
    return f"{move} ({action_to_move(move)})" if 0 <= move < NUM_ACTIONS else f"{move}"
