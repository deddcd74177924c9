"""Rate one player on a ladder.

Games are played in rounds against the anchors nearest to the player. Each round is planned from the
earlier results. A pair of games depends only on the seed, the opening and the two players. So
neither the number of processes nor their speed changes a rating, unless the time runs out.
"""

from __future__ import annotations

import math
import time
import zlib
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
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.scheduler import PART_PAIRS, Event, LocalPool, Part, play_parts
from bao_agents.support.array_types import Float64Array, Int64Array
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
        self.played: dict[Part, Pairs] = {}
        """The parts with their results, in the planned order."""
        self.ended: Ended | None = None
        names = [anchor.player for anchor in ladder.anchors]
        self._elos = dict(zip(names, ladder.ratings.tolist(), strict=True))
        self._event = Event(
            {name: name for name in (*names, player)},
            ladder.ruleset,
            ladder.starts,
            seed,
            keys={name: (i,) for i, name in enumerate(names)} | {player: ()},
        )
        count = len(ladder.openings)
        self._orders = [
            np.random.default_rng([seed, zlib.crc32(name.encode())]).permutation(count)
            for name in names
        ]
        self._used = np.array([count if name == player else 0 for name in names], np.int64)

    @property
    def total(self) -> Pairs:
        """All games so far, as results of the player."""
        return sum(self.played.values(), Pairs())

    def against(self, anchor: str) -> Pairs:
        """Return the games against an anchor, as results of the player."""
        games = (pairs for part, pairs in self.played.items() if part.names[1] == anchor)
        return sum(games, Pairs())

    def placement(self) -> Placement:
        """Return the rating so far.

        Raises:
            ValueError: there are no games yet.
        """
        return place(*self._games())

    def _games(self) -> tuple[Float64Array, Int64Array, Float64Array]:
        """Return what :func:`~bao_agents.arena.elo.place` needs of the games so far."""
        ratings = [self._elos[part.names[1]] for part in self.played for _ in part.numbers]
        openings = [number for part in self.played for number in part.numbers]
        return np.array(ratings), np.array(openings, np.int64), self.total.points

    def guess(self) -> float:
        """Return a finite rating for the plan, with one more pair drawn at the anchors' mean."""
        ratings, openings, points = self._games()
        return place(
            np.append(ratings, self.ladder.ratings.mean()),
            np.append(openings, -1),
            np.concatenate([points, [[0.5, 0.5]]]),
        ).elo

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
        pairs = len(self.total)
        if pairs and self.placement().margin <= precision:
            return []
        left = len(self.ladder.openings) - self._used
        if not left.any():
            return []
        elo = self.guess()
        gains = information(elo, self.ladder.ratings)
        chosen = np.flatnonzero((left > 0) & (gains >= gains[left > 0].max() / 2.0))
        missing = self._missing(elo, precision) / float(gains[chosen].mean())
        wanted = min(max(FIRST_PAIRS, math.ceil(missing)), max(FIRST_PAIRS, pairs))
        each = math.ceil(wanted / len(chosen))
        parts = []
        for anchor in sorted(chosen.tolist(), key=lambda i: -self.ladder.anchors[i].ms_a_move):
            size = min(each, int(left[anchor]))
            start = self._used[anchor]
            self._used[anchor] += size
            taken = self._orders[anchor][start : start + size]
            for openings in np.array_split(taken, math.ceil(size / PART_PAIRS)):
                opponent = self.ladder.anchors[anchor].player
                parts.append(self._event.part(self.player, opponent, openings.tolist()))
        planned = sum(len(part.numbers) for part in parts)
        self.expected_pairs = pairs + max(planned, math.ceil(min(missing, left.sum())))
        return parts

    def _missing(self, elo: float, precision: float) -> float:
        """Return the missing :func:`~bao_agents.arena.elo.information`."""
        ratings, openings, points = self._games()
        effect = design_effect(elo, ratings, openings, points)
        needed = effect * (Z95 * ELO_PER_LOGIT / precision) ** 2
        return max(0.0, needed - float(information(elo, ratings).sum()))


def rate_player(
    player: str,
    ladder: Ladder,
    *,
    precision: float = 30.0,
    seconds: float = math.inf,
    seed: int = 1,
    processes: int = 1,
) -> Session:
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
    deadline = time.monotonic() + seconds
    try:
        with LocalPool(processes) as pool, Progress(unit="game", desc=player) as bar:
            while parts := session.plan(precision):
                bar.total = 2 * session.expected_pairs
                bar.refresh()
                ended: dict[Part, Pairs] = {}
                try:
                    # Without any game there would be no rating.
                    for part, pairs in play_parts(parts, pool, bar, deadline, not session.played):
                        ended[part] = pairs
                finally:
                    # In the planned order, so the order in which they ended does not matter. At
                    # once: Ctrl-C may come at any moment.
                    session.played |= {part: ended[part] for part in parts if part in ended}
                bar.set_postfix_str(str(session.placement()))
        precise = session.placement().margin <= precision
        session.ended = "precise" if precise else "no openings left"
    except TimeoutError:
        session.ended = "time is up"
    except KeyboardInterrupt:
        session.ended = "stopped"
    return session
