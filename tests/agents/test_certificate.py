"""Test that the proof that kujifunza is won holds by the literal rules, and errors are found."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from bao_env import RULESETS
from tests.check_certificate import (
    KUJIFUNZA,
    CertificateError,
    Entry,
    Proof,
    check,
    main,
    move_name,
    read,
)
from tests.conftest import Capsys
from tests.positions import random_games
from tests.processes import python
from tests.reference import OPPONENT, SOUTH, WINS, legal_moves, opening

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "agents" / "bao_agents" / "search" / "solver" / "proofs" / "kujifunza.tsv"
OPENING = opening(KUJIFUNZA)


@pytest.fixture(scope="module", autouse=True)
def remembered() -> Iterator[None]:
    """Keep the legal moves of positions that recur, because the literal rules are slow."""

    @cache
    def moves(text: str) -> dict[int, str]:
        return legal_moves(text, KUJIFUNZA)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.check_certificate.legal_moves", lambda text, _: moves(text))
        yield


@pytest.fixture(scope="module")
def shipped() -> dict[str, Entry]:
    """Return the entries of the shipped certificate, which a test must copy to change."""
    return read(SHIPPED)


def test_shipped_certificate_is_a_proof(capsys: Capsys) -> None:
    assert check(read(SHIPPED)) == Proof(SOUTH, 21, 559, 562)
    assert main([str(SHIPPED)]) == 0
    assert capsys.readouterr().out.startswith("proved: whoever begins kujifunza wins within 21 ")


def test_check_plays_by_the_rules_of_the_rule_set() -> None:
    ruleset = RULESETS["kujifunza"]
    for switch, value in vars(KUJIFUNZA).items():
        assert getattr(ruleset, switch) == value, switch
    assert len(legal_moves(OPENING, KUJIFUNZA)) == 16


def test_check_imports_neither_engine_nor_players() -> None:
    code = f"""
import sys
from tests.check_certificate import main
assert main([{str(SHIPPED)!r}]) == 0
imported = {{name.partition(".")[0] for name in sys.modules}}
print(imported & {{"bao_env", "bao_agents", "bao_training", "numba", "numpy"}})
"""
    assert python(code).stdout.splitlines()[-1] == "set()"


# --- what is wrong ------------------------------------------------------------------------------


Entries = dict[str, Entry]


def test_move_that_lets_the_other_player_win_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """The game begins shortly before its end."""
    for text in random_games(random.Random(1), RULESETS["kujifunza"]):
        for action, after in legal_moves(text, KUJIFUNZA).items():
            replies = {} if after in WINS.values() else legal_moves(after, KUJIFUNZA)
            if WINS[OPPONENT[text.split()[3]]] in replies.values():
                monkeypatch.setattr("tests.check_certificate.opening", lambda *_, text=text: text)
                with pytest.raises(CertificateError, match="the other player can win"):
                    check({text: Entry(move_name(action), 1)})
                return


def test_missing_file_raises(tmp_path: Path, capsys: Capsys) -> None:
    assert main([str(tmp_path / "none.tsv")]) == 1
    assert "error: " in capsys.readouterr().err
