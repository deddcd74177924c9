"""The rating of one player on a ladder, and the games that find it.

Play goes in rounds: each is planned from the results of those before, against the anchors nearest
to the player. A pair of games depends only on the seed, the opening and the two players. So neither
the number of processes nor their speed changes a rating, unless the time is up.
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
from scipy.special import expit
from tqdm import tqdm

from agents import registry
from agents.arena.elo import Z95
from agents.arena.executors import LocalPool
from agents.arena.ladder import Ladder, LadderError
from agents.arena.match import play_openings
from agents.arena.openings import MatchOpenings
from agents.arena.ratings import ELO_PER_LOGIT
from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import Ruleset

FIRST_PAIRS: Final = 20
"""Pairs of the first round; each later one at most doubles what was played."""
UNIT_PAIRS: Final = 25
"""Pairs that a process plays at a time, at most."""
_REACH: Final = 4000.0
"""How far beyond the anchors a rating may lie, in Elo."""

Ended = Literal["precise", "no openings left", "time is up", "stopped"]
"""Why no more games were played."""


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
    """The likeliest rating of a player, given those of its opponents.

    The model is that of :func:`agents.arena.ratings.rate`. The interval is Wilson's, as in
    :func:`agents.arena.elo.score_pairs`, for opponents of different strengths: it holds the ratings
    at which the points lie within 1.96 standard errors of those expected. The games of an opening
    are not independent, so the error is taken over openings. The opponents' ratings count as exact.

    Args:
        ratings: float64[pairs], of the opponent in each pair of games.
        openings: int64[pairs], the number of the opening.
        points: float64[pairs, 2], what the player got from each game (1, 1/2 or 0).

    Raises:
        ValueError: there is no pair.
    """
    if not len(points):
        raise ValueError("no games to rate a player by: expected at least one pair")
    low, high = float(ratings.min()) - _REACH, float(ratings.max()) + _REACH
    total = float(points.sum())

    def surplus(elo: float) -> float:
        return total - 2.0 * float(_expected(elo, ratings).sum())

    if total == 0.0:
        elo = -math.inf
    elif total == points.size:
        elo = math.inf
    else:
        elo = brentq(surplus, low, high)
    effect = _design_effect(_expected(elo, ratings), openings, points)

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


def _expected(elo: float, ratings: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Points a game that the model expects against players of these ratings."""
    return expit((elo - ratings) / ELO_PER_LOGIT)


def _information(elo: float, ratings: npt.NDArray[np.float64]) -> float:
    """Variance of the points of independent games, two against each of ``ratings``."""
    expected = _expected(elo, ratings)
    return 2.0 * float((expected * (1.0 - expected)).sum())


def _design_effect(
    expected: npt.NDArray[np.float64],
    openings: npt.NDArray[np.int64],
    points: npt.NDArray[np.float64],
) -> float:
    """The variance of the points over openings, relative to that of independent games.

    At least 1/2, and 1 where too little was seen to tell.
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
    """What a player has shown so far on a ladder, and which games should come next.

    Args:
        ladder: its anchors and openings.
        seed: of the order in which each anchor's openings are played.
        player: who is rated. An anchor of that name is left out: who meets himself, and answers
            always alike, ends every pair even.
    """

    def __init__(self, ladder: Ladder, seed: int = 0, player: str = "") -> None:
        self.ladder = ladder
        self.seed = seed
        self.expected_pairs = 0
        """Pairs that there will have been in the end, as far as the last plan can tell."""
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
        """Take note of the results of a unit, float64[pairs, 2], points of the player."""
        self._anchors, self._openings, self._points = (
            np.append(self._anchors, np.full(len(points), unit.anchor)),
            np.append(self._openings, unit.openings),
            np.concatenate([self._points, points]),
        )

    def points_against(self, anchor: int) -> npt.NDArray[np.float64]:
        """float64[pairs, 2], the player's points in each game against an anchor."""
        return self._points[self._anchors == anchor]

    def placement(self) -> Placement:
        """The rating so far.

        Raises:
            ValueError: there is no game yet.
        """
        return place(self.ladder.ratings[self._anchors], self._openings, self._points)

    def guess(self) -> float:
        """A finite rating to plan by: a drawn pair against one of the anchors' mean is added."""
        ratings = self.ladder.ratings
        opponents = np.append(ratings[self._anchors], ratings.mean())
        openings = np.append(self._openings, -1)
        return place(opponents, openings, np.concatenate([self._points, [[0.5, 0.5]]])).elo

    def plan(self, precision: float) -> list[Unit]:
        """The units of the next round, the slowest anchors first.

        The anchors are those that tell at least half as much as the one that tells most: about
        those within 300 Elo of the player. So a rating rests on several kinds of opponents.

        Args:
            precision: the longer arm of the interval that will do, in Elo.

        Returns:
            Nothing if the rating is as precise as that, or all openings are used up.
        """
        if self.pairs and self.placement().margin <= precision:
            return []
        left = len(self.ladder.openings) - self._used
        if not left.any():
            return []
        elo = self.guess()
        expected = _expected(elo, self.ladder.ratings)
        told = 2.0 * expected * (1.0 - expected)  # by a pair
        chosen = np.flatnonzero((left > 0) & (told >= told[left > 0].max() / 2.0))
        missing = self._missing(elo, precision) / float(told[chosen].mean())
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
        """Information that the interval still lacks, in the units of :func:`_information`."""
        ratings = self.ladder.ratings[self._anchors]
        effect = _design_effect(_expected(elo, ratings), self._openings, self._points)
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
        player, anchor: what :func:`agents.registry.load` takes.
        ruleset: the rules.
        openings: those of the unit.
        seed: of both players.

    Raises:
        LadderError: the player failed.
    """
    own, other = (int(word) for word in np.random.SeedSequence(seed).generate_state(2))
    opponent = registry.load(anchor, ruleset=ruleset, seed=other, threads=1)
    try:
        agent = registry.load(player, ruleset=ruleset, seed=own, threads=1)
        match = play_openings(agent, opponent, openings, Engine(ruleset))
    except Exception as error:  # whatever somebody's own code raises
        raise LadderError(
            f"{player} failed against {anchor}: {type(error).__name__}: {error}"
        ) from error
    return Played(match.points, 1000.0 * match.seconds[0] / max(1, match.moves[0]))


def _wait(futures: Sequence[Future[Played]], deadline: float, bar: tqdm) -> Ended | None:
    """Wait for a round.

    Returns:
        None if all of it was played, else why not.

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
    """All that was played to rate a player."""

    session: Session
    ended: Ended
    ms_a_move: float
    """Time a move of the player, on one core: the median of the units, for the first one may
    have had to compile."""


def rate_player(
    player: str,
    ladder: Ladder,
    *,
    precision: float = 30.0,
    seconds: float = math.inf,
    seed: int = 1,
    processes: int = 1,
) -> Result:
    """Rate a player on a ladder. Ctrl-C ends it early, with the results until then.

    Args:
        player: what :func:`agents.registry.load` takes.
        ladder: the scale.
        precision: play until the longer arm of the 95 % interval is no longer than this, in Elo.
        seconds: or until so much time has passed; units that are not finished then do not count.
        seed: of the openings' order and of the players.
        processes: play at a time, each player on one core.

    Raises:
        LadderError: the player cannot be loaded, or failed while it played.
    """
    session = Session(ladder, seed, player)
    times: list[float] = []
    ended: Ended | None = None
    deadline = time.monotonic() + seconds
    pool = LocalPool(processes)
    try:
        with tqdm(unit="game", desc=player) as bar:
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
