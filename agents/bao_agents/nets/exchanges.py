"""Summarise the exchanges that the next player's actions begin, as small integers.

An exchange is an action and the best reply to it. Its balance is the seeds that the action captures
minus those that the reply captures, where a win counts as :data:`WIN` seeds. A network finds such a
maximum over all actions hard to compute from the columns of the actions::

    0        legal actions
    1        those that capture
    2        those to which no reply wins
    3        those to which no reply captures
    4        those that capture more than the reply to them
    5        most seeds that one action captures
    6        the same, if no reply captures
    7, 8     the best balance, if it is a gain; if it is a loss
    9, 10    the seeds captured by that action; by the reply to it
    11, 12   the second-best balance, if it is a gain; if it is a loss
"""

from __future__ import annotations

import numpy as np

from bao_env.engine.bits import ONE, ZERO, popcount, trailing_zeros
from bao_env.engine.compile import jit
from bao_env.observation.actions import CAPTURED, REPLY_CAPTURED, REPLY_WINS, WINS

SUMMARY_SIZE = 13
BEST_GAIN = 7
BEST_LOSS = 8
"""The numbers of the best balance."""
WIN = 64
"""The seeds that a win counts for: all of them."""


@jit
def summarise_exchanges(legal, encodings, k, columns, at):
    """Write the summary of the exchanges of one position.

    Args:
        legal: uint64, the legal actions of the player to move.
        encodings: uint8[R, size].
        k: the row that holds the position.
        columns: where the 256 columns of its actions begin (:mod:`bao_env.observation.actions`).
        at: where its summary begins.

    Returns:
        int64, the action with the best balance; -1 if there is no action.
    """
    capturing, lasting, safe, gaining = 0, 0, 0, 0
    most, most_safe = 0, 0
    best, second = -WIN - 1, -WIN - 1
    best_captured, best_reply = 0, 0
    best_action = np.int64(-1)
    rest = legal
    while rest != ZERO:
        action = np.int64(trailing_zeros(rest))
        column = columns + action
        rest &= rest - ONE
        captured = np.int64(encodings[k, column + CAPTURED])
        reply = np.int64(encodings[k, column + REPLY_CAPTURED])
        capturing += captured > 0
        most = max(most, captured)
        if encodings[k, column + REPLY_WINS] != 0:
            reply = WIN
        else:
            lasting += 1
        if encodings[k, column + WINS] != 0:
            captured = WIN
        gaining += captured > reply
        if reply == 0:
            safe += 1
            most_safe = max(most_safe, captured)
        if captured - reply > best:
            second = best
            best, best_captured, best_reply = captured - reply, captured, reply
            best_action = action
        elif captured - reply > second:
            second = captured - reply
    actions = np.int64(popcount(legal))
    best = best if actions > 0 else 0
    second = second if actions > 1 else 0
    encodings[k, at] = actions
    encodings[k, at + 1] = capturing
    encodings[k, at + 2] = lasting
    encodings[k, at + 3] = safe
    encodings[k, at + 4] = gaining
    encodings[k, at + 5] = most
    encodings[k, at + 6] = most_safe
    encodings[k, at + 7] = max(best, 0)
    encodings[k, at + 8] = max(-best, 0)
    encodings[k, at + 9] = best_captured
    encodings[k, at + 10] = best_reply
    encodings[k, at + 11] = max(second, 0)
    encodings[k, at + 12] = max(-second, 0)
    return best_action
