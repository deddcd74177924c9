"""Likelihood of superiority, the sequential test and the ratings of several players."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.linalg import null_space
from scipy.optimize import minimize
from scipy.stats import norm

from agents.arena.elo import (
    Sprt,
    elo_difference,
    expected_score,
    likelihood_of_superiority,
    score_pairs,
)
from agents.arena.ratings import Ratings, cycles, rate

Points = npt.NDArray[np.float64]

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


def pairs_of(counts: tuple[int, ...]) -> Points:
    """Pairs of games with these numbers of 0, 1/2, 1, 3/2 and 2 points, float64[pairs, 2]."""
    kinds = np.array([[0, 0], [0.5, 0], [1, 0], [1, 0.5], [1, 1]])
    return np.repeat(kinds, counts, axis=0)


def play(rng: np.random.Generator, elo: float, pairs: int, bias: float = 0.0) -> Points:
    """Pairs of decided games of a known score; ``bias`` sets the two games of a pair apart."""
    tilt = rng.normal(0.0, bias, (pairs, 1)) * [1, -1]
    return (rng.random((pairs, 2)) < np.clip(expected_score(elo) + tilt, 0, 1)).astype(float)


def test_elo_of_known_scores() -> None:
    """The logistic model's textbook values: 76 % is +200, 64 % is +100, half is 0."""
    assert elo_difference(0.5) == 0.0
    assert elo_difference(0.0) == -math.inf and elo_difference(1.0) == math.inf
    assert elo_difference(0.7597469) == pytest.approx(200, abs=1e-3)
    assert elo_difference(0.6400650) == pytest.approx(100, abs=1e-3)
    assert elo_difference(0.75) == pytest.approx(190.848, abs=1e-3)  # 400 log10(3)
    assert expected_score(200.0) == pytest.approx(0.7597469, abs=1e-7)
    for elo in (-700.0, 0.0, 35.0):
        assert elo_difference(expected_score(elo)) == pytest.approx(elo, abs=1e-9)


def test_los_of_independent_games() -> None:
    """+5975 =26894 -6077 has 0.1764: K. Laskos, "Calculating the LOS", talkchess.com t=51003."""
    games = np.repeat([1.0, 0.5, 0.0], [5975, 26894, 6077])
    textbook = norm.cdf((5975 - 6077) / math.sqrt(5975 + 6077))
    assert textbook == pytest.approx(0.1764, abs=5e-5)
    rng = np.random.default_rng(0)
    los = [likelihood_of_superiority(rng.permutation(games).reshape(-1, 2)) for _ in range(20)]
    assert np.mean(los) == pytest.approx(textbook, abs=1e-3)
    assert np.std(los) < 5e-3


def test_los_goes_by_pairs() -> None:
    """The variance of pairs counts: 0.05762 here, as Fishtest's page on these counts prints."""
    points = pairs_of((13, 37, 50, 25, 3))
    expected = norm.cdf((0.4375 - 0.5) / math.sqrt(0.05762 / 127))
    assert likelihood_of_superiority(points) == pytest.approx(expected, rel=1e-3)
    assert score_pairs(points).los == likelihood_of_superiority(points)
    # Six pairs of one all and one of two wins: the wins of a pair that shares them are no noise.
    assert score_pairs(pairs_of((0, 0, 6, 0, 1))).los == pytest.approx(norm.cdf(1.0))
    assert likelihood_of_superiority(1.0 - points) == pytest.approx(1.0 - expected, rel=1e-3)


@pytest.mark.parametrize(
    ("points", "los"),
    [
        ([[1, 0], [0, 1]], 0.5),
        ([[1, 1], [1, 1]], 1.0),
        ([[0, 0.5], [0.5, 0]], 0.0),
        ([[0.5, 0.5]], 0.5),
        ([[1, 0]], 0.5),
        ([[1, 1]], norm.cdf(math.sqrt(2))),
        ([[0, 0.5]], norm.cdf(-1)),
    ],
)
def test_los_at_the_edges(points: list[list[float]], los: float) -> None:
    assert likelihood_of_superiority(np.array(points, float)) == pytest.approx(los, abs=1e-12)


def test_los_needs_a_pair() -> None:
    with pytest.raises(ValueError, match="one or more pairs"):
        likelihood_of_superiority(np.empty((0, 2)))


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


def constrained_likelihood(counts: npt.NDArray[np.float64], score: float) -> float:
    """The largest log-likelihood at a mean, by general-purpose optimisation.

    The three directions that keep the sum and the mean are searched without constraints: the
    logarithm itself forbids negative chances. A method for constraints, SLSQP, gives up on some
    of the cases below.
    """
    start = np.array([math.comb(4, k) * score**k * (1 - score) ** (4 - k) for k in range(5)])
    free = null_space(np.stack([np.ones(5), np.arange(5) / 4]))
    frequencies = counts / counts.sum()

    def loss(z: Points) -> float:
        chances = start + free @ z
        return -frequencies @ np.log(chances) if chances.min() > 0 else math.inf

    found = minimize(
        loss,
        np.zeros(3),
        jac=lambda z: -(frequencies / (start + free @ z)) @ free,
        hess=lambda z: free.T @ np.diag(frequencies / (start + free @ z) ** 2) @ free,
        method="trust-exact",
        options={"gtol": 1e-6, "maxiter": 1000},
    )
    assert found.success, found.message
    return float(-found.fun * counts.sum())


@pytest.mark.parametrize(
    "counts",
    [
        (13, 37, 50, 25, 3),
        (0, 2, 5, 9, 1),
        (0, 0, 40, 3, 0),
        (3, 0, 20, 0, 9),
        (200, 1, 1, 1, 2),
        (0, 0, 0, 0, 7),
    ],
)
@pytest.mark.parametrize("bounds", [(0.0, 5.0), (-30.0, 60.0), (-300.0, -100.0)])
def test_llr_is_the_constrained_maximum(
    counts: tuple[int, ...], bounds: tuple[float, float]
) -> None:
    seen = np.maximum(np.array(counts, float), 1e-3)
    below, above = (constrained_likelihood(seen, expected_score(elo)) for elo in bounds)
    assert Sprt(*bounds).llr(counts) == pytest.approx(above - below, abs=1e-6, rel=1e-6)


def test_llr_mirrors_and_grows() -> None:
    counts = (4, 10, 31, 17, 6)
    llr = Sprt(-3.0, 12.0).llr(counts)
    assert Sprt(-12.0, 3.0).llr(counts[::-1]) == pytest.approx(-llr, rel=1e-9)
    assert Sprt(-3.0, 12.0).llr([10 * n for n in counts]) == pytest.approx(10 * llr, rel=1e-9)
    assert Sprt(0.0, 5.0).llr((0, 0, 0, 0, 0)) == 0.0
    assert Sprt(-5.0, 5.0).llr((0, 0, 10**8, 0, 0)) == pytest.approx(0.0, abs=1e-3)
    # All pairs won: each takes the largest chance that the mean allows, about the mean itself.
    odds = math.log(expected_score(50.0) / expected_score(0.0))
    assert Sprt(0.0, 50.0).llr((0, 0, 0, 0, 400)) == pytest.approx(400 * odds, rel=1e-3)


def test_verdict() -> None:
    sprt = Sprt(0.0, 10.0)
    assert (sprt.lower, sprt.upper) == pytest.approx((-2.9444, 2.9444), abs=5e-5)
    lenient = Sprt(0.0, 10.0, alpha=0.1, beta=0.2)
    assert (lenient.lower, lenient.upper) == pytest.approx((math.log(2 / 9), math.log(8)))
    verdicts = [sprt.verdict((0, 0, 100 - n, 0, n)) for n in range(0, 101, 4)]
    llrs = [sprt.llr((0, 0, 100 - n, 0, n)) for n in range(0, 101, 4)]
    expected = ["H0" if x <= sprt.lower else "H1" if x >= sprt.upper else None for x in llrs]
    assert verdicts == expected and llrs[1:] == sorted(llrs[1:])
    assert sprt.verdict((40, 0, 100, 0, 0)) == "H0"
    assert sprt.verdict((100, 0, 400, 0, 200)) == "H1"
    assert sprt.verdict((10, 0, 40, 0, 10)) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5.0, 5.0), "elo0=5.0, elo1=5.0: expected elo0 < elo1"),
        ((math.nan, 5.0), "elo0 < elo1"),
        ((0.0, math.inf), "elo0 < elo1"),
        ((0.0, 5.0, 0.0), "alpha=0.0"),
        ((0.0, 5.0, 0.5), "alpha=0.5"),
        ((0.0, 5.0, 0.05, -0.1), "beta=-0.1"),
    ],
)
def test_sprt_arguments(arguments: tuple[float, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sprt(*arguments)


@pytest.mark.parametrize("counts", [(1, 2, 3), (1, 2, -3, 4, 5)])
def test_sprt_counts(counts: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected five counts"):
        Sprt(0.0, 5.0).llr(counts)


@pytest.mark.parametrize(("truth", "wrong"), [(0.0, "H1"), (60.0, "H0")])
def test_sprt_error_rate(truth: float, wrong: str) -> None:
    """Of 400 matches 5 % or somewhat fewer end in the wrong verdict."""
    rng = np.random.default_rng(3)
    sprt = Sprt(0.0, 60.0)
    errors = 0
    for _ in range(400):
        counts = np.zeros(5, np.int64)
        while (verdict := sprt.verdict(counts.tolist())) is None:
            points = play(rng, truth, 8, bias=0.2)
            counts += np.bincount((points.sum(axis=1) * 2).astype(int), minlength=5)
        errors += verdict == wrong
    assert 0.01 < errors / 400 < 0.075


def baseball() -> dict[tuple[str, str], Points]:
    """Each game twice: 13 are no pairs, and the estimates do not depend on the number."""
    return {
        (TEAMS[i], TEAMS[j]): pairs_of((WINS[j][i], 0, 0, 0, WINS[i][j]))
        for i in range(7)
        for j in range(i)
    }


def test_ratings_of_a_textbook() -> None:
    ratings = rate(baseball(), anchor="Baltimore", prior=1e-9, samples=50)
    assert ratings.names == TEAMS and ratings.anchor == "Baltimore"
    assert ratings.elo * math.log(10) / 400 == pytest.approx(ABILITIES, abs=5e-3)
    assert ratings.elo[-1] == ratings.low[-1] == ratings.high[-1] == 0.0
    np.testing.assert_array_equal(ratings.games, np.full(7, 2 * 6 * 13))
    assert ratings.score == pytest.approx(np.sum(WINS, axis=1) / 78)
    # The default prior is small beside 156 games.
    assert rate(baseball(), anchor="Baltimore").elo == pytest.approx(ratings.elo, rel=0.02, abs=1)
    assert rate(baseball(), samples=1).elo.mean() == pytest.approx(0.0, abs=1e-9)


def test_two_players_are_an_elo_difference() -> None:
    points = pairs_of((9, 12, 30, 31, 18))
    rate_of_a = float(points.mean())
    ratings = rate({("b", "a"): 1.0 - points}, anchor="b", prior=1e-9)
    assert ratings.names == ("a", "b")
    assert ratings.elo[0] == pytest.approx(elo_difference(rate_of_a), abs=1e-6)
    score = score_pairs(points)
    assert (ratings.low[0], ratings.high[0]) == pytest.approx(score.elo[1:], abs=4.0)
    nearly = rate({("a", "b"): points}, anchor="b")
    assert nearly.elo[0] == pytest.approx(ratings.elo[0], abs=1.0)


def test_ratings_are_the_maximum() -> None:
    """A partial round robin with draws and one sweep, against a general-purpose optimiser."""
    results = {
        ("a", "b"): pairs_of((1, 2, 9, 8, 5)),
        ("c", "b"): pairs_of((0, 0, 0, 0, 6)),
        ("c", "d"): pairs_of((7, 1, 0, 2, 4)),
        ("d", "a"): pairs_of((3, 3, 3, 3, 3)),
    }

    def loss(theta: Points) -> float:
        theta = theta - theta.mean()
        total = 2.0 * 0.5 * float(np.logaddexp(0, theta).sum() + np.logaddexp(0, -theta).sum())
        for (a, b), points in results.items():
            gap = theta["abcd".index(a)] - theta["abcd".index(b)]
            total += float(np.sum(points * np.logaddexp(0, -gap)))
            total += float(np.sum((1 - points) * np.logaddexp(0, gap)))
        return total

    found = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-7}).x
    expected = (found - found.mean()) * 400 / math.log(10)
    ratings = rate(results, prior=2.0, samples=1)
    in_order = [ratings.elo[ratings.names.index(name)] for name in "abcd"]
    assert in_order == pytest.approx(expected, abs=0.05)
    assert list(ratings.elo) == sorted(ratings.elo, reverse=True)
    assert ratings.games[ratings.names.index("a")] == 80


def test_sweeps_stay_finite() -> None:
    """One virtual game each, by hand: 200 (1 - p(d)) = p(d / 2) - 1/2 has d near 1057 Elo."""
    sweep = pairs_of((0, 0, 0, 0, 100))
    ratings = rate({("a", "b"): sweep}, anchor="b")
    gap = ratings.elo[0]
    virtual = expected_score(gap / 2) - 0.5
    assert 200 * (1 - expected_score(gap)) == pytest.approx(virtual, rel=1e-4)
    assert gap == pytest.approx(1057, abs=1)
    ladder = rate({("a", "b"): sweep, ("b", "c"): sweep, ("a", "c"): sweep}, prior=1e-6)
    assert ladder.names == ("a", "b", "c") and np.isfinite(ladder.elo).all()
    assert rate({("a", "b"): sweep}, prior=0.1).elo[0] > ratings.elo[0] / 2


def league(seed: int, elos: tuple[float, ...], pairs: int) -> dict[tuple[str, str], Points]:
    rng = np.random.default_rng(seed)
    return {
        ("abcdef"[i], "abcdef"[j]): play(rng, elos[i] - elos[j], pairs, bias=0.15)
        for i in range(len(elos))
        for j in range(i)
    }


def same(one: Ratings, other: Ratings) -> bool:
    """Whether names, estimates and intervals agree to the last bit."""
    arrays = ("elo", "low", "high", "score", "games")
    equal = (np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)
    return one.names == other.names and all(equal)


def test_order_of_results_does_not_matter() -> None:
    results = league(0, (0.0, 50.0, -80.0), 40)
    ratings = rate(results, seed=4)
    assert same(ratings, rate(dict(reversed(results.items())), seed=4))
    assert not np.array_equal(ratings.low, rate(results, seed=5).low)
    split = {("b", "a"): results["b", "a"][:25], ("a", "b"): 1.0 - results["b", "a"][25:]}
    rest = {key: results[key] for key in (("c", "a"), ("c", "b"))}
    assert rate(split | rest, seed=4).elo == pytest.approx(ratings.elo)
    assert same(rate(split | rest, seed=4), ratings)


def test_intervals_agree_with_the_information() -> None:
    """Of many independent games, the bootstrap's width is that of the inverse information."""
    rng = np.random.default_rng(1)
    elos, pairs = np.array([100.0, 0.0, -150.0]), 500
    results = {("abc"[i], "abc"[j]): play(rng, elos[i] - elos[j], pairs) for i, j in
               ((0, 1), (0, 2), (1, 2))}  # fmt: skip
    chances = np.array([[expected_score(a - b) for b in elos] for a in elos])
    weights = 2 * pairs * chances * (1 - chances) * (1 - np.eye(3))
    covariance = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    errors = np.sqrt(np.diag(covariance)) * 400 / math.log(10)
    ratings = rate(results, samples=4000)
    assert ratings.names == ("a", "b", "c")
    assert (ratings.high - ratings.low) / (2 * 1.96) == pytest.approx(errors, rel=0.1)


def test_bootstrap_covers() -> None:
    """Of 150 leagues of correlated pairs, about 95 % of the intervals cover the truth."""
    elos = (120.0, 30.0, -40.0, -110.0)
    covered = 0
    for seed in range(150):
        ratings = rate(league(seed, elos, 60), samples=300, seed=seed)
        for name, low, high in zip(ratings.names, ratings.low, ratings.high, strict=True):
            covered += low <= elos["abcd".index(name)] <= high
    assert 0.91 <= covered / 600 <= 0.98


def test_strangers_cannot_be_rated() -> None:
    points = pairs_of((1, 1, 1, 1, 1))
    with pytest.raises(ValueError, match=r"cannot be compared: a, c; b, d, e$"):
        rate({("a", "c"): points, ("d", "b"): points, ("e", "d"): points})


@pytest.mark.parametrize(
    ("results", "options", "message"),
    [
        ({}, {}, "no results"),
        ({("a", "a"): [[1, 1]]}, {}, "'a' against itself"),
        ({("a", "b"): [1, 1]}, {}, r"'a' against 'b': expected pairs of games, not \(2,\)"),
        ({("a", "b"): [[1, 0.3]]}, {}, "a game brings 0, 1/2 or 1 point"),
        ({("a", "b"): [[1, 0]]}, {"anchor": "z"}, "anchor='z' is not among the players: a, b"),
        ({("a", "b"): [[1, 0]]}, {"prior": 0.0}, "prior=0.0"),
        ({("a", "b"): [[1, 0]]}, {"samples": 0}, "samples=0"),
    ],
)
def test_rate_arguments(results: dict, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rate({key: np.array(points, float) for key, points in results.items()}, **options)


def test_cycles() -> None:
    """Rock, paper, scissors and a well that beats two; close matches make no cycle."""
    clear, close = pairs_of((2, 0, 20, 0, 18)), pairs_of((5, 0, 20, 0, 6))
    results = {
        ("rock", "scissors"): clear,
        ("paper", "rock"): clear,
        ("paper", "scissors"): 1.0 - clear,
        ("well", "rock"): clear,
        ("well", "scissors"): clear,
        ("paper", "well"): clear,
    }
    assert cycles(results) == [("paper", "rock", "scissors"), ("paper", "well", "scissors")]
    assert cycles(results | {("rock", "scissors"): close}) == [("paper", "well", "scissors")]
    assert cycles(results | {("paper", "scissors"): 1.0 - close}) == []
    assert cycles({("a", "b"): clear, ("b", "c"): clear, ("a", "c"): clear}) == []
