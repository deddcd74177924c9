"""Test Board: playing, undoing, names, outcomes, texts and pictures."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest

from bao_env.board import Board, Outcome, Termination
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.ruleset import RULESETS, Ruleset
from bao_env.notation import NotationError
from bao_env.notation.transcript import parse_transcripts
from bao_env.render import svg_board
from tests.positions import (
    HOUSE_CHOICE,
    OPENING,
    STUCK,
    TAKASIA,
    WAITING,
    played,
)
from tests.reference import opening
from tests.rulesets import EVERY_RULESET

ODD = RULESETS["malawi"].replace(name="odd", sow_limit=300, takasia="none")


@EVERY_RULESET
@pytest.mark.parametrize("first_player", [SOUTH, NORTH])
def test_push_and_pop_on_random_games(ruleset: str, first_player: int, seed: int) -> None:
    """Every text of a position in a game can be read again, even at the end."""
    end = played(ruleset, seed, first_player)
    assert end.legal_actions == [] and end.legal_moves == []
    last = Board.from_text(end.text(), ruleset)
    assert last.text() == end.text() and last.legal_actions == []
    assert Board.from_transcript(last.transcript()) == last
    outcome = end.outcome()
    assert outcome is not None and end.is_game_over()
    assert Board.from_packed(end.packed, ruleset, outcome) == end
    undone = []
    board = end.copy()
    while board.move_stack:
        action = board.peek()
        assert board.pop() == action and board.outcome() is None
        undone.append((action, board.packed, board.legal_actions))
    assert board == Board(ruleset, first_player)
    assert board.text() == opening(RULESETS[ruleset], "SN"[first_player])
    for ply, (action, position, legal) in enumerate(reversed(undone)):
        assert board.ply == ply and board.legal_actions == legal and action in legal
        assert np.array_equal(board.packed, position)
        board.push(action)
    assert board == end and np.array_equal(board.packed, end.packed)


@pytest.mark.parametrize("duplicate", [Board.copy, copy.copy, copy.deepcopy])
def test_copies_are_independent(duplicate: Callable[[Board], Board]) -> None:
    """A move on one copy does not change the past that the other remembers."""
    board = Board.from_text(OPENING, moves="7L 5R")
    twin = duplicate(board)
    board.pop()
    board.push("A5L")
    twin.pop()
    assert board.move_stack[0] == 24 == twin.move_stack[0] and len(board.move_stack) == 2
    assert twin.text() == Board.from_text(OPENING, moves="A7L").text()


def test_equality() -> None:
    assert Board() != Board("kibao") and Board() != Board(first_player=NORTH)
    assert Board() == Board.from_text(OPENING) and Board() != OPENING


def test_a_board_may_start_where_the_mover_is_stuck() -> None:
    assert Board.from_text(STUCK).outcome() == Outcome(NORTH, Termination.NO_LEGAL_MOVE)


@pytest.mark.parametrize("ruleset", [*RULESETS, ODD], ids=str)
def test_repr_and_transcripts_make_the_board_again(ruleset: str | Ruleset) -> None:
    for seed in range(4):
        board = played(ruleset, seed, first_player=seed % 2)
        for _ in range(seed * 5 % (board.ply + 1)):
            board.pop()
        copy = eval(repr(board), {"Board": Board, "Ruleset": Ruleset})
        assert copy == board and copy.move_stack == board.move_stack
        for spelling in ("donkers", "kibao"):
            text = board.transcript(spelling=spelling)
            copy = Board.from_transcript(text)
            assert copy == board and copy.move_stack == board.move_stack
            assert copy.transcript(spelling=spelling) == text


def test_a_transcript() -> None:
    board = Board.from_text(OPENING, moves="7L 5R 6R")
    assert board.transcript({"south": "A"}, "kibao") == (
        "south: A\nruleset: zanzibar\nspelling: kibao\n1: 7<* 5>;\n2: 6>*;\n"
    )
    assert Board.from_transcript(parse_transcripts(board.transcript())[0]) == board
    assert repr(board) == f"Board.from_text({OPENING!r}, 'zanzibar', 'A7L A5R A6R')"
    for text in ("1: 7L;", "1: 7l*;"):
        with pytest.raises(NotationError):
            Board.from_transcript(text)
        assert Board.from_transcript(text, strict=False).move_stack == [24]
    lines = {"Position": "x", "rules": "{}", "first player": "North", "spelling": "kibao"}
    assert Board().transcript(lines) == Board().transcript()  # the game itself says these
    board = Board.from_text(WAITING, "dutch", "A3L")
    assert board.transcript() == f"ruleset: dutch\nposition: {WAITING}\n1: - 3L;\n"
    assert Board.from_text(HOUSE_CHOICE).move_text("A8R>", "kibao") == "8+"


# --- pictures ---------------------------------------------------------------------------------


def test_the_board_in_characters() -> None:
    """The recorded playthroughs show other boards."""
    north = Board("malawi").ascii("north").splitlines()
    assert north[1].strip().startswith("B") and north[4].strip().startswith("b")
    text = str(Board.from_text(TAKASIA))
    assert "(3)" in text and text.endswith("South to move, mtaji; takasia bars A2")
    text = str(Board.from_text(WAITING, "dutch"))
    assert "<3>" in text and text.endswith("North to move, mtaji; the capture at a3 waits")


def test_texts_in_pictures_are_escaped() -> None:
    assert "a &lt;b&gt; &amp; c" in svg_board(Board().position, status="a <b> & c")
