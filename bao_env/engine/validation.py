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
        raise ValueError(f"{owner}: rows of {lengths} holes; expected 8 each")
    if min(*position.pits(seat), position.store[seat]) < 0:
        raise ValueError(f"{owner}: a count of seeds is negative; expected 0 or more")
    lost = not any(position.front[seat])
    if lost and not (finished and any(position.front[1 - seat])):
        raise ValueError(f"{owner}'s front row is empty: the game is over (Donkers 1.2)")


def _check_house(seeds: int, seat: int, ruleset: Ruleset) -> None:
    """Check that a seat can own its house, which holds ``seeds`` seeds."""
    owner = _SEAT_NAMES[seat]
    if not ruleset.house:
        raise ValueError(f"{owner} owns a house, but rule set {ruleset.name!r} has none")
    if seeds == 0:
        raise ValueError(f"{owner} owns an empty house: a house ends when emptied (Donkers 2.5a)")
    if ruleset.house_lost_below_min and seeds < ruleset.house_min:
        raise ValueError(
            f"{owner} owns a house, but rule set {ruleset.name!r} ends it below "
            f"{ruleset.house_min} seeds, and it has {seeds} (Dutch footnote 2)"
        )


def _check_waiting_capture(position: Position, pit: int, ruleset: Ruleset) -> None:
    """Check that a capture at the mover's pit may be waiting for the mover to choose its side."""
    if ruleset.capture_side != "free":
        raise ValueError(f"a waiting capture, but rule set {ruleset.name!r} has no choice of side")
    if not KIMBI[LEFT] < pit < KIMBI[RIGHT]:
        raise ValueError(
            "only a capture at A3 to A6 can wait for the choice of its side (Dutch I.a)"
        )
    if not position.front[position.mover][pit]:
        raise ValueError(f"the capture at {pit_name(pit)} waits at an empty hole")
    if not position.front[1 - position.mover][facing(pit)]:
        raise ValueError(f"the capture at {pit_name(pit)} faces an empty hole")
    if not 0 <= position.pending_sown <= ruleset.sow_limit:
        raise ValueError(
            f"{position.pending_sown} seeds sown so far: expected 0 to {ruleset.sow_limit}"
        )


def _check_bar(position: Position, barred: int, ruleset: Ruleset) -> None:
    """Check that takasia can have barred the mover's pit ``barred``."""
    if ruleset.takasia != "zanzibar":
        raise ValueError(f"a barred hole, but rule set {ruleset.name!r} bars none in a position")
    if not 0 <= barred < 8:
        raise ValueError("takasia bars a front hole, A1 to A8 (Donkers 4.1)")
    for seat, role in ((position.mover, "mover"), (1 - position.mover, "opponent")):
        if position.store[seat]:
            raise ValueError(
                f"takasia bars a hole in mtaji only, but the {role}'s store is not empty "
                "(Donkers 4.1)"
            )
