"""Compare pictures with the position: numbers, seeds, arrows and rings lie where they belong."""

from __future__ import annotations

import random
from itertools import islice

import numpy as np
import pytest

from bao_agents.play.seated_game import hand_way
from bao_env.board import Board, EventKind
from bao_env.engine.layout import LEFT, NORTH, RIGHT, SOUTH
from bao_env.engine.ruleset import RULESETS
from bao_env.render import svg_board
from bao_env.render.drawing import RADIUS, drawing, hollows
from bao_env.render.marks import Mark, MarkKind, action_marks
from bao_env.render.raster import rgb_array
from bao_env.render.shapes import Polygon, Rect
from tests.positions import HOUSE_CHOICE, TAKASIA, WAITING, random_games

VIEWERS = pytest.mark.parametrize("viewer", [SOUTH, NORTH])
BOARD = Board.from_text(TAKASIA).position


def some_boards(ruleset: str) -> list[Board]:
    texts = list(islice(random_games(random.Random(1), RULESETS[ruleset]), 0, 120, 6))
    texts += [WAITING] if ruleset == "dutch" else []
    return [Board.from_text(text, ruleset) for text in texts]


@VIEWERS
@pytest.mark.parametrize("kind", MarkKind)
def test_marks_surround_their_hole(kind: MarkKind, viewer: int) -> None:
    """A mark changes the picture, in pixels too, at its hole alone."""
    plain = rgb_array(drawing(BOARD, viewer=viewer)).astype(int)
    for hollow in hollows(viewer=viewer)[3:32:19]:
        assert hollow.pit is not None
        mark = Mark(kind, hollow.seat, hollow.pit)
        marked = rgb_array(drawing(BOARD, marks=[mark], viewer=viewer))
        rows, columns = np.nonzero(np.abs(marked - plain).max(axis=2) > 40)
        assert abs((columns.min() + columns.max()) / 2 - hollow.x) < 3
        assert abs((rows.min() + rows.max()) / 2 - hollow.y) < 3
        assert 40 < np.ptp(columns) < 80 and 40 < np.ptp(rows) < 80


@VIEWERS
@pytest.mark.parametrize("kind", MarkKind)
def test_arrows_point_as_their_owner_sees_it(kind: MarkKind, viewer: int) -> None:
    for seat in (SOUTH, NORTH):

        def middle(direction: int) -> float:
            marks = [Mark(kind, seat, 3, (direction,))]  # noqa: B023
            shapes = drawing(Board().position, marks=marks, viewer=viewer)
            arrow = [s for s in shapes if isinstance(s, Polygon) and s.fill == kind.colour][-1]
            tips = [x for x, _ in arrow.points]
            return float(np.mean(tips)) if kind is not MarkKind.HINT else float(np.median(tips))

        assert (middle(LEFT) < middle(RIGHT)) == (seat == viewer)


@pytest.mark.parametrize("ruleset", ["zanzibar", "dutch"])
def test_a_ring_is_on_the_pit_and_the_arrow_where_the_hand_sows(ruleset: str) -> None:
    """The trace says where, for each kind of move; the page's drawing has its arrow there, too."""
    starts_in_own_pit = set()
    for board in some_boards(ruleset):
        for action in board.legal_actions:
            first = next(
                e for e in board.trace(action) if e.kind in (EventKind.SIDE, EventKind.SOW)
            )
            pit, direction, start = action >> 2, action >> 1 & 1, action >> 2
            waits = board.position.pending is not None
            if waits or (first.kind is EventKind.SIDE and board.position.store[board.turn]):
                start = first.pits[0]
                direction = LEFT if start else RIGHT
            for kind in (MarkKind.LAST, MarkKind.HINT):
                marks = action_marks(kind, board.packed, board.ruleset, [action])
                assert [(mark.seat, mark.pit) for mark in marks if mark.ring] == [(board.turn, pit)]
                assert [(mark.pit, mark.directions) for mark in marks if mark.directions] == [
                    (start, (direction,))
                ]
            hand = hand_way(board, action)
            assert (hand["pit"], hand["start"], hand["way"]) == (pit, start, direction)
            starts_in_own_pit.add(start == pit)
        legal = action_marks(MarkKind.LEGAL, board.packed, board.ruleset, board.legal_actions)
        has_arrows = not (
            waits or (first.kind is EventKind.SIDE and board.position.store[board.turn])
        )
        assert all(mark.ring and bool(mark.directions) is has_arrows for mark in legal)
    assert starts_in_own_pit == {True, False}


def test_hole_5_is_square_if_it_is_a_house() -> None:
    for ruleset, houses in (("zanzibar", 2), ("kujifunza", 0)):
        board = Board(ruleset)
        squares = {
            (shape.x, shape.y)
            for shape in board.shapes(legal=True)
            if isinstance(shape, Rect) and shape.w == shape.h == 2 * RADIUS
        }
        assert len(squares) == houses
        assert board.svg() == svg_board(board.position, house=board.ruleset.house)


def test_a_board_draws_these_marks() -> None:
    """The notebook shows boards with the mark of the last action."""
    board = Board.from_text(HOUSE_CHOICE)
    legal = action_marks(MarkKind.LEGAL, board.packed, board.ruleset, board.legal_actions)
    assert board.svg(legal=True) == svg_board(board.position, marks=legal)
    assert board.svg() == board._repr_svg_() == svg_board(board.position)
    north = svg_board(board.position, marks=legal, viewer=NORTH, width=500)
    assert board.svg(legal=True, viewer="north", width=500) == north != svg_board(board.position)
