"""The recorded data of each rule set against the reference and the engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from bao_env import Board
from bao_env.engine.ruleset import RULESETS
from bao_env.notation.transcript import parse_transcripts, replay
from bao_env.signature import signature
from tests import make_golden, reference
from tests.conftest import Capsys
from tests.make_golden import golden_file, perft_numbers, pinned
from tests.rulesets import EVERY_RULESET


@EVERY_RULESET
def test_golden_game(ruleset: str) -> None:
    rules = RULESETS[ruleset]
    text = golden_file(ruleset).read_text(encoding="ascii")
    [game] = parse_transcripts(text)
    played = replay(game)
    board = Board(ruleset, played.start.mover)
    for action in played.actions:
        before = board.text()
        assert board.legal_actions == sorted(reference.legal_moves(before, rules)), before
        board.push(action)
    winner = reference.legal_moves(before, rules)[action].replace(" wins", "")
    outcome = board.outcome()
    assert outcome is not None and outcome.winner == "SN".index(winner)
    assert board.text() == game.get("final")
    assert Board.from_transcript(text) == board
    assert board.transcript(dict(game.head)) == text


@EVERY_RULESET
def test_signature(ruleset: str) -> None:
    """A change here is a change of the rules or of the encoding: raise RULES_VERSION with it."""
    assert signature(ruleset) == pinned(ruleset)["signature"]


@EVERY_RULESET
def test_perft(ruleset: str) -> None:
    """The numbers of zanzibar agree with those of other programs."""
    numbers, rules = pinned(ruleset)["perft"], RULESETS[ruleset]
    assert len(numbers) >= 6
    assert perft_numbers(rules, len(numbers)) == numbers
    assert reference.perft(reference.opening(rules), rules, 4) == numbers[:4]


def test_make_golden_writes_missing_data_only(
    tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = pinned("malawi")
    monkeypatch.setattr(make_golden, "MAX_PERFT", 30)
    monkeypatch.setattr(make_golden, "DATA", tmp_path)
    for written in (2, 0):
        make_golden.main(["malawi"])
        assert capsys.readouterr().out.count("written") == written
    assert pinned("malawi") == expected | {"perft": expected["perft"][:3]}
    file = golden_file("malawi")
    assert Board.from_transcript(file.read_text()).outcome() is not None
    file.write_text("mine")
    make_golden.main(["malawi", "--force"])
    assert "final" in file.read_text()
