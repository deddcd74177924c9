"""Test the events of a move: they lead to the position after it and cite their rules."""

from __future__ import annotations

import pytest

from bao_env.board import Board
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.ruleset import RULESETS, Ruleset
from bao_env.notation.events import EventKind, MoveEvent
from tests.positions import (
    LONE_KICHWA,
    TAKASIA,
    some_positions,
)

LONE_HOUSE = "0,0,0,0,9,0,0,0/0,0,0,0,0,0,1,1/1,0,4,0,9,2,1,0/0,0,0,0,0,0,0,0 18,18 SN S -"
KIBAO_STOP = "2,1,0,0,7,0,0,0/0,9,0,0,0,0,0,0/30,0,0,0,0,0,0,0/7,0,0,0,8,0,0,0 0,0 S S -"

LONGEST = "0,5,0,1,5,3,0,1/1,0,1,13,1,0,1,0/0,0,0,0,5,0,13,1/3,0,5,4,0,0,1,0 0,0 - S -"
LONGEST_CAPTURE = "0,1,9,2,1,1,1,0/0,0,1,0,6,1,0,1/2,0,6,2,0,6,5,1/4,4,3,0,2,2,0,3 0,0 - S -"


def check(board: Board, action: int) -> list[MoveEvent]:
    """Compare the events of a legal action with what it does; return the events."""
    before = board.position
    events = board.trace(action)
    assert board.position == before
    after = board.copy()
    after.push(action)
    position = after.position
    last = events[-1]
    assert last.counts == (position.pits(SOUTH), position.pits(NORTH))
    assert last.store == position.store and last.hand == 0
    counts = [list(before.pits(SOUTH)), list(before.pits(NORTH))]
    for event in events:
        assert sum(map(sum, event.counts)) + sum(event.store) + event.hand == 64
        assert min(map(min, event.counts)) >= 0 and event.hand >= 0
        if event.kind is EventKind.SOW:
            assert len(event.pits) == event.seeds
            for pit in event.pits:
                counts[event.seat][pit] += 1
            assert event.counts == (tuple(counts[SOUTH]), tuple(counts[NORTH]))
        counts = [list(side) for side in event.counts]
        assert str(event).endswith(f"({event.rule})") and str(event).isascii()
    ends = {EventKind.FRONT_ROW_EMPTY, EventKind.NO_LEGAL_MOVE} & {event.kind for event in events}
    outcome = after.outcome()
    assert bool(ends) == bool(outcome)
    if outcome:
        assert last.seat == 1 - (outcome.winner or 0)
        assert last.kind.value == outcome.reason.value
    lost = {event.seat for event in events if event.kind is EventKind.HOUSE_LOST}
    assert lost == {s for s in (0, 1) if before.owns_house[s] and not position.owns_house[s]}
    barred = [event.pits[0] for event in events if event.kind is EventKind.TAKASIA]
    assert barred == ([] if position.barred is None else [position.barred])
    assert (position.pending is not None) == (EventKind.PAUSE in {e.kind for e in events})
    return events


@pytest.mark.parametrize(
    "ruleset",
    [
        *RULESETS.values(),
        RULESETS["malawi"].replace(house_lost_below_min=True),
        RULESETS["kibao"].replace(takasia="zanzibar", capture_side="free", endelea_turns=True),
    ],
    ids=lambda ruleset: ruleset.name,
)
def test_events_lead_to_the_position_after_the_move(ruleset: Ruleset, seed: int) -> None:
    for text in some_positions(ruleset, 100, seed):
        board = Board.from_text(text, ruleset)
        for action in board.legal_actions:
            check(board, action)


@pytest.mark.parametrize(
    ("position", "name", "move", "kind", "rule", "words"),
    [
        (TAKASIA, "zanzibar", "A6L", EventKind.TAKASIA_STOP, "Donkers 4.1b", "A2"),
        (LONE_KICHWA, "kujifunza", "A1L", EventKind.FRONT_ROW_EMPTY, "Donkers 1.2", "North wins"),
        (KIBAO_STOP, "kibao", "A1L", EventKind.HOUSE_STOP, "kibao 1.6.2", "house A5"),
    ],
)
def test_how_moves_end(
    position: str, name: str, move: str, kind: EventKind, rule: str, words: str
) -> None:
    """The recorded playthroughs have other ends, and test_notation has a move that never ends."""
    last = Board.from_text(position, name).trace(move)[-1]
    assert (last.kind, last.rule) == (kind, rule)
    assert words in str(last)


@pytest.mark.parametrize(
    ("position", "move", "sowings"), [(LONGEST, "A5L", 337), (LONGEST_CAPTURE, "B5L", 151)]
)
def test_the_longest_moves_known(position: str, move: str, sowings: int) -> None:
    """The capture wins; its last sowing is the sowing of the seeds that are in the hand at the
    end."""
    board = Board.from_text(position)
    events = check(board, board.parse_move(move))
    assert sum(event.kind is EventKind.SOW for event in events) == sowings


def test_two_seeds_from_the_lone_house_may_end_it() -> None:
    shrinking = RULESETS["malawi"].replace(house_min=9, house_lost_below_min=True)
    events = Board.from_text(LONE_HOUSE, shrinking).trace("A5L")
    assert (events[1].kind, events[1].seeds, events[1].rule) == (EventKind.LIFT, 2, "Donkers 2.4b")
    assert [e.rule for e in events if e.kind is EventKind.HOUSE_LOST] == ["Dutch footnote 2"]
