"""Observe the result of each action: its captures, and the opponent's best reply.

Each group has a column for each of the 64 actions, zero where the action is illegal::

    0..63     seeds that the action captures
    64..127   1 if it wins at once: the opponent's front row is empty, or they have no legal move
    128..191  most seeds that the opponent can capture in reply
    192..255  1 if a reply wins at once, by emptying the player's front row or by leaving them no
              hole to play from (1.2)

The last two groups are zero where there is no reply: the game is over, or the same player acts
again (Dutch I.a). As in :mod:`bao_env.observation.board`, seeds are counts as uint8, and eighths as
float32. The last flag looks only at the rows: it stays 0 if a reply leaves the player only infinite
moves (1.5a).

An observation plays out about twenty moves. The moves of many games run side by side in the
engine's lanes.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bao_env.compiled.compile import jit, jit_inline
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.bits import ONE, ZERO, U, byte, sum_of_bytes, trailing_zeros
from bao_env.engine.kernel import legal_of
from bao_env.engine.lanes import (
    FIND_BEST,
    PLAY,
    Scratch,
    best_capture,
    legal_job,
    make_scratch,
    play_job,
    run,
)
from bao_env.engine.position import (
    NO_WINNER,
    WORDS,
    Actions,
    Legal,
    PackedPositions,
    Rows,
    Seats,
    load_rows_at,
    mover_of,
    other_store_of,
    pending_of,
    same_mover,
    store_rows_at,
)
from bao_env.engine.ruleset import KernelRules
from bao_env.engine.start_encoding import start_of
from bao_env.engine.starts import candidates, cannot_play, is_capture
from bao_env.observation.board import OBSERVATION_SIZE, Scale, SeedObserver, observe_compiled

CAPTURED = 0
WINS = 64
REPLY_CAPTURED = 128
REPLY_WINS = 192
COLUMNS = 256

_ROWS = 1024
"""The number of actions played out together: enough to fill the engine's lanes, and few enough for
the processor's cache."""
_scratch = threading.local()
"""Each thread's :class:`Workspace`."""


class Workspace(NamedTuple):
    """A thread's scratch memory, with a row for each action being played out."""

    after: PackedPositions
    """uint64[_ROWS, 6], the positions after the actions."""
    seats: Seats
    """int8[_ROWS], the seat that has won in each of these positions, or -1."""
    best: npt.NDArray[np.uint64]
    """uint64[_ROWS], what the opponent's replies can do there, as bits that :func:`best_capture`
    reads."""
    games: npt.NDArray[np.int64]
    """int64[_ROWS], the game of each action."""
    actions: Actions
    """int64[_ROWS], the actions themselves."""
    scratch: Scratch

    @classmethod
    def empty(cls) -> Workspace:
        """Return a new workspace."""
        return cls(
            np.empty((_ROWS, WORDS), np.uint64),
            np.empty(_ROWS, np.int8),
            np.empty(_ROWS, np.uint64),
            np.empty(_ROWS, np.int64),
            np.empty(_ROWS, np.int64),
            make_scratch(_ROWS),
        )


@jit_inline
def _captured(before: Rows, after: Rows) -> U:
    """Return the seeds that an action has captured, from the positions before and after it."""
    theirs = sum_of_bytes(before.other_front)
    if same_mover(after.meta):  # Dutch I.a: the capture waits, its seeds still in their pit
        waiting = byte(after.other_front, U(7) - pending_of(after.meta))
        return theirs - sum_of_bytes(after.other_front) + waiting
    return theirs - sum_of_bytes(after.front)


@jit
def _play_out(rules: KernelRules, positions: PackedPositions, count: int, work: Workspace) -> None:
    """Play out ``count`` actions of the workspace: fill ``after`` and ``seats``."""
    for row in range(count):
        g = work.games[row]
        rows = load_rows_at(positions, g)
        action = U(work.actions[row])
        capture_turn = is_capture(rules, rows, action)
        work.scratch[0][row] = play_job(
            row, capture_turn, action, start_of(rows.meta, capture_turn, action)
        )
        store_rows_at(work.after, row, rows)
        work.seats[row] = NO_WINNER
    run(rules, work.after, work.best, work.seats, count, work.scratch, PLAY)


@jit
def _reply(rules: KernelRules, count: int, work: Workspace) -> None:
    """Play out the replies to ``count`` actions: fill ``best``, and ``seats`` if no reply is legal.

    If no reply can capture or win, one legal reply is enough.
    """
    jobs = np.int64(0)  # numba would compile run() separately for a literal 0
    for row in range(count):
        work.best[row] = ZERO
        rows = load_rows_at(work.after, row)
        if work.seats[row] >= 0 or same_mover(rows.meta):
            continue
        capture_turn, starts = candidates(rules, rows)
        # A takasa leaves the other player's rows as they are: it wins only if that player is stuck.
        stuck = cannot_play(rows.other_front, rows.other_back, other_store_of(rows.meta))
        all_replies = capture_turn or stuck
        while starts != ZERO:
            start = trailing_zeros(starts)
            starts &= starts - ONE
            work.scratch[0][jobs] = legal_job(row, capture_turn, ZERO, start)
            jobs += 1
            if not all_replies:
                break
    run(rules, work.after, work.best, work.seats, jobs, work.scratch, FIND_BEST)
    for row in range(count):
        rows = load_rows_at(work.after, row)
        if work.seats[row] >= 0 or same_mover(rows.meta):
            continue
        captured, wins, legal = best_capture(work.best[row])
        if not legal and legal_of(rules, work.after[row]) == ZERO:
            work.seats[row] = np.int8(ONE - mover_of(rows.meta))  # 1.2, 1.5a: no legal move


@jit
def _write_rows(
    positions: PackedPositions, count: int, scale: Scale, work: Workspace, out: npt.NDArray[Any]
) -> None:
    """Write the results of ``count`` actions into their columns of ``out``."""
    for row in range(count):
        g = work.games[row]
        before, after = load_rows_at(positions, g), load_rows_at(work.after, row)
        at = OBSERVATION_SIZE + work.actions[row]
        out[g, at + CAPTURED] = _captured(before, after) * scale
        seat = work.seats[row]
        out[g, at + WINS] = seat == np.int8(mover_of(before.meta))
        if seat < 0:
            captured, wins, legal = best_capture(work.best[row])
            out[g, at + REPLY_CAPTURED] = captured * scale
            out[g, at + REPLY_WINS] = wins


@jit
def write_actions(
    rules: KernelRules,
    positions: PackedPositions,
    legal: Legal,
    scale: Scale,
    work: tuple[Any, ...],
    out: npt.NDArray[Any],
) -> None:
    """Write the result of each legal action.

    Args:
        rules: the :class:`KernelRules`.
        positions: uint64[B, 6].
        legal: uint64[B], the legal actions; where there are none, all columns are 0.
        scale: multiplies the seeds: uint64 1 for uint8 ``out``, else a float32.
        work: a :class:`Workspace` as a plain tuple, which numba recognises faster.
        out: uint8 or float32 [B, 308], whose last 256 columns are filled.
    """
    work = Workspace(*work)
    count = 0
    size = positions.shape[0]
    for g in range(size):
        out[g, OBSERVATION_SIZE:] = 0
        unwritten = legal[g]
        while unwritten != ZERO:
            work.games[count] = g
            work.actions[count] = trailing_zeros(unwritten)
            unwritten &= unwritten - ONE
            count += 1
        if count > _ROWS - NUM_ACTIONS or g == size - 1:
            _play_out(rules, positions, count, work)
            _reply(rules, count, work)
            _write_rows(positions, count, scale, work, out)
            count = 0


def workspace() -> tuple[Any, ...]:
    """Return this thread's :class:`Workspace`, as a plain tuple."""
    if not hasattr(_scratch, "work"):
        _scratch.work = tuple(Workspace.empty())
    work: tuple[Any, ...] = _scratch.work
    return work


class Replies(SeedObserver):
    """The observer ``"replies"``: the bare board, then the columns of its actions.

    The rules decide what actions and replies capture.
    """

    shape: tuple[int, ...] = (OBSERVATION_SIZE + COLUMNS,)

    def fill(
        self,
        positions: PackedPositions,
        legal: Legal,
        viewers: Seats,
        arrays: npt.NDArray[Any],
    ) -> None:
        """Write boards and columns; see :meth:`bao_env.observation.observer.Observer.fill`."""
        observe_compiled(positions, viewers, self._scale, arrays)
        write_actions(self._rules, positions, legal, self._scale, workspace(), arrays)
