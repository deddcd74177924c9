"""Find what the other player can answer to each action of the next player.

The :mod:`summary <bao_agents.nets.exchanges>` of a board ends with the reply to each action. Here
each action is played, and the exchanges that the other player can then begin are summarised. The
best of these exchanges is the answer to the action. The balance of an action is now the seeds that
it captures minus the balance of its answer, where a win counts as 64 seeds. The answers to the
actions on a board are written as small integers and two boards::

    0, 1     the best balance, if it is a gain; if it is a loss
    2, 3     the second-best balance, if it is a gain; if it is a loss
    4        actions whose balance is a gain
    5        actions whose balance is not a loss
    6..18    the summary of the exchanges after the action with the best balance
    19..31   the same after the one with the second-best balance
    32..83   the board after the action with the best balance, as the other player sees it
             (:mod:`bao_env.observation.board`)
    84..135  the board after the first action of the answer to it, as the same player sees it
    136..161 how play goes on: the summary of the exchanges on that board, and the same after the
             answer to the action with the second-best balance
    162..213 the same one and two plies later, when each player has taken the action with the best
             balance
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bao_agents.array_types import Int64Array, Uint8Array
from bao_agents.nets.exchanges import BEST_GAIN, BEST_LOSS, SUMMARY_SIZE, WIN, summarise_exchanges
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.batch import step_batch
from bao_env.engine.bits import FULL, ONE, ZERO, U, trailing_zeros
from bao_env.engine.compile import jit, jit_inner
from bao_env.engine.kernel import legal_mask, play
from bao_env.engine.position import (
    META,
    NO_WINNER,
    WORDS,
    Seats,
    Words,
    mover_of,
    read_at,
    same_mover,
    write_at,
)
from bao_env.observation.actions import CAPTURED, REPLY_COLUMNS, WINS, Workspace, write_actions
from bao_env.observation.board import OBSERVATION_SIZE, observe_one

NUMBERS = 6 + 2 * SUMMARY_SIZE
"""The first small integers."""
BOARDS = 2
"""The boards after them."""
LINES_AT = NUMBERS + BOARDS * OBSERVATION_SIZE
"""Where the bytes of the two lines of play begin."""
LINE_PLIES = 3
"""Plies after the answer that they describe."""
LINE_NUMBERS = LINE_PLIES * 2 * SUMMARY_SIZE
"""The small integers of the lines."""
ANSWERS_SIZE = LINES_AT + LINE_NUMBERS
"""Bytes in all."""

_ROWS = 1024
"""Actions played out together: enough to fill the lanes, few enough for the processor's cache."""


class AnswerMemory(NamedTuple):
    """Memory for :func:`write_answers`, with a row for each action that is played. Later, the first
    rows hold the lines."""

    boards: Int64Array
    """int64[_ROWS], the board on which it is played."""
    actions: Int64Array
    """int64[_ROWS]."""
    after: Words
    """uint64[_ROWS, 6], the position after it."""
    legal: Words
    """uint64[_ROWS], the legal actions there, 0 if the game is over."""
    winners: Seats
    """int8[_ROWS], who has won there, or -1."""
    table: Uint8Array
    """uint8[_ROWS, 256 + 13], the columns of those actions (:mod:`bao_env.observation.actions`) and
    the summary of their exchanges."""
    answers: Int64Array
    """int64[_ROWS], the first action of the best of these exchanges, or -1."""

    @classmethod
    def empty(cls) -> AnswerMemory:
        """Return new memory."""
        return cls(
            np.empty(_ROWS, np.int64),
            np.empty(_ROWS, np.int64),
            np.empty((_ROWS, WORDS), np.uint64),
            np.empty(_ROWS, np.uint64),
            np.empty(_ROWS, np.int8),
            np.empty((_ROWS, REPLY_COLUMNS + SUMMARY_SIZE), np.uint8),
            np.empty(_ROWS, np.int64),
        )


@jit_inner
def _balance(memory, row, encodings, columns):
    """Return the balance of the action in a row of the memory; see :func:`write_answers`."""
    board = memory.boards[row]
    column = columns + memory.actions[row]
    if encodings[board, column + WINS] != 0:
        return np.int64(WIN)
    gain = np.int64(memory.table[row, REPLY_COLUMNS + BEST_GAIN])
    answer = gain - np.int64(memory.table[row, REPLY_COLUMNS + BEST_LOSS])
    if same_mover(memory.after[row, META]):  # Dutch I.a: the same player acts again
        answer = -answer
    balance = np.int64(encodings[board, column + CAPTURED]) - answer
    return min(max(balance, -WIN), WIN)


@jit_inner
def _play_best(rules, memory, row):
    """Play the action with the best balance in a row of the memory, if the game is not over."""
    action = memory.answers[row]
    memory.legal[row] = ZERO
    if action >= 0 and play(rules, memory.after[row], U(action)) == ZERO:
        memory.legal[row] = legal_mask(rules, memory.after[row])


@jit_inner
def _begin_line(memory, line, board, packed, legal):
    """Keep the position at which a line goes on in a row of the memory."""
    write_at(memory.after, line, packed)
    memory.legal[line] = legal
    memory.boards[line] = board


@jit_inner
def _write_one(rules, memory, first, last, line, encodings, columns, at):
    """Write the bytes of one board, whose actions are the rows ``first`` to ``last`` - 1, except
    for its lines. These begin in the rows from ``line`` on, which must not be after ``first``.

    Returns:
        the first row after the lines.
    """
    board = memory.boards[first]
    best, second = np.int64(-WIN - 1), np.int64(-WIN - 1)
    best_row, second_row = first, first
    gaining, lasting = 0, 0
    for row in range(first, last):
        balance = _balance(memory, row, encodings, columns)
        gaining += balance > 0
        lasting += balance >= 0
        if balance > best:
            second, second_row = best, best_row
            best, best_row = balance, row
        elif balance > second:
            second, second_row = balance, row
    encodings[board, at] = max(best, 0)
    encodings[board, at + 1] = max(-best, 0)
    encodings[board, at + 4] = gaining
    encodings[board, at + 5] = lasting
    for i in range(SUMMARY_SIZE):
        encodings[board, at + 6 + i] = memory.table[best_row, REPLY_COLUMNS + i]
    if last - first > 1:
        encodings[board, at + 2] = max(second, 0)
        encodings[board, at + 3] = max(-second, 0)
        for i in range(SUMMARY_SIZE):
            number = memory.table[second_row, REPLY_COLUMNS + i]
            encodings[board, at + 6 + SUMMARY_SIZE + i] = number
    # The table has been read, so its first bytes can hold the boards.
    viewer = np.int64(mover_of(memory.after[best_row, META]))
    observe_one(memory.after, best_row, viewer, ONE, memory.table, best_row)
    for i in range(OBSERVATION_SIZE):
        encodings[board, at + NUMBERS + i] = memory.table[best_row, i]
    if memory.answers[best_row] >= 0:
        _play_best(rules, memory, best_row)
        observe_one(memory.after, best_row, viewer, ONE, memory.table, best_row)
        for i in range(OBSERVATION_SIZE):
            encodings[board, at + NUMBERS + OBSERVATION_SIZE + i] = memory.table[best_row, i]
    # Both are read before either is written, because the rows may be the same.
    best_line, best_legal = read_at(memory.after, best_row), memory.legal[best_row]
    if last - first == 1:
        _begin_line(memory, line, board, best_line, best_legal)
        return line + 1
    _play_best(rules, memory, second_row)
    second_line, second_legal = read_at(memory.after, second_row), memory.legal[second_row]
    _begin_line(memory, line, board, best_line, best_legal)
    _begin_line(memory, line + 1, board, second_line, second_legal)
    return line + 2


@jit_inner
def _write_lines(rules, memory, lines, work, encodings, at):
    """Write how the lines in the first rows of the memory go on.

    Args:
        rules: the :class:`KernelRules`.
        memory: the :class:`AnswerMemory`.
        lines: the number of lines. The second line of a board follows the first one.
        work: a :class:`bao_env.observation.actions.Workspace` as a plain tuple.
        encodings: uint8[B or more, size].
        at: where the :data:`LINE_NUMBERS` bytes begin.
    """
    after, legal = memory.after[:lines], memory.legal[:lines]
    for ply in range(LINE_PLIES):
        write_actions(rules, after, legal, True, ONE, work, memory.table, 0)
        for line in range(lines):
            if legal[line] == ZERO:
                continue
            board = memory.boards[line]
            second = line > 0 and memory.boards[line - 1] == board
            place = at + (2 * ply + (1 if second else 0)) * SUMMARY_SIZE
            memory.answers[line] = summarise_exchanges(
                legal[line], memory.table, line, 0, REPLY_COLUMNS
            )
            for i in range(SUMMARY_SIZE):
                encodings[board, place + i] = memory.table[line, REPLY_COLUMNS + i]
            _play_best(rules, memory, line)


@jit
def write_answers(rules, words, legal, memory, work, encodings, columns, at):
    """Write the answers to the actions on B boards.

    Args:
        rules: the :class:`KernelRules`.
        words: uint64[B, 6], the positions.
        legal: uint64[B], their legal actions; without any, all bytes are 0.
        memory: an :class:`AnswerMemory`.
        work: a :class:`bao_env.observation.actions.Workspace` as a plain tuple.
        encodings: uint8[B or more, size].
        columns: where the columns of each board's actions begin, which must have been written.
        at: where the :data:`ANSWERS_SIZE` bytes begin.
    """
    scratch = Workspace(*work).scratch
    count = 0
    size = words.shape[0]
    for board in range(size):
        encodings[board, at : at + ANSWERS_SIZE] = 0
        packed = read_at(words, board)
        rest = legal[board]
        while rest != ZERO:
            memory.boards[count] = board
            memory.actions[count] = trailing_zeros(rest)
            rest &= rest - ONE
            write_at(memory.after, count, packed)
            memory.legal[count] = FULL  # not over yet
            memory.winners[count] = NO_WINNER
            count += 1
        if count > _ROWS - NUM_ACTIONS or board == size - 1:
            after, masks, winners = memory.after[:count], memory.legal[:count], memory.winners
            step_batch(rules, after, memory.actions, masks, winners, scratch)
            write_actions(rules, after, masks, True, ONE, work, memory.table, 0)
            first = lines = 0
            for row in range(count):
                memory.answers[row] = summarise_exchanges(
                    masks[row], memory.table, row, 0, REPLY_COLUMNS
                )
                if row == count - 1 or memory.boards[row + 1] != memory.boards[row]:
                    lines = _write_one(rules, memory, first, row + 1, lines, encodings, columns, at)
                    first = row + 1
            _write_lines(rules, memory, lines, work, encodings, at + LINES_AT)
            count = 0
