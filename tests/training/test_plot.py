"""Test the curves of runs: values, cuts, restarts, intervals, names and other programs' files."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bao_agents.support.figures import save_figure
from bao_training.plot import Group, draw_curves, read_groups
from bao_training.run_table import read_run
from tests.conftest import Capsys, Says


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


def drawn(groups: list[Group], metrics: list[str] | None = None) -> tuple[Any, str]:
    """Draw curves; matplotlib's types leave open what a picture holds."""
    return draw_curves(groups, metrics or ())


def write_run(file: Path, rows: Sequence[tuple[float, float | None]], column: str = "m") -> Path:
    lines = [f"steps,{column}", *(f"{x!r},{'' if y is None else y}" for x, y in rows), ""]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20)), min_size=1, max_size=40))
def test_a_restarted_run_is_what_it_went_on_with(events: list[tuple[bool, int]]) -> None:
    """A model of a run: it appends rows, and goes back to a checkpoint that it had passed.

    Some rows have no value, and also replace those that they overtake.
    """
    history: list[tuple[float, float | None]] = []
    written: list[tuple[float, float | None]] = []
    for number, (restart, place) in enumerate(events):
        if restart and len(history) > 1:  # with equal steps, rows may also complete each other
            history = history[: place % (len(history) - 1)]
        row = (10.0 * (len(history) + 1), float(number) if number % 3 else None)
        history, written = [*history, row], [*written, row]
    with tempfile.TemporaryDirectory() as folder:
        table = read_run(write_run(Path(folder) / "r.csv", written))
    assert table.overtaken + len(table.rows) == len(written)
    filled = [row for row in history if row[1] is not None]
    assert [tuple(row) for row in table.values("steps", "m")] == filled


RUNS = st.lists(
    st.lists(st.integers(0, 30), max_size=6, unique=True).map(sorted), min_size=1, max_size=4
)


@settings(max_examples=40, deadline=None)
@given(RUNS, st.integers(0, 2**32))
def test_a_mean_stays_within_all_of_its_runs(places: list[list[int]], seed: int) -> None:
    """It is drawn where all runs with values have rows, and each run that cuts it is named."""
    rng = np.random.default_rng(seed)
    values = [np.round(rng.normal(size=len(steps)), 6) for steps in places]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"run{i}.csv" for i in range(len(places))]
        for file, steps, m in zip(files, places, values, strict=True):
            write_run(file, list(zip(map(float, steps), m.tolist(), strict=True)))
        if not any(places):
            with pytest.raises(ValueError, match="no metric to draw against steps"):
                draw_curves([Group("g", files)])
            return
        figure, text = drawn([Group("g", files)])
    runs = [(np.array(x), y) for x, y in zip(places, values, strict=True) if x]
    start, end = max(x[0] for x, _ in runs), min(x[-1] for x, _ in runs)
    for file, steps in zip(files, places, strict=True):
        assert (f"no values: {file}" in text) == (not steps)
        cuts = bool(steps) and steps[-1] == end and any(x[-1] > end for x, _ in runs)
        assert (f"ends at {end} steps: {file}" in text) == cuts
    lines = figure.axes[0].lines
    if start > end:
        assert not lines and "no steps that all runs" in text
        return
    expected = {x for run, _ in runs for x in run.tolist() if start <= x <= end}
    assert (lines[0].get_xdata() * 1e6).round().tolist() == sorted(expected)
    last = [np.interp(end, *run) for run in runs]
    assert lines[0].get_ydata()[-1] == pytest.approx(np.mean(last))
    assert f"| {len(runs)} " in text.replace("|    ", "| ")


def test_a_cut_is_said_in_words(runs: Path, says: Says) -> None:
    (runs / "a/s2").mkdir()
    (runs / "a/s2/metrics.csv").write_text(
        "steps,score_against_greedy\n1000000,0.9\n20480000,0.9\n"
    )
    text = says("curve x=a/* --out c.svg")
    assert "ends at 3,000,000 steps: a/s0" in text and "ends at 3,000,000 steps: a/s1" in text
    assert f"| 3,000,000 | {(30 + 40 + 90) / 3:.3g} (30 to 90) |" in text


def test_interval_baseline_and_whole_dots(tmp_path: Path) -> None:
    """The band of one run is the interval in its columns; a score of 0 or 100 % has a whole dot."""
    column = "score_against_greedy"
    (tmp_path / "r.csv").write_text(
        f"steps,{column},{column}_low,{column}_high\n1e6,0,0,0.02\n2e6,1,0.98,1\n"
    )
    figure, text = drawn([Group("r", [tmp_path / "r.csv"])])
    [axes] = figure.axes
    [band] = axes.collections
    edges = band.get_paths()[0].vertices
    assert {(2.0, 98.0), (2.0, 100.0), (1.0, 0.0), (1.0, 2.0)} <= {(x, y) for x, y in edges}
    assert axes.get_ylim()[0] < -2 and axes.get_ylim()[1] > 102
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["r", "equal play, 50 %"]
    assert "r; band: 95 % interval" in figure.get_suptitle()
    assert "100 (98 to 100)" in text and "_low" not in text


@pytest.mark.parametrize(
    ("separator", "point", "encoding", "end"),
    [(",", ".", "utf-8-sig", "\r\n"), (";", ",", "utf-8-sig", "\r\n"), ("\t", ".", "utf-8", "\n")],
)
def test_tables_of_other_programs(
    tmp_path: Path, separator: str, point: str, encoding: str, end: str
) -> None:
    """A byte order mark, semicolons and decimal commas change nothing; what is NaN is left out."""
    rows = [["steps", "elo", "name"], ["1e3", "1.5", "é"], ["2e3", "nan", ""], ["3e3", "2.5", "x"]]
    cells = [[cell.replace(".", point) for cell in row] for row in rows]
    file = tmp_path / "r.csv"
    file.write_bytes(end.join(separator.join(row) for row in cells).encode(encoding))
    figure, text = drawn([Group("r", [file])])
    assert figure.axes[0].lines[0].get_ydata().tolist() == [1.5, 2.5]
    assert f"values that are not finite are left out: {file}" in text


def test_foreign_columns_are_drawn_or_named(runs: Path, says: Says) -> None:
    assert "not drawn (--metrics draws them): mine" in says("curve a/s0")
    head = ["steps", *(f"m{i}" for i in range(10))]
    (runs / "f.csv").write_text(",".join(head) + "\n" + ",".join(["1"] * 11) + "\n")
    text = says("curve f.csv")
    assert "m7:" in text and "not drawn (--metrics draws them): m8, m9" in text
    assert (runs / "curves.png").exists()
    assert "m9" in says("curve f.csv a/s0 --metrics m9 score_against_greedy --out both.svg")


NAMES = st.text(st.sampled_from("_$\\{}^%&#~[]*?é|x "), min_size=1, max_size=100)


@settings(max_examples=6, deadline=None)
@given(NAMES, NAMES.filter(lambda name: name.strip() and name != "steps"))
def test_any_name_is_drawn_as_it_is(name: str, column: str) -> None:
    """It is in the legend, and no line of the table has more than 80 columns."""
    with tempfile.TemporaryDirectory() as folder:
        file = write_run(Path(folder) / "r.csv", [(1.0, 2.0), (123456789.0, 1.23456789)], column)
        other = write_run(Path(folder) / "o.csv", [(1.0, 2.0)], column)
        figure, text = drawn([Group(name, [file, other]), Group("b", [other])], [column])
        save_figure(figure, Path(folder) / "c.svg")
    labels = [label.get_text() for label in figure.axes[0].get_legend().get_texts()]
    assert [label.replace("\\$", "$").strip() for label in labels] == [name.strip(), "b"]
    assert max(len(line.replace("\\|", "|")) for line in text.splitlines()[2:6]) <= 80


def test_a_name_that_exists_is_no_pattern(runs: Path) -> None:
    for name in ("s[01]", "s*"):
        (runs / "a" / name).mkdir()
        assert [group.runs for group in read_groups([f"a/{name}"])] == [[Path("a", name)]]
        assert read_groups([f"x=a/{name}"])[0].runs == [Path("a", name)]


def test_a_picture_that_cannot_be_written_loses_no_table(runs: Path, capsys: Capsys) -> None:
    from bao_agents.cli.main import main

    (runs / "a/s0/curves.png").mkdir()
    assert main(["curve", "a/s0"]) == 2
    said = capsys.readouterr()
    assert "| s0" in said.out and "curves.png is not a regular file" in said.err
