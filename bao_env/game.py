"""Call the kernel from plain Python: stages, legal actions, playing, and the end of a game.

The functions take packed positions (uint64[6]) and a :class:`Ruleset`. The rules are in
:mod:`bao_env.engine.kernel`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from bao_env.compiled.compile import jit_brief
from bao_env.engine import kernel
from bao_env.engine.action import actions_of
from bao_env.engine.position import MOVER_FRONT, OTHER_FRONT, PackedPositions, Position, turn_of
from bao_env.engine.ruleset import Ruleset, rules_of

SEAT_NAMES = ("South", "North")


class Stage(Enum):
    """The two stages of a game (Donkers 1.8), for the player to move."""

    NAMUA = "namua"
    """The store of the player to move still holds seeds."""
    MTAJI = "mtaji"
    """The store of the player to move is empty."""


class Termination(Enum):
    """How a game ended."""

    FRONT_ROW_EMPTY = "front row empty"
    """The loser's front row was emptied (Donkers 1.2)."""
    NO_LEGAL_MOVE = "no legal move"
    """The loser is to move and has no move (Donkers 1.2), or only infinite moves (Donkers 1.5a)."""
    ILLEGAL_ACTION = "illegal action"
    """The loser, who was to move, chose an illegal action, or failed to choose in a match."""
    LOST_ON_TIME = "lost on time"
    """The loser, who was to move, used up their clock in a match."""
    CUT_SHORT = "cut short"
    """Nobody has won: the game reached the limit of an environment or a match."""


@dataclass(frozen=True)
class Outcome:
    """The result of a game: who has won, and how it ended."""

    winner: int | None
    """SOUTH or NORTH; None if the game was cut short, since the rules have no draw."""
    reason: Termination
    """How the game ended."""

    def __str__(self) -> str:
        """Return a string such as ``South wins: front row empty`` or ``cut short``."""
        if self.winner is None:
            return self.reason.value
        return f"{SEAT_NAMES[self.winner]} wins: {self.reason.value}"


CUT_SHORT = Outcome(None, Termination.CUT_SHORT)
"""The end of a game that was cut short."""


def stage_of(position: Position) -> Stage:
    """Return the stage of the player to move."""
    return Stage.NAMUA if position.store[position.mover] else Stage.MTAJI


def legal_actions(packed: PackedPositions, ruleset: Ruleset) -> list[int]:
    """Return the legal actions in ``packed``, uint64[6], in ascending order.

    An empty front row does not make this list empty: use :func:`legal_and_outcome` to find out
    whether the game is over.
    """
    return actions_of(kernel.legal_of(ruleset.kernel, packed))


@jit_brief
def _advance(
    kernel_array: npt.NDArray[np.uint64], packed: PackedPositions, action: int
) -> tuple[np.uint64, np.int64, bool]:
    """Play an action under the rules in a :attr:`Ruleset.kernel_array`.

    Python passes an array to compiled code faster than a named tuple.
    """
    return kernel.advance(rules_of(kernel_array), packed, np.uint64(action))


def make_move(packed: PackedPositions, ruleset: Ruleset, action: int) -> tuple[int, Outcome | None]:
    """Play a legal action on ``packed``, uint64[6], in place.

    The action is not validated: play only :func:`legal_actions`.

    Returns the next legal actions as bits, and the outcome if the game has ended, else None.
    """
    legal, winner, stuck = _advance(ruleset.kernel_array, packed, action)
    if winner < 0:
        return int(legal), None
    end = Termination.NO_LEGAL_MOVE if stuck else Termination.FRONT_ROW_EMPTY
    return 0, Outcome(int(winner), end)


def legal_and_outcome(packed: PackedPositions, ruleset: Ruleset) -> tuple[int, Outcome | None]:
    """Return the legal actions of a position, uint64[6], as bits, and the outcome if it is over."""
    for word, loser in ((MOVER_FRONT, turn_of(packed)), (OTHER_FRONT, 1 - turn_of(packed))):
        if not packed[word]:
            return 0, Outcome(1 - loser, Termination.FRONT_ROW_EMPTY)
    legal = int(kernel.legal_of(ruleset.kernel, packed))
    over = None if legal else Outcome(1 - turn_of(packed), Termination.NO_LEGAL_MOVE)
    return legal, over
