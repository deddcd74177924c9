"""Tools that measured who wins early positions: the census of kujifunza, and solvable games."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agents.search.solver.solver import Solver
from training.lab import census, solvable

SOLVED = Path(__file__).parent.parent / "agents" / "search" / "solver" / "SOLVED.md"


def rows_of(text: str, head: str) -> list[list[str]]:
    """Return the cells of the Markdown table whose head begins with a word."""
    lines = re.split(rf"^\| *{head} ", text, flags=re.M)[1].splitlines()[2:] + [""]
    return [[c.strip() for c in line.strip("|").split("|")] for line in lines[: lines.index("")]]


@pytest.mark.slow
def test_census(capsys: pytest.CaptureFixture[str]) -> None:
    """Its tables are those of SOLVED.md."""
    assert census.main(["--plies", "3"]) == 0
    out, document = capsys.readouterr().out, SOLVED.read_text(encoding="utf-8")
    assert rows_of(out, "first move") == rows_of(document, "first move")
    counts = [row[:5] for row in rows_of(out, "plies")]
    assert counts == [row[:5] for row in rows_of(document, "plies")][:4]


def test_solvable_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    values, searches = Solver.values, 0

    def stop(self: Solver, *arguments: Any) -> Any:
        nonlocal searches
        searches += 1
        if searches == 5:
            raise KeyboardInterrupt
        return values(self, *arguments)

    monkeypatch.setattr(Solver, "values", stop)
    monkeypatch.setattr(solvable, "TABLE_BITS", 12)
    command = ["--rulesets", "kujifunza", "--players", "random", "greedy", "--out", str(tmp_path)]
    command += ["--plies", "8", "20", "--samples", "3", "--long", "2"]
    assert solvable.main(command) == 130
    assert len(solvable.read(tmp_path / "searches.csv")) == 4
    assert solvable.main(command) == 0
    assert len(solvable.read(tmp_path / "searches.csv")) == 12 and searches == 5 + 8
    text = (tmp_path / "tables.md").read_text()
    assert re.search(r"^\| 20 +\| 3 of 3 \(44 to 100 %\) \|$", text, re.M)
    assert text in capsys.readouterr().out
    assert (tmp_path / "solvable.png").stat().st_size > 5000
