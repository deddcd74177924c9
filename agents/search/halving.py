"""Sequential halving: which root actions the simulations of a search are spent on.

Karnin, Koren and Somekh, "Almost optimal exploration in multi-armed bandits" (ICML 2013),
algorithm 1: a budget is split evenly over ceil(log2 n) rounds, and in each round evenly over the
actions that are left, of which the better half stays for the next.

The paper leaves three things out that a search needs, and they are settled here:

* An odd number is halved downwards (the paper: upwards), and two stay to the end.
* An action that is left is tried at least once a round, even if its share is less than one, so a
  small budget runs out in an early round.
* What the divisions leave over goes on to the last two, round after round, until it is spent.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Round(NamedTuple):
    """A round of sequential halving."""

    survivors: int
    """Actions that are left."""
    visits: int
    """How often each of them is tried."""


def halving_rounds(actions: int, simulations: int) -> Iterator[Round]:
    """The rounds in which ``simulations`` are spent on ``actions``; the last may be cut short."""
    share = simulations // max(1, (actions - 1).bit_length())  # of each round
    finalists = max(1, min(actions, 2))
    spent = 0
    for halvings in count():
        if spent >= simulations:
            return
        survivors = max(actions >> halvings, finalists)
        visits = max(1, share // survivors)
        yield Round(survivors, visits)
        spent += survivors * visits


def visit_schedule(actions: int, simulations: int) -> npt.NDArray[np.int32]:
    """How often the action that each simulation is to try has been tried before.

    All that are left in a round have been tried equally often. So a search follows the schedule if
    it always tries the most promising of the actions that were tried as often as it says.

    Args:
        actions: how many are considered; 0 is taken for 1.
        simulations: the budget, at least 1.

    Returns:
        int32[simulations].
    """
    parts = []
    before = 0
    for survivors, visits in halving_rounds(actions, simulations):
        parts.append(np.repeat(np.arange(before, before + visits, dtype=np.int32), survivors))
        before += visits
    return np.concatenate(parts)[:simulations]
