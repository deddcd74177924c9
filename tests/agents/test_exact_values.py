"""Test files of exact values: they are right, their parts disjoint, and they can be continued."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import numpy as np
import pytest

from bao_agents.cli import solve
from bao_agents.exact import exact_values
from bao_agents.exact.exact_values import DatasetSettings, generate, solve_sample
from bao_agents.exact.sampling import Sample
from bao_agents.exact.solved_positions import (
    SolvedPositions,
    is_for_tests,
)
from bao_agents.search.solver.solver import Judgement, Solver
from bao_env import RULESETS, Board, move_to_action
from bao_env.engine.action import actions_of
from bao_env.engine.batch import Engine
from bao_env.engine.position import META, PLY, mirrored, movers, unpack
from bao_env.notation.positions import format_position
from tests.conftest import Fails, Says
from tests.positions import TAKASIA, WAITING, draw, pack_texts

SETTINGS = DatasetSettings(
    RULESETS["kujifunza"], 3, 20_000, (8, 999), ("alphabeta:1", "alphabeta:2")
)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SolvedPositions]:
    """Make a small file in four parts, two of random games and two of games between searches."""
    path = tmp_path_factory.mktemp("exact") / "values.npz"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_values, "CHUNK", 60)
        return path, generate(SETTINGS, 200, path)


def test_every_action_keeps_or_loses_what_the_file_says(
    dataset: tuple[Path, SolvedPositions],
) -> None:
    data = dataset[1]
    assert len(data.values) > 150
    assert set(data.source.tolist()) == {"random", "search"}
    assert set(data.values.tolist()) == {-1, 1}
    legal = np.empty(len(data.values), np.uint64)
    Engine("kujifunza").find_legal(data.positions, legal, np.zeros(len(legal), np.int8))
    np.testing.assert_array_equal(data.legal, legal)
    part = data[::8]
    judged = Solver("kujifunza").judge(part.positions, part.legal)
    np.testing.assert_array_equal(part.values > 0, judged.winning != 0)
    np.testing.assert_array_equal(part.winning, judged.winning)
    np.testing.assert_array_equal(part.legal & ~part.winning, judged.losing)


def test_parts_share_no_position_however_it_is_seen(dataset: tuple[Path, SolvedPositions]) -> None:
    data = dataset[1]
    tests, lessons = data.part(test=True), data.part(test=False)
    assert len(tests) + len(lessons) == len(data)
    assert 0.03 < is_for_tests(data.positions).mean() < 0.2
    sample, _ = draw("kujifunza", 2000, seed=1)
    for_tests = is_for_tests(sample)
    assert for_tests.sum() == 214  # as in all files so far: one in ten
    np.testing.assert_array_equal(is_for_tests(mirrored(sample)), for_tests)
    positions, _ = pack_texts([TAKASIA], RULESETS["zanzibar"])  # bars A2
    assert unpack(mirrored(positions)[0]).barred == 6
    waiting, _ = pack_texts([WAITING], RULESETS["dutch"])  # at A3
    mirror = unpack(mirrored(waiting)[0])
    assert (mirror.pending, mirror.pending_sown) == (5, 14)
    other_seat = sample.copy()
    other_seat[:, 4] ^= np.uint64(1 << 18)  # the other seat to move
    other_seat[:, 5] += np.uint64(1)
    assert (movers(other_seat) != movers(sample)).all()
    np.testing.assert_array_equal(is_for_tests(other_seat), for_tests)


def test_finished_later_and_on_more_threads_it_is_the_same_file(
    dataset: tuple[Path, SolvedPositions], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact_values, "CHUNK", 60)
    path = tmp_path / "values.npz"
    with monkeypatch.context() as patch:
        patch.setattr(
            exact_values, "without_seats", None
        )  # makes it stop before the file is written
        with pytest.raises(TypeError):
            generate(SETTINGS, 120, path)
    assert not path.exists()
    parts = {file: file.stat().st_mtime_ns for file in path.with_name("values.npz.parts").iterdir()}
    whole_parts = {file: time for file, time in parts.items() if file.suffix == ".npz"}
    damaged, _ = max(whole_parts.items(), key=lambda item: item[1])
    damaged.write_bytes(damaged.read_bytes()[:-200])  # the damaged part is made again
    del whole_parts[damaged]
    generate(SETTINGS, 200, path, threads=2)
    assert path.read_bytes() == dataset[0].read_bytes()
    assert (
        len(whole_parts) == 1
        and {file: file.stat().st_mtime_ns for file in whole_parts} == whole_parts
    )


def test_a_sample_is_drawn_with_all_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    load, games = Mock(side_effect=range(4)), Mock()
    monkeypatch.setattr("bao_agents.players.registry.load", load)
    monkeypatch.setattr(exact_values, "games", games)
    for part in (4, 5):  # of random games, and of the players
        assert exact_values.sample(SETTINGS, part, 7, 2) is games.return_value
    assert load.call_args_list == [
        call(name, ruleset=SETTINGS.ruleset, seed=part, threads=2)
        for part, names in ((4, ("random", "random")), (5, SETTINGS.players))
        for name in names
    ]
    options = {"opening_plies": exact_values.OPENING_PLIES, "plies": SETTINGS.plies}
    assert games.call_args_list == [
        call(SETTINGS.ruleset, 0, 1, 7, **options, seed=(3, 4)),
        call(SETTINGS.ruleset, 2, 3, 7, **options, seed=(3, 5)),
    ]


def test_what_is_kept_of_a_sample() -> None:
    """The positions whose actions are all solved, with the plies of best play."""
    positions = np.zeros((4, 6), np.uint64)
    positions[3, META] = 5  # seeds in the mover's store: namua
    legal, winning, losing = np.array([[3, 3, 3, 7], [1, 3, 0, 1], [2, 0, 3, 2]], np.uint64)
    plies = np.zeros((4, 64), np.int16)
    plies[:, :2] = [[7, 9], [5, 3], [4, 6], [1, 2]]
    judgement = Judgement(winning, losing, plies)
    judge: Any = SimpleNamespace(ruleset=RULESETS["zanzibar"], judge=lambda *_: judgement)
    solved = solve_sample(Sample(positions, legal), "random", judge)
    assert solved.ruleset == judge.ruleset and solved.source.tolist() == ["random"] * 3
    assert (solved.positions == positions[:3]).all() and solved.legal.tolist() == [3, 3, 3]
    assert solved.winning.tolist() == [1, 3, 0] and solved.plies.tolist() == [7, 3, 6]
    assert solved.metadata["counts"] == {
        "namua": {"won": 0, "lost": 0, "not solved": 1},
        "mtaji": {"won": 2, "lost": 1, "not solved": 0},
    }


def test_parts_of_another_solver_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their names hold a digest of its code and of its weights."""
    exact_values._code.cache_clear()
    before = exact_values._code()
    monkeypatch.setattr("bao_agents.evaluators.tables.FILE", Path(__file__))
    exact_values._code.cache_clear()
    assert exact_values._code() != before
    exact_values._code.cache_clear()


def test_read_again(dataset: tuple[Path, SolvedPositions], tmp_path: Path) -> None:
    path, data = dataset
    loaded = SolvedPositions.load(path)
    for name, array in loaded.arrays().items():
        np.testing.assert_array_equal(array, data.arrays()[name], strict=True)
    counts = loaded.metadata["counts"]
    assert counts == data.metadata["counts"]
    unknown = sum(stage["not solved"] for part in counts.values() for stage in part.values())
    assert len(loaded.values) == 200 - unknown - loaded.metadata["repeats"]


def test_a_file_without_positions_is_not_written(
    tmp_path: Path, fails: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No command could read it. Its part says that nothing was solved, and is not made again."""
    out = tmp_path / "values.npz"
    command = f"solve --ruleset kujifunza --sample 2 --nodes 9 --threads 1 --out {out}"
    for _ in range(2):
        assert "none of 2 positions could be solved with a limit of 9 " in fails(command)
        assert not out.exists()
        monkeypatch.setattr(exact_values, "solve_sample", None)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", ("zanzibar", 1, 300_000, (34, 999), ("alphabeta:3", "alphabeta:4"), False)),
        (
            "--ruleset kujifunza --seed 4 --nodes 5 --players random greedy --shortest",
            ("kujifunza", 4, 5, (0, 999), ("random", "greedy"), True),
        ),
        (
            "--plies 2 9",
            ("zanzibar", 1, 300_000, (2, 9), ("alphabeta:3", "alphabeta:4"), False),
        ),
    ],
)
def test_the_command_passes_on_its_settings(
    options: str,
    expected: tuple[Any, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    says: Says,
) -> None:
    """By default, positions begin ten plies before the stores are empty."""
    passed = list[Any]()
    monkeypatch.setattr(solve, "generate", lambda *settings: passed.append(settings))
    monkeypatch.setattr(exact_values, "describe", lambda *_: "")
    out = tmp_path / "values.npz"
    says(f"solve --sample 3 --threads 2 --out {out} {options}")
    name, *dataset_settings = expected
    assert passed == [(DatasetSettings(RULESETS[name], *dataset_settings), 3, out, 2)]


def test_in_a_terminal(tmp_path: Path, says: Says, fails: Fails) -> None:
    """A file is written in the format that its name says."""
    out, table = tmp_path / "late.npz", tmp_path / "late.csv"
    settings = "--ruleset zanzibar --sample 20 --nodes 3000 --seed 0"
    printed = says(f"solve {settings} --out {out}")
    data = SolvedPositions.load(out)
    tests, won, content = is_for_tests(data.positions), data.winning != 0, out.read_bytes()
    assert printed.splitlines() == [
        f"{out}: {len(data)} positions, {tests.sum()} of them for tests; "
        f"{won.mean():.1%} are won for the player to move",
        f"{len(content) / 1e6:.1f} MB, sha256 {hashlib.sha256(content).hexdigest()}",
        *(
            f"{source}, {stage}: {sum(count.values())} sampled, {count['not solved']} "
            f"({count['not solved'] / sum(count.values()):.2%}) not solved"
            for source, stages in data.metadata["counts"].items()
            for stage, count in stages.items()
        ),
    ]
    assert "random, mtaji: " in printed
    assert data.positions[:, PLY].min() >= 34
    refusal = fails(f"solve {settings.replace('zanzibar', 'dutch')} --out {out}")
    assert f"{out} exists and is not a file of exact values under the rules of dutch" in refusal
    assert out.read_bytes() == content
    for _ in range(2):
        says(f"solve {settings} --out {table}")
    says(f"solve {settings} --shortest --out {table}")
    assert b"\r" not in table.read_bytes()
    rows = list(csv.DictReader(table.read_text().splitlines()))
    plies = np.array([int(row["plies"]) for row in rows])
    assert (plies <= data.plies).all() and (plies < data.plies).any()
    for row, position, value, winning in zip(
        rows, data.positions, data.values, data.winning, strict=True
    ):
        board = Board.from_text(row["position"])
        assert board.text() == format_position(unpack(position)) and row["value"] == str(value)
        assert list(map(move_to_action, row["winning"].split())) == actions_of(winning)
