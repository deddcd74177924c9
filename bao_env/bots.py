"""The two bots every environment knows, and the protocol that any other opponent follows."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, Final, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from bao_env.engine.action import NUM_ACTIONS, actions_of
from bao_env.engine.arrays import as_batch
from bao_env.engine.batch import random_actions, random_states
from bao_env.engine.bits import ONE, ZERO, U, trailing_zeros
from bao_env.engine.compile import jit
from bao_env.engine.kernel import WON, begin_action, captured_by, play_out
from bao_env.engine.position import read_at
from bao_env.engine.ruleset import Ruleset, get_ruleset

_WIN: Final = U(1000)


class Agent(Protocol):
    """Anything that chooses actions for a batch of positions."""

    def act(
        self, positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """One legal action, int64[B], for each of ``positions`` uint64[B, 6].

        ``masks``, uint64[B], holds the legal actions. Where it is 0 the game is over, and any
        number will do.
        """
        ...


def as_actions(answer: object, size: int, who: str) -> npt.NDArray[Any]:
    """What a player answered to ``size`` positions, as integers [size].

    Args:
        answer: as :meth:`Agent.act` returned it.
        size: the number of positions.
        who: answered, for the message.

    Raises:
        ValueError: it is not one integer for each position.
    """
    actions = np.asarray(answer)
    if actions.shape != (size,) or actions.dtype.kind not in "iu":
        raise ValueError(
            f"{who} answered {actions.dtype}{list(actions.shape)} to {size} positions: expected "
            "one integer for each"
        )
    return actions


def check_actions(answer: object, masks: npt.NDArray[np.uint64], who: str) -> npt.NDArray[Any]:
    """:func:`as_actions`, if each is legal.

    Args:
        answer, who: see :func:`as_actions`.
        masks: uint64[B], the legal actions; where a mask is 0, any number will do.

    Raises:
        ValueError: it is not one legal action for each position.
    """
    actions = as_actions(answer, len(masks), who)
    inside = (actions >= 0) & (actions < NUM_ACTIONS)
    bits = masks >> np.where(inside, actions, 0).astype(np.uint64)
    wrong = np.flatnonzero((masks != 0) & ~(inside & (bits & np.uint64(1) != 0)))
    if len(wrong):
        raise ValueError(
            f"{who} chose action {actions[wrong[0]]}, which is illegal; legal: "
            f"{actions_of(masks[wrong[0]])}"
        )
    return actions


BotName = Literal["random", "greedy"]
"""The bots that environments know by name."""
Opponent = BotName | Agent
"""What an environment takes as ``opponent``."""


class RandomAgent:
    """Uniformly random legal actions.

    Args:
        seed: of its generators; the same seed and the same calls give the same actions.
    """

    def __init__(self, seed: int | np.random.SeedSequence = 0) -> None:
        self._seeds = (
            seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        )
        self._states = np.zeros(0, np.uint64)

    def act(
        self, positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """See :meth:`Agent.act`."""
        positions, masks = as_batch(positions, masks)
        missing = len(masks) - len(self._states)
        if missing > 0:
            more = random_states(missing, self._seeds.spawn(1)[0])
            self._states = np.concatenate([self._states, more])
        actions = np.empty(len(masks), np.int64)
        random_actions(masks, self._states[: len(masks)], actions)
        return actions


@jit
def _captured(rules, packed, action):
    """Seeds that a legal action captures; a number above all others if it wins by capture."""
    capture_turn, hand = begin_action(rules, packed, action)
    if not capture_turn:
        return ZERO
    hand = play_out(rules, hand)
    return _WIN if hand.tally & WON else captured_by(packed, capture_turn, hand)


@jit
def _greedy_actions(rules, positions, masks, actions):
    """Write the actions of :class:`GreedyAgent` into ``actions``, int64[B].

    ``positions`` is uint64[B, 6], ``masks`` uint64[B]; where a mask is 0, the action is 0.
    """
    for g in range(positions.shape[0]):
        packed = read_at(positions, g)
        rest = masks[g]
        best = ZERO
        actions[g] = 0
        if rest != ZERO:
            actions[g] = trailing_zeros(rest)
        while rest != ZERO:
            action = trailing_zeros(rest)
            rest &= rest - ONE
            captured = _captured(rules, packed, action)
            if captured > best:
                best = captured
                actions[g] = action


class GreedyAgent:
    """The action that captures most seeds; among equals, the one with the lowest number.

    A capture that empties the opponent's front row, and so wins, comes before all others.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
    """

    def __init__(self, ruleset: str | Ruleset = "zanzibar") -> None:
        self._rules = get_ruleset(ruleset).kernel_rules()

    def act(
        self, positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """See :meth:`Agent.act`."""
        positions, masks = as_batch(positions, masks)
        actions = np.empty(len(masks), np.int64)
        _greedy_actions(self._rules, positions, masks, actions)
        return actions


def get_agent(opponent: Opponent, ruleset: str | Ruleset = "zanzibar", seed: int = 0) -> Agent:
    """``"random"`` or ``"greedy"`` as an agent, or the agent given.

    Raises:
        ValueError: another name; the message says where the other players are.
    """
    if opponent == "random":
        return RandomAgent(seed)
    if opponent == "greedy":
        return GreedyAgent(ruleset)
    if isinstance(opponent, str):
        close = get_close_matches(opponent, get_args(BotName), n=1)
        meant = f" (did you mean {close[0]!r}?)" if close else ""
        raise ValueError(
            f"unknown opponent {opponent!r}{meant}: expected 'random', 'greedy' or an object with "
            "act(positions, masks); other players are in the package agents of a checkout: "
            f"opponent=agents.load('alphabeta:2', ruleset={get_ruleset(ruleset).name!r})"
        )
    return opponent
