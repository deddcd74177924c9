"""The examples of other RL libraries: how they are measured and checked, without a library."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from agents.arena.elo import score_pairs
from training.examples import check, measure


def test_the_best_legal_action() -> None:
    scores = np.array([[3.0, 2.0, 1.0], [-9.0, -8.0, -7.0]])
    legal = np.array([[False, True, True], [True, True, False]])
    assert measure.masked_argmax(scores, legal).tolist() == [1, 1]


def test_the_match_shows_what_the_examples_read() -> None:
    seen: set[tuple[int, ...]] = set()

    def choose(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        seen.add(observations.shape[1:])
        return masks.argmax(axis=1)

    score = measure.score_against("random", choose)
    assert score.games == 400 and 0.2 < score.rate < 0.8
    assert seen == {(measure.INPUTS,)} == {(308,)}


@pytest.mark.parametrize(("wins", "beats"), [(90, True), (55, False), (50, False), (10, False)])
def test_only_who_beats_greedy_passes(
    wins: int, beats: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = {}
    for bot, number in (("random", 98), ("greedy", wins)):
        points = (np.arange(100) < number).astype(float)
        points = np.random.default_rng(0).permutation(points).reshape(50, 2)
        scores[bot] = score_pairs(points)
    monkeypatch.setattr(measure, "score_against", lambda bot, choose: scores[bot])
    try:
        measure.report("numpy", "some route", 61.4, lambda boards, masks: masks.argmax(axis=1))
    except SystemExit as error:
        assert not beats and "did not clearly beat greedy" in str(error.code)
    else:
        assert beats
    row = capsys.readouterr().out
    assert row.startswith(f"| numpy | {version('numpy')} | some route | 61 | 98.0 % (")
    assert f" %) | {wins}.0 % (" in row
    assert row.endswith(" %) |\n") and row.count("|") == check.HEAD.splitlines()[0].count("|")


def test_every_library_has_requirements_and_examples() -> None:
    assert len(check.LIBRARIES) == 8
    files = {path.stem for path in check.EXAMPLES.glob("*_*.py") if path.stem != "__init__"}
    assert files == {name for library in check.LIBRARIES for name in check.examples_of(library)}
    for library in check.LIBRARIES:
        path = check.EXAMPLES / "requirements" / f"{library}.txt"
        assert "torch>=2.6,<2.14" in path.read_text().splitlines()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name the libraries, or give --all alone"),
        (["sb3", "--all"], "name the libraries, or give --all alone"),
        (["keras"], "unknown library 'keras': expected one of agilerl, cleanrl"),
    ],
)
def test_mistakes_on_the_command_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        check.main(words)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_rows_and_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Everything but the installation, on two small examples, one of which fails."""
    folder = tmp_path / "training" / "examples"
    folder.mkdir(parents=True)
    for package in (folder.parent, folder):  # else the real package would be found before it
        (package / "__init__.py").touch()
    (folder / "fake_good.py").write_text("print('epoch 1'); print('| fake | 1 | good | 2 | 3 |')")
    (folder / "fake_poor.py").write_text("import sys; sys.exit('this went wrong')")
    (folder / "fake_mute.py").write_text("print('nothing to tell')")
    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setattr(check, "EXAMPLES", folder)
    monkeypatch.setattr(check, "LIBRARIES", ["fake"])
    monkeypatch.setattr(check, "prepare", lambda library, folder, fresh: Path(sys.executable))
    assert check.main(["fake"]) == 1
    out, err = capfd.readouterr()
    assert out == check.HEAD + "\n| fake | 1 | good | 2 | 3 |\n"
    assert "epoch 1" in err and "this went wrong" in err
    assert "fake_mute printed 0 rows" in err and "failed: fake_mute, fake_poor" in err
    (folder / "fake_poor.py").unlink()
    (folder / "fake_mute.py").unlink()
    assert check.main(["--all"]) == 0


def test_a_failed_installation_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    requirements = tmp_path / "requirements"
    requirements.mkdir()
    (requirements / "fake.txt").write_text("not a requirement !\n")
    monkeypatch.setattr(check, "EXAMPLES", tmp_path)
    monkeypatch.setattr(check, "LIBRARIES", ["fake"])
    monkeypatch.setattr(check, "python_in", lambda folder: Path(sys.executable))
    assert check.main(["fake", "--venvs", str(tmp_path)]) == 1
    out, err = capfd.readouterr()
    assert out == check.HEAD + "\n" and "fake: not installed" in err
