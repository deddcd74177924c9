"""What is recorded of each rule set is what the literal reference says, and how it is made."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bao_env import RULESETS, Board
from bao_env.notation.transcript import parse_transcripts
from tests import make_golden


@pytest.mark.parametrize("name", RULESETS)
def test_recorded_data_is_true(name: str) -> None:
    """By the reference; that every recorded position is the kernel's, too, test_kernel checks."""
    make_golden.check(RULESETS[name], every=6)


def test_nothing_is_recorded_of_unknown_rule_sets() -> None:
    assert list(make_golden.all_pinned()) == list(RULESETS)
    for folder in ("golden", "conformance"):
        names = {file.stem for file in (make_golden.DATA / folder).iterdir()}
        assert names == set(RULESETS)


@pytest.mark.parametrize("name", RULESETS)
def test_golden_games_come_out_as_they_went_in(name: str) -> None:
    text = make_golden.read(make_golden.golden_file(name), name)
    [game] = parse_transcripts(text)
    board = Board.from_transcript(text)
    assert board.outcome() is not None
    assert board.transcript(dict(game.head)) == text


def make(data: Path, *options: str) -> int:
    return make_golden.main(["malawi", "--data", str(data), *options])


@pytest.fixture(scope="module")
def small() -> Iterator[None]:
    """Little data, for speed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(make_golden, "CASES", 12)
        patch.setattr(make_golden, "MAX_PERFT_POSITIONS", 30)
        patch.setattr(make_golden, "CHECKED_PERFT_DEPTH", 2)
        yield


@pytest.fixture(scope="module")
def made(small: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of one rule set; to be copied, not changed."""
    data = tmp_path_factory.mktemp("made")
    assert make(data) == 0
    return data


def contents(data: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in data.rglob("*.*")}


@pytest.mark.usefixtures("small")
def test_a_second_run_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make(tmp_path, "--check") == 1
    assert "python -m tests.make_golden malawi" in capsys.readouterr().err
    assert make(tmp_path) == 0
    first = contents(tmp_path)
    assert len(first) == 3 and capsys.readouterr().out.count(": written") == 3
    entry = json.loads((tmp_path / "pinned.json").read_text())["malawi"]
    assert entry["perft"] == make_golden.pinned("malawi")["perft"][:3]
    assert entry["signature"] == make_golden.pinned("malawi")["signature"]
    assert make(tmp_path, "--force") == 0
    assert contents(tmp_path) == first
    assert make(tmp_path, "--check") == 0


@pytest.mark.usefixtures("small")
def test_what_is_there_is_kept_unless_forced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in (make_golden.golden_file, make_golden.conformance_file):
        path = file("malawi", tmp_path)
        path.parent.mkdir()
        path.write_text("mine")
    assert make(tmp_path) == 0
    assert capsys.readouterr().out.count("kept (--force makes it anew)") == 2
    assert make_golden.golden_file("malawi", tmp_path).read_text() == "mine"
    assert make(tmp_path, "--check") == 1
    assert make(tmp_path, "--force") == 0
    assert make(tmp_path, "--check") == 0


@pytest.mark.parametrize(
    ("file", "pattern", "wrong", "complaint"),
    [
        ("golden/malawi.txt", r"ruleset: malawi", "ruleset: kibao", "the game is of 'kibao'"),
        ("golden/malawi.txt", r"final: \d", "final: 63", "the game ends in"),
        ("conformance/malawi.jsonl", r'"A\d[LR]>?": ', '"B8R>": ', "the reference says"),
        ("conformance/malawi.jsonl", r"^.*\n", "", "11 recorded positions: expected at least 12"),
        ("pinned.json", r"\[4, 14", "[4, 15", "pinned"),
        ("pinned.json", r'"signature": "', '"signature": "0', "pinned"),
    ],
)
def test_wrong_data_is_found(
    made: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    file: str,
    pattern: str,
    wrong: str,
    complaint: str,
) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    path = tmp_path / file
    text, count = re.subn(pattern, wrong, path.read_text(), count=1)
    assert count == 1
    path.write_text(text)
    assert make(tmp_path, "--check") == 1
    assert complaint in capsys.readouterr().err


def test_perft_of_another_game_is_refused() -> None:
    """The reference counts as well, and does not believe the engine."""
    with pytest.raises(make_golden.DataError, match="by the reference"):
        make_golden.check_perft(RULESETS["dutch"], make_golden.pinned("kibao")["perft"], 3)
