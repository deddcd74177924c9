"""Plan an event: choose the next games from the results so far.

A plan knows the names of the players and the numbers of the openings. It neither plays nor prints,
and its rounds depend only on the results. :func:`bao_agents.arena.scheduler.play` plays a plan. To
add a plan, write a class with :meth:`Plan.next_round`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, repeat
from typing import NamedTuple, TypeAlias

from bao_agents.arena.elo import Sprt
from bao_agents.arena.pairs import Pairs

PART_PAIRS = 25
"""Most pairs in a part: one process plays a part."""
FIRST_PARTS = (1,) * 16 + (2,) * 8 + (4,) * 8 + (8,) * 8 + (16,) * 8
"""Pairs in the first parts of a match. They are small, so that even a match of a few pairs between
slow players uses several cores. A longer match begins with the same parts, so it can continue a
shorter one."""
SPRT_PAIRS = 50
"""Least number of pairs between two checks of a sequential test."""


class Part(NamedTuple):
    """Pairs of games that two players play together."""

    first: str
    second: str
    numbers: tuple[int, ...]
    """The numbers of the openings, each played from both seats."""


Results: TypeAlias = Mapping[Part, Pairs]
"""The parts that have been played, in the planned order."""


class Plan:
    """The base class of plans."""

    def next_round(self, results: Results) -> list[Part]:
        """Return the parts of the next round; none if the event is over.

        Args:
            results: the results of all rounds before.
        """
        raise NotImplementedError

    def is_decided(self, results: Results) -> bool:
        """Return whether the remaining parts of this round need not be played.

        Args:
            results: the results so far, in the planned order and without a gap. Therefore the
                answer does not depend on which parts end first.
        """
        return False


@dataclass(frozen=True)
class RoundRobin(Plan):
    """Everyone plays everyone."""

    names: Sequence[str]
    pairs: int
    """Openings that two players play, each from both seats."""

    def next_round(self, results: Results) -> list[Part]:
        """See :class:`Plan`; there is one round."""
        if results:
            return []
        pairings = combinations(self.names, 2)
        return [part for pairing in pairings for part in cut(*pairing, self.pairs)]


@dataclass(frozen=True)
class Gauntlet(Plan):
    """One player plays the others, one after another. With one opponent it is a match."""

    player: str
    opponents: Sequence[str]
    pairs: int
    """Openings against each opponent, each played from both seats."""
    sprt: Sprt | None = None
    """The test that stops the games against an opponent as soon as it has a verdict. It is checked
    after every :data:`SPRT_PAIRS` pairs or more."""

    def next_round(self, results: Results) -> list[Part]:
        """See :class:`Plan`; there is one round per opponent."""
        opponents_met = {part.second for part in results}
        for opponent in self.opponents:
            if opponent not in opponents_met:
                return cut(self.player, opponent, self.pairs, FIRST_PARTS)
        return []

    def is_decided(self, results: Results) -> bool:
        """See :class:`Plan`."""
        if self.sprt is None:
            return False
        opponent = [*results][-1].second
        own_results = [pairs for part, pairs in results.items() if part.second == opponent]
        pairs_played = pairs_checked = 0
        is_due = False
        for pairs in own_results:
            pairs_played += len(pairs)
            is_due = pairs_played >= pairs_checked + SPRT_PAIRS
            pairs_checked = pairs_played if is_due else pairs_checked
        return is_due and self.sprt.verdict(sum(own_results, Pairs()).score.pair_counts) is not None

    def is_stopped(self, opponent: str, results: Results) -> bool:
        """Return whether the test has stopped the games against an opponent before their end."""
        own_results = {part: pairs for part, pairs in results.items() if part.second == opponent}
        return sum(map(len, own_results.values())) < self.pairs and self.is_decided(own_results)


def cut(first: str, second: str, pairs: int, sizes: Sequence[int] = ()) -> list[Part]:
    """Cut the games of two players into parts.

    A larger number of openings only adds parts, unless the last part was not full.

    Args:
        first, second: the players.
        pairs: the number of openings.
        sizes: pairs in each of the first parts; the others have up to :data:`PART_PAIRS`.
    """
    parts: list[Part] = []
    begin = 0
    for size in chain(sizes, repeat(PART_PAIRS)):
        if begin >= pairs:
            return parts
        parts.append(Part(first, second, tuple(range(begin, min(begin + size, pairs)))))
        begin += size
    return parts


def pairings(results: Results) -> dict[tuple[str, str], Pairs]:
    """Return the results of each pair of players that met, for the player named first."""
    totals: dict[tuple[str, str], Pairs] = {}
    for part, pairs in results.items():
        names = part.first, part.second
        totals[names] = totals.get(names, Pairs()) + pairs
    return totals


def of_player(name: str, results: Mapping[tuple[str, str], Pairs]) -> Pairs:
    """Return all results of a player, from its side, given the results of each pairing."""
    own_results: Iterable[Pairs] = (
        pairs if name == names[0] else pairs.swapped()
        for names, pairs in results.items()
        if name in names
    )
    return sum(own_results, Pairs())
