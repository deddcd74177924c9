"""Check every printed interval, test and rating against simulated games of a known truth.

A simulated game has a chance that is known, so it is known whether an interval covers it. The two
games of a pair depend on each other as in real matches: openings lean to a side or suit a player,
players are stronger in one seat, games are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pytest

from bao_agents.arena.elo import (
    Sprt,
    expected_score,
    likelihood_of_superiority,
    place,
    score_pairs,
    wilson_interval,
)
from bao_agents.arena.plan import SPRT_PAIRS
from bao_agents.arena.ratings import rate
from bao_agents.support.array_types import Float64Array

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Games:
    """What makes games differ from coin tosses; each number is 0..1, 1 for as much as can be."""

    lean: float = 0.0
    """Openings lean to a side: of the two games of a pair, one gets easier and one harder."""
    suits: float = 0.0
    """Openings suit a player: both games of a pair get easier, or both harder."""
    seat: float = 0.0
    """The first player is stronger as South than as North."""
    draws: float = 0.0
    """Share of the games that are drawn, of those between equal players."""

    def play(self, rng: np.random.Generator, chance: float, openings: Float64Array) -> Float64Array:
        """Return the first player's points, float64[pairs, 2], drawn about a mean of ``chance``.

        Args:
            rng: draws the results.
            chance: points per game that the first player can expect over all openings.
            openings: float64[pairs, 2] from -1 to 1, how far each leans to South and suits the
                first player (:func:`openings`). The same openings give dependent games.
        """
        room = min(chance, 1.0 - chance)
        seat = self.seat * room
        suits = self.suits * (room - seat) * np.sign(openings[:, 1])
        lean = self.lean * (room - seat - np.abs(suits)) * openings[:, 0]
        expected = chance + np.stack([suits + lean + seat, suits - lean - seat], axis=1)
        drawn = self.draws * np.minimum(expected, 1.0 - expected)
        u = rng.random(expected.shape)
        return np.where(u < expected - drawn, 1.0, np.where(u < expected + drawn, 0.5, 0.0))


def openings(rng: np.random.Generator, count: int) -> Float64Array:
    """Draw different openings, float64[count, 2]."""
    return rng.uniform(-1.0, 1.0, (count, 2))


KINDS = {
    "coins": Games(),
    "leaning openings": Games(lean=1.0),
    "suited openings": Games(suits=0.7),
    "seats": Games(seat=0.8),
    "draws": Games(draws=0.5),
    "all": Games(lean=0.5, suits=0.3, seat=0.3, draws=0.3),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def sizes(pairs: int, *others: int) -> list[tuple[str, int]]:
    """Return every kind with a number of pairs, and the simplest and the fullest with others."""
    return [(kind, pairs) for kind in KINDS] + [*product(("coins", "all"), others)]


SIMULATIONS = 1000
LEAGUES = 150
"""Simulated tournaments; each has five intervals."""


def seeds(count: int, *key: object) -> Iterator[np.random.Generator]:
    """Return generators of random numbers for the simulations of a setting."""
    root = np.random.SeedSequence([*repr(key).encode()])
    return map(np.random.default_rng, root.spawn(count))


def match_coverage(games: Games, chance: float, pairs: int, count: int = SIMULATIONS) -> float:
    """Return how often a match's interval covers the true score."""
    covered = 0
    for rng in seeds(count, games, chance, pairs):
        score = score_pairs(games.play(rng, chance, openings(rng, pairs)))
        covered += score.low <= chance <= score.high
    return covered / count


@every_kind
@pytest.mark.parametrize("pairs", [5, 20, 200])
@pytest.mark.parametrize("chance", [0.5, 0.8])
def test_match(kind: str, chance: float, pairs: int) -> None:
    """It is too wide if players win by seats alone: pairs then vary less than the least effect."""
    coverage = match_coverage(KINDS[kind], chance, pairs)
    assert coverage >= 0.915 and (coverage <= 0.985 or pairs == 5)


@pytest.mark.parametrize(("kind", "pairs"), sizes(20, 100))
def test_rating_on_a_ladder(kind: str, pairs: int) -> None:
    """Four anchors play the same openings, as those of a ladder do."""
    assert 0.915 <= placement_coverage(KINDS[kind], pairs) <= 0.98


def placement_coverage(games: Games, pairs: int, count: int = 400) -> float:
    """Return how often the interval of a rating covers the truth, 100 Elo."""
    anchors = np.array([-100.0, 0.0, 150.0, 250.0])
    covered = 0
    for rng in seeds(count, games, pairs):
        drawn = openings(rng, pairs)
        points = [games.play(rng, expected_score(100.0 - elo), drawn) for elo in anchors.tolist()]
        numbers = np.tile(np.arange(pairs), len(anchors))
        placed = place(np.repeat(anchors, pairs), numbers, np.concatenate(points))
        covered += placed.low <= 100.0 <= placed.high
    return covered / count


ELOS = {"a": 130.0, "b": 60.0, "c": 0.0, "d": -80.0, "e": -110.0}


def league(
    rng: np.random.Generator, games: Games, pairs: int
) -> dict[tuple[str, str], Float64Array]:
    """Play a round robin of five players; each pairing has openings that suit other players."""
    return {
        (a, b): games.play(rng, expected_score(ELOS[a] - ELOS[b]), openings(rng, pairs))
        for a, b in combinations(ELOS, 2)
    }


def tournament_errors(
    games: Games, pairs: int, anchor: str | None = None, count: int = LEAGUES
) -> tuple[float, Float64Array]:
    """Return how often the intervals of a tournament cover the truth, and the mean errors in Elo.

    Returns:
        the share of all intervals, and float64[5], for each player the mean of its ratings less the
        truth, over the tournaments in which all are finite.
    """
    covered, errors = [], []
    for rng in seeds(count, games, pairs, anchor):
        ratings = rate(league(rng, games, pairs), anchor=anchor)
        truth = np.array([ELOS[name] - ELOS.get(anchor or "", 0.0) for name in ratings.names])
        others = np.array([name != anchor for name in ratings.names])
        covered += ((ratings.low <= truth) & (truth <= ratings.high))[others].tolist()
        if np.isfinite(ratings.elo).all():
            order = np.argsort(ratings.names)
            errors.append((ratings.elo - truth)[order])
    return float(np.mean(covered)), np.mean(errors, axis=0)


@pytest.mark.parametrize(("kind", "pairs"), sizes(10, 5, 25))
def test_tournament(kind: str, pairs: int) -> None:
    """Of few games, the likeliest ratings lie a little too far apart."""
    coverage, errors = tournament_errors(KINDS[kind], pairs)
    assert 0.92 <= coverage <= 0.98
    truth = np.array(list(ELOS.values()))
    assert 0.95 <= 1.0 + errors @ truth / (truth @ truth) <= 1.05 + 0.5 / pairs


def test_tournament_with_an_anchor() -> None:
    assert 0.92 <= tournament_errors(KINDS["all"], 10, "c")[0] <= 0.98


@pytest.mark.parametrize("elo", [0.0, 20.0])
def test_sequential_test(elo: float) -> None:
    """Each hypothesis is refused in at most 5 % of the matches in which it is true."""
    assert sprt_error(KINDS["all"], elo) <= 0.06


def sprt_error(games: Games, elo: float, count: int = 400) -> float:
    """Return how often a test of 0 against 20 Elo accepts the wrong one at ``elo``."""
    sprt, wrong = Sprt(0.0, 20.0), "H1" if elo == 0.0 else "H0"
    errors = 0
    for rng in seeds(count, games, elo):
        counts, verdict = np.zeros(5, int), None
        while verdict is None:
            points = games.play(rng, expected_score(elo), openings(rng, SPRT_PAIRS))
            counts += score_pairs(points).pair_counts
            verdict = sprt.verdict(counts.tolist())
        errors += verdict == wrong
    return errors / count


def test_the_interval_of_a_stopped_match_is_too_narrow() -> None:
    """``bao match --sprt`` says by how much."""
    sprt, covered, count = Sprt(0.0, 50.0), 0, 400
    for rng in seeds(count, "stopped"):
        points = np.empty((0, 2))
        while not len(points) or sprt.verdict(score_pairs(points).pair_counts) is None:
            drawn = openings(rng, SPRT_PAIRS)
            points = np.concatenate([points, Games().play(rng, expected_score(25.0), drawn)])
        score = score_pairs(points)
        covered += score.low <= expected_score(25.0) <= score.high
    assert 0.86 <= covered / count <= 0.925


def los_of_equals(games: Games, pairs: int, count: int = SIMULATIONS) -> Float64Array:
    """Return the likelihoods of superiority in matches of equal players."""
    return np.array(
        [
            likelihood_of_superiority(games.play(rng, 0.5, openings(rng, pairs)))
            for rng in seeds(count, games, pairs)
        ]
    )


@every_kind
@pytest.mark.parametrize("pairs", [20, 200])
def test_likelihood_of_superiority(kind: str, pairs: int) -> None:
    """Of equal players one has a likelihood above x in a share 1 - x of the matches."""
    found = los_of_equals(KINDS[kind], pairs)
    for level in (0.05, 0.2, 0.8, 0.95):
        below = ((found < level).mean() + (found <= level).mean()) / 2
        assert below == pytest.approx(level, abs=0.05)


def wilson_coverage(rate: float, trials: int) -> float:
    """Return the exact chance that Wilson's interval covers a share of independent trials."""
    total = 0.0
    for count in range(trials + 1):
        low, high = wilson_interval(count / trials, trials)
        if low <= rate <= high:
            total += math.comb(trials, count) * rate**count * (1.0 - rate) ** (trials - count)
    return total


@pytest.mark.parametrize("trials", [20, 50, 200, 500])
def test_blunders(trials: int) -> None:
    """A share of whole positions jumps, so the chance is a mean over neighbouring shares."""
    for rate_ in (0.02, 0.05, 0.1, 0.3, 0.5):
        near = [wilson_coverage(share, trials) for share in np.linspace(0.8, 1.2, 41) * rate_]
        assert 0.93 <= np.mean(near) <= 0.98
