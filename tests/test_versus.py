"""Matches against another checkout: both players in processes of their own, nothing lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from training import versus
from training.versus import RemotePlayer


@pytest.mark.slow
def test_a_match_is_kept_and_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped match keeps its games; the same command plays the rest and no other match."""
    monkeypatch.setattr(versus, "PART", 2)
    file = tmp_path / "match.json"
    command = ["greedy", "random", "--pairs", "6", "--json", str(file)]
    asked = []
    act = RemotePlayer.act

    def stop_later(player, positions, masks):
        asked.append(len(masks))
        if sum(asked) > 300:
            raise KeyboardInterrupt
        return act(player, positions, masks)

    with monkeypatch.context() as patch:
        patch.setattr(RemotePlayer, "act", stop_later)
        assert versus.main(command) == 130
    before = json.loads(file.read_text())["points"]
    assert 0 < len(before) < 6
    assert versus.main(command) == 0
    report = json.loads(file.read_text())
    assert len(report["points"]) == 6 and report["points"][: len(before)] == before
    assert min(report["seconds"]) > 0 and min(report["moves"]) > 50
    said = capsys.readouterr()
    assert "of 12 games" in said.out and "goes on" in said.err
    assert versus.main([*command, "--seed", "2"]) == 2
    assert "is of another match" in capsys.readouterr().err


def test_what_is_no_report_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "notes.json"
    file.write_text("[1, 2]")
    assert versus.main(["greedy", "--json", str(file)]) == 2
    assert "is no report" in capsys.readouterr().err
    assert file.read_text() == "[1, 2]"


def test_what_is_no_checkout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert versus.main(["greedy", "--other", str(tmp_path)]) == 2
    assert "is no checkout of bao_env" in capsys.readouterr().err


def test_a_player_that_is_none(capfd: pytest.CaptureFixture[str]) -> None:
    """The process says why; the command says whose."""
    assert versus.main(["gready"]) == 2
    said = capfd.readouterr().err
    assert "did you mean" in said and "gready of" in said and "has ended" in said
