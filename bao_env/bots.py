"""Define what an opponent is, and two bots that do not search."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
import numpy.typing as npt

from bao_env.compiled.compile import jit
from bao_env.engine.argument_checks import as_actions, as_batch
from bao_env.engine.bits import ONE, ZERO, U, trailing_zeros
from bao_env.engine.kernel import WON, begin_action, captured_by, play_out
from bao_env.engine.masks import check_legal
from bao_env.engine.position import Actions, Legal, PackedPositions, Rows, load_rows_at
from bao_env.engine.ruleset import RULESETS, KernelRules, Ruleset, get_ruleset, rules_of
from bao_env.engine.sampling import random_actions, random_states
from bao_env.player_packages import load_from_packages

if TYPE_CHECKING:
    from bao_env.board import Board

_WIN = U(1000)


class Agent(Protocol):
    """Anything that chooses actions for a batch of positions.

    An agent whose attribute ``seeded`` is False does not depend on a seed, so environments do not
    load it again at a reset.
    """

    def act(self, positions: PackedPositions, legal: Legal) -> Actions:
        """Choose one legal action for each position.

        Args:
            positions: uint64[B, 6], packed positions.
            legal: uint64[B], the legal actions, bit a = action a. Where it is 0 the game is over
                and any action is accepted.

        Returns:
            the actions, int64[B].
        """
        ...


def check_actions(answer: object, legal: Legal, player: str) -> Actions:
    """Return a player's answer as int64[B] if every action in it is legal.

    Args:
        answer: what :meth:`Agent.act` returned.
        legal: uint64[B], the legal actions; where they are 0, any action is accepted.
        player: the player, for the message.

    Raises:
        ValueError: the answer is not one legal action for each position.
    """
    try:
        actions = as_actions(answer, len(legal), player)
    except TypeError as error:
        raise ValueError(str(error)) from error
    check_legal(actions, legal, player)
    return actions


def opponent_actions(opponent: Agent, positions: PackedPositions, legal: Legal) -> Actions:
    """Return an opponent's actions, int64[B].

    The opponent gets copies of ``positions`` and ``legal``.

    Raises:
        RuntimeError: its answer is not one legal action for each position.
    """
    answer = opponent.act(positions.copy(), legal.copy())
    try:
        return check_actions(answer, legal, "the opponent")
    except ValueError as error:
        raise RuntimeError(str(error)) from error


ActFunction = Callable[[PackedPositions, Legal], Actions]
"""A function that does what :meth:`Agent.act` does."""
Opponent = str | Agent | ActFunction
"""What an environment takes as ``opponent``; see :func:`get_agent`."""


class Bot:
    """The base class of this package's bots: it keeps their rules and chooses moves on a board."""

    ruleset: Ruleset | None = None
    """The rules that the bot was given, or else the rules of its first game; None until then."""

    def take_rules(self, ruleset: Ruleset) -> None:
        """Play by these rules from now on."""
        self.ruleset = ruleset

    def act(self, positions: PackedPositions, legal: Legal) -> Actions:
        """Choose actions; see :meth:`Agent.act`."""
        raise NotImplementedError

    def choose(self, board: Board) -> int:
        """Return the action that the bot chooses on ``board``.

        Raises:
            ValueError: the game is over, or the board has other rules than the bot.
        """
        if not board.legal_actions:
            raise ValueError("the game is over: there is no move to choose")
        settle_rules(self, board.ruleset)
        return int(self.act(*board.batch())[0])


class RandomAgent(Bot):
    """Play uniformly random legal actions.

    Args:
        seed: seeds the generators; the same seed and the same calls give the same actions.
    """

    def __init__(self, seed: int | np.random.SeedSequence = 0) -> None:
        if not isinstance(seed, np.random.SeedSequence):
            seed = np.random.SeedSequence(seed)
        self._seed = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 0))
        self._states = np.zeros(0, np.uint64)

    def take_rules(self, ruleset: Ruleset) -> None:
        """Do nothing: random play fits any rules."""

    def act(self, positions: PackedPositions, legal: Legal) -> Actions:
        """Choose actions; see :meth:`Agent.act`."""
        positions, legal = as_batch(positions, legal)
        count = len(self._states)
        if count < len(legal):
            states = random_states(len(legal), self._seed)[count:]
            self._states = np.concatenate([self._states, states])
        actions = np.empty(len(legal), np.int64)
        random_actions(legal, self._states[: len(legal)], actions)
        return actions


@jit
def _captured(rules: KernelRules, rows: Rows, action: np.uint64) -> np.uint64:
    """Return how many seeds a legal action captures, or a larger number if its capture wins."""
    capture_turn, hand = begin_action(rules, rows, action)
    if not capture_turn:
        return ZERO
    hand = play_out(rules, hand)
    return _WIN if hand.tally & WON else captured_by(rows, capture_turn, hand)


@jit
def _greedy_actions(
    kernel_array: npt.NDArray[np.uint64], positions: PackedPositions, legal: Legal, actions: Actions
) -> None:
    """Write the actions of :class:`GreedyAgent`.

    Args:
        kernel_array: the rules; see :attr:`Ruleset.kernel_array`.
        positions: uint64[B, 6].
        legal: uint64[B], the legal actions.
        actions: int64[B], filled; 0 where ``legal`` is 0.
    """
    rules = rules_of(kernel_array)
    for g in range(positions.shape[0]):
        rows = load_rows_at(positions, g)
        untried = legal[g]
        best = ZERO
        actions[g] = 0
        if untried != ZERO:
            actions[g] = trailing_zeros(untried)
        while untried != ZERO:
            action = trailing_zeros(untried)
            untried &= untried - ONE
            captured = _captured(rules, rows, action)
            if captured > best:
                best = captured
                actions[g] = action


class GreedyAgent(Bot):
    """Play the action that captures the most seeds; among equals, the lowest-numbered action.

    A capture that empties the opponent's front row, and so wins, comes before all others.

    Args:
        ruleset: a :class:`Ruleset` or its name; None means the rules of its first game.
    """

    seeded = False
    """Greedy play does not depend on a seed; see :class:`bao_env.Agent`."""

    def __init__(self, ruleset: str | Ruleset | None = None) -> None:
        self.ruleset: Ruleset | None = None if ruleset is None else get_ruleset(ruleset)

    def act(self, positions: PackedPositions, legal: Legal) -> Actions:
        """Choose actions; see :meth:`Agent.act`."""
        positions, legal = as_batch(positions, legal)
        actions = np.empty(len(legal), np.int64)
        rules = self.ruleset or RULESETS["zanzibar"]
        _greedy_actions(rules.kernel_array, positions, legal, actions)
        return actions


def settle_rules(agent: object, ruleset: Ruleset) -> None:
    """Give an agent the rules of a game if it has none yet; raise if it plays by others.

    Args:
        agent: any agent; one without an attribute ``ruleset`` plays by any rules.
        ruleset: the rules of the game.

    Raises:
        ValueError: the agent plays by other rules.
    """
    own = getattr(agent, "ruleset", None)
    if own is None and isinstance(agent, Bot):
        agent.take_rules(ruleset)
    elif isinstance(own, Ruleset) and own.kernel != ruleset.kernel:
        name = getattr(agent, "name", type(agent).__name__)
        raise ValueError(
            f"{name} plays by the rules of {own.contrast(ruleset)}: make a bot for each rule set"
        )


def as_agent(player: object) -> Agent | None:
    """Return an agent, or the agent that plays as a function; None for anything else.

    Args:
        player: an object with :meth:`Agent.act`, or a function that does the same.
    """
    if isinstance(player, type):
        return None
    if callable(getattr(player, "act", None)):
        return cast(Agent, player)
    return SimpleNamespace(act=player) if callable(player) else None


def get_agent(
    opponent: Opponent,
    ruleset: str | Ruleset | None = "zanzibar",
    seed: int = 0,
    threads: int = 1,
) -> Agent:
    """Return the agent that plays as ``opponent``.

    Args:
        opponent: the name of a player: ``"random"``, ``"greedy"``, or one such as ``"alphabeta:2"``
            (:func:`bao_agents.load`); an agent; or a function that does what :meth:`Agent.act`
            does.
        ruleset: the rules to be played; None if they are not known yet.
        seed: seeds a named player's random choices.
        threads: number of threads that a search may use.

    Raises:
        ValueError: ``opponent`` is none of these, no player has that name, or the agent plays by
            other rules.
    """
    if opponent == "random":
        return RandomAgent(seed)
    if opponent == "greedy":
        return GreedyAgent(ruleset)
    if isinstance(opponent, str):
        return load_from_packages(opponent, get_ruleset(ruleset or "zanzibar"), seed, threads)
    if isinstance(opponent, type):
        raise ValueError(
            f"opponent={opponent!r} is a class: expected an object of it, such as "
            f"{opponent.__name__}()"
        )
    agent = as_agent(opponent)
    if agent is None:
        raise ValueError(
            f"opponent={opponent!r}: expected a name, an object with act(positions, legal), or a "
            "function of positions and legal actions"
        )
    if ruleset is not None:
        settle_rules(agent, get_ruleset(ruleset))
    return agent
