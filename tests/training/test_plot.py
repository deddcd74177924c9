"""Test the curves of runs: values, cuts, intervals, tables of ratings and names."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bao_training.plot import Group, draw_curves, read_groups
from tests.conftest import Says


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make runs of two settings in the working folder."""
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("a/s0", "a/s1", "b/s0", "b/s1")):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        rows = [f"{i},{i * 1e6},{60 * i},{0.1 * (i + number):.2f}" for i in range(1, 4)]
        (folder / "metrics.csv").write_text(
            "\n".join(["update,steps,seconds,score_against_greedy", *rows, ""])
        )
    return tmp_path


def test_groups_and_names(runs: Path) -> None:
    """Runs with the same name are told apart by their folders; what exists is no pattern."""
    (runs / "a" / "s[01]").mkdir()
    assert [group.name for group in read_groups(["a/s0", "b/s0"])] == ["a/s0", "b/s0"]
    assert [group.name for group in read_groups(["a/s0", "a/s1"])] == ["s0", "s1"]
    assert read_groups(["x=a/s[01]"]) == [Group("x", [Path("a/s[01]")])]
    [large] = read_groups(["large=b/*"])
    assert large.name == "large" and [run.name for run in large.runs] == ["s0", "s1"]


@pytest.mark.parametrize(
    ("name", "begins"), [("c.png", b"\x89PNG"), ("c.pdf", b"%PDF"), ("c.svg", b"<?xml")]
)
def test_the_file_is_what_its_name_says(runs: Path, name: str, begins: bytes, says: Says) -> None:
    table = says(f"curve one=a/* two=b/* --x seconds --out {name}")
    assert (runs / name).read_bytes().startswith(begins)
    # The means of 30 and 40 %, and of 50 and 60 %, with their range.
    assert "35.0 (30.0 to 40.0)" in table and "55.0 (50.0 to 60.0)" in table and name in table


def test_several_runs_are_not_drawn_into_one_of_them(runs: Path, says: Says) -> None:
    says("curve a/s0 a/s1")
    assert (runs / "curves.png").exists() and not (runs / "a/s0/curves.png").exists()
    says("curve a/s1")
    assert (runs / "a/s1/curves.png").exists()


def drawn(file: Path, text: str, metric: str = "elo") -> tuple[Any, str]:
    """Draw a file; matplotlib's types leave open what a picture holds."""
    file.write_text(text)
    return draw_curves([Group("r", [file])], [metric])


RUNS = st.lists(
    st.lists(st.integers(0, 30), max_size=6, unique=True).map(sorted), min_size=1, max_size=4
)


@settings(max_examples=40, deadline=None)
@given(RUNS.filter(any), st.integers(0, 2**32))
def test_a_mean_stays_within_all_of_its_runs(places: list[list[int]], seed: int) -> None:
    """It is drawn where all runs with values have rows, and each run that cuts it is named."""
    rng = np.random.default_rng(seed)
    values = [np.round(rng.normal(size=len(steps)), 6) for steps in places]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"run{i}.csv" for i in range(len(places))]
        for file, steps, m in zip(files, places, values, strict=True):
            rows = [f"{x},{y}" for x, y in zip(steps, m.tolist(), strict=True)]
            file.write_text("\n".join(["steps,m", *rows, ""]))
        picture, text = draw_curves([Group("g", files)], ["m"])
    figure: Any = picture
    runs = [(np.array(x), y) for x, y in zip(places, values, strict=True) if x]
    start, end = max(x[0] for x, _ in runs), min(x[-1] for x, _ in runs)
    for file, steps in zip(files, places, strict=True):
        assert (f"no values: {file}" in text) == (not steps)
        cuts = bool(steps) and steps[-1] == end and any(x[-1] > end for x, _ in runs)
        assert (f"ends at {end} steps: {file}" in text) == cuts
    if start > end:
        assert "no steps that all runs" in text
        return
    expected = {x for run, _ in runs for x in run.tolist() if start <= x <= end}
    line = next(line for line in figure.axes[0].lines if line.get_label() == "g")
    assert (line.get_xdata() * 1e6).round().tolist() == sorted(expected)
    last = [np.interp(end, *run) for run in runs]
    assert line.get_ydata()[-1] == pytest.approx(np.mean(last))


def test_interval_baseline_and_whole_dots(tmp_path: Path) -> None:
    """The band of one run is the interval in its columns; a score of 0 or 100 % has a whole dot."""
    metric = "score_against_greedy"
    rows = f"steps,{metric},{metric}_low,{metric}_high\n1e6,0,0,0.02\n2e6,1,0.98,1\n"
    figure, text = drawn(tmp_path / "r.csv", rows, metric)
    [axes] = figure.axes
    [band] = axes.collections
    edges = {(x, y) for x, y in band.get_paths()[0].vertices}
    assert {(2.0, 98.0), (2.0, 100.0), (1.0, 0.0), (1.0, 2.0)} <= edges
    assert axes.get_ylim()[0] < -2 and axes.get_ylim()[1] > 102
    assert "r; band: 95 % interval" in figure.get_suptitle()
    assert "100.0 (98.0 to 100.0)" in text
    figure, text = drawn(tmp_path / "r.csv", rows[: rows.index("2e6")], metric)
    assert len(figure.axes[0].containers) == 1 and figure.get_suptitle() == "r"  # error bars


def test_a_table_of_ratings_is_no_log(tmp_path: Path) -> None:
    """Each run in it is a line in the order of its steps, and a bound is an arrow."""
    figure, text = drawn(
        tmp_path / "elo.csv",
        "player,steps,elo,elo_low,elo_high,games\n"
        "a/step-1000,1000,1100,1050,1150,9\na/step-200,200,700,650,750,9\n"
        "a/step-2000,2000,,2400,,9\nb/step-500,500,,,300,9\nb/step-600,600,500,450,550,9\n",
    )
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert lines["a"].get_ydata().tolist() == [700, 1100] and lines["b"].get_ydata() == [500]
    assert "only a bound at 2,000 steps, above 2400" in text
    assert "only a bound at 500 steps, below 300" in text
    arrows = [(line.get_marker(), line.get_ydata().tolist()) for line in figure.axes[0].lines]
    assert ("^", [2400.0]) in arrows and ("v", [300.0]) in arrows
    assert "1100 (1050 to 1150)" in text


@pytest.mark.parametrize("name", ["_x", "$a$", "é|\\"])
def test_any_name_is_drawn_as_it_is(runs: Path, name: str) -> None:
    figure: Any = draw_curves([Group(name, [Path("a/s0")]), Group("b", [Path("b/s0")])])[0]
    labels = [label.get_text() for label in figure.axes[0].get_legend().get_texts()]
    assert labels[0].replace("\\$", "$").strip() == name
