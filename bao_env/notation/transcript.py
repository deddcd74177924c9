"""Read, replay and write transcripts, which are games as text (Donkers part 5).

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

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import PackedPositions, Position, opening, to_packed, turn_of, unpack
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.game import (
    CUT_SHORT,
    SEAT_NAMES,
    Outcome,
    Termination,
    legal_and_outcome,
    make_move,
)
from bao_env.notation.moves import SPELLINGS, check_spelling, format_move, read_move
from bao_env.notation.positions import (
    NotationError,
    format_position,
    hole_name,
    parse_position,
    quoted,
)

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
_OPENING = "opening plies"
_START_KEYS = {"ruleset", "rules", "position", "first player", "spelling"}
_END_KEYS = {"winner", "end", "result"}
"""Keys about the end of a game. A :class:`GameRecord` has their values in other fields if the game
has ended; the values of ``_START_KEYS`` are always there."""
_UNWRITABLE = {"Cc": "control character", "Cs": "surrogate", "Zl": "line break", "Zp": "line break"}
"""The categories of characters that a line cannot hold."""
_REORDERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
"""The bidirectional classes of characters that change the order of the text after them."""


def _get(head: Mapping[str, str], key: str) -> str | None:
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
        return _get(self.head, key)

    def stated_winner(self) -> int | None:
        """Return the seat that ``winner`` names; None if it is missing or is a player's name."""
        stated = (self.get("winner") or "").casefold()
        names = [name.casefold() for name in SEAT_NAMES]
        return names.index(stated) if stated in names else None


class GameRecord(NamedTuple):
    """A game in plain values. :func:`transcribe` turns it into a transcript, and :func:`replay`
    makes it from one."""

    ruleset: Ruleset
    """The rules of the game."""
    start: Position
    """The position before the first action."""
    actions: tuple[int, ...]
    """Every action; a Dutch turn may take several."""
    outcome: Outcome | None = None
    """The end under the rules, or an end that the moves do not show, such as an illegal action;
    None if the game stopped."""
    head: Mapping[str, str] = {}
    """Header lines that the other fields do not give, such as ``title`` and ``south``."""
    comments: Mapping[int, str] = {}
    """Comments by the number of actions that precede them."""

    @property
    def opening_plies(self) -> int:
        """Number of actions at the start that no player chose."""
        number = _get(self.head, _OPENING) or ""
        return int(number) if re.fullmatch("[0-9]{1,4}", number) else 0

    def continued(self, actions: Sequence[int], outcome: Outcome | None) -> GameRecord:
        """Return the record of a game with these actions from the same start.

        Header lines about the end are kept only if all actions are the same. Comments and opening
        plies are kept up to the first action that differs.
        """
        actions = tuple(actions)
        pairs = zip(actions, self.actions, strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        head = {
            key: str(min(shared, self.opening_plies)) if key.casefold() == _OPENING else text
            for key, text in self.head.items()
            if actions == self.actions or key.casefold() not in _END_KEYS
        }
        comments = {number: text for number, text in self.comments.items() if number <= shared}
        return self._replace(actions=actions, outcome=outcome, head=head, comments=comments)


# --- reading ----------------------------------------------------------------------------------


def parse_transcripts(text: str, file: str | None = None) -> list[Transcript]:
    """Return the games of a text; see :func:`iterate_transcripts`."""
    return list(iterate_transcripts(text, file))


def iterate_transcripts(text: str, file: str | None = None) -> Iterator[Transcript]:
    """Read the games of a text, one after the other, without playing them.

    :func:`replay` plays them.

    Args:
        text: any number of games of at most MAX_GAME characters each; a byte order mark may come
            first.
        file: the name of the file, for messages.

    Raises:
        NotationError: the text is not a sequence of games; the error names the line.
    """
    head: dict[str, tuple[str, str]] = {}  # keys and values by the key in lower case
    turns: list[Turn] = []
    comments: dict[int, str] = {}
    size = 0
    after_blank = ended = False

    def close() -> Transcript:
        nonlocal size, ended
        transcript = Transcript(dict(head.values()), tuple(turns), dict(comments), file)
        head.clear()
        turns.clear()
        comments.clear()
        size, ended = 0, False
        return transcript

    for line_number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        try:
            line = line.removesuffix("\r").replace("\t", " ")
            check_line(line)
            line = line.strip()
            if not line:
                after_blank = True
                continue
            if line[0].isdigit():
                move_number, moves_text, comment = _read_move_line(line)
                if ended or (turns and move_number < 2):
                    yield close()
                turns += _read_moves(move_number, moves_text, line_number, turns)
                if comment:
                    comments[move_number] = comment
                ended = move_number == 0
            else:
                key, value = _read_head_line(line)
                if ended or turns or (after_blank and key.casefold() in head):
                    yield close()
                if key.casefold() in head:
                    raise NotationError(f"the header has {quoted(key)} twice")
                head[key.casefold()] = key, value
            after_blank = False
            size += len(line) + 1
            if size > MAX_GAME:
                raise NotationError(f"the game is too long: expected at most {MAX_GAME} characters")
        except NotationError as error:
            raise error.located(file, line_number, None) from None
    if ended or head or turns:
        yield close()


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


def replay(
    transcript: Transcript,
    ruleset: str | Ruleset | None = None,
    *,
    spelling: str | None = None,
    strict: bool = True,
) -> GameRecord:
    """Play the game of a transcript and validate every move.

    Args:
        transcript: the game.
        ruleset: the rules; None means the rules that the head names, or zanzibar.
        spelling: ``"donkers"`` or ``"kibao"``; None means the spelling that the head names, or
            else the one whose signs the moves have.
        strict: see :func:`~bao_env.notation.moves.read_move`.

    Raises:
        NotationError: a move is malformed or illegal, or the head contradicts the game; the
            error names the place and the legal moves there.
        ValueError: ``ruleset`` or ``spelling`` is unknown.
    """
    file = transcript.file
    try:
        rules = parse_rules(transcript.head) if ruleset is None else get_ruleset(ruleset)
        if spelling is None:
            spelling = _stated_spelling(transcript)
        start = _start(transcript, rules)
    except NotationError as error:
        raise error.located(file, None, None) from None
    packed = to_packed(start)
    actions: list[int] = []
    lengths: dict[int, int] = {}  # number of actions up to the end of each line
    _, outcome = legal_and_outcome(packed, rules)
    for turn in transcript.turns:
        for index, text in enumerate(turn.text.split("/")):
            try:
                if outcome is not None:
                    raise NotationError(f"the game is over: {outcome}")
                _check_turn(turn, index, packed, bool(actions))
                action = read_move(text, packed, rules, spelling=spelling, strict=strict)
            except NotationError as error:
                raise error.located(file, turn.line, turn.number, turn.text) from None
            _, outcome = make_move(packed, rules, action)
            actions.append(action)
        lengths[turn.number] = len(actions)
    stated_end = _stated_end(transcript, turn_of(packed))
    if outcome is not None and stated_end not in (None, outcome):
        raise NotationError(
            f"the header says that the game ended by {stated_end.reason.value}, but {outcome}",
            file=file,
        )
    outcome = outcome or stated_end
    if outcome is None and (transcript.get("result") or "").casefold() == "draw":
        outcome = CUT_SHORT  # as earlier versions wrote it
    if outcome is not None and transcript.stated_winner() not in (None, outcome.winner):
        raise NotationError(f"the header names the wrong winner; {outcome}", file=file)
    expressed = _START_KEYS | _END_KEYS if outcome else _START_KEYS
    head = {key: text for key, text in transcript.head.items() if key.casefold() not in expressed}
    comments = {lengths.get(number, 0): text for number, text in transcript.comments.items()}
    return GameRecord(rules, start, tuple(actions), outcome, head, comments)


def parse_rules(head: Mapping[str, str]) -> Ruleset:
    """Return the rules that the lines ``ruleset`` and ``rules`` of a head name or describe.

    Raises:
        NotationError: the lines do not describe rules.
    """
    name, switches = _get(head, "ruleset"), _get(head, "rules")
    named = {"name": name} if name else {}
    try:
        if switches is None:
            return get_ruleset(name or "zanzibar")
        return Ruleset.from_dict({**json.loads(switches), **named})
    except (TypeError, RecursionError, json.JSONDecodeError):
        raise NotationError(
            'rules: expected a JSON object of switches, such as {"house_min": 8}', token=switches
        ) from None
    except ValueError as error:
        raise NotationError(f"{'ruleset' if switches is None else 'rules'}: {error}") from None


def format_rules(ruleset: Ruleset) -> dict[str, str]:
    """Return the header lines that describe a rule set; :func:`parse_rules` reads them.

    ``ruleset`` is the name. Custom rules also have the line ``rules``: a JSON object of the
    switches that differ from zanzibar's.
    """
    if ruleset.is_shipped:
        return {"ruleset": ruleset.name}
    return {"ruleset": ruleset.name, "rules": json.dumps(ruleset.changed_switches())}


def _stated_end(transcript: Transcript, mover: int) -> Outcome | None:
    """Return the end that the head states, or None; ``mover`` is to move after the last turn."""
    stated = (transcript.get("end") or "").casefold()
    winner = transcript.stated_winner()
    lost = Termination.ILLEGAL_ACTION, Termination.LOST_ON_TIME
    possible = [CUT_SHORT, *(Outcome(1 - mover, reason) for reason in lost)]
    if winner is not None:
        possible.append(Outcome(winner, Termination.FRONT_ROW_EMPTY))
    return {end.reason.value: end for end in possible}.get(stated)


def _stated_spelling(transcript: Transcript) -> str | None:
    """Return the spelling that the head names, or else the only one whose signs the turns have.

    Return None if the turns have signs of both or of neither.
    """
    stated = transcript.get("spelling")
    if stated is None:
        signs = set().union(*(turn.text for turn in transcript.turns))
        donkers, kibao = bool(signs & set("LR")), bool(signs & set("<+"))
        if donkers == kibao:
            return None
        return "donkers" if donkers else "kibao"
    if stated.casefold() not in SPELLINGS:
        raise NotationError(f"unknown spelling; expected {' or '.join(SPELLINGS)}", token=stated)
    return stated.casefold()


def _start(transcript: Transcript, ruleset: Ruleset) -> Position:
    """Return the position that the head describes, or the opening."""
    stated = transcript.get("first player")
    seat = None
    if stated is not None:
        names = [name.casefold() for name in SEAT_NAMES]
        if stated.casefold() not in names:
            raise NotationError("first player: expected South or North", token=stated)
        seat = names.index(stated.casefold())
    text = transcript.get("position")
    if text is None:
        return opening(ruleset, SOUTH if seat is None else seat)
    position = parse_position(text, ruleset, finished=True)
    if seat not in (None, position.mover):
        raise NotationError(
            "the header's 'first player' is not the player to move in its 'position'"
        )
    return position


def _check_turn(turn: Turn, index: int, packed: PackedPositions, underway: bool) -> None:
    """Validate that move text number ``index`` of a turn can be played at this point."""
    position = unpack(packed)
    if position.pending is not None and index == 0 and underway:
        waiting = hole_name(position.mover, position.pending)
        raise NotationError(
            f"the previous turn is not over, because a capture waits at {waiting}: add the choice "
            "of its side to that turn, after a '/'"
        )
    if position.pending is None and index > 0:
        raise NotationError("no capture waits for a side, so nothing can follow the '/'")
    if position.mover != turn.seat:
        raise NotationError(
            f"{SEAT_NAMES[position.mover]} is to move; if North begins, the first line needs "
            "'-' in South's place"
        )


# --- writing ----------------------------------------------------------------------------------


def transcribe(record: GameRecord, spelling: str = "donkers") -> Transcript:
    """Return the transcript of a game, which :func:`replay` reads.

    Comments after more actions than the game has are left out.

    Raises:
        ValueError: ``spelling`` is unknown.
    """
    check_spelling(spelling)
    ruleset, packed = record.ruleset, to_packed(record.start)
    turns: list[Turn] = []
    numbers = [0]  # numbers[n] is the move number of action n's turn
    _, outcome = legal_and_outcome(packed, ruleset)
    for action in record.actions:
        seat = turn_of(packed)
        text = format_move(packed, ruleset, action, spelling)
        _, outcome = make_move(packed, ruleset, action)
        if turns and turns[-1].seat == seat:  # a capture chooses its side (Dutch I.a)
            turns[-1] = Turn(f"{turns[-1].text}/{text}", seat, numbers[-1])
        else:
            turns.append(Turn(text, seat, numbers[-1] + (seat == SOUTH or not turns)))
        numbers.append(turns[-1].number)
    numbers[0] = min(1, len(turns))
    comments: dict[int, str] = {}
    for count, text in sorted(record.comments.items()):
        if count < len(numbers):
            before = comments.get(numbers[count], "")
            comments[numbers[count]] = f"{before} {text}".strip()
    head = _format_start(record, spelling) | _format_end(record.outcome, by_moves=outcome)
    own_keys = {key.casefold() for key in head}
    further = {key: text for key, text in record.head.items() if key.casefold() not in own_keys}
    return Transcript(further | head, tuple(turns), comments)


def _format_start(record: GameRecord, spelling: str) -> dict[str, str]:
    """Return the header lines of the rules, the start and the spelling."""
    head = format_rules(record.ruleset)
    if record.start == opening(record.ruleset, NORTH):
        head["first player"] = SEAT_NAMES[NORTH]
    elif record.start != opening(record.ruleset, SOUTH):
        head["position"] = format_position(record.start)
    return head if spelling == "donkers" else {**head, "spelling": spelling}


def _format_end(outcome: Outcome | None, by_moves: Outcome | None) -> dict[str, str]:
    """Return the header lines about a game's end; ``by_moves`` is the end that the moves show."""
    end = by_moves or outcome
    winner = None if end is None else end.winner
    head = {} if winner is None else {"winner": SEAT_NAMES[winner]}
    return head if end is None or by_moves else {**head, "end": end.reason.value}


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
