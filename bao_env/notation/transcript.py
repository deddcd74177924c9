"""Read and write transcripts, which are games as text (Donkers part 5).

Reading does not play the moves: :func:`~bao_env.notation.game_record.replay` does.

A game is a head of ``Key: value`` lines and one line for every two turns::

    south: Ramadhan
    north: Kijumbe
    winner: north
    1: 7L* 5R;
    2: 6R* 6R*; anything after the semicolon is a comment
    3: 7R*;

A game without moves has the line ``0: ;`` instead, which may have a comment too. A file is UTF-8
text and may hold any number of games. A new game begins at a header line after the moves, at move
number 0 or 1, or at a key that the head already has, if an empty line comes before the key. These
keys have a meaning, in upper or lower case:

* ``ruleset``: a name;
* ``rules``: for your own rules, the switches that differ from zanzibar's, as a JSON object;
* ``position``: the start, as a position text;
* ``first player``: ``South`` or ``North``;
* ``spelling``: ``donkers`` or ``kibao``;
* ``winner``: ``South`` or ``North``;
* ``end``: ``illegal action``, ``lost on time``, ``cut short`` or ``front row empty``, if the moves
  do not show it; earlier versions wrote ``result: draw`` for a game that was cut short;
* ``opening plies``: number of plies at the start that no player chose; ``bao replay`` does not
  judge them.

Other keys and comments are kept unchanged. A game may stop before the rules end it: a player has
resigned.

This project adds two things to Donkers' notation. If North begins, ``-`` takes South's place in the
first line. In the Dutch rule set a player chooses the side of each later capture in namua, and a
slash joins each of these choices to the turn: ``5R/3L`` captures at 5, sows from the right,
captures at 3 and sows from the left.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bao_env.engine.layout import NORTH, SOUTH
from bao_env.game import SEAT_NAMES
from bao_env.notation.positions import NotationError, quoted

MAX_GAME = 1 << 20
"""The most characters in a game; a file may have more."""
_HEAD_LINE = re.compile(r"([^\W\d_][\w -]*):(.*)")
_MOVE_LINE = re.compile(r"([0-9]{1,4}):([^;]*);(.*)")
_NOBODY = "-"
_MOVE = r"[ABab]?[1-8][LR<>]?[>+]?\*{0,2}"
_TURN = rf"{_MOVE}(?:/{_MOVE})*"
_LOST_BREAK = re.compile(
    rf"(?![0-9]{{1,4}}:[1-8];)[0-9]{{1,4}}: *(?:{_NOBODY} +)?{_TURN}(?: +{_TURN})? *;"
    "|(?<![0-9])0: *;"
)
"""A move line inside a value or a comment; ``3:2;`` without a space may be a score."""
_UNWRITABLE = {"Cc": "control character", "Cs": "surrogate", "Zl": "line break", "Zp": "line break"}
"""The categories of characters that a line cannot hold."""
_REORDERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
"""The bidirectional classes of characters that change the order of the text after them."""


def head_value(head: Mapping[str, str], key: str) -> str | None:
    """Return the value of a key, in upper or lower case; None if the head does not have it."""
    return next((text for name, text in head.items() if name.casefold() == key.casefold()), None)


@dataclass(frozen=True)
class Turn:
    """The moves of one player before the other's turn, as text."""

    text: str
    """One move text, or several joined by slashes."""
    seat: int
    """SOUTH or NORTH. In a line, South's turn is the first and North's the second."""
    number: int
    """Move number, from 1."""
    line: int = field(default=0, compare=False)
    """Line in the file, from 1; 0 without a file."""


@dataclass(frozen=True)
class Transcript:
    """A game as text. Equality ignores the file's name and the numbers of its lines."""

    head: Mapping[str, str] = field(default_factory=dict)
    """The head, keys as written."""
    turns: tuple[Turn, ...] = ()
    """The turns in the order of play."""
    comments: Mapping[int, str] = field(default_factory=dict)
    """Comments by move number."""
    file: str | None = field(default=None, compare=False)
    """Name of the file, for messages."""

    def get(self, key: str) -> str | None:
        """Return the value of a head key in upper or lower case; None if it is missing."""
        return head_value(self.head, key)

    def stated_winner(self) -> int | None:
        """Return the seat that ``winner`` names; None if it is missing or is a player's name."""
        stated = (self.get("winner") or "").casefold()
        names = [name.casefold() for name in SEAT_NAMES]
        return names.index(stated) if stated in names else None


# --- reading ----------------------------------------------------------------------------------


def parse_transcripts(text: str, file: str | None = None) -> list[Transcript]:
    """Return the games of a text; see :func:`iterate_transcripts`."""
    return list(iterate_transcripts(text, file))


def iterate_transcripts(text: str, file: str | None = None) -> Iterator[Transcript]:
    """Read the games of a text, one after the other, without playing them.

    Args:
        text: any number of games of at most MAX_GAME characters each; a byte order mark may come
            first.
        file: the name of the file, for messages.

    Raises:
        NotationError: the text is not a sequence of games; the error names the line.
    """
    game = _GameLines()
    after_blank = False
    for line_number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        try:
            line = line.removesuffix("\r").replace("\t", " ")
            check_line(line)
            line = line.strip()
            if not line:
                after_blank = True
                continue
            if line[0].isdigit():
                move_number, moves, comment = _read_move_line(line)
                if game.ends_before_moves(move_number):
                    yield game.transcript(file)
                    game = _GameLines()
                game.add_moves(move_number, moves, comment, line_number)
            else:
                key, value = _read_head_line(line)
                if game.ends_before_key(key, after_blank):
                    yield game.transcript(file)
                    game = _GameLines()
                game.add_key(key, value)
            after_blank = False
            game.count(line)
        except NotationError as error:
            raise error.located(file, line_number, None) from None
    if not game.is_empty:
        yield game.transcript(file)


class _GameLines:
    """The lines of one game, as far as they have been read."""

    def __init__(self) -> None:
        self._head: dict[str, tuple[str, str]] = {}
        """Keys and values as written, by the key in lower case."""
        self._turns: list[Turn] = []
        self._comments: dict[int, str] = {}
        self._size = 0
        """The number of characters."""
        self._is_complete = False
        """Whether the line of a game without moves, ``0: ;``, has come."""

    @property
    def is_empty(self) -> bool:
        """Whether there are no lines."""
        return not (self._is_complete or self._head or self._turns)

    def ends_before_moves(self, move_number: int) -> bool:
        """Return whether a move line with this number begins another game."""
        return self._is_complete or (bool(self._turns) and move_number < 2)

    def ends_before_key(self, key: str, after_blank: bool) -> bool:
        """Return whether a header line, perhaps after an empty line, begins another game."""
        is_repeated = after_blank and key.casefold() in self._head
        return self._is_complete or bool(self._turns) or is_repeated

    def add_moves(self, move_number: int, moves: str, comment: str, line_number: int) -> None:
        """Add a move line."""
        self._turns += _read_moves(move_number, moves, line_number, self._turns)
        if comment:
            self._comments[move_number] = comment
        self._is_complete = move_number == 0

    def add_key(self, key: str, value: str) -> None:
        """Add a header line."""
        if key.casefold() in self._head:
            raise NotationError(f"the header has {quoted(key)} twice")
        self._head[key.casefold()] = key, value

    def count(self, line: str) -> None:
        """Count the characters of a line that has been added."""
        self._size += len(line) + 1
        if self._size > MAX_GAME:
            raise NotationError(f"the game is too long: expected at most {MAX_GAME} characters")

    def transcript(self, file: str | None) -> Transcript:
        """Return the game."""
        return Transcript(dict(self._head.values()), tuple(self._turns), self._comments, file)


def check_line(text: str) -> None:
    """Validate that a line can hold a text, such as a player's name.

    Raises:
        NotationError: it has a line break, a control character, a mark that reorders the line, or
            half a surrogate pair.
    """
    if text.isprintable():  # the usual case, and much faster
        return
    for character in text:
        kind = _UNWRITABLE.get(unicodedata.category(character))
        if unicodedata.bidirectional(character) in _REORDERING:
            kind = "direction mark"
        if kind:
            raise NotationError(
                f"contains a {kind}, {quoted(character)}; expected one line of text", token=text
            )


def _check_value(text: str) -> str:
    """Return a header's value or a comment without the spaces around it.

    Raises:
        NotationError: it contains a move line, because the text has lost its line breaks.
    """
    if match := _LOST_BREAK.search(text):
        raise NotationError(
            f"contains the move line {quoted(match[0])}; expected a line break before it",
            token=text,
        )
    return text.strip()


def _read_head_line(line: str) -> tuple[str, str]:
    """Return the key and the value of a header line."""
    match = _HEAD_LINE.fullmatch(line)
    if match is None:
        raise NotationError(
            "expected a header line 'Key: value' or a move line '1: 7L* 5R;'", token=line
        )
    return match[1].strip(), _check_value(match[2])


def _read_move_line(line: str) -> tuple[int, str, str]:
    """Return the number, the moves and the comment of a move line."""
    match = _MOVE_LINE.fullmatch(line)
    if match is None:
        raise NotationError(
            "expected a move line: number, colon, one or two moves, semicolon", token=line
        )
    return int(match[1]), match[2], _check_value(match[3])


def _read_moves(number: int, moves: str, line_number: int, earlier: Sequence[Turn]) -> list[Turn]:
    """Return the turns of a move line that follows the turns ``earlier``; none for number 0."""
    expected = earlier[-1].number + 1 if earlier else 1
    tokens = moves.split()
    if number == 0 and not tokens and not earlier:
        return []
    if number != expected:
        raise NotationError(f"the move line has number {number}; expected {expected}")
    if earlier and earlier[-1].seat == SOUTH:
        raise NotationError(f"move {expected - 1} lacks North's part, but the game continues")
    if not 1 <= len(tokens) <= 2:
        raise NotationError(
            f"the line has {len(tokens)} moves; expected South's and North's",
            number=number,
        )
    turns = [
        Turn(token, seat, number, line_number)
        for seat, token in zip((SOUTH, NORTH), tokens, strict=False)
        if not (token == _NOBODY and seat == SOUTH and not earlier)
    ]
    if not turns:
        raise NotationError("expected North's move after '-'", number=number)
    return turns


# --- writing ----------------------------------------------------------------------------------


def format_transcript(transcript: Transcript) -> str:
    """Return the text of a game, two turns per line; :func:`parse_transcripts` reads it.

    The texts of several games can be joined, with or without empty lines between them.

    Raises:
        NotationError: reading the text would not give the same game, for example because a header
            value or a comment has a line break, or the turns do not alternate.
    """
    parts = [f"{key}: {value}" for key, value in transcript.head.items()]
    numbered: dict[int, list[str]] = {} if transcript.turns else {0: []}
    for turn in transcript.turns:
        moves = numbered.setdefault(turn.number, [_NOBODY] if turn.seat == NORTH else [])
        moves.append(turn.text)
    for number, moves in numbered.items():
        parts.append(f"{number}: {' '.join(moves)}; {transcript.comments.get(number, '')}")
    for line in parts:
        check_line(line)
    text = "".join(f"{line.rstrip()}\n" for line in parts)
    if parse_transcripts(text) != [transcript]:
        raise NotationError(
            "the written game would be read back differently: keys must be words, header values "
            "and comments must not begin or end with a space, and turns must alternate"
        )
    return text
