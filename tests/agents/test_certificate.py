"""Test that the proof that kujifunza is won holds by the literal rules, and errors are found."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
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
Change = Callable[[Entries], Entries]


def without(place: int) -> Change:
    """Leave out an entry."""
    return lambda entries: {text: entries[text] for text in entries if text != list(entries)[place]}


def opening_move(move: str) -> Change:
    """Begin with another move."""
    return lambda entries: {**entries, OPENING: Entry(move, 21)}


def more_plies(place: int, plies: int) -> Change:
    """Add to the plies of an entry."""

    def change(entries: Entries) -> Entries:
        text = list(entries)[place]
        return {**entries, text: Entry(entries[text].move, entries[text].plies + plies)}

    return change


NORTH = OPENING.replace(" S ", " N ")
UNPLAYED = next(iter(legal_moves(NORTH, KUJIFUNZA).values()))


@pytest.mark.parametrize(
    "change, message",
    [
        (without(300), "is not listed, but can follow"),
        (without(-1), "is not listed, but can follow"),
        (opening_move("A6L"), "is not listed, but can follow"),
        (lambda entries: {}, "the opening, .* is not listed"),
        (
            lambda entries: {text.replace(" S ", " N "): entries[text] for text in entries},
            "the opening, .* is not listed",
        ),
        (opening_move("A1L"), "is illegal; legal: "),
        (opening_move(""), "is illegal; legal: "),
        (more_plies(0, -2), "but what follows takes"),
        (more_plies(140, 1), "but what follows takes"),
        (more_plies(-1, 2), "but what follows takes"),
        (lambda entries: {**entries, NORTH: entries[OPENING]}, "1 positions are listed that do"),
        (lambda entries: {**entries, UNPLAYED: Entry("A3R", 19)}, "do not arise, for example"),
    ],
)
def test_wrong_certificate_raises(shipped: Entries, change: Change, message: str) -> None:
    with pytest.raises(CertificateError, match=message):
        check(change(shipped))


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
