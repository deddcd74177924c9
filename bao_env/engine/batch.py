"""The kernel over many games at once: in place, in caller-owned buffers, on several threads.

The inner loop advances :data:`LANES` hands in lock step, one sowing each, through the
kernel's branch-free ``relay``; the compiler turns it into vector instructions. A hand
that ends is replaced by the next one of its block's job list, and the last few hands
of a block, too few to fill the lanes, are finished one by one.

Arrays: ``positions`` uint64[B, 6] (:mod:`bao_env.engine.position`), ``masks`` uint64[B]
(bit a = action a is legal), ``winners`` int8[B] (-1 = the game goes on, else the seat
that has won), ``actions`` any integer dtype [B]. A game that is over has mask 0.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.bits import (
    BYTE,
    FULL,
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
from bao_env.engine.kernel import (
    CAPTURE_TURN,
    STARTS,
    action_of,
    begin,
    candidates,
    finish,
    is_capture,
    legal_bits,
    relay,
    start_of,
)
from bao_env.engine.layout import SOUTH
from bao_env.engine.position import (
    META,
    MOVER_BACK,
    MOVER_FRONT,
    OTHER_BACK,
    OTHER_FRONT,
    PLY,
    WORDS,
    packed_opening,
)
from bao_env.engine.ruleset import Ruleset, get_ruleset

Masks = npt.NDArray[np.uint64]
Winners = npt.NDArray[np.int8]

LANES: Final = 32
BLOCK: Final = 512
"""Games whose hands share the lanes; their jobs stay in the second-level cache."""
_FEW: Final = 3
"""So many hands left are finished one by one."""
_MAX_STARTS: Final = 32
NO_WINNER: Final = -1

# Where each argument of relay() starts in the lane array, one uint64 a lane. The array is
# flat: only with a fixed distance between rows can the compiler see that they don't overlap.
_ROWS: Final = 10
_FRONT, _BACK, _FACING, _HAND, _START, _DOWN, _HOUSE_MIN, _BARRED, _STOPS, _TALLY = range(
    0, _ROWS * LANES, LANES
)

# A job: the start in bits 0..4, two flags, the action in bits 7..12, then the game's index
# in its block.
_JOB_CAPTURE: Final = U(32)
_JOB_STOPS: Final = U(64)
_JOB_ACTION: Final = U(7)
_JOB_GAME: Final = U(13)
_4: Final = U(4)
_15: Final = U(15)
_18: Final = U(18)
_32: Final = U(32)
_63: Final = U(63)


@jit
def _advance(rules, lanes):
    """One sowing of every lane."""
    for i in range(LANES):
        front, back, facing, n, start, down, house_min, tally = relay(
            rules,
            lanes[_FRONT + i],
            lanes[_BACK + i],
            lanes[_FACING + i],
            lanes[_HAND + i],
            lanes[_START + i],
            lanes[_DOWN + i],
            lanes[_HOUSE_MIN + i],
            lanes[_BARRED + i],
            lanes[_STOPS + i],
            lanes[_TALLY + i],
        )
        lanes[_FRONT + i] = front
        lanes[_BACK + i] = back
        lanes[_FACING + i] = facing
        lanes[_HAND + i] = n
        lanes[_START + i] = start
        lanes[_DOWN + i] = down
        lanes[_HOUSE_MIN + i] = house_min
        lanes[_TALLY + i] = tally


@jit_inline
def _finish_alone(rules, lanes, i):
    """Sow the hand of lane i to its end."""
    front = lanes[_FRONT + i]
    back = lanes[_BACK + i]
    facing = lanes[_FACING + i]
    n = lanes[_HAND + i]
    start = lanes[_START + i]
    down = lanes[_DOWN + i]
    house_min = lanes[_HOUSE_MIN + i]
    tally = lanes[_TALLY + i]
    while n != ZERO:
        front, back, facing, n, start, down, house_min, tally = relay(
            rules,
            front,
            back,
            facing,
            n,
            start,
            down,
            house_min,
            lanes[_BARRED + i],
            lanes[_STOPS + i],
            tally,
        )
    lanes[_FRONT + i] = front
    lanes[_BACK + i] = back
    lanes[_FACING + i] = facing
    lanes[_HAND + i] = ZERO
    lanes[_START + i] = start
    lanes[_DOWN + i] = down
    lanes[_TALLY + i] = tally


@jit_inline
def _fill(rules, positions, job, lanes, i):
    """Put the first hand of a job into lane i."""
    game = job >> _JOB_GAME
    front, back, facing, n, start, down, house_min, barred, stops, tally = begin(
        rules,
        positions[game, MOVER_FRONT],
        positions[game, MOVER_BACK],
        positions[game, OTHER_FRONT],
        positions[game, META],
        (job & _JOB_CAPTURE) != ZERO,
        job & _15,
        (job >> _4) & ONE,
        FULL if job & _JOB_STOPS else ZERO,
    )
    lanes[_FRONT + i] = front
    lanes[_BACK + i] = back
    lanes[_FACING + i] = facing
    lanes[_HAND + i] = n
    lanes[_START + i] = start
    lanes[_DOWN + i] = down
    lanes[_HOUSE_MIN + i] = house_min
    lanes[_BARRED + i] = barred
    lanes[_STOPS + i] = stops
    lanes[_TALLY + i] = tally


@jit_inline
def _retire(rules, positions, masks, winners, job, lanes, i, playing):
    """Take the result of a job out of lane i: the position after it, or its mask bits."""
    game = job >> _JOB_GAME
    if playing:
        meta = positions[game, META]
        after = finish(
            rules,
            positions[game, OTHER_FRONT],
            positions[game, OTHER_BACK],
            meta,
            (job & _JOB_CAPTURE) != ZERO,
            lanes[_FRONT + i],
            lanes[_BACK + i],
            lanes[_FACING + i],
            lanes[_START + i],
            lanes[_DOWN + i],
            lanes[_TALLY + i],
        )
        positions[game, MOVER_FRONT] = after[0]
        positions[game, MOVER_BACK] = after[1]
        positions[game, OTHER_FRONT] = after[2]
        positions[game, OTHER_BACK] = after[3]
        positions[game, META] = after[4]
        positions[game, PLY] += ONE
        if after[5] != ZERO:
            seat = np.int8((meta >> _18) & ONE)
            winners[game] = seat if after[5] == ONE else np.int8(1) - seat
    else:
        masks[game] |= legal_bits(lanes[_TALLY + i]) << ((job >> _JOB_ACTION) & _63)


@jit
def _run(rules, positions, masks, winners, jobs, count, lanes, owner, playing):
    """Work a block's job list off through the lanes."""
    filled = min(count, LANES)
    for i in range(LANES):
        lanes[_HAND + i] = ZERO
    for i in range(filled):
        _fill(rules, positions, jobs[i], lanes, i)
        owner[i] = jobs[i]
    used = FULL >> U(64 - filled) if filled else ZERO
    left = filled
    following = filled
    while left > 0:
        if left > _FEW:
            _advance(rules, lanes)
        else:
            rest = used
            while rest != ZERO:
                i = np.int64(trailing_zeros(rest))
                rest &= rest - ONE
                _finish_alone(rules, lanes, i)
        ended = ZERO
        for i in range(LANES):
            ended |= (ONE if lanes[_HAND + i] == ZERO else ZERO) << U(i)
        ended &= used
        while ended != ZERO:
            i = np.int64(trailing_zeros(ended))
            ended &= ended - ONE
            _retire(rules, positions, masks, winners, owner[i], lanes, i, playing)
            if following < count:
                owner[i] = jobs[following]
                _fill(rules, positions, owner[i], lanes, i)
                following += 1
            else:
                used &= ~(ONE << U(i))
                left -= 1


@jit
def _mask_block(rules, positions, masks, winners, lanes, owner, jobs):
    """Exact legal masks of a block; games with a winner get none."""
    count = 0
    for game in range(positions.shape[0]):
        masks[game] = ZERO
        if winners[game] >= 0:
            continue
        found = candidates(
            rules,
            positions[game, MOVER_FRONT],
            positions[game, MOVER_BACK],
            positions[game, OTHER_FRONT],
            positions[game, OTHER_BACK],
            positions[game, META],
        )
        meta = positions[game, META]
        capture = (found & CAPTURE_TURN) != ZERO
        job = (U(game) << _JOB_GAME) | (_JOB_CAPTURE if capture else ZERO)
        starts = found & STARTS
        while starts != ZERO:
            q = trailing_zeros(starts)
            action = action_of(meta, capture, q & _15, q >> _4)
            jobs[count] = job | (action << _JOB_ACTION) | q
            count += 1
            starts &= starts - ONE
    _run(rules, positions, masks, winners, jobs, count, lanes, owner, False)
    for game in range(positions.shape[0]):
        if winners[game] < 0 and masks[game] == ZERO:  # Donkers 1.2, 1.5a: no legal move
            winners[game] = np.int8(ONE - ((positions[game, META] >> _18) & ONE))


@jit
def _step_block(rules, positions, actions, masks, winners, lanes, owner, jobs):
    """Play one legal action in each game of a block that goes on, then compute the masks."""
    count = 0
    for game in range(positions.shape[0]):
        if masks[game] == ZERO:
            continue
        action = U(actions[game])
        meta = positions[game, META]
        capture = is_capture(
            rules,
            positions[game, MOVER_FRONT],
            positions[game, MOVER_BACK],
            positions[game, OTHER_FRONT],
            meta,
            action,
        )
        jobs[count] = (
            (U(game) << _JOB_GAME)
            | (_JOB_CAPTURE if capture else ZERO)
            | (ZERO if action & ONE else _JOB_STOPS)
            | start_of(meta, capture, action)
        )
        count += 1
    _run(rules, positions, masks, winners, jobs, count, lanes, owner, True)
    _mask_block(rules, positions, masks, winners, lanes, owner, jobs)


@jit
def _legal_masks(rules, positions, masks, winners, lanes, owner, jobs):
    for low in range(0, positions.shape[0], BLOCK):
        block = slice(low, min(low + BLOCK, positions.shape[0]))
        winners[block] = NO_WINNER
        _mask_block(rules, positions[block], masks[block], winners[block], lanes, owner, jobs)


@jit
def _step(rules, positions, actions, masks, winners, lanes, owner, jobs):
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
    """A uniform legal action of a non-empty mask; advances the generator rng[i] (xorshift64)."""
    x = xorshift(rng[i])
    rng[i] = x
    return select_bit(mask, ((x >> _32) * popcount(mask)) >> _32)


@jit
def _random_actions(masks, rng, actions):
    for i in range(masks.shape[0]):
        if masks[i] != ZERO:
            actions[i] = _draw(masks[i], rng, i)
        else:
            actions[i] = 0


@jit
def _reset_finished(positions, masks, winners, opening, opening_mask):
    """Start the games that are over anew; returns their number."""
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
    """Random legal play with auto-reset; returns the number of games that ended."""
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
    """Index of the first action that is not legal in a game that goes on, or -1."""
    for i in range(masks.shape[0]):
        action = actions[i]
        if masks[i] != ZERO and (
            action < 0 or action >= NUM_ACTIONS or (masks[i] >> U(action)) & ONE == ZERO
        ):
            return i
    return -1


@jit
def _unpack_masks(masks, out):
    rows = out.view(np.uint64)  # eight flags a word
    for i in range(masks.shape[0]):
        for k in range(8):
            rows[i, k] = spread_bits((masks[i] >> U(8 * k)) & BYTE)


class Engine:
    """The batch kernel under one rule set, with its scratch memory and its threads.

    No call allocates memory that grows with the batch. One engine must not be used from
    two Python threads at a time; make one each.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        threads: how many threads share a batch; results do not depend on it.

    Raises:
        ValueError: an unknown rule set, or fewer than one thread.
    """

    def __init__(self, ruleset: str | Ruleset = "zanzibar", threads: int = 1) -> None:
        if threads < 1:
            raise ValueError(f"threads={threads}: expected at least 1")
        self.ruleset = get_ruleset(ruleset)
        self.rules = self.ruleset.kernel_rules()
        self.threads = threads
        self._scratch = [
            (
                np.zeros(_ROWS * LANES, np.uint64),
                np.zeros(LANES, np.uint64),
                np.zeros(BLOCK * _MAX_STARTS, np.uint64),
            )
            for _ in range(threads)
        ]
        self._actions = [np.zeros(BLOCK, np.int64) for _ in range(threads)]
        self._pool: ThreadPoolExecutor | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.ruleset, self.threads)

    def opening(self, first_player: int = SOUTH) -> tuple[npt.NDArray[np.uint64], np.uint64]:
        """The start of a game, uint64[6], and its legal mask."""
        positions = packed_opening(self.ruleset, first_player)[None]
        masks = np.zeros(1, np.uint64)
        self.legal_masks(positions, masks, np.zeros(1, np.int8))
        return positions[0], masks[0]

    def legal_masks(
        self, positions: npt.NDArray[np.uint64], masks: Masks, winners: Winners
    ) -> None:
        """Fill ``masks`` with the exact legal actions of ``positions``.

        A mover without a legal move has lost: his mask is 0 and ``winners`` names the other.
        """

        def work(part: slice, thread: int) -> None:
            _legal_masks(
                self.rules, positions[part], masks[part], winners[part], *self._scratch[thread]
            )

        self._share(len(positions), work)

    def step(
        self,
        positions: npt.NDArray[np.uint64],
        actions: npt.NDArray[Any],
        masks: Masks,
        winners: Winners,
        then: Callable[[slice], None] = lambda part: None,
    ) -> None:
        """Play one action in every game that goes on, in place.

        ``masks`` holds the legal actions of ``positions`` before the call and of the new
        positions after it; ``winners`` gets the seat that has won, or stays -1. Games that
        are over (mask 0) stay as they are. Each thread, done with its part of the batch, calls
        ``then(part)`` at once: work on the new positions need not wait for the other threads.

        Raises:
            ValueError: an action is illegal; nothing has changed then.
        """
        illegal = _first_illegal(masks, actions)
        if illegal >= 0:
            legal = [a for a in range(NUM_ACTIONS) if int(masks[illegal]) >> a & 1]
            raise ValueError(
                f"action {actions[illegal]} is illegal in game {illegal}; legal there: {legal}"
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
            then(part)

        self._share(len(positions), work)

    def play_random(
        self,
        positions: npt.NDArray[np.uint64],
        masks: Masks,
        winners: Winners,
        rng: npt.NDArray[np.uint64],
        plies: int,
    ) -> int:
        """Play ``plies`` uniformly random legal actions in every game, restarting ended games.

        ``rng`` holds one non-zero generator state a game (:func:`random_states`) and is
        advanced in place, so the games do not depend on the number of threads.

        Returns the number of games that ended.
        """
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

        self._share(len(positions), work)
        return sum(ended)

    def share(self, size: int, work: Callable[[slice], None]) -> None:
        """Run ``work(part)`` over a batch of ``size``, each thread on a part of it."""
        self._share(size, lambda part, thread: work(part))

    def _share(self, size: int, work: Callable[[slice, int], None]) -> None:
        """Run ``work(part, thread)`` over the batch, each thread on a run of whole blocks."""
        blocks = -(-size // BLOCK)
        threads = min(self.threads, blocks)
        if threads <= 1:
            work(slice(0, size), 0)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads - 1, thread_name_prefix="bao-engine")
        edges = [blocks * t // threads * BLOCK for t in range(threads)] + [size]
        futures = [
            self._pool.submit(work, slice(edges[t], edges[t + 1]), t) for t in range(1, threads)
        ]
        work(slice(edges[0], edges[1]), 0)
        for future in futures:
            future.result()


def random_states(size: int, seed: int | np.random.SeedSequence) -> npt.NDArray[np.uint64]:
    """Generator states for random play, uint64[size], none of them zero."""
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return sequence.generate_state(size, np.uint64) | np.uint64(1)


def random_actions(
    masks: Masks, rng: npt.NDArray[np.uint64], actions: npt.NDArray[np.int64]
) -> None:
    """Fill ``actions``, int64[B], with uniformly random legal actions (0 where a game is over)."""
    _random_actions(masks, rng, actions)


def unpack_masks(masks: Masks, out: npt.NDArray[Any]) -> None:
    """Spread masks uint64[B] over ``out``, bool or int8 [B, 64], C-contiguous: 1 = legal."""
    _unpack_masks(masks, out)
