"""Rate one player on a ladder.

Games are played in rounds against the anchors nearest to the player. Each round is planned from the
earlier results. A pair of games depends only on the seed, the opening and the two players. So
neither the number of processes nor their speed changes a rating, unless the time runs out.
"""

from __future__ import annotations

import math
import time
import zlib
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bao_agents.arena.elo import (
    ELO_PER_LOGIT,
    Z95,
    Placement,
    design_effect,
    information,
    place,
)
from bao_agents.arena.ladder import Ladder
from bao_agents.arena.scheduler import PART_PAIRS, Event, LocalPool, Part, Record
from bao_agents.support.array_types import Float64Array
from bao_agents.support.progress import Progress

FIRST_PAIRS = 20
"""Pairs in the first round; each later round at most doubles the number played."""

Ended = Literal["precise", "no openings left", "time is up", "stopped"]
"""Why the games ended."""


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
        self._numbers = {anchor.player: i for i, anchor in enumerate(ladder.anchors)}
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

    def event(self) -> Event:
        """Return the player and the anchors."""
        names = [anchor.player for anchor in self.ladder.anchors]
        return Event(
            {name: name for name in (*names, self.player)},
            self.ladder.ruleset,
            self.ladder.starts,
            self.seed,
            keys={name: (i,) for i, name in enumerate(names)} | {self.player: ()},
        )

    def add(self, part: Part, points: Float64Array) -> None:
        """Add the results of a part, float64[pairs, 2], the player's points."""
        # Together: Ctrl-C may come at any moment.
        self._anchors, self._openings, self._points = (
            np.append(self._anchors, np.full(len(points), self._numbers[part.second])),
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
        gains = information(elo, self.ladder.ratings)
        chosen = np.flatnonzero((left > 0) & (gains >= gains[left > 0].max() / 2.0))
        missing = self._missing(elo, precision) / float(gains[chosen].mean())
        pairs = min(max(FIRST_PAIRS, math.ceil(missing)), max(FIRST_PAIRS, self.pairs))
        each = math.ceil(pairs / len(chosen))
        parts = []
        for anchor in sorted(chosen.tolist(), key=lambda i: -self.ladder.anchors[i].ms_a_move):
            size = min(each, int(left[anchor]))
            start = self._used[anchor]
            self._used[anchor] += size
            taken = self._orders[anchor][start : start + size]
            for openings in np.array_split(taken, math.ceil(size / PART_PAIRS)):
                opponent = self.ladder.anchors[anchor].player
                parts.append(Part(self.player, opponent, tuple(openings.tolist())))
        planned = sum(len(part.openings) for part in parts)
        self.expected_pairs = self.pairs + max(planned, math.ceil(min(missing, left.sum())))
        return parts

    def _missing(self, elo: float, precision: float) -> float:
        """Return the missing :func:`~bao_agents.arena.elo.information`."""
        ratings = self.ladder.ratings[self._anchors]
        effect = design_effect(elo, ratings, self._openings, self._points)
        needed = effect * (Z95 * ELO_PER_LOGIT / precision) ** 2
        return max(0.0, needed - float(information(elo, ratings).sum()))


@dataclass(frozen=True)
class Result:
    """The games that rate a player."""

    session: Session
    ended: Ended
    ms_a_move: float
    """The player's average processor time per move."""
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
) -> Result:
    """Rate a player on a ladder. Ctrl-C ends it early and keeps the results.

    Args:
        player: the player's name for :func:`bao_agents.players.registry.load`.
        ladder: the ladder.
        precision: play until the longer arm of the 95 % interval is no longer than this, in Elo.
        seconds: the time limit; games that are unfinished then do not count. If none has ended,
            the first ones are waited for.
        seed: the seed of the openings' order and of the players.
        processes: the number of processes, each on one core.

    Raises:
        ValueError: the player cannot be loaded, or failed while it played.
    """
    session = Session(ladder, seed, player)
    event = session.event()
    milliseconds, moves = 0.0, 0
    faults: list[str] = []
    deadline = time.monotonic() + seconds
    try:
        with LocalPool(processes) as pool, Progress(unit="game", desc=player) as bar:
            while parts := session.plan(precision):
                bar.total = 2 * session.expected_pairs
                bar.refresh()
                records: dict[Part, Record] = {}
                try:
                    # Without any game there would be no rating.
                    for part, record in event.play(parts, pool, bar, deadline, not session.pairs):
                        records[part] = record
                finally:
                    # Added in the planned order, so the order in which they ended does not matter.
                    for part in (part for part in parts if part in records):
                        record = records[part]
                        session.add(part, np.array(record.points))
                        milliseconds += 1000.0 * record.seconds[0]
                        moves += record.moves[0]
                        faults += record.faults[0]
                bar.set_postfix_str(str(session.placement()))
        precise = session.placement().margin <= precision
        ended: Ended = "precise" if precise else "no openings left"
    except TimeoutError:
        ended = "time is up"
    except KeyboardInterrupt:
        ended = "stopped"
    return Result(session, ended, milliseconds / max(1, moves), faults)
