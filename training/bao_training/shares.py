"""Shares with confidence intervals: how often a player gives won games away."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

from bao_agents.arena.elo import wilson_interval
from bao_agents.search.solver.solved_positions import SolvedPositions

from bao_env.engine.position import Flags


class Share(NamedTuple):
    """A share of independent trials."""

    rate: float
    low: float
    """Lower end of its 95 % interval, after Wilson."""
    high: float
    """Upper end of it."""

    @classmethod
    def of(cls, count: int, trials: int) -> Self | None:
        """Return the share of ``count`` in ``trials``; None without a trial."""
        if not trials:
            return None
        return cls(count / trials, *wilson_interval(count / trials, trials))


@dataclass(frozen=True)
class Blunders:
    """Counts of the wins that a player gave away."""

    moves: int
    """Moves from won positions."""
    choices: int
    """Those among them that could have given the win away: some legal action does."""
    mistakes: int
    """Those that did."""

    @classmethod
    def count(
        cls,
        won: SolvedPositions,
        mistakes: Flags,
        where: Flags | slice = slice(None),
    ) -> Self:
        """Count mistakes.

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
        """Mistakes among the moves that could have been one."""
        return Share.of(self.mistakes, self.choices)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a share without a trial is None."""
        return asdict(self) | {
            "of_moves": self.of_moves and self.of_moves._asdict(),
            "of_choices": self.of_choices and self.of_choices._asdict(),
        }
