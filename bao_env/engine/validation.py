"""Validate positions, because the engine plays any position that it gets without checks."""

from __future__ import annotations

from bao_env.engine.layout import (
    HOUSE,
    KIMBI,
    LEFT,
    NORTH,
    NUM_SEEDS,
    RIGHT,
    SOUTH,
    facing,
    pit_name,
)
from bao_env.engine.position import Position
from bao_env.engine.ruleset import Ruleset

_SEAT_NAMES = ("South", "North")


def validate(position: Position, ruleset: Ruleset, *, finished: bool = False) -> None:
    """Validate that a position can be played under a rule set.

    Args:
        position: the position.
        ruleset: the rules.
        finished: whether one front row may be empty.

    Raises:
        ValueError: the position cannot be played; the message says what is wrong and what was
            expected.
    """
    for seat in (SOUTH, NORTH):
        _check_counts(position, seat, finished)
        if position.owns_house[seat]:
            _check_house(position.front[seat][HOUSE], seat, ruleset)
    seeds = sum(position.pits(SOUTH)) + sum(position.pits(NORTH)) + sum(position.store)
    if seeds != NUM_SEEDS:
        raise ValueError(f"expected {NUM_SEEDS} seeds on the board and in the stores, not {seeds}")
    if position.mover not in (SOUTH, NORTH):
        raise ValueError(f"mover {position.mover!r}: expected SOUTH (0) or NORTH (1)")
    if position.pending is not None:
        _check_waiting_capture(position, position.pending, ruleset)
    if not 0 <= position.ply < 2**31:
        raise ValueError(f"ply {position.ply}: expected 0 to {2**31 - 1}")
    if position.barred is not None:
        _check_bar(position, position.barred, ruleset)


def _check_counts(position: Position, seat: int, finished: bool) -> None:
    """Check the rows and the store of a seat, and that the game is not over (unless ``finished``).

    Raises:
        ValueError: see :func:`validate`. The three functions below raise it as well.
    """
    owner = _SEAT_NAMES[seat]
    lengths = [len(row[seat]) for row in (position.front, position.back)]
    if lengths != [8, 8]:
        raise ValueError(
            f"{owner} has rows of {lengths[0]} and {lengths[1]} holes; expected 8 in each"
        )
    if min(*position.pits(seat), position.store[seat]) < 0:
        raise ValueError(f"{owner} has a negative count of seeds; expected 0 or more")
    lost = not any(position.front[seat])
    if lost and not (finished and any(position.front[1 - seat])):
        raise ValueError(f"{owner}'s front row is empty: the game is over (Donkers 1.2)")


def _check_house(seeds: int, seat: int, ruleset: Ruleset) -> None:
    """Check that a seat can own its house, which holds ``seeds`` seeds."""
    owner = _SEAT_NAMES[seat]
    if not ruleset.house:
        raise ValueError(f"{owner} owns a house, but rule set {ruleset.name!r} has none")
    if seeds == 0:
        raise ValueError(
            f"{owner} owns an empty house: a house is lost when emptied (Donkers 2.5a)"
        )
    if ruleset.house_lost_below_min and seeds < ruleset.house_min:
        raise ValueError(
            f"{owner} owns a house of {seeds} seeds, but under rule set {ruleset.name!r} a house "
            f"with fewer than {ruleset.house_min} is lost (Dutch footnote 2)"
        )


def _check_waiting_capture(position: Position, pit: int, ruleset: Ruleset) -> None:
    """Check that a capture can wait at the mover's pit until the mover chooses its side."""
    if ruleset.capture_side != "free":
        raise ValueError(
            f"a capture waits for the mover to choose its side, but rule set {ruleset.name!r} has "
            "no such choice"
        )
    if not KIMBI[LEFT] < pit < KIMBI[RIGHT]:
        raise ValueError(
            f"a capture waits at {pit_name(pit)}, but its side can be chosen only at A3 to A6 "
            "(Dutch I.a)"
        )
    if not position.front[position.mover][pit]:
        raise ValueError(f"a capture waits at {pit_name(pit)}, but that hole is empty")
    if not position.front[1 - position.mover][facing(pit)]:
        raise ValueError(f"a capture waits at {pit_name(pit)}, but the hole facing it is empty")
    if not 0 <= position.pending_sown <= ruleset.sow_limit:
        raise ValueError(
            f"{position.pending_sown} seeds sown so far in the turn: expected 0 to "
            f"{ruleset.sow_limit}"
        )


def _check_bar(position: Position, barred: int, ruleset: Ruleset) -> None:
    """Check that takasia can have barred the mover's pit ``barred``."""
    if ruleset.takasia != "zanzibar":
        raise ValueError(
            f"a hole is barred, but under rule set {ruleset.name!r} a position has no barred hole"
        )
    if not 0 <= barred < 8:
        raise ValueError(f"barred={barred}: takasia bars only front holes, 0 to 7 (Donkers 4.1)")
    for seat, role in ((position.mover, "mover"), (1 - position.mover, "opponent")):
        if position.store[seat]:
            raise ValueError(
                f"takasia bars holes in mtaji only, but the {role}'s store is not empty "
                "(Donkers 4.1)"
            )
