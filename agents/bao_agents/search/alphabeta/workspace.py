"""Define the memory of one thread's alpha-beta search.

All memory but the transposition table is one record, which compiled functions pass as a single
pointer. Passing the arrays one by one would take longer than many of the functions themselves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bao_agents.search.alphabeta.reductions import REDUCTIONS, STANDARD, Reductions
from bao_agents.support.array_types import Uint64Array
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.successors import MAX_SUCCESSORS, SUCCESSOR_WORDS

MAX_DEPTH = 60
"""The greatest depth of a search, in plies."""
MARKS = 1 << 15
"""The number of slots in which threads mark the successors that they are searching."""
MAX_SEARCH_PLIES = 2 * MAX_DEPTH
"""The longest line, in plies. It may exceed the depth, because forced actions and the choice of a
capture's side cost no depth."""

_ROWS = 1 + MAX_SEARCH_PLIES * MAX_SUCCESSORS

FRAME = np.dtype(
    (
        np.record,
        [
            # What to search.
            ("row", np.int64),  # the row of the stack that holds its position
            ("depth", np.int64),  # plies to the horizon
            ("alpha", np.int64),
            ("beta", np.int64),
            ("half_plies", np.int64),  # 0 or 1, saved by earlier forced actions
            # The node.
            ("key", np.uint64),  # hash of the position
            ("tt_move", np.int64),  # action that the transposition table would try first
            ("by_policy", np.int64),  # 1 if a network has ordered the actions
            ("first", np.int64),  # row of the first successor
            ("end", np.int64),  # row after the last one
            ("next", np.int64),  # row of the current successor
            ("low", np.int64),  # alpha, or the best value if that is higher
            ("best", np.int64),
            ("best_action", np.int64),
            # The search of the current successor.
            ("again", np.int64),  # 1 if the same player acts again
            ("high", np.int64),  # the upper end of its window; `low` is the lower
            ("reduced", np.int64),  # its reduction, in plies
            ("mark", np.uint64),  # its hash in `Workspace.marks`, or 0
        ],
    )
)
"""The node at one ply of the current line. It replaces the local variables of a recursive
search."""

MEMORY = np.dtype(
    (
        np.record,
        [
            # The search.
            ("threads", np.int64),  # the number that search the position together; 0 in a batch
            ("nodes", np.int64),  # visited so far by this thread
            ("node_limit", np.int64),
            ("deadline", np.int64),  # see bao_agents.search.limits
            ("look_at", np.int64),  # nodes at which to check the limits
            ("compare_at", np.int64),  # nodes at which to look for other threads' values
            ("has_clock", np.int64),  # 1 if an easy move saves time for the next ones
            ("stopped", np.int64),  # 1 once a limit has ended the search
            ("actions", np.uint64),  # the bits of the root's actions to choose from
            ("left_out", np.uint64),  # the bits of its other legal actions
            ("iteration", np.int64),  # depth of the current iteration, in plies
            ("finished", np.int64),  # depth of the last finished iteration
            ("value", np.int64),  # value of the root, as far as it is known
            ("searches", np.uint64),  # number of searches so far, including this one
            ("last_epoch", np.uint64),  # the last epoch of the thread's own table
            ("epoch", np.uint64),  # the epoch whose transposition table entries it reads
            ("reductions", REDUCTIONS),
            # The current line: a frame for each ply, and the best line from each ply, which
            # ends with NO_ACTION.
            ("frames", FRAME, (MAX_SEARCH_PLIES,)),
            ("lines", np.int8, (MAX_SEARCH_PLIES, MAX_SEARCH_PLIES + 1)),
            # The root, then space for the successors of the node at each ply, in the form of
            # bao_env.engine.successors; and the scores that order them.
            ("stack", np.uint64, (_ROWS, SUCCESSOR_WORDS)),
            ("scores", np.int64, (_ROWS,)),
            # For each action of the node at each ply, the gap between the highest logit and its
            # own, in 1024ths, if a network has ordered the actions.
            ("gaps", np.int64, (MAX_SEARCH_PLIES, NUM_ACTIONS)),
            # The last action that caused a cutoff at each ply; and for each action of either seat
            # the sum of depth^2 of the nodes that it cut off.
            ("killers", np.int64, (MAX_SEARCH_PLIES,)),
            ("history", np.int64, (2, NUM_ACTIONS)),
        ],
    )
)
"""The memory of a search."""


class Workspace(NamedTuple):
    """The memory of a thread."""

    table: Uint64Array
    """The transposition table (:mod:`bao_agents.search.alphabeta.transposition`)."""
    memory: npt.NDArray[Any]
    """One record of :data:`MEMORY`."""
    marks: Uint64Array
    """uint64[:data:`MARKS`], the hashes of the successors that some thread is searching now. All
    threads of a player share this array."""


def make_workspaces(
    count: int, table_words: int, reductions: Reductions = STANDARD
) -> list[Workspace]:
    """Return the workspaces of a player's threads, each with an empty table."""
    marks = np.zeros(MARKS, np.uint64)
    workspaces = []
    for _ in range(count):
        memory = np.zeros(1, MEMORY)
        memory["reductions"] = tuple(reductions)
        workspaces.append(Workspace(np.zeros(table_words, np.uint64), memory, marks))
    return workspaces
