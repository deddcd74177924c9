"""Define rule sets: a switch for each difference between the sources, and five named sets.

The rules themselves, with sources and rule numbers, are in ``bao_env/RULES.md``.
"""

from __future__ import annotations

import dataclasses
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt
from numba.extending import overload
from numba.np.unsafe.ndarray import to_fixed_tuple

from bao_env.engine.layout import HOUSE, NUM_SEEDS
from bao_env.files import read_text
from bao_env.suggestions import did_you_mean

RULES_VERSION = 1
"""Version of the rules. Increase it when the same moves in a rule set lead to another position."""

MAX_SOW_LIMIT = 1_000_000
_MAX_BYTES = 8 << 10
"""The most bytes in a rule file. Parsing takes quadratic time; a rule set needs less than 2 KiB."""
NO_CAPTURE_LIMIT = 63
"""A ``capture_limit`` without effect: no hole can hold more seeds and still capture."""

_NAMED: Mapping[str, Mapping[str, Any]] = {
    "zanzibar": {},
    "kibao": {"takasia": "none", "house_stops_mtaji_takasa": True},
    "kujifunza": {
        "opening_front": (2,) * 8,
        "opening_back": (2,) * 8,
        "opening_store": 0,
        "house": False,
        "takasia": "none",
        "lone_kichwa_takasa": "loses",
        "first_player": "random",
    },
    "dutch": {
        "capture_side": "free",
        "endelea_turns": True,
        "lone_house": "side",
        "singleton_takasa": "singletons",
        "capture_limit": NO_CAPTURE_LIMIT,
        "takasia": "dutch",
    },
    "malawi": {
        "opening_front": (0, 0, 0, 0, 10, 2, 2, 0),
        "opening_store": 18,
        "house_min": 10,
    },
}
"""The switches of each named rule set that differ from the defaults."""
_MOVE_LINE = re.compile("[0-9]:.*;")
"""Matches text that a transcript would read as a move line."""


@dataclass(frozen=True)
class Ruleset:
    """The rules of one kind of Bao. The defaults are Zanzibar Bao as Donkers describes it.

    The ``name`` is a label: two rule sets are equal if all other switches are equal. The name
    of a shipped rule set is reserved for its own rules; with other switches, a ``+`` is added.

    Raises:
        ValueError: a switch has an unknown value, two switches contradict each other, or a
            transcript cannot hold the name.
    """

    name: str = dataclasses.field(default="zanzibar", compare=False)
    opening_front: tuple[int, ...] = (0, 0, 0, 0, 6, 2, 2, 0)
    """Seeds in front holes 1..8 of each player at the start (Donkers 2.1)."""
    opening_back: tuple[int, ...] = (0,) * 8
    """Seeds in back holes 1..8 of each player at the start."""
    opening_store: int = 22
    """Seeds in each player's store at the start; 0 starts the game in mtaji."""
    house: bool = True
    """Hole 5 is a house (nyumba) that both players own at the start (Donkers 2.5)."""
    house_min: int = 6
    """An owned house is active, with its special rules, only from this many seeds on (Donkers 2.4b,
    2.5b)."""
    house_lost_below_min: bool = False
    """A house that falls below ``house_min`` seeds is lost for good (Dutch footnote 2)."""
    house_stops_mtaji_takasa: bool = False
    """A takasa in mtaji also stops at an owned house with ``house_min`` or more seeds (kibao
    1.6.2)."""
    lone_house: Literal["front", "side"] = "front"
    """``front``: a takasa from an active house that is the only filled front hole takes two seeds
    (Donkers 2.4b). ``side``: it does so only if the back row is also empty; otherwise the house
    counts as an ordinary hole (Dutch I.c)."""
    singleton_takasa: Literal["house", "singletons"] = "house"
    """When a takasa in namua may start from a hole with one seed. ``house``: if no front hole has
    more, or the house is still owned (Donkers 2.4c). ``singletons``: if no front hole except an
    active house has more (Dutch I.b)."""
    capture_side: Literal["running", "free"] = "running"
    """A later capture in namua keeps the ``running`` direction (Donkers 1.4c), or the player is
    ``free`` to choose its side in a further action (Dutch I.a)."""
    endelea_turns: bool = False
    """In a capture move, endelea from a kichwa or kimbi turns inward (Dutch I.a)."""
    capture_limit: int = 15
    """Most seeds that may start a capture in mtaji (Donkers 3.4); 63 means no limit."""
    lone_kichwa_takasa: Literal["illegal", "loses"] = "illegal"
    """A takasa from the only filled front hole, a kichwa, toward the back row is ``illegal``
    (Donkers 2.4a, 3.5b) or ``loses`` at once (deepblao)."""
    takasia: Literal["none", "zanzibar", "dutch"] = "zanzibar"
    """``zanzibar`` (Donkers 4.1), ``dutch`` (Dutch II) or ``none``."""
    takasia_spares_singletons: bool = False
    """Takasia never bars a hole with a single seed (4.1, **Choice**)."""
    sow_limit: int = 1000
    """A move that sows more seeds than this is infinite, and so illegal (Donkers 1.5a)."""
    first_player: Literal["south", "random"] = "south"
    """Who begins: ``south``, or a player drawn at ``random``."""

    def __post_init__(self) -> None:
        self._check_kinds()
        self._check_opening()
        self._check_ranges()
        self._check_combinations()
        self._check_name()

    def _check_kinds(self) -> None:
        """Check the type of each switch, and that each word is an allowed one."""
        for field in dataclasses.fields(self):
            kind, value = type(field.default), getattr(self, field.name)
            if kind is not tuple and type(value) is not kind:
                expected = {str: "a string", int: "an integer", bool: "a boolean"}[kind]
                raise ValueError(
                    f"{field.name}={value!r}: expected {expected}, such as {field.default!r}"
                )
            allowed = CHOICES.get(field.name, (value,))
            if value not in allowed:
                raise ValueError(f"{field.name}={value!r}: expected one of {', '.join(allowed)}")

    def _check_opening(self) -> None:
        """Make tuples of the opening's rows, and check that a game can start from it."""
        for row in ("opening_front", "opening_back"):
            value = getattr(self, row)
            pits = tuple(value) if isinstance(value, (tuple, list)) else (value,)
            object.__setattr__(self, row, pits)
            if len(pits) != 8 or any(type(n) is not int or n < 0 for n in pits):
                raise ValueError(f"{row}={pits!r}: expected eight counts of seeds, none negative")
        if self.opening_store < 0:
            raise ValueError(
                f"opening_store={self.opening_store}: expected a count of seeds, not negative"
            )
        side = sum(self.opening_front) + sum(self.opening_back) + self.opening_store
        if 2 * side != NUM_SEEDS:
            raise ValueError(
                f"opening: each player must start with {NUM_SEEDS // 2} seeds on the board and in "
                f"the store, not {side}"
            )
        if not any(self.opening_front):
            raise ValueError(
                "opening_front has no seeds: a player whose front row is empty has lost"
            )
        if self.house and self.opening_front[HOUSE] == 0:
            raise ValueError(
                "house=True needs seeds in hole 5 at the start: an empty house is lost"
            )

    def _check_ranges(self) -> None:
        """Check the switches that are numbers."""
        for name, value, low, high in (
            ("house_min", self.house_min, 2, NUM_SEEDS),
            ("capture_limit", self.capture_limit, 2, NO_CAPTURE_LIMIT),
            ("sow_limit", self.sow_limit, NUM_SEEDS, MAX_SOW_LIMIT),
        ):
            if not low <= value <= high:
                raise ValueError(f"{name}={value!r}: expected an integer from {low} to {high}")

    def _check_combinations(self) -> None:
        """Check that no switch contradicts another."""
        if self.house_lost_below_min and self.opening_front[HOUSE] < self.house_min:
            raise ValueError(
                f"house_lost_below_min=True needs at least house_min={self.house_min} seeds in "
                f"hole 5 at the start, not {self.opening_front[HOUSE]}"
            )
        if self.takasia_spares_singletons and self.takasia != "zanzibar":
            raise ValueError(
                f"takasia_spares_singletons=True needs takasia='zanzibar', not {self.takasia!r}"
            )
        if not self.house and (self.house_lost_below_min or self.house_stops_mtaji_takasa):
            raise ValueError(
                "house=False leaves no house for house_lost_below_min and "
                "house_stops_mtaji_takasa: set both to False"
            )

    def _check_name(self) -> None:
        """Check that a transcript can hold the name; add ``+`` to a shipped name of other rules."""
        name = self.name
        if not name.isprintable() or name != name.strip() or not 0 < len(name) <= 100:
            raise ValueError(
                f"name={name!r}: expected 1 to 100 printable characters, without spaces around them"
            )
        if _MOVE_LINE.search(name):
            raise ValueError(
                f"name={name!r}: a transcript would read part of it as a move line such as '1: "
                "7L;': choose another name"
            )
        if name in _NAMED and self.changed_switches() != _NAMED[name]:
            object.__setattr__(self, "name", f"{name}+")

    def __getstate__(self) -> dict[str, Any]:
        """Return the switches: a pickle leaves out what can be computed from them."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def replace(self, **switches: Any) -> Ruleset:
        """Return a copy with some switches changed.

        A ``+`` is added to the name unless ``name`` is among the switches.

        Raises:
            ValueError: a switch is unknown, or contradicts another.
        """
        names = {field.name for field in dataclasses.fields(self)}
        for switch in switches:
            if switch not in names:
                hint = did_you_mean(switch, names)
                raise ValueError(
                    f"unknown rule switch {switch!r}{hint}; the switches are "
                    f"{', '.join(sorted(names))}"
                )
        switches.setdefault("name", f"{self.name[:99].rstrip()}+")
        if switches.get("first_player") == "lot":  # in files of earlier versions
            switches["first_player"] = "random"
        return dataclasses.replace(self, **switches)

    def changed_switches(self) -> dict[str, Any]:
        """Return the switches, without the name, that differ from the defaults (zanzibar's)."""
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.compare and getattr(self, field.name) != field.default
        }

    @property
    def is_shipped(self) -> bool:
        """Whether these are the rules that :data:`RULESETS` has under this name."""
        return self.name in _NAMED

    def contrast(self, expected: Ruleset) -> str:
        """Describe how these rules differ from the expected ones, for an error message.

        For shipped rule sets, the names are enough: ``'zanzibar', not 'dutch'``. If either rule set
        is a custom one, the switches that differ follow:
        ``'mine', not 'zanzibar' (house_min=8, not 6)``. A name that both share is given once.
        """
        names = repr(self.name)
        if self.name != expected.name:
            names += f", not {expected.name!r}"
        if self.is_shipped and expected.is_shipped:
            return names
        here, expected_switches = self.to_dict(), expected.to_dict()
        differences = [
            f"{switch}={value!r}, not {expected_switches[switch]!r}"
            for switch, value in here.items()
            if switch != "name" and value != expected_switches[switch]
        ]
        return f"{names} ({'; '.join(differences)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the switches as plain values, for JSON or TOML; :meth:`from_dict` reads them."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in dataclasses.asdict(self).items()
        }

    @classmethod
    def from_dict(cls, switches: Mapping[str, Any]) -> Ruleset:
        """Return the rule set that a mapping describes; :meth:`to_dict` returns such mappings.

        Missing keys get the defaults.

        Raises:
            ValueError: a switch is unknown, or contradicts another.
        """
        name = switches.get("name", "custom")
        if isinstance(name, str):
            name = name.strip()  # earlier versions wrote names with spaces around them
        return cls().replace(**{**switches, "name": name})

    @cached_property
    def kernel(self) -> KernelRules:
        """The switches as compiled functions read them."""
        return KernelRules(*(code(name, getattr(self, name)) for name in KernelRules._fields))

    @cached_property
    def kernel_array(self) -> npt.NDArray[np.uint64]:
        """The switches of :attr:`kernel` as an array, uint64[n], for :func:`rules_of`."""
        return np.array(self.kernel)


CHOICES: dict[str, tuple[str, ...]] = {
    name: get_args(kind)
    for name, kind in get_type_hints(Ruleset).items()
    if get_origin(kind) is Literal
}
"""The allowed values of each switch that takes a word."""


def code(switch: str, value: str | int) -> np.uint64:
    """Return the value of a switch as a number, for the kernel.

    A number stays as it is, False and True become 0 and 1, and a word becomes its index in
    :data:`CHOICES`.
    """
    return np.uint64(CHOICES[switch].index(value) if isinstance(value, str) else value)


class KernelRules(NamedTuple):
    """The switches of a :class:`Ruleset` that decide what a move does, for compiled functions.

    Each is a uint64 (:func:`code`). The other switches decide how a game begins.
    """

    house_min: np.uint64
    house_lost_below_min: np.uint64
    house_stops_mtaji_takasa: np.uint64
    lone_house: np.uint64
    singleton_takasa: np.uint64
    capture_side: np.uint64
    endelea_turns: np.uint64
    capture_limit: np.uint64
    lone_kichwa_takasa: np.uint64
    takasia: np.uint64
    takasia_spares_singletons: np.uint64
    sow_limit: np.uint64


def rules_of(kernel_array: npt.NDArray[np.uint64]) -> KernelRules:
    """Return the rules of :attr:`Ruleset.kernel_array`, uint64[n]; works in compiled code as well.

    Python passes an array to compiled code ten times faster than a named tuple.
    """
    return KernelRules(*kernel_array)


@overload(rules_of)
def _rules_of_in_numba(kernel_array):  # type: ignore[no-untyped-def]
    """Return the function that numba compiles in place of :func:`rules_of`."""
    count = len(KernelRules._fields)
    return lambda kernel_array: KernelRules(
        *to_fixed_tuple(kernel_array, count)  # type: ignore[call-arg]
    )


RULESETS: Mapping[str, Ruleset] = MappingProxyType(
    {name: Ruleset(name, **switches) for name, switches in _NAMED.items()}
)
"""The named rule sets."""


def get_ruleset(ruleset: str | Ruleset) -> Ruleset:
    """Return the rule set of that name, or the given rule set.

    A rule set may also be given as the mapping that :meth:`Ruleset.to_dict` returns.

    Raises:
        ValueError: no rule set has that name, or ``ruleset`` is neither a name nor a rule set.
    """
    if isinstance(ruleset, Ruleset):
        return ruleset
    if isinstance(ruleset, Mapping):  # as Gymnasium writes one into the spec of an environment
        return Ruleset.from_dict(ruleset)
    if not isinstance(ruleset, str):
        raise ValueError(
            f"ruleset={ruleset!r}: expected a Ruleset, or the name of one: {', '.join(RULESETS)}"
        )
    if ruleset not in RULESETS:
        raise ValueError(
            f"unknown rule set {ruleset!r:.80}{did_you_mean(ruleset, RULESETS)}; the rule sets are "
            f"{', '.join(RULESETS)}; load your own from a .toml file with bao_env.load_ruleset"
        )
    return RULESETS[ruleset]


def load_ruleset(path: str | os.PathLike[str]) -> Ruleset:
    """Read a rule set from a TOML file: switches of :class:`Ruleset`, each ``switch = value``.

    ``base`` is the rule set to change (default ``zanzibar``), and ``name`` is the name of the new
    one (default: the file's name).

    Raises:
        ValueError: the file is not TOML, or a switch is unknown or contradicts another.
        OSError: the file cannot be read.
    """
    path = Path(path)
    text = read_text(path, _MAX_BYTES)
    try:
        switches = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(
            f"{path} is not valid TOML: {error}; "
            "a value is true, false, a number, a quoted word or a list of numbers"
        ) from error
    switches.setdefault("name", path.stem)
    try:
        return get_ruleset(switches.pop("base", "zanzibar")).replace(**switches)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
