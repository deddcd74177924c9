"""Rate several players from the matches among them, by the Bradley-Terry model.

The fit uses Newton's method on the matrix of points. The maintained library for this model, choix
0.4.1, takes a list of decided games: it supports neither draws nor pairs, and gives no intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bao_agents.arena.elo import ELO_PER_LOGIT, LEAST_EFFECT, Z95, logistic, rate_against
from bao_agents.support.array_types import Float64Array, Int64Array
from bao_env.engine.position import Flags

_TOLERANCE = 1e-5
_STEPS = 200


@dataclass(frozen=True)
class Ratings:
    """The ratings of players, strongest first."""

    names: tuple[str, ...]
    elo: Float64Array
    """float64[P], relative to the anchor, or to the mean; infinite after a clean sweep."""
    low: Float64Array
    """float64[P], lower end of the 95% interval of ``elo``. It is 0 for the anchor. Without an
    anchor, it is NaN for a player who alone has a finite rating."""
    high: Float64Array
    """float64[P], upper end of this interval."""


def rate(results: Mapping[tuple[str, str], Float64Array], *, anchor: str | None = None) -> Ratings:
    """Return Elo ratings by maximum likelihood, from a full or partial round robin.

    This is the model of Bradley and Terry ("Rank analysis of incomplete block designs", Biometrika
    39, 1952) on Elo's scale; a draw counts as half a win for each. In this model a player who won
    or lost every game has no finite rating (Ford, American Mathematical Monthly 64, 1957). The same
    holds for a group of players that won or lost every game against the others. So ratings are
    fitted in one group of players who can be compared with each other: the anchor's group or,
    without an anchor, the largest group. If several groups are equally large, the group that met
    most others is taken, then the strongest. All other players are infinitely better or worse, with
    the bound that :func:`bao_agents.arena.elo.rate_against` gives.

    An interval extends 1.96 standard errors to each side of the rating. The error is taken over
    pairs, as in :func:`bao_agents.arena.elo.score_pairs`. A percentile bootstrap would be too
    narrow: with 5 pairs a pairing it covers 86 to 89% instead of 95%. After few games the likeliest
    ratings lie a little too far apart: by about 5% with 5 pairs a pairing, and 1% with 25.

    Args:
        results: float64[pairs, 2] for each pairing, the points of the player named first in each
            game (1, 1/2 or 0). A pairing may occur in both orders.
        anchor: the player whose Elo is 0; None makes the mean of the finite ratings 0.

    Raises:
        ValueError: there are no results, points are impossible, a player meets itself, the anchor
            is unknown, or no chain of games links two groups of players; the message says which.
    """
    names = sorted({name for pairing in results for name in pairing})
    if not names:
        raise ValueError(
            "players without games have no ratings: expected the games of at least one pairing"
        )
    if anchor is not None and anchor not in names:
        raise ValueError(f"anchor={anchor!r} is not among the players: {', '.join(names)}")
    for (a, b), points_of_a in results.items():
        _check(a, b, points_of_a)
    pairs = _flatten(results, names)
    table = pairs.table(len(names))
    _check_connected(table, names)
    score = table.sum(axis=1) / (table + table.T).sum(axis=1)
    zero = None if anchor is None else names.index(anchor)
    is_compared = _comparable(table, score, zero)
    elos_with_ends = np.zeros((len(names), 3))  # the Elo, and the ends of its interval
    elos_with_ends[is_compared] = _intervals(
        pairs.among(is_compared),
        int(is_compared.sum()),
        None if zero is None else int(is_compared[:zero].sum()),
    )
    for i in np.flatnonzero(~is_compared).tolist():
        elos_with_ends[i] = _bound(i, pairs, is_compared, elos_with_ends[:, 0])
    order = np.lexsort((-score, -elos_with_ends[:, 0]))
    return Ratings(tuple(names[i] for i in order), *elos_with_ends[order].T)


def _check(a: str, b: str, points_of_a: Float64Array) -> None:
    """Check the results of two players; raise ValueError if they are wrong."""
    if a == b:
        raise ValueError(f"{a!r} against itself: expected two different players")
    if points_of_a.ndim != 2 or points_of_a.shape[1] != 2 or not len(points_of_a):
        raise ValueError(
            f"{a!r} against {b!r}: expected pairs of games, shape [n, 2], not "
            f"{list(points_of_a.shape)}"
        )
    if not np.isin(points_of_a, (0.0, 0.5, 1.0)).all():
        raise ValueError(f"{a!r} against {b!r}: expected 0, 1/2 or 1 point for each game")


class _FlatResults(NamedTuple):
    """N pairs of games among P players, who are numbers from 0 to P - 1."""

    first: Int64Array
    """int64[N], one player of each pair."""
    second: Int64Array
    """int64[N], the other player."""
    points: Float64Array
    """float64[N, 2], the points of ``first`` in the two games of each pair."""

    def table(self, players: int) -> Float64Array:
        """Return float64[P, P], the points of the row's player against the column's."""
        table = np.zeros((players, players))
        np.add.at(table, (self.first, self.second), self.points.sum(axis=1))
        np.add.at(table, (self.second, self.first), (1.0 - self.points).sum(axis=1))
        return table

    def among(self, players: Flags) -> _FlatResults:
        """Return the pairs among some of the players, bool[P], who are numbered anew in order."""
        is_among = players[self.first] & players[self.second]
        new_numbers = np.cumsum(players) - 1
        first, second = new_numbers[self.first[is_among]], new_numbers[self.second[is_among]]
        return _FlatResults(first, second, self.points[is_among])


def _flatten(results: Mapping[tuple[str, str], Float64Array], names: Sequence[str]) -> _FlatResults:
    """Return the results of all pairings as one; a player's number is its index in ``names``."""
    sizes = [len(points) for points in results.values()]
    first = [names.index(name) for name, _ in results]
    second = [names.index(name) for _, name in results]
    return _FlatResults(
        np.repeat(first, sizes), np.repeat(second, sizes), np.concatenate([*results.values()])
    )


def _check_connected(table: Float64Array, names: Sequence[str]) -> None:
    """Check that a chain of games links any two players; raise ValueError if none does."""
    groups = np.unique(_closure(table + table.T > 0), axis=0)[::-1]
    if len(groups) > 1:
        listed = "; ".join(", ".join(np.array(names)[group]) for group in groups)
        raise ValueError(
            f"no chain of games links these groups of players, so they cannot be compared: {listed}"
        )


def _comparable(table: Float64Array, score: Float64Array, anchor: int | None) -> Flags:
    """Return the players who get finite ratings, bool[P]: a group as :func:`rate` describes it.

    Args:
        table: float64[P, P], points of the row's player against the column's.
        score: float64[P], the points per game of each player.
        anchor: the player whose group it is; None to choose the group.
    """
    is_better = _closure(table > 0)
    is_same_group = is_better & is_better.T
    if anchor is None:
        sizes = is_same_group.sum(axis=1)
        met_by_group = (is_same_group @ (table + table.T > 0)).sum(axis=1)
        mean_scores = (is_same_group @ score) / sizes
        anchor = int(np.lexsort((mean_scores, is_better.sum(axis=1), met_by_group, sizes))[-1])
    return np.asarray(is_same_group[anchor])


def _bound(
    player: int, pairs: _FlatResults, is_compared: Flags, elos: Float64Array
) -> tuple[float, float, float]:
    """Return an infinite Elo and its interval, for a player outside the group that is compared.

    Against the players of the group, this player has won all games or lost all.

    Args:
        player: the player.
        pairs: all pairs of games.
        is_compared: bool[P], the players of the group.
        elos: float64[P], their Elo.
    """
    is_first, is_second = pairs.first == player, pairs.second == player
    opponents = np.where(is_first, pairs.second, pairs.first)
    own_pairs = (is_first | is_second) & is_compared[opponents]
    if not own_pairs.any():
        return math.nan, -math.inf, math.inf
    points = np.where(is_first[:, None], pairs.points, 1.0 - pairs.points)[own_pairs]
    bound = rate_against(elos[opponents[own_pairs]], np.arange(len(points)), points)
    return bound.elo, bound.low, bound.high


def _closure(relation: Flags) -> Flags:
    """Return the reflexive transitive closure of a relation between players."""
    related = relation | np.eye(len(relation), dtype=bool)
    for _ in relation:
        related = related @ related
    return related


def _intervals(pairs: _FlatResults, count: int, anchor: int | None) -> Float64Array:
    """Return the Elo of comparable players, with the ends of its 95% interval, float64[P, 3].

    Args:
        pairs: the pairs of games among them.
        count: the number of players, P.
        anchor: the player whose Elo is 0; None makes the mean 0.
    """
    first, second, points = pairs.first, pairs.second, pairs.points.sum(axis=1)
    ratings, inverse = _fit(pairs.table(count))
    # A rating is a contrast of the strengths. The anchor's contrast is 0, and a lone player's, too.
    origin = np.full(count, 1.0 / count) if anchor is None else np.eye(count)[anchor]
    contrasts = np.eye(count) - origin
    influence = contrasts @ inverse  # how much a point of each player moves each rating
    weights = (influence[:, first] - influence[:, second]) ** 2
    expected = logistic(ratings[first] - ratings[second])
    variances = weights @ (2.0 * expected * (1.0 - expected))  # if games were independent
    degrees_of_freedom = len(points) - count + 1
    if degrees_of_freedom > 0:  # else there are too few pairs to tell
        observed_variances = (
            weights @ (points - 2.0 * expected) ** 2 * len(points) / degrees_of_freedom
        )
        variances = np.maximum(LEAST_EFFECT * variances, observed_variances)
    logits, half_widths = contrasts @ ratings, Z95 * np.sqrt(variances)
    if count == 1 and anchor is None:  # its Elo is 0 because there is no other
        half_widths[:] = math.nan
    return np.stack([logits, logits - half_widths, logits + half_widths], axis=1) * ELO_PER_LOGIT


def _fit(table: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Fit maximum likelihood ratings, of mean 0.

    The fit is Newton's method with the step length log(1 + d) / d, where d is the largest change of
    a rating difference. So the likelihood rises at every step, and near the maximum the steps are
    full (Sun and Tran-Dinh, "Generalized self-concordant functions", Mathematical Programming 178,
    2019; F. Bach, "Self-concordant analysis for logistic regression", 2010).

    Args:
        table: float64[P, P], points of the row's player against the column's; the players are
            comparable.

    Returns:
        float64[P], natural logarithms of the strengths; float64[P, P], the inverse of the
        log-likelihood's curvature, with the sign changed.
    """
    ratings = np.zeros(len(table))
    for _ in range(_STEPS):
        wins = logistic(ratings[:, None] - ratings)
        gradient = (table * wins.T - table.T * wins).sum(axis=1)
        curvature = -(table + table.T) * wins * wins.T
        np.fill_diagonal(curvature, -curvature.sum(axis=1))
        inverse = np.asarray(np.linalg.pinv(curvature), np.float64)
        change = inverse @ gradient
        spread = max(float(np.ptp(change)), np.finfo(np.float64).tiny)
        ratings = ratings + change * math.log1p(spread) / spread
        if spread <= _TOLERANCE:
            return ratings, inverse
    raise RuntimeError(f"the fit did not converge: {table.tolist()}")
