"""Test the text game: rules, prompts, answers in free text, forfeits.

``python -m tests.test_text_game`` writes the committed texts of tests/data/text_game.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bao_env import Board
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.position import unpack
from bao_env.engine.ruleset import RULESETS, get_ruleset
from bao_env.notation.moves import SPELLINGS, format_move, why_illegal
from bao_env.notation.positions import NotationError, action_to_move, format_position
from bao_env.text_game import (
    TextGame,
    prompt,
    random_board,
    read_answer,
    say_move,
    system_prompt,
    try_again,
)
from bao_env.text_rules import rules_page
from tests.chat_stub import read_prompt
from tests.positions import HOUSE_CHOICE, TAKASIA, WAITING, mixed_batch
from tests.rulesets import EVERY_RULESET

FOLDER = Path(__file__).with_name("data") / "text_game"
CASES = {"zanzibar": (HOUSE_CHOICE, TAKASIA), "dutch": (WAITING,)}
"""Positions whose prompts are committed, besides two of random games."""


def committed(ruleset: str) -> str:
    """Return the rules and some prompts, as they are committed."""
    boards = [random_board(ruleset, plies, seed=7) for plies in (3, 50)]
    boards += [Board.from_text(text, ruleset) for text in CASES.get(ruleset, ())]
    prompts = [prompt(board, legal=bool(i % 2)) for i, board in enumerate(boards)]
    return "\n\n".join([system_prompt(ruleset), *prompts]) + "\n"


@EVERY_RULESET
def test_texts_are_the_committed_ones(ruleset: str) -> None:
    assert committed(ruleset) == (FOLDER / f"{ruleset}.txt").read_text(encoding="ascii")


def test_each_switch_of_the_rules_changes_the_page() -> None:
    zanzibar = get_ruleset("zanzibar")
    pages = {
        rules_page(zanzibar.replace(**switch))
        for switch in (
            {},
            {"house_min": 5},
            {"house_lost_below_min": True},
            {"house_stops_mtaji_takasa": True},
            {"lone_house": "side"},
            {"singleton_takasa": "singletons"},
            {"capture_side": "free"},
            {"endelea_turns": True},
            {"capture_limit": 63},
            {"lone_kichwa_takasa": "loses"},
            {"takasia": "none"},
            {"takasia": "dutch"},
            {"sow_limit": 500},
            {"first_player": "lot"},
            {"house": False},
            {"opening_store": 20, "opening_back": (2, *(0,) * 7)},
        )
    }
    assert len(pages) == 16


@EVERY_RULESET
def test_a_prompt_tells_the_position_and_every_way_to_write_a_move_reads_back(ruleset: str) -> None:
    rules = get_ruleset(ruleset)
    for words in mixed_batch(rules, 100, seed=5):
        board = Board.from_text(format_position(unpack(words)), rules)
        assert read_prompt(prompt(board), rules) == replace(board.position, pending_sown=0)
        legal = board.legal_actions
        said = [say_move(board.words, rules, action) for action in range(NUM_ACTIONS)]
        assert f"moves: {'; '.join(said[action] for action in legal)}." in prompt(board)
        for action in {*range(NUM_ACTIONS)} - {*legal}:
            with pytest.raises(NotationError) as error:
                read_answer(f"A1R? No!\n**Move:** {said[action]}.", board.words, rules)
            assert str(error.value.reason) == str(why_illegal(board.words, rules, action))
        for action in legal:
            name = action_to_move(action)
            texts = [said[action], said[action].upper(), f"A1R? No!\n**Move:** {said[action]}."]
            for text in (*texts, name, f"Move: `{name}`"):
                assert read_answer(text, board.words, rules) == action, text
            for spelling in SPELLINGS:
                text = f"My move is {format_move(board.words, rules, action, spelling)}"
                if text[-1] in "LR<+*" and ">" not in text:  # > is right or the house
                    assert read_answer(text, board.words, rules) == action, text


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "the answer does not end with a move"),
        ("I resign.", "the answer 'I resign' does not end with a move"),
        ("I would like to capture at A5", "does not end with a move"),
        ("Move: A9R", "does not end with a move"),
        ("Move: HOLE towards HOLE", "does not end with a move"),
        ("\x00\x1b[31m\u202e" * 9, "does not end with a move"),
        ("Move: A7", "needs a direction"),
        ("Move: A7 towards A5", "expected A7 towards A6 or A8"),
        ("Move: A7 from A8", "expected A7 towards A6 or A8"),
        ("Move: A1 towards A2", "A1 is empty"),
        ("Move: A7L. Or rather:\nMove: A1 towards A2", "A1 is empty"),
    ],
)
def test_what_is_wrong_with_an_answer(answer: str, reason: str) -> None:
    board = Board()
    with pytest.raises(NotationError) as error:
        read_answer(answer, board.words, board.ruleset)
    assert reason in str(error.value.reason)
    assert str(error.value.reason).isprintable()


def test_a_capture_in_namua_needs_the_end_of_the_row() -> None:
    board = Board.from_text(Board().text(), moves="A7L")
    for answer in ("a5 towards a6", "a5 from a7"):
        with pytest.raises(NotationError, match="expected a5 from a1 or a8, the end of the row"):
            read_answer(answer, board.words, board.ruleset)


def test_an_echo_of_the_prompt_is_no_move() -> None:
    board = Board()
    again = try_again(NotationError("expected A5 towards A4"))
    for text in (system_prompt(), prompt(board), again, "A1 " * 10**6):
        with pytest.raises(NotationError):
            read_answer(text, board.words, board.ruleset)


def test_a_game_counts_illegal_answers_and_ends_with_a_forfeit() -> None:
    game = TextGame(Board(), retries=1)
    again = game.answer("Move: A1 towards A2")
    assert again is not None and "A1 is empty" in again
    assert game.answer("Move: A7 towards A6") is None
    assert game.moves == ["South A7 towards A6"] and not game.ending
    assert "Last moves: South A7 towards A6." in game.prompt()
    game.answer("pass")
    assert not game.ending
    game.answer("pass")
    assert (game.winner, game.illegal) == (0, [1, 2])
    assert game.ending == "South wins: North forfeits"


def test_a_game_ends_as_its_board_does() -> None:
    start = random_board("kujifunza", 3, seed=1)
    game, same = TextGame(start), TextGame(start)
    rng = np.random.default_rng(2)
    while not game.ending:
        assert game.prompt() == same.prompt()
        action = int(rng.choice(game.board.legal_actions))
        assert game.answer(say_move(game.board.words, game.board.ruleset, action)) is None
        same.play(action)
    outcome = game.board.outcome()
    assert outcome is not None and (game.winner, game.ending) == (outcome.winner, str(outcome))
    assert start.ply == 3 and len(game.moves) == game.board.ply - 3


if __name__ == "__main__":
    for name in RULESETS:
        (FOLDER / f"{name}.txt").write_text(committed(name), encoding="ascii")
