"""Find where a move may start under the rules of Bao.

A player must capture if they can (1.7a); otherwise they takasa. :func:`candidates` finds the starts
(:mod:`bao_env.engine.start_encoding`) that the rules allow. Infinite moves are among them: only
playing a move out shows that it is infinite (:mod:`bao_env.engine.kernel`).

Takasia is the only rule that lets a move limit the next one. :func:`takasia_bar` finds the pit that
a takasa bars, :func:`candidates` excludes it, and the kernel's ``relay()`` stops at it. The Dutch
sheet's version of takasia is only in :func:`candidates`.

Rule numbers are Donkers' unless another source is named; see ``bao_env/RULES.md``.
"""

from __future__ import annotations

from bao_env.compiled.compile import jit, jit_brief, jit_inline, jit_inner
from bao_env.engine import layout
from bao_env.engine.bits import (
    BYTE,
    ONE,
    ZERO,
    U,
    at_least_2,
    byte,
    byteswap,
    nonzero,
    trailing_zeros,
)
from bao_env.engine.position import (
    NO_PIT,
    PackedPositions,
    Rows,
    barred_of,
    load_rows,
    other_store_of,
    owns_house,
    pending_of,
    same_mover,
    store_of,
)
from bao_env.engine.ruleset import KernelRules, code
from bao_env.engine.start_encoding import (
    DOWN_STARTS_SHIFT,
    RING_MASK,
    action_of,
    down_of,
    enters,
    ring_of,
    start_of,
)

HOUSE = U(layout.HOUSE)
# Ring pits 0..7 are the front row, 8..15 the back row; a pit is a byte of its row's word.
ROW = U(8)
ROW_SHIFT = U(3)
IN_ROW = U(7)
PIT_BITS_SHIFT = U(3)
RIGHT_KICHWA = U(layout.KICHWA[layout.RIGHT])
_ROUND = U(16)  # a seed in each of the sixteen pits of the ring
# The front row, as bits, without the kichwa and the kimbi of one end.
_NOT_LEFT_END, _NOT_RIGHT_END = (
    U(0xFF & ~(1 << kichwa | 1 << kimbi))
    for kichwa, kimbi in zip(layout.KICHWA, layout.KIMBI, strict=True)
)
_TWO_OR_MORE = U(0xFEFEFEFEFEFEFEFE)  # counts of two or more have some of these bits set

TAKASIA_ZANZIBAR = code("takasia", "zanzibar")
_TAKASIA_DUTCH = code("takasia", "dutch")
_LONE_KICHWA_ILLEGAL = code("lone_kichwa_takasa", "illegal")
_SINGLETONS = code("singleton_takasa", "singletons")


@jit_inline
def _capture_pits(front_filled: U, facing_filled: U, seeds: U) -> U:
    """Return the front pits, as bits, in which a first sowing of ``seeds`` seeds ends in a capture.

    Such a pit must hold seeds before the last one lands, and the pit facing it must not be empty
    (3.4). A sowing of 17 or more seeds has by then put a seed into every pit. The last of 16 seeds
    lands in the pit they were lifted from, which is empty.

    Args:
        front_filled: the player's front pits that hold seeds, as bits.
        facing_filled: the player's front pits that face a pit with seeds, as bits.
        seeds: the number of seeds sown.
    """
    if seeds < _ROUND:
        return front_filled & facing_filled
    return facing_filled if seeds > _ROUND else ZERO


@jit_inner
def first_captures(front: U, back: U, facing: U, capture_limit: U) -> tuple[U, U, U]:
    """Find where a first sowing in mtaji can capture (3.4).

    Returns bit sets over ring pits: starts that capture going up, starts that capture going down,
    and the front pits at which they capture.
    """
    up = ZERO
    down = ZERO
    targets = ZERO
    facing_filled = nonzero(facing)
    front_filled = nonzero(front)
    if (front_filled & facing_filled) == ZERO and (capture_limit < _ROUND or facing_filled == ZERO):
        return up, down, targets
    starts = at_least_2(front) | (at_least_2(back) << ROW)
    while starts != ZERO:
        ring = trailing_zeros(starts)
        starts &= starts - ONE
        seeds = byte(back if ring >= ROW else front, ring & IN_ROW)
        if seeds > capture_limit:
            continue
        hits = _capture_pits(front_filled, facing_filled, seeds)
        end = (ring + seeds) & RING_MASK
        hit = (hits >> end) & ONE
        up |= hit << ring
        targets |= hit << end
        end = (ring - seeds) & RING_MASK
        hit = (hits >> end) & ONE
        down |= hit << ring
        targets |= hit << end
    return up, down, targets


@jit_inline
def _namua_captures(front: U, facing: U) -> U:
    """Return the front pits, as bits, at which a seed from the store captures (2.3)."""
    return nonzero(front) & nonzero(facing)


@jit_inner
def capture_targets(rules: KernelRules, front: U, back: U, facing: U, store: U) -> U:
    """Return the front pits, as bits, at which a first sowing could capture."""
    if store != ZERO:
        return _namua_captures(front, facing)
    up, down, targets = first_captures(front, back, facing, rules.capture_limit)
    return targets


@jit_inline
def cannot_play(front: U, back: U, store: U) -> bool:
    """Return whether a player's rows leave them no hole to play from (1.2).

    A move needs a filled front hole in namua, or a hole with two seeds in mtaji. This misses only
    players whose moves are all infinite (1.5a).

    Args:
        front, back: the player's rows.
        store: the seeds in the player's store; 0 means mtaji.
    """
    return (front if store != ZERO else (front | back) & _TWO_OR_MORE) == ZERO


@jit
def is_stuck(rows: Rows) -> bool:
    """Return whether the mover has no hole to play from, and so has lost (1.2)."""
    return not same_mover(rows.meta) and cannot_play(rows.front, rows.back, store_of(rows.meta))


@jit_inline
def _single(bits: U) -> bool:
    """Return whether exactly one bit is set."""
    return bits != ZERO and (bits & (bits - ONE)) == ZERO


@jit_inline
def candidates(rules: KernelRules, rows: Rows) -> tuple[bool, U]:
    """Find the starts that the rules allow, before infinite moves are excluded.

    Returns:
        whether the starts capture; and the starts as bits, bit s for start s
        (:mod:`bao_env.engine.start_encoding`).
    """
    front, back, meta = rows.front, rows.back, rows.meta
    facing = byteswap(rows.other_front)
    pending = pending_of(meta)
    front_filled = nonzero(front)

    if pending != NO_PIT:  # Dutch I.a: the sides of the waiting capture
        return True, (ONE << pending) | (ONE << (pending + DOWN_STARTS_SHIFT))

    if store_of(meta) != ZERO:
        captures = _namua_captures(front, facing)
        if captures != ZERO:  # 2.3b, 1.7a; side forced at kichwa and kimbi, 1.4b
            going_down = (captures & _NOT_LEFT_END) << DOWN_STARTS_SHIFT
            return True, (captures & _NOT_RIGHT_END) | going_down
        starts = _namua_takasa(rules, front, back, front_filled, meta)
    else:
        up, down, targets = first_captures(front, back, facing, rules.capture_limit)
        if targets != ZERO:  # 3.4, 1.7a
            return True, up | (down << DOWN_STARTS_SHIFT)
        starts = at_least_2(front)
        barred = barred_of(meta)
        if barred != NO_PIT:  # 4.1
            starts &= ~(ONE << barred)
        if rules.takasia == _TAKASIA_DUTCH:
            starts = _dutch_takasia(rules, rows, starts)
        if starts == ZERO:  # 3.5a: the back row only if the front row offers nothing
            starts = at_least_2(back) << ROW
            return False, starts | (starts << DOWN_STARTS_SHIFT)
    up = starts
    down = starts
    if _single(front_filled) and rules.lone_kichwa_takasa == _LONE_KICHWA_ILLEGAL:  # 2.4a, 3.5b
        up &= ~(ONE << RIGHT_KICHWA)
        down &= ~ONE
    return False, up | (down << DOWN_STARTS_SHIFT)


@jit_inner
def _namua_takasa(rules: KernelRules, front: U, back: U, front_filled: U, meta: U) -> U:
    """Return the front pits, as bits, from which a takasa in namua may start (2.4)."""
    starts = front_filled
    owned = owns_house(meta)
    house = ONE << HOUSE
    acts = owned and byte(front, HOUSE) >= rules.house_min
    if acts and front_filled != house:  # 2.4b
        starts &= ~house
    if rules.singleton_takasa == _SINGLETONS:  # Dutch I.b
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


@jit_inner
def _dutch_takasia(rules: KernelRules, rows: Rows, starts: U) -> U:
    """Remove the only threatened pit from ``starts``, unless it is the only start (Dutch II)."""
    if _single(starts) or starts == ZERO:
        return starts
    threats = capture_targets(
        rules,
        rows.other_front,
        rows.other_back,
        byteswap(rows.front),
        other_store_of(rows.meta),
    )
    if not _single(threats):
        return starts
    return starts & ~(ONE << (IN_ROW - trailing_zeros(threats)))


@jit_inner
def takasia_bar(
    rules: KernelRules, front: U, back: U, other_front: U, other_back: U, other_owned: U
) -> U:
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
        return NO_PIT  # the next player can capture
    up, down, targets = first_captures(front, back, byteswap(other_front), rules.capture_limit)
    if not _single(targets):
        return NO_PIT
    ring = IN_ROW - trailing_zeros(targets)
    pit = ONE << ring
    if rules.takasia_spares_singletons != ZERO and byte(other_front, ring) == ONE:
        return NO_PIT  # CHOICE (4.1): de Voogt also spares a hole with a single seed
    if ring == HOUSE and other_owned != ZERO:  # 4.1c
        return NO_PIT
    if nonzero(other_front) == pit or at_least_2(other_front) == pit:  # 4.1a
        return NO_PIT
    return ring


@jit_inline
def is_capture(rules: KernelRules, rows: Rows, action: U) -> bool:
    """Return whether a legal action captures.

    The first sowing decides: if one legal start captures, all of them do (1.7a).
    """
    front = rows.front
    facing = byteswap(rows.other_front)
    start = start_of(rows.meta, False, action)
    ring = ring_of(start)
    in_back = ZERO - (ring >> ROW_SHIFT)
    shift = (ring & IN_ROW) << PIT_BITS_SHIFT
    seeds = (((front & ~in_back) | (rows.back & in_back)) >> shift) & BYTE
    backward = ZERO - down_of(start)
    end = (ring + ((seeds ^ backward) - backward)) & RING_MASK
    entering = enters(rows.meta)
    facing_filled = nonzero(facing)
    if entering != ZERO:  # 2.3: at the store seed's own pit
        return ((facing_filled >> ring) & ONE) != ZERO
    hits = _capture_pits(nonzero(front), facing_filled, seeds)
    return bool(seeds <= rules.capture_limit) and ((hits >> end) & ONE) != ZERO  # 3.4


@jit_brief
def startable(rules: KernelRules, packed: PackedPositions) -> tuple[bool, U]:
    """Return how the mover may begin, before infinite moves are excluded.

    ``packed`` is uint64[6].

    Returns:
        whether the mover must capture (2.3b, 3.4) or choose the side of a waiting capture (Dutch
        I.a); and the actions that may start, as bits, each with house bit 0.
    """
    rows = load_rows(packed)
    capture_turn, starts = candidates(rules, rows)
    actions = ZERO
    while starts != ZERO:
        actions |= ONE << action_of(rows.meta, capture_turn, trailing_zeros(starts))
        starts &= starts - ONE
    return capture_turn, actions
