"""Measure how often players give won games away.

All players choose moves in the same positions, which are proven wins for the player to move.
Mistakes are counted as two shares: among all moves from won positions, and among the moves from
positions in which some legal action gives the win away.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from bao_agents.arena.elo import wilson_interval
from bao_agents.exact.solved_positions import SolvedPositions
from bao_env.engine.position import Flags
from bao_env.game import Stage

DISTANCES = {
    "1": (1, 1),
    "2 to 3": (2, 3),
    "4 to 7": (4, 7),
    "8 to 15": (8, 15),
    "16 and more": (16, 999),
}
"""The fewest and the most plies to the win, for each class of positions."""


class Share(NamedTuple):
    """A share of independent trials."""

    rate: float
    low: float
    """Lower end of the 95% Wilson interval of the rate."""
    high: float
    """Upper end of that interval."""

    @classmethod
    def of(cls, count: int, trials: int) -> Self | None:
        """Return the share of ``count`` in ``trials``; None if there are no trials."""
        if not trials:
            return None
        return cls(count / trials, *wilson_interval(count / trials, trials))


@dataclass(frozen=True)
class Blunders:
    """Counts of the wins that a player gave away."""

    moves: int
    """Moves from won positions."""
    choices: int
    """Moves from positions in which some legal action gives the win away."""
    mistakes: int
    """Moves that gave the win away."""

    @classmethod
    def count(
        cls,
        won: SolvedPositions,
        mistakes: Flags,
        where: Flags | slice = slice(None),
    ) -> Self:
        """Count the mistakes in some of the positions.

        Args:
            won: N won positions.
            mistakes: bool[N], the result of :meth:`SolvedPositions.mistakes`.
            where: bool[N], the positions that count; all by default.
        """
        return cls(len(mistakes[where]), int(won.choices[where].sum()), int(mistakes[where].sum()))

    @property
    def of_moves(self) -> Share | None:
        """Mistakes among all moves from won positions."""
        return Share.of(self.mistakes, self.moves)

    @property
    def of_choices(self) -> Share | None:
        """Mistakes among the moves from positions in which a mistake was possible."""
        return Share.of(self.mistakes, self.choices)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a share without trials is None."""
        return asdict(self) | {
            "of_moves": self.of_moves and self.of_moves._asdict(),
            "of_choices": self.of_choices and self.of_choices._asdict(),
        }


def classify(won: SolvedPositions, mistakes: Flags) -> dict[str, dict[str, Blunders]]:
    """Count how often a player gives wins away: in total, by source, stage and plies to the win.

    Args:
        won: N won positions.
        mistakes: bool[N], the result of :meth:`SolvedPositions.mistakes`.
    """
    groups = {
        "all": {"all": np.ones(len(won), np.bool_)},
        "source": {name: won.source == name for name in np.unique(won.source).tolist()},
        "stage": {stage.value: won.stages == stage.value for stage in Stage},
        "plies": {
            name: (won.plies >= low) & (won.plies <= high)
            for name, (low, high) in DISTANCES.items()
        },
    }
    return {
        by: {name: Blunders.count(won, mistakes, where) for name, where in classes.items()}
        for by, classes in groups.items()
    }
