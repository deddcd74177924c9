"""Matches against another checkout, whose players run in processes of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bao_training import versus
from bao_training.cli import main as bao
from bao_training.versus import RemotePlayer

from tests.conftest import Capsys, Fails


@pytest.mark.slow
def test_match_resumes(
    tmp_path: Path,
    capsys: Capsys,
    monkeypatch: pytest.MonkeyPatch,
    fails: Fails,
) -> None:
    """A stopped match keeps its games; the same command plays the rest, and no other match."""
    monkeypatch.setattr(versus, "PART", 2)
    file = tmp_path / "match.json"
    command = ["versus", "greedy", "random", "--pairs", "6", "--json", str(file)]
    positions = 0
    act = RemotePlayer.act

    def stop_later(player: RemotePlayer, *arguments: Any) -> Any:
        nonlocal positions
        positions += len(arguments[0])
        if positions > 300:
            raise KeyboardInterrupt
        return act(player, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(RemotePlayer, "act", stop_later)
        assert bao(command) == 130
    before = json.loads(file.read_text())["points"]
    assert 0 < len(before) < 6
    assert bao(command) == 0
    report = json.loads(file.read_text())
    assert len(report["points"]) == 6 and report["points"][: len(before)] == before
    assert min(report["seconds"]) > 0 and min(report["moves"]) > 50
    assert "of 12 games" in capsys.readouterr().out
    assert "is of another match" in fails(*command, "--seed", "2")


def test_other_reports_are_kept(tmp_path: Path, fails: Fails) -> None:
    notes = tmp_path / "notes.json"
    notes.write_text("[1, 2]")
    assert "notes.json is no report" in fails("versus", "greedy", "--json", str(notes))
    assert notes.read_text() == "[1, 2]"
