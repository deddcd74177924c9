"""Start games at the opening position of the rules, or some random plies after it.

A deterministic opponent can be beaten by memorising one line of play. A few random opening plies
make games differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bao_env.compiled.compile import jit
from bao_env.engine.argument_checks import as_integer
from bao_env.engine.batch import Engine
from bao_env.engine.bits import ONE, ZERO, popcount, select_bit, xorshift
from bao_env.engine.kernel import advance, legal_of
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import WORDS, Legal, PackedPositions, to_packed
from bao_env.engine.ruleset import KernelRules, Ruleset
from bao_env.engine.sampling import RandomStates
from bao_env.notation.positions import parse_position

OpeningPlies: TypeAlias = int | tuple[int, int]
"""Random plies that open a game: a number, or the lowest and the highest of a range."""

AGAINST_AN_OPPONENT = (0, 8)
"""Default range of random opening plies when there is an opponent."""
MAX_OPENING_PLIES = 40
"""The largest number of random plies; more would end too many games before they begin."""
MAX_DRAWS = 100
"""How many openings a reset draws before it gives up because the opponent wins immediately."""


def check_opening_plies(
    plies: OpeningPlies | None, max_plies: int, *, against_an_opponent: bool = False
) -> tuple[int, int]:
    """Return the lowest and the highest number of random plies; None means the default.

    Raises:
        ValueError: they are not integers from 0 to :data:`MAX_OPENING_PLIES`, in order, or leave
            no ply of ``max_plies`` to play.
    """
    if plies is None:
        low, high = AGAINST_AN_OPPONENT if against_an_opponent else (0, 0)
        return low, min(high, max_plies - 1)
    bounds = tuple(plies) if isinstance(plies, (tuple, list)) else (plies, plies)
    bounds = tuple(as_integer(n, "opening_plies", 0, MAX_OPENING_PLIES) for n in bounds)
    if len(bounds) != 2 or bounds[0] > bounds[1]:
        raise ValueError(
            f"opening_plies={plies!r}: expected a number, or the lowest and the highest of a range"
        )
    if bounds[1] >= max_plies:
        raise ValueError(
            f"opening_plies={plies!r}: expected fewer than max_plies={max_plies}, so that plies "
            "are left to play"
        )
    return bounds


@jit
def _play_randomly(
    rules: KernelRules,
    positions: PackedPositions,
    legal: Legal,
    plies: npt.NDArray[np.int64],
    states: RandomStates,
    start: PackedPositions,
) -> None:
    """Play random legal plies; a game that ends on the way restarts.

    Args:
        rules: the :class:`KernelRules`.
        positions: uint64[n, 6], the openings; played on in place.
        legal: uint64[n], their legal actions; become those of the new positions.
        plies: int64[n], the number of plies.
        states: uint64[n], random states, none of them zero.
        start: uint64[6], overwritten with each game's opening.
    """
    for g in range(legal.shape[0]):
        for word in range(WORDS):  # a slice would also compile its error messages
            start[word] = positions[g, word]
        start_legal, state = legal[g], states[g]
        left = plies[g]
        while left > 0:
            state = xorshift(state)
            action = select_bit(legal[g], (state >> ONE) % popcount(legal[g]))
            legal[g], winner, stuck = advance(rules, positions[g], action)
            left -= 1
            if legal[g] == ZERO:
                for word in range(WORDS):
                    positions[g, word] = start[word]
                legal[g] = start_legal
                left = plies[g]


class Openings:
    """Draw the positions at which games begin.

    Args:
        ruleset: the rules.
        plies: the lowest and the highest number of random plies; see :func:`check_opening_plies`.
    """

    def __init__(self, ruleset: Ruleset, plies: tuple[int, int] = (0, 0)) -> None:
        self._ruleset = ruleset
        self._rules = ruleset.kernel
        self.plies = plies
        starts = [Engine(ruleset).opening(seat) for seat in (SOUTH, NORTH)]
        self._positions = np.array([packed for packed, _ in starts])
        self._legal = np.array([legal for _, legal in starts])

    def draw(
        self,
        count: int,
        rng: np.random.Generator,
        first_player: int | None = None,
    ) -> tuple[PackedPositions, Legal]:
        """Draw starting positions, uint64[count, 6], and their legal actions, uint64[count].

        Args:
            count: number of games.
            rng: the generator for who begins and for the opening plies, if they are random.
            first_player: the seat that begins; None for the rule set's own rule: South, or a random
                seat for each game.
        """
        first: int | npt.NDArray[np.int8] = SOUTH if first_player is None else first_player
        if first_player is None and self._ruleset.first_player == "random":
            first = rng.integers(2, size=count, dtype=np.int8)
        firsts = np.full(count, first)
        positions, legal = self._positions[firsts], self._legal[firsts]
        low, high = self.plies
        if high:
            plies = rng.integers(low, high + 1, size=count)
            states = rng.integers(1, 2**64, size=count, dtype=np.uint64)
            start = np.empty(WORDS, np.uint64)
            _play_randomly(self._rules, positions, legal, plies, states, start)
        return positions, legal

    def from_texts(self, texts: Sequence[Any]) -> tuple[PackedPositions, Legal]:
        """Return the positions of position texts, uint64[n, 6], and their legal actions uint64[n].

        Raises:
            TypeError: a text is not a string.
            ValueError: a string is not a position, or the game is over there.
        """
        starts: dict[str, tuple[PackedPositions, np.uint64]] = {}
        for text in texts:
            if isinstance(text, str) and text in starts:
                continue
            packed = to_packed(parse_position(text, self._ruleset))  # refuses what is no string
            starts[text] = packed, legal_of(self._rules, packed)
            if not starts[text][1]:
                raise ValueError(
                    "position: the game is already over, because the mover has no legal move: "
                    f"{text}"
                )
        positions, legal = zip(*(starts[text] for text in texts), strict=True)
        return np.array(positions), np.array(legal, np.uint64)
