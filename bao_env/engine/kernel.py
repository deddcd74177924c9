"""THE rules of Bao, once, on packed positions (:mod:`bao_env.engine.position`).

A move is a chain of sowings. It is simulated as a *hand*: the mover's two rows, the
opponent's front row byte-swapped so that byte r faces own pit r (``facing``), the
seeds in the hand, where the next one goes, and a few switches. The functions are

    candidates()  which (pit, step) may start a move, before infinite moves are struck out
    begin()       the hand after the first lift of one of them
    relay()       one sowing, and what the rules say at its last pit; branch-free, so that
                  the batch layer can run many hands in lock step
    finish()      the position after the move
    legal_mask(), play()   the same put together for one position

All values are uint64; a truth value that takes part in arithmetic is a mask, all
ones or all zeros. ``down`` is 0 for step +1 along the ring and 1 for step -1.

Rule numbers are Donkers' unless another source is named; see ``bao_env/RULES.md``.
"""

from __future__ import annotations

from typing import Final

from bao_env.engine import layout, position
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
    trailing_zeros,
)
from bao_env.engine.compile import jit, jit_inline

HOUSE: Final = U(layout.HOUSE)
NO_PIT: Final = U(position.NO_PIT)

# A hand's tally: seeds sown in the move so far, shifted past these eight flags.
INFINITE: Final = U(1)  # more than sow_limit seeds sown: the move is illegal (1.5a)
CHOICE: Final = U(2)  # the move came to a house that may be played (2.5b)
WON: Final = U(4)  # the capture waiting at `start` takes the last front seeds (1.2)
LOST: Final = U(8)  # the first lift empties the mover's front row for good (1.2)
PAUSED: Final = U(16)  # the capture at `start` awaits its side (Dutch I.a)
HOUSE_LIFTED: Final = U(32)  # the mover emptied hole 5, or let his house fall (Dutch fn. 2)
FREE_SIDE: Final = U(64)  # input: captures of this move choose their side
TALLY_SHIFT: Final = U(8)

# Flags that candidates() puts above the 32 bits of its starts.
STARTS: Final = U(0xFFFFFFFF)
CAPTURE_TURN: Final = U(1 << 32)

# Byte 2 of the META word, as bits of the whole word.
OWNS_HOUSE: Final = U(1 << 16)
OTHER_OWNS_HOUSE: Final = U(2 << 16)
MOVER_IS_NORTH: Final = U(4 << 16)
NO_BARRED: Final = U(position.NO_PIT << 24)
NO_PENDING: Final = U(position.NO_PIT << 32)

_2: Final = U(2)
_3: Final = U(3)
_4: Final = U(4)
_6: Final = U(6)
_7: Final = U(7)
_8: Final = U(8)
_15: Final = U(15)
_16: Final = U(16)
_17: Final = U(17)
_24: Final = U(24)
_32: Final = U(32)
_40: Final = U(40)
_64: Final = U(64)
_128: Final = U(128)
_FOUR_ONES: Final = U(0x01010101)
_NOT_LEFT_END: Final = U(0xFC)
_NOT_RIGHT_END: Final = U(0x3F)
_TAKASIA_ZANZIBAR: Final = ONE
_TAKASIA_DUTCH: Final = _2


@jit_inline
def _mask(condition):
    """All ones where the condition holds."""
    return FULL if condition else ZERO


@jit_inline
def _below(k):
    """One seed for each ring pit below k (0..15): the front and the back word of it."""
    bits = k << _3
    front = ((ONE << bits if bits < _64 else ZERO) - ONE) & ONES
    spare = _128 - bits
    back = ONES >> spare if spare < _64 else ZERO
    return front, back


@jit_inline
def sow(front, back, n, start, down):
    """Both rows after sowing n seeds (0..64) one by one from ring pit ``start`` (1.3)."""
    lowest = (start - ((n - ONE) & (ZERO - down))) & _15  # the run as if sown upward
    end = lowest + n
    # Pit r of an upward run [lowest, end) gets: [r < end mod 16] - [r < lowest] + rounds.
    rounds = ((end >> _4) & _7) * _FOUR_ONES  # at most 4: the bytes don't carry
    rounds |= rounds << _32
    front_end, back_end = _below(end & _15)
    front_low, back_low = _below(lowest)
    return front + (front_end - front_low + rounds), back + (back_end - back_low + rounds)


@jit_inline
def relay(rules, front, back, facing, n, start, down, house_min, barred, stops, tally):
    """One sowing of the hand and what follows at its last pit, without a branch.

    ``house_min`` is the count at which an owned house acts, or all ones where hole 5 is
    an ordinary hole; ``barred`` the ring pit of a takasia, or 255; ``stops`` a mask:
    stop at an acting house rather than play it. A takasa has ``facing`` = 0, so it never
    captures (1.7). An empty hand (n = 0) passes through unchanged.

    Returns the new (front, back, facing, n, start, down, house_min, tally). n = 0 ends
    the move; then ``start`` is the pit where it ended. A capture that wins or pauses
    leaves the captured seeds in ``facing``, to be lifted by finish() or by the next action.

    Endelea never empties the mover's front row with the next seed going to the back row:
    it would have to lift a kichwa while heading outward, and the sowing that led there
    either left a seed in the kimbi before it or was a lone captured seed heading inward.
    """
    live = _mask(n != ZERO)
    tally += n << TALLY_SHIFT
    finite = _mask((tally >> TALLY_SHIFT) <= rules.sow_limit)  # 1.5a
    tally |= live & ~finite & INFINITE
    last = (start + ((n - ONE) ^ (ZERO - down)) + down) & _15
    front, back = sow(front, back, n, start, down)

    in_back = ZERO - (last >> _3)
    shift = (last & _7) << _3
    at_last = BYTE << shift
    count = (((front & ~in_back) | (back & in_back)) >> shift) & BYTE
    prey = (facing >> shift) & BYTE & ~in_back
    left_end = _mask(last < _2)
    right_end = _mask(last >= _6) & ~in_back

    goes_on = live & finite & _mask(count != ONE)  # 1.5: a sowing that ends in an empty pit stops
    captures = goes_on & _mask(prey != ZERO)  # 1.4, 1.6c
    pauses = captures & ~left_end & ~right_end & (ZERO - ((tally >> _6) & ONE))  # Dutch I.a
    wins = captures & ~pauses & _mask((facing & ~at_last) == ZERO)  # 1.2
    lifts = goes_on & ~captures
    at_house = lifts & _mask(last == HOUSE)
    house_acts = at_house & _mask(count >= house_min)
    tally |= house_acts & ~stops & CHOICE  # 2.5b (2)
    lifts &= ~(house_acts & stops)  # 2.5b (1), and the choice not to play it
    lifts &= _mask(last != barred)  # 1.6b, 4.1b
    tally |= wins & WON
    tally |= pauses & PAUSED
    tally |= lifts & at_house & HOUSE_LIFTED  # 2.5a
    house_min |= lifts & at_house
    eats = captures & ~wins & ~pauses

    # 1.4b: a capture at a kichwa or kimbi is sown inward from the near kichwa; 1.4c: elsewhere
    # the running direction stays. Dutch I.a: endelea from there turns inward as well.
    turns = captures | (lifts & rules.turns_mask & _mask(facing != ZERO))
    inward = ((down | (right_end & ONE)) & ~left_end) & ONE
    down = (turns & inward) | (~turns & down)
    front &= ~(lifts & at_last & ~in_back)
    back &= ~(lifts & at_last & in_back)
    facing &= ~(eats & at_last)
    n = (eats & prey) | (lifts & count)
    from_kichwa = (ZERO - down) & _7
    onward = (last + ((ZERO - down) | ONE)) & _15
    stays = (live & last) | (~live & start)
    start = (eats & from_kichwa) | (lifts & onward) | (~eats & ~lifts & stays)
    return front, back, facing, n, start, down, house_min, tally


@jit
def first_captures(front, back, facing, capture_limit):
    """Where a first sowing in mtaji can capture (3.4).

    Returns bit sets over ring pits: starts that capture going up, going down, and the own
    front pits at which they capture.
    """
    up = ZERO
    down = ZERO
    targets = ZERO
    prey = nonzero(facing)
    filled = nonzero(front) & prey
    if filled == ZERO and (capture_limit <= _15 or prey == ZERO):
        return up, down, targets
    playable = at_least_2(front) | (at_least_2(back) << _8)
    large = at_least_16(front) | (at_least_16(back) << _8)
    small = playable & ~large
    while small != ZERO:
        ring = trailing_zeros(small)
        small &= small - ONE
        n = byte(back if ring >= _8 else front, ring & _7)
        if n > capture_limit:
            continue
        end = (ring + n) & _15
        hit = (filled >> end) & ONE
        up |= hit << ring
        targets |= hit << end
        end = (ring - n) & _15
        hit = (filled >> end) & ONE
        down |= hit << ring
        targets |= hit << end
    while capture_limit > _15 and large != ZERO:
        # Dutch: no limit. A hand of 17 or more has put a seed into every pit before its last
        # one; a hand of 16 ends in the pit it left, which is empty then.
        ring = trailing_zeros(large)
        large &= large - ONE
        n = byte(back if ring >= _8 else front, ring & _7)
        if n < _17 or n > capture_limit:
            continue
        end = (ring + n) & _15
        hit = (prey >> end) & ONE
        up |= hit << ring
        targets |= hit << end
        end = (ring - n) & _15
        hit = (prey >> end) & ONE
        down |= hit << ring
        targets |= hit << end
    return up, down, targets


@jit_inline
def _namua_captures(front, facing):
    """Own front pits, as a bit set, at which a seed from the store captures (2.3)."""
    return nonzero(front) & nonzero(facing)


@jit
def capture_targets(rules, front, back, facing, store):
    """Own front pits, as a bit set, at which the owner could capture with a first sowing."""
    if store != ZERO:
        return _namua_captures(front, facing)
    up, down, targets = first_captures(front, back, facing, rules.capture_limit)
    return targets


@jit_inline
def _single(bits):
    """Whether exactly one bit is set."""
    return bits != ZERO and (bits & (bits - ONE)) == ZERO


@jit_inline
def candidates(rules, front, back, other_front, other_back, meta):
    """The starts that the rules allow before infinite moves are struck out.

    Returns bits: ``ring`` for a move going up (step +1) from ring pit ``ring``, ``16 + ring``
    for one going down, and CAPTURE_TURN if they capture. In a namua capture the step is
    that of the captured seeds.
    """
    facing = byteswap(other_front)
    store = meta & BYTE
    pending = (meta >> _32) & BYTE
    filled = nonzero(front)

    if pending != NO_PIT:  # Dutch I.a: the side of the capture that waits
        return CAPTURE_TURN | (ONE << pending) | (ONE << (pending + _16))

    if store != ZERO:
        captures = _namua_captures(front, facing)
        if captures != ZERO:  # 2.3b, 1.7a; side forced at kichwa and kimbi, 1.4b
            return CAPTURE_TURN | (captures & _NOT_RIGHT_END) | ((captures & _NOT_LEFT_END) << _16)
        starts = _namua_takasa(rules, front, back, filled, meta)
    else:
        up, down, targets = first_captures(front, back, facing, rules.capture_limit)
        if targets != ZERO:  # 3.4, 1.7a
            return CAPTURE_TURN | up | (down << _16)
        starts = at_least_2(front)
        barred = (meta >> _24) & BYTE
        if barred != NO_PIT:  # 4.1
            starts &= ~(ONE << barred)
        if rules.takasia == _TAKASIA_DUTCH:
            starts = _dutch_takasia(rules, front, other_front, other_back, meta, starts)
        if starts == ZERO:  # 3.5a: the back row only if the front row offers nothing
            starts = at_least_2(back) << _8
            return starts | (starts << _16)
    up = starts
    down = starts
    if _single(filled) and rules.lone_kichwa_loses == ZERO:  # 2.4a, 3.5b
        up &= ~(ONE << _7)
        down &= ~ONE
    return up | (down << _16)


@jit
def _namua_takasa(rules, front, back, filled, meta):
    """Front pits, as a bit set, from which a takasa in namua may start (2.4)."""
    starts = filled
    owned = (meta & OWNS_HOUSE) != ZERO
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
def _dutch_takasia(rules, front, other_front, other_back, meta, starts):
    """Strike out the one threatened pit where the mover has a choice of pits (Dutch II)."""
    if _single(starts) or starts == ZERO:
        return starts
    threats = capture_targets(rules, other_front, other_back, byteswap(front), (meta >> _8) & BYTE)
    if not _single(threats):
        return starts
    return starts & ~(ONE << (_7 - trailing_zeros(threats)))


@jit_inline
def begin(rules, front, back, other_front, meta, capture_turn, ring, down, stops):
    """The hand after the first lift of a move.

    ``stops``: a mask, stop at an acting house in a capture move (a takasa always stops).

    Returns (front, back, facing, n, start, down, house_min, barred, stops, tally), the
    arguments of relay().
    """
    namua = (meta & BYTE) != ZERO
    pending = (meta >> _32) & BYTE
    owned = (meta & OWNS_HOUSE) != ZERO
    shift = (ring & _7) << _3
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
            # Dutch I.a: a waiting capture goes on; its store seed lies in the pit already.
            # CHOICE: each action has the stage of the store it finds, so a capture that
            # waits after the last store seed goes on as in mtaji.
            tally |= (meta >> _40) << TALLY_SHIFT
        facing = byteswap(other_front)
        n = (facing >> shift) & BYTE
        rest = facing & ~at_ring
        start = (ZERO - down) & _7  # 1.4a
        if rest == ZERO:  # 1.2: the first capture takes the last front seeds
            return front, back, facing, ZERO, ring, down, house_min, NO_PIT, stops, tally | WON
        return front, back, rest, n, start, down, house_min, NO_PIT, stops, tally

    # 2.4, 3.3: the first hand is lifted from an own pit.
    seed = ONE if namua else ZERO  # 2.2
    tally = seed << TALLY_SHIFT
    in_back = ZERO - (ring >> _3)
    n = ((((front & ~in_back) | (back & in_back)) >> shift) & BYTE) + seed
    front &= ~(at_ring & ~in_back)
    back &= ~(at_ring & in_back)
    start = (ring + ((ZERO - down) | ONE)) & _15
    house_min = FULL
    barred = NO_PIT
    facing = ZERO
    if capture_turn:
        facing = byteswap(other_front)
    else:
        stops = FULL
        barred = (meta >> _24) & BYTE
        if owned and (namua or rules.house_stops_mtaji_takasa != ZERO):  # 2.5b (1); kibao 1.6.2
            house_min = rules.house_min
    if ring == HOUSE:
        alone = front == ZERO and (back == ZERO or rules.lone_house_side == ZERO)
        if namua and alone and n > house_min:  # 2.4b: two seeds go, the house stays
            front = (n - _2) << shift
            if rules.house_lost_below_min != ZERO and n - _2 < house_min:  # Dutch footnote 2
                house_min = FULL
                tally |= HOUSE_LIFTED
            n = _2
        else:  # 2.5a
            house_min = FULL
            tally |= HOUSE_LIFTED
    if front == ZERO and start >= _8 and ring < _8:
        # 1.2: the mover's front row is empty. Reached by a lone kichwa heading for the back row.
        return n << shift, back, facing, ZERO, start, down, house_min, barred, stops, tally | LOST
    return front, back, facing, n, start, down, house_min, barred, stops, tally


@jit_inline
def finish(
    rules,
    other_front,
    other_back,
    meta,
    capture_turn,
    front,
    back,
    facing,
    start,
    down,
    tally,
):
    """The position after a finished move: ``other_front``, ``other_back`` and ``meta`` from
    before it, the rest as relay() left it.

    Returns its words MOVER_FRONT, MOVER_BACK, OTHER_FRONT, OTHER_BACK and META, and a
    result: ONE if the mover has won, FULL if he has lost, else ZERO.
    """
    captures = _mask(capture_turn)
    store = meta & BYTE
    other_store = (meta >> _8) & BYTE
    namua = _mask(store != ZERO)
    if tally & WON:
        # The game is over; the captured seeds are sown once so that all 64 stay on the board.
        front, back = sow(front, back, byte(facing, start), (ZERO - down) & _7, down)
        facing = ZERO
    other_front = (captures & byteswap(facing)) | (~captures & other_front)
    store -= namua & _mask(((meta >> _32) & BYTE) == NO_PIT) & ONE  # 2.2

    # 2.5a: a house ends when emptied, by its owner or by capture, and both end with the first
    # capture in mtaji.
    both = ~(captures & ~namua)
    mine = meta & OWNS_HOUSE & both & _mask((tally & HOUSE_LIFTED) == ZERO)
    theirs = meta & OTHER_OWNS_HOUSE & both & _mask(byte(other_front, HOUSE) != ZERO)
    seat = meta & MOVER_IS_NORTH

    if tally & PAUSED:  # Dutch I.a: the same player acts again
        sown = (tally >> TALLY_SHIFT) << _40
        after = store | (other_store << _8) | mine | theirs | seat | NO_BARRED
        return front, back, other_front, other_back, after | (start << _32) | sown, ZERO

    barred = NO_PIT
    if (namua | captures | other_store) == ZERO and rules.takasia == _TAKASIA_ZANZIBAR:
        barred = _takasia(rules, front, back, other_front, other_back, theirs)
    after = other_store | (store << _8) | (theirs >> ONE) | (mine << ONE) | (seat ^ MOVER_IS_NORTH)
    after |= (barred << _24) | NO_PENDING
    result = ZERO
    if tally & (WON | LOST):
        result = ONE if tally & WON else FULL
    return other_front, other_back, front, back, after, result


@jit
def _takasia(rules, front, back, other_front, other_back, other_owned):
    """The ring pit barred to the next player after a takasa in mtaji, or 255 (4.1)."""
    up, down, targets = first_captures(
        other_front, other_back, byteswap(front), rules.capture_limit
    )
    if targets != ZERO:
        return NO_PIT  # he need not takasa
    up, down, targets = first_captures(front, back, byteswap(other_front), rules.capture_limit)
    if not _single(targets):
        return NO_PIT
    ring = _7 - trailing_zeros(targets)
    pit = ONE << ring
    if ring == HOUSE and other_owned != ZERO:  # 4.1c
        return NO_PIT
    if nonzero(other_front) == pit or at_least_2(other_front) == pit:  # 4.1a
        return NO_PIT
    return ring


@jit_inline
def _enters(meta):
    """A mask: a capture of this turn starts with captured seeds, not with a lift (2.3)."""
    return _mask((meta & BYTE) != ZERO) | _mask(((meta >> _32) & BYTE) != NO_PIT)


@jit_inline
def action_of(meta, capture_turn, ring, down):
    """The action, its house bit 0, of a start as candidates() counts it."""
    in_back = ZERO - (ring >> _3)
    pit = ring ^ (in_back & _7)
    entering = _mask(capture_turn) & _enters(meta)
    right = down ^ (~entering & ~in_back & ONE)
    return (pit << _2) | (right << ONE)


@jit_inline
def start_of(meta, capture_turn, action):
    """The start (ring + 16 * down) of an action: the inverse of action_of()."""
    pit = action >> _2
    right = (action >> ONE) & ONE
    in_back = ZERO - (pit >> _3)
    ring = pit ^ (in_back & _7)
    entering = _mask(capture_turn) & _enters(meta)
    down = right ^ (~entering & ~in_back & ONE)
    return ring | (down << _4)


@jit_inline
def legal_bits(tally):
    """The two mask bits (house 0, house 1) of a simulated start.

    With a house choice, stopping there was finite whatever playing it turns out to be (2.5b);
    without one only house = 0 exists, and an infinite move is illegal (1.5a).
    """
    finite = ONE ^ (tally & INFINITE)
    choice = (tally >> ONE) & ONE
    return finite | choice | ((finite & choice) << ONE)


@jit
def legal_mask(rules, words):
    """The legal actions of a packed position, uint64[6], as a uint64: bit a = action a.

    Zero means that the mover has no legal move and has lost (1.2, 1.5a).
    """
    front = words[position.MOVER_FRONT]
    back = words[position.MOVER_BACK]
    other_front = words[position.OTHER_FRONT]
    meta = words[position.META]
    found = candidates(rules, front, back, other_front, words[position.OTHER_BACK], meta)
    capture_turn = (found & CAPTURE_TURN) != ZERO
    starts = found & STARTS
    mask = ZERO
    while starts != ZERO:
        q = trailing_zeros(starts)
        starts &= starts - ONE
        f, b, facing, n, start, down, house_min, barred, stops, tally = begin(
            rules, front, back, other_front, meta, capture_turn, q & _15, q >> _4, ZERO
        )
        while n != ZERO:
            f, b, facing, n, start, down, house_min, tally = relay(
                rules, f, b, facing, n, start, down, house_min, barred, stops, tally
            )
        mask |= legal_bits(tally) << action_of(meta, capture_turn, q & _15, q >> _4)
    return mask


@jit_inline
def is_capture(rules, front, back, other_front, meta, action):
    """Whether a legal action captures.

    Legality settles the rest: where one start captures, all legal starts do (1.7a).
    """
    facing = byteswap(other_front)
    q = start_of(meta, False, action)
    ring = q & _15
    in_back = ZERO - (ring >> _3)
    shift = (ring & _7) << _3
    n = (((front & ~in_back) | (back & in_back)) >> shift) & BYTE
    back_down = ZERO - (q >> _4)
    end = (ring + ((n ^ back_down) - back_down)) & _15
    entering = _enters(meta)
    # 2.3: the store seed's own pit; 3.4: the last pit of the first sowing, where a hand of 17
    # or more finds a seed of its own first round and one of 16 the emptied pit it left.
    pit = (entering & ring) | (~entering & end)
    prey = byte(facing, pit & _7) != ZERO
    filled = (byte(front, pit & _7) != ZERO and n != _16) or n >= _17
    return pit < _8 and prey and (entering != ZERO or (filled and n <= rules.capture_limit))


@jit
def is_capture_turn(rules, words):
    """Whether the mover must capture (2.3b, 3.4) or has a capture waiting."""
    meta = words[position.META]
    if ((meta >> _32) & BYTE) != NO_PIT:
        return True
    return (
        capture_targets(
            rules,
            words[position.MOVER_FRONT],
            words[position.MOVER_BACK],
            byteswap(words[position.OTHER_FRONT]),
            meta & BYTE,
        )
        != ZERO
    )


@jit
def play(rules, words, action):
    """Play a legal action on a packed position, uint64[6], in place.

    The action is not checked: play only what legal_mask() allows.

    Returns ONE if the mover has won by emptying the opponent's front row, FULL if he has
    emptied his own, else ZERO; a next player without a legal move shows in legal_mask().
    """
    front = words[position.MOVER_FRONT]
    back = words[position.MOVER_BACK]
    other_front = words[position.OTHER_FRONT]
    meta = words[position.META]
    capture_turn = is_capture(rules, front, back, other_front, meta, action)
    q = start_of(meta, capture_turn, action)
    stops = ZERO if action & ONE else FULL
    f, b, facing, n, start, down, house_min, barred, stops, tally = begin(
        rules, front, back, other_front, meta, capture_turn, q & _15, q >> _4, stops
    )
    while n != ZERO:
        f, b, facing, n, start, down, house_min, tally = relay(
            rules, f, b, facing, n, start, down, house_min, barred, stops, tally
        )
    after = finish(
        rules,
        other_front,
        words[position.OTHER_BACK],
        meta,
        capture_turn,
        f,
        b,
        facing,
        start,
        down,
        tally,
    )
    words[position.MOVER_FRONT] = after[0]
    words[position.MOVER_BACK] = after[1]
    words[position.OTHER_FRONT] = after[2]
    words[position.OTHER_BACK] = after[3]
    words[position.META] = after[4]
    words[position.PLY] += ONE
    return after[5]
