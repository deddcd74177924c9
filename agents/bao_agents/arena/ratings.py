"""Rate several players from the matches among them, by the Bradley-Terry model.

The fit uses Newton's method on the matrix of points. choix 0.4.1, the maintained library for this
model, takes a list of decided games. So it has no draws, and it would read that list in Python at
every step of each fit of the bootstrap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bao_agents.arena.elo import ELO_PER_LOGIT, Placement, logistic, place, score_pairs
from bao_agents.support.array_types import Float64Array, Int64Array
from bao_env.engine.position import Flags

PRIOR = 1.0
"""Virtual games of each player, all drawn, against a player of average strength."""

_TOLERANCE = 1e-5
_STEPS = 200


@dataclass(frozen=True)
class Ratings:
    """The players, strongest first."""

    names: tuple[str, ...]
    elo: Float64Array
    """float64[P], relative to the anchor, or to the mean; infinite after a clean sweep."""
    low: Float64Array
    """float64[P], lower end of the 95 % interval of ``elo``; 0 for the anchor."""
    high: Float64Array
    """float64[P], upper end of it."""
    anchor: str | None
    """The player with Elo 0; None if the mean of the finite ratings is 0."""
    score: Float64Array
    """float64[P], points per game over all games, 0..1; depends on the opponents met."""
    games: Int64Array
    """int64[P], games played."""


def rate(
    results: Mapping[tuple[str, str], Float64Array],
    *,
    anchor: str | None = None,
    samples: int = 1000,
    seed: int = 0,
    prior: float = PRIOR,
) -> Ratings:
    """Return Elo ratings by maximum likelihood, from a full or partial round robin.

    This is the model of Bradley and Terry ("Rank analysis of incomplete block designs", Biometrika
    39, 1952) on Elo's scale; a draw counts as half a win for each. In this model a player who won
    or lost everything has no finite rating (Ford, American Mathematical Monthly 64, 1957). The
    same holds for a group of players that won or lost everything against the others. So ratings are
    fitted among the players who can be compared with the anchor, or among the largest such group.
    The others are infinitely better or worse, with the bound that
    :func:`bao_agents.arena.elo.place` gives.

    The intervals are percentiles of a bootstrap, which draws the pairs of games within each pairing
    and fits the ratings of each sample. ``prior`` drawn games against a player at the mean of all
    ratings keep those of a sample finite. The form is that of Newman, "Efficient computation of
    rankings from pairwise comparisons", JMLR 24 (2023), whose one win and one loss would be
    ``prior=2``. The default moves a 75 % score over 200 games by less than 1 Elo.

    Args:
        results: float64[pairs, 2] for each pairing, the points of its first name in each game
            (1, 1/2 or 0). Both orders of two names may occur.
        anchor: the player whose Elo is 0; None makes the mean of the finite ratings 0.
        samples: number of bootstrap samples.
        seed: seed of the bootstrap. The order of ``results`` does not matter.
        prior: virtual games of each player; more than 0.

    Raises:
        ValueError: there are no results, points are impossible, or a player meets itself; the
            anchor is unknown; ``samples`` or ``prior`` is out of range; or two groups of players
            never met. The message says which.
    """
    if samples < 1 or not prior > 0.0:
        raise ValueError(f"samples={samples}, prior={prior}: expected at least 1, and more than 0")
    pairings = _merge(results)
    names = sorted({name for pairing in pairings for name in pairing})
    if anchor is not None and anchor not in names:
        raise ValueError(f"anchor={anchor!r} is not among the players: {', '.join(names)}")
    index = {name: i for i, name in enumerate(names)}
    games = np.zeros((len(names), len(names)), np.int64)
    points = np.zeros((1 + samples, len(names), len(names)))
    rng = np.random.default_rng(seed)
    for (a, b), of_a in pairings.items():
        i, j = index[a], index[b]
        games[i, j] = games[j, i] = of_a.size
        # Five kinds of pairs: drawing pairs with replacement is drawing their multinomial counts.
        counts = np.array(score_pairs(of_a).pair_counts)
        drawn = rng.multinomial(len(of_a), counts / len(of_a), samples)
        points[0, i, j] = of_a.sum()
        points[1:, i, j] = drawn @ np.arange(5) / 2
        points[:, j, i] = of_a.size - points[:, i, j]
    met = _closure(games > 0)  # whoever met someone who met ... is comparable
    groups = np.unique(met, axis=0)[::-1]
    if len(groups) > 1:
        listed = "; ".join(", ".join(np.array(names)[group]) for group in groups)
        raise ValueError(f"players who never met cannot be compared: {listed}")
    better = _closure(points[0] > 0)
    alike = better & better.T
    compared = alike[index[anchor]] if anchor is not None else alike[alike.sum(axis=1).argmax()]
    fitted = np.flatnonzero(compared)
    some = fitted[:, None], fitted
    samples_elo = np.zeros(points.shape[:2])
    samples_elo[:, fitted] = ELO_PER_LOGIT * _fit(points[:, *some], games[some], prior)
    if anchor is not None:
        samples_elo -= samples_elo[:, index[anchor], None]
    elo = samples_elo[0]
    low, high = np.percentile(samples_elo[1:], (2.5, 97.5), axis=0)
    known = {names[i]: float(elo[i]) for i in fitted}
    for i in np.flatnonzero(~compared).tolist():
        bound = _bound(names[i], pairings, known)
        elo[i], low[i], high[i] = bound.elo, bound.low, bound.high
    played = games.sum(axis=1)
    score = points[0].sum(axis=1) / played
    order = np.lexsort((-score, -elo))
    return Ratings(
        names=tuple(names[i] for i in order),
        elo=elo[order],
        low=low[order],
        high=high[order],
        anchor=anchor,
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


def _fit(points: Float64Array, games: Int64Array, prior: float) -> Float64Array:
    """Fit the maximum likelihood ratings of many samples at once.

    Newton's method with the step length log(1 + d) / d, where d is the largest change of a rating
    difference: the likelihood rises at every step, and near the maximum the steps are full
    (Sun and Tran-Dinh, "Generalized self-concordant functions", Mathematical Programming 178,
    2019; F. Bach, "Self-concordant analysis for logistic regression", 2010).

    Args:
        points: float64[S, P, P], points of the row's player against the column's.
        games: int64[P, P], numbers of games; every player is connected to all others.
        prior: virtual drawn games of each player against one at the mean rating.

    Returns:
        float64[S, P], natural logarithms of the strengths, mean 0 in each sample.
    """
    players = len(games)
    diagonal = np.arange(players)
    ratings = np.zeros(points.shape[:2])
    active = np.arange(len(points))
    for _ in range(_STEPS):
        theta = ratings[active]
        wins = logistic(theta[:, :, None] - theta[:, None, :])
        losses = wins.transpose(0, 2, 1)
        virtual = logistic(theta)
        lost = points[active].transpose(0, 2, 1)
        gradient = (points[active] * losses - lost * wins).sum(axis=2) + prior * (0.5 - virtual)
        # Ratings keep mean 0: a shift of all of them is projected out.
        gradient -= gradient.mean(axis=1, keepdims=True)
        curvature = -games * wins * losses
        curvature[:, diagonal, diagonal] = prior * virtual * (1 - virtual) - curvature.sum(axis=2)
        curvature -= curvature.mean(axis=1, keepdims=True)
        curvature -= curvature.mean(axis=2, keepdims=True)
        change = np.linalg.solve(curvature + 1.0 / players, gradient[:, :, None])[:, :, 0]
        spread = np.maximum(np.ptp(change, axis=1), np.finfo(np.float64).tiny)
        ratings[active] += change * (np.log1p(spread) / spread)[:, None]
        active = active[spread > _TOLERANCE]
        if not len(active):
            return ratings
    raise RuntimeError(f"{len(active)} of {len(points)} fits did not converge; prior={prior}")
