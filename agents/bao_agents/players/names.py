"""Read the names of players. A kind of player says how its players are written.

:mod:`bao_agents.players.registry` lists the kinds.
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
    "LIMIT": "(?P<NUMBER>[0-9]{1,9}) ?(?P<UNIT>UNITS)",  # UNITS: those of the kind
    "TIME": rf"{_TIME}(?:\+{_TIME})?",
    "COMMAND": ".+",
    "MODULE": rf"{_WORD}(?:\.{_WORD})*",
    "FUNCTION": _WORD,
    "FILE": ".+",
}
"""What varies in the forms of names, and the regular expression of each."""


class Unit(NamedTuple):
    """What the number of a limit counts, and the numbers that the board offers."""

    unit: str
    """``plies``, ``playouts``, ``nodes``, ``s`` or ``ms``."""
    low: int = 0
    high: int = 0
    """0 if the board does not offer the unit."""
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
    """How a player is written. The words of :data:`PARTS` stand for what varies, and what is in
    brackets may be left out: ``guided:CHECKPOINT:LIMIT``, ``MODULE:FUNCTION[@FILE]``."""
    examples: Mapping[str, str]
    """One or more names, each with its meaning."""
    load: Callable[[PlayerName, Setting], Agent]
    """Makes the agent; raises ValueError if it cannot. It imports torch only if it needs it: torch
    is slow to import, and may be missing."""
    units: Mapping[str, Unit] = field(default_factory=dict)
    """What may follow the number of a limit."""
    has_guide: bool = False
    """Whether it plays with the guide of its rule set, a checkpoint that its name does not give."""
    is_foreign: bool = False
    """Whether it runs code from outside the project. Such players are not for visitors of the board
    or for ladders, and their results are kept only if they have a fingerprint."""
    searches: bool = True
    """Whether its players may look ahead, as those from outside the project may."""
    needs_torch: bool = False
    """Whether its players run the whole network in torch; guided alpha-beta only reads weights."""

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
        """Whether a player is a program: ready to move once loaded, and slow to start."""
        return "COMMAND" in self.form

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The regular expression of the form; its groups are the parts."""
        # A limit stands at the end, so that what it is written as can be replaced.
        pattern = re.escape(self.form).replace(r"\[", "(?:").replace(r"\]", ")?")
        for part, expression in PARTS.items():
            pattern = pattern.replace(part, f"(?P<{part}>{expression})")
        units = "|".join(map(re.escape, self.units))
        return re.compile(pattern.replace("UNITS", units), re.DOTALL)

    def match(self, text: str) -> PlayerName | None:
        """Parse a player's name; None if it is not of this kind."""
        match = self.pattern.fullmatch(text)
        if match is None:
            return None
        parts = {part: value for part, value in match.groupdict().items() if value is not None}
        if "LIMIT" in parts:  # "alphabeta:06" is "alphabeta:6"
            text = f"{text[: match.start('LIMIT')]}{int(parts['NUMBER'])}{parts['UNIT']}"
        return PlayerName(self, text, parts)


@dataclass(frozen=True)
class PlayerName:
    """The parsed name of a player."""

    kind: Kind
    text: str
    """The whole name."""
    parts: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What it has for the words of :data:`PARTS`."""
    path: Path | None = None
    """The file of the checkpoint."""

    @property
    def checkpoint(self) -> str:
        """The checkpoint, as written in the name."""
        return self.parts.get("CHECKPOINT", "")

    @property
    def number(self) -> int:
        """The number of the limit; 0 for a kind without."""
        return int(self.parts.get("NUMBER", 0))

    @property
    def unit(self) -> Unit | None:
        """The unit of the limit; None for a kind without."""
        return self.kind.units.get(self.parts.get("UNIT", "none"))

    @property
    def function(self) -> str:
        """Users' code, ``package.module:function``; empty for other kinds."""
        return "{MODULE}:{FUNCTION}".format(**self.parts) if "FUNCTION" in self.parts else ""

    @property
    def limit(self) -> Limit:
        """What the player may use for a move."""
        return self.unit.limit(self.number) if self.unit else Limit()

    @property
    def title(self) -> str:
        """The name for tables, in which a checkpoint is called by its run or its file."""
        if self.path is None:
            return self.text
        return self.text.replace(self.checkpoint, title(self.path), 1)

    def file(self, ruleset: Ruleset) -> Path | None:
        """Return the checkpoint that it plays with under some rules; None if it has none.

        Raises:
            ValueError: the rule set has no guide.
        """
        if not self.kind.has_guide:
            return self.path
        shipped = (name for name, rules in RULESETS.items() if rules == ruleset)
        return find_guide(next(shipped, ruleset.name))

    def plays(self, ruleset: Ruleset) -> bool:
        """Return whether it can play some rules here.

        Its checkpoint, if it has one, must have been trained for them.
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
    """What a search may use of the machine."""

    threads: int | None
    memory: int | None


class Setting(NamedTuple):
    """What a player is made for."""

    ruleset: Ruleset
    """The rules to play."""
    seed: int
    """The seed of the player's random choices."""
    threads: int | None
    """The number of threads of a search; None for all cores."""
    memory: int | None = None
    """The most megabytes of a search's tables; None for what its limit is worth."""

    @property
    def resources(self) -> Resources:
        """The arguments ``threads`` and ``memory`` of a search."""
        return {"threads": self.threads, "memory": self.memory}

    def checkpoint(self, name: PlayerName) -> Checkpoint:
        """Return the checkpoint that a player plays with; callers share it and must not change it.

        Raises:
            ValueError: the rule set has no guide, or the checkpoint cannot be used under it.
        """
        from bao_agents.nets import checkpoint  # slow to import

        file = name.file(self.ruleset)
        assert file is not None, name
        return checkpoint.load_shared(file, self.ruleset)
