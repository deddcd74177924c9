"""Test the curves of runs: values, cuts, intervals, tables of ratings and names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bao_training.curves import student_t
from bao_training.plot import Curves
from bao_training.run_tables import Line, read_lines
from tests.conftest import Fails, Says


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


def drawn(lines: list[Line], metric: str) -> tuple[Any, str]:
    """Draw lines, and return the figure and the table."""
    curves = Curves(lines, [metric])
    return curves.draw(), curves.table()


def test_words_are_runs_or_groups(runs: Path) -> None:
    """The name of an existing folder or file is never a pattern, and may have an equals sign."""
    for name in ("a/s[01]", "a/lr=0.1"):
        (runs / name).mkdir()
        (runs / name / "metrics.csv").write_text("steps,m\n1,2\n")
    words = ["a/s0", "x=a/s[01]", "large=b/*", "a/lr=0.*"]
    lines = [(line.name, [*line.runs]) for line in read_lines(words)]
    assert lines == [
        ("a/s0", ["a/s0"]),
        ("x", ["a/s[01]"]),
        ("large", ["b/s0", "b/s1"]),
        ("a/lr=0.1", ["a/lr=0.1"]),
    ]


@pytest.mark.parametrize(
    ("name", "begins"), [("c.png", b"\x89PNG"), ("c.pdf", b"%PDF"), ("c.svg", b"<?xml")]
)
def test_the_file_is_what_its_name_says(runs: Path, name: str, begins: bytes, says: Says) -> None:
    output = says(f"curve one=a/* two=b/* --x seconds --out {name}")
    assert (runs / name).read_bytes().startswith(begins)
    # The means of 30 and 40%, and of 50 and 60%: 12.706 standard errors of 5, and of 5 * sqrt(2).
    rows = [line.split("|")[2:6] for line in output.splitlines() if line.startswith("| points")]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["one", "2", "180", "35.0 (-28.5 to 98.5)"],
        ["two", "2", "180", "55.0 (-8.5 to 118.5)"],
        ["two - one", "2, 2", "180", "20.0 (-10.4 to 50.4)"],  # 4.303 standard errors
    ]
    assert name in output


def test_several_runs_are_not_drawn_into_one_of_them(runs: Path, says: Says, fails: Fails) -> None:
    assert "in place" not in says("curve a/s0 a/s1")
    assert (runs / "curves.png").exists() and not (runs / "a/s0/curves.png").exists()
    assert "curves.png (in place of the earlier one)" in says("curve a/s0 a/s1")
    (runs / "curves.png").write_bytes(b"\x89PNG of another program")
    assert "curves.png exists, and bao curve has not drawn it" in fails("curve a/s0 a/s1")
    assert (runs / "curves.png").read_bytes() == b"\x89PNG of another program"
    says("curve a/s1")
    assert (runs / "a/s1/curves.png").exists()
    (runs / "a/s0/metrics.png").write_text("of another program")
    says("curve a/s0/metrics.csv")
    assert (runs / "a/s0/metrics-curves.png").exists()
    assert (runs / "a/s0/metrics.png").read_text() == "of another program"


@pytest.mark.parametrize(
    ("freedom", "expected"), [(1, 12.7062), (2, 4.3027), (4, 2.7764), (9.5, 2.2443), (1e5, 1.96)]
)
def test_t_is_that_of_tables(freedom: float, expected: float) -> None:
    """The value for 9.5 degrees of freedom lies between 2.2622 and 2.2281."""
    assert student_t(freedom) == pytest.approx(expected, abs=1e-3)


def test_intervals_over_seeds_cover_the_truth() -> None:
    """In simulations 95% of the intervals contain the true mean, and the true difference. The
    degrees of freedom of a difference are Welch's."""

    def intervals(groups: list[Any]) -> list[list[float]]:
        lines = [
            Line(name, {f"{name}{i}": [{"steps": "1", "m": str(v)}] for i, v in enumerate(values)})
            for name, values in zip("ab", groups, strict=True)
        ]
        return [
            [float(end) for end in re.findall(r"-?[\d.]+", line.split("|")[5])[1:]]
            for line in Curves(lines, ["m"]).table().splitlines()
            if line.startswith("| m ")
        ]

    rng, seeds, covered = np.random.default_rng(1), (3, 5), np.zeros(2)
    for _ in range(400):
        groups = [rng.normal(70 + 10 * i, 2 + 4 * i, count) for i, count in enumerate(seeds)]
        ends = intervals(groups)
        covered += [ends[1][0] <= 80 <= ends[1][1], ends[2][0] <= 10 <= ends[2][1]]
    assert (abs(covered / 400 - 0.95) < 0.03).all(), covered
    arm = 4.303 * 2**0.5  # with two degrees of freedom
    assert intervals([[0, 2], [1, 3]])[2] == pytest.approx([1 - arm, 1 + arm], abs=0.1)


def test_many_lines_do_not_hide_each_other(runs: Path) -> None:
    """Their intervals are bars at different places; panels of single points come last."""
    tables = [
        {
            "steps": str(10 * step),
            "elo": "9",
            "elo_low": "8",
            "elo_high": "10",
            "a": "1" * (step == 3),
        }
        for step in range(1, 19)
    ]
    lines = [Line(name, {name: tables}) for name in "abcd"]
    curves = Curves(lines, ["a", "elo"])
    figure: Any = curves.draw()
    elo, single = figure.axes
    assert (elo.get_title(), single.get_title()) == ("Elo", "a")
    assert "bound" not in curves.table()  # most rows have no a
    bars = [{*line.lines[0].get_xdata().tolist()} for line in elo.containers]
    assert len(bars) == 4 and all(len(positions) >= 4 for positions in bars)
    ends = [
        segment[:, 1].tolist() for line in elo.containers for segment in line[2][0].get_segments()
    ]
    assert len(ends) >= 16 and all(pair == [8, 10] for pair in ends)
    assert all(not bars[i] & bars[j] for i in range(4) for j in range(i)), bars


def test_the_headline_names_rules_and_ladder(runs: Path, says: Says) -> None:
    rows = "spec,steps,elo,ruleset,ladder\na/step-1,1,100,zanzibar,bao-ladder-3\n"
    Path("elo.csv").write_text(rows + "b/step-1,1,200,zanzibar,bao-ladder-3\nc,,300,zanzibar,\n")
    curves = Curves(read_lines(["elo.csv"]))
    figure: Any = curves.draw()
    assert figure.get_suptitle() == "zanzibar, Elo on bao-ladder-3"
    assert "elo.csv, c: 1 row without steps" in curves.table()
    (runs / "a/s0/run.json").write_text('{"config": {"ruleset": "kibao", "rules": {}}}')
    figure = Curves(read_lines(["a/s0"])).draw()
    assert figure.get_suptitle() == "a/s0, kibao"
    figure = Curves(read_lines(["x=b/*", "b/s1"])).draw()
    assert figure.get_suptitle() == "2 lines; 95% interval over the seeds"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (("0.0012345", "0.0004", "0.002"), "0.00123 (0.00040 to 0.00200)"),
        (("1.2345", "1", "2"), "1.23 (1.00 to 2.00)"),
        (("-12345", "-20000", "-1"), "-12345 (-20000 to -1)"),
        (("-0.00001", "", ""), "-0.0000100"),
    ],
)
def test_numbers_have_three_digits(values: tuple[str, ...], text: str) -> None:
    row = dict(zip(("m", "m_low", "m_high"), values, strict=True), steps="1")
    assert f"| {text} |" in Curves([Line("a", {"a": [row]})], ["m"]).table()


RUNS = st.lists(
    st.lists(st.integers(0, 30), max_size=6, unique=True).map(sorted), min_size=2, max_size=4
)


@settings(max_examples=40)
@given(RUNS.filter(any), st.integers(0, 2**32))
def test_a_mean_stays_within_all_of_its_runs(steps_of_runs: list[list[int]], seed: int) -> None:
    """The mean is drawn where all runs with values have rows, and each run that shortens it is
    named."""
    rng = np.random.default_rng(seed)
    values = [np.round(rng.normal(size=len(steps)), 6) for steps in steps_of_runs]
    tables = {
        f"run{i}": [{"steps": str(x), "m": str(y)} for x, y in zip(steps, m.tolist(), strict=True)]
        for i, (steps, m) in enumerate(zip(steps_of_runs, values, strict=True))
    }
    figure, text = drawn([Line("g", tables)], "m")
    with_values = [(np.array(x), y) for x, y in zip(steps_of_runs, values, strict=True) if x]
    for name, steps in zip(tables, steps_of_runs, strict=True):
        assert (f"{name}: no m" in text) == (not steps)
        if steps:
            cut = any(x[0] < steps[0] or x[-1] > steps[-1] for x, _ in with_values)
            assert (f"{name}: only from {steps[0]} to {steps[-1]} steps" in text) == cut
    start, end = max(x[0] for x, _ in with_values), min(x[-1] for x, _ in with_values)
    assert ("have no steps in common" in text) == (start > end)
    line = figure.axes[0].lines[1]
    drawn_points = np.isfinite(line.get_ydata())
    expected = {x for run, _ in with_values for x in run.tolist() if start <= x <= end}
    assert line.get_xdata()[drawn_points].tolist() == sorted(expected)
    if expected:
        mean = np.mean([np.interp(end, *run) for run in with_values])
        assert line.get_ydata()[drawn_points][-1] == pytest.approx(mean)
        bottom, top = figure.axes[0].get_ylim()
        assert all(bottom <= value <= top for value in line.get_ydata()[drawn_points])


def test_interval_baseline_and_whole_dots(tmp_path: Path) -> None:
    """The band of one run is the interval in its columns; a score of 0 or 100% has a whole dot."""
    metric, file = "score_against_greedy", tmp_path / "r.csv"
    rows = f"steps,{metric},{metric}_low,{metric}_high\n1e6,0,0,0.02\n2e6,1,0.98,1\n"
    file.write_text(rows)
    figure, text = drawn(read_lines([f"r={file}"]), metric)
    [axes] = figure.axes
    [band] = axes.collections
    edges = {(x, y) for x, y in band.get_paths()[0].vertices}
    assert {(2e6, 98.0), (2e6, 100.0), (1e6, 0.0), (1e6, 2.0)} <= edges
    assert axes.get_ylim()[0] < -2 and axes.get_ylim()[1] > 102 and axes.get_xlim()[0] == 0
    assert axes.get_xlabel() == "steps"
    assert [50, 50] in [np.array(line.get_ydata()).tolist() for line in axes.lines]
    assert figure.get_suptitle() == "r; 95% interval of the games"
    assert "100.0 (98.0 to 100.0)" in text
    file.write_text(rows[: rows.index("2e6")])
    figure, text = drawn(read_lines([f"r={file}"]), metric)
    assert len(figure.axes[0].containers) == 1  # error bars


def test_a_table_of_ratings_is_no_log(tmp_path: Path) -> None:
    """Each run in the table is a line in the order of the run's steps, and a bound is an arrow."""
    file = tmp_path / "elo.csv"
    file.write_text(
        "player,steps,elo,elo_low,elo_high,games\n"
        "a/step-1000,1000,1100,1050,1150,9\na/step-200,200,700,650,750,9\n"
        "guided:b/step-500.safetensors:5ms,500,,,300,9\n"
        "a/step-2000,2000,,2400,,9\nguided:b/step-600.safetensors:5ms,600,500,450,550,9\n"
    )
    figure, text = drawn(read_lines([str(file)]), "elo")
    lines = [
        (line.get_marker(), np.array(line.get_ydata()).tolist()) for line in figure.axes[0].lines
    ]
    assert ("o", [700, 1100]) in lines and ("s", [500]) in lines
    assert ("^", [2400.0]) in lines and ("v", [300.0]) in lines
    assert "at 2,000 steps only a bound is known, above 2400" in text
    assert "at 500 steps only a bound is known, below 300" in text
    assert "1100 (1050 to 1150)" in text and f"{file}, guided:b/:5ms" in text


@pytest.mark.parametrize(
    ("players", "runs"),
    [
        ("runs/s1 runs/s2", "runs/s1 runs/s2"),
        ("runs/step-1-x/step-9 runs/step-2-x/step-9", "runs/step-1-x runs/step-2-x"),
        ("runs/a/step-9.safetensors runs/a b", "runs/a b"),
        ("my:bot@w/9.pt my:bot@w/12.pt my:bot@v/9", "my:bot@w my:bot@v"),
        ("w/9.safetensors w/12.safetensors alphabeta:1 alphabeta:2", "w alphabeta:1 alphabeta:2"),
    ],
)
def test_only_checkpoints_of_one_run_are_one_line(players: str, runs: str, tmp_path: Path) -> None:
    """A number at the end of a folder's name is no checkpoint, and no rating is lost."""
    file = tmp_path / "elo.csv"
    file.write_text("\n".join(["spec,steps,elo", *(f"{name},7,1" for name in players.split())]))
    lines = read_lines([str(file)])
    assert [line.name for line in lines] == [f"{file}, {run}" for run in runs.split()]
    assert sum(len(*line.runs.values()) for line in lines) == len(players.split())


@pytest.mark.parametrize("name", ["_x", "$a$", "é|\\"])
def test_any_name_is_drawn_as_it_is(name: str) -> None:
    rows = [{"steps": "1", "elo": "2"}]
    figure: Any = Curves([Line(name, {"a": rows}), Line("b", {"b": rows})]).draw()
    labels = [label.get_text() for label in figure.axes[0].get_legend().get_texts()]
    assert labels[0].replace("\\$", "$").strip() == name
