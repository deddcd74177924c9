"""What is known of early positions: the census of kujifunza, and how early games are solvable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from agents.search.solver.proof_number import LOSS, UNKNOWN, WIN
from agents.search.solver.solver import Solver
from bao_env.engine.position import PLY, unpack
from bao_env.engine.ruleset import RULESETS
from bao_env.notation.positions import format_position
from tests import reference
from tests.reference import WINS
from training.lab import census, solvable
from training.lab.solvable import Cell, Search, positions_of_games, solved

SOLVED = Path(__file__).parent.parent / "agents" / "search" / "solver" / "SOLVED.md"
KUJIFUNZA = RULESETS["kujifunza"]


# --- the census ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def levels(thorough: bool) -> list[census.Level]:
    """The census."""
    return list(census.census(4 if thorough else 2))


def by_text(level: census.Level) -> dict[str, int]:
    """The values of a level by position text."""
    texts = (format_position(unpack(words)) for words in level.positions)
    return dict(zip(texts, level.values.tolist(), strict=True))


def test_the_census_agrees_with_the_literal_rules(levels: list[census.Level]) -> None:
    """The positions are those that can follow, and won if and only if one that follows is lost."""
    by_ply = [by_text(level) for level in levels]
    assert list(by_ply[0].items()) == [(reference.opening(KUJIFUNZA), WIN)]
    for level, following in pairwise(by_ply):
        reached = set()
        for text, value in level.items():
            results = set(reference.legal_moves(text, KUJIFUNZA).values())
            going = results - set(WINS.values())
            reached |= going
            wins = WINS[text.split()[3]] in results or LOSS in {following[after] for after in going}
            assert value == (WIN if wins else LOSS)
        assert reached == set(following)


def test_a_mirror_image_has_the_same_value(levels: list[census.Level]) -> None:
    level = levels[2]
    texts = [format_position(unpack(words)) for words in level.positions]
    mirrored = [format_position(unpack(words)) for words in census.mirrored(level.positions)]
    for text, other in zip(texts, mirrored, strict=True):
        rows, _, rest = text.partition(" ")
        swapped = "/".join(",".join(row.split(",")[::-1]) for row in rows.split("/"))
        assert other == f"{swapped} {rest}"
    values = by_text(level)
    assert [values[text] for text in texts] == [values[text] for text in mirrored]
    some = level.positions[::9]  # by a solver that knows neither mirrors nor other positions
    found, _ = Solver(KUJIFUNZA).values(some, level.masks[::9])
    np.testing.assert_array_equal(found, level.values[::9])


def rows_of_table(head: str) -> list[list[str]]:
    """The cells of the table in SOLVED.md whose head begins so."""
    lines = SOLVED.read_text(encoding="utf-8").split(f"\n| {head} ", 1)[1].splitlines()
    rows = lines[2 : lines.index("")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_the_table_of_counts_is_current(levels: list[census.Level]) -> None:
    rows = rows_of_table("plies")
    for ply, level in enumerate(levels):
        numbers = (ply, len(level.values), *census.counts(ply, level))
        expected = [f"{number:,}" for number in numbers]
        assert rows[ply][:5] == expected


def test_a_stopped_census_shows_what_it_found(
    levels: list[census.Level],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stopping(plies: int, threads: int) -> Iterator[census.Level]:
        yield from levels[:2]
        raise KeyboardInterrupt

    monkeypatch.setattr(census, "first_moves", lambda solver: [("A5L", LOSS, 30)])
    monkeypatch.setattr(census, "census", stopping)
    assert census.main([]) == 130
    printed = capsys.readouterr()
    assert "| A5L" in printed.out and "stopped; what was found" in printed.err
    last = [cell.strip() for cell in printed.out.splitlines()[-1].split("|")]
    assert last[1:3] == ["1", str(len(levels[1].values))]


@pytest.mark.slow
def test_the_table_of_first_moves_is_current() -> None:
    found = census.first_moves(Solver(KUJIFUNZA))
    expected = [
        [move, "wins" if value == WIN else "loses", str(plies)] for move, value, plies in found
    ]
    assert rows_of_table("first move") == expected
    assert min(plies for _, value, plies in found if value == WIN) == 21


# --- how early games are solvable ---------------------------------------------------------------


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large ones take their time to make."""
    monkeypatch.setattr(solvable, "TABLE_BITS", 12)


def test_positions_of_games(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solvable, "_ROUNDS", 3)
    few = positions_of_games("zanzibar", "random", (8, 20, 60), 5, seed=3)
    more = positions_of_games("zanzibar", "random", (8, 20, 60), 30, seed=3)
    other = positions_of_games("zanzibar", "random", (8, 20, 60), 5, seed=4)
    for ply in few:
        assert len(np.unique(more[ply], axis=0)) == 30
        assert (more[ply][:, PLY] == ply).all()
        np.testing.assert_array_equal(few[ply], more[ply][:5])
        assert (few[ply] != other[ply]).any()
    rare = positions_of_games("kujifunza", "greedy", (8, 200), 5, seed=3)
    assert len(rare[200]) < 5 == len(rare[8])


def test_only_fair_samples_count() -> None:
    """A limit counts if it was tried on all of the samples, also on those that it may not solve."""
    cell, second = Cell(1, "zanzibar", "random", 24), solvable.NODES_A_SECOND
    results = {
        (cell, 0): Search(second, WIN, 7, 0.0),
        (cell, 1): Search(60 * second, LOSS, 30 * second, 40.0),
        (cell, 2): Search(60 * second, UNKNOWN, 60 * second, 80.0),
        (cell, 3): Search(second, UNKNOWN, second, 1.0),
        (cell, 4): Search(second, WIN, 7, 0.0),
    }
    assert solved(results, cell, 1, {1: 5}) == (2, 5)
    assert solved(results, cell, 1, {1: 9}) == (2, 5)
    assert solved(results, cell, 60, {1: 5, 60: 3}) == (2, 3)
    assert solved(results, cell, 60, {1: 5, 60: 4}) == (0, 0)
    assert solved(results, cell, 60, {1: 1, 60: 1}) == (0, 0)  # the short limit solves all
    assert solved({}, cell, 1, {1: 5}) == (0, 0)


KUJIFUNZA_ALONE = ["--rulesets", "kujifunza", "--players", "random", "greedy"]
COMMAND = [*KUJIFUNZA_ALONE, "--plies", "8", "20", "--samples", "3", "--long", "2"]


def test_a_stopped_measurement_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    values, searches = Solver.values, 0

    def stopping(self, positions, masks):
        nonlocal searches
        searches += 1
        if searches == 5:
            raise KeyboardInterrupt
        return values(self, positions, masks)

    monkeypatch.setattr(Solver, "values", stopping)
    command = [*COMMAND, "--out", str(tmp_path)]
    assert solvable.main(command) == 130
    assert "the same command continues" in capsys.readouterr().err
    assert len(solvable.read(tmp_path / "searches.csv")) == 4
    assert solvable.main(command) == 0
    results = solvable.read(tmp_path / "searches.csv")
    assert len(results) == 12 and searches == 5 + 8
    assert all(search.value for search in results.values())
    text = (tmp_path / "tables.md").read_text()
    assert re.search(r"^\| 20 +\| 3 of 3 \(44 to 100 %\) \|$", text, re.M)
    assert text in capsys.readouterr().out
    assert (tmp_path / "solvable.png").stat().st_size > 5000
    assert solvable.main(command) == 0
    assert searches == 5 + 8  # nothing anew


def test_where_nothing_is_solved_it_goes_no_earlier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solvable, "NODES_A_SECOND", 10)
    command = ["--rulesets", "zanzibar", "--players", "random", "--out", str(tmp_path)]
    command += ["--plies", "8", "12", "16", "--samples", "2", "--long", "1"]
    assert solvable.main(command) == 0
    results = solvable.read(tmp_path / "searches.csv")
    assert {cell.ply for cell, _ in results} == {16}
    assert {search.limit for search in results.values()} == {10}


@pytest.mark.parametrize(
    "content", ["a,b\n1,2\n", "seed,ruleset,player,ply,sample\n1,kujifunza,random,8,0\n"]
)
def test_a_file_of_something_else_is_refused(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "searches.csv").write_text(content)
    assert solvable.main([*COMMAND, "--out", str(tmp_path)]) == 2
    assert "delete the file or choose another folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option", ["--samples 0", "--long 9 --samples 8", "--plies 4", "--seed -1"]
)
def test_impossible_options_are_refused(option: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        solvable.main([*option.split(), "--out", str(tmp_path)])
