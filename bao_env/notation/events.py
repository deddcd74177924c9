"""List the events of a move, so that a board can show the move or explain it.

The events come from running the kernel one sowing at a time, so they agree with the rules as
played. Each call of ``relay()`` sows once; the change of the hand shows what happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from bao_env.compiled.compile import jit_brief
from bao_env.engine import kernel
from bao_env.engine.bits import ONE
from bao_env.engine.kernel import Hand
from bao_env.engine.layout import HOUSE, KICHWA, KIMBI, facing, ring_of_pit
from bao_env.engine.position import PLY, PackedPositions, Position, Rows, unpack
from bao_env.engine.ruleset import KernelRules, Ruleset
from bao_env.game import SEAT_NAMES, Stage, legal_actions, stage_of
from bao_env.notation.positions import hole_name


class EventKind(Enum):
    """The kinds of events in a move, each with a sentence that :meth:`MoveEvent.names` fills in."""

    text: str

    def __new__(cls, value: str, text: str) -> EventKind:
        kind = object.__new__(cls)
        kind._value_, kind.text = value, text
        return kind

    STORE_SEED = "store seed", "{who} puts a seed from the store into {hole}"
    """A seed from the store goes into a hole."""
    LIFT = "lift", "{who} lifts {seeds} from {hole}"
    """The hand takes the seeds of the hole where the move starts."""
    SOW = "sow", "{who} sows {seeds}: {holes}"
    """The hand sows its seeds one by one."""
    CAPTURE = "capture", "{other} captures {seeds} from {hole} at {at}"
    """The hand takes the seeds of an opponent's hole; ``at`` is the capturing hole."""
    SIDE = "side", "the captured seeds are sown from {hole}"
    """The kichwa from which captured seeds will be sown."""
    ENDELEA = "endelea", "{hole} was filled: {who} lifts {seeds} there and sows on"
    """The hand lifts the hole where its sowing ended, and continues to sow."""
    HOUSE_PLAYED = "house played", "{who} plays the house {hole} with {seeds}"
    """ENDELEA at the house, which the player has chosen to play."""
    HOUSE_STOP = "house stop", "the move ends in the house {hole} with {seeds}"
    """The move ends at the house."""
    TAKASIA_STOP = "takasia stop", "the move ends at {hole}, which takasia bars"
    """The move ends at the hole that takasia bars."""
    EMPTY_STOP = "empty stop", "{hole} was empty: the move ends"
    """The move ends because its last seed fell into an empty hole."""
    INFINITE = "infinite", "{seeds} sown and the move has not ended: illegal"
    """The move has sown too many seeds and is illegal."""
    PAUSE = "pause", "{who} captures at {hole} and has to choose the side"
    """A capture waits for the player to choose its side (Dutch rule set)."""
    HOUSE_LOST = "house lost", "{who} no longer owns the house {hole}"
    """A player has lost their house."""
    TAKASIA = "takasia", "takasia: {who} may not start from {hole}"
    """Takasia bars a hole of the next player."""
    FRONT_ROW_EMPTY = "front row empty", "{who}'s front row is empty: {other} wins"
    """``seat`` has lost: their front row was emptied."""
    NO_LEGAL_MOVE = "no legal move", "{who} has no legal move: {other} wins"
    """``seat`` has lost: they are to move and have no legal move."""


@dataclass(frozen=True)
class MoveEvent:
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
    """For a capture: the capturing pit (0..7), which belongs to the opponent of ``seat``."""
    counts: tuple[tuple[int, ...], tuple[int, ...]]
    """Seeds in pits 0..15 of South and of North after the event."""
    store: tuple[int, int]
    """Seeds in the two stores after the event."""
    hand: int
    """Seeds in the mover's hand after the event. With ``counts`` and ``store``, they make 64."""

    def __str__(self) -> str:
        """Return the event in words, with its rule."""
        return f"{self.sentence} ({self.rule})"

    @property
    def sentence(self) -> str:
        """The event in words."""
        return self.kind.text.format(**self.names())

    def names(self) -> dict[str, str]:
        """Return the words that fill in the event's sentence: players, holes and counts."""
        names = [hole_name(self.seat, pit) for pit in self.pits]
        return {
            "who": SEAT_NAMES[self.seat],
            "other": SEAT_NAMES[1 - self.seat],
            "hole": names[0] if names else "",
            "holes": " ".join(names),
            "seeds": "1 seed" if self.seeds == 1 else f"{self.seeds} seeds",
            "at": hole_name(1 - self.seat, self.at or 0),
        }


class _Recorder:
    """Collect events, and keep the seeds on the board up to date."""

    def __init__(self, packed: PackedPositions, ruleset: Ruleset) -> None:
        # The takasa of a lone house takes two seeds.
        self.two_seeds_rule = "Donkers 2.4b" if ruleset.lone_house == "front" else "Dutch I.c"
        self.before = unpack(packed)
        self.mover = self.before.mover
        self.namua = stage_of(self.before) is Stage.NAMUA
        self.pits = [list(self.before.pits(seat)) for seat in (0, 1)]
        self.store = list(self.before.store)
        self.hand = 0
        self.events: list[MoveEvent] = []

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
            MoveEvent(kind, seat, pits, seeds, rule, at, (south, north), store, self.hand)
        )

    def take(self, kind: EventKind, rule: str, pit: int, seeds: int) -> None:
        """Let the hand take seeds from a pit of the mover."""
        self.pits[self.mover][pit] -= seeds
        self.hand += seeds
        self.add(kind, rule, (pit,), seeds)

    def sow(self, rule: str, start: int, down: int) -> None:
        """Let the hand sow all its seeds, beginning at a ring pit."""
        step = -1 if down else 1
        pits = tuple(ring_of_pit((start + i * step) & 15) for i in range(self.hand))
        for pit in pits:
            self.pits[self.mover][pit] += 1
        self.hand = 0
        self.add(EventKind.SOW, rule, pits, len(pits))

    def capture(self, rule: str, ring: int, down: int) -> None:
        """Let the hand take the seeds that face a front pit, to be sown in direction ``down``."""
        opponent, captured_pit = 1 - self.mover, facing(ring)
        seeds = self.pits[opponent][captured_pit]
        self.pits[opponent][captured_pit] = 0
        self.hand += seeds
        self.add(EventKind.CAPTURE, rule, (captured_pit,), seeds, seat=opponent, at=ring)
        if ring in KICHWA + KIMBI:
            rule = "Donkers 1.4b"
        elif rule != "Dutch I.a":
            rule = "Donkers 1.4c"
        self.add(EventKind.SIDE, rule, (KICHWA[down],), seeds)

    def start(self, pit: int, captures: bool, hand: Hand) -> None:
        """Record the events before the first sowing."""
        pending = self.before.pending is not None
        if self.namua and not pending:
            self.store[self.mover] -= 1
            self.pits[self.mover][pit] += 1
            self.add(EventKind.STORE_SEED, "Donkers 2.2", (pit,), 1)
        if captures and (self.namua or pending):
            self.capture("Dutch I.a" if pending else "Donkers 2.3", pit, int(hand.down))
            return
        count = self.pits[self.mover][pit]
        lifted = count if hand.tally & kernel.LOST else int(hand.seeds)
        rule = "Donkers 2.4" if self.namua else "Donkers 3.4" if captures else "Donkers 3.5"
        self.take(EventKind.LIFT, self.two_seeds_rule if lifted < count else rule, pit, lifted)

    def sowing(self, before: Hand, hand: Hand) -> None:
        """Record a sowing and the event at its last pit."""
        last = (int(before.pit) + (int(before.seeds) - 1) * (-1 if before.down else 1)) & 15
        pit = ring_of_pit(last)
        self.sow("Donkers 1.3", int(before.pit), int(before.down))
        new_flags = int(hand.tally & ~before.tally)
        count = self.pits[self.mover][pit]
        if new_flags & int(kernel.INFINITE):
            sown = int(hand.tally >> kernel.TALLY_SHIFT)
            self.add(EventKind.INFINITE, "Donkers 1.5a", (pit,), sown)
        elif new_flags & int(kernel.PAUSED):
            self.add(EventKind.PAUSE, "Dutch I.a", (pit,), count)
        elif new_flags & int(kernel.WON) or hand.facing != before.facing:
            self.capture("Donkers 1.4", last, int(hand.down))
        elif new_flags & int(kernel.CHOICE):
            self.take(EventKind.HOUSE_PLAYED, "Donkers 2.5b", pit, int(hand.seeds))
        elif hand.seeds:
            rule = "Dutch I.a" if hand.down != before.down else "Donkers 1.6"
            self.take(EventKind.ENDELEA, rule, pit, int(hand.seeds))
        elif count == 1:
            self.add(EventKind.EMPTY_STOP, "Donkers 1.5", (pit,), 1)
        elif last == HOUSE and count >= int(before.house_min):
            rule = "Donkers 2.5b" if self.namua else "kibao 1.6.2"
            self.add(EventKind.HOUSE_STOP, rule, (pit,), count)
        elif last == before.barred:
            self.add(EventKind.TAKASIA_STOP, "Donkers 4.1b", (pit,), count)
        else:
            raise AssertionError(f"no rule ends a sowing here: {hand!r}")

    def end(self, hand: Hand, after: Position) -> None:
        """Bring the seeds to their final holes, and record which houses were lost."""
        if hand.tally & kernel.WON:
            # The captured seeds are sown once, so that all 64 stay on the board.
            self.sow("Donkers 1.2", KICHWA[int(hand.down)], int(hand.down))
        elif hand.tally & kernel.LOST:
            # The seeds in the hand count as seeds of the pit that they were lifted from.
            self.pits[self.mover][self.events[-1].pits[0]] += self.hand
            self.hand = 0
        for seat in (self.mover, 1 - self.mover):
            if self.before.owns_house[seat] and not after.owns_house[seat]:
                two_taken = any(event.rule == self.two_seeds_rule for event in self.events)
                rule = "Dutch footnote 2" if seat == self.mover and two_taken else "Donkers 2.5a"
                self.add(EventKind.HOUSE_LOST, rule, (HOUSE,), after.front[seat][HOUSE], seat)


def trace_move(packed: PackedPositions, ruleset: Ruleset, action: int) -> list[MoveEvent]:
    """Return the events of an action, in order.

    The last event has the counts of the position after the action. An infinite move ends with an
    INFINITE event where it becomes illegal.

    Args:
        packed: uint64[6], the position before the action; it is not changed.
        ruleset: the rules in force.
        action: a legal action, or one that is illegal only because it is infinite.
    """
    rules = ruleset.kernel
    record = _Recorder(packed, ruleset)
    fields = Rows.of(packed)
    captures, first_hand = _begin(rules, fields, np.uint64(action))
    hand = _uint64(first_hand)
    record.start(action >> 2, captures, hand)
    while hand.seeds:
        before, hand = hand, _uint64(_relay(rules, hand))
        record.sowing(before, hand)
    if hand.tally & kernel.INFINITE:
        return record.events
    fields_after, result = _finish(rules, fields, captures, hand)
    packed_after = np.array([*map(int, fields_after), int(packed[PLY]) + 1], np.uint64)
    after = unpack(packed_after)
    record.end(hand, after)
    if result:
        loser = 1 - record.mover if result == int(ONE) else record.mover
        record.add(EventKind.FRONT_ROW_EMPTY, "Donkers 1.2", seat=loser)
        return record.events
    if after.barred is not None:
        record.add(EventKind.TAKASIA, "Donkers 4.1", (after.barred,), seat=after.mover)
    if not legal_actions(packed_after, ruleset):
        record.add(EventKind.NO_LEGAL_MOVE, "Donkers 1.2", seat=after.mover)
    return record.events


@jit_brief
def _begin(rules: KernelRules, rows: Rows, action: np.uint64) -> tuple[bool, tuple[np.uint64, ...]]:
    captures, hand = kernel.begin_action(rules, rows, action)
    return captures, hand[:]


@jit_brief
def _relay(rules: KernelRules, hand: Hand) -> tuple[np.uint64, ...]:
    return kernel.relay(rules, hand)[:]


@jit_brief
def _finish(
    rules: KernelRules, rows: Rows, captures: bool, hand: Hand
) -> tuple[tuple[np.uint64, ...], np.uint64]:
    after, result = kernel.finish(rules, rows, captures, hand)
    return after[:], result


def _uint64(hand: tuple[np.uint64, ...]) -> Hand:
    """Return a hand whose plain integers, as Python gets them, are uint64 again for the kernel."""
    return Hand(*map(np.uint64, hand))
