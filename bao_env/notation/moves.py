"""Read and write moves as players write them in a given position.

A move text leaves out what follows from the position, so reading and writing need the position::

    Donkers    kibao       meaning
    7L*        7<*         namua (no row letter): hole 7 to the left; a takasa
    8>         8+          namua capture at 8, where the side is forced; plays the house
    A6R  b7R   A6>  b7>    mtaji: the row letter is required, lower case for North
    A4R**      A4>**       a takasa that bars one of the opponent's holes by takasia
    A6R        A6>#        kibao may mark a move that wins; it is read, and never written

Sources: Donkers part 5; the appendix of the kibao rules, and the notation on kibao.org.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from bao_env.engine import kernel
from bao_env.engine.action import pack_action, unpack_action
from bao_env.engine.layout import HOUSE, KICHWA, KIMBI, LEFT, RIGHT
from bao_env.engine.position import PackedPositions, Position, unpack
from bao_env.engine.ruleset import Ruleset
from bao_env.engine.starts import startable
from bao_env.game import SEAT_NAMES, Stage, legal_actions, make_move, stage_of
from bao_env.notation.positions import NotationError, hole_name, quoted

_SIGNS = {"donkers": ("LR", ">"), "kibao": ("<>", "+")}
"""The signs for left and right, and for playing the house."""
_WIN_SIGNS = {"donkers": "", "kibao": "#?"}
"""A pattern of the sign that may end a move that wins."""
SPELLINGS = tuple(_SIGNS)


class Reason(NamedTuple):
    """Why a move is illegal; ``str()`` puts both parts together."""

    text: str
    """The reason in words."""
    rule: str
    """The rule, with its source (``bao_env/RULES.md``)."""

    def __str__(self) -> str:
        return f"{self.text} ({self.rule})"


def may_start(packed: PackedPositions, ruleset: Ruleset, action: int) -> bool:
    """Return whether a move may start from an action's hole in its direction.

    The move may be infinite, and the house choice is ignored. ``packed`` is uint64[6].

    Raises:
        ValueError: ``action`` is not in 0..63.
    """
    unpack_action(action)
    return bool(int(startable(ruleset.kernel, packed)[1]) >> (action & ~1) & 1)


def why_illegal(packed: PackedPositions, ruleset: Ruleset, action: int) -> Reason:
    """Return the rule that an illegal action breaks. ``packed`` is uint64[6].

    If an action breaks several rules, return the first that a player would name.

    Raises:
        ValueError: ``action`` is not in 0..63, or it is legal.
    """
    pit, direction, house = unpack_action(action)
    position = unpack(packed)
    mover, name = position.mover, hole_name(position.mover, pit)
    if position.pending not in (None, pit):
        waiting = hole_name(mover, position.pending or 0)
        return Reason(f"a capture waits at {waiting}: choose its side, left or right", "Dutch I.a")
    captures, starts = startable(ruleset.kernel, packed)
    namua = stage_of(position) is Stage.NAMUA
    if int(starts) >> (action & ~1) & 1:
        return _why_endless(packed, ruleset, action)
    if namua and pit >= 8:
        return Reason("in namua a move starts in the front row", "Donkers 2.3, 2.4")
    if position.pits(mover)[pit] == 0:
        return Reason(f"{name} is empty", "Donkers 2.3, 2.4" if namua else "Donkers 3.3")
    other_way = bool(int(starts) >> pack_action(pit, 1 - direction) & 1)
    if captures and other_way and namua:
        return Reason(
            f"a capture at {name}, a kichwa or kimbi, is sown from the nearer end of the row",
            "Donkers 1.4b",
        )
    if captures:
        start = name if namua else f"{name} in this direction"
        return Reason(
            f"a capture is possible and must be made; a move from {start} does not capture",
            "Donkers 1.7a",
        )
    if other_way:
        return Reason(
            "the only filled front hole is a kichwa, and it may not be sown towards the back row",
            "Donkers 2.4a" if namua else "Donkers 3.5b",
        )
    return (_why_no_namua_takasa if namua else _why_no_mtaji_takasa)(position, ruleset, pit)


def _why_endless(packed: PackedPositions, ruleset: Ruleset, action: int) -> Reason:
    """Return why an action is illegal although its hole and direction may start a move."""
    legal = int(kernel.legal_of(ruleset.kernel, packed))
    if legal >> action & 1:
        raise ValueError(f"action {action} is legal")
    if action & 1 and legal >> (action - 1) & 1:
        return Reason(
            "the move reaches no house that it may play, or would never end after playing it",
            "Donkers 2.5b, 1.5a",
        )
    return Reason(
        f"the move never ends: it sows more than {ruleset.sow_limit} seeds", "Donkers 1.5a"
    )


def _why_no_namua_takasa(position: Position, ruleset: Ruleset, pit: int) -> Reason:
    """Return why a filled front hole may not start a takasa in namua."""
    name, seeds = hole_name(position.mover, pit), position.pits(position.mover)[pit]
    minimum = ruleset.house_min
    if pit == HOUSE and seeds >= minimum:
        return Reason(
            f"a takasa must not start from a house with {minimum} seeds or more", "Donkers 2.4b"
        )
    if seeds == 1:
        rule = {"house": "Donkers 2.4c", "singletons": "Dutch I.b"}[ruleset.singleton_takasa]
        return Reason(f"{name} holds only one seed, and other front holes hold more", rule)
    raise AssertionError(f"no rule forbids a takasa from {name}: {position}")


def _why_no_mtaji_takasa(position: Position, ruleset: Ruleset, pit: int) -> Reason:
    """Return why a filled hole may not start a takasa in mtaji."""
    name = hole_name(position.mover, pit)
    if pit == position.barred:
        return Reason(
            f"takasia bars {name}: it is the only hole that the opponent threatens", "Donkers 4.1"
        )
    if position.pits(position.mover)[pit] == 1:
        return Reason(f"{name} holds only one seed", "Donkers 3.3")
    if pit >= 8:
        return Reason("a takasa must start in the front row if possible", "Donkers 3.5a")
    if ruleset.takasia == "dutch":
        return Reason(f"takasia: {name} is the only hole that the opponent threatens", "Dutch II")
    raise AssertionError(f"no rule forbids a takasa from {name}: {position}")


def stars(packed: PackedPositions, ruleset: Ruleset, action: int) -> str:
    """Return the stars of a legal action: none for a capture, ``*`` or ``**`` for a takasa.

    Two stars mean that the takasa bars one of the opponent's holes by takasia.

    ``packed``, uint64[6], is not changed.
    """
    rules = ruleset.kernel
    if startable(rules, packed)[0]:
        return ""
    after = packed.copy()
    kernel.play(rules, after, np.uint64(action))
    return "*" if unpack(after).barred is None else "**"


def _side_is_forced(position: Position, captures: bool, pit: int) -> bool:
    """Return whether a capture's side is forced, and so not written (Donkers 1.4b)."""
    return captures and stage_of(position) is Stage.NAMUA and pit in KICHWA + KIMBI


def format_move(
    packed: PackedPositions, ruleset: Ruleset, action: int, spelling: str = "donkers"
) -> str:
    """Return the move text of a legal action, without what follows from the position.

    Args:
        packed: uint64[6], the position before the move; it is not changed.
        ruleset: the rules in force.
        action: a legal action.
        spelling: ``"donkers"`` or ``"kibao"``.

    Raises:
        ValueError: the spelling is unknown, or ``action`` is not in 0..63.
    """
    check_spelling(spelling)
    pit, direction, house = unpack_action(action)
    position = unpack(packed)
    move_stars = stars(packed, ruleset, action)
    front_only = stage_of(position) is Stage.NAMUA or position.pending is not None
    hole = hole_name(position.mover, pit)
    sides, house_sign = _SIGNS[spelling]
    side = "" if _side_is_forced(position, not move_stars, pit) else sides[direction]
    return f"{hole[1:] if front_only else hole}{side}{house_sign * house}{move_stars}"


def check_spelling(spelling: str) -> None:
    """Raise ValueError unless ``spelling`` is one of SPELLINGS."""
    if spelling not in SPELLINGS:
        raise ValueError(f"unknown spelling {quoted(spelling)}; expected {' or '.join(SPELLINGS)}")


def read_move(
    text: str,
    packed: PackedPositions,
    ruleset: Ruleset,
    *,
    spelling: str | None = None,
    strict: bool = True,
) -> int:
    """Return the legal action that a move text names in a position.

    Args:
        text: a move in Donkers' or the kibao spelling.
        packed: uint64[6], the position before the move; it is not changed.
        ruleset: the rules in force.
        spelling: ``"donkers"`` or ``"kibao"``; None means the one that gives a legal move. Only
            ``>`` has two meanings: it plays the house, or goes to the right. If both are legal, it
            plays the house: the side is then forced, and neither spelling writes it.
        strict: whether wrong stars on a takasa, a wrong ``#``, wrong case and spaces are errors;
            otherwise they are ignored. A star on a capture is always an error.

    Raises:
        NotationError: the text is malformed, illegal, or has wrong signs; the error lists the legal
            moves.
        ValueError: the spelling is unknown.
    """
    if spelling is not None:
        check_spelling(spelling)
    stripped = text if strict else "".join(text.split()).upper()
    errors: dict[str, NotationError] = {}
    for candidate in SPELLINGS if spelling is None else (spelling,):
        sides, house_sign = _SIGNS[candidate]
        win_sign = _WIN_SIGNS[candidate]
        pattern = rf"([ABab]?)([1-8])([{sides}]?)([{house_sign}]?)(\*{{0,2}})({win_sign})"
        match = re.fullmatch(pattern, stripped)
        if match is None:
            continue
        try:
            return _resolve(match, sides, packed, ruleset, strict)
        except NotationError as error:
            errors[candidate] = error
    example_spelling = spelling or next(iter(errors), "donkers")
    example = "7L*, A6R or 5R>" if example_spelling == "donkers" else "7<*, A6> or 5>+"
    default = NotationError(f"not a move; expected something like {example}")
    legal = [
        format_move(packed, ruleset, action, example_spelling)
        for action in legal_actions(packed, ruleset)
    ]
    raise NotationError(errors.get(example_spelling, default).reason, token=text, legal=legal)


def _resolve(
    match: re.Match[str], sides: str, packed: PackedPositions, ruleset: Ruleset, strict: bool
) -> int:
    """Return the action of a matched move text.

    Raises:
        NotationError: the text names no legal action; the error does not list the legal moves.
    """
    row, hole, side, house, written_stars, win_sign = match.groups()
    position = unpack(packed)
    mover = position.mover
    captures = bool(startable(ruleset.kernel, packed)[0])
    if strict and row and row not in ("AB", "ab")[mover]:
        owner, opponent = SEAT_NAMES[mover], SEAT_NAMES[1 - mover]
        raise NotationError(f"row {row} is {opponent}'s, but {owner} is to move")
    if not row and stage_of(position) is Stage.MTAJI and position.pending is None:
        letters = ("A or B", "a or b")[mover]
        raise NotationError(
            f"a move in mtaji needs the letter of its row, {letters} (Donkers part 5)"
        )
    pit = int(hole) - 1 + (8 if row in ("B", "b") else 0)
    if side:
        direction = sides.index(side)
    elif _side_is_forced(position, captures, pit):
        direction = LEFT if pit < 4 else RIGHT
    else:
        raise NotationError(
            f"the move needs a direction, {' or '.join(sides)}: only a capture in namua at a "
            "kichwa or kimbi is written without it (Donkers part 5)"
        )
    action = pack_action(pit, direction, len(house))
    if action not in legal_actions(packed, ruleset):
        raise NotationError(str(why_illegal(packed, ruleset, action)))
    if written_stars != (expected_stars := stars(packed, ruleset, action)) and (
        strict or not expected_stars
    ):
        kind = {
            "": "captures, so it is written without a star",
            "*": "is a takasa that bars no hole, so it is written with one star",
            "**": "is a takasa that bars a hole by takasia, so it is written with two stars",
        }[expected_stars]
        raise NotationError(f"the move {kind} (Donkers part 5)")
    if strict and win_sign:
        _, outcome = make_move(packed.copy(), ruleset, action)
        if outcome is None or outcome.winner != mover:
            raise NotationError("the move does not win, so it is written without # (kibao)")
    return action
