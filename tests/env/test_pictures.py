"""Compare pictures with the position: numbers, seeds, arrows and rings lie where they belong."""

from __future__ import annotations

import random
import re
from itertools import islice

import numpy as np
import pytest

from bao_env.board import Board, EventKind
from bao_env.engine.layout import LEFT, NORTH, RIGHT, SOUTH
from bao_env.engine.ruleset import RULESETS
from bao_env.render import svg_board
from bao_env.render.drawing import WIDE, Place, drawing, places
from bao_env.render.marks import Mark, MarkKind, action_marks
from bao_env.render.raster import rgb_array
from bao_env.render.shapes import Circle, Polygon
from bao_env.render.svg import svg_shapes
from bao_env.render.text import ascii_board
from tests.positions import HOUSE_CHOICE, OPENING, TAKASIA, WAITING, random_games

VIEWERS = pytest.mark.parametrize("viewer", [SOUTH, NORTH])
BOARD = Board.from_text(TAKASIA).position


def some_boards(ruleset: str) -> list[Board]:
    texts = list(islice(random_games(random.Random(1), RULESETS[ruleset]), 0, 120, 6))
    texts += [WAITING] if ruleset == "dutch" else []
    return [Board.from_text(text, ruleset) for text in texts]


@VIEWERS
def test_numbers_are_those_of_the_board_in_characters(viewer: int) -> None:
    """The oracle checks those, for South in playthroughs. Labels of holes come row by row."""
    for board in some_boards("zanzibar"):
        labels = re.findall(
            r'<text x="([\d.]+)" y="([\d.]+)"[^>]* font-size="11.5"[^>]*>(\d+)<',
            svg_board(board.position, viewer=viewer),
        )
        on_rows = [
            (float(y), float(x), int(count))
            for x, y, count in labels
            if WIDE.left < float(x) < WIDE.width - WIDE.left
        ]
        lines = ascii_board(board.position, viewer=viewer).splitlines()[1:5]
        counts = [int(count) for line in lines for count in re.findall(r"\d+", line[4:45])]
        assert [count for *_, count in sorted(on_rows)] == [count for count in counts if count]


def owner(x: float, y: float, viewer: int) -> Place:
    """Return the hole or store where a point of the picture lies."""
    found = [
        place
        for place in places(viewer=viewer)
        if abs(x - place.x) <= place.reach_x + 1 and abs(y - place.y) <= place.reach_y + 1
    ]
    assert len(found) == 1
    return found[0]


@VIEWERS
def test_seeds_lie_in_their_holes_and_stores(viewer: int) -> None:
    for board in some_boards("dutch"):
        position = board.position
        lying: dict[tuple[int, int | None], int] = {}
        for shape in drawing(position, viewer=viewer):
            if isinstance(shape, Circle) and shape.radius == 5:
                place = owner(shape.x, shape.y, viewer)
                lying[place.seat, place.pit] = lying.get((place.seat, place.pit), 0) + 1
        for seat in (SOUTH, NORTH):
            holes: list[tuple[int | None, int]] = [*enumerate(position.pits(seat))]
            for pit, count in [*holes, (None, position.store[seat])]:
                assert lying.get((seat, pit), 0) == count


@VIEWERS
@pytest.mark.parametrize("kind", MarkKind)
def test_marks_surround_their_hole(kind: MarkKind, viewer: int) -> None:
    """In pixels, too: a mark changes the picture at its hole alone."""
    plain = rgb_array(drawing(BOARD, viewer=viewer)).astype(int)
    for place in places(viewer=viewer)[3:32:19]:
        assert place.pit is not None
        mark = Mark(kind, place.seat, place.pit)
        marked = rgb_array(drawing(BOARD, marks=[mark], viewer=viewer))
        rows, columns = np.nonzero(np.abs(marked - plain).max(axis=2) > 40)
        assert abs((columns.min() + columns.max()) / 2 - place.x) < 3
        assert abs((rows.min() + rows.max()) / 2 - place.y) < 3
        assert 40 < np.ptp(columns) < 80 and 40 < np.ptp(rows) < 80


@VIEWERS
@pytest.mark.parametrize("kind", MarkKind)
def test_arrows_point_as_their_owner_sees_it(kind: MarkKind, viewer: int) -> None:
    for seat in (SOUTH, NORTH):

        def middle(way: int) -> float:
            marks = [Mark(kind, seat, 3, (way,))]  # noqa: B023
            shapes = drawing(Board().position, marks=marks, viewer=viewer)
            arrow = [s for s in shapes if isinstance(s, Polygon) and s.fill == kind.colour][-1]
            tips = [x for x, _ in arrow.points]
            return float(np.mean(tips)) if kind is not MarkKind.HINT else float(np.median(tips))

        assert (middle(LEFT) < middle(RIGHT)) == (seat == viewer)


@pytest.mark.parametrize("ruleset", ["zanzibar", "dutch"])
def test_arrows_of_moves_point_the_way_of_the_hand(ruleset: str) -> None:
    """A capture in namua names the kichwa, from which its hand goes inward."""
    flipped = set()
    for board in some_boards(ruleset):
        for action in board.legal_actions:
            way = action >> 1 & 1
            events = board.trace(action)
            first = next(e for e in events if e.kind in (EventKind.SIDE, EventKind.SOW))
            entering = first.kind is EventKind.SIDE and (board.position.store[board.turn] > 0)
            waits = board.position.pending is not None
            if entering or waits:
                way = LEFT if first.pits[0] else RIGHT
            [mark] = action_marks(MarkKind.LAST, board.packed, board.ruleset, [action])
            assert mark == Mark(MarkKind.LAST, board.turn, action >> 2, (way,)), action
            flipped.add(way != action >> 1 & 1)
    assert flipped == {True, False}


def test_a_board_draws_these_marks() -> None:
    board = Board.from_text(HOUSE_CHOICE)
    shown = board.svg(legal=True)
    for mark in action_marks(MarkKind.LEGAL, board.packed, board.ruleset, board.legal_actions):
        assert svg_board(board.position, marks=[mark]) != svg_board(board.position)
    legal = action_marks(MarkKind.LEGAL, board.packed, board.ruleset, board.legal_actions)
    assert shown == svg_board(board.position, marks=legal)
    before, action = board.packed, board.legal_actions[0]
    board.push(action)
    last = action_marks(MarkKind.LAST, before, board.ruleset, [action])
    assert board.svg() == board._repr_svg_() == svg_board(board.position, marks=last)


def test_the_paper_is_dark_where_pages_are() -> None:
    svg = Board.from_text(OPENING).svg()
    [dark] = re.findall(r"prefers-color-scheme: dark\) {\n(.*)\n}", svg)
    for name in re.findall(r"\.([a-z-]+) {", dark):
        assert f'class="{name}"' in svg
    assert svg_shapes(drawing(Board().position)) in svg
