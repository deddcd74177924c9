"""Check the arguments and reset options that the environments share."""

from __future__ import annotations

from typing import Any, Literal

from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode

from bao_env.engine.argument_checks import MAX_COUNT, as_integer
from bao_env.engine.layout import Seat, seat_number
from bao_env.suggestions import did_you_mean

Illegal = Literal["lose", "raise"]
"""What happens after an illegal action."""
Options = dict[str, Any]
"""The options of a reset."""
Infos = dict[str, Any]
"""The infos of a reset and a step."""

MAX_PLIES = 500
"""Plies after which an environment cuts a game short, by default. The longest of 100,000 random
games took 254."""


def seat_or_none(seat: Seat | None, name: str) -> int | None:
    """Return the number of a seat (:func:`seat_number`), or None for None."""
    return None if seat is None else seat_number(seat, name)


def check_seat(seat: Seat | None, opponent: object) -> int | None:
    """Return the learner's seat as a number, or None.

    Raises:
        ValueError: ``seat`` is not a seat, or is given although there is no opponent.
    """
    if seat is not None and opponent is None:
        raise ValueError(
            f"seat={seat!r}: self-play has no learner's seat; give a seat only with an opponent"
        )
    return seat_or_none(seat, "seat")


def check_max_plies(max_plies: int | None) -> int:
    """Return the length at which games are cut short.

    Args:
        max_plies: the length; None means :data:`MAX_PLIES`.

    Raises:
        ValueError: ``max_plies`` is not an integer of at least 1.
    """
    if max_plies is None:
        return MAX_PLIES
    return as_integer(max_plies, "max_plies", 1, MAX_COUNT)


def check_autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    """Return the mode for an :class:`AutoresetMode`, its name or its value.

    Raises:
        ValueError: ``mode`` is none of these.
    """
    for member in AutoresetMode:
        if mode in (member, member.name, member.value):
            return member
    names = ", ".join(member.name for member in AutoresetMode)
    raise ValueError(f"autoreset_mode={mode!r}: expected one of {names}")


def check_seed(seed: int | None) -> None:
    """Validate the seed of a reset, before anything changes.

    Raises:
        gymnasium.error.Error: the seed is neither None nor an integer of at least 0.
    """
    if seed is not None:
        seeding.np_random(seed)


def check_illegal(illegal: Illegal) -> Illegal:
    """Return ``illegal``, the policy for illegal actions, after checking it.

    Raises:
        ValueError: ``illegal`` is neither ``"raise"`` nor ``"lose"``.
    """
    if illegal not in ("raise", "lose"):
        raise ValueError(f"illegal={illegal!r}: expected 'raise' or 'lose'")
    return illegal


def check_options(options: Options | None, *keys: str) -> Options:
    """Return the options of a reset; None gives an empty dict.

    Args:
        options: the caller's value.
        keys: the keys that the environment knows.

    Raises:
        TypeError: ``options`` is not a dict.
        ValueError: a key is unknown, or the options have both ``position`` and ``first_player``.
    """
    if options is None:
        return {}
    if not isinstance(options, dict):
        raise TypeError(f"options={options!r}: expected a dict or None")
    for key in options:
        if key not in keys:
            hint = did_you_mean(str(key), keys)
            raise ValueError(
                f"options: unknown key {key!r}{hint}; expected {', '.join(map(repr, keys))}"
            )
    if options.get("position") is not None and options.get("first_player") is not None:
        raise ValueError("options: a position already says who is to move; drop first_player")
    return options
