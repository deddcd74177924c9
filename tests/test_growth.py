"""How strength grows: networks learn from a search's games, and a stopped run goes on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("matplotlib")

import torch

from agents.nets.network import NetworkConfig, PolicyNetwork
from agents.nets.policy import NetworkAgent
from agents.search.alphabeta.evaluation import SCALE
from agents.search.alphabeta.player import AlphaBetaAgent
from bao_env.engine.batch import Engine
from training import search_games
from training.lab import growth
from training.search_games import SearchGames


@pytest.fixture(scope="module")
def games() -> SearchGames:
    return search_games.play(AlphaBetaAgent(depth=2), growth.RULES, 200, seed=5)


def test_games_of_a_search(games: SearchGames, tmp_path: Path) -> None:
    """Its own choices and opinions, results that alternate with the mover, on disk as in memory."""
    masks = np.empty(len(games.actions), np.uint64)
    Engine(growth.RULES).legal_masks(games.positions, masks, np.full(len(masks), -1, np.int8))
    actions, values = AlphaBetaAgent(depth=2).choose(games.positions[:300], masks[:300])
    np.testing.assert_array_equal(actions, games.actions[:300])
    np.testing.assert_array_equal(values, games.values[:300])
    assert 0.4 < games.results.mean() < 0.6
    likely = 1 / (1 + np.exp(-games.values / SCALE))
    assert np.corrcoef(likely, games.results)[0, 1] > 0.4
    games.write(tmp_path / "games.npz")
    for mine, theirs in zip(games, SearchGames.read(tmp_path / "games.npz"), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.savez(tmp_path / "other.npz", positions=games.positions)
    with pytest.raises(ValueError, match="holds no games of a search"):
        SearchGames.read(tmp_path / "other.npz")


@pytest.mark.parametrize("kind", ["board", "moves"])
def test_losses_against_torchs_own(games: SearchGames, kind: str) -> None:
    """One position after the other, from the logits of the player with the same network."""
    torch.manual_seed(1)
    network = PolicyNetwork(NetworkConfig(kind, (16,)))
    torch.nn.init.normal_(network.head.weight)
    data = games.part(slice(40))
    masks = np.empty(40, np.uint64)
    Engine(growth.RULES).legal_masks(data.positions, masks, np.full(40, -1, np.int8))
    said = NetworkAgent(network, growth.RULES).evaluate(data.positions, masks)
    with torch.inference_mode():
        lost = growth.losses(network, data, torch.from_numpy(growth.targets(data)))
    for i in range(40):
        part = slice(said.indptr[i], said.indptr[i + 1])
        logits = torch.from_numpy(said.logits[part])
        chosen = int(np.flatnonzero((said.legal_actions[part] & 63) == data.actions[i])[0])
        entropy = torch.nn.functional.cross_entropy(logits, torch.tensor(chosen))
        torch.testing.assert_close(lost.policy[i], entropy, rtol=1e-3, atol=1e-4)
        assert bool(lost.agreement[i]) == (int(logits.argmax()) == chosen)
    assert 0 < lost.agreement.mean() < 1
    errors = [growth.losses(network, data, torch.full((40,), e)).value for e in (-0.5, 0.5)]
    values = (errors[0] - errors[1]) / 2  # (v + 0.5)^2 - (v - 0.5)^2 = 2 v
    torch.testing.assert_close(lost.value, (values - torch.from_numpy(growth.targets(data))) ** 2)


def test_parts_are_numbered_apart(games: SearchGames) -> None:
    """No two games share a number, and the same ones are held out as in each part alone."""
    joined = SearchGames.join([games, games])
    assert len(set(joined.games)) == 2 * len(set(games.games))
    np.testing.assert_array_equal(joined.held_out, np.tile(games.held_out, 2))
    assert 0 < games.held_out.mean() < 0.15


@pytest.mark.slow
def test_a_run_goes_on_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(growth, "GAMES", 60)
    monkeypatch.setattr(growth, "NETWORKS", {"small": NetworkConfig("moves", (16,))})
    command = ["--out", str(tmp_path), "--nodes", "20", "--epochs", "2", "--pairs", "2"]
    assert growth.main([*command, "--report"]) == 2
    assert "has no results yet" in capsys.readouterr().err
    assert growth.main([*command, "--thousands", "1"]) == 0
    first = capsys.readouterr().out
    assert "| small |" in first and (tmp_path / "growth.png").stat().st_size > 10_000
    files = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    assert growth.main([*command, "--thousands", "1", "2"]) == 0
    assert first.splitlines()[2] in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in files} == files
    reports = json.loads((tmp_path / "growth.json").read_text())
    assert [one["positions"] for one in reports] == [1000, 2000]
