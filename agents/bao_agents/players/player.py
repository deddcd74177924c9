"""Define the interface of players, and adapt any agent to it.

A bot needs only ``act(positions, legal)`` (:class:`bao_env.Agent`). :class:`Player` lists the
optional attributes and methods, with their defaults. The adapter :class:`NamedPlayer` adds the
defaults to any agent: matches, the board and the commands use an agent only through it.
"""

from __future__ import annotations

import time
from itertools import count, islice
from typing import Any

import numpy as np

from bao_agents.search.limits import Limit
from bao_agents.search.player import MAX_GAME
from bao_agents.support.array_types import Int64Array
from bao_agents.support.opinion import Opinion
from bao_env.board import Board
from bao_env.bots import ActFunction, Agent, as_agent, check_actions, settle_rules
from bao_env.engine.argument_checks import as_integer
from bao_env.engine.position import Actions, Legal, PackedPositions
from bao_env.engine.ruleset import Ruleset

_numbers = count()


def new_games(size: int) -> Int64Array:
    """Return numbers for new games, int64[size], that this process has not used before."""
    return np.fromiter(islice(_numbers, size), np.int64, size)


class Player:
    """The interface of players: :meth:`act` is required, everything else is optional.

    A bot need not be a subclass: it only needs attributes and methods with these names. If it lacks
    one, the default given here applies.
    """

    name: str = ""
    """The player's name in tables; if empty, the name under which it was loaded or passed."""
    ruleset: Ruleset | None = None
    """The rules that it was made for; None if it plays by any rules."""
    seeded: bool = True
    """Whether its play depends on the seed that it was made with."""
    limit: Limit | None = None
    """The limit of a move; None if :meth:`act` and :meth:`analyse` take no limit."""
    remembers: bool = False
    """Whether its choice depends on the game so far: :meth:`act` then takes ``games``."""
    searches_together: bool = False
    """Whether :meth:`act` takes ``together``."""
    most_games: int | None = None
    """The most games that it remembers at once; None for any number."""
    fingerprint: str | None = None
    """A text that changes whenever the player's play changes; None if there is none. Without
    one, a command plays a foreign player's games again in its next run."""

    def act(
        self,
        positions: PackedPositions,
        legal: Legal,
        *,
        limit: Limit | None = None,
        games: Int64Array | None = None,
        together: bool = False,
    ) -> Actions:
        """Choose an action in each position.

        Args:
            positions: uint64[B, 6], packed positions.
            legal: uint64[B], the legal actions of each as bits; 0 where the game is over.
            limit: the limit for each position, in place of :attr:`limit`.
            games: int64[B], the numbers of the positions' games, all different. A number that the
                player has not seen begins a game. None to judge each position alone.
            together: whether all threads may search the batch's only position together, as in
                :meth:`NamedPlayer.choose`. Otherwise each position is searched in one thread.

        Returns:
            int64[B], a legal action for each position; any number where the game is over.

        Raises:
            PlayerFault: it has no legal action in time; see :mod:`bao_agents.players.faults`.
        """
        raise NotImplementedError

    def analyse(self, board: Board, limit: Limit | None = None) -> list[Opinion] | None:
        """Return an opinion of each legal action, best first; None if it gives no opinions.

        Args:
            board: a game that is not over.
            limit: the limit for all actions together, in place of :attr:`limit`.
        """
        return None

    def get_ready(self) -> None:
        """Prepare for a move in a game with a clock; this takes none of the clock's time."""

    def reseed(self, seed: int) -> None:
        """Set another seed for the player's random choices from now on."""

    def processor_seconds(self) -> float:
        """Return the processor time that its moves have taken so far, in seconds."""
        return time.process_time()


_DEFAULTS = Player()


class NamedPlayer(Player):
    """Adapt an agent: give it a name, and the defaults of :class:`Player`.

    Args:
        name: the name for tables.
        agent: the agent that chooses the actions.
        ruleset: the rules that it was made for, if the agent has no attribute ``ruleset``.

    Raises:
        ValueError: the agent's fingerprint is not a string.
    """

    def __init__(self, name: str, agent: Agent, ruleset: Ruleset | None = None) -> None:
        self.name = name
        self._agent: Any = agent
        self.ruleset: Ruleset | None = getattr(agent, "ruleset", ruleset)
        self.seeded: bool = bool(self._of_agent("seeded"))
        self.limit: Limit | None = self._of_agent("limit")
        self.searches_together: bool = bool(self._of_agent("searches_together"))
        self.remembers: bool = bool(self._of_agent("remembers"))
        """Whether it remembers the games whose numbers it gets. Set this to False to let the player
        judge each position alone."""
        self.fingerprint: str | None = self._of_agent("fingerprint")
        if not isinstance(self.fingerprint, str | None):
            raise ValueError(
                f"the fingerprint of {name} is a {type(self.fingerprint).__name__}: expected a "
                "string"
            )

    def _of_agent(self, name: str) -> Any:
        """Return an attribute of the agent, or the default of :class:`Player`."""
        return getattr(self._agent, name, getattr(_DEFAULTS, name))

    @property
    def most_games(self) -> int | None:  # type: ignore[override]
        """See :attr:`Player.most_games`; None for a player that remembers no games."""
        return self._of_agent("most_games") if self.remembers else None

    def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the agent.

        Raises:
            RuntimeError: it raised SystemExit, which would end the command without a word.
        """
        try:
            return self._of_agent(method)(*arguments, **options)
        except SystemExit as error:
            raise RuntimeError(f"{method}() raised SystemExit: {error}") from error

    def get_ready(self) -> None:
        """See :meth:`Player.get_ready`."""
        self._call("get_ready")

    def reseed(self, seed: int) -> None:
        """See :meth:`Player.reseed`.

        Raises:
            ValueError: the agent has random choices, but no method ``reseed``.
        """
        if self.seeded and not hasattr(self._agent, "reseed"):
            raise ValueError(f"player {self.name} keeps its seed: load it again, with another seed")
        self._call("reseed", seed)

    def processor_seconds(self) -> float:
        """Return the processor seconds used so far by this process or the player's program."""
        return float(self._of_agent("processor_seconds")())

    def act(
        self,
        positions: PackedPositions,
        legal: Legal,
        *,
        limit: Limit | None = None,
        games: Int64Array | None = None,
        together: bool = False,
    ) -> Actions:
        """Choose an action in each position; see :meth:`Player.act`.

        ``games`` are integers from 0 to 2^63 - 1 (:func:`new_games`), and ignored unless
        :attr:`remembers` is True. ``together`` is ignored unless :attr:`searches_together` is True.
        A note on the agent's own error names the player.

        Raises:
            TypeError, ValueError: ``games`` is wrong, or there is a limit but the player takes
                none.
        """
        options: dict[str, Any] = {}
        if self.remembers and games is not None:
            options["games"] = games
        if self.searches_together and together:
            options["together"] = True
        if limit is not None:
            if self.limit is None:
                raise ValueError(
                    f"player {self.name} takes no limit: expected a search, for example "
                    "'alphabeta:6'"
                )
            options["limit"] = limit
        try:
            actions: Actions = self._call("act", positions, legal, **options)
        except Exception as error:
            error.add_note(f"player {self.name} failed")
            raise
        return actions

    def choose(self, board: Board, limit: Limit | None = None, *, game: int | None = None) -> int:
        """Return the action that the player chooses on ``board``.

        The threads of a search may share this position: under a time limit, and under a limit of
        nodes if the player was loaded with a number of threads. The choice may then vary from call
        to call.

        Args:
            board: a game that is not over.
            limit: see :meth:`act`.
            game: the number of the game, from 0 to 2^63 - 1, for a player that remembers games.

        Raises:
            ValueError: the game is over, the board has other rules than the player, the number is
                wrong, the player takes no limit, or its action is illegal.
        """
        self._check(board, "choose")
        positions, legal = board.batch()
        games = None if game is None else np.array([as_integer(game, "game", 0, MAX_GAME)])
        actions = self.act(positions, legal, limit=limit, games=games, together=True)
        return int(check_actions(actions, legal, self.name)[0])

    def analyse(self, board: Board, limit: Limit | None = None) -> list[Opinion] | None:
        """Return an opinion of each legal action, best first; see :meth:`Player.analyse`.

        Raises:
            ValueError: the game is over, or the board has other rules than the player.
        """
        self._check(board, "analyse")
        opinions: list[Opinion] | None = self._call("analyse", board, limit)
        return opinions

    def check_rules(self, ruleset: Ruleset) -> None:
        """Check that the player can play by the rules of a game; one without rules takes these.

        Raises:
            ValueError: it was made for other rules.
        """
        settle_rules(self._agent if self.ruleset is None else self, ruleset)

    def _check(self, board: Board, verb: str) -> None:
        if not board.legal_actions:
            raise ValueError(f"the game is over: there is no move to {verb}")
        self.check_rules(board.ruleset)

    def __repr__(self) -> str:
        return f"<player {self.name}>"


def as_player(player: Agent | ActFunction, name: str) -> NamedPlayer:
    """Return an agent or a function as a player; return players unchanged.

    Args:
        player: the agent, or a function that does what its ``act`` does.
        name: its name if it has none.

    Raises:
        ValueError: ``player`` is neither.
    """
    if isinstance(player, NamedPlayer):
        return player
    agent = as_agent(player)
    if agent is None:
        raise ValueError(
            f"{name} is {player!r:.200}: expected an object with act(positions, legal), or a "
            "function of positions and legal actions"
        )
    return NamedPlayer(getattr(agent, "name", "") or name, agent)
