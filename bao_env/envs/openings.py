"""Where games begin: at the opening of the rules, or some random plies after it.

An opponent that plays the same moves each time, from the same opening, is beaten by learning one
line by heart. A few random plies make every game another one.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from bao_env.engine.batch import Engine
from bao_env.engine.bits import ONE, ZERO, popcount, select_bit, xorshift
from bao_env.engine.compile import jit
from bao_env.engine.kernel import legal_mask, play
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import WORDS
from bao_env.engine.ruleset import Ruleset

OpeningPlies: TypeAlias = int | tuple[int, int]
"""How many random plies open a game: a number, or the lowest and the highest of a range."""

AGAINST_AN_OPPONENT: Final = (0, 8)
"""What is used against an opponent, if nothing else is asked for."""
MAX_OPENING_PLIES: Final = 40
"""More would end too many games before they begin."""


def check_opening_plies(
    plies: OpeningPlies | None, max_plies: int, *, against_an_opponent: bool = False
) -> tuple[int, int]:
    """The lowest and the highest number of random plies; None stands for the default.

    Raises:
        ValueError: they are not integers from 0 to :data:`MAX_OPENING_PLIES`, in order, or leave
            none of ``max_plies`` to play.
    """
    if plies is None:
        low, high = AGAINST_AN_OPPONENT if against_an_opponent else (0, 0)
        return low, min(high, max_plies - 1)
    bounds = tuple(plies) if isinstance(plies, (tuple, list)) else (plies, plies)
    integers = all(isinstance(n, (int, np.integer)) for n in bounds)
    if not integers or len(bounds) != 2 or not 0 <= bounds[0] <= bounds[1] <= MAX_OPENING_PLIES:
        raise ValueError(
            f"opening_plies={plies!r}: expected an integer from 0 to {MAX_OPENING_PLIES}, or the "
            "lowest and the highest of a range"
        )
    low, high = bounds
    if high >= max_plies:
        raise ValueError(f"opening_plies={plies!r}: max_plies={max_plies} would leave none to play")
    return int(low), int(high)


@jit
def _play_randomly(rules, positions, masks, plies, states):
    """Play random legal plies; a game that would end with them begins again.

    Args:
        rules: the :class:`KernelRules`.
        positions: uint64[n, 6], the openings; played on in place.
        masks: uint64[n], their legal actions; become those of the new positions.
        plies: int64[n], how many.
        states: uint64[n], random states, none of them zero.
    """
    start = np.empty(WORDS, np.uint64)
    for g in range(masks.shape[0]):
        start[:] = positions[g]
        start_mask, state = masks[g], states[g]
        left = plies[g]
        while left > 0:
            state = xorshift(state)
            action = select_bit(masks[g], (state >> ONE) % popcount(masks[g]))
            result = play(rules, positions[g], action)
            masks[g] = legal_mask(rules, positions[g]) if result == ZERO else ZERO
            left -= 1
            if masks[g] == ZERO:
                positions[g] = start
                masks[g] = start_mask
                left = plies[g]


class Openings:
    """Draws where games begin.

    Args:
        ruleset: the rules.
        plies: the lowest and the highest number of random plies; see :func:`check_opening_plies`.
    """

    def __init__(self, ruleset: Ruleset, plies: tuple[int, int] = (0, 0)) -> None:
        self._rules = ruleset.kernel_rules()
        self._by_lot = ruleset.first_player == "lot"
        self.plies = plies
        starts = [Engine(ruleset).opening(seat) for seat in (SOUTH, NORTH)]
        self._positions = np.array([words for words, _ in starts])
        self._masks = np.array([mask for _, mask in starts])

    def draw(
        self,
        count: int,
        rng: np.random.Generator,
        first_player: int | npt.NDArray[np.int8] | None = None,
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """Where ``count`` games begin: positions uint64[count, 6] and masks uint64[count].

        Args:
            count: number of games.
            rng: draws lots and plies, if there are any, and nothing else.
            first_player: a seat, or one for each game; None for the rule set's own rule, South or
                by lot.
        """
        if first_player is None:
            first_player = rng.integers(2, size=count, dtype=np.int8) if self._by_lot else SOUTH
        firsts = np.broadcast_to(np.asarray(first_player), count)
        positions, masks = self._positions[firsts], self._masks[firsts]
        low, high = self.plies
        if high:
            plies = rng.integers(low, high + 1, size=count)
            states = rng.integers(1, 2**64, size=count, dtype=np.uint64)
            _play_randomly(self._rules, positions, masks, plies, states)
        return positions, masks
