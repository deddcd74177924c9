"""Play moves by the rules of Bao, on packed positions (:mod:`bao_env.engine.position`).

A move is a chain of sowings, simulated as a :class:`Hand`. It begins at one of the starts that
:mod:`bao_env.engine.starts` finds. The functions are::

    first_hand()  the hand after the first lift of a start
    relay()       one sowing and the rules at its last pit; branch-free, so that the lanes can
                  run many hands in lock step
    play_out()    relay() until the hand is empty
    finish()      the position after the move
    simulate(), legal_of(), play(), advance()   combinations of these

``rules`` are the :class:`~bao_env.engine.ruleset.KernelRules` and ``rows`` a position, as
:class:`~bao_env.engine.position.Rows`. All values are uint64. A truth value in arithmetic is a
mask, all ones or all zeros. ``down`` is 0 for step +1 along the ring and 1 for step -1.

Rule numbers are Donkers' unless another source is named; see ``bao_env/RULES.md``. To learn the
rules from code, read ``tests/reference.py`` first: it does the same slowly, seed by seed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bao_env.compiled.compile import jit, jit_brief, jit_inline, jit_inner
from bao_env.engine.bits import (
    BYTE,
    FULL,
    ONE,
    ONES,
    ZERO,
    U,
    byte,
    byteswap,
    sum_of_bytes,
    trailing_zeros,
)
from bao_env.engine.layout import KIMBI, LEFT, RIGHT
from bao_env.engine.position import (
    BARRED_SHIFT,
    META,
    MOVER_IS_NORTH,
    NO_PENDING,
    NO_PIT,
    NO_WINNER,
    OTHER_OWNS_HOUSE,
    OTHER_STORE_SHIFT,
    OWNS_HOUSE,
    PENDING_SHIFT,
    PLY,
    SOWN_SHIFT,
    PackedPositions,
    Rows,
    barred_of,
    load_rows,
    mover_of,
    other_store_of,
    owns_house,
    pending_of,
    row_of,
    sown_of,
    store_of,
    store_rows,
)
from bao_env.engine.ruleset import KernelRules, code
from bao_env.engine.start_encoding import RING_MASK, action_of, down_of, ring_of, start_of
from bao_env.engine.starts import (
    HOUSE,
    IN_ROW,
    PIT_BITS_SHIFT,
    RIGHT_KICHWA,
    ROW,
    ROW_SHIFT,
    TAKASIA_ZANZIBAR,
    candidates,
    is_capture,
    takasia_bar,
)

# A hand's tally: these flags in the low eight bits, and above them the seeds sown so far.
INFINITE = U(1)  # more than sow_limit seeds sown: the move is illegal (1.5a)
CHOICE = U(2)  # the move reached a house that may be played (2.5b)
WON = U(4)  # the capture at `pit` takes the opponent's last front seeds (1.2)
LOST = U(8)  # the first lift empties the mover's front row for good (1.2)
PAUSED = U(16)  # the side of the capture at `pit` is still to be chosen (Dutch I.a)
HOUSE_LIFTED = U(32)  # the mover emptied hole 5, or lost their house (Dutch footnote 2)
FREE_SIDE = U(64)  # input: the player chooses the side of each capture of this move
_FREE_SIDE_SHIFT = U(6)
_CHOICE_SHIFT = U(1)
TALLY_SHIFT = U(8)

_WORD_BITS = U(64)
_SIDE_BITS = U(128)
# An end of the front row is its kichwa and kimbi.
_BEHIND_LEFT_END = U(KIMBI[LEFT] + 1)
_RIGHT_END = U(KIMBI[RIGHT])
# A round is a seed in each of the sixteen pits of the ring.
_ROUND_SHIFT = U(4)
_MAX_ROUNDS = U(7)
_FOUR_ONES = U(0x01010101)
_HALF_WORD = U(32)
_TWO_SEEDS = U(2)
FREE = code("capture_side", "free")
_SIDE = code("lone_house", "side")


class Hand(NamedTuple):
    """A move in progress or at its end; every field is a uint64."""

    front: np.uint64
    """The mover's front row, one byte per pit."""
    back: np.uint64
    """The mover's back row."""
    facing: np.uint64
    """The opponent's front row with its bytes reversed, so byte r faces the mover's pit r; 0 in a
    takasa, which never captures (1.7)."""
    seeds: np.uint64
    """Seeds in the hand; 0 ends the move."""
    pit: np.uint64
    """Ring pit of the next seed; the last pit of the move if the hand is empty."""
    down: np.uint64
    """0 or 1, the step along the ring."""
    house_min: np.uint64
    """The house acts only from this many seeds on; all ones if hole 5 is an ordinary hole."""
    barred: np.uint64
    """Ring pit at which takasia stops the move, or NO_PIT."""
    stops_at_house: np.uint64
    """All ones to stop at a house that acts, zero to play it."""
    tally: np.uint64
    """Seeds sown in the move so far, and the flags above."""

    def __repr__(self) -> str:
        """Return the rows and the hand, for a debugger."""
        rows = [f"{row} {row_of(getattr(self, row))}" for row in ("front", "back", "facing")]
        direction = "down" if self.down else "up"
        return ", ".join([*rows, f"{self.seeds} seeds from pit {self.pit} {direction}"])


class Played(NamedTuple):
    """The result of playing a start to the end of its move."""

    after: Rows
    """The position after the move."""
    result: np.uint64
    """ONE if the mover has won, FULL if they have lost, else ZERO."""
    tally: np.uint64
    """The tally of the last :class:`Hand`: INFINITE if the move is illegal, CHOICE if it reached a
    house that may be played."""
    captured: np.uint64
    """Seeds captured."""


@jit_inline
def _mask(condition: bool | np.bool_) -> U:
    """Return all ones if the condition holds, else zero."""
    return FULL if condition else ZERO


@jit_inline
def _step(down: U) -> U:
    """Return +1 or -1, modulo 2^64."""
    return (ZERO - down) | ONE


@jit_inline
def _below(ring: U) -> tuple[U, U]:
    """Return the two rows with a seed in each ring pit below ``ring`` (0..15)."""
    bits = ring << PIT_BITS_SHIFT
    front = ((ONE << bits if bits < _WORD_BITS else ZERO) - ONE) & ONES
    spare = _SIDE_BITS - bits
    back = ONES >> spare if spare < _WORD_BITS else ZERO
    return front, back


@jit_inline
def sow(front: U, back: U, seeds: U, pit: U, down: U) -> tuple[U, U]:
    """Return both rows after sowing ``seeds`` (0..64) one by one from ring pit ``pit`` (1.3)."""
    lowest = (pit - ((seeds - ONE) & (ZERO - down))) & RING_MASK  # the run as if sown upward
    end = lowest + seeds
    # Pit r of an upward run [lowest, end) gets: [r < end mod 16] - [r < lowest] + rounds.
    rounds = ((end >> _ROUND_SHIFT) & _MAX_ROUNDS) * _FOUR_ONES  # at most 4: the bytes don't carry
    rounds |= rounds << _HALF_WORD
    front_end, back_end = _below(end & RING_MASK)
    front_low, back_low = _below(lowest)
    return front + (front_end - front_low + rounds), back + (back_end - back_low + rounds)


@jit_inline
def relay(rules: KernelRules, hand: Hand) -> Hand:
    """Sow the hand once and apply the rules at its last pit, without a branch.

    An empty hand is returned unchanged. If the returned hand is empty, the move has ended at
    ``pit``. A capture that wins or pauses leaves the captured seeds in ``facing``; finish() or the
    next action lifts them.

    Endelea cannot lose the game by emptying the mover's front row (1.2). It would have to lift a
    kichwa while heading outward, and the sowing that led there either left a seed in the kimbi
    before it or was a lone captured seed heading inward.
    """
    seeds, pit, down, facing, tally = hand.seeds, hand.pit, hand.down, hand.facing, hand.tally
    live = _mask(seeds != ZERO)
    tally += seeds << TALLY_SHIFT
    finite = _mask((tally >> TALLY_SHIFT) <= rules.sow_limit)  # 1.5a
    tally |= live & ~finite & INFINITE
    last = (pit + ((seeds - ONE) ^ (ZERO - down)) + down) & RING_MASK
    front, back = sow(hand.front, hand.back, seeds, pit, down)

    in_back = ZERO - (last >> ROW_SHIFT)
    shift = (last & IN_ROW) << PIT_BITS_SHIFT
    at_last = BYTE << shift
    count = (((front & ~in_back) | (back & in_back)) >> shift) & BYTE
    facing_seeds = (facing >> shift) & BYTE & ~in_back
    left_end = _mask(last < _BEHIND_LEFT_END)
    right_end = _mask(last >= _RIGHT_END) & ~in_back

    goes_on = live & finite & _mask(count != ONE)  # 1.5: a sowing that ends in an empty pit stops
    captures = goes_on & _mask(facing_seeds != ZERO)  # 1.4, 1.6c
    free_side = ZERO - ((tally >> _FREE_SIDE_SHIFT) & ONE)
    pauses = captures & ~left_end & ~right_end & free_side  # Dutch I.a
    wins = captures & ~pauses & _mask((facing & ~at_last) == ZERO)  # 1.2
    lifts = goes_on & ~captures
    at_house = lifts & _mask(last == HOUSE)
    house_acts = at_house & _mask(count >= hand.house_min)
    tally |= house_acts & ~hand.stops_at_house & CHOICE  # 2.5b (2)
    lifts &= ~(house_acts & hand.stops_at_house)  # 2.5b (1), and the choice not to play it
    lifts &= _mask(last != hand.barred)  # 1.6b, 4.1b
    tally |= wins & WON
    tally |= pauses & PAUSED
    tally |= lifts & at_house & HOUSE_LIFTED  # 2.5a
    house_min = hand.house_min | (lifts & at_house)
    takes = captures & ~wins & ~pauses

    # 1.4b: a capture at a kichwa or kimbi is sown inward from the near kichwa; 1.4c: elsewhere
    # the running direction stays. Dutch I.a: endelea from there turns inward as well.
    turns = captures | (lifts & (ZERO - rules.endelea_turns) & _mask(facing != ZERO))
    inward = ((down | (right_end & ONE)) & ~left_end) & ONE
    down = (turns & inward) | (~turns & down)
    front &= ~(lifts & at_last & ~in_back)
    back &= ~(lifts & at_last & in_back)
    facing &= ~(takes & at_last)
    seeds = (takes & facing_seeds) | (lifts & count)
    from_kichwa = (ZERO - down) & RIGHT_KICHWA
    onward = (last + _step(down)) & RING_MASK
    stays = (live & last) | (~live & pit)
    pit = (takes & from_kichwa) | (lifts & onward) | (~takes & ~lifts & stays)
    return Hand(
        front, back, facing, seeds, pit, down, house_min, hand.barred, hand.stops_at_house, tally
    )


@jit_inline
def play_out(rules: KernelRules, hand: Hand) -> Hand:
    """Return the hand at the end of its move."""
    while hand.seeds != ZERO:
        hand = relay(rules, hand)
    return hand


@jit_inline
def first_hand(
    rules: KernelRules, rows: Rows, capture_turn: bool, start: U, stops_at_house: U
) -> Hand:
    """Return the hand after the first lift of a move.

    Args:
        capture_turn: whether the start captures.
        start: a start from :func:`candidates`.
        stops_at_house: all ones if a capture move stops at a house that acts, zero if it plays the
            house; a takasa always stops.
    """
    front, back, meta = rows.front, rows.back, rows.meta
    ring, down = ring_of(start), down_of(start)
    namua = store_of(meta) != ZERO
    pending = pending_of(meta)
    owned = owns_house(meta)
    shift = (ring & IN_ROW) << PIT_BITS_SHIFT
    at_ring = BYTE << shift

    if capture_turn and (namua or pending != NO_PIT):
        # 2.3: the store seed captures, and the first hand is the captured seeds.
        tally = ZERO
        house_min = FULL
        if namua:
            tally = FREE_SIDE if rules.capture_side == FREE else ZERO
            if owned:
                house_min = rules.house_min
        if pending == NO_PIT:
            front += ONE << shift  # 2.2
            tally += ONE << TALLY_SHIFT
        else:
            # Dutch I.a: a waiting capture continues; its store seed is in the pit already.
            # CHOICE: the store at the start of an action decides its stage, so a capture that
            # waits after the last store seed continues as in mtaji.
            tally |= sown_of(meta) << TALLY_SHIFT
        facing = byteswap(rows.other_front)
        seeds = (facing >> shift) & BYTE
        remaining = facing & ~at_ring
        pit = (ZERO - down) & RIGHT_KICHWA  # 1.4a
        if remaining == ZERO:  # 1.2: the first capture takes the last front seeds
            return Hand(
                front,
                back,
                facing,
                ZERO,
                ring,
                down,
                house_min,
                NO_PIT,
                stops_at_house,
                tally | WON,
            )
        return Hand(
            front, back, remaining, seeds, pit, down, house_min, NO_PIT, stops_at_house, tally
        )

    # 2.4, 3.3: the first hand is lifted from one of the mover's pits.
    store_seed = ONE if namua else ZERO  # 2.2
    tally = store_seed << TALLY_SHIFT
    in_back = ZERO - (ring >> ROW_SHIFT)
    seeds = ((((front & ~in_back) | (back & in_back)) >> shift) & BYTE) + store_seed
    front &= ~(at_ring & ~in_back)
    back &= ~(at_ring & in_back)
    pit = (ring + _step(down)) & RING_MASK
    house_min = FULL
    barred = NO_PIT
    facing = ZERO
    if capture_turn:
        facing = byteswap(rows.other_front)
    else:
        stops_at_house = FULL
        barred = barred_of(meta)
        if owned and (namua or rules.house_stops_mtaji_takasa != ZERO):  # 2.5b (1); kibao 1.6.2
            house_min = rules.house_min
    if ring == HOUSE:
        alone = front == ZERO and (back == ZERO or rules.lone_house != _SIDE)
        # 2.4b: two seeds are sown, the house stays. `seeds` includes the one that has entered.
        if namua and alone and seeds > house_min:
            front = (seeds - _TWO_SEEDS) << shift
            if rules.house_lost_below_min != ZERO and seeds - _TWO_SEEDS < house_min:
                house_min = FULL  # Dutch footnote 2
                tally |= HOUSE_LIFTED
            seeds = _TWO_SEEDS
        else:  # 2.5a
            house_min = FULL
            tally |= HOUSE_LIFTED
    if front == ZERO and pit >= ROW and ring < ROW:
        # 1.2: a lone kichwa was lifted toward the back row, so the mover's front row is empty.
        return Hand(
            seeds << shift,
            back,
            facing,
            ZERO,
            pit,
            down,
            house_min,
            barred,
            stops_at_house,
            tally | LOST,
        )
    return Hand(front, back, facing, seeds, pit, down, house_min, barred, stops_at_house, tally)


@jit_inline
def captured_by(rows: Rows, capture_turn: bool, hand: Hand) -> U:
    """Return how many seeds a finished move captured; ``rows`` is the position before it."""
    if not capture_turn:
        return ZERO
    captured = sum_of_bytes(rows.other_front) - sum_of_bytes(hand.facing)
    if hand.tally & (WON | PAUSED):
        captured += byte(hand.facing, hand.pit)
    return captured


@jit_inline
def finish(
    rules: KernelRules, rows: Rows, capture_turn: bool, hand: Hand, bars: bool = True
) -> tuple[Rows, U]:
    """Return the position after a finished move.

    Args:
        rows: the position before the move.
        capture_turn: whether the move captures.
        hand: the hand at the end of the move.
        bars: whether to find the pit that takasia bars (4.1), which only a further move needs.

    Returns:
        the position as :class:`Rows`, and a result: ONE if the mover has won, FULL if they
        have lost, else ZERO.
    """
    meta, tally = rows.meta, hand.tally
    front, back, facing = hand.front, hand.back, hand.facing
    captures = _mask(capture_turn)
    store = store_of(meta)
    other_store = other_store_of(meta)
    namua = _mask(store != ZERO)
    if tally & WON:
        # The game is over; the captured seeds are sown once so that all 64 stay on the board.
        seeds = byte(facing, hand.pit)
        front, back = sow(front, back, seeds, (ZERO - hand.down) & RIGHT_KICHWA, hand.down)
        facing = ZERO
    other_front = (captures & byteswap(facing)) | (~captures & rows.other_front)
    other_back = rows.other_back
    store -= namua & _mask(pending_of(meta) == NO_PIT) & ONE  # 2.2

    # 2.5a: a house ends when it is emptied, by its owner or by capture; both end with the first
    # capture in mtaji.
    keeps_houses = ~(captures & ~namua)
    own_house = meta & OWNS_HOUSE & keeps_houses & _mask((tally & HOUSE_LIFTED) == ZERO)
    other_house = meta & OTHER_OWNS_HOUSE & keeps_houses & _mask(byte(other_front, HOUSE) != ZERO)
    seat = meta & MOVER_IS_NORTH

    if tally & PAUSED:  # Dutch I.a: the same player acts again
        after = store | (other_store << OTHER_STORE_SHIFT) | own_house | other_house | seat
        after |= (NO_PIT << BARRED_SHIFT) | (hand.pit << PENDING_SHIFT)
        after |= (tally >> TALLY_SHIFT) << SOWN_SHIFT
        return Rows(front, back, other_front, other_back, after), ZERO

    barred = NO_PIT
    if bars and (namua | captures | other_store) == ZERO and rules.takasia == TAKASIA_ZANZIBAR:
        barred = takasia_bar(rules, front, back, other_front, other_back, other_house)
    after = other_store | (store << OTHER_STORE_SHIFT) | (other_house >> ONE) | (own_house << ONE)
    after |= (seat ^ MOVER_IS_NORTH) | (barred << BARRED_SHIFT) | NO_PENDING
    result = ZERO
    if tally & (WON | LOST):
        result = ONE if tally & WON else FULL
    return Rows(other_front, other_back, front, back, after), result


@jit_inner
def simulate(
    rules: KernelRules,
    rows: Rows,
    capture_turn: bool,
    start: U,
    stops_at_house: U,
    bars: bool = True,
) -> Played:
    """Play a start from :func:`candidates` to the end of its move.

    Args:
        rules, rows, capture_turn, start, stops_at_house: see :func:`first_hand`.
        bars: see :func:`finish`.

    Returns:
        a :class:`Played`.
    """
    hand = play_out(rules, first_hand(rules, rows, capture_turn, start, stops_at_house))
    after, result = finish(rules, rows, capture_turn, hand, bars)
    return Played(after, result, hand.tally, captured_by(rows, capture_turn, hand))


@jit_inline
def house_bits(tally: U) -> U:
    """Return the legal actions of a simulated start, as two bits: house 0, house 1.

    With a house choice, stopping at the house is always finite, even if playing it is not (2.5b).
    Without a choice there is only house 0, and an infinite move is illegal (1.5a).
    """
    finite = ONE ^ (tally & INFINITE)
    choice = (tally >> _CHOICE_SHIFT) & ONE
    return finite | choice | ((finite & choice) << ONE)


@jit_brief
def legal_of(rules: KernelRules, packed: PackedPositions) -> U:
    """Return the legal actions of a packed position, uint64[6], as a uint64.

    0 means that the mover has no legal move and has lost (1.2, 1.5a).
    """
    rows = load_rows(packed)
    capture_turn, starts = candidates(rules, rows)
    legal = ZERO
    while starts != ZERO:
        start = trailing_zeros(starts)
        starts &= starts - ONE
        hand = play_out(rules, first_hand(rules, rows, capture_turn, start, ZERO))
        legal |= house_bits(hand.tally) << action_of(rows.meta, capture_turn, start)
    return legal


@jit_inline
def begin_action(rules: KernelRules, rows: Rows, action: U) -> tuple[bool, Hand]:
    """Return whether a legal action captures, and the hand after its first lift."""
    capture_turn = is_capture(rules, rows, action)
    start = start_of(rows.meta, capture_turn, action)
    stops_at_house = ZERO if action & ONE else FULL
    return capture_turn, first_hand(rules, rows, capture_turn, start, stops_at_house)


@jit_brief
def play(rules: KernelRules, packed: PackedPositions, action: U) -> U:
    """Play a legal action on a packed position, uint64[6], in place.

    The action is not validated: play only actions of legal_of().

    Returns ONE if the mover has won by emptying the opponent's front row, FULL if they have emptied
    their own, else ZERO. If the next player has no legal move, only legal_of() shows it.
    """
    rows = load_rows(packed)
    capture_turn, hand = begin_action(rules, rows, action)
    after, result = finish(rules, rows, capture_turn, play_out(rules, hand))
    store_rows(packed, after)
    packed[PLY] += ONE
    return result


@jit
def advance(rules: KernelRules, packed: PackedPositions, action: U) -> tuple[U, np.int64, bool]:
    """Play a legal action on a packed position, in place, and find the next legal actions.

    ``packed`` is uint64[6].

    Returns:
        the next legal actions as :func:`legal_of` returns them, 0 if the game is over; the seat
        that has won, int64, or -1; and whether it won because the other seat has no legal move.
    """
    actor = np.int64(mover_of(packed[META]))
    result = play(rules, packed, action)
    if result != ZERO:
        return ZERO, actor if result == ONE else 1 - actor, False
    legal = legal_of(rules, packed)
    if legal != ZERO:
        return legal, np.int64(NO_WINNER), False
    return legal, 1 - np.int64(mover_of(packed[META])), True  # Donkers 1.2, 1.5a
