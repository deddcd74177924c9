"""The figures of the shipped networks' card."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("scipy")

from bao_agents import registry
from bao_training.cli import main as bao
from bao_training.lab import card

from tests.conftest import Capsys


def test_card_is_of_the_shipped_networks() -> None:
    measured = card.measured()
    assert sorted(measured) == registry.shipped()
    for name, found in measured.items():
        assert found["file"] == card.digest(name), f"run bao lab card {name}"
        assert set(found["games"]) == set(card.BOTS)
        assert all(score["games"] == 2 * card.PAIRS for score in found["games"].values())
        assert "dirty" not in found["made_with"]["commit"]


def test_only_changed_networks_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    kept = card.measured()
    file = tmp_path / "card.json"
    file.write_text(json.dumps(kept | {"kujifunza": {"file": "another"}}))
    monkeypatch.setattr(card, "CARD", file)
    monkeypatch.setattr(card, "measure", partial(card.measure, pairs=2))
    assert bao(["lab", "card"]) == 0
    assert "453,890" in capsys.readouterr().out
    found = card.measured()
    assert found.pop("kujifunza")["games"]["random"]["games"] == 4
    assert found == {name: kept[name] for name in found}
    assert bao(["lab", "card", "zanzibra"]) == 2
