"""Files of exact values: their values, their parts, and resuming."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.search.solver.solver import Solver
from bao_env import RULESETS
from bao_env.engine.batch import Engine
from bao_env.engine.position import movers, unpack
from tests.positions import TAKASIA, pack_texts
from training import exact_values
from training.exact_values import (
    DatasetSettings,
    ExactValues,
    generate,
    is_for_tests,
    load,
    main,
    mirrored,
    solve,
    with_successors,
)
from training.sampling import Sample, random_play

SETTINGS = DatasetSettings(
    RULESETS["kujifunza"], 3, 20_000, (8, 999), ("alphabeta:1", "alphabeta:2")
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ExactValues]:
    """Make a small file in four parts, two of random games and two of games between searches."""
    path = tmp_path_factory.mktemp("exact") / "values.npz"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_values, "CHUNK", 60)
        return path, generate(SETTINGS, 200, path)


def test_values_and_actions(made: tuple[Path, ExactValues]) -> None:
    """Of each position and each action it is known who wins."""
    data = made[1]
    assert len(data.values) > 150
    assert set(data.source.tolist()) == {0, 1}
    masks = np.empty(len(data.values), np.uint64)
    Engine("kujifunza").legal_masks(data.positions, masks, np.zeros(len(masks), np.int8))
    np.testing.assert_array_equal(data.masks, masks)
    judged = Solver("kujifunza").judge(data.positions[::8], masks[::8])
    np.testing.assert_array_equal(data.winning[::8], judged.winning)
    np.testing.assert_array_equal(masks[::8] & ~data.winning[::8], judged.losing)
    won = data.winning != 0
    np.testing.assert_array_equal(data.values, np.where(won, 1, -1))
    np.testing.assert_array_equal(data.optimal, np.where(won, data.winning, masks))
    assert 0 < won.mean() < 1


def test_parts_share_no_position(made: tuple[Path, ExactValues]) -> None:
    """Neither mirrored nor from the other seat."""
    data = made[1]
    tests, lessons = data.part(test=True), data.part(test=False)
    assert len(tests.values) + len(lessons.values) == len(data.values)
    assert 0.03 < data.test.mean() < 0.2
    sample = random_play("kujifunza", 2000, seed=1).positions
    chosen = is_for_tests(sample)
    assert 0.08 < chosen.mean() < 0.12
    other = sample.copy()
    other[:, 4] ^= np.uint64(1 << 18)  # the other seat to move
    other[:, 5] += np.uint64(1)
    assert (movers(other) != movers(sample)).all()
    for same in (mirrored(sample), other):
        np.testing.assert_array_equal(is_for_tests(same), chosen)


def test_mirror_images_have_the_same_value() -> None:
    sample = random_play("kujifunza", 40, plies=(10, 40), seed=2)
    mirror = mirrored(sample.positions)
    np.testing.assert_array_equal(mirrored(mirror), sample.positions)
    masks = np.empty(40, np.uint64)
    Engine("kujifunza").legal_masks(mirror, masks, np.zeros(40, np.int8))
    solver = Solver("kujifunza")
    np.testing.assert_array_equal(
        solver.values(mirror, masks)[0], solver.values(sample.positions, sample.masks)[0]
    )
    words, _ = pack_texts([TAKASIA], RULESETS["zanzibar"])
    assert (unpack(words[0]).barred, unpack(mirrored(words)[0]).barred) == (1, 6)


def test_resume_on_more_threads_makes_the_same_file(
    made: tuple[Path, ExactValues], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact_values, "CHUNK", 60)
    path = tmp_path / "values.npz"
    solved: list[int] = []

    def interrupt(found: Sample, solver: Solver) -> Any:
        if len(solved) == 2:
            raise KeyboardInterrupt
        solved.append(len(found.masks))
        return solve(found, solver)

    with monkeypatch.context() as patch:
        patch.setattr(exact_values, "solve", interrupt)
        with pytest.raises(KeyboardInterrupt):
            generate(SETTINGS, 200, path)
    assert not path.exists()
    parts = path.with_name("values.npz.parts")
    kept = {file: file.stat().st_mtime_ns for file in parts.glob("*.npz")}
    generate(SETTINGS, 200, path, threads=2)
    assert path.read_bytes() == made[0].read_bytes()
    assert len(kept) == 2 and all(file.stat().st_mtime_ns == kept[file] for file in kept)


def test_with_successors(made: tuple[Path, ExactValues]) -> None:
    for test in (False, True):
        data = made[1].part(test=test)
        positions, masks, values = with_successors(data)
        assert len(positions) > (1 if test else 2) * len(data.values)
        assert masks.all()
        assert (is_for_tests(positions) == test).all()
        found, _ = Solver("kujifunza").values(positions[::5], masks[::5])
        np.testing.assert_array_equal(found, values[::5])


@pytest.mark.slow
def test_values_example(made: tuple[Path, ExactValues], capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    from training.lab import values

    words = [str(made[0]), "--steps", "3", "--observation", "board", "planes+replies"]
    assert values.main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split("|")[1].strip() for line in lines[4:]]
    networks = ["network, `board`", "network, `planes+replies`"]
    assert names == [*networks, "alpha-beta's evaluation", "random"]
    assert values.main([str(made[0].with_name("missing.npz"))]) == 2
    assert "error: " in capsys.readouterr().err


def test_load(made: tuple[Path, ExactValues]) -> None:
    path, data = made
    found = load(path)
    for array, other in zip(found[:-1], data[:-1], strict=True):
        np.testing.assert_array_equal(array, other, strict=True)
    assert found.metadata == data.metadata
    counts = found.metadata["counts"]
    assert counts["random"]["mtaji"]["sampled"] == 120
    assert counts["search"]["mtaji"]["sampled"] == 80
    unknown = sum(stage["unknown"] for part in counts.values() for stage in part.values())
    assert len(found.values) == 200 - unknown - found.metadata["repeats"]
    assert {"seed", "nodes", "commit", "rules_version", "engine_signature"} <= set(found.metadata)


def test_invalid_files_raise(
    made: tuple[Path, ExactValues], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez(tmp_path / "other.npz", values=np.zeros(3))
    (tmp_path / "text.npz").write_text("no archive")
    for name in ("other.npz", "text.npz"):
        with pytest.raises(ValueError, match=f"{name} is no file of exact values: make one with"):
            load(tmp_path / name)
    with pytest.raises(ValueError, match="holds parts with nodes 20000, not 9: give the same"):
        generate(SETTINGS._replace(nodes=9), 200, made[0])
    monkeypatch.setattr(exact_values, "RULES_VERSION", 99)
    with pytest.raises(ValueError, match=r"rules version \d+, not 1 and 99: make it again"):
        load(made[0])


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "late.npz")
    words = ["--ruleset", "zanzibar", "--count", "20", "--nodes", "3000", "--out", out]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{out}: ")
    assert "random, mtaji: " in printed and "sha256 " in printed
    assert load(out).plies.min() >= 34
    for wrong in (
        ["--count", "0"],
        ["--ruleset", "kujifunza"],  # others than those in the file
        ["--players", "nobody", "greedy"],
        ["--plies", "9", "8"],
    ):
        assert main([*words, *wrong]) == 2
        assert "error: " in capsys.readouterr().err
    assert main([*words, "--players", "random", "nobody", "--out", out + "2"]) == 2
    assert main([*words, "--out", out + "2"]) == 0  # the error left nothing behind
