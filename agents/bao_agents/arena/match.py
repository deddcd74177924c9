"""Play two players against each other in paired games.

Every opening, by default a random legal prefix that a search finds balanced, is played twice, once
from each seat. A sequential test may end a match early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from bao_agents.arena.elo import Score, Sprt, score_pairs
from bao_agents.arena.games import GAME_OVER, MAX_PLIES, MatchGames, play_games
from bao_agents.arena.openings import (
    BALANCE,
    OPENING_PLIES,
    MatchOpenings,
    draw_openings,
)
from bao_agents.support.array_types import Float64Array, Int64Array, Uint8Array
from bao_env.bots import Agent
from bao_env.engine.batch import Engine
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import opening
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.notation.transcript import format_transcript, rules_head, transcribe

SPRT_PAIRS = 50
"""Pairs played between two checks of a sequential test."""


@dataclass(frozen=True)
class Match:
    """Every result of a match; ``score`` sums them up."""

    ruleset: Ruleset
    openings: MatchOpenings
    """The openings, one for both games of each pair."""
    points: Float64Array
    """float64[pairs, 2], points of the first player as South and as North."""
    plies: Int64Array
    """int64[pairs, 2], length of each game, its opening included."""
    actions: Uint8Array
    """uint8[pairs, 2, longest], the actions after the opening; 255 after the end."""
    moves: tuple[int, int]
    """Actions that the first and the second player chose."""
    seconds: tuple[float, float]
    """Processor time that these took the two players."""
    faults: tuple[list[str], list[str]]
    """For each player, the causes of the faults by which it lost games, one for each game."""
    score: Score
    verdict: str | None = None
    """``"H0"`` or ``"H1"``, if a sequential test ended the match."""

    def transcripts(self, names: tuple[str, str]) -> Iterator[str]:
        """Return each game in Donkers' notation, the pairs in order.

        Args:
            names: the names of the two players, for the head.
        """
        for (pair, first_seat), points in np.ndenumerate(self.points):
            start = opening(self.ruleset, int(self.openings.first_players[pair]))
            played = np.concatenate([self.openings.actions[pair], self.actions[pair, first_seat]])
            actions = played[played != GAME_OVER].tolist()
            south, north = names if first_seat == SOUTH else names[::-1]
            head = {"event": f"pair {pair + 1}", "south": south, "north": north}
            head |= rules_head(self.ruleset)
            if start.mover == NORTH:
                head["first player"] = "North"
            head["opening plies"] = str(np.sum(self.openings.actions[pair] != GAME_OVER))
            if points == 0.5:
                head["result"] = "draw"
            else:
                head["winner"] = "south" if (points == 1.0) == (first_seat == SOUTH) else "north"
            yield format_transcript(transcribe(start, actions, self.ruleset, head=head))


def play_match(
    first: Agent,
    second: Agent,
    *,
    ruleset: str | Ruleset = "zanzibar",
    pairs: int,
    opening_plies: int = OPENING_PLIES,
    balance: float | None = BALANCE,
    seed: int = 0,
    max_plies: int = MAX_PLIES,
    sprt: Sprt | None = None,
    progress: Callable[[int], None] = lambda ended: None,
) -> Match:
    """Play ``pairs`` pairs of games: each opening once with ``first`` as South, once as North.

    Args:
        first, second: the players; each gets all of its positions of a ply in one call.
        ruleset: the rules.
        pairs: number of openings; twice as many games are played.
        opening_plies: random legal plies that make an opening.
        balance: skip openings that a search finds less balanced than this; see
            :func:`bao_agents.arena.openings.draw_openings`.
        seed: the seed of the openings; players have their own.
        max_plies: a game that reaches this length is a draw.
        sprt: stop as soon as this test has a verdict; checked every :data:`SPRT_PAIRS` pairs.
        progress: called after each ply with the number of games that have just ended.

    Raises:
        ValueError: ``pairs`` is below 1, there are too few different openings, or a player chose an
            illegal action; the message says which of these.
    """
    if pairs < 1:
        raise ValueError(f"pairs={pairs}: expected at least 1")
    engine = Engine(get_ruleset(ruleset))
    openings = draw_openings(engine.ruleset, pairs, opening_plies, seed, balance)
    return play_openings(
        first, second, openings, engine, max_plies=max_plies, sprt=sprt, progress=progress
    )


def play_openings(
    first: Agent,
    second: Agent,
    openings: MatchOpenings,
    engine: Engine,
    *,
    max_plies: int = MAX_PLIES,
    sprt: Sprt | None = None,
    progress: Callable[[int], None] = lambda ended: None,
) -> Match:
    """Play a match from given openings; see :func:`play_match`."""
    step = len(openings) if sprt is None else SPRT_PAIRS
    batches: list[MatchGames] = []
    points = np.empty((0, 2))
    verdict = None
    for low in range(0, len(openings), step):
        part = openings[low : low + step]
        first_seats = np.tile(np.array([SOUTH, NORTH], np.int8), len(part))
        games = play_games(
            (first, second),
            np.repeat(part.positions, 2, axis=0),
            first_seats,
            engine,
            max_plies=max_plies,
            progress=progress,
        )
        batches.append(games)
        won = np.where(games.winners < 0, 0.5, games.winners == first_seats)
        points = np.concatenate([points, won.reshape(-1, 2)])
        if sprt is not None:
            verdict = sprt.verdict(score_pairs(points).pair_counts)
            if verdict is not None:
                break
    shape = len(points), 2
    faults = [[cause for games in batches for cause in games.faults[i]] for i in range(2)]
    longest = max(games.actions.shape[1] for games in batches)
    return Match(
        ruleset=engine.ruleset,
        openings=openings[: len(points)],
        points=points,
        plies=np.concatenate([games.plies for games in batches]).reshape(shape),
        actions=np.concatenate(
            [
                np.pad(
                    games.actions,
                    ((0, 0), (0, longest - games.actions.shape[1])),
                    constant_values=GAME_OVER,
                )
                for games in batches
            ]
        ).reshape(*shape, longest),
        moves=(sum(g.moves[0] for g in batches), sum(g.moves[1] for g in batches)),
        seconds=(sum(g.seconds[0] for g in batches), sum(g.seconds[1] for g in batches)),
        faults=(faults[0], faults[1]),
        score=score_pairs(points),
        verdict=verdict,
    )
