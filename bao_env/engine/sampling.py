"""Draw random actions, with one generator per game.

The actions of a game do not depend on the batch that it is in, or on the number of threads.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bao_env.compiled.compile import jit
from bao_env.engine.argument_checks import check_array, check_output, length_of
from bao_env.engine.bits import ZERO, U, popcount, select_bit, xorshift
from bao_env.engine.position import Actions, Legal

RandomStates = npt.NDArray[np.uint64]
"""The state of a generator for each game, uint64[B], none of them 0."""

_HIGH_HALF_SHIFT = U(32)


def random_states(size: int, seed: int | np.random.SeedSequence) -> RandomStates:
    """Return generator states for random play, uint64[size], all of them non-zero."""
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return sequence.generate_state(size, np.uint64) | np.uint64(1)


def random_actions(legal: Legal, rng: RandomStates, actions: Actions) -> None:
    """Fill ``actions``, int64[B], with uniformly random legal actions (0 where a game is over).

    Args:
        legal: uint64[B], the legal actions.
        rng: uint64[B], generator states (:func:`random_states`), advanced in place.
        actions: int64[B].

    Raises:
        TypeError, ValueError: an array has another type, shape or layout.
    """
    size = length_of(legal)
    check_array("legal", legal, np.uint64, (size,))
    check_output("rng", rng, np.uint64, (size,))
    check_output("actions", actions, np.int64, (size,))
    draw_actions(legal, rng, actions)


@jit
def draw_actions(legal: Legal, rng: RandomStates, actions: Actions) -> None:
    """Fill ``actions`` as :func:`random_actions` does, unchecked; ``actions`` may be longer."""
    for i in range(legal.shape[0]):
        actions[i] = 0
        if legal[i] != ZERO:
            rng[i] = xorshift(rng[i])
            share = (rng[i] >> _HIGH_HALF_SHIFT) * popcount(legal[i])
            actions[i] = select_bit(legal[i], share >> _HIGH_HALF_SHIFT)
