"""Rate one player on a ladder.

Games are played in rounds, each planned from the earlier results, against the anchors nearest
to the player. A pair of games depends only on the seed, the opening and the two players. So neither
the number of processes nor their speed changes a rating, unless the time runs out.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from agents import registry
from agents.arena.elo import ELO_PER_LOGIT, Z95, expected_score
from agents.arena.executors import LocalPool
from agents.arena.ladder import Ladder, LadderError
from agents.arena.match import play_openings
from agents.arena.openings import MatchOpenings
from agents.progress import Progress
from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import Ruleset

FIRST_PAIRS: Final = 20
"""Pairs of the first round; each later one at most doubles what was played."""
UNIT_PAIRS: Final = 25
"""Pairs that a process plays at a time, at most."""
_REACH: Final = 4000.0
"""Maximum distance of a rating from the anchors, in Elo."""

Ended = Literal["precise", "no openings left", "time is up", "stopped"]
"""Reason for the end of the games."""


@dataclass(frozen=True)
class Placement:
    """A rating on a ladder's scale."""

    elo: float
    """Infinite if every game was won or lost."""
    low: float
    """Lower end of the 95 % interval; may be infinite."""
    high: float
    """Upper end of it."""

    @property
    def margin(self) -> float:
        """The longer arm of the interval; infinite after a clean sweep."""
        if math.isinf(self.elo):
            return math.inf
        return max(self.high - self.elo, self.elo - self.low)

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"above {self.low:.0f} Elo (95 %)"
        if math.isinf(self.low):
            return f"below {self.high:.0f} Elo (95 %)"
        return f"{self.elo:.0f} Elo (95 % interval {self.low:.0f} to {self.high:.0f})"


def place(
    ratings: npt.NDArray[np.float64],
    openings: npt.NDArray[np.int64],
    points: npt.NDArray[np.float64],
) -> Placement:
    """Return the most likely rating of a player, given those of its opponents.

    The model is that of :func:`agents.arena.ratings.rate`. The interval is Wilson's, as in
    :func:`agents.arena.elo.score_pairs`, for opponents of different strengths: it contains the
    ratings at which the points lie within 1.96 standard errors of those expected. The games of an
    opening are not independent, so the error is taken over openings. The opponents' ratings count
    as exact.

    Args:
        ratings: float64[pairs], the opponent's rating in each pair of games.
        openings: int64[pairs], the number of the opening.
        points: float64[pairs, 2], the player's points in each game (1, 1/2 or 0).

    Raises:
        ValueError: there is no pair.
    """
    if not len(points):
        raise ValueError("no games to rate a player by: expected at least one pair")
    low, high = float(ratings.min()) - _REACH, float(ratings.max()) + _REACH
    total = float(points.sum())

    def surplus(elo: float) -> float:
        return total - 2.0 * float(expected_score(elo - ratings).sum())

    if total == 0.0:
        elo = -math.inf
    elif total == points.size:
        elo = math.inf
    else:
        elo = brentq(surplus, low, high)
    effect = _design_effect(expected_score(elo - ratings), openings, points)

    def deviation(elo: float) -> float:
        return surplus(elo) / math.sqrt(effect * _information(elo, ratings))

    middle = min(max(elo, low), high)
    return Placement(
        elo=elo,
        low=brentq(lambda x: deviation(x) - Z95, low, middle) if total else -math.inf,
        high=brentq(lambda x: deviation(x) + Z95, middle, high)
        if total < points.size
        else math.inf,
    )


def _information(elo: float, ratings: npt.NDArray[np.float64]) -> float:
    """Return the variance of the points of independent games, two against each of ``ratings``."""
    expected = expected_score(elo - ratings)
    return 2.0 * float((expected * (1.0 - expected)).sum())


def _design_effect(
    expected: npt.NDArray[np.float64],
    openings: npt.NDArray[np.int64],
    points: npt.NDArray[np.float64],
) -> float:
    """Return the variance of the points over openings, relative to that of independent games.

    It is at least 1/2, and 1 if there are too few games to estimate it.
    """
    independent = 2.0 * float((expected * (1.0 - expected)).sum())
    _, groups = np.unique(openings, return_inverse=True)
    residuals = np.bincount(groups, weights=points.sum(axis=1) - 2.0 * expected)
    count = len(residuals)
    if count < 2 or independent == 0.0:
        return 1.0
    return max(0.5, float((residuals**2).sum()) * count / (count - 1) / independent)


@dataclass(frozen=True)
class Unit:
    """Some pairs of games against one anchor."""

    anchor: int
    """Its place on the ladder."""
    openings: tuple[int, ...]
    """The numbers of the openings, each played from both seats."""


class Session:
    """The games of a player on a ladder so far, and the plan of the next ones.

    Args:
        ladder: the ladder.
        seed: the seed of the order of each anchor's openings.
        player: the rated player. An anchor of that name is skipped: a deterministic player that
            meets itself always draws the pair.
    """

    def __init__(self, ladder: Ladder, seed: int = 0, player: str = "") -> None:
        self.ladder = ladder
        self.seed = seed
        self.expected_pairs = 0
        """Estimated number of pairs at the end, from the last plan."""
        count = len(ladder.openings)
        self._orders = [
            np.random.default_rng([seed, zlib.crc32(anchor.player.encode())]).permutation(count)
            for anchor in ladder.anchors
        ]
        self._used = np.array(
            [count if anchor.player == player else 0 for anchor in ladder.anchors], np.int64
        )
        self._anchors = np.zeros(0, np.int64)
        self._openings = np.zeros(0, np.int64)
        self._points = np.zeros((0, 2))

    @property
    def pairs(self) -> int:
        """Pairs of games so far."""
        return len(self._points)

    def add(self, unit: Unit, points: npt.NDArray[np.float64]) -> None:
        """Add the results of a unit, float64[pairs, 2], the player's points."""
        self._anchors, self._openings, self._points = (
            np.append(self._anchors, np.full(len(points), unit.anchor)),
            np.append(self._openings, unit.openings),
            np.concatenate([self._points, points]),
        )

    def points_against(self, anchor: int) -> npt.NDArray[np.float64]:
        """Return the player's points in each game against an anchor, float64[pairs, 2]."""
        return self._points[self._anchors == anchor]

    def placement(self) -> Placement:
        """Return the rating so far.

        Raises:
            ValueError: there are no games yet.
        """
        return place(self.ladder.ratings[self._anchors], self._openings, self._points)

    def guess(self) -> float:
        """Return a finite rating for the plan: a drawn pair against the anchors' mean is added."""
        ratings = self.ladder.ratings
        opponents = np.append(ratings[self._anchors], ratings.mean())
        openings = np.append(self._openings, -1)
        return place(opponents, openings, np.concatenate([self._points, [[0.5, 0.5]]])).elo

    def plan(self, precision: float) -> list[Unit]:
        """Return the units of the next round, the slowest anchors first.

        An anchor is chosen if a pair against it gives at least half of the information that the
        best one gives: about those within 300 Elo. So a rating uses several kinds of opponents.

        Args:
            precision: the required length of the interval's longer arm, in Elo.

        Returns:
            the units; none if the rating is precise enough, or all openings are used.
        """
        if self.pairs and self.placement().margin <= precision:
            return []
        left = len(self.ladder.openings) - self._used
        if not left.any():
            return []
        elo = self.guess()
        expected = expected_score(elo - self.ladder.ratings)
        information = 2.0 * expected * (1.0 - expected)  # of a pair
        chosen = np.flatnonzero((left > 0) & (information >= information[left > 0].max() / 2.0))
        missing = self._missing(elo, precision) / float(information[chosen].mean())
        pairs = min(max(FIRST_PAIRS, math.ceil(missing)), max(FIRST_PAIRS, self.pairs))
        each = math.ceil(pairs / len(chosen))
        units = []
        for anchor in sorted(chosen.tolist(), key=lambda i: -self.ladder.anchors[i].ms_a_move):
            size = min(each, int(left[anchor]))
            start = self._used[anchor]
            self._used[anchor] += size
            taken = self._orders[anchor][start : start + size]
            for part in np.array_split(taken, math.ceil(size / UNIT_PAIRS)):
                units.append(Unit(anchor, tuple(part.tolist())))
        planned = sum(len(unit.openings) for unit in units)
        self.expected_pairs = self.pairs + max(planned, math.ceil(min(missing, left.sum())))
        return units

    def _missing(self, elo: float, precision: float) -> float:
        """Return the missing information, in the units of :func:`_information`."""
        ratings = self.ladder.ratings[self._anchors]
        effect = _design_effect(expected_score(elo - ratings), self._openings, self._points)
        needed = effect * (Z95 * ELO_PER_LOGIT / precision) ** 2
        return max(0.0, needed - _information(elo, ratings))


@dataclass(frozen=True)
class Played:
    """The results of a unit."""

    points: npt.NDArray[np.float64]
    """float64[pairs, 2], points of the player in each game."""
    ms_a_move: float
    """Average time a move of the player."""


def play_unit(
    player: str, anchor: str, ruleset: Ruleset, openings: MatchOpenings, seed: Sequence[int]
) -> Played:
    """Play a unit.

    Args:
        player, anchor: the players' names for :func:`agents.registry.load`.
        ruleset: the rules.
        openings: the openings of the unit.
        seed: the seed of both players.

    Raises:
        LadderError: the player failed.
    """
    own, other = (int(word) for word in np.random.SeedSequence(seed).generate_state(2))
    opponent = registry.load(anchor, ruleset=ruleset, seed=other, threads=1)
    try:
        agent = registry.load(player, ruleset=ruleset, seed=own, threads=1)
        match = play_openings(agent, opponent, openings, Engine(ruleset))
    except Exception as error:  # a player may raise anything
        raise LadderError(
            f"{player} failed against {anchor}: {type(error).__name__}: {error}"
        ) from error
    return Played(match.points, 1000.0 * match.seconds[0] / max(1, match.moves[0]))


def _wait(futures: Sequence[Future[Played]], deadline: float, bar: Progress) -> Ended | None:
    """Wait for the games of a round.

    Returns:
        None if all were played, else the reason why not.

    Raises:
        LadderError: the player failed.
    """
    try:
        for future in as_completed(futures, max(0.0, deadline - time.monotonic())):
            bar.update(future.result().points.size)
    except TimeoutError:
        return "time is up"
    except KeyboardInterrupt:
        return "stopped"
    return None


@dataclass(frozen=True)
class Result:
    """The games that rate a player."""

    session: Session
    ended: Ended
    ms_a_move: float
    """Time a move of the player, on one core: the median over units, because
    the first one may include compilation."""


def rate_player(
    player: str,
    ladder: Ladder,
    *,
    precision: float = 30.0,
    seconds: float = math.inf,
    seed: int = 1,
    processes: int = 1,
) -> Result:
    """Rate a player on a ladder. Ctrl-C ends it early and keeps the results.

    Args:
        player: the player's name for :func:`agents.registry.load`.
        ladder: the ladder.
        precision: play until the longer arm of the 95 % interval is no longer than this, in Elo.
        seconds: the time limit; units that are unfinished then do not count.
        seed: the seed of the openings' order and of the players.
        processes: the number of processes, each on one core.

    Raises:
        LadderError: the player cannot be loaded, or failed while it played.
    """
    session = Session(ladder, seed, player)
    times: list[float] = []
    ended: Ended | None = None
    deadline = time.monotonic() + seconds
    pool = LocalPool(processes)
    try:
        with Progress(unit="game", desc=player) as bar:
            while ended is None and (units := session.plan(precision)):
                bar.total = 2 * session.expected_pairs
                bar.refresh()
                futures = [
                    pool.submit(
                        play_unit,
                        player,
                        ladder.anchors[unit.anchor].player,
                        ladder.ruleset,
                        ladder.starts[np.array(unit.openings)],
                        [seed, unit.anchor, unit.openings[0]],
                    )
                    for unit in units
                ]
                ended = _wait(futures, deadline, bar)
                # In the order of the plan, so that the order in which they ended does not matter.
                for unit, future in zip(units, futures, strict=True):
                    if future.done():
                        played = future.result()
                        session.add(unit, played.points)
                        times.append(played.ms_a_move)
                if session.pairs:
                    bar.set_postfix_str(str(session.placement()))
    except KeyboardInterrupt:  # between two rounds
        ended = "stopped"
    finally:
        pool.stop()
        pool.shutdown(wait=False, cancel_futures=True)
    if ended is None:
        precise = session.placement().margin <= precision
        ended = "precise" if precise else "no openings left"
    return Result(session, ended, float(np.median(times)) if times else 0.0)
