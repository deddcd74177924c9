"""Rate one player on a ladder.

Games are played in rounds against the anchors nearest to the player. Each round is planned from the
earlier results. A pair of games depends only on the seed, the opening and the two players. So
neither the number of processes nor their speed changes a rating, unless the time runs out.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from bao_agents.arena.elo import ELO_PER_LOGIT, Z95, expected_score, root
from bao_agents.arena.ladder import Ladder
from bao_agents.arena.scheduler import LocalPool, Record, Unit, play_units
from bao_agents.array_types import Float64Array, Int64Array
from bao_agents.progress import Progress

FIRST_PAIRS = 20
"""Pairs in the first round; each later round at most doubles the number played."""
PART_PAIRS = 25
"""Pairs that a process plays at a time, at most."""
_REACH = 4000.0
"""Maximum distance of a rating from the anchors, in Elo."""

Ended = Literal["precise", "no openings left", "time is up", "stopped"]
"""Why the games ended."""


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
    ratings: Float64Array,
    openings: Int64Array,
    points: Float64Array,
) -> Placement:
    """Return the most likely rating of a player, given those of its opponents.

    The model is that of :func:`bao_agents.arena.ratings.rate`. The interval is Wilson's, as in
    :func:`bao_agents.arena.elo.score_pairs`, for opponents of different strengths: it contains the
    ratings at which the points lie within 1.96 standard errors of those expected. The games of an
    opening are not independent, so the error is taken over openings. The opponents' ratings are
    taken as exact.

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
        elo = root(surplus, low, high)
    effect = _design_effect(elo, ratings, openings, points)

    def deviation(elo: float) -> float:
        return surplus(elo) / math.sqrt(effect * _information(elo, ratings).sum())

    middle = min(max(elo, low), high)
    return Placement(
        elo=elo,
        low=root(lambda x: deviation(x) - Z95, low, middle) if total else -math.inf,
        high=root(lambda x: deviation(x) + Z95, middle, high) if total < points.size else math.inf,
    )


def _information(elo: float, ratings: Float64Array) -> Float64Array:
    """Return the variance of the points of two independent games against each of ``ratings``."""
    expected = expected_score(elo - ratings)
    return 2.0 * expected * (1.0 - expected)


def _design_effect(
    elo: float,
    ratings: Float64Array,
    openings: Int64Array,
    points: Float64Array,
) -> float:
    """Return the variance of the points over openings, relative to that of independent games.

    It is at least 1/2, and 1 if there are too few games to estimate it.
    """
    independent = float(_information(elo, ratings).sum())
    _, groups = np.unique(openings, return_inverse=True)
    surplus = points.sum(axis=1) - 2.0 * expected_score(elo - ratings)
    residuals = np.bincount(groups, weights=surplus)
    count = len(residuals)
    if count < 2 or independent == 0.0:
        return 1.0
    return max(0.5, float((residuals**2).sum()) * count / (count - 1) / independent)


class Part(NamedTuple):
    """Some pairs of games against one anchor."""

    anchor: int
    """Its place on the ladder."""
    openings: tuple[int, ...]
    """The numbers of the openings, each played from both seats."""


class Session:
    """The games of a player on a ladder so far, and the plan for the next ones.

    Args:
        ladder: the ladder.
        seed: the seed of the order of each anchor's openings.
        player: the rated player. An anchor with that name is skipped: a deterministic player
            always draws a pair of games against itself.
    """

    def __init__(self, ladder: Ladder, seed: int = 0, player: str = "") -> None:
        self.ladder = ladder
        self.seed = seed
        self.player = player
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

    def unit(self, part: Part, allow: Sequence[str]) -> Unit:
        """Return a part as a unit of work; see :class:`Unit` for ``allow``."""
        words = [self.seed, part.anchor, part.openings[0]]
        own, other = np.random.SeedSequence(words).generate_state(2).tolist()
        return Unit(
            players=(self.player, self.ladder.anchors[part.anchor].player),
            ruleset=self.ladder.ruleset,
            openings=self.ladder.starts[np.array(part.openings)],
            seeds=(own, other),
            allow=allow,
        )

    def add(self, part: Part, points: Float64Array) -> None:
        """Add the results of a part, float64[pairs, 2], the player's points."""
        # Together: Ctrl-C may come at any moment.
        self._anchors, self._openings, self._points = (
            np.append(self._anchors, np.full(len(points), part.anchor)),
            np.append(self._openings, part.openings),
            np.concatenate([self._points, points]),
        )

    def points_against(self, anchor: int) -> Float64Array:
        """Return the player's points in each game against an anchor, float64[pairs, 2]."""
        return self._points[self._anchors == anchor]

    def placement(self) -> Placement:
        """Return the rating so far.

        Raises:
            ValueError: there are no games yet.
        """
        return place(self.ladder.ratings[self._anchors], self._openings, self._points)

    def guess(self) -> float:
        """Return a finite rating for the plan, with one more pair drawn at the anchors' mean."""
        ratings = self.ladder.ratings
        opponents = np.append(ratings[self._anchors], ratings.mean())
        openings = np.append(self._openings, -1)
        return place(opponents, openings, np.concatenate([self._points, [[0.5, 0.5]]])).elo

    def plan(self, precision: float) -> list[Part]:
        """Return the parts of the next round, the slowest anchors first.

        An anchor is chosen if a pair against it gives at least half as much information as a pair
        against the best one: roughly those within 300 Elo. So a rating uses several kinds of
        opponents.

        Args:
            precision: the required length of the interval's longer arm, in Elo.

        Returns:
            the parts; none if the rating is precise enough or all openings have been used.
        """
        if self.pairs and self.placement().margin <= precision:
            return []
        left = len(self.ladder.openings) - self._used
        if not left.any():
            return []
        elo = self.guess()
        information = _information(elo, self.ladder.ratings)
        chosen = np.flatnonzero((left > 0) & (information >= information[left > 0].max() / 2.0))
        missing = self._missing(elo, precision) / float(information[chosen].mean())
        pairs = min(max(FIRST_PAIRS, math.ceil(missing)), max(FIRST_PAIRS, self.pairs))
        each = math.ceil(pairs / len(chosen))
        parts = []
        for anchor in sorted(chosen.tolist(), key=lambda i: -self.ladder.anchors[i].ms_a_move):
            size = min(each, int(left[anchor]))
            start = self._used[anchor]
            self._used[anchor] += size
            taken = self._orders[anchor][start : start + size]
            for openings in np.array_split(taken, math.ceil(size / PART_PAIRS)):
                parts.append(Part(anchor, tuple(openings.tolist())))
        planned = sum(len(part.openings) for part in parts)
        self.expected_pairs = self.pairs + max(planned, math.ceil(min(missing, left.sum())))
        return parts

    def _missing(self, elo: float, precision: float) -> float:
        """Return the missing information, in the units of :func:`_information`."""
        ratings = self.ladder.ratings[self._anchors]
        effect = _design_effect(elo, ratings, self._openings, self._points)
        needed = effect * (Z95 * ELO_PER_LOGIT / precision) ** 2
        return max(0.0, needed - float(_information(elo, ratings).sum()))


@dataclass(frozen=True)
class Result:
    """The games that rate a player."""

    session: Session
    ended: Ended
    ms_a_move: float
    """The player's time per move on one core: the median over units, because the first one may
    include compilation."""
    faults: list[str]
    """The causes of the faults by which the player lost games, one for each game."""


def rate_player(
    player: str,
    ladder: Ladder,
    *,
    precision: float = 30.0,
    seconds: float = math.inf,
    seed: int = 1,
    processes: int = 1,
    allow: Sequence[str] = (),
) -> Result:
    """Rate a player on a ladder. Ctrl-C ends it early and keeps the results.

    Args:
        player: the player's name for :func:`bao_agents.registry.load`.
        ladder: the ladder.
        precision: play until the longer arm of the 95 % interval is no longer than this, in Elo.
        seconds: the time limit; units that are unfinished then do not count.
        seed: the seed of the openings' order and of the players.
        processes: the number of processes, each on one core.
        allow: names for :func:`bao_agents.registry.allow_architecture`, in each process.

    Raises:
        ValueError: the player cannot be loaded, or failed while it played.
    """
    session = Session(ladder, seed, player)
    times: list[float] = []
    faults: list[str] = []
    deadline = time.monotonic() + seconds
    try:
        with LocalPool(processes) as pool, Progress(unit="game", desc=player) as bar:
            while parts := session.plan(precision):
                bar.total = 2 * session.expected_pairs
                bar.refresh()
                units = [session.unit(part, allow) for part in parts]
                records: dict[int, Record] = {}
                try:
                    for i, record in play_units(units, pool, bar, deadline - time.monotonic()):
                        records[i] = record
                finally:
                    # Added in the planned order, so the order in which they ended does not matter.
                    for i, record in sorted(records.items()):
                        session.add(parts[i], np.array(record.points))
                        times.append(1000.0 * record.seconds[0] / max(1, record.moves[0]))
                        faults += record.faults[0]
                bar.set_postfix_str(str(session.placement()))
        precise = session.placement().margin <= precision
        ended: Ended = "precise" if precise else "no openings left"
    except TimeoutError:
        ended = "time is up"
    except KeyboardInterrupt:
        ended = "stopped"
    return Result(session, ended, float(np.median(times)) if times else 0.0, faults)
