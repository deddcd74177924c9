"""Games of a search to learn from, and the experiment on how strength grows with them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("matplotlib")


from agents.nets.network import NetworkConfig
from agents.search.alphabeta.player import AlphaBetaAgent
from bao_env.engine.batch import Engine
from training import search_games
from training.lab import growth
from training.search_games import SearchGames


@pytest.fixture(scope="module")
def games() -> SearchGames:
    """Play some games."""
    return search_games.play(AlphaBetaAgent(depth=2), growth.RULES, 200, seed=5)


def test_games_of_a_search(games: SearchGames, tmp_path: Path) -> None:
    """They have the search's choices and values, and results for the player to move."""
    masks = np.empty(len(games.actions), np.uint64)
    Engine(growth.RULES).legal_masks(games.positions, masks, np.full(len(masks), -1, np.int8))
    actions, values = AlphaBetaAgent(depth=2).choose(games.positions[:300], masks[:300])
    np.testing.assert_array_equal(actions, games.actions[:300])
    np.testing.assert_array_equal(values, games.values[:300])
    assert 0.4 < games.results.mean() < 0.6
    assert np.corrcoef(games.values > 0, games.results)[0, 1] > 0.4
    games.write(tmp_path / "games.npz")
    for mine, theirs in zip(games, SearchGames.read(tmp_path / "games.npz"), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.savez(tmp_path / "other.npz", positions=games.positions)
    with pytest.raises(ValueError, match="holds no games of a search"):
        SearchGames.read(tmp_path / "other.npz")


def test_joined_games(games: SearchGames) -> None:
    """No two games share a number, and the same ones are held out as in each part alone."""
    joined = SearchGames.join([games, games])
    assert len(set(joined.games)) == 2 * len(set(games.games))
    np.testing.assert_array_equal(joined.held_out, np.tile(games.held_out, 2))
    assert 0 < games.held_out.mean() < 0.15


@pytest.mark.slow
def test_growth_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    networks = {kind: NetworkConfig(kind, (16,)) for kind in ("board", "moves")}
    monkeypatch.setattr(growth, "GAMES", 60)
    monkeypatch.setattr(growth, "NETWORKS", networks)
    command = ["--out", str(tmp_path), "--nodes", "20", "--epochs", "2", "--pairs", "2"]
    assert growth.main([*command, "--report"]) == 2
    assert "has no results yet" in capsys.readouterr().err
    command += ["--networks", *networks]
    assert growth.main([*command, "--thousands", "1"]) == 0
    files = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    assert growth.main([*command, "--thousands", "1", "2"]) == 0
    assert capsys.readouterr().out.count("| moves |") == 3
    assert (tmp_path / "growth.png").stat().st_size > 10_000
    assert {path: path.stat().st_mtime_ns for path in files} == files
    assert len(json.loads((tmp_path / "growth.json").read_text())) == 4
