"""Test the curves of runs: groups over seeds, names, formats, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from bao_training.plot import read_groups
from tests.conftest import Says


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make runs of two settings in the working folder."""
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("a/s0", "a/s1", "b/s0", "b/s1")):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        rows = [f"{i},{i * 1e6},{60 * i},{0.1 * (i + number):.2f},{i}" for i in range(1, 4)]
        head = "update,steps,seconds,score_against_greedy,mine"
        (folder / "metrics.csv").write_text("\n".join([head, *rows, ""]))
    return tmp_path


def test_groups_and_names(runs: Path) -> None:
    """Runs with the same name are told apart by their folders; a pattern is one line."""
    assert [group.name for group in read_groups(["a/s0", "b/s0"])] == ["a/s0", "b/s0"]
    assert [group.name for group in read_groups(["a/s0", "a/s1"])] == ["s0", "s1"]
    assert [group.name for group in read_groups(["a/s0"])] == ["s0"]
    large, small = read_groups(["large=a/*", "small=b/*"])
    assert large.name == "large" and [run.name for run in large.runs] == ["s0", "s1"]
    assert [run.parent.name for run in small.runs] == ["b", "b"]


@pytest.mark.parametrize(
    ("name", "begins"), [("c.png", b"\x89PNG"), ("c.pdf", b"%PDF"), ("c.svg", b"<?xml")]
)
def test_the_file_is_what_its_name_says(runs: Path, name: str, begins: bytes, says: Says) -> None:
    table = says(f"curve one=a/* two=b/* --x seconds --out {name}")
    assert (runs / name).read_bytes().startswith(begins)
    # The means of 30 and 40 %, and of 50 and 60 %, with their range.
    assert "35 (30 to 40)" in table and "55 (50 to 60)" in table and name in table


def test_any_column(runs: Path, says: Says) -> None:
    assert "| s0" in says("curve a/s0 --metrics mine") and (runs / "a/s0/curves.png").exists()


def test_runs_of_other_libraries(runs: Path, says: Says) -> None:
    """Any CSV file with a column steps is a run."""
    for seed, last in enumerate((400, 420)):
        rows = f"steps,elo,name\n1000,{100 + seed},\n2000,{last},\n"
        (runs / f"ppo-{seed}.csv").write_text(rows)
    table = says("curve PPO=ppo-*.csv a/s0 --metrics elo score_against_greedy --out both.svg")
    assert "410 (400 to 420)" in table and "| s0" in table
    assert "elo" in says("curve ppo-0.csv") and (runs / "curves.png").exists()
