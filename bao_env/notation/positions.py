"""Read and write positions and actions as text; define the error that all readers raise.

The **position text** is one line. Each row lists its seeds from its owner's left::

    A1..A8/B1..B8/a1..a8/b1..b8 store,store HOUSES MOVER BARRED [PENDING:SOWN]

Rows and stores list South first. HOUSES names the owners of a house (``SN``, ``S``, ``N``, ``-``).
BARRED is the mover's hole that takasia bars (``A3``, or ``-`` for none). PENDING is the mover's
hole at which a capture waits for its side, and SOWN the seeds that the move has sown so far
(``A3:17``).

A **canonical name** means the same action in every position: the mover's own row ``A`` (front) or
``B`` (back), the hole 1..8 from the mover's left, ``L`` or ``R``, and ``>`` to play the house:
``A6L``, ``A5R>``.

For moves as players write them, see :mod:`bao_env.notation.moves`; for whole games, see
:mod:`bao_env.notation.transcript`. ``bao --help`` shows the command line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Self

from bao_env.engine.action import pack_action, unpack_action
from bao_env.engine.layout import NORTH, SOUTH, pit_name
from bao_env.engine.position import Position, opening
from bao_env.engine.ruleset import Ruleset
from bao_env.engine.validation import validate

_MAX_POSITION_TEXT = 300
_CANONICAL = re.compile(r"([AB])([1-8])([LR])(>?)")
_COUNT = re.compile(r"0|[1-9][0-9]?")
_FIELDS = (
    ("house owners", "SN|S|N|-", "SN, S, N or -"),
    ("mover", "S|N", "S or N"),
    ("barred hole", "-|A[1-8]", "- or A1 to A8"),
    ("waiting capture", "A[1-8]:(0|[1-9][0-9]{0,6})", "a hole and the seeds sown, as in A3:17"),
)
"""The fields of a position text after the stores: name, pattern, and the pattern in words."""


@dataclass(eq=False, repr=False)
class NotationError(ValueError):
    """A string that is not a move, position or transcript, or a move that the rules forbid."""

    reason: str
    """The mistake."""
    _: KW_ONLY
    file: str | None = None
    """Name of the file, if known."""
    line: int | None = None
    """Line in the file, from 1."""
    number: int | None = None
    """Move number in the game."""
    token: str | None = None
    """The offending text."""
    legal: Sequence[str] = ()
    """The moves that would have been legal, as strings."""

    def located(
        self, file: str | None, line: int | None, number: int | None, token: str | None = None
    ) -> Self:
        """Fill in the missing parts of the location, and return the error."""
        self.file = self.file or file
        self.line = self.line or line
        self.number = self.number or number
        self.token = self.token or token
        return self

    def __str__(self) -> str:
        location = (
            self.file,
            f"line {self.line}" if self.line else None,
            f"move {self.number}" if self.number else None,
            quoted(self.token) if self.token else None,
        )
        message = ": ".join(filter(None, (", ".join(filter(None, location)), self.reason)))
        return f"{message}; legal: {' '.join(self.legal)}" if self.legal else message


def quoted(text: str) -> str:
    """Quote a string for a message: ASCII, cut after 40 characters."""
    return ascii(text if len(text) <= 40 else f"{text[:40]}...")


# --- positions --------------------------------------------------------------------------------


def parse_position(text: str, ruleset: Ruleset, *, finished: bool = False) -> Position:
    """Read a position text and validate that it can be played under ``ruleset``.

    Letters may be in upper or lower case, and any number of spaces may separate fields. The text
    may begin with ``position:``, as in a transcript, and it may be in quotation marks.

    Args:
        text: the position text, or ``start`` for the opening.
        ruleset: the rules.
        finished: whether a front row may be empty, which means that the game is over.

    Raises:
        NotationError: the text is malformed, the position is impossible, or the game is over; the
            message says why.
        TypeError: ``text`` is not a string.
    """
    if not isinstance(text, str):
        raise TypeError(
            f"position {text!r:.80}: expected a string, such as board.text(), not "
            f"{type(text).__name__}"
        )
    plain = re.sub("^position: *", "", _bare(text), flags=re.IGNORECASE)
    if plain == "start":
        return opening(ruleset)
    try:
        position = _read_position(plain)
        validate(position, ruleset, finished=finished)
    except ValueError as error:
        raise NotationError(str(error), token=text) from None
    return position


def _bare(text: str) -> str:
    """Return a text with single spaces, without a byte order mark or quotation marks around it."""
    return " ".join(text.removeprefix("\ufeff").split()).strip("\"'\u2018\u2019\u201c\u201d ")


def _read_position(text: str) -> Position:
    if len(text) > _MAX_POSITION_TEXT:
        raise ValueError(f"a position text has at most {_MAX_POSITION_TEXT} characters")
    if unprintable := re.search("[^ -~]", text):
        raise ValueError(
            f"a position text must not contain {quoted(unprintable[0])}: expected printable ASCII"
        )
    fields = text.upper().split()
    if len(fields) not in (5, 6):
        raise ValueError(
            f"expected five or six fields, not {len(fields)}: rows, stores, HOUSES, MOVER, BARRED "
            "and PENDING, as in 'A1,..,A8/B1,..,B8/a1,..,a8/b1,..,b8 22,22 SN S -'"
        )
    board, stores, *remaining = fields
    rows = board.split("/")
    if len(rows) != 4:
        raise ValueError(f"expected four rows between slashes (A, B, a, b), not {len(rows)}")
    south_front, south_back, north_front, north_back = (
        _counts(row, 8, f"row {name}") for name, row in zip("ABab", rows, strict=True)
    )
    south_store, north_store = _counts(stores, 2, "the stores")
    for field, (name, pattern, expected) in zip(remaining, _FIELDS, strict=False):
        if not re.fullmatch(pattern, field):
            raise ValueError(f"{name} {quoted(field)}: expected {expected}")
    houses, seat, barred, waiting = (*remaining, "-:0")[:4]
    pending, sown = waiting.split(":")
    return Position(
        front=(south_front, north_front),
        back=(south_back, north_back),
        store=(south_store, north_store),
        owns_house=("S" in houses, "N" in houses),
        mover="SN".index(seat),
        barred=_pit(barred),
        pending=_pit(pending),
        pending_sown=int(sown),
    )


def _pit(name: str) -> int | None:
    """Return the pit of a hole, A1 to A8; None for ``-``."""
    return None if name == "-" else int(name[1]) - 1


def _counts(text: str, size: int, name: str) -> tuple[int, ...]:
    numbers = text.split(",")
    if len(numbers) != size:
        raise ValueError(f"{name}: expected {size} counts between commas, not {len(numbers)}")
    for number in numbers:
        if not _COUNT.fullmatch(number):
            raise ValueError(f"{name}: {quoted(number)} is not a count of seeds (0 to 64)")
    return tuple(map(int, numbers))


def format_position(position: Position) -> str:
    """Return the position text, which :func:`parse_position` reads; it omits the ply."""
    rows = [row[seat] for seat in (SOUTH, NORTH) for row in (position.front, position.back)]
    houses = "".join(name for name, owns in zip("SN", position.owns_house, strict=True) if owns)
    fields = [
        "/".join(",".join(map(str, row)) for row in rows),
        f"{position.store[SOUTH]},{position.store[NORTH]}",
        houses or "-",
        "SN"[position.mover],
        "-" if position.barred is None else pit_name(position.barred),
    ]
    if position.pending is not None:
        fields.append(f"{pit_name(position.pending)}:{position.pending_sown}")
    return " ".join(fields)


def hole_name(seat: int, pit: int) -> str:
    """Return the name of a seat's pit 0..15: ``A1``..``B8`` for South, ``a1``..``b8`` for North."""
    return pit_name(pit) if seat == SOUTH else pit_name(pit).lower()


# --- actions ----------------------------------------------------------------------------------


def action_to_move(action: int) -> str:
    """Return the canonical name of an action: ``action_to_move(20) == "A6L"``.

    Raises:
        ValueError: ``action`` is not in 0..63.
    """
    pit, direction, house = unpack_action(action)
    return f"{pit_name(pit)}{'LR'[direction]}{'>' * house}"


def move_to_action(text: str) -> int:
    """Return the action of a canonical name: ``move_to_action("A6L") == 20``.

    Raises:
        NotationError: ``text`` is not a canonical name.
    """
    match = _CANONICAL.fullmatch(text)
    if match is None:
        raise NotationError("expected a name such as A6L, B2R or A5R>", token=text)
    row, hole, direction, house = match.groups()
    return pack_action("AB".index(row) * 8 + int(hole) - 1, "LR".index(direction), len(house))
