"""Define players and kinds of players.

A player is an agent with a name; it plays batches of positions and single boards. Its kind defines
how the player is named and made. :mod:`bao_agents.players.registry` lists the kinds.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bao_agents.nets.checkpoint_files import find_guide, title
from bao_agents.players.plugins import is_own
from bao_agents.support.legal_bits import bits_of
from bao_env.board import Board
from bao_env.bots import Agent
from bao_env.engine.position import Actions, Legal, PackedPositions
from bao_env.engine.ruleset import Ruleset

if TYPE_CHECKING:
    from bao_agents.nets.network import PolicyNetwork
    from bao_agents.nets.player import Evaluation, NetworkAgent


class NamedPlayer:
    """A batched agent with a name.

    Args:
        name: the name shown in tables.
        agent: the agent that chooses the actions.
    """

    def __init__(self, name: str, agent: Agent) -> None:
        self.name = name
        self._agent = agent

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

    def act(self, positions: PackedPositions, legal: Legal) -> Actions:
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
        legal = np.array([bits_of(actions)], np.uint64)
        return int(self.act(board.packed[None], legal)[0])

    def evaluate(self, board: Board) -> Evaluation:
        """Return the policy and the value of the player's network, without a search.

        Raises:
            ValueError: the player has no network, the game is over, or the board has other rules
                than the player.
        """
        if self._evaluator is None:
            raise ValueError(
                f"player {self.name} has no network to evaluate with: load one that has, for "
                "example bao_agents.load('zanzibar')"
            )
        return self._evaluator.evaluate_board(board)

    @cached_property
    def _evaluator(self) -> NetworkAgent | None:
        agent: Any = self._agent
        if getattr(agent, "network", None) is None:
            return None
        from bao_agents.nets.network import PolicyNetwork  # torch is slow to import
        from bao_agents.nets.player import NetworkAgent

        if isinstance(agent, NetworkAgent):
            return agent
        foreign = not isinstance(agent.network, PolicyNetwork)
        return None if foreign else NetworkAgent(agent.network, agent.ruleset)

    def __repr__(self) -> str:
        return f"<player {self.name}>"


class Limit(NamedTuple):
    """What a player may use for a move, as in python-chess; None is no limit."""

    plies: int | None = None
    seconds: float | None = None
    nodes: int | None = None
    """Positions visited; of a Monte Carlo search its playouts or simulations."""


class Unit(NamedTuple):
    """What the number of a limit counts, and the numbers that the board offers."""

    unit: str
    """``plies``, ``playouts``, ``simulations``, ``nodes``, ``s`` or ``ms``."""
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
    """How a player is written: ``CHECKPOINT``, ``LIMIT``, ``COMMAND`` and ``MODULE:FUNCTION`` stand
    for what varies."""
    examples: Mapping[str, str]
    """One or more names, each with its meaning."""
    load: Callable[[PlayerName, Setting], Agent]
    """Makes the agent; raises ValueError if it cannot. It imports torch only if it needs it: torch
    is slow to import, and may be missing."""
    units: Mapping[str, Unit] = field(default_factory=dict)
    """What may follow the number of a limit."""
    on_board: bool = True
    """Whether a visitor of the board may choose it."""

    @property
    def head(self) -> str:
        """The word before the first colon, if it is fixed; else empty."""
        head, colon, _ = self.form.partition(":")
        return head if colon and head.islower() else ""

    @property
    def has_checkpoint(self) -> bool:
        """Whether a checkpoint is part of the name."""
        return "CHECKPOINT" in self.form

    def match(self, text: str) -> PlayerName | None:
        """Parse a player's name; None if it is not of this kind."""
        head, _, rest = text.partition(":")
        if not self.units:
            fits = {"CHECKPOINT": True, "pipe:COMMAND": rest, "MODULE:FUNCTION": is_own(text)}
            if not fits.get(self.form, text == self.form):
                return None
            return PlayerName(self, text, text if self.has_checkpoint else "")
        *words, last = rest.split(":")
        found = re.fullmatch("([0-9]{1,9}) ?([a-z]*)", last)
        if not found or found[2] not in self.units or bool(words) != self.has_checkpoint:
            return None
        number, suffix = int(found[1]), found[2]  # "alphabeta:06" is "alphabeta:6"
        name = ":".join([head, *words, f"{number}{suffix}"])
        return PlayerName(self, name, ":".join(words), number, self.units[suffix])


class PlayerName(NamedTuple):
    """The parsed name of a player."""

    kind: Kind
    text: str
    """The whole name."""
    checkpoint: str = ""
    """The checkpoint, as written in the name."""
    number: int = 0
    """The number of the limit; 0 for a kind without."""
    unit: Unit | None = None
    """The unit of the limit; None for a kind without."""
    path: Path | None = None
    """The file of the checkpoint."""

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

    def __str__(self) -> str:
        return self.text


class Setting(NamedTuple):
    """What a player is made for."""

    ruleset: Ruleset
    """The rules to play."""
    seed: int
    """The seed of the player's random choices."""
    threads: int | None
    """The number of threads of a search; None for all cores."""
    read: Callable[[Path, Ruleset], PolicyNetwork]
    """Returns the network of a checkpoint."""

    def network(self, path: Path | None) -> PolicyNetwork:
        """Return the network of a checkpoint, or the guide of the rule set."""
        return self.read(path or find_guide(self.ruleset.name), self.ruleset)
