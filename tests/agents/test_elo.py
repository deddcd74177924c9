"""Test Elo differences, likelihood of superiority, the sequential test, ratings of many players."""

from __future__ import annotations

import math
from itertools import permutations
from statistics import NormalDist

import numpy as np
import pytest

from bao_agents.arena.elo import (
    Placement,
    Sprt,
    design_effect,
    elo_difference,
    expected_score,
    likelihood_of_superiority,
    score_pairs,
    wilson_interval,
)
from bao_agents.arena.ratings import rate

# Agresti, Categorical Data Analysis (2nd edition, 2002), tables 10.10 and 10.11: games of 1987,
# the row's team winning, and the maximum likelihood estimates relative to Baltimore.
TEAMS = ("Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore")
WINS = (
    (0, 7, 9, 7, 7, 9, 11),
    (6, 0, 7, 5, 11, 9, 9),
    (4, 6, 0, 7, 7, 8, 12),
    (6, 8, 6, 0, 6, 7, 10),
    (6, 2, 6, 7, 0, 7, 12),
    (4, 4, 5, 6, 6, 0, 6),
    (2, 4, 1, 3, 1, 7, 0),
)
ABILITIES = (1.58, 1.44, 1.29, 1.25, 1.11, 0.68, 0.0)


def pairs_of(counts: tuple[int, ...]) -> np.ndarray:
    """Make pairs of games: ``counts`` says how many pairs have 0, 1/2, 1, 3/2 and 2 points."""
    kinds = np.array([[0, 0], [0.5, 0], [1, 0], [1, 0.5], [1, 1]])
    return np.repeat(kinds, counts, axis=0)


def test_elo_of_known_scores() -> None:
    """Textbook values of the logistic model: 76% is +200, 64% is +100, half is 0."""
    assert elo_difference(0.5) == 0.0 and elo_difference(1.0) == math.inf
    assert elo_difference(0.7597469) == pytest.approx(200, abs=1e-3)
    assert expected_score(-100.0) == pytest.approx(1 - 0.6400650, abs=1e-7)


def test_los_of_pairs() -> None:
    """The variance of these pairs is 0.05762, as Fishtest's page on these counts prints."""
    points = pairs_of(counts := (13, 37, 50, 25, 3))
    expected = NormalDist().cdf((0.4375 - 0.5) / math.sqrt(0.05762 / 127))
    assert likelihood_of_superiority(1.0 - points) == pytest.approx(1.0 - expected, rel=1e-3)
    score = score_pairs(points)
    assert score.los == pytest.approx(expected, rel=1e-3) and score.pair_counts == counts
    assert (score.wins, score.draws, score.losses) == (81, 62, 113)


@pytest.mark.parametrize(
    ("points", "los"),
    [
        ([[1, 1], [1, 1]], 1.0),
        ([[1, 0], [0, 1]], 0.5),
        ([[0, 0.5]], NormalDist().cdf(-1)),
        (6 * [[1, 0]] + [[1, 1]], NormalDist().cdf(1)),  # a shared pair adds no variance
    ],
)
def test_los_of_few_pairs(points: list[list[float]], los: float) -> None:
    assert likelihood_of_superiority(np.array(points, float)) == pytest.approx(los, abs=1e-12)


@pytest.mark.parametrize(
    ("points", "games"),
    [
        ([[1, 1], [1, 0.5]], 7),  # the variance of the mean is 1/64, and 7/64 that of a game
        ([[1, 0.5], [0.5, 0.5]], 8),  # 15 games by the variance, but at most twice those played
        ([[1, 0.5]], 2),
        ([[1, 0], [1, 0]], 4),  # without a variance, games count as independent
    ],
)
def test_pairs_count_as_games(points: list[list[float]], games: float) -> None:
    score = score_pairs(np.array(points, float))
    assert (score.low, score.high) == pytest.approx(wilson_interval(score.rate, games))


@pytest.mark.parametrize(
    ("points", "openings", "effect"),
    [
        ([[1, 1], [1, 0.5], [0, 0.5]], [0, 0, 1], 10 / 3),  # 1.5 and 0.5 off, of a variance of 1.5
        ([[1, 1], [0, 0]], [0, 1], 4.0),
        ([[1, 1], [0, 0]], [0, 0], 1.0),
        ([[1, 0], [0.5, 0.5], [0, 1]], [0, 1, 2], 0.5),
    ],
)
def test_games_of_an_opening_are_not_independent(
    points: list[list[float]], openings: list[int], effect: float
) -> None:
    """All players have the same rating."""
    ratings = np.zeros(len(points))
    estimated = design_effect(0.0, ratings, np.array(openings), np.array(points, float))
    assert estimated == pytest.approx(effect)


@pytest.mark.parametrize(
    ("placement", "margin", "words"),
    [
        (Placement(10.4, -0.4, 40.4), 30.0, "10 Elo (95% interval 0 to 40)"),
        (Placement(10.4, -39.6, 40.4), 50.0, "10 Elo (95% interval -40 to 40)"),
        (Placement(math.inf, 5.4, math.inf), math.inf, "above 5 Elo (95%)"),
        (Placement(-math.inf, -math.inf, -5.4), math.inf, "below -5 Elo (95%)"),
    ],
)
def test_a_rating_in_words(placement: Placement, margin: float, words: str) -> None:
    assert placement.margin == pytest.approx(margin)
    assert str(placement) == words


@pytest.mark.parametrize(
    ("bounds", "counts", "llr", "digits"),
    [
        # https://montytest.muzhen.org/tests/stats/69d3c8dc7c5b3724e29d2712, a Fishtest server:
        # "Logistic (exact)"; its upper bound is 4 normalized Elo, which it gives as 2.716.
        ((0.0, 2.716), (13, 37, 50, 25, 3), -0.53772, 1e-4),
        # app/tests/sprt_test.cpp of https://github.com/Disservin/fastchess.
        ((0.5, 2.5), (223, 9863, 20279 + 1000, 10037, 246), -3.07, 5e-3),
        ((0.0, 2.0), (871, 26175, 55003 + 980, 26678, 821), -4.98, 5e-3),
    ],
)
def test_published_llr(
    bounds: tuple[float, float], counts: tuple[int, ...], llr: float, digits: float
) -> None:
    assert Sprt(*bounds).llr(counts) == pytest.approx(llr, abs=digits)


def test_llr_of_other_counts() -> None:
    counts = (4, 10, 31, 17, 6)
    llr = Sprt(-3.0, 12.0).llr(counts)
    assert Sprt(-12.0, 3.0).llr(counts[::-1]) == pytest.approx(-llr, rel=1e-9)
    assert Sprt(0.0, 5.0).llr((0, 0, 0, 0, 0)) == 0.0
    # All pairs won: each takes the largest chance that the mean allows, about the mean itself.
    odds = math.log(expected_score(50.0) / expected_score(0.0))
    assert Sprt(0.0, 50.0).llr((0, 0, 0, 0, 400)) == pytest.approx(400 * odds, rel=1e-3)


def test_bounds_of_the_sequential_test() -> None:
    sprt = Sprt(0.0, 10.0, alpha=0.1, beta=0.2)
    assert (sprt.lower, sprt.upper) == pytest.approx((math.log(2 / 9), math.log(8)))


def test_ratings_of_a_textbook() -> None:
    """Each game counts twice, because 13 games make no pairs; the estimates stay the same."""
    results = {
        (TEAMS[i], TEAMS[j]): pairs_of((WINS[j][i], 0, 0, 0, WINS[i][j]))
        for i in range(7)
        for j in range(i)
    }
    ratings = rate(results, anchor="Baltimore")
    assert ratings.names == TEAMS
    assert ratings.elo * math.log(10) / 400 == pytest.approx(ABILITIES, abs=5e-3)
    assert ratings.elo[-1] == ratings.low[-1] == ratings.high[-1] == 0.0
    assert rate(results).elo.mean() == pytest.approx(0.0, abs=1e-9)


def test_ratings_of_two_players_are_an_elo_difference() -> None:
    """Ratings change neither with the order of the two names nor if a match is split."""
    points = pairs_of((9, 12, 30, 31, 18))
    ratings = rate({("b", "a"): 1.0 - points[25:], ("a", "b"): points[:25]}, anchor="b")
    elo, low, high = score_pairs(points).elo
    assert ratings.names == ("a", "b") and ratings.elo[0] == pytest.approx(elo, abs=1e-6)
    # The standard error of the score, carried to Elo by the slope of the logistic model.
    means = points.mean(axis=1)
    slope = 400.0 / math.log(10.0) / (means.mean() * (1.0 - means.mean()))
    half = 1.959964 * slope * means.std(ddof=1) / math.sqrt(len(means))
    assert (ratings.low[0], ratings.high[0]) == pytest.approx((elo - half, elo + half), abs=1e-3)
    assert (elo - half, elo + half) == pytest.approx((low, high), abs=0.5)  # from score_pairs


@pytest.mark.parametrize(
    ("counts", "error"),
    [
        ((0, 0, 1, 0, 0), math.sqrt(2)),  # two independent games of variance 1/4
        ((1, 0, 0, 0, 1), 2.0),  # two pairs vary four times as much as independent games
        ((0, 0, 2, 0, 0), math.sqrt(0.5)),  # ... at least half as much
    ],
)
def test_ratings_of_one_or_two_pairs(counts: tuple[int, ...], error: float) -> None:
    ratings = rate({("a", "b"): pairs_of(counts)}, anchor="b")
    half = 1.959964 * error * 400.0 / math.log(10.0)
    assert ratings.elo.tolist() == [0.0, 0.0]
    assert ratings.high.max() == pytest.approx(half) == -ratings.low.min()


def test_names_do_not_decide_who_has_a_rating() -> None:
    """In each group a single player gets 0: the one who met the most others, or else the
    strongest."""
    sweep = pairs_of((0, 0, 0, 0, 6))
    for a, b, c in permutations("abc"):
        for results, expected in (
            ({(a, b): sweep}, {a: 0.0, b: -math.inf}),
            ({(a, b): sweep, (b, c): sweep}, {a: math.inf, b: 0.0, c: -math.inf}),
            ({(a, c): sweep, (b, c): sweep}, {a: math.inf, b: math.inf, c: 0.0}),
            ({(a, b): sweep, (b, c): sweep, (a, c): sweep}, {a: 0.0, b: -math.inf, c: -math.inf}),
        ):
            ratings = rate(results)
            assert dict(zip(ratings.names, ratings.elo, strict=True)) == expected


def test_a_clean_sweep_is_as_in_a_match() -> None:
    """A clean sweep has a bound on one side, and does not change the ratings of the others."""
    sweep, close = pairs_of((0, 0, 0, 0, 15)), pairs_of((3, 0, 9, 0, 6))
    low = score_pairs(sweep).elo[1]
    ladder = rate({("a", "b"): sweep, ("b", "c"): sweep, ("a", "c"): sweep}, anchor="b")
    assert ladder.elo.tolist() == [math.inf, 0.0, -math.inf]
    assert ladder.high[0] == math.inf == -ladder.low[2]
    assert ladder.low[0] == pytest.approx(-ladder.high[2]) == pytest.approx(low)
    chain = rate({("a", "b"): sweep, ("b", "c"): sweep, ("c", "d"): sweep})
    assert chain.names == ("a", "b", "c", "d")  # b is the strongest of those who met two players
    assert chain.elo[:3].tolist() == [math.inf, 0.0, -math.inf]
    unknown = chain.elo[3], chain.low[3], chain.high[3]  # d has never met b
    assert unknown == pytest.approx((math.nan, -math.inf, math.inf), nan_ok=True)
    for of_a, of_c in ((sweep[:1], sweep), (sweep, sweep[:2])):
        results = {("a", "b"): of_a, ("a", "c"): sweep[:1], ("c", "b"): of_c}
        assert rate(results, anchor="b").names == ("a", "c", "b")  # a has won all games, c most
    lone = rate({("a", "b"): sweep})  # no other has a finite rating, so its 0 says nothing
    assert 0.0 in lone.elo.tolist() and np.isnan(lone.low[lone.elo == 0.0]).all()
    ratings = rate({("a", "b"): sweep, ("c", "b"): 1.0 - close, ("a", "c"): sweep})
    assert ratings.names == ("a", "b", "c") and ratings.elo[0] == math.inf
    np.testing.assert_array_equal(ratings.elo[1:], rate({("b", "c"): close}).elo)
    assert ratings.low[0] > low and np.isfinite(ratings.low[1:]).all()
