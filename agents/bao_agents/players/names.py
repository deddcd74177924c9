"""Parse the names of players.

Each kind of player defines the form of its players' names. :mod:`bao_agents.players.registry` lists
the kinds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from bao_agents.nets.checkpoint_files import find_guide, title, trained_under
from bao_agents.search.limits import Limit
from bao_env.bots import Agent
from bao_env.engine.ruleset import RULESETS, Ruleset

if TYPE_CHECKING:
    from bao_agents.nets.checkpoint import Checkpoint

_WORD = r"[^\W\d]\w*"
_TIME = "[0-9]{1,7}m?s"
PARTS = {
    "CHECKPOINT": ".*",
    "LIMIT": "(?P<NUMBER>[0-9]{1,9}) ?(?P<UNIT>UNITS)",  # UNITS: the units of the kind
    "TIME": rf"{_TIME}(?:\+{_TIME})?",
    "COMMAND": ".+",
    "MODULE": rf"{_WORD}(?:\.{_WORD})*",
    "FUNCTION": _WORD,
    "FILE": ".+",
}
"""The variable parts of names, each with its regular expression."""


class Unit(NamedTuple):
    """The unit of a limit, and the numbers that the web board offers."""

    unit: str
    """``plies``, ``playouts``, ``nodes``, ``s`` or ``ms``."""
    low: int = 0
    high: int = 0
    """The largest number that the board offers; 0 if it does not offer the unit."""
    default: int = 0

    def limit(self, number: int) -> Limit:
        """Return a limit of ``number`` of this unit."""
        if self.unit in ("s", "ms"):
            return Limit(seconds=number / (1000 if self.unit == "ms" else 1))
        return Limit(plies=number) if self.unit == "plies" else Limit(nodes=number)


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of player, a row of :data:`bao_agents.players.registry.KINDS`."""

    name: str
    form: str
    """The form of its players' names. The words of :data:`PARTS` stand for variable parts, and a
    part in brackets is optional: ``guided:CHECKPOINT:LIMIT``, ``MODULE:FUNCTION[@FILE]``."""
    examples: Mapping[str, str]
    """Examples of names, each with its meaning."""
    load: Callable[[PlayerName, Setting], Agent]
    """The function that makes the agent, or raises ValueError if it cannot. It imports torch only
    if the agent needs it: torch is slow to import, and may be missing."""
    units: Mapping[str, Unit] = field(default_factory=dict)
    """The units of its limits, by the text after the number."""
    has_guide: bool = False
    """Whether its players use the guide of the rule set: a checkpoint that the name does not
    contain."""
    is_foreign: bool = False
    """Whether its players run code from outside the project. Visitors of the board and ladders may
    not use such players, and their results are kept only if they have a fingerprint."""
    searches: bool = True
    """Whether its players may look ahead. Players from outside the project may."""
    needs_torch: bool = False
    """Whether its players run the whole network in torch. Guided alpha-beta only reads the
    weights."""

    @property
    def head(self) -> str:
        """The word before the first colon, if it is fixed; else empty."""
        head, colon, _ = self.form.partition(":")
        return head if colon and head.islower() else ""

    @property
    def has_checkpoint(self) -> bool:
        """Whether a checkpoint is part of the name."""
        return "CHECKPOINT" in self.form

    @property
    def is_program(self) -> bool:
        """Whether its players are programs, which are slow to start but then ready to move."""
        return "COMMAND" in self.form

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The regular expression of the form; its groups are the parts."""
        # A limit stands at the end of a form, so that match() can replace its text.
        pattern = re.escape(self.form).replace(r"\[", "(?:").replace(r"\]", ")?")
        for part, expression in PARTS.items():
            pattern = pattern.replace(part, f"(?P<{part}>{expression})")
        units = "|".join(map(re.escape, self.units))
        return re.compile(pattern.replace("UNITS", units), re.DOTALL)

    def match(self, text: str) -> PlayerName | None:
        """Parse a player's name; return None if it is not of this kind."""
        match = self.pattern.fullmatch(text)
        if match is None:
            return None
        parts = {part: value for part, value in match.groupdict().items() if value is not None}
        file_part = next((part for part in ("CHECKPOINT", "FILE") if part in parts), 0)
        file_span = match.span(file_part) if file_part else (0, 0)
        if "LIMIT" in parts:  # "alphabeta:06" is "alphabeta:6"
            text = f"{text[: match.start('LIMIT')]}{int(parts['NUMBER'])}{parts['UNIT']}"
        return PlayerName(self, text, parts, file_span)


@dataclass(frozen=True)
class PlayerName:
    """The parsed name of a player."""

    kind: Kind
    text: str
    """The whole name."""
    parts: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The texts of its variable parts, by the words of :data:`PARTS`."""
    file_span: tuple[int, int] = (0, 0)
    """Where the path of a file begins and ends in ``text``; equal if it has none."""
    path: Path | None = None
    """The file of the checkpoint."""

    @property
    def checkpoint(self) -> str:
        """The checkpoint, as written in the name."""
        return self.parts.get("CHECKPOINT", "")

    @property
    def number(self) -> int:
        """The number of the limit; 0 for a kind without limits."""
        return int(self.parts.get("NUMBER", 0))

    @property
    def unit(self) -> Unit | None:
        """The unit of the limit; None for a kind without limits."""
        return self.kind.units.get(self.parts.get("UNIT", "none"))

    @property
    def function(self) -> str:
        """The user's function, ``package.module:function``; empty for other kinds."""
        return "{MODULE}:{FUNCTION}".format(**self.parts) if "FUNCTION" in self.parts else ""

    @property
    def limit(self) -> Limit:
        """The limit of a move."""
        return self.unit.limit(self.number) if self.unit else Limit()

    @property
    def title(self) -> str:
        """The name for tables, in which a checkpoint is named after its run or file."""
        if self.path is None:
            return self.text
        return self.with_file(title(self.path))

    def with_file(self, text: str) -> str:
        """Return the whole name with another text in place of the path of a file."""
        start, end = self.file_span
        return self.text[:start] + text + self.text[end:] if start < end else self.text

    def file(self, ruleset: Ruleset) -> Path | None:
        """Return the file of the checkpoint that the player uses under some rules, or None.

        Raises:
            ValueError: the rule set has no guide.
        """
        if not self.kind.has_guide:
            return self.path
        shipped = (name for name, rules in RULESETS.items() if rules == ruleset)
        return find_guide(next(shipped, ruleset.name))

    def plays(self, ruleset: Ruleset) -> bool:
        """Return whether the player can play under some rules on this machine.

        If it uses a checkpoint, this must have been trained under the same rules.
        """
        try:
            file = self.file(ruleset)
        except ValueError:
            return False
        if self.kind.needs_torch and not _has_torch():
            return False
        return file is None or trained_under(file) == ruleset

    def __str__(self) -> str:
        return self.text


@cache
def _has_torch() -> bool:
    return find_spec("torch") is not None


class Resources(TypedDict):
    """The resources of the machine that a search may use."""

    threads: int | None
    memory: int | None


class Setting(NamedTuple):
    """The settings with which a player is made."""

    ruleset: Ruleset
    """The rules to play by."""
    seed: int
    """The seed of the player's random choices."""
    threads: int | None
    """The number of threads of a search; None for all cores."""
    memory: int | None = None
    """The maximum size of a search's tables in megabytes; None derives it from the limit."""

    @property
    def resources(self) -> Resources:
        """``threads`` and ``memory``, as arguments of a search."""
        return {"threads": self.threads, "memory": self.memory}

    def checkpoint(self, name: PlayerName) -> Checkpoint:
        """Return the checkpoint that a player uses; callers share it and must not change it.

        Raises:
            ValueError: the rule set has no guide, or the checkpoint cannot be used under these
                rules.
        """
        from bao_agents.nets import checkpoint  # slow to import

        file = name.file(self.ruleset)
        assert file is not None, name
        return checkpoint.load_shared(file, self.ruleset)
