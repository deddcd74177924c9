"""The census of kujifunza's early positions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from bao_agents.search.solver.proof_number import LOSS, WIN
from bao_agents.search.solver.solver import Solver
from bao_training.cli import main as bao
from bao_training.lab import census

from bao_env import RULESETS
from bao_env.engine.position import unpack
from bao_env.notation.positions import format_position
from tests import reference
from tests.conftest import Capsys
from tests.reference import WINS

SOLVED = Path(__file__).parent.parent / "agents" / "SOLVED.md"
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
    capsys: Capsys,
) -> None:
    def stopping(plies: int, threads: int) -> Iterator[census.Level]:
        yield from levels[:2]
        raise KeyboardInterrupt

    monkeypatch.setattr(census, "first_moves", lambda solver: [("A5L", LOSS, 30)])
    monkeypatch.setattr(census, "census", stopping)
    assert bao(["lab", "census"]) == 130
    printed = capsys.readouterr()
    assert "| A5L" in printed.out and "stopped" in printed.err
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
