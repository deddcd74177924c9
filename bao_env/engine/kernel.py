"""The rules of Bao, on packed positions (:mod:`bao_env.engine.position`).

A move is a chain of sowings, simulated as a :class:`Hand`. The functions are

    candidates()  the starts that may be played, before infinite moves are excluded
    begin()       the hand after the first lift of a start
    relay()       one sowing and the rules at its last pit; branch-free, so that the lanes can
                  run many hands in lock step
    play_out()    relay() until the hand is empty
    finish()      the position after the move
    simulate(), legal_mask(), play()   combinations of these

All values are uint64. A truth value in arithmetic is a mask, all ones or all zeros. ``down`` is 0
for step +1 along the ring and 1 for step -1.

Rule numbers are Donkers' unless another source is named; see ``bao_env/RULES.md``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bao_env.engine import layout
from bao_env.engine.action import (
    RING_MASK,
    action_of,
    down_of,
    enters,
    ring_of,
    start_of,
)
from bao_env.engine.bits import (
    BYTE,
    FULL,
    ONE,
    ONES,
    ZERO,
    U,
    at_least_2,
    at_least_16,
    byte,
    byteswap,
    nonzero,
    sum_of_bytes,
    trailing_zeros,
)
from bao_env.engine.compile import jit, jit_inline
from bao_env.engine.position import (
    BARRED_SHIFT,
    MOVER_IS_NORTH,
    NO_PENDING,
    NO_PIT,
    OTHER_OWNS_HOUSE,
    OTHER_STORE_SHIFT,
    OWNS_HOUSE,
    PENDING_SHIFT,
    PLY,
    SOWN_SHIFT,
    Packed,
    barred_of,
    other_store_of,
    owns_house,
    pending_of,
    read,
    sown_of,
    store_of,
    write,
)

HOUSE = U(layout.HOUSE)

_TWO_OR_MORE = U(0xFEFEFEFEFEFEFEFE)  # bits of a count that are set only from two seeds on

# A hand's tally: these eight flags, and above them the seeds sown in the move so far.
INFINITE = U(1)  # more than sow_limit seeds sown: the move is illegal (1.5a)
CHOICE = U(2)  # the move came to a house that may be played (2.5b)
WON = U(4)  # the capture waiting at `pit` takes the last front seeds (1.2)
LOST = U(8)  # the first lift empties the mover's front row for good (1.2)
PAUSED = U(16)  # the capture at `pit` awaits its side (Dutch I.a)
HOUSE_LIFTED = U(32)  # the mover emptied hole 5, or let their house fall (Dutch fn. 2)
FREE_SIDE = U(64)  # input: captures of this move choose their side
_FREE_SIDE_SHIFT = U(6)
_CHOICE_SHIFT = U(1)
TALLY_SHIFT = U(8)

# Ring pits 0..7 are the front row, 8..15 the back row; a pit is a byte of its row's word.
_ROW = U(8)
_ROW_SHIFT = U(3)
_IN_ROW = U(7)
_PIT_BITS_SHIFT = U(3)
_WORD_BITS = U(64)
_SIDE_BITS = U(128)
# Kichwa and kimbi: ring pits 0 and 1 on the left, 6 and 7 on the right.
_BEHIND_LEFT_END = U(2)
_RIGHT_END = U(6)
_NOT_LEFT_END = U(0xFC)
_NOT_RIGHT_END = U(0x3F)
_RIGHT_KICHWA = U(7)
# A round is a seed in each of the sixteen pits of the ring.
_ROUND = U(16)
_ROUND_SHIFT = U(4)
_MAX_ROUNDS = U(7)
_SIXTEENS = U(0x1010101010101010)
_FOUR_ONES = U(0x01010101)
_HALF_WORD = U(32)
_DOWN_STARTS_SHIFT = U(16)  # in a set of starts, those going down stand above
_TWO_SEEDS = U(2)
_TAKASIA_ZANZIBAR = U(1)  # KernelRules.takasia
_TAKASIA_DUTCH = U(2)


class Hand(NamedTuple):
    """A move that is being played, or its end; uint64 each."""

    front: np.uint64
    """The mover's front row, a byte a pit."""
    back: np.uint64
    """The mover's back row."""
    facing: np.uint64
    """The opponent's front row with its bytes reversed, so that byte r faces own pit r; 0 in a
    takasa, which never captures (1.7)."""
    seeds: np.uint64
    """Seeds in the hand; 0 ends the move."""
    pit: np.uint64
    """Ring pit of the next seed; the last pit of the move if the hand is empty."""
    down: np.uint64
    """0 or 1, the step along the ring."""
    house_min: np.uint64
    """The fewest seeds with which the house acts; all ones if hole 5 is an ordinary hole."""
    barred: np.uint64
    """Ring pit at which takasia stops the move, or NO_PIT."""
    stops: np.uint64
    """All ones to stop at a house that acts, zero to play it."""
    tally: np.uint64
    """Seeds sown in the move so far, and the flags above."""


class Played(NamedTuple):
    """The result of a start."""

    after: Packed
    """The position after it."""
    result: np.uint64
    """ONE if the mover has won, FULL if they have lost, else ZERO."""
    tally: np.uint64
    """The tally of the last :class:`Hand`; INFINITE: the move is illegal; CHOICE: it came to a
    house."""
    captured: np.uint64
    """Seeds captured."""


@jit_inline
def _mask(condition):
    """Return all ones if the condition holds, else zero."""
    return FULL if condition else ZERO


@jit_inline
def _step(down):
    """Return +1 or -1, modulo 2^64."""
    return (ZERO - down) | ONE


@jit_inline
def _below(ring):
    """Return the two rows with a seed in each ring pit below ``ring`` (0..15)."""
    bits = ring << _PIT_BITS_SHIFT
    front = ((ONE << bits if bits < _WORD_BITS else ZERO) - ONE) & ONES
    spare = _SIDE_BITS - bits
    back = ONES >> spare if spare < _WORD_BITS else ZERO
    return front, back


@jit_inline
def sow(front, back, seeds, pit, down):
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
def relay(rules, hand):
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

    in_back = ZERO - (last >> _ROW_SHIFT)
    shift = (last & _IN_ROW) << _PIT_BITS_SHIFT
    at_last = BYTE << shift
    count = (((front & ~in_back) | (back & in_back)) >> shift) & BYTE
    prey = (facing >> shift) & BYTE & ~in_back
    left_end = _mask(last < _BEHIND_LEFT_END)
    right_end = _mask(last >= _RIGHT_END) & ~in_back

    goes_on = live & finite & _mask(count != ONE)  # 1.5: a sowing that ends in an empty pit stops
    captures = goes_on & _mask(prey != ZERO)  # 1.4, 1.6c
    free_side = ZERO - ((tally >> _FREE_SIDE_SHIFT) & ONE)
    pauses = captures & ~left_end & ~right_end & free_side  # Dutch I.a
    wins = captures & ~pauses & _mask((facing & ~at_last) == ZERO)  # 1.2
    lifts = goes_on & ~captures
    at_house = lifts & _mask(last == HOUSE)
    house_acts = at_house & _mask(count >= hand.house_min)
    tally |= house_acts & ~hand.stops & CHOICE  # 2.5b (2)
    lifts &= ~(house_acts & hand.stops)  # 2.5b (1), and the choice not to play it
    lifts &= _mask(last != hand.barred)  # 1.6b, 4.1b
    tally |= wins & WON
    tally |= pauses & PAUSED
    tally |= lifts & at_house & HOUSE_LIFTED  # 2.5a
    house_min = hand.house_min | (lifts & at_house)
    eats = captures & ~wins & ~pauses

    # 1.4b: a capture at a kichwa or kimbi is sown inward from the near kichwa; 1.4c: elsewhere
    # the running direction stays. Dutch I.a: endelea from there turns inward as well.
    turns = captures | (lifts & rules.turns_mask & _mask(facing != ZERO))
    inward = ((down | (right_end & ONE)) & ~left_end) & ONE
    down = (turns & inward) | (~turns & down)
    front &= ~(lifts & at_last & ~in_back)
    back &= ~(lifts & at_last & in_back)
    facing &= ~(eats & at_last)
    seeds = (eats & prey) | (lifts & count)
    from_kichwa = (ZERO - down) & _RIGHT_KICHWA
    onward = (last + _step(down)) & RING_MASK
    stays = (live & last) | (~live & pit)
    pit = (eats & from_kichwa) | (lifts & onward) | (~eats & ~lifts & stays)
    return Hand(front, back, facing, seeds, pit, down, house_min, hand.barred, hand.stops, tally)


@jit_inline
def play_out(rules, hand):
    """Return the hand at the end of its move."""
    while hand.seeds != ZERO:
        hand = relay(rules, hand)
    return hand


@jit_inline
def _first_captures_of(front, back, capture_limit, starts, hits):
    """Find the captures of :func:`first_captures` for a part of the starts.

    Args:
        front, back: the mover's rows.
        capture_limit: the most seeds that may start a capture.
        starts: ring pits, as a bit set.
        hits: front pits, as a bit set, at which a last seed captures.
    """
    up = ZERO
    down = ZERO
    targets = ZERO
    while starts != ZERO:
        ring = trailing_zeros(starts)
        starts &= starts - ONE
        seeds = byte(back if ring >= _ROW else front, ring & _IN_ROW)
        if seeds > capture_limit:
            continue
        end = (ring + seeds) & RING_MASK
        hit = (hits >> end) & ONE
        up |= hit << ring
        targets |= hit << end
        end = (ring - seeds) & RING_MASK
        hit = (hits >> end) & ONE
        down |= hit << ring
        targets |= hit << end
    return up, down, targets


@jit
def first_captures(front, back, facing, capture_limit):
    """Find where a first sowing in mtaji can capture (3.4).

    Returns bit sets over ring pits: starts that capture going up, starts that capture going down,
    and the own front pits at which they capture.
    """
    prey = nonzero(facing)
    filled = nonzero(front) & prey
    if filled == ZERO and (capture_limit < _ROUND or prey == ZERO):
        return ZERO, ZERO, ZERO
    playable = at_least_2(front) | (at_least_2(back) << _ROW)
    large = at_least_16(front) | (at_least_16(back) << _ROW)
    up, down, targets = _first_captures_of(front, back, capture_limit, playable & ~large, filled)
    if capture_limit >= _ROUND and large != ZERO:
        # Dutch: no limit. A hand of 17 or more has put a seed into every pit before its last
        # seed; a hand of 16 ends in the pit that it left, which is empty.
        large &= nonzero(front ^ _SIXTEENS) | (nonzero(back ^ _SIXTEENS) << _ROW)
        more = _first_captures_of(front, back, capture_limit, large, prey)
        return up | more[0], down | more[1], targets | more[2]
    return up, down, targets


@jit_inline
def _namua_captures(front, facing):
    """Return the own front pits, as bits, at which a seed from the store captures (2.3)."""
    return nonzero(front) & nonzero(facing)


@jit
def capture_targets(rules, front, back, facing, store):
    """Return the own front pits, as bits, at which a first sowing could capture."""
    if store != ZERO:
        return _namua_captures(front, facing)
    up, down, targets = first_captures(front, back, facing, rules.capture_limit)
    return targets


@jit_inline
def cannot_play(front, back, store):
    """Return whether a player has no hole to play from, by their rows alone (1.2).

    In namua a filled front hole is enough for a move, in mtaji a hole with two seeds. The only
    players without a move that this misses are those whose moves are all infinite (1.5a).

    Args:
        front, back: their rows.
        store: their seeds in store: at least one in namua.
    """
    return (front if store != ZERO else (front | back) & _TWO_OR_MORE) == ZERO


@jit_inline
def _single(bits):
    """Return whether exactly one bit is set."""
    return bits != ZERO and (bits & (bits - ONE)) == ZERO


@jit_inline
def candidates(rules, packed):
    """Find the starts that the rules allow, before infinite moves are excluded.

    Returns:
        whether they capture; and the starts as bits, bit s for start s
        (:mod:`bao_env.engine.action`).
    """
    front, back, meta = packed.front, packed.back, packed.meta
    facing = byteswap(packed.other_front)
    pending = pending_of(meta)
    filled = nonzero(front)

    if pending != NO_PIT:  # Dutch I.a: the sides of the waiting capture
        return True, (ONE << pending) | (ONE << (pending + _DOWN_STARTS_SHIFT))

    if store_of(meta) != ZERO:
        captures = _namua_captures(front, facing)
        if captures != ZERO:  # 2.3b, 1.7a; side forced at kichwa and kimbi, 1.4b
            going_down = (captures & _NOT_LEFT_END) << _DOWN_STARTS_SHIFT
            return True, (captures & _NOT_RIGHT_END) | going_down
        starts = _namua_takasa(rules, front, back, filled, meta)
    else:
        up, down, targets = first_captures(front, back, facing, rules.capture_limit)
        if targets != ZERO:  # 3.4, 1.7a
            return True, up | (down << _DOWN_STARTS_SHIFT)
        starts = at_least_2(front)
        barred = barred_of(meta)
        if barred != NO_PIT:  # 4.1
            starts &= ~(ONE << barred)
        if rules.takasia == _TAKASIA_DUTCH:
            starts = _dutch_takasia(rules, packed, starts)
        if starts == ZERO:  # 3.5a: the back row only if the front row offers nothing
            starts = at_least_2(back) << _ROW
            return False, starts | (starts << _DOWN_STARTS_SHIFT)
    up = starts
    down = starts
    if _single(filled) and rules.lone_kichwa_loses == ZERO:  # 2.4a, 3.5b
        up &= ~(ONE << _RIGHT_KICHWA)
        down &= ~ONE
    return False, up | (down << _DOWN_STARTS_SHIFT)


@jit
def _namua_takasa(rules, front, back, filled, meta):
    """Return the front pits, as bits, from which a takasa in namua may start (2.4)."""
    starts = filled
    owned = owns_house(meta)
    house = ONE << HOUSE
    acts = owned and byte(front, HOUSE) >= rules.house_min
    if acts and filled != house:  # 2.4b
        starts &= ~house
    if rules.singletons_only != ZERO:  # Dutch I.b
        fuller = at_least_2(front)
        if acts:
            fuller &= ~house
        if fuller != ZERO:
            starts &= fuller
    elif not owned:  # 2.4c
        fuller = at_least_2(front)
        if fuller != ZERO:
            starts = fuller
    return starts


@jit
def _dutch_takasia(rules, packed, starts):
    """Remove the one threatened pit from ``starts``, if there is another (Dutch II)."""
    if _single(starts) or starts == ZERO:
        return starts
    threats = capture_targets(
        rules,
        packed.other_front,
        packed.other_back,
        byteswap(packed.front),
        other_store_of(packed.meta),
    )
    if not _single(threats):
        return starts
    return starts & ~(ONE << (_IN_ROW - trailing_zeros(threats)))


@jit_inline
def begin(rules, packed, capture_turn, start, stops):
    """Return the hand after the first lift of a move.

    Args:
        rules: the :class:`KernelRules`.
        packed: the position.
        capture_turn: whether the start captures.
        start: one of :func:`candidates`.
        stops: all ones to stop at a house that acts, in a capture move; a takasa always stops.
    """
    front, back, meta = packed.front, packed.back, packed.meta
    ring, down = ring_of(start), down_of(start)
    namua = store_of(meta) != ZERO
    pending = pending_of(meta)
    owned = owns_house(meta)
    shift = (ring & _IN_ROW) << _PIT_BITS_SHIFT
    at_ring = BYTE << shift

    if capture_turn and (namua or pending != NO_PIT):
        # 2.3: the store seed captures, and the first hand is the captured seeds.
        tally = ZERO
        house_min = FULL
        if namua:
            tally = rules.free_side * FREE_SIDE
            if owned:
                house_min = rules.house_min
        if pending == NO_PIT:
            front += ONE << shift  # 2.2
            tally += ONE << TALLY_SHIFT
        else:
            # Dutch I.a: a waiting capture continues; its store seed lies in the pit already.
            # CHOICE: the store at its start decides the stage of an action, so a capture that
            # waits after the last store seed continues as in mtaji.
            tally |= sown_of(meta) << TALLY_SHIFT
        facing = byteswap(packed.other_front)
        seeds = (facing >> shift) & BYTE
        rest = facing & ~at_ring
        pit = (ZERO - down) & _RIGHT_KICHWA  # 1.4a
        if rest == ZERO:  # 1.2: the first capture takes the last front seeds
            return Hand(
                front, back, facing, ZERO, ring, down, house_min, NO_PIT, stops, tally | WON
            )
        return Hand(front, back, rest, seeds, pit, down, house_min, NO_PIT, stops, tally)

    # 2.4, 3.3: the first hand is lifted from an own pit.
    store_seed = ONE if namua else ZERO  # 2.2
    tally = store_seed << TALLY_SHIFT
    in_back = ZERO - (ring >> _ROW_SHIFT)
    seeds = ((((front & ~in_back) | (back & in_back)) >> shift) & BYTE) + store_seed
    front &= ~(at_ring & ~in_back)
    back &= ~(at_ring & in_back)
    pit = (ring + _step(down)) & RING_MASK
    house_min = FULL
    barred = NO_PIT
    facing = ZERO
    if capture_turn:
        facing = byteswap(packed.other_front)
    else:
        stops = FULL
        barred = barred_of(meta)
        if owned and (namua or rules.house_stops_mtaji_takasa != ZERO):  # 2.5b (1); kibao 1.6.2
            house_min = rules.house_min
    if ring == HOUSE:
        alone = front == ZERO and (back == ZERO or rules.lone_house_side == ZERO)
        if namua and alone and seeds > house_min:  # 2.4b: two seeds go, the house stays
            front = (seeds - _TWO_SEEDS) << shift
            if rules.house_lost_below_min != ZERO and seeds - _TWO_SEEDS < house_min:
                house_min = FULL  # Dutch footnote 2
                tally |= HOUSE_LIFTED
            seeds = _TWO_SEEDS
        else:  # 2.5a
            house_min = FULL
            tally |= HOUSE_LIFTED
    if front == ZERO and pit >= _ROW and ring < _ROW:
        # 1.2: the mover's front row is empty, after a lone kichwa that heads for the back row.
        return Hand(
            seeds << shift, back, facing, ZERO, pit, down, house_min, barred, stops, tally | LOST
        )
    return Hand(front, back, facing, seeds, pit, down, house_min, barred, stops, tally)


@jit_inline
def captured_by(packed, capture_turn, hand):
    """Return the seeds that a finished move has captured; ``packed`` is the position before."""
    if not capture_turn:
        return ZERO
    captured = sum_of_bytes(packed.other_front) - sum_of_bytes(hand.facing)
    if hand.tally & (WON | PAUSED):
        captured += byte(hand.facing, hand.pit)
    return captured


@jit_inline
def finish(rules, packed, capture_turn, hand, bars=True):
    """Return the position after a finished move.

    Args:
        rules: the :class:`KernelRules`.
        packed: the position before the move.
        capture_turn: whether the move captures.
        hand: the hand at its end.
        bars: whether to find the pit that takasia bars (4.1), which only a further move needs.

    Returns:
        the position as :class:`Packed`, and a result: ONE if the mover has won, FULL if they
        have lost, else ZERO.
    """
    meta, tally = packed.meta, hand.tally
    front, back, facing = hand.front, hand.back, hand.facing
    captures = _mask(capture_turn)
    store = store_of(meta)
    other_store = other_store_of(meta)
    namua = _mask(store != ZERO)
    if tally & WON:
        # The game is over; the captured seeds are sown once so that all 64 stay on the board.
        seeds = byte(facing, hand.pit)
        front, back = sow(front, back, seeds, (ZERO - hand.down) & _RIGHT_KICHWA, hand.down)
        facing = ZERO
    other_front = (captures & byteswap(facing)) | (~captures & packed.other_front)
    other_back = packed.other_back
    store -= namua & _mask(pending_of(meta) == NO_PIT) & ONE  # 2.2

    # 2.5a: a house ends when it is emptied, by its owner or by capture; both end with the first
    # capture in mtaji.
    both = ~(captures & ~namua)
    mine = meta & OWNS_HOUSE & both & _mask((tally & HOUSE_LIFTED) == ZERO)
    theirs = meta & OTHER_OWNS_HOUSE & both & _mask(byte(other_front, HOUSE) != ZERO)
    seat = meta & MOVER_IS_NORTH

    if tally & PAUSED:  # Dutch I.a: the same player acts again
        after = store | (other_store << OTHER_STORE_SHIFT) | mine | theirs | seat
        after |= (NO_PIT << BARRED_SHIFT) | (hand.pit << PENDING_SHIFT)
        after |= (tally >> TALLY_SHIFT) << SOWN_SHIFT
        return Packed(front, back, other_front, other_back, after), ZERO

    barred = NO_PIT
    if bars and (namua | captures | other_store) == ZERO and rules.takasia == _TAKASIA_ZANZIBAR:
        barred = _takasia(rules, front, back, other_front, other_back, theirs)
    after = other_store | (store << OTHER_STORE_SHIFT) | (theirs >> ONE) | (mine << ONE)
    after |= (seat ^ MOVER_IS_NORTH) | (barred << BARRED_SHIFT) | NO_PENDING
    result = ZERO
    if tally & (WON | LOST):
        result = ONE if tally & WON else FULL
    return Packed(other_front, other_back, front, back, after), result


@jit
def _takasia(rules, front, back, other_front, other_back, other_owned):
    """Return the ring pit barred to the next player after a takasa in mtaji, or NO_PIT (4.1).

    Args:
        rules: the :class:`KernelRules`.
        front, back: rows of the player who made the takasa.
        other_front, other_back: rows of the next player.
        other_owned: not zero if the next player owns their house.
    """
    up, down, targets = first_captures(
        other_front, other_back, byteswap(front), rules.capture_limit
    )
    if targets != ZERO:
        return NO_PIT  # they need not takasa
    up, down, targets = first_captures(front, back, byteswap(other_front), rules.capture_limit)
    if not _single(targets):
        return NO_PIT
    ring = _IN_ROW - trailing_zeros(targets)
    pit = ONE << ring
    if ring == HOUSE and other_owned != ZERO:  # 4.1c
        return NO_PIT
    if nonzero(other_front) == pit or at_least_2(other_front) == pit:  # 4.1a
        return NO_PIT
    return ring


@jit
def simulate(rules, packed, capture_turn, start, stops, bars=True):
    """Play a start of :func:`candidates` to the end of its move.

    Args:
        rules, packed, capture_turn, start, stops: those of :func:`begin`.
        bars: see :func:`finish`.

    Returns:
        a :class:`Played`.
    """
    hand = play_out(rules, begin(rules, packed, capture_turn, start, stops))
    after, result = finish(rules, packed, capture_turn, hand, bars)
    return Played(after, result, hand.tally, captured_by(packed, capture_turn, hand))


@jit_inline
def legal_bits(tally):
    """Return the legal actions of a simulated start, as two bits: house 0, house 1.

    With a house choice, stopping at the house is always finite, even if playing it is not (2.5b).
    Without a choice there is only house 0, and an infinite move is illegal (1.5a).
    """
    finite = ONE ^ (tally & INFINITE)
    choice = (tally >> _CHOICE_SHIFT) & ONE
    return finite | choice | ((finite & choice) << ONE)


@jit
def legal_mask(rules, words):
    """Return the legal actions of a packed position, uint64[6], as a uint64: bit a = action a.

    Zero means that the mover has no legal move and has lost (1.2, 1.5a).
    """
    packed = read(words)
    capture_turn, starts = candidates(rules, packed)
    legal = ZERO
    while starts != ZERO:
        start = trailing_zeros(starts)
        starts &= starts - ONE
        hand = play_out(rules, begin(rules, packed, capture_turn, start, ZERO))
        legal |= legal_bits(hand.tally) << action_of(packed.meta, capture_turn, start)
    return legal


@jit_inline
def is_capture(rules, packed, action):
    """Return whether a legal action captures.

    The first sowing decides: if one legal start captures, all of them do (1.7a).
    """
    front = packed.front
    facing = byteswap(packed.other_front)
    start = start_of(packed.meta, False, action)
    ring = ring_of(start)
    in_back = ZERO - (ring >> _ROW_SHIFT)
    shift = (ring & _IN_ROW) << _PIT_BITS_SHIFT
    seeds = (((front & ~in_back) | (packed.back & in_back)) >> shift) & BYTE
    backward = ZERO - down_of(start)
    end = (ring + ((seeds ^ backward) - backward)) & RING_MASK
    entering = enters(packed.meta)
    # 2.3: the store seed's own pit; 3.4: the last pit of the first sowing. There a hand of 17 or
    # more finds a seed of its own first round, and a hand of 16 the pit that it emptied.
    pit = (entering & ring) | (~entering & end)
    prey = byte(facing, pit & _IN_ROW) != ZERO
    filled = (byte(front, pit & _IN_ROW) != ZERO and seeds != _ROUND) or seeds > _ROUND
    return pit < _ROW and prey and (entering != ZERO or (filled and seeds <= rules.capture_limit))


@jit
def is_capture_turn(rules, words):
    """Return whether the mover of uint64[6] must capture (2.3b, 3.4) or has a waiting capture."""
    packed = read(words)
    if pending_of(packed.meta) != NO_PIT:
        return True
    facing = byteswap(packed.other_front)
    store = store_of(packed.meta)
    return capture_targets(rules, packed.front, packed.back, facing, store) != ZERO


@jit_inline
def begin_action(rules, packed, action):
    """Return whether a legal action captures, and the hand after its first lift."""
    capture_turn = is_capture(rules, packed, action)
    start = start_of(packed.meta, capture_turn, action)
    stops = ZERO if action & ONE else FULL
    return capture_turn, begin(rules, packed, capture_turn, start, stops)


@jit
def play(rules, words, action):
    """Play a legal action on a packed position, uint64[6], in place.

    The action is not validated: play only actions of legal_mask().

    Returns ONE if the mover has won by emptying the opponent's front row, FULL if they have emptied
    their own, else ZERO. If the next player has no legal move, only legal_mask() shows it.
    """
    packed = read(words)
    capture_turn, hand = begin_action(rules, packed, action)
    after, result = finish(rules, packed, capture_turn, play_out(rules, hand))
    write(words, after)
    words[PLY] += ONE
    return result
