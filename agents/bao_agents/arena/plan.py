"""Plan an event: say which games come next, given the results so far.

A plan knows the names of the players and the numbers of the openings. It neither plays nor prints,
and its rounds depend only on the results. :func:`bao_agents.arena.scheduler.play` plays a plan. To
add one, write a class with :meth:`Plan.next_round`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, TypeAlias

from bao_agents.arena.elo import Sprt
from bao_agents.arena.pairs import Pairs

PART_PAIRS = 25
"""Pairs that a process plays at a time, at most."""
LEAST_PARTS = 16
"""Parts of a match, if it has as many pairs: a match of few pairs between slow players uses several
cores too."""
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
    """A plan of an event."""

    def next_round(self, results: Results) -> list[Part]:
        """Return the parts of the next round; none if the event is over.

        Args:
            results: the results of all rounds before.
        """
        raise NotImplementedError

    def is_decided(self, results: Results) -> bool:
        """Return whether the rest of this round is needless.

        Args:
            results: the results so far, in the planned order without a gap. So the order in which
                parts end changes nothing.
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
    """Stop against an opponent as soon as this test has a verdict. It is checked after every
    :data:`SPRT_PAIRS` pairs or more."""

    def next_round(self, results: Results) -> list[Part]:
        """See :class:`Plan`; each opponent has a round."""
        met = {part.second for part in results}
        size = min(PART_PAIRS, math.ceil(self.pairs / LEAST_PARTS))
        for opponent in self.opponents:
            if opponent not in met:
                return cut(self.player, opponent, self.pairs, size)
        return []

    def is_decided(self, results: Results) -> bool:
        """See :class:`Plan`."""
        if self.sprt is None:
            return False
        last = [*results][-1].second
        own = [pairs for part, pairs in results.items() if part.second == last]
        played = checked = 0
        is_due = False
        for pairs in own:
            played += len(pairs)
            is_due = played >= checked + SPRT_PAIRS
            checked = played if is_due else checked
        return is_due and self.sprt.verdict(sum(own, Pairs()).score.pair_counts) is not None


def cut(first: str, second: str, pairs: int, size: int = PART_PAIRS) -> list[Part]:
    """Return the parts, each of up to ``size`` pairs, in which two players play ``pairs`` openings.

    More openings only add parts, unless the last one was not full.
    """
    return [
        Part(first, second, tuple(range(low, min(low + size, pairs))))
        for low in range(0, pairs, size)
    ]


def pairings(results: Results) -> dict[tuple[str, str], Pairs]:
    """Return the results of each two players that met, as those of the first one."""
    found: dict[tuple[str, str], Pairs] = {}
    for part, pairs in results.items():
        names = part.first, part.second
        found[names] = found.get(names, Pairs()) + pairs
    return found


def of_player(name: str, results: Mapping[tuple[str, str], Pairs]) -> Pairs:
    """Return all results of a player, from those of each pairing."""
    own: Iterable[Pairs] = (
        pairs if name == names[0] else pairs.swapped()
        for names, pairs in results.items()
        if name in names
    )
    return sum(own, Pairs())
