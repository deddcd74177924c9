"""From results to win rate and Elo difference, each with its 95 % interval.

Games come in pairs: one opening, played from both seats. The two games of a pair are not
independent, so the variance is taken over pairs (the pentanomial model of chess engine
testing), and Wilson's interval is widened or narrowed to it. Unlike the plain normal
interval it does not collapse to nothing when every game was won.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

_Z95: Final = 1.959963984540054


@dataclass(frozen=True)
class Score:
    """Result of a match, from the first player's side."""

    pairs: int
    wins: int
    draws: int
    losses: int
    pair_counts: tuple[int, int, int, int, int]
    """Pairs that brought 0, 1/2, 1, 3/2 and 2 points."""
    rate: float
    """Points a game, 0..1; a draw counts a half."""
    low: float
    """Lower end of the 95 % interval of ``rate``."""
    high: float
    """Upper end of it."""

    @property
    def games(self) -> int:
        """Games played: two a pair."""
        return 2 * self.pairs

    @property
    def elo(self) -> tuple[float, float, float]:
        """Elo difference and its 95 % interval (estimate, low, high); may be infinite."""
        return elo_difference(self.rate), elo_difference(self.low), elo_difference(self.high)


def elo_difference(rate: float) -> float:
    """The rating difference at which the logistic Elo model expects ``rate`` points a game."""
    if rate <= 0.0:
        return -math.inf
    if rate >= 1.0:
        return math.inf
    return 400.0 * math.log10(rate / (1.0 - rate))


def score_pairs(points: npt.NDArray[np.float64]) -> Score:
    """The score of a match.

    Args:
        points: float64[pairs, 2], what the first player got from each game (1, 1/2 or 0).

    Raises:
        ValueError: there is no pair.
    """
    if points.ndim != 2 or points.shape[1] != 2 or not len(points):
        raise ValueError(f"expected points of one or more pairs of games, not {points.shape}")
    pairs = len(points)
    rate = float(points.mean())
    # The pairs' variance relative to that of independent games is the design effect; with too
    # few pairs to tell it, or no variance to compare with, games count as independent.
    effective = 2.0 * pairs
    if pairs > 1 and 0.0 < rate < 1.0:
        of_mean = float(points.mean(axis=1).var(ddof=1)) / pairs
        if of_mean > 0.0:
            effective = min(rate * (1.0 - rate) / of_mean, 4.0 * pairs)
    low, high = wilson_interval(rate, effective)
    counts = np.bincount(np.rint(points.sum(axis=1) * 2).astype(int), minlength=5)
    return Score(
        pairs=pairs,
        wins=int((points == 1.0).sum()),
        draws=int((points == 0.5).sum()),
        losses=int((points == 0.0).sum()),
        pair_counts=tuple(int(n) for n in counts),  # type: ignore[arg-type]
        rate=rate,
        low=low,
        high=high,
    )


def wilson_interval(rate: float, games: float) -> tuple[float, float]:
    """Wilson's 95 % interval of a proportion seen over ``games`` independent games (1927)."""
    square = _Z95 * _Z95 / games
    middle = (rate + square / 2.0) / (1.0 + square)
    half = _Z95 / (1.0 + square) * math.sqrt(rate * (1.0 - rate) / games + square / (4.0 * games))
    return max(0.0, middle - half), min(1.0, middle + half)
