"""Plan the rating of one player on a ladder.

Games are played in rounds, against the anchors whose ratings are nearest to the player's. The
results so far decide each next round.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bao_agents.arena.elo import (
    ELO_PER_LOGIT,
    Z95,
    Placement,
    design_effect,
    information,
    rate_against,
)
from bao_agents.arena.ladder import Ladder
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.plan import PART_PAIRS, Part, Plan, Results
from bao_agents.support.array_types import Float64Array, Int64Array

FIRST_PAIRS = 20
"""Pairs in the first round; each later round at most doubles the number played."""


@dataclass(frozen=True)
class OnLadder(Plan):
    """Play against a ladder's anchors until the rating is precise, or all openings are used."""

    ladder: Ladder
    player: str
    """The name of the rated player."""
    spec: str
    """Its specification, for :func:`bao_agents.players.registry.load`. An anchor with the same
    specification is no opponent: a deterministic player always scores one point of two against
    itself."""
    precision: float = 30.0
    """The required distance from the rating to the farther end of its interval, in Elo."""
    seed: int = 1
    """The seed of the order of each anchor's openings."""

    @property
    def keys(self) -> Mapping[str, tuple[int, ...]]:
        """See :attr:`bao_agents.arena.event.Event.keys`."""
        numbers = {anchor.player: (i,) for i, anchor in enumerate(self.ladder.anchors)}
        return numbers | {self.player: ()}

    def placement(self, results: Results) -> Placement:
        """Return the rating so far.

        Raises:
            ValueError: there are no games yet.
        """
        return rate_against(*self._games(results))

    def scale_interval(self, results: Results) -> tuple[float, float] | None:
        """Return the 95% interval that includes the errors of the anchors' own ratings.

        It is the interval of the Elo difference from the anchor at 0. By contrast,
        :meth:`placement` takes the anchors' ratings as exact. None after a clean sweep.

        Raises:
            ValueError: there are no games yet.
        """
        rating = self.placement(results)
        if math.isinf(rating.elo):
            return None
        # An opponent's error shifts this rating by the opponent's share of the information.
        pairs = [self._pairs_against(anchor.player, results) for anchor in self.ladder.anchors]
        shares = np.array(pairs) * information(rating.elo, self.ladder.ratings)
        shares /= shares.sum()
        error = Z95 * math.sqrt(max(0.0, float(shares @ self.ladder.covariance @ shares)))
        return (
            rating.elo - math.hypot(rating.elo - rating.low, error),
            rating.elo + math.hypot(rating.high - rating.elo, error),
        )

    def is_precise(self, results: Results) -> bool:
        """Return whether the rating is as precise as required."""
        return bool(results) and self.placement(results).margin <= self.precision

    def next_round(self, results: Results) -> list[Part]:
        """See :class:`~bao_agents.arena.plan.Plan`.

        An anchor is chosen if a pair against it gives at least half as much information as a pair
        against the best anchor: roughly the anchors within 300 Elo. So a rating uses several kinds
        of opponents. The first round begins in the middle of the ladder: if time allows only a few
        games, these tell the most about an unknown player. Later rounds begin with the slowest
        anchors.
        """
        anchors = self.ladder.anchors
        openings_used = np.array([self._used(anchor.player, results) for anchor in anchors])
        openings_left = len(self.ladder.openings) - openings_used
        if self.is_precise(results) or not openings_left.any():
            return []
        ratings, openings, points = self._games(results)
        # One more pair, drawn at the anchors' mean, makes the rating finite.
        elo = rate_against(
            np.append(ratings, self.ladder.ratings.mean()),
            np.append(openings, -1),
            np.concatenate([points, [[0.5, 0.5]]]),
        ).elo
        effect = design_effect(elo, ratings, openings, points)
        needed = effect * (Z95 * ELO_PER_LOGIT / self.precision) ** 2
        missing = max(0.0, needed - float(information(elo, ratings).sum()))
        gains = information(elo, self.ladder.ratings)
        has_openings = openings_left > 0
        near_anchors = np.flatnonzero(
            has_openings & (gains >= gains[has_openings].max() / 2.0)
        ).tolist()
        pairs = max(FIRST_PAIRS, math.ceil(missing / float(gains[near_anchors].mean())))
        pairs = min(pairs, max(FIRST_PAIRS, len(points)))
        pairs_per_anchor = math.ceil(pairs / len(near_anchors))
        if results:  # slowest first: at the end, no core waits for a slow anchor
            near_anchors.sort(key=lambda i: -anchors[i].ms_a_move)
        else:
            near_anchors.sort(key=lambda i: abs(elo - anchors[i].elo))
        parts = []
        for i in near_anchors:
            size = min(pairs_per_anchor, int(openings_left[i]))
            numbers = self._orders[i][openings_used[i] : openings_used[i] + size]
            parts += [
                Part(self.player, anchors[i].player, tuple(part_numbers.tolist()))
                for part_numbers in np.array_split(numbers, math.ceil(size / PART_PAIRS))
            ]
        return parts

    @cached_property
    def _orders(self) -> list[Int64Array]:
        """The order of the openings against each anchor."""
        seeds = [[self.seed, zlib.crc32(anchor.player.encode())] for anchor in self.ladder.anchors]
        count = len(self.ladder.openings)
        return [np.random.default_rng(seed).permutation(count) for seed in seeds]

    def _used(self, anchor: str, results: Results) -> int:
        """Return how many openings an anchor has used: all, if it is the rated player itself."""
        if anchor == self.spec:
            return len(self.ladder.openings)
        return self._pairs_against(anchor, results)

    def _pairs_against(self, anchor: str, results: Results) -> int:
        """Return how many pairs of games have been played against an anchor."""
        return sum(len(part.numbers) for part in results if part.second == anchor)

    def _games(self, results: Results) -> tuple[Float64Array, Int64Array, Float64Array]:
        """Return the games so far as arguments of :func:`~bao_agents.arena.elo.rate_against`."""
        elos = {anchor.player: anchor.elo for anchor in self.ladder.anchors}
        ratings = [elos[part.second] for part in results for _ in part.numbers]
        openings = [number for part in results for number in part.numbers]
        points = sum(results.values(), Pairs()).points
        return np.array(ratings), np.array(openings, np.int64), points
