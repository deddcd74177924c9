"""The events of a move, for boards that show it and for explanations.

The events come from running the kernel one sowing at a time, so they agree with the rules as
played. Each call of ``relay()`` sows once; the change of the hand tells what happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np

from bao_env.engine import kernel
from bao_env.engine.action import start_of, unpack_action
from bao_env.engine.bits import FULL, ONE, ZERO
from bao_env.engine.kernel import Hand
from bao_env.engine.layout import HOUSE, facing, ring_of_pit
from bao_env.engine.position import META, PLY, Packed, Words, unpack
from bao_env.engine.ruleset import KernelRules, Ruleset
from bao_env.game import SEAT_NAMES, Stage, stage_of, stuck
from bao_env.notation.positions import hole_name


class EventKind(Enum):
    """The kinds of events in a move."""

    STORE_SEED = "store seed"
    """A seed from the store goes into a hole."""
    LIFT = "lift"
    """The hand takes the seeds of the hole where the move starts."""
    SOW = "sow"
    """The hand sows its seeds one by one."""
    CAPTURE = "capture"
    """The hand takes the seeds of an opponent's hole; ``at`` is the capturing hole."""
    SIDE = "side"
    """The kichwa from which captured seeds will be sown."""
    ENDELEA = "endelea"
    """The hand lifts the hole where its sowing ended, and continues to sow."""
    HOUSE_PLAYED = "house played"
    """ENDELEA at the house, by choice."""
    HOUSE_STOP = "house stop"
    """The move ends at the house."""
    TAKASIA_STOP = "takasia stop"
    """The move ends at the hole that takasia bars."""
    EMPTY_STOP = "empty stop"
    """The move ends because its last seed fell into an empty hole."""
    INFINITE = "infinite"
    """The move has sown too many seeds and is illegal."""
    PAUSE = "pause"
    """A capture waits for the player to choose its side (Dutch rule set)."""
    HOUSE_LOST = "house lost"
    """A player has lost their house."""
    TAKASIA = "takasia"
    """Takasia bars a hole of the next player."""
    FRONT_ROW_EMPTY = "front row empty"
    """``seat`` has lost: their front row was emptied."""
    NO_LEGAL_MOVE = "no legal move"
    """``seat`` has lost: they are to move and have no legal move."""


@dataclass(frozen=True)
class Event:
    """One event of a move, and the board after it."""

    kind: EventKind
    """The kind of event."""
    seat: int
    """The owner of ``pits``, or the player concerned."""
    pits: tuple[int, ...]
    """Pits 0..15 of that seat, in order: the source or the destination of seeds."""
    seeds: int
    """Seeds moved, or seeds in the hole concerned."""
    rule: str
    """The rule, with its source."""
    at: int | None
    """The capturing pit (0..7) of the opponent of ``seat``, for a capture."""
    counts: tuple[tuple[int, ...], tuple[int, ...]]
    """Seeds in pits 0..15 of South and of North after the event."""
    store: tuple[int, int]
    """Seeds in the two stores after the event."""
    hand: int
    """Seeds in the mover's hand after the event; ``counts``, ``store`` and these add up to 64."""

    def __str__(self) -> str:
        """Return the event in words, with its rule."""
        words = _WORDS[self.kind].format(**self.names())
        return f"{words} ({self.rule})"

    def names(self) -> dict[str, str]:
        """Return the names in the words of the event: players, holes and numbers of seeds."""
        names = [hole_name(self.seat, pit) for pit in self.pits]
        return {
            "who": SEAT_NAMES[self.seat],
            "other": SEAT_NAMES[1 - self.seat],
            "hole": names[0] if names else "",
            "holes": " ".join(names),
            "seeds": "1 seed" if self.seeds == 1 else f"{self.seeds} seeds",
            "at": hole_name(1 - self.seat, self.at or 0),
        }


_WORDS: Final = {
    EventKind.STORE_SEED: "{who} puts a seed from the store into {hole}",
    EventKind.LIFT: "{who} lifts {seeds} from {hole}",
    EventKind.SOW: "{who} sows {seeds}: {holes}",
    EventKind.CAPTURE: "{other} captures {seeds} from {hole} at {at}",
    EventKind.SIDE: "the captured seeds are sown from {hole}",
    EventKind.ENDELEA: "{hole} was filled: {who} lifts {seeds} there and sows on",
    EventKind.HOUSE_PLAYED: "{who} plays the house {hole} with {seeds}",
    EventKind.HOUSE_STOP: "the move ends in the house {hole} with {seeds}",
    EventKind.TAKASIA_STOP: "the move ends at {hole}, which takasia bars",
    EventKind.EMPTY_STOP: "{hole} was empty: the move ends",
    EventKind.INFINITE: "{seeds} sown and no end: the move is illegal",
    EventKind.PAUSE: "{who} captures at {hole} and has to choose the side",
    EventKind.HOUSE_LOST: "{who} owns the house {hole} no longer",
    EventKind.TAKASIA: "takasia: {who} may not start from {hole}",
    EventKind.FRONT_ROW_EMPTY: "{who}'s front row is empty: {other} wins",
    EventKind.NO_LEGAL_MOVE: "{who} has no legal move: {other} wins",
}


_TWO_FROM_HOUSE: Final = "Donkers 2.4b"


class _Recorder:
    """Collects events, and keeps the seeds on the board up to date."""

    def __init__(self, words: Words) -> None:
        position = unpack(words)
        self.mover = position.mover
        self.namua = stage_of(position) is Stage.NAMUA
        self.pits = [list(position.pits(seat)) for seat in (0, 1)]
        self.store = list(position.store)
        self.hand = 0
        self.events: list[Event] = []

    def add(
        self,
        kind: EventKind,
        rule: str,
        pits: tuple[int, ...] = (),
        seeds: int = 0,
        seat: int | None = None,
        at: int | None = None,
    ) -> None:
        seat = self.mover if seat is None else seat
        south, north = (tuple(side) for side in self.pits)
        store = self.store[0], self.store[1]
        self.events.append(
            Event(kind, seat, pits, seeds, rule, at, (south, north), store, self.hand)
        )

    def take(self, kind: EventKind, rule: str, pit: int, seeds: int) -> None:
        """The hand takes seeds from a pit of the mover."""
        self.pits[self.mover][pit] -= seeds
        self.hand += seeds
        self.add(kind, rule, (pit,), seeds)

    def sow(self, rule: str, start: int, down: int) -> None:
        """The hand sows all its seeds, from a ring pit on."""
        step = -1 if down else 1
        pits = tuple(ring_of_pit((start + i * step) & 15) for i in range(self.hand))
        for pit in pits:
            self.pits[self.mover][pit] += 1
        self.hand = 0
        self.add(EventKind.SOW, rule, pits, len(pits))

    def capture(self, rule: str, ring: int, seeds: int, down: int) -> None:
        """The hand takes the seeds that face a front pit, and the side is settled."""
        other, prey = 1 - self.mover, facing(ring)
        self.pits[other][prey] -= seeds
        self.hand += seeds
        self.add(EventKind.CAPTURE, rule, (prey,), seeds, seat=other, at=ring)
        if ring in (0, 1, 6, 7):
            rule = "Donkers 1.4b"
        elif rule != "Dutch I.a":
            rule = "Donkers 1.4c"
        self.add(EventKind.SIDE, rule, (7 if down else 0,), seeds)


def trace_move(words: Words, ruleset: Ruleset, action: int) -> list[Event]:
    """Return the events of an action, in order.

    The last event has the counts of the position after the action. An infinite move ends with an
    INFINITE event where it becomes illegal.

    Args:
        words: uint64[6], the position before the action; does not change.
        ruleset: the rules in force.
        action: a legal action, or one that is illegal only because it is infinite.
    """
    rules = ruleset.kernel_rules()
    record = _Recorder(words)
    captures = bool(kernel.is_capture_turn(rules, words))
    packed = Packed.of(words)
    hand = _begin(rules, words, captures, action)
    _record_start(record, words, hand, captures, action)
    while hand.seeds:
        before, hand = hand, _uint64(kernel.relay(rules, hand))
        if _record_sowing(record, before, hand):
            return record.events
    after, result = kernel.finish(rules, packed, captures, hand)
    end = np.array([*map(int, after), int(words[PLY]) + 1], np.uint64)
    _record_end(record, ruleset, words, end, hand, int(result))
    return record.events


def _begin(rules: KernelRules, words: Words, captures: bool, action: int) -> Hand:
    """Return the hand of an action before its first sowing."""
    start = np.uint64(start_of(words[META], captures, np.uint64(action)))
    stops = ZERO if unpack_action(action)[2] else FULL
    return _uint64(kernel.begin(rules, Packed.of(words), captures, start, stops))


def _uint64(hand: Hand) -> Hand:
    """Return a hand for the kernel, which returns plain integers when called from Python."""
    return Hand(*map(np.uint64, hand))


def _record_start(record: _Recorder, words: Words, hand: Hand, captures: bool, action: int) -> None:
    """Record the events before the first sowing."""
    pit = unpack_action(action)[0]
    position = unpack(words)
    mover = position.mover
    namua = record.namua
    if namua and position.pending is None:
        record.store[mover] -= 1
        record.pits[mover][pit] += 1
        record.add(EventKind.STORE_SEED, "Donkers 2.2", (pit,), 1)
    if captures and (namua or position.pending is not None):
        prey = position.front[1 - mover][facing(pit)]
        rule = "Dutch I.a" if position.pending is not None else "Donkers 2.3"
        record.capture(rule, pit, prey, int(hand.down))
        return
    lifted = int(hand.seeds)
    if hand.tally & kernel.LOST:
        lifted = record.pits[mover][pit]
    rule = "Donkers 2.4" if namua else "Donkers 3.4" if captures else "Donkers 3.5"
    if lifted < record.pits[mover][pit]:
        rule = _TWO_FROM_HOUSE
    record.take(EventKind.LIFT, rule, pit, lifted)


def _record_sowing(record: _Recorder, before: Hand, hand: Hand) -> bool:
    """Record a sowing and the event at its last pit; return whether the move is infinite."""
    last = (int(before.pit) + (int(before.seeds) - 1) * (-1 if before.down else 1)) & 15
    pit = ring_of_pit(last)
    record.sow("Donkers 1.3", int(before.pit), int(before.down))
    new_flags = int(hand.tally & ~before.tally)
    count = record.pits[record.mover][pit]
    if new_flags & int(kernel.INFINITE):
        sown = int(hand.tally >> kernel.TALLY_SHIFT)
        record.add(EventKind.INFINITE, "Donkers 1.5a", (pit,), sown)
        return True
    if new_flags & int(kernel.PAUSED):
        record.add(EventKind.PAUSE, "Dutch I.a", (pit,), count)
    elif new_flags & int(kernel.WON):
        record.capture("Donkers 1.4", last, (int(hand.facing) >> (8 * last)) & 255, int(hand.down))
    elif hand.facing != before.facing:
        record.capture("Donkers 1.4", last, int(hand.seeds), int(hand.down))
    elif new_flags & int(kernel.CHOICE):
        record.take(EventKind.HOUSE_PLAYED, "Donkers 2.5b", pit, int(hand.seeds))
    elif hand.seeds:
        turned = hand.down != before.down
        rule = "Dutch I.a" if turned else "Donkers 1.6"
        record.take(EventKind.ENDELEA, rule, pit, int(hand.seeds))
    elif count == 1:
        record.add(EventKind.EMPTY_STOP, "Donkers 1.5", (pit,), 1)
    elif last == HOUSE and count >= int(before.house_min):
        rule = "Donkers 2.5b" if record.namua else "kibao 1.6.2"
        record.add(EventKind.HOUSE_STOP, rule, (pit,), count)
    else:
        record.add(EventKind.TAKASIA_STOP, "Donkers 4.1b", (pit,), count)
    return False


def _record_end(
    record: _Recorder, ruleset: Ruleset, words: Words, after: Words, hand: Hand, result: int
) -> None:
    """Record the events at the end of the move."""
    old, new = unpack(words), unpack(after)
    mover = record.mover
    if hand.tally & kernel.WON:
        # The captured seeds are sown once, so that all 64 stay on the board.
        record.sow("Donkers 1.2", 7 if hand.down else 0, int(hand.down))
    elif hand.tally & kernel.LOST:
        # The seeds in the hand count as lying in the pit they came from.
        pit = ring_of_pit(record.events[-1].pits[0])
        record.pits[mover][pit] += record.hand
        record.hand = 0
    for seat in (mover, 1 - mover):
        if old.owns_house[seat] and not new.owns_house[seat]:
            two_taken = any(event.rule == _TWO_FROM_HOUSE for event in record.events)
            rule = "Dutch footnote 2" if seat == mover and two_taken else "Donkers 2.5a"
            record.add(EventKind.HOUSE_LOST, rule, (HOUSE,), new.front[seat][HOUSE], seat=seat)
    if result:
        loser = 1 - mover if result == int(ONE) else mover
        record.add(EventKind.FRONT_ROW_EMPTY, "Donkers 1.2", seat=loser)
        return
    if new.barred is not None:
        record.add(EventKind.TAKASIA, "Donkers 4.1", (new.barred,), seat=new.mover)
    if stuck(after, ruleset) is not None:
        record.add(EventKind.NO_LEGAL_MOVE, "Donkers 1.2", seat=new.mover)
