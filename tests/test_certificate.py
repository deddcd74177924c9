"""The proof that kujifunza is won holds by the literal rules; what is no proof is refused."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from agents.search.solver.solver import Solver
from bao_env.engine.ruleset import RULESETS
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
from tests.positions import pack_texts, random_games
from tests.reference import OPPONENT, SOUTH, WINS, legal_moves, opening

ROOT = Path(__file__).parent.parent
SHIPPED = ROOT / "agents" / "search" / "solver" / "proofs" / "kujifunza.tsv"
OPENING = opening(KUJIFUNZA)
HEAD = "position\tmove\tplies\n"


@pytest.fixture(scope="module", autouse=True)
def remembered() -> Iterator[None]:
    """The literal rules are slow, and the same positions come up again and again."""

    @cache
    def moves(text: str) -> dict[int, str]:
        return legal_moves(text, KUJIFUNZA)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.check_certificate.legal_moves", lambda text, _: moves(text))
        yield


@pytest.fixture(scope="module")
def shipped() -> dict[str, Entry]:
    """The entries of the shipped certificate; a test that changes them makes a copy."""
    return read(SHIPPED)


def test_the_shipped_certificate_is_a_proof(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(read(SHIPPED)) == Proof(SOUTH, 21, 559, 562)
    assert main([str(SHIPPED)]) == 0
    assert capsys.readouterr().out.startswith("proved: whoever begins kujifunza wins within 21 ")


def test_the_check_plays_by_the_rules_of_the_rule_set() -> None:
    ruleset = RULESETS["kujifunza"]
    for switch, value in vars(KUJIFUNZA).items():
        assert getattr(ruleset, switch) == value, switch
    assert len(legal_moves(OPENING, KUJIFUNZA)) == 16


def test_the_check_knows_neither_engine_nor_players() -> None:
    code = f"""
import sys
from tests.check_certificate import main
assert main([{str(SHIPPED)!r}]) == 0
imported = {{name.partition(".")[0] for name in sys.modules}}
print(imported & {{"bao_env", "agents", "training", "numba", "numpy"}})
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "set()", done.stderr


# --- what is refused ----------------------------------------------------------------------------


def refused(entries: dict[str, Entry], message: str) -> None:
    """Assert that the check refuses these entries, and why."""
    with pytest.raises(CertificateError, match=message):
        check(entries)


def test_a_missing_position(shipped: dict[str, Entry]) -> None:
    for missing in list(shipped)[1::60]:
        refused({text: shipped[text] for text in shipped if text != missing}, "is not listed, but")


def test_a_wrong_opening(shipped: dict[str, Entry]) -> None:
    message = "the opening, .* is not listed"
    refused({text: shipped[text] for text in shipped if text != OPENING}, message)
    refused({}, message)
    by_north = {text.replace(" S ", " N "): entry for text, entry in shipped.items()}
    refused(by_north, message)


def test_an_illegal_move(shipped: dict[str, Entry]) -> None:
    assert "A1L" not in {move_name(action) for action in legal_moves(OPENING, KUJIFUNZA)}
    for move in ("A1L", "A3R>", "a3R", "A9L", "", "14"):
        refused({**shipped, OPENING: Entry(move, 21)}, "is illegal; legal: ")


def test_another_first_move(shipped: dict[str, Entry]) -> None:
    others = {move_name(action) for action in legal_moves(OPENING, KUJIFUNZA)}
    for move in others - {shipped[OPENING].move}:
        refused({**shipped, OPENING: Entry(move, 21)}, "is not listed, but")


def test_a_move_that_lets_the_other_player_win(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a game that begins shortly before its end."""
    games = random_games(random.Random(1), RULESETS["kujifunza"])
    for text in games:
        for action, after in legal_moves(text, KUJIFUNZA).items():
            replies = {} if after in WINS.values() else legal_moves(after, KUJIFUNZA)
            if WINS[OPPONENT[text.split()[3]]] in replies.values():
                monkeypatch.setattr("tests.check_certificate.opening", lambda *_, text=text: text)
                refused({text: Entry(move_name(action), 1)}, "the other player can win")
                return


@pytest.mark.parametrize("change", [-2, -1, 1, 2])
def test_a_wrong_number_of_plies(shipped: dict[str, Entry], change: int) -> None:
    for text in list(shipped)[::70]:
        move, plies = shipped[text]
        refused({**shipped, text: Entry(move, plies + change)}, "but what follows takes")


def test_surplus_entries(shipped: dict[str, Entry]) -> None:
    north = OPENING.replace(" S ", " N ")
    refused({**shipped, north: shipped[OPENING]}, "1 positions are listed that do not arise")
    unplayed = next(iter(legal_moves(north, KUJIFUNZA).values()))
    refused({**shipped, unplayed: Entry("A3R", 19)}, "that do not arise, for example")


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "line 1: expected the columns"),
        ("position\tmove\n", "line 1: expected the columns"),
        (f"position,move,plies\n{OPENING},A3R,21\n", "line 1: expected the columns"),
        (f"{HEAD}{OPENING}\tA3R\n", "line 2: 2 columns, expected 3"),
        (f"{HEAD}{OPENING}\tA3R\t21\t\n", "line 2: 4 columns, expected 3"),
        (f"{HEAD}\n{OPENING}\tA3R\t21\n", "line 2: 0 columns, expected 3"),
        (f"{HEAD}nonsense\tA3R\t21\n", "line 2: 'nonsense' is no position text"),
        (f"{HEAD}{OPENING} \tA3R\t21\n", "line 2: .* is no position text"),
        (f"{HEAD}{OPENING.replace('2,', '02,', 1)}\tA3R\t21\n", "is no position text"),
        (f"{HEAD}{OPENING.replace(' S ', ' X ')}\tA3R\t21\n", "is no position text"),
        (f"{HEAD}{OPENING}\tA3R\t-1\n", "line 2: '-1' plies, expected 1 or more"),
        (f"{HEAD}{OPENING}\tA3R\t0\n", "line 2: '0' plies, expected 1 or more"),
        (f"{HEAD}{OPENING}\tA3R\t21.0\n", "line 2: '21.0' plies"),
        (HEAD + 2 * f"{OPENING}\tA3R\t21\n", "line 3: .* is listed twice"),
        ("position\tmove\tplies\n\u00b2\n", "is no table of ASCII text"),
    ],
)
def test_malformed_text(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "proof.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CertificateError, match=message):
        read(path)
    assert main([str(path)]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.tsv")]) == 1
    assert "error: " in capsys.readouterr().err


# --- how it is made -----------------------------------------------------------------------------


def test_listed_plies_are_the_fewest(shipped: dict[str, Entry]) -> None:
    texts = list(shipped)[20::60]
    positions, _ = pack_texts(texts, RULESETS["kujifunza"])
    solver = Solver("kujifunza")
    for text, words in zip(texts, positions, strict=True):
        assert solver.solve(words, shortest=True).plies == shipped[text].plies


def test_no_listed_position_of_a_smallest_strategy_is_spare(shipped: dict[str, Entry]) -> None:
    """From a position some plies before the end, against a search of all strategies."""
    pytest.importorskip("scipy")
    from training.lab.certificate import shortest_wins, smallest_strategy

    solver = Solver("kujifunza")
    texts = [text for text, entry in shipped.items() if entry.plies == 5]
    positions, _ = pack_texts(texts, RULESETS["kujifunza"])
    proofs = [(words, shortest_wins(solver, words)) for words in positions]
    words, wins = next((words, wins) for words, wins in proofs if 15 < len(wins) < 30)
    assert wins[words.tobytes()].plies == 5

    def strategies(todo: frozenset[bytes], listed: frozenset[bytes]) -> int:
        """Positions of the smallest strategy that lists these and has ``todo`` still to choose."""
        if not todo:
            return len(listed)
        position = max(todo, key=lambda position: (wins[position].plies, position))
        return min(
            strategies(todo - {position} | (frozenset(replies) - listed), listed | set(replies))
            for replies in wins[position].moves.values()
        )

    start = frozenset([words.tobytes()])
    assert len(smallest_strategy(wins, words)) == strategies(start, start)


@pytest.mark.slow
def test_it_can_be_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scipy")
    from training.lab import certificate

    path = tmp_path / "proof.tsv"
    assert certificate.main(["--out", str(path)]) == 0
    assert capsys.readouterr().out == f"559 positions in {path}\n"
    assert check(read(path)) == check(read(SHIPPED))
    assert path.read_text() == SHIPPED.read_text()


def test_the_solver_refuses_a_bound_out_of_range() -> None:
    solver = Solver("kujifunza")
    for plies, value in ((0, 1), (401, 1), (5, 0)):
        with pytest.raises(ValueError, match="expected 1 to 400 plies, 1 or -1"):
            solver.within(np.zeros(6, np.uint64), plies, value)
