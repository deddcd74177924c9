"""Measure what occurs in random games."""

from __future__ import annotations

from typing import Any

import numpy as np

from bao_agents.support.array_types import Int64Array
from bao_env import Engine
from bao_env.compiled.compile import jit
from bao_env.engine.bits import ZERO, U, popcount
from bao_env.engine.position import META, NO_PIT, Legal, PackedPositions, barred_of
from bao_env.engine.ruleset import RULESETS, KernelRules
from bao_env.engine.sampling import random_actions, random_states
from bao_env.engine.starts import startable
from docs.measurements.parts import Part, rows_of

_HOUSE_IS_PLAYED = U(0xAAAAAAAAAAAAAAAA)
"""The actions that play the house, as bits."""


@jit
def _count(
    rules: KernelRules, positions: PackedPositions, legal: Legal, counts: Int64Array
) -> None:
    """Count what occurs in the positions of running games; ``legal`` is 0 where a game is over.

    Increase counts, int64[5]: positions, legal actions, and the positions with a house choice, with
    a pit barred by takasia, and with an endless move.
    """
    for game in range(positions.shape[0]):
        if legal[game] == ZERO:
            continue
        _, starts = startable(rules, positions[game])
        counts[0] += 1
        counts[1] += np.int64(popcount(legal[game]))
        counts[2] += np.int64((legal[game] & _HOUSE_IS_PLAYED) != ZERO)
        counts[3] += np.int64(barred_of(positions[game, META]) != NO_PIT)
        counts[4] += np.int64((starts & ~legal[game]) != ZERO)


GAMES = 1_000_000
"""The games of each rule set."""


def random_games(ruleset: str, games: int) -> list[str]:
    """Play random games to their ends, and return the cells of a rule set."""
    engine, batch = Engine(ruleset), 8192
    counts, south_wins = np.zeros(5, np.int64), 0
    sequence = np.random.SeedSequence(0)
    for played in range(0, games, batch):
        positions, legal, winners = engine.new_games(min(batch, games - played))
        actions = np.empty(len(legal), np.int64)
        rng = random_states(len(legal), sequence.spawn(1)[0])
        while legal.any():
            _count(engine.rules, positions, legal, counts)
            random_actions(legal, rng, actions)
            engine.step(positions, actions, legal, winners)
        south_wins += int((winners == 0).sum())
    plies = int(counts[0])
    legal_actions, houses, barred, endless = (counts[1:] / plies).tolist()
    mantissa, exponent = f"{endless:.1e}".split("e")
    return [
        f"{plies / games:.1f}",
        f"{legal_actions:.2f}",
        f"{100 * south_wins / games:.1f}",
        f"{100 * houses:.1f}" if engine.ruleset.house else "",
        f"{100 * barred:.2f}" if engine.ruleset.takasia == "zanzibar" else "",
        f"{mantissa}e{int(exponent)}",
    ]


def random_parts() -> tuple[Part, ...]:
    """Return the random games of each rule set."""

    def part(ruleset: str) -> Part:
        call = f"random_games({ruleset!r}, {GAMES:_})"
        return Part(call, 1, lambda folder: random_games(ruleset, GAMES))

    return tuple(map(part, RULESETS))


def random_lines(results: list[Any]) -> list[list[str]]:
    """Return the cells of the table of random games."""
    heads = ["rule set", "plies a game", "legal actions", "South wins, %", "house choices, %"]
    names = [f"`{name}`" for name in RULESETS]
    return [[*heads, "takasia, %", "an endless move"], *rows_of(names, results)]
