"""Define players and kinds of players.

A player is an agent with a name; it plays batches of positions and single boards. Its kind defines
how the player is named and made. :mod:`bao_agents.registry` lists the kinds.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bao_agents.nets.checkpoint_files import title
from bao_env.board import Board
from bao_env.bots import Agent
from bao_env.engine.action import mask_of
from bao_env.engine.position import Actions, Words
from bao_env.engine.ruleset import Ruleset

if TYPE_CHECKING:
    from bao_agents.nets.network import PolicyNetwork
    from bao_agents.nets.policy import Evaluation, NetworkAgent


class NamedPlayer:
    """A batched agent with a name.

    Args:
        name: the name shown in tables.
        agent: the agent that chooses the actions.
        network: the network of the agent, if it has one.
    """

    def __init__(self, name: str, agent: Agent, network: NetworkAgent | None = None) -> None:
        self.name = name
        self._agent = agent
        self._network = network

    @property
    def fingerprint(self) -> str | None:
        """The agent's ``fingerprint``: a string that changes whenever its play does.

        None if the agent has none.

        Raises:
            ValueError: the attribute is not a string.
        """
        found = getattr(self._agent, "fingerprint", None)
        if not isinstance(found, str | None):
            raise ValueError(
                f"the fingerprint of {self.name} is a {type(found).__name__}: expected a string"
            )
        return found

    @property
    def seeded(self) -> bool:
        """Whether the play depends on the seed that the player was loaded with."""
        return bool(getattr(self._agent, "seeded", True))

    def processor_seconds(self) -> float:
        """Return the processor time used so far, of this process or of the player's program."""
        clock: Callable[[], float] = getattr(self._agent, "processor_seconds", time.process_time)
        return clock()

    def act(self, positions: Words, legal: Words) -> Actions:
        """Choose an action in each position; see :meth:`bao_env.bots.Agent.act`."""
        return self._agent.act(positions, legal)

    def choose(self, board: Board) -> int:
        """Return the action that the player chooses on ``board``.

        Raises:
            ValueError: the game is over.
        """
        actions = board.legal_actions
        if not actions:
            raise ValueError("the game is over: there is no move to choose")
        legal = np.array([mask_of(actions)], np.uint64)
        return int(self.act(board.words[None], legal)[0])

    def evaluate(self, board: Board) -> Evaluation:
        """Return the policy and the value of the player's network, without a search.

        Raises:
            ValueError: the player has no network, the game is over, or the board has other rules
                than the player.
        """
        if self._network is None:
            raise ValueError(
                f"player {self.name} has no network to evaluate with: load one that has, for "
                "example bao_agents.load('zanzibar')"
            )
        return self._network.evaluate_board(board)

    def __repr__(self) -> str:
        return f"<player {self.name}>"


class LoadRequest(NamedTuple):
    """What a loader needs to make a player."""

    spec: PlayerSpec
    name: str
    """The name shown in tables."""
    ruleset: Ruleset
    """The rules to play."""
    seed: int
    """The seed of the player's random choices."""
    threads: int | None
    """The number of threads of a search; None for all cores."""
    read_network: Callable[[Path, Ruleset], PolicyNetwork]
    """Returns the network of a checkpoint."""

    def network(self) -> PolicyNetwork:
        """Return the network of the checkpoint that the player's name gives."""
        assert self.spec.path is not None
        return self.read_network(self.spec.path, self.ruleset)


@dataclass(frozen=True, eq=False)
class PlayerKind:
    """A kind of player: its spelling and its loader."""

    name: str
    spelling: str
    """A string with fields in braces, each at most once: ``checkpoint``, a path or the name of a
    shipped one; ``budget``, a number with a unit; ``model``; ``command``; ``module`` and
    ``function``."""
    examples: Mapping[str, str]
    """One or more names, each with its meaning."""
    load: Callable[[LoadRequest], NamedPlayer]
    """Makes the player; raises ValueError if it cannot. It imports torch only if it needs it: torch
    is slow to import, and may be missing."""
    units: tuple[str, ...] = ("",)
    """The units that may follow the number of a budget."""

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
        if "budget" in parts:
            pattern += f"(?P<unit>{'|'.join(self.units)})"
        return re.compile(pattern)

    def match(self, spec: str) -> PlayerSpec | None:
        """Parse a player's name; None if it is not of this kind."""
        found = self._pattern.fullmatch(spec)
        if found is None:
            return None
        fields = found.groupdict()
        budget = int(fields.get("budget", 0))
        if "budget" in fields:  # "alphabeta:06" is "alphabeta:6"
            low, high = found.span("budget")
            spec = f"{spec[:low]}{budget}{spec[high:]}"
        return PlayerSpec(self, spec, fields.get("checkpoint"), budget, fields.get("unit", ""))


_FIELDS = {
    "checkpoint": r".+",
    "budget": r"[0-9]{1,9} ?",
    "model": r".+",
    "command": r".+",
    "module": r"[A-Za-z_][\w.]*",
    "function": r"[A-Za-z_]\w*",
}


@dataclass(frozen=True)
class PlayerSpec:
    """The parsed name of a player."""

    kind: PlayerKind
    name: str
    checkpoint: str | None
    """The checkpoint, as written in the name."""
    budget: int
    """The number that limits a search; 0 for a kind without."""
    unit: str
    """The unit of the budget, or an empty string."""
    path: Path | None = None
    """The file of the checkpoint."""

    @property
    def title(self) -> str:
        """The name for tables, in which a checkpoint is called by its run or its file."""
        if self.checkpoint is None or self.path is None:
            return self.name
        return self.name.replace(self.checkpoint, title(self.path), 1)

    @property
    def count(self) -> int | None:
        """The budget if it has no unit: plies or simulations."""
        return None if self.unit else self.budget

    @property
    def nodes(self) -> int | None:
        """The budget if it is a number of nodes."""
        return self.budget if self.unit == "n" else None

    @property
    def seconds(self) -> float | None:
        """The budget if it is a time."""
        return {"s": float(self.budget), "ms": self.budget / 1000}.get(self.unit)

    def __str__(self) -> str:
        return self.name
