"""Run the kernel on many games at once: in place, in caller-owned buffers, on several threads.

Games are processed in blocks of :data:`~bao_env.engine.lanes.BLOCK`, whose moves run side by side
in the lanes (:mod:`bao_env.engine.lanes`).

Arrays: ``positions`` uint64[B, 6] (:mod:`bao_env.engine.position`), ``legal`` uint64[B]
(:data:`~bao_env.engine.position.Legal`), ``winners`` int8[B] (the seat that has won, or -1),
``actions`` any integer dtype [B]. All but the actions must be C-contiguous. Where a game is over,
``legal`` is 0. In compiled functions ``rules`` are the :class:`KernelRules`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from bao_env.compiled.compile import jit, jit_inner
from bao_env.compiled.exclusive import Exclusive
from bao_env.compiled.threads import Threads
from bao_env.engine.argument_checks import (
    MAX_COUNT,
    as_actions,
    as_integer,
    check_output,
    length_of,
)
from bao_env.engine.bits import ONE, ZERO, U, trailing_zeros
from bao_env.engine.kernel import legal_of
from bao_env.engine.lanes import (
    BLOCK,
    FIND_LEGAL,
    PLAY,
    Scratch,
    legal_job,
    make_scratch,
    play_job,
    run,
)
from bao_env.engine.layout import SOUTH, Seat, seat_number
from bao_env.engine.masks import check_legal
from bao_env.engine.position import (
    NO_WINNER,
    WORDS,
    Actions,
    Legal,
    PackedPositions,
    Seats,
    load_rows_at,
    mover_of,
    packed_opening,
)
from bao_env.engine.ruleset import KernelRules, Ruleset, get_ruleset
from bao_env.engine.sampling import RandomStates, draw_actions
from bao_env.engine.start_encoding import action_of, start_of
from bao_env.engine.starts import candidates, is_capture

_PLIES = 1 << 17
"""Number of random plies between two checks for Ctrl-C; they take a few milliseconds."""
MAX_THREADS = 1024
_scratch = threading.local()
"""Each thread's scratch memory."""


def _thread_scratch() -> Scratch:
    """Return this thread's scratch memory for one block (:func:`make_scratch`)."""
    if not hasattr(_scratch, "block"):
        _scratch.block = make_scratch(BLOCK)
    block: Scratch = _scratch.block
    return block


@jit_inner
def _find_legal(
    rules: KernelRules, positions: PackedPositions, legal: Legal, winners: Seats, scratch: Scratch
) -> None:
    """Write the legal actions of a block's games, and the winners of games without any.

    Where a game has a winner, ``legal`` becomes 0.

    Args:
        positions, legal, winners: arrays of the block; see the module.
        scratch: the arrays of :func:`make_scratch`, one set per thread.
    """
    jobs = scratch[0]
    count = np.int64(0)  # numba would compile run() separately for a literal 0
    for game in range(positions.shape[0]):
        legal[game] = ZERO
        if winners[game] >= 0:
            continue
        rows = load_rows_at(positions, game)
        capture_turn, starts = candidates(rules, rows)
        while starts != ZERO:
            start = trailing_zeros(starts)
            action = action_of(rows.meta, capture_turn, start)
            jobs[count] = legal_job(game, capture_turn, action, start)
            count += 1
            starts &= starts - ONE
    run(rules, positions, legal, winners, count, scratch, FIND_LEGAL)
    for game in range(positions.shape[0]):
        if winners[game] < 0 and legal[game] == ZERO:  # Donkers 1.2, 1.5a: no legal move
            winners[game] = np.int8(ONE - mover_of(load_rows_at(positions, game).meta))


@jit
def step_batch(
    rules: KernelRules,
    positions: PackedPositions,
    actions: Actions,
    legal: Legal,
    winners: Seats,
    scratch: Scratch,
) -> None:
    """Play a legal action in each running game of a batch, then write the new legal actions.

    Args:
        positions, actions, legal, winners: arrays of the batch; see the module.
        scratch: the arrays of :func:`make_scratch` for :data:`BLOCK` games, one set per thread.
    """
    jobs = scratch[0]
    for low in range(0, positions.shape[0], BLOCK):
        block = slice(low, low + BLOCK)
        games, block_legal, won = positions[block], legal[block], winners[block]
        count = np.int64(0)  # numba would compile run() separately for a literal 0
        for game in range(games.shape[0]):
            if block_legal[game] == ZERO:
                continue
            action = U(actions[low + game])
            rows = load_rows_at(games, game)
            capture_turn = is_capture(rules, rows, action)
            start = start_of(rows.meta, capture_turn, action)
            jobs[count] = play_job(game, capture_turn, action, start)
            count += 1
        run(rules, games, block_legal, won, count, scratch, PLAY)
        _find_legal(rules, games, block_legal, won, scratch)


@jit_inner
def _restart_finished(
    positions: PackedPositions,
    legal: Legal,
    winners: Seats,
    opening: PackedPositions,
    opening_legal: U,
) -> int:
    """Restart the games that have a winner, and return how many there were."""
    ended = 0
    for i in range(positions.shape[0]):
        if winners[i] >= 0:
            ended += 1
            winners[i] = NO_WINNER
            legal[i] = opening_legal
            for word in range(WORDS):
                positions[i, word] = opening[word]
    return ended


@jit
def _play_random(
    rules: KernelRules,
    positions: PackedPositions,
    legal: Legal,
    winners: Seats,
    rng: RandomStates,
    opening: PackedPositions,
    opening_legal: U,
    plies: int,
    actions: Actions,
    scratch: Scratch,
) -> int:
    """Play random legal actions, restart games that end, and return how many ended.

    Args:
        positions, legal, winners: arrays of the batch; see the module.
        rng: uint64[B], generator states, advanced in place.
        opening: uint64[6], the position in which ended games restart.
        opening_legal: the legal actions of ``opening``.
        plies: number of actions to play in each game.
        actions: int64[BLOCK], overwritten.
        scratch: the arrays of :func:`make_scratch`, one set per thread.
    """
    ended = 0
    for _ in range(plies):
        for low in range(0, positions.shape[0], BLOCK):
            block = slice(low, low + BLOCK)
            games = positions[block], legal[block], winners[block]
            draw_actions(legal[block], rng[block], actions)
            step_batch(rules, games[0], actions, games[1], games[2], scratch)
            ended += _restart_finished(games[0], games[1], games[2], opening, opening_legal)
    return ended


class Engine:
    """Play batches of games under one rule set, on one or more threads.

    No call allocates memory that grows with the batch. Every call validates the type, shape and
    layout of its arrays in constant time, and raises TypeError or ValueError before it changes
    anything. Two Python threads must not use one engine at the same time: give each its own. An
    engine can be used after a fork.

    >>> from bao_env.engine.action import actions_of
    >>> engine = Engine("zanzibar")
    >>> positions, legal, winners = engine.new_games(3)
    >>> actions_of(legal[0])
    [20, 22, 24, 26]
    >>> engine.step(positions, [20, 24, 26], legal, winners)
    >>> [len(actions_of(actions)) for actions in legal], winners.tolist()
    ([4, 2, 4], [-1, -1, -1])

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        threads: number of threads that share a batch; results do not depend on it.

    Raises:
        ValueError: the rule set is unknown, or ``threads`` is not an integer from 1 to 1024.
    """

    def __init__(self, ruleset: str | Ruleset = "zanzibar", threads: int = 1) -> None:
        self.ruleset: Ruleset = get_ruleset(ruleset)
        self.rules: KernelRules = self.ruleset.kernel
        self.threads: int = as_integer(threads, "threads", 1, MAX_THREADS)
        self._exclusive = Exclusive("Engine")
        self._helpers: Threads | None = None
        self._process = 0
        """Id of the process that runs the threads. A fork copies this object, not its threads."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.ruleset, self.threads)

    def opening(self, first_player: Seat = SOUTH) -> tuple[PackedPositions, np.uint64]:
        """Return the start of a game, uint64[6], and its legal actions.

        Raises:
            ValueError: ``first_player`` is not ``"south"`` or ``"north"``.
        """
        position = packed_opening(self.ruleset, seat_number(first_player, "first_player"))
        return position, np.uint64(legal_of(self.rules, position))

    def new_games(self, count: int) -> tuple[PackedPositions, Legal, Seats]:
        """Return the arrays of new games: positions uint64[count, 6], legal actions and winners.

        Raises:
            ValueError: ``count`` is not an integer of 0 or more.
        """
        count = as_integer(count, "count", 0, MAX_COUNT)
        opening, legal = self.opening()
        winners = np.full(count, NO_WINNER, np.int8)
        return np.tile(opening, (count, 1)), np.full(count, legal), winners

    def find_legal(self, positions: PackedPositions, legal: Legal, winners: Seats) -> None:
        """Fill ``legal`` with the exact legal actions of ``positions``.

        A mover without a legal move has lost: the entry in ``legal`` is 0, and ``winners`` gets the
        other seat.
        """
        size = self._check_games(positions, legal, winners)

        def work(part: slice) -> None:
            # step_batch() plays nothing where `legal` is 0, but finds the legal actions everywhere.
            # So no other function has to be compiled.
            legal[part] = 0
            winners[part] = NO_WINNER
            no_actions = legal[part].view(np.int64)
            state = positions[part], no_actions, legal[part], winners[part]
            step_batch(self.rules, *state, _thread_scratch())

        self.run_in_blocks(size, work)

    def step(
        self,
        positions: PackedPositions,
        actions: npt.ArrayLike,
        legal: Legal,
        winners: Seats,
        on_part_done: Callable[[slice], None] = lambda part: None,
    ) -> None:
        """Play one action in every running game, in place.

        ``legal`` holds the legal actions of ``positions`` before the call, and of the new positions
        after it. ``winners`` gets the seat that has won, or stays -1. Games that are over (legal
        is 0) stay as they are. Each thread calls ``on_part_done(part)`` as soon as its part of the
        batch is done, so work on the new positions need not wait for the other threads.

        Raises:
            IllegalMoveError: an action is illegal; nothing has changed.
            TypeError: the actions are not integers.
        """
        size = self._check_games(positions, legal, winners)
        actions = as_actions(actions, size, "actions")
        check_legal(actions, legal)
        self.play_legal(positions, actions, legal, winners, on_part_done)

    def play_legal(
        self,
        positions: PackedPositions,
        actions: Actions,
        legal: Legal,
        winners: Seats,
        on_part_done: Callable[[slice], None] = lambda part: None,
    ) -> None:
        """Play as :meth:`step` does, without its checks.

        ``actions`` must be int64[B]. Wrong arrays or illegal actions lead to undefined behaviour.
        """

        def work(part: slice) -> None:
            state = positions[part], actions[part], legal[part], winners[part]
            step_batch(self.rules, *state, _thread_scratch())
            on_part_done(part)

        self.run_in_blocks(len(legal), work)

    def play_random(
        self,
        positions: PackedPositions,
        legal: Legal,
        winners: Seats,
        rng: RandomStates,
        plies: int,
    ) -> int:
        """Play ``plies`` uniformly random legal actions in every game, restarting ended games.

        ``rng``, uint64[B], holds a non-zero generator state for each game
        (:func:`~bao_env.engine.sampling.random_states`) and is advanced in place, so the games do
        not depend on the number of threads.

        Returns the number of games that ended.

        Raises:
            ValueError: ``plies`` is not an integer of 0 or more.
        """
        size = self._check_games(positions, legal, winners)
        check_output("rng", rng, np.uint64, (size,))
        plies = as_integer(plies, "plies", 0, MAX_COUNT)
        opening = self.opening()
        counts: list[int] = []
        plies_per_call = max(1, _PLIES // max(1, size))  # so that Ctrl-C works
        for played in range(0, plies, plies_per_call):
            count = min(plies_per_call, plies - played)

            def work(part: slice, count: int = count) -> None:
                state = positions[part], legal[part], winners[part], rng[part]
                arrays = np.empty(BLOCK, np.int64), _thread_scratch()
                counts.append(_play_random(self.rules, *state, *opening, count, *arrays))

            self.run_in_blocks(size, work)
        return sum(counts)

    @staticmethod
    def _check_games(positions: object, legal: object, winners: object) -> int:
        """Validate the arrays that a call plays on; return the number of games."""
        size = length_of(positions)
        check_output("positions", positions, np.uint64, (size, WORDS))
        check_output("legal", legal, np.uint64, (size,))
        check_output("winners", winners, np.int8, (size,))
        return size

    def run_in_blocks(self, size: int, work: Callable[[slice], None]) -> None:
        """Run ``work(part)`` over a batch of ``size``, each thread on consecutive whole blocks."""
        with self._exclusive:
            blocks = -(-size // BLOCK)
            threads = min(self.threads, blocks)
            if threads <= 1:
                work(slice(0, size))
                return
            if self._helpers is None or self._process != os.getpid():
                self._process = os.getpid()
                self._helpers = Threads(self.threads - 1)
            edges = [*(blocks * t // threads * BLOCK for t in range(threads)), size]
            self._helpers.run(work, [slice(*pair) for pair in pairwise(edges)])
