"""Play the games of transcripts, and write played games as transcripts.

A :class:`~bao_env.notation.transcript.Transcript` is a game as text; a :class:`GameRecord` is the
same game with its rules, its start and its actions. :func:`replay` and :func:`transcribe` convert
them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
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
from bao_env.notation.positions import NotationError, format_position, hole_name, parse_position
from bao_env.notation.transcript import Transcript, Turn, head_value

_OPENING = "opening plies"
_START_KEYS = {"ruleset", "rules", "position", "first player", "spelling"}
_END_KEYS = {"winner", "end", "result"}
"""Keys about the end of a game. A :class:`GameRecord` has their values in other fields if the game
has ended; the values of ``_START_KEYS`` are always there."""


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
        number = head_value(self.head, _OPENING) or ""
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


# --- from a transcript ------------------------------------------------------------------------


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
    try:
        rules = parse_rules(transcript.head) if ruleset is None else get_ruleset(ruleset)
        if spelling is None:
            spelling = _stated_spelling(transcript)
        start = _start(transcript, rules)
    except NotationError as error:
        raise error.located(transcript.file, None, None) from None
    played = _play(transcript, rules, start, spelling, strict)
    outcome = _outcome(transcript, played)
    expressed = _START_KEYS | _END_KEYS if outcome else _START_KEYS
    head = {key: text for key, text in transcript.head.items() if key.casefold() not in expressed}
    comments = {played.lengths.get(number, 0): text for number, text in transcript.comments.items()}
    return GameRecord(rules, start, played.actions, outcome, head, comments)


class _Played(NamedTuple):
    """The moves of a transcript, played."""

    actions: tuple[int, ...]
    lengths: dict[int, int]
    """The number of actions up to the end of each line, by move number."""
    outcome: Outcome | None
    """The end under the rules; None if the moves do not end the game."""
    mover: int
    """The seat to move after the last action."""


def _play(
    transcript: Transcript, ruleset: Ruleset, start: Position, spelling: str | None, strict: bool
) -> _Played:
    """Play the turns of a transcript; see :func:`replay`."""
    packed = to_packed(start)
    actions: list[int] = []
    lengths: dict[int, int] = {}
    _, outcome = legal_and_outcome(packed, ruleset)
    for turn in transcript.turns:
        for index, text in enumerate(turn.text.split("/")):
            try:
                if outcome is not None:
                    raise NotationError(f"the game is over: {outcome}")
                _check_turn(turn, index, packed, bool(actions))
                action = read_move(text, packed, ruleset, spelling=spelling, strict=strict)
            except NotationError as error:
                raise error.located(transcript.file, turn.line, turn.number, turn.text) from None
            _, outcome = make_move(packed, ruleset, action)
            actions.append(action)
        lengths[turn.number] = len(actions)
    return _Played(tuple(actions), lengths, outcome, turn_of(packed))


def _outcome(transcript: Transcript, played: _Played) -> Outcome | None:
    """Return how a game ended: by its moves or, if they do not end it, by what the head states.

    Raises:
        NotationError: the head contradicts the moves.
    """
    stated_end = _stated_end(transcript, played.mover)
    if played.outcome is not None and stated_end not in (None, played.outcome):
        raise NotationError(
            f"the header says that the game ended by {stated_end.reason.value}, but "
            f"{played.outcome}",
            file=transcript.file,
        )
    outcome = played.outcome or stated_end
    if outcome is None and (transcript.get("result") or "").casefold() == "draw":
        outcome = CUT_SHORT  # as earlier versions wrote it
    if outcome is not None and transcript.stated_winner() not in (None, outcome.winner):
        raise NotationError(f"the header names the wrong winner; {outcome}", file=transcript.file)
    return outcome


def parse_rules(head: Mapping[str, str]) -> Ruleset:
    """Return the rules that the lines ``ruleset`` and ``rules`` of a head name or describe.

    Raises:
        NotationError: the lines do not describe rules.
    """
    name, switches = head_value(head, "ruleset"), head_value(head, "rules")
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
        donkers, kibao = bool(signs & set("LR")), bool(signs & set("<+#"))
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


# --- to a transcript --------------------------------------------------------------------------


def transcribe(record: GameRecord, spelling: str = "donkers") -> Transcript:
    """Return the transcript of a game, which :func:`replay` reads.

    Comments after more actions than the game has are left out, and so are header lines about the
    rules, the start and the spelling: the record itself has these.

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
    own_keys = _START_KEYS | {key.casefold() for key in head}
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
