"""One game in plain Python on top of the kernel: stages, legal actions, playing, and the end.

The functions take packed positions (uint64[6]) and a :class:`Ruleset`. They decide nothing
themselves; the rules are in :mod:`bao_env.engine.kernel`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np

from bao_env.engine import kernel
from bao_env.engine.action import actions_of
from bao_env.engine.bits import ONE
from bao_env.engine.position import WORDS, Position, Words, pack, turn_of
from bao_env.engine.ruleset import Ruleset

SEAT_NAMES: Final = ("South", "North")


class Stage(Enum):
    """The two stages of a game (Donkers 1.8), seen from the player who is to move."""

    NAMUA = "namua"
    """Their store still holds seeds."""
    MTAJI = "mtaji"
    """Their store is empty."""


class Termination(Enum):
    """How a game ended."""

    FRONT_ROW_EMPTY = "front row empty"
    """The loser's front row was emptied (Donkers 1.2)."""
    NO_LEGAL_MOVE = "no legal move"
    """The loser, who is to move, has none (Donkers 1.2), or none that ends (Donkers 1.5a)."""
    TRUNCATED = "truncated"
    """Cut short from outside, as environments do; the rules know no draw."""


@dataclass(frozen=True)
class Outcome:
    """The end of a game."""

    winner: int | None
    """SOUTH or NORTH; None if nobody has won."""
    termination: Termination
    """How it came about."""

    def __str__(self) -> str:
        """``South wins: front row empty``, and the like."""
        who = "nobody" if self.winner is None else SEAT_NAMES[self.winner]
        return f"{who} wins: {self.termination.value}"


def stage_of(position: Position) -> Stage:
    """The stage of the player to move."""
    return Stage.NAMUA if position.store[position.mover] else Stage.MTAJI


def packed(position: Position) -> Words:
    """A position as fresh words, uint64[6], in the engine's form."""
    words = np.empty(WORDS, np.uint64)
    pack(position, words)
    return words


def legal_actions(words: Words, ruleset: Ruleset) -> list[int]:
    """The legal actions in ``words``, uint64[6], in ascending order.

    A finished game may still have moves here: only :func:`play` knows that a front row was
    emptied.
    """
    return actions_of(kernel.legal_mask(ruleset.kernel_rules(), words))


def play(words: Words, ruleset: Ruleset, action: int) -> Outcome | None:
    """Play a legal action on ``words``, uint64[6], in place; the outcome if it ends the game.

    The action is not checked: play only actions of :func:`legal_actions`.
    """
    mover = turn_of(words)
    result = int(kernel.play(ruleset.kernel_rules(), words, np.uint64(action)))
    if result:
        winner = mover if result == int(ONE) else 1 - mover
        return Outcome(winner, Termination.FRONT_ROW_EMPTY)
    return stuck(words, ruleset)


def stuck(words: Words, ruleset: Ruleset) -> Outcome | None:
    """The outcome if the mover of ``words``, uint64[6], has no legal move, else None."""
    if int(kernel.legal_mask(ruleset.kernel_rules(), words)):
        return None
    return Outcome(1 - turn_of(words), Termination.NO_LEGAL_MOVE)
