"""Rate several players from the matches among them, by the Bradley-Terry model.

The fit uses Newton's method on the matrix of points. choix 0.4.1, the maintained library for this
model, takes a list of decided games. So it has neither draws nor pairs, and no intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bao_agents.arena.elo import (
    ELO_PER_LOGIT,
    LEAST_EFFECT,
    Z95,
    Placement,
    logistic,
    place,
)
from bao_agents.support.array_types import Float64Array, Int64Array
from bao_env.engine.position import Flags

_TOLERANCE = 1e-5
_STEPS = 200


@dataclass(frozen=True)
class Ratings:
    """The players, strongest first."""

    names: tuple[str, ...]
    elo: Float64Array
    """float64[P], relative to the anchor, or to the mean; infinite after a clean sweep."""
    low: Float64Array
    """float64[P], lower end of the 95 % interval of ``elo``: 0 for the anchor, NaN for a player who
    has a finite rating alone."""
    high: Float64Array
    """float64[P], upper end of it."""
    score: Float64Array
    """float64[P], points per game over all games, 0..1; depends on the opponents met."""
    games: Int64Array
    """int64[P], games played."""


def rate(results: Mapping[tuple[str, str], Float64Array], *, anchor: str | None = None) -> Ratings:
    """Return Elo ratings by maximum likelihood, from a full or partial round robin.

    This is the model of Bradley and Terry ("Rank analysis of incomplete block designs", Biometrika
    39, 1952) on Elo's scale; a draw counts as half a win for each. In this model a player who won
    or lost everything has no finite rating (Ford, American Mathematical Monthly 64, 1957). The
    same holds for a group of players that won or lost everything against the others. So ratings are
    fitted among the players who can be compared with the anchor, or among the largest such group.
    The others are infinitely better or worse, with the bound that
    :func:`bao_agents.arena.elo.place` gives.

    An interval ends 1.96 standard errors from the rating. The error is taken over pairs, as in
    :func:`bao_agents.arena.elo.score_pairs`. Percentiles of a bootstrap are too narrow: with 5
    pairs a pairing they cover 86 to 89 % instead of 95. After few games the likeliest ratings lie a
    little too far apart: by some 5 % with 5 pairs a pairing, 1 % with 25.

    Args:
        results: float64[pairs, 2] for each pairing, the points of its first name in each game
            (1, 1/2 or 0). Both orders of two names may occur.
        anchor: the player whose Elo is 0; None makes the mean of the finite ratings 0.

    Raises:
        ValueError: there are no results, points are impossible, or a player meets itself; the
            anchor is unknown; or two groups of players never met. The message says which.
    """
    pairings = _merge(results)
    names = sorted({name for pairing in pairings for name in pairing})
    if anchor is not None and anchor not in names:
        raise ValueError(f"anchor={anchor!r} is not among the players: {', '.join(names)}")
    index = {name: i for i, name in enumerate(names)}
    games = np.zeros((len(names), len(names)), np.int64)
    points = np.zeros((len(names), len(names)))
    for (a, b), of_a in pairings.items():
        i, j = index[a], index[b]
        games[i, j] = games[j, i] = of_a.size
        points[i, j] = of_a.sum()
        points[j, i] = of_a.size - points[i, j]
    met = _closure(games > 0)  # whoever met someone who met ... is comparable
    groups = np.unique(met, axis=0)[::-1]
    if len(groups) > 1:
        listed = "; ".join(", ".join(np.array(names)[group]) for group in groups)
        raise ValueError(f"players who never met cannot be compared: {listed}")
    better = _closure(points > 0)
    alike = better & better.T
    compared = alike[index[anchor]] if anchor is not None else alike[alike.sum(axis=1).argmax()]
    fitted = [names[i] for i in np.flatnonzero(compared)]
    of_fitted = {pair: of_a for pair, of_a in pairings.items() if {*pair} <= {*fitted}}
    among = np.ix_(compared, compared)
    placed = np.zeros((len(names), 3))  # the Elo, and the ends of its interval
    placed[compared] = _intervals(fitted, of_fitted, points[among], games[among], anchor)
    known = dict(zip(fitted, placed[compared, 0].tolist(), strict=True))
    for i in np.flatnonzero(~compared).tolist():
        bound = _bound(names[i], pairings, known)
        placed[i] = bound.elo, bound.low, bound.high
    played = games.sum(axis=1)
    score = points.sum(axis=1) / played
    order = np.lexsort((-score, -placed[:, 0]))
    elo, low, high = placed[order].T
    return Ratings(
        names=tuple(names[i] for i in order),
        elo=elo,
        low=low,
        high=high,
        score=score[order],
        games=played[order],
    )


def _closure(relation: Flags) -> Flags:
    """Return which players are related through a chain of others, or to themselves."""
    related = relation | np.eye(len(relation), dtype=bool)
    for _ in relation:
        related = related @ related
    return related


def _bound(
    name: str, pairings: Mapping[tuple[str, str], Float64Array], known: Mapping[str, float]
) -> Placement:
    """Place a player by its games against those of known rating, who won none or all of them."""
    ratings, points = [np.zeros(0)], [np.zeros((0, 2))]
    for (a, b), of_a in pairings.items():
        opponent = {a: b, b: a}.get(name, name)
        if opponent in known:
            ratings.append(np.full(len(of_a), known[opponent]))
            points.append(of_a if a == name else 1.0 - of_a)
    found = np.concatenate(ratings)
    if not len(found):
        return Placement(math.nan, -math.inf, math.inf)
    return place(found, np.arange(len(found)), np.concatenate(points))


def _merge(
    results: Mapping[tuple[str, str], Float64Array],
) -> dict[tuple[str, str], Float64Array]:
    """Merge the results of two players under one key, names and keys in order."""
    merged: dict[tuple[str, str], Float64Array] = {}
    for (a, b), points in sorted(results.items(), key=lambda result: result[0]):
        if a == b:
            raise ValueError(f"{a!r} against itself says nothing about its rating")
        if points.ndim != 2 or points.shape[1] != 2 or not len(points):
            raise ValueError(
                f"{a!r} against {b!r}: expected pairs of games, shape [n, 2], not "
                f"{list(points.shape)}"
            )
        if not np.isin(points, (0.0, 0.5, 1.0)).all():
            raise ValueError(f"{a!r} against {b!r}: a game scores 0, 1/2 or 1 point")
        key, of_first = ((a, b), points) if a < b else ((b, a), 1.0 - points)
        merged[key] = np.concatenate([merged[key], of_first]) if key in merged else of_first
    if not merged:
        raise ValueError("no results to rate players by: expected at least one pairing")
    return dict(sorted(merged.items()))


def _intervals(
    names: list[str],
    pairings: Mapping[tuple[str, str], Float64Array],
    points: Float64Array,
    games: Int64Array,
    anchor: str | None,
) -> Float64Array:
    """Return the Elo of comparable players and the ends of its 95 % intervals, float64[P, 3].

    Args:
        names: the players.
        pairings: the points in each pair of games.
        points, games: as for :func:`_fit`.
        anchor: see :func:`rate`.
    """
    count = len(names)
    ratings = _fit(points, games)
    # A rating is a contrast of the strengths. That of the anchor, or of one player alone, is 0.
    origin = np.full(count, 1.0 / count)
    if anchor is not None:
        origin = np.eye(count)[names.index(anchor)]
    contrasts = np.eye(count) - origin
    _, curvature = _slopes(ratings, points, games)
    influence = contrasts @ np.linalg.pinv(curvature)
    variances = (influence * contrasts).sum(axis=1)  # if games were independent
    effects = _design_effects(names, pairings, influence, ratings)
    elo = contrasts @ ratings
    half = Z95 * np.sqrt(effects * variances)
    if count == 1 and anchor is None:  # its Elo is 0 because there is no other
        half[:] = math.nan
    return np.stack([elo, elo - half, elo + half], axis=1) * ELO_PER_LOGIT


def _design_effects(
    names: list[str],
    pairings: Mapping[tuple[str, str], Float64Array],
    influence: Float64Array,
    ratings: Float64Array,
) -> Float64Array:
    """Return the variance of each contrast over pairs, relative to that of independent games.

    It is at least :data:`~bao_agents.arena.elo.LEAST_EFFECT`, and 1 if there are no more pairs than
    ratings.

    Args:
        names: the players.
        pairings: the points in each pair of games.
        influence: float64[C, P], how much a point of each player moves each contrast.
        ratings: float64[P], the fit.
    """
    pairs = sum(map(len, pairings.values()))
    degrees = pairs - len(names) + 1
    seen, independent = np.zeros((2, len(influence)))
    for (a, b), of_a in pairings.items():
        i, j = names.index(a), names.index(b)
        weight = (influence[:, i] - influence[:, j]) ** 2
        expected = float(logistic(ratings[i] - ratings[j]))
        seen += weight * ((of_a.sum(axis=1) - 2.0 * expected) ** 2).sum()
        independent += weight * len(of_a) * 2.0 * expected * (1.0 - expected)
    if degrees < 1:
        return np.ones(len(influence))
    known = independent > 0.0  # not of the anchor, which nothing moves
    effects = np.divide(seen, independent, out=np.ones(len(seen)), where=known) * pairs / degrees
    return np.asarray(np.maximum(LEAST_EFFECT, effects))


def _fit(points: Float64Array, games: Int64Array) -> Float64Array:
    """Fit maximum likelihood ratings, of mean 0.

    Newton's method with the step length log(1 + d) / d, where d is the largest change of a rating
    difference: the likelihood rises at every step, and near the maximum the steps are full
    (Sun and Tran-Dinh, "Generalized self-concordant functions", Mathematical Programming 178,
    2019; F. Bach, "Self-concordant analysis for logistic regression", 2010).

    Args:
        points: float64[P, P], points of the row's player against the column's.
        games: int64[P, P], numbers of games; the players are comparable.

    Returns:
        float64[P], natural logarithms of the strengths.
    """
    ratings = np.zeros(len(points))
    for _ in range(_STEPS):
        gradient, curvature = _slopes(ratings, points, games)
        change = np.linalg.pinv(curvature) @ gradient
        spread = max(float(np.ptp(change)), np.finfo(np.float64).tiny)
        ratings = ratings + change * math.log1p(spread) / spread
        if spread <= _TOLERANCE:
            return ratings
    raise RuntimeError(f"the fit did not converge: {points.tolist()}")


def _slopes(
    ratings: Float64Array, points: Float64Array, games: Int64Array
) -> tuple[Float64Array, Float64Array]:
    """Return the log-likelihood's gradient, and its curvature with the sign changed."""
    wins = logistic(ratings[:, None] - ratings)
    gradient = (points * wins.T - points.T * wins).sum(axis=1)
    curvature = -games * wins * wins.T
    np.fill_diagonal(curvature, -curvature.sum(axis=1))
    return gradient, curvature
