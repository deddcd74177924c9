"""What a player is, and what a kind of player is.

A player is an agent with a name; it plays batches of positions and single boards. Its kind says how
it is named, how it is made, and how the board in a browser offers it. :mod:`agents.registry` lists
the kinds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from bao_env.board import Board
from bao_env.bots import Agent
from bao_env.engine.action import mask_of
from bao_env.engine.ruleset import Ruleset

if TYPE_CHECKING:
    from agents.nets.network import PolicyNetwork

Translations = Mapping[str, str]
"""A text by language: English, ``en``, always; Swahili, ``sw``, if it is translated."""


class NamedPlayer:
    """Any batched agent, with a name.

    Args:
        name: as tables show it.
        agent: chooses the actions.
    """

    def __init__(self, name: str, agent: Agent) -> None:
        self.name = name
        self._agent = agent

    @property
    def fingerprint(self) -> str | None:
        """The text that its agent has as ``fingerprint``: as long as it stays the same, the agent
        plays the same. None if it has none.

        Raises:
            ValueError: it is no text.
        """
        found = getattr(self._agent, "fingerprint", None)
        if not isinstance(found, str | None):
            raise ValueError(
                f"the fingerprint of {self.name} is a {type(found).__name__}: expected a text"
            )
        return found

    def act(
        self, positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """See :meth:`bao_env.bots.Agent.act`."""
        return self._agent.act(positions, masks)

    def choose(self, board: Board) -> int:
        """The action that the player chooses on ``board``.

        Raises:
            ValueError: the game is over.
        """
        legal = board.legal_actions
        if not legal:
            raise ValueError("the game is over: there is no move to choose")
        masks = np.array([mask_of(legal)], np.uint64)
        return int(self.act(board.words[None], masks)[0])

    def __repr__(self) -> str:
        return f"<player {self.name}>"


class LoadRequest(NamedTuple):
    """What a loader makes a player from."""

    spec: PlayerSpec
    ruleset: Ruleset
    """The rules to be played."""
    seed: int
    """Of the player's random choices."""
    threads: int | None
    """Among which a search divides a batch; None for all cores."""
    network: PolicyNetwork | None
    """The checkpoint's, for a kind that has one."""


@dataclass(frozen=True)
class Budget:
    """How much a player may think at the board in a browser."""

    low: int
    high: int
    default: int
    label: Translations
    """What is counted."""


@dataclass(frozen=True)
class OnBoard:
    """How the board in a browser offers a kind of player."""

    label: Translations
    """The player's name; ``{checkpoint}`` stands for that of its checkpoint."""
    budget: Budget | None = None
    """If the spelling has one."""
    gives_hints: bool = False
    """Whether its network can also evaluate each move for a hint."""


@dataclass(frozen=True, eq=False)
class PlayerKind:
    """One way to name a player, and how the player is made."""

    name: str
    spelling: str
    """A text with fields in braces, each at most once: ``checkpoint``, a path or the name of a
    shipped one; ``budget``, a number; ``module`` and ``function``."""
    examples: Mapping[str, str]
    """One or more names, each with what it means."""
    load: Callable[[LoadRequest], Agent]
    """Makes the player; raises ValueError if it cannot. Imports only what it needs: torch is slow
    to import, may be missing, and most bots do without it."""
    options: tuple[str, ...] = ()
    """Words that may follow the spelling, after a colon."""
    on_board: OnBoard | None = None
    """None: the board in a browser does not offer it."""

    @property
    def head(self) -> str:
        """The word before the first colon, if it is fixed; else empty."""
        found = re.match(r"(\w+):", self.spelling)
        return found[1] if found else ""

    @property
    def has_checkpoint(self) -> bool:
        """Whether the spelling names a checkpoint."""
        return "{checkpoint}" in self.spelling

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = re.split(r"\{(\w+)\}", self.spelling)  # text, field, text, field ...
        pattern = "".join(
            f"(?P<{part}>{_FIELDS[part]})" if i % 2 else re.escape(part)
            for i, part in enumerate(parts)
        )
        if self.options:
            pattern += f"(?::(?P<option>{'|'.join(self.options)}))?"
        return re.compile(pattern)

    def match(self, spec: str) -> PlayerSpec | None:
        """A player's name taken apart; None if it is not of this kind."""
        found = self._pattern.fullmatch(spec)
        if found is None:
            return None
        return PlayerSpec(self, {key: text for key, text in found.groupdict().items() if text})


_FIELDS: Final = {
    "checkpoint": r".+",
    "budget": r"[0-9]{1,9} ?",
    "module": r"[A-Za-z_][\w.]*",
    "function": r"[A-Za-z_]\w*",
}


@dataclass(frozen=True)
class PlayerSpec:
    """The name of a player, taken apart."""

    kind: PlayerKind
    fields: Mapping[str, str] = field(default_factory=dict)
    """The text of each field of the kind's spelling; ``option``, if one is given."""
    path: Path | None = None
    """The file of the checkpoint."""

    @property
    def checkpoint(self) -> str | None:
        """The checkpoint as it was named."""
        return self.fields.get("checkpoint")

    @property
    def budget(self) -> int:
        """The number that limits a search; 0 for a kind without."""
        return int(self.fields.get("budget", 0))

    @property
    def option(self) -> str:
        """The option, or an empty text."""
        return self.fields.get("option", "")

    def __str__(self) -> str:
        numbers = {"budget": str(self.budget)}  # "alphabeta:06" is "alphabeta:6"
        text = self.kind.spelling.format_map({**self.fields, **numbers})
        return f"{text}:{self.option}" if self.option else text
