"""The figures of the shipped networks' card: measured anew when, and only when, a file changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("scipy")

from agents import registry
from training.lab import card


def test_the_card_is_of_the_networks_that_are_shipped() -> None:
    measured = card.measured()
    assert sorted(measured) == registry.shipped()
    for name, found in measured.items():
        assert found["file"] == card.digest(name), f"run python -m training.lab.card {name}"
        assert set(found["games"]) == set(card.BOTS)
        assert all(score["games"] == 2 * card.PAIRS for score in found["games"].values())
        assert "dirty" not in found["made_with"]["commit"]


def test_only_what_has_changed_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = card.measured()
    stale = kept | {"kibao": kept["kibao"] | {"file": "another"}}
    file = tmp_path / "card.json"
    file.write_text(json.dumps(stale))
    monkeypatch.setattr(card, "CARD", file)
    asked = []

    def measure(name: str) -> dict[str, object]:
        asked.append(name)
        return kept[name]

    monkeypatch.setattr(card, "measure", measure)
    assert card.main([]) == 0 and asked == ["kibao"]
    assert json.loads(file.read_text()) == kept
    assert card.main([]) == 0 and asked == ["kibao"]
    assert card.main(["zanzibar"]) == 0 and asked == ["kibao", "zanzibar"]
    assert capsys.readouterr().out.count("| `zanzibar` |") == 6
    with pytest.raises(SystemExit):
        card.main(["zanzibra"])


def test_a_network_is_measured() -> None:
    found = card.measure("kujifunza", pairs=2)
    assert found["rules"] == "kujifunza" and found["simulations"] == 16
    assert found["games"]["random"]["games"] == 4
    tables = card.networks_table({"kujifunza": found}), card.games_table({"kujifunza": found})
    assert "129,218" in tables[0] and tables[1].count("|") == 3 * (len(card.BOTS) + 2)
