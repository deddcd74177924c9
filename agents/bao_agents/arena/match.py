"""Play a match between two players: pairs of games, until a sequential test ends it.

:func:`play_match` plays in this process, with any two objects. :func:`play_named` plays parts of a
match on a scheduler's workers, with players that every process can load by their names.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from bao_agents.arena.elo import Sprt
from bao_agents.arena.games import MAX_PLIES
from bao_agents.arena.openings import BALANCE, OPENING_PLIES, draw_openings
from bao_agents.arena.pairs import Pairs, play_pairs
from bao_agents.arena.scheduler import PART_PAIRS, Event, Workers
from bao_agents.support.progress import Progress
from bao_env.bots import Agent
from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import Ruleset, get_ruleset

SPRT_PAIRS = 50
"""Least number of pairs between two checks of a sequential test."""
LEAST_PARTS = 16
"""Parts of a match, if it has as many pairs: a match of few pairs between slow players uses several
cores too."""


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
    names: tuple[str, str] | None = None,
    progress: Callable[[int], None] = lambda ended: None,
) -> Pairs:
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
        names: keep the games as transcripts, with these names of the players.
        progress: called after each ply with the number of games that have just ended.

    Raises:
        ValueError: ``pairs`` is below 1, there are too few different openings, or a player chose an
            illegal action; the message says which of these.
    """
    if pairs < 1:
        raise ValueError(f"pairs={pairs}: expected at least 1")
    engine = Engine(get_ruleset(ruleset))
    openings = draw_openings(engine.ruleset, pairs, opening_plies, seed, balance)
    played = Pairs()
    step = pairs if sprt is None else SPRT_PAIRS
    for low in range(0, pairs, step):
        some = range(low, min(low + step, pairs))
        played += play_pairs(
            first,
            second,
            openings[low : low + step],
            engine,
            max_plies=max_plies,
            names=names,
            numbers=some,
            progress=progress,
        )
        if sprt is not None and sprt.verdict(played.score.pair_counts) is not None:
            break
    return played


def play_named(
    event: Event, first: str, second: str, workers: Workers, bar: Progress, sprt: Sprt | None = None
) -> Pairs:
    """Play all openings of an event between two of its players.

    A sequential test looks at the parts in their planned order, whichever ends first. So neither
    the number of processes nor their speed changes its verdict.

    Args:
        event: the event.
        first, second: the names of the players.
        workers: they play the parts.
        bar: counts the games.
        sprt: stop as soon as this test has a verdict; checked after :data:`SPRT_PAIRS` more pairs.

    Raises:
        ValueError: a player failed; see :meth:`~bao_agents.arena.scheduler.Part.play`.
    """
    size = min(PART_PAIRS, math.ceil(len(event.openings) / LEAST_PARTS))
    planned = event.parts(first, second, size)
    ended: dict[int, Pairs] = {}
    played, checked, following = Pairs(), 0, 0
    for part, pairs in workers.play(planned, bar):
        ended[planned.index(part)] = pairs
        while following in ended:
            played += ended.pop(following)
            following += 1
            if sprt is not None and len(played) >= checked + SPRT_PAIRS:
                checked = len(played)
                if sprt.verdict(played.score.pair_counts) is not None:
                    return played
    return played
