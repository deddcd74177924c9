"""Define players and kinds of players.

A player is an agent with a name; it plays batches of positions and single boards. Its kind defines
how the player is named and made. :mod:`bao_agents.players.registry` lists the kinds.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bao_agents.nets.checkpoint_files import find_guide, title, trained_under
from bao_agents.players.plugins import is_own
from bao_agents.search.limits import Limit
from bao_agents.search.player import MAX_GAME
from bao_agents.support.array_types import Int64Array
from bao_agents.support.opinion import Opinion
from bao_env.board import Board
from bao_env.bots import Agent, check_actions, check_rules
from bao_env.engine.array_checks import as_integer
from bao_env.engine.position import Actions, Legal, PackedPositions
from bao_env.engine.ruleset import Ruleset

if TYPE_CHECKING:
    from bao_agents.nets.checkpoint import Checkpoint


_numbers = count()


def new_games(size: int) -> Int64Array:
    """Return numbers for new games, int64[size], which this process has not used before."""
    return np.fromiter(islice(_numbers, size), np.int64, size)


class NamedPlayer:
    """A batched agent with a name.

    Args:
        name: the name shown in tables.
        agent: the agent that chooses the actions.
    """

    def __init__(self, name: str, agent: Agent) -> None:
        self.name = name
        self._agent: Any = agent  # which may have more than an Agent must
        self.remembers = bool(getattr(agent, "remembers", False))
        """Whether it remembers the games whose numbers it is told. Set it to False to have each
        position judged alone."""

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
    def ruleset(self) -> Ruleset | None:
        """The rules that the agent was made for; None if it plays by any."""
        return getattr(self._agent, "ruleset", None)

    @property
    def seeded(self) -> bool:
        """Whether the play depends on the seed that the player was loaded with."""
        return bool(getattr(self._agent, "seeded", True))

    def reseed(self, seed: int) -> None:
        """Play other games, with another seed; only for a program, which starts slowly."""
        self._agent.reseed(seed)

    def processor_seconds(self) -> float:
        """Return the processor time used so far, of this process or of the player's program."""
        return float(getattr(self._agent, "processor_seconds", time.process_time)())

    def act(
        self,
        positions: PackedPositions,
        legal: Legal,
        *,
        limit: Limit | None = None,
        games: Int64Array | None = None,
    ) -> Actions:
        """Choose an action in each position; see :meth:`bao_env.bots.Agent.act`.

        Args:
            positions, legal: see there.
            limit: what the player may use for each position, instead of the limit in its name.
            games: integers [B] from 0 to 2^63 - 1, the numbers of the positions' games, all
                different. They are ignored unless :attr:`remembers`; else the choice depends on the
                game so far, and a new number begins a new game (:func:`new_games`).

        Raises:
            TypeError, ValueError: ``games`` is wrong, or there is a limit and the player is not a
                search.
        """
        options: dict[str, Any] = {}
        if self.remembers and games is not None:
            options["games"] = games
        if limit is not None:
            if not hasattr(self._agent, "limit"):
                raise ValueError(
                    f"player {self.name} takes no limit: expected a search, for example "
                    "'alphabeta:6'"
                )
            options["limit"] = limit
        chosen: Actions = self._agent.act(positions, legal, **options)
        return chosen

    @property
    def most_games(self) -> int | None:
        """The most games that it remembers at once; None if there is no such number."""
        return getattr(self._agent, "most_games", None) if self.remembers else None

    def choose(self, board: Board, limit: Limit | None = None, *, game: int | None = None) -> int:
        """Return the action that the player chooses on ``board``.

        Args:
            board: a game that is not over.
            limit: see :meth:`act`.
            game: the number of the game, from 0 to 2^63 - 1, for a player that remembers it.

        Raises:
            ValueError: the game is over, its number is wrong, the player takes no limit, or its
                action is illegal.
        """
        self._check(board, "choose")
        positions, legal = board.batch()
        games = None if game is None else np.array([as_integer(game, "game", 0, MAX_GAME)])
        chosen = self.act(positions, legal, limit=limit, games=games)
        return int(check_actions(chosen, legal, self.name)[0])

    def analyse(self, board: Board, limit: Limit | None = None) -> list[Opinion] | None:
        """Return an opinion of each legal action, best first; None if the player gives none.

        Args:
            board: a game that is not over.
            limit: what it may use for all actions together, instead of the limit in its name.

        Raises:
            ValueError: the game is over, or the board has other rules than the player.
        """
        if not hasattr(self._agent, "analyse"):
            return None
        self._check(board, "analyse")
        found: list[Opinion] | None = self._agent.analyse(board, limit)
        return found

    def _check(self, board: Board, verb: str) -> None:
        if not board.legal_actions:
            raise ValueError(f"the game is over: there is no move to {verb}")
        check_rules(self, board.ruleset)

    def __repr__(self) -> str:
        return f"<player {self.name}>"


def as_player(agent: Agent, name: str) -> NamedPlayer:
    """Return an agent as a player, called ``name`` unless it has one; a player as it is."""
    if isinstance(agent, NamedPlayer):
        return agent
    return NamedPlayer(getattr(agent, "name", name), agent)


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
    """How a player is written: ``CHECKPOINT``, ``LIMIT``, ``COMMAND`` and ``MODULE:FUNCTION`` stand
    for what varies."""
    examples: Mapping[str, str]
    """One or more names, each with its meaning."""
    load: Callable[[PlayerName, Setting], Agent]
    """Makes the agent; raises ValueError if it cannot. It imports torch only if it needs it: torch
    is slow to import, and may be missing."""
    units: Mapping[str, Unit] = field(default_factory=dict)
    """What may follow the number of a limit."""
    has_guide: bool = False
    """Whether it plays with the guide of its rule set, a checkpoint that its name does not give."""
    code: Callable[[PlayerName], bytes] | None = None
    """Returns the source code of a player from outside the project, as far as it can be found; None
    for a kind of the project. What runs outside code is not for visitors of the board or ladders,
    and its results are kept only if its agent has a fingerprint."""
    searches: bool = True
    """Whether its players may look ahead, as those from outside the project may."""
    needs_torch: bool = False
    """Whether its players run the whole network in torch; guided alpha-beta only reads weights."""
    gets_ready: bool = False
    """Whether a loaded player is ready to move; others compile what they need at their first."""

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

    def file(self, ruleset: Ruleset) -> Path | None:
        """Return the checkpoint that it plays with under some rules; None if it has none.

        Raises:
            ValueError: the rule set has no guide.
        """
        return find_guide(ruleset.name) if self.kind.has_guide else self.path

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


class Setting(NamedTuple):
    """What a player is made for."""

    ruleset: Ruleset
    """The rules to play."""
    seed: int
    """The seed of the player's random choices."""
    threads: int | None
    """The number of threads of a search; None for all cores."""

    def checkpoint(self, name: PlayerName) -> Checkpoint:
        """Return the checkpoint that a player plays with; callers share it and must not change it.

        Raises:
            ValueError: the rule set has no guide, or the checkpoint cannot be used under it.
        """
        from bao_agents.nets import checkpoint  # slow to import

        file = name.file(self.ruleset)
        assert file is not None, name
        return checkpoint.load_shared(file, self.ruleset)
