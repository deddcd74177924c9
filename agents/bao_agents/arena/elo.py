"""Compute the score and Elo difference of a match, with 95% intervals, and a sequential test.

Games come in pairs: one opening, played from both seats. The two games of a pair are not
independent. So the variance is taken over pairs (the pentanomial model of chess engine testing),
and Wilson's interval is widened or narrowed to match it. Unlike the plain normal interval,
Wilson's interval does not collapse if every game was won. :class:`Sprt` decides during a match
whether enough pairs have been played.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from bao_agents.support.array_types import Float64Array, Int64Array

Z95 = 1.959963984540054
"""Half the width of a 95% normal interval, in standard errors."""
ELO_PER_LOGIT = 400.0 / math.log(10.0)
"""Elo points per unit of the natural logarithm of the odds."""
REACH = 4000.0
"""Maximum distance of a rating from the opponents' ratings, in Elo. Far beyond it an expected score
is exactly 0 or 1."""
LEAST_EFFECT = 0.5
"""Lower limit of the design effect: a few pairs may by chance show no variance at all."""
_PAIR_SCORES = (0.0, 0.25, 0.5, 0.75, 1.0)
_NEVER_SEEN = 1e-3

FloatOrArray = TypeVar("FloatOrArray", float, Float64Array)
FEW_PAIRS = 5
"""Fewest pairs after which the 95% interval covers the truth in about 95% of all matches."""


@dataclass(frozen=True)
class Score:
    """The result of a match for the player named first."""

    pairs: int
    wins: int
    draws: int
    losses: int
    pair_counts: tuple[int, int, int, int, int]
    """Numbers of pairs with 0, 1/2, 1, 3/2 and 2 points."""
    rate: float
    """Points per game, 0..1; a draw counts as a half."""
    low: float
    """Lower end of the 95% interval of ``rate``."""
    high: float
    """Upper end of the 95% interval of ``rate``."""
    los: float
    """Likelihood of superiority, 0..1 (:func:`likelihood_of_superiority`)."""

    @property
    def games(self) -> int:
        """Games played: two per pair."""
        return 2 * self.pairs

    @property
    def elo(self) -> tuple[float, float, float]:
        """Elo difference and its 95% interval (estimate, low, high); may be infinite."""
        return elo_difference(self.rate), elo_difference(self.low), elo_difference(self.high)


def elo_difference(rate: float) -> float:
    """Return the rating difference at which the logistic model expects ``rate`` points per game."""
    if rate <= 0.0:
        return -math.inf
    if rate >= 1.0:
        return math.inf
    return 400.0 * math.log10(rate / (1.0 - rate))


def expected_score(elo: FloatOrArray) -> FloatOrArray:
    """Return the points per game, 0..1, that the logistic model expects at an Elo difference."""
    return logistic(elo / ELO_PER_LOGIT)


def logistic(x: FloatOrArray) -> FloatOrArray:
    """Return 1 / (1 + exp(-x)), without overflow."""
    return np.exp(-np.logaddexp(0.0, -x))


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of a decreasing function, positive at ``low`` and negative at ``high``."""
    for _ in range(64):  # bisection; 1e4 / 2**64 is 5e-16
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return (low + high) / 2


def score_pairs(points: Float64Array) -> Score:
    """Return the score of a match.

    Args:
        points: float64[pairs, 2], the points of the player named first in each game (1, 1/2 or 0).

    Raises:
        ValueError: there is no pair.
    """
    los = likelihood_of_superiority(points)
    pairs = len(points)
    rate = float(points.mean())
    # The design effect is the variance over pairs, divided by the variance of independent games.
    # With too few pairs to estimate it, or no variance, games count as independent.
    effective_games = 2.0 * pairs
    if pairs > 1 and 0.0 < rate < 1.0:
        variance_of_mean = float(points.mean(axis=1).var(ddof=1)) / pairs
        if variance_of_mean > 0.0:
            effective_games = min(
                rate * (1.0 - rate) / variance_of_mean, 2.0 * pairs / LEAST_EFFECT
            )
    low, high = wilson_interval(rate, effective_games)
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
        los=los,
    )


@dataclass(frozen=True)
class Placement:
    """A rating on a ladder's scale."""

    elo: float
    """The rating in Elo; infinite if all games were won or all were lost."""
    low: float
    """Lower end of the 95% interval; may be infinite."""
    high: float
    """Upper end of the 95% interval; may be infinite."""

    @property
    def margin(self) -> float:
        """Distance from ``elo`` to the farther end of the interval; infinite after a sweep."""
        if math.isinf(self.elo):
            return math.inf
        return max(self.high - self.elo, self.elo - self.low)

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"above {self.low:z.0f} Elo (95%)"
        if math.isinf(self.low):
            return f"below {self.high:z.0f} Elo (95%)"
        return f"{self.elo:z.0f} Elo (95% interval {self.low:z.0f} to {self.high:z.0f})"


def rate_against(
    ratings: Float64Array,
    openings: Int64Array,
    points: Float64Array,
) -> Placement:
    """Return the most likely rating of a player, given the ratings of its opponents.

    The model is the same as in :func:`bao_agents.arena.ratings.rate`. A player who won or lost
    every game has no rating, only a bound. The interval is Wilson's, as in :func:`score_pairs`,
    extended to opponents of different strengths: it contains the ratings at which the player's
    points lie within 1.96 standard errors of the expected points. The games of an opening are not
    independent, so the error is taken over openings. The opponents' ratings are taken as exact.

    Args:
        ratings: float64[pairs], the opponent's rating in each pair of games.
        openings: int64[pairs], the number of the opening.
        points: float64[pairs, 2], the player's points in each game (1, 1/2 or 0).

    Raises:
        ValueError: there is no pair.
    """
    if not len(points):
        raise ValueError(
            "a player without games has no rating: expected at least one pair of games"
        )
    low, high = float(ratings.min()) - REACH, float(ratings.max()) + REACH
    total = float(points.sum())

    def surplus(elo: float) -> float:
        return total - 2.0 * float(expected_score(elo - ratings).sum())

    if total == 0.0:
        elo = -math.inf
    elif total == points.size:
        elo = math.inf
    else:
        elo = root(surplus, low, high)
    effect = design_effect(elo, ratings, openings, points)

    def deviation(elo: float) -> float:
        return surplus(elo) / math.sqrt(effect * information(elo, ratings).sum())

    middle = min(max(elo, low), high)
    return Placement(
        elo=elo,
        low=root(lambda x: deviation(x) - Z95, low, middle) if total else -math.inf,
        high=root(lambda x: deviation(x) + Z95, middle, high) if total < points.size else math.inf,
    )


def information(elo: float, ratings: Float64Array) -> Float64Array:
    """Return the variance of the points of two independent games against each of ``ratings``."""
    expected = expected_score(elo - ratings)
    return 2.0 * expected * (1.0 - expected)


def design_effect(
    elo: float,
    ratings: Float64Array,
    openings: Int64Array,
    points: Float64Array,
) -> float:
    """Return the design effect: the variance of the points relative to independent games.

    The variance is taken over openings. The result is at least :data:`LEAST_EFFECT`, and 1 if
    there are too few openings to estimate it.
    """
    independent = float(information(elo, ratings).sum())
    _, groups = np.unique(openings, return_inverse=True)
    surplus = points.sum(axis=1) - 2.0 * expected_score(elo - ratings)
    residuals = np.bincount(groups, weights=surplus)
    count = len(residuals)
    if count < 2 or independent == 0.0:
        return 1.0
    return max(LEAST_EFFECT, float((residuals**2).sum()) * count / (count - 1) / independent)


def wilson_interval(rate: float, games: float) -> tuple[float, float]:
    """Return Wilson's 95% interval (1927) of a proportion over ``games`` independent games."""
    square = Z95 * Z95 / games
    middle = (rate + square / 2.0) / (1.0 + square)
    half = Z95 / (1.0 + square) * math.sqrt(rate * (1.0 - rate) / games + square / (4.0 * games))
    # After a clean sweep, one bound is exactly 0 or 1: rounding must not make its Elo finite.
    low = max(0.0, middle - half) if rate > 0.0 else 0.0
    return low, min(1.0, middle + half) if rate < 1.0 else 1.0


def likelihood_of_superiority(points: Float64Array) -> float:
    """Return the probability that the player named first is stronger.

    This is the normal approximation:

    Phi((mean - 1/2) / its standard error), with the error over pairs as in Fishtest
    (``get_elo`` in https://github.com/official-stockfish/fishtest,
    server/fishtest/stats/stat_util.py). If all pairs scored the same, the result is 0, 1/2 or 1. A
    single pair has no variance, so its games count as independent:
    Phi((wins - losses) / sqrt(wins + losses)) (https://www.chessprogramming.org/Match_Statistics).

    Args:
        points: float64[pairs, 2], the points of the player named first in each game (1, 1/2 or 0).

    Raises:
        ValueError: there is no pair.
    """
    if points.ndim != 2 or points.shape[1] != 2 or not len(points):
        raise ValueError(
            f"points: expected one or more pairs of games, shape [n, 2], not {list(points.shape)}"
        )
    means = points.mean(axis=1)
    lead = float(means.mean()) - 0.5
    error = (
        math.sqrt(means.var(ddof=1) / len(means))
        if len(means) > 1
        else math.sqrt(((points - 0.5) ** 2).sum()) / points.size
    )
    if error == 0.0:
        return 0.5 + math.copysign(0.5, lead) if lead else 0.5
    return 0.5 * math.erfc(-lead / error / math.sqrt(2.0))


@dataclass(frozen=True)
class Sprt:
    """Test two Elo differences sequentially, over pairs of games.

    This is the generalised sequential probability ratio test of Fishtest: Wald's test with the
    unknown chances of a pair's five results replaced by their maximum likelihood estimates under
    each hypothesis. Sources: X. Li, J. Liu and Z. Ying, "Generalized sequential probability ratio
    test for separate families of hypotheses", Sequential Analysis 33 (2014); M. Van den Bergh,
    https://www.cantate.be/Fishtest/support_MLE_multinomial.pdf (proposition 1.1) and
    https://www.cantate.be/Fishtest/GSPRT_approximation.pdf;
    https://github.com/official-stockfish/fishtest/wiki/Fishtest-Mathematics.

    Elo is logistic here; Fishtest now uses normalized Elo. Its correction for overshooting the
    bounds is left out, so more pairs between two checks make errors rarer and the match longer.

    Raises:
        ValueError: ``elo0`` is not below ``elo1``, one of them is beyond :data:`REACH`, or
            ``alpha`` or ``beta`` is not within (0, 0.5).
    """

    elo0: float
    """Elo difference under H0."""
    elo1: float
    """Elo difference under H1."""
    alpha: float = 0.05
    """Chance to accept H1 when H0 is true."""
    beta: float = 0.05
    """Chance to accept H0 when H1 is true."""

    def __post_init__(self) -> None:
        if not -REACH <= self.elo0 < self.elo1 <= REACH:
            raise ValueError(
                f"SPRT of {self.elo0:g} against {self.elo1:g} Elo: expected two different numbers "
                f"from {-REACH:g} to {REACH:g}, the lower one first"
            )
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            if not 0.0 < value < 0.5:
                raise ValueError(f"{name}={value}: expected a number above 0 and below 0.5")

    @property
    def lower(self) -> float:
        """Log-likelihood ratio at or below which H0 is accepted (Wald 1945)."""
        return math.log(self.beta / (1.0 - self.alpha))

    @property
    def upper(self) -> float:
        """Log-likelihood ratio at or above which H1 is accepted (Wald 1945)."""
        return math.log((1.0 - self.beta) / self.alpha)

    def llr(self, pair_counts: Sequence[int]) -> float:
        """Return the log-likelihood ratio of H1 against H0; 0 without a pair.

        A result that never occurred counts as 1/1000 of a pair, as in Fishtest. Without that, a
        hypothesis could have an expected score that is impossible.

        Args:
            pair_counts: numbers of pairs with 0, 1/2, 1, 3/2 and 2 points, as in
                :attr:`Score.pair_counts`.

        Raises:
            ValueError: there are not five counts, or one is negative.
        """
        if len(pair_counts) != 5 or min(pair_counts) < 0:
            raise ValueError(f"pair_counts={pair_counts}: expected five counts, none negative")
        if not any(pair_counts):
            return 0.0
        counts = [float(n) or _NEVER_SEEN for n in pair_counts]
        under0, under1 = (_tilt(counts, expected_score(elo)) for elo in (self.elo0, self.elo1))
        return math.fsum(
            n * math.log(a / b) for n, a, b in zip(counts, under0, under1, strict=True)
        )

    def verdict(self, pair_counts: Sequence[int]) -> Literal["H0", "H1"] | None:
        """Return the hypothesis to accept after these pairs, or None to continue.

        Args:
            pair_counts: as for :meth:`llr`.
        """
        ratio = self.llr(pair_counts)
        if ratio <= self.lower:
            return "H0"
        return "H1" if ratio >= self.upper else None


def _tilt(counts: Sequence[float], score: float) -> list[float]:
    """Return the divisor of each frequency in the likeliest distribution with mean ``score``.

    With frequencies f and pair scores a, the maximum of sum(f log p) subject to sum(p) = 1 and
    sum(p a) = score is p = f / (1 + x (a - score)); the multiplier x is the root of
    sum(f (a - score) / (1 + x (a - score))), which falls in x.

    Args:
        counts: five positive numbers, in proportion to f.
        score: within (0, 1).

    Returns:
        1 + x (a - score) for each pair score a.
    """
    total = math.fsum(counts)
    terms = [(n / total, a - score) for n, a in zip(counts, _PAIR_SCORES, strict=True)]
    # No p exceeds 1, so no divisor is below its f. This brackets x, away from the poles.
    low = (terms[-1][0] - 1.0) / terms[-1][1]
    high = (terms[0][0] - 1.0) / terms[0][1]
    x = root(lambda x: sum(f * d / (1.0 + x * d) for f, d in terms), low, high)
    return [1.0 + x * d for _, d in terms]
