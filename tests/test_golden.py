"""A recorded game of each rule set, by both implementations of the rules."""

from __future__ import annotations

from pathlib import Path

import pytest
import reference

from bao_env import RULESETS, Board
from bao_env.notation.transcript import parse_transcripts, replay

GOLDEN = Path(__file__).parent / "data" / "golden"


@pytest.mark.parametrize("name", RULESETS)
def test_golden_game(name: str) -> None:
    text = (GOLDEN / f"{name}.txt").read_text()
    [game] = parse_transcripts(text)
    assert game.get("ruleset") == name
    played = replay(game)
    board = Board.from_transcript(text)
    assert board.text() == game.get("final") and board.outcome() is not None
    assert board.transcript(dict(game.head)) == text

    walk = Board(ruleset=name, first_player=played.start.mover)
    for action in played.actions:
        moves = reference.legal_moves(walk.text(), RULESETS[name])
        assert sorted(moves) == walk.legal_actions
        walk.push(action)
        outcome = walk.outcome()
        expected = walk.text() if outcome is None else f"{'SN'[outcome.winner or 0]} wins"
        assert moves[action] == expected
