"""Check every printed interval, test and rating against simulated games of a known truth.

A simulated game has a chance that is known, so it is known whether an interval covers it. The two
games of a pair depend on each other as in real matches: openings lean to a side or suit a player,
players are stronger in one seat, games are drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pytest

from bao_agents.arena.elo import Sprt, expected_score, rate_against, score_pairs
from bao_agents.arena.ladder import Anchor, Ladder, load_ladder
from bao_agents.arena.openings import draw_openings
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.placement import OnLadder
from bao_agents.arena.plan import SPRT_PAIRS, Part
from bao_agents.arena.ratings import rate
from bao_agents.support.array_types import Float64Array
from tests.agents.test_arena import game_key

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Games:
    """Ways in which games differ from coin tosses; each number is from 0 to 1, where 1 is the
    strongest effect."""

    lean: float = 0.0
    """Openings favour a side: of the two games of a pair, one gets easier and one harder."""
    suits: float = 0.0
    """Openings suit a player: both games of a pair get easier, or both harder."""
    seat: float = 0.0
    """The player named first is stronger as South than as North."""
    draws: float = 0.0
    """Share of drawn games between equal players."""

    def play(self, rng: np.random.Generator, chance: float, openings: Float64Array) -> Float64Array:
        """Return the points of the player named first, float64[pairs, 2], with mean ``chance``.

        Args:
            rng: draws the results.
            chance: points per game that this player can expect over all openings.
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


def sizes(pairs: int, *other_sizes: int) -> list[tuple[str, int]]:
    """Return every kind of games with ``pairs`` pairs, and the simplest and the fullest kind with
    ``other_sizes``."""
    return [(kind, pairs) for kind in KINDS] + [*product(("coins", "all"), other_sizes)]


SIMULATIONS = 1000
LEAGUES = 150
"""Simulated tournaments; each has five intervals."""


def seeds(count: int, *key: object) -> Iterator[np.random.Generator]:
    """Return generators of random numbers for the simulations of a setting."""
    root = np.random.SeedSequence([*repr(key).encode()])
    return map(np.random.default_rng, root.spawn(count))


@every_kind
@pytest.mark.parametrize("pairs", [5, 20, 200])
@pytest.mark.parametrize("chance", [0.5, 0.8])
def test_match(kind: str, chance: float, pairs: int) -> None:
    """The interval is too wide if only seats decide, because pairs then vary less than the model
    allows."""
    covered = []
    for rng in seeds(SIMULATIONS, KINDS[kind], chance, pairs):
        score = score_pairs(KINDS[kind].play(rng, chance, openings(rng, pairs)))
        covered.append(score.low <= chance <= score.high)
    assert np.mean(covered) >= 0.915 and (np.mean(covered) <= 0.985 or pairs == 5)


def test_match_of_few_openings() -> None:
    """In kujifunza many positions after three plies lead to the same game, and only that game
    decides the result.

    The two seats and the two directions of the board make up to four positions of each game.
    """
    drawn = draw_openings("kujifunza", 200, 3, seed=1, balance=None)
    games = [game_key(drawn, i) for i in range(len(drawn))]
    covered = []
    for rng in seeds(SIMULATIONS, "few openings"):
        of_game = dict(zip(games, openings(rng, len(games)), strict=True))
        results: dict[object, Float64Array] = {
            game: KINDS["all"].play(rng, 0.6, lean[np.newaxis]) for game, lean in of_game.items()
        }
        score = score_pairs(np.concatenate([results[game] for game in games]))
        covered.append(score.low <= 0.6 <= score.high)
    assert 0.915 <= np.mean(covered) <= 0.985


@pytest.mark.parametrize(("kind", "pairs"), sizes(20, 100))
def test_rating_on_a_ladder(kind: str, pairs: int) -> None:
    """A player of 100 Elo meets four anchors in the same openings, as on a ladder."""
    anchors = np.array([-100.0, 0.0, 150.0, 250.0])
    numbers = np.tile(np.arange(pairs), len(anchors))
    covered = []
    for rng in seeds(400, KINDS[kind], pairs):
        drawn = openings(rng, pairs)
        points = [KINDS[kind].play(rng, expected_score(100.0 - elo), drawn) for elo in anchors]
        placed = rate_against(np.repeat(anchors, pairs), numbers, np.concatenate(points))
        covered.append(placed.low <= 100.0 <= placed.high)
    assert 0.915 <= np.mean(covered) <= 0.98


ELOS = {"a": 130.0, "b": 60.0, "c": 0.0, "d": -80.0, "e": -110.0}


@pytest.mark.parametrize(
    ("kind", "pairs", "anchor"), [*((*size, None) for size in sizes(10, 5, 25)), ("all", 10, "c")]
)
def test_tournament(kind: str, pairs: int, anchor: str | None) -> None:
    """With few games, the likeliest ratings lie a little too far apart."""
    covered, errors = [], []
    for rng in seeds(LEAGUES, KINDS[kind], pairs, anchor):
        games = {  # each pairing has openings that suit other players
            (a, b): KINDS[kind].play(rng, expected_score(ELOS[a] - ELOS[b]), openings(rng, pairs))
            for a, b in combinations(ELOS, 2)
        }
        ratings = rate(games, anchor=anchor)
        truth = np.array([ELOS[name] - ELOS.get(anchor or "", 0.0) for name in ratings.names])
        is_rated = np.array([name != anchor for name in ratings.names])
        covered += ((ratings.low <= truth) & (truth <= ratings.high))[is_rated].tolist()
        if np.isfinite(ratings.elo).all():
            errors.append((ratings.elo - truth) @ truth / (truth @ truth))
    assert 0.92 <= np.mean(covered) <= 0.98
    assert 0.95 <= 1.0 + np.mean(errors) <= 1.05 + 0.5 / pairs


def test_rating_on_a_scale_with_errors() -> None:
    """The ladder's own ratings have errors, since they come from a tournament; the player is far
    from the anchor at 0."""
    truth = {"random": 0.0, "greedy": 300.0, "alphabeta:1": 550.0, "alphabeta:2": 800.0}
    me, pairs, shipped = 700.0, 30, load_ladder().model_dump()
    covered, covered_given_ladder = [], []
    for rng in seeds(400, "scale"):
        tournament = {
            (a, b): KINDS["all"].play(rng, expected_score(truth[a] - truth[b]), openings(rng, 25))
            for a, b in combinations(truth, 2)
        }
        ratings = rate(tournament, anchor="random")
        if not np.isfinite(ratings.low + ratings.high).all():
            continue  # a ladder's anchors have ratings
        rows = zip(ratings.names, ratings.elo, ratings.low, ratings.high, strict=True)
        anchors = [
            Anchor(
                player=name,
                elo=elo,
                low=low,
                high=high,
                games=150,
                ms_a_move=1.0,
                answers="",
                fingerprint="",
            )
            for name, elo, low, high in rows
        ]
        ladder = Ladder.model_construct(**shipped | {"anchors": anchors})
        drawn = openings(rng, pairs)
        results = {
            Part("me", name, tuple(range(pairs))): Pairs(
                points=KINDS["all"].play(rng, expected_score(me - truth[name]), drawn)
            )
            for name in ("alphabeta:1", "alphabeta:2")
        }
        plan = OnLadder(ladder, "me", "me")
        low, high = plan.scale_interval(results) or (-np.inf, np.inf)
        covered.append(low <= me <= high)
        rating = plan.placement(results)
        covered_given_ladder.append(rating.low <= me <= rating.high)
    assert len(covered) > 350 and 0.92 <= np.mean(covered) <= 0.98
    assert np.mean(covered_given_ladder) < 0.8


@pytest.mark.parametrize("elo", [0.0, 20.0])
def test_sequential_test(elo: float) -> None:
    """Each hypothesis is refused in at most 5% of the matches in which it is true."""
    sprt, wrong = Sprt(0.0, 20.0), []
    for rng in seeds(400, KINDS["all"], elo):
        counts, verdict = np.zeros(5, int), None
        while verdict is None:
            drawn = openings(rng, SPRT_PAIRS)
            points = KINDS["all"].play(rng, expected_score(elo), drawn)
            counts += score_pairs(points).pair_counts
            verdict = sprt.verdict(counts.tolist())
        wrong.append(verdict == ("H0" if elo else "H1"))
    assert np.mean(wrong) <= 0.06


def test_the_interval_of_a_stopped_match_is_too_narrow() -> None:
    """``bao match --sprt`` says how much too narrow."""
    sprt, truth, covered = Sprt(0.0, 50.0), expected_score(25.0), []
    for rng in seeds(400, "stopped"):
        points = np.empty((0, 2))
        while not len(points) or sprt.verdict(score_pairs(points).pair_counts) is None:
            drawn = openings(rng, SPRT_PAIRS)
            points = np.concatenate([points, Games().play(rng, truth, drawn)])
        score = score_pairs(points)
        covered.append(score.low <= truth <= score.high)
    assert 0.86 <= np.mean(covered) <= 0.925
