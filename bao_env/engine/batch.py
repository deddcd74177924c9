"""The kernel over many games at once: in place, in caller-owned buffers, on several threads.

Games are processed in blocks of :data:`~bao_env.engine.lanes.BLOCK`, whose moves run side by side
in the lanes (:mod:`bao_env.engine.lanes`).

Arrays: ``positions`` uint64[B, 6] (:mod:`bao_env.engine.position`), ``masks`` uint64[B] (bit a =
action a is legal), ``winners`` int8[B] (the seat that has won, or -1), ``actions`` any integer
dtype [B]. All but the actions must be C-contiguous. A game that is over has mask 0.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from bao_env.engine.action import (
    NUM_ACTIONS,
    IllegalMoveError,
    action_of,
    actions_of,
    start_of,
)
from bao_env.engine.array_checks import (
    BOOL,
    INT8,
    INT64,
    UINT64,
    as_actions,
    check_array,
    check_output,
    length_of,
)
from bao_env.engine.bits import (
    BYTE,
    ONE,
    ZERO,
    U,
    popcount,
    select_bit,
    spread_bits,
    trailing_zeros,
    xorshift,
)
from bao_env.engine.compile import jit, jit_inline
from bao_env.engine.exclusive import Exclusive
from bao_env.engine.kernel import CAPTURE_TURN, STARTS, candidates, is_capture
from bao_env.engine.lanes import (
    BLOCK,
    FIND_LEGAL,
    LANE_WORDS,
    LANES,
    MAX_STARTS,
    PLAY,
    mask_job,
    play_job,
    run,
)
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import NO_WINNER, WORDS, mover_of, packed_opening, read_at
from bao_env.engine.ruleset import Ruleset, get_ruleset

Masks = npt.NDArray[np.uint64]
Winners = npt.NDArray[np.int8]

_HIGH_HALF_SHIFT: Final = U(32)


@jit
def _mask_block(rules, positions, masks, winners, lanes, owner, jobs):
    """Write the exact legal masks of a block; games with a winner get mask 0.

    Args:
        rules: the :class:`KernelRules`.
        positions, masks, winners: of the block; see the module.
        lanes, owner, jobs: a thread's scratch, see :func:`bao_env.engine.lanes.run`.
    """
    count = np.int64(0)  # of a plain 0, numba would compile run() for that constant, too
    for game in range(positions.shape[0]):
        masks[game] = ZERO
        if winners[game] >= 0:
            continue
        packed = read_at(positions, game)
        found = candidates(rules, packed)
        capture_turn = (found & CAPTURE_TURN) != ZERO
        starts = found & STARTS
        while starts != ZERO:
            start = trailing_zeros(starts)
            action = action_of(packed.meta, capture_turn, start)
            jobs[count] = mask_job(game, capture_turn, action, start)
            count += 1
            starts &= starts - ONE
    run(rules, positions, masks, winners, jobs, count, lanes, owner, FIND_LEGAL)
    for game in range(positions.shape[0]):
        if winners[game] < 0 and masks[game] == ZERO:  # Donkers 1.2, 1.5a: no legal move
            winners[game] = np.int8(ONE - mover_of(read_at(positions, game).meta))


@jit
def _step_block(rules, positions, actions, masks, winners, lanes, owner, jobs):
    """Play one legal action in each running game of a block, then write the masks.

    Args:
        rules: the :class:`KernelRules`.
        positions, actions, masks, winners: of the block; see the module.
        lanes, owner, jobs: a thread's scratch, see :func:`bao_env.engine.lanes.run`.
    """
    count = np.int64(0)  # of a plain 0, numba would compile run() for that constant, too
    for game in range(positions.shape[0]):
        if masks[game] == ZERO:
            continue
        action = U(actions[game])
        packed = read_at(positions, game)
        capture_turn = is_capture(rules, packed, action)
        start = start_of(packed.meta, capture_turn, action)
        jobs[count] = play_job(game, capture_turn, action, start)
        count += 1
    run(rules, positions, masks, winners, jobs, count, lanes, owner, PLAY)
    _mask_block(rules, positions, masks, winners, lanes, owner, jobs)


@jit
def _legal_masks(rules, positions, masks, winners, lanes, owner, jobs):
    """:func:`_mask_block` for all blocks of a batch of running games.

    Args:
        rules: the :class:`KernelRules`.
        positions: of the batch; see the module.
        masks, winners: of the batch, filled.
        lanes, owner, jobs: a thread's scratch, see :func:`bao_env.engine.lanes.run`.
    """
    for low in range(0, positions.shape[0], BLOCK):
        block = slice(low, min(low + BLOCK, positions.shape[0]))
        winners[block] = NO_WINNER
        _mask_block(rules, positions[block], masks[block], winners[block], lanes, owner, jobs)


@jit
def _step(rules, positions, actions, masks, winners, lanes, owner, jobs):
    """:func:`_step_block` for all blocks of a batch.

    Args:
        rules: the :class:`KernelRules`.
        positions, actions, masks, winners: of the batch; see the module.
        lanes, owner, jobs: a thread's scratch, see :func:`bao_env.engine.lanes.run`.
    """
    for low in range(0, positions.shape[0], BLOCK):
        block = slice(low, min(low + BLOCK, positions.shape[0]))
        _step_block(
            rules,
            positions[block],
            actions[block],
            masks[block],
            winners[block],
            lanes,
            owner,
            jobs,
        )


@jit_inline
def _draw(mask, rng, i):
    """A uniformly random action of a mask that is not 0; advances rng[i] (xorshift64)."""
    x = xorshift(rng[i])
    rng[i] = x
    return select_bit(mask, ((x >> _HIGH_HALF_SHIFT) * popcount(mask)) >> _HIGH_HALF_SHIFT)


@jit
def _random_actions(masks, rng, actions):
    """See :func:`random_actions`."""
    for i in range(masks.shape[0]):
        if masks[i] != ZERO:
            actions[i] = _draw(masks[i], rng, i)
        else:
            actions[i] = 0


@jit
def _reset_finished(positions, masks, winners, opening, opening_mask):
    """Restart the games that somebody has won; returns their number."""
    ended = 0
    for i in range(positions.shape[0]):
        if winners[i] >= 0:
            ended += 1
            winners[i] = NO_WINNER
            masks[i] = opening_mask
            for word in range(WORDS):
                positions[i, word] = opening[word]
    return ended


@jit
def _play_random(
    rules, positions, masks, winners, rng, opening, opening_mask, plies, actions, lanes, owner, jobs
):
    """Random legal play with auto-reset; returns the number of games that ended.

    Args:
        rules: the :class:`KernelRules`.
        positions, masks, winners: of the batch; see the module.
        rng: uint64[B], generator states, advanced in place.
        opening: uint64[6], where ended games restart.
        opening_mask: its legal actions.
        plies: actions to play in each game.
        actions: int64[BLOCK], scratch.
        lanes, owner, jobs: scratch, see :func:`bao_env.engine.lanes.run`.
    """
    ended = 0
    for _ in range(plies):
        for low in range(0, positions.shape[0], BLOCK):
            block = slice(low, min(low + BLOCK, positions.shape[0]))
            _random_actions(masks[block], rng[block], actions)
            _step_block(
                rules,
                positions[block],
                actions,
                masks[block],
                winners[block],
                lanes,
                owner,
                jobs,
            )
            ended += _reset_finished(
                positions[block], masks[block], winners[block], opening, opening_mask
            )
    return ended


@jit
def _first_illegal(masks, actions):
    """Index of the first action that is illegal in a running game, or -1."""
    for i in range(masks.shape[0]):
        action = actions[i]
        if masks[i] != ZERO and (
            action < 0 or action >= NUM_ACTIONS or (masks[i] >> U(action)) & ONE == ZERO
        ):
            return i
    return -1


@jit
def _unpack_masks(masks, out):
    """See :func:`unpack_masks`."""
    words = out.view(np.uint64)  # eight flags a word
    for i in range(masks.shape[0]):
        for k in range(8):
            words[i, k] = spread_bits((masks[i] >> U(8 * k)) & BYTE)


class Engine:
    """The batch kernel under one rule set, with its scratch memory and its threads.

    No call allocates memory that grows with the batch. Every call checks the type, shape and
    layout of the arrays it is handed, in constant time, and raises TypeError or ValueError before
    it changes anything. Two Python threads must not use one engine at the same time: give each its
    own. An engine works on in a forked process.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        threads: how many threads share a batch; results do not depend on it.

    Raises:
        TypeError: ``threads`` is no integer.
        ValueError: an unknown rule set, or fewer than one thread.
    """

    def __init__(self, ruleset: str | Ruleset = "zanzibar", threads: int = 1) -> None:
        if operator.index(threads) < 1:
            raise ValueError(f"threads={threads}: expected at least 1")
        self.ruleset = get_ruleset(ruleset)
        self.rules = self.ruleset.kernel_rules()
        self.threads = threads
        self._scratch = [
            (
                np.zeros(LANE_WORDS, np.uint64),
                np.zeros(LANES, np.uint64),
                np.zeros(BLOCK * MAX_STARTS, np.uint64),
            )
            for _ in range(threads)
        ]
        self._actions = [np.zeros(BLOCK, np.int64) for _ in range(threads)]
        self._exclusive = Exclusive("Engine")
        self._pool: ThreadPoolExecutor | None = None
        self._pool_process = 0
        """Whose threads they are: a fork copies the pool, but not the threads behind it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.ruleset, self.threads)

    def opening(self, first_player: int = SOUTH) -> tuple[npt.NDArray[np.uint64], np.uint64]:
        """The start of a game, uint64[6], and its legal mask.

        Raises:
            ValueError: ``first_player`` is not 0, South, or 1, North.
        """
        if first_player not in (SOUTH, NORTH):
            raise ValueError(f"first_player={first_player!r}: expected 0, South, or 1, North")
        positions = packed_opening(self.ruleset, first_player)[None]
        masks = np.zeros(1, np.uint64)
        self.legal_masks(positions, masks, np.zeros(1, np.int8))
        return positions[0], masks[0]

    def legal_masks(
        self, positions: npt.NDArray[np.uint64], masks: Masks, winners: Winners
    ) -> None:
        """Fill ``masks`` with the exact legal actions of ``positions``.

        A mover without a legal move has lost: the mask is 0, and ``winners`` gets the other seat.
        """
        size = self._check_games(positions, masks, winners)

        def work(part: slice, thread: int) -> None:
            _legal_masks(
                self.rules, positions[part], masks[part], winners[part], *self._scratch[thread]
            )

        self._share(size, work)

    def step(
        self,
        positions: npt.NDArray[np.uint64],
        actions: npt.ArrayLike,
        masks: Masks,
        winners: Winners,
        on_part_done: Callable[[slice], None] = lambda part: None,
    ) -> None:
        """Play one action in every running game, in place.

        ``masks`` holds the legal actions of ``positions`` before the call, and of the new positions
        after it. ``winners`` gets the seat that has won, or stays -1. Games that are over (mask 0)
        stay as they are. A thread that has finished its part of the batch calls
        ``on_part_done(part)`` at once, so work on the new positions need not wait for the others.

        Raises:
            IllegalMoveError: an action is illegal; nothing has changed.
            TypeError: the actions are not integers.
        """
        size = self._check_games(positions, masks, winners)
        actions = as_actions(actions, size, "actions")
        illegal = _first_illegal(masks, actions)
        if illegal >= 0:
            raise IllegalMoveError(
                f"action {actions[illegal]} is illegal in game {illegal}; "
                f"legal there: {actions_of(masks[illegal])}"
            )

        def work(part: slice, thread: int) -> None:
            _step(
                self.rules,
                positions[part],
                actions[part],
                masks[part],
                winners[part],
                *self._scratch[thread],
            )
            on_part_done(part)

        self._share(size, work)

    def play_random(
        self,
        positions: npt.NDArray[np.uint64],
        masks: Masks,
        winners: Winners,
        rng: npt.NDArray[np.uint64],
        plies: int,
    ) -> int:
        """Play ``plies`` uniformly random legal actions in every game, restarting ended games.

        ``rng``, uint64[B], holds one non-zero generator state a game (:func:`random_states`) and is
        advanced in place, so the games do not depend on the number of threads.

        Returns the number of games that ended.

        Raises:
            TypeError: ``plies`` is no integer.
            ValueError: it is negative.
        """
        size = self._check_games(positions, masks, winners)
        check_output("rng", rng, UINT64, (size,))
        plies = operator.index(plies)
        if plies < 0:
            raise ValueError(f"plies={plies}: expected at least 0")
        opening, opening_mask = self.opening()
        ended = [0] * self.threads

        def work(part: slice, thread: int) -> None:
            ended[thread] = _play_random(
                self.rules,
                positions[part],
                masks[part],
                winners[part],
                rng[part],
                opening,
                opening_mask,
                plies,
                self._actions[thread],
                *self._scratch[thread],
            )

        self._share(size, work)
        return sum(ended)

    def share(self, size: int, work: Callable[[slice], None]) -> None:
        """Run ``work(part)`` over a batch of ``size``, each thread on a part of it."""
        self._share(size, lambda part, thread: work(part))

    @staticmethod
    def _check_games(positions: object, masks: object, winners: object) -> int:
        """Check the arrays that a call plays on; returns the number of games."""
        size = length_of(positions)
        check_output("positions", positions, UINT64, (size, WORDS))
        check_output("masks", masks, UINT64, (size,))
        check_output("winners", winners, INT8, (size,))
        return size

    def _share(self, size: int, work: Callable[[slice, int], None]) -> None:
        """Run ``work(part, thread)`` over the batch, each thread on consecutive whole blocks."""
        with self._exclusive:
            blocks = -(-size // BLOCK)
            threads = min(self.threads, blocks)
            if threads <= 1:
                work(slice(0, size), 0)
            else:
                self._run_parts([blocks * t // threads * BLOCK for t in range(threads)], size, work)

    def _run_parts(self, starts: list[int], size: int, work: Callable[[slice, int], None]) -> None:
        """Run ``work(part, thread)`` on the parts that begin at ``starts``, all at once."""
        if self._pool is None or self._pool_process != os.getpid():
            self._pool_process = os.getpid()
            self._pool = ThreadPoolExecutor(self.threads - 1, thread_name_prefix="bao-engine")
        parts = [slice(*edges) for edges in pairwise([*starts, size])]
        futures = [self._pool.submit(work, part, t) for t, part in enumerate(parts[1:], 1)]
        try:
            work(parts[0], 0)
        finally:
            wait(futures)  # after Ctrl-C, too: they write into the caller's arrays
        for future in futures:
            future.result()


def random_states(size: int, seed: int | np.random.SeedSequence) -> npt.NDArray[np.uint64]:
    """Generator states for random play, uint64[size], none of them zero."""
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return sequence.generate_state(size, np.uint64) | np.uint64(1)


def random_actions(
    masks: Masks, rng: npt.NDArray[np.uint64], actions: npt.NDArray[np.int64]
) -> None:
    """Fill ``actions``, int64[B], with uniformly random legal actions (0 where a game is over).

    Args:
        masks: uint64[B], the legal actions.
        rng: uint64[B], generator states (:func:`random_states`), advanced in place.
        actions: int64[B].

    Raises:
        TypeError, ValueError: an array has another type, shape or layout.
    """
    size = length_of(masks)
    check_array("masks", masks, UINT64, (size,))
    check_output("rng", rng, UINT64, (size,))
    check_output("actions", actions, INT64, (size,))
    _random_actions(masks, rng, actions)


def unpack_masks(masks: Masks, out: npt.NDArray[Any]) -> None:
    """Spread masks uint64[B] over ``out``, bool or int8 [B, 64], C-contiguous: 1 = legal.

    Raises:
        TypeError, ValueError: an array has another type, shape or layout.
    """
    size = length_of(masks)
    check_array("masks", masks, UINT64, (size,))
    dtype = BOOL if getattr(out, "dtype", None) == BOOL else INT8
    check_output("out", out, dtype, (size, NUM_ACTIONS))
    _unpack_masks(masks, out)
