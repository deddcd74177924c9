"""Test search-guided training: the buffer, its targets, determinism, exact resume, learning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bao_agents import load
from bao_agents.arena.pairs import play_match
from bao_env.engine.masks import is_legal
from bao_env.engine.position import PLY, movers
from bao_training.run_settings import LAST
from bao_training.search_guided import chances
from tests.training.runs import check_resumed, make

TINY = (
    "method=search_guided hidden=[32] search_guided.nodes=30 "
    "envs=32 rollout=8 minibatch=128 max_plies=150 search_guided.buffer=6000 steps=2048 "
    "evaluate_every=0 evaluate_pairs=10 "
)


@pytest.mark.parametrize("ruleset", ["zanzibar", "dutch", "kujifunza"])
def test_results_are_those_of_the_games(monkeypatch: pytest.MonkeyPatch, ruleset: str) -> None:
    """Each position of an ended game has the discounted result of the player to move."""
    worker = make(f"{TINY}ruleset={ruleset} workers=1 gamma=0.99").workers[0]
    games, histories, buffer = worker.games, worker.histories, worker.buffer
    ended = 0
    settle = worker._settle

    def check(ended_games: np.ndarray) -> None:
        nonlocal ended
        settle(ended_games)
        for game in ended_games:
            length = int(histories.lengths[game])
            slots = histories.slots[game, :length]
            seats = movers(buffer.positions[slots])
            plies = buffer.positions[slots, PLY].astype(np.int64)
            assert (np.diff(plies) > 0).all()
            last, winner = int(games.plies[game]), games.winners[game]
            for seat, ply, result in zip(seats, plies, buffer.results[slots], strict=True):
                sign = 0.0 if winner < 0 else 1.0 if seat == winner else -1.0
                assert result == pytest.approx(sign * 0.99 ** (last - ply - 1), rel=1e-5)
            ended += 1

    monkeypatch.setattr(worker, "_settle", check)
    for _ in range(12):
        worker.play()
    assert ended > 20 and buffer.count_settled() > 200
    settled = ~np.isnan(buffer.results)
    legal = buffer.legal[settled]
    assert ((legal & (legal - np.uint64(1))) != 0).all()  # every one of them has a choice
    assert is_legal(buffer.actions[settled].astype(np.int64), legal).all()


def trained(updates: int, settings: str) -> Any:
    """Return a trainer after some updates of a tiny run."""
    trainer = make(TINY + settings)
    for _ in range(updates):
        trainer.train_update()
    return trainer


def test_resumed_run_is_the_same_run(tmp_path: Path) -> None:
    """A run resumes with its games in progress and its buffer: before and after learning begins,
    and after the buffer has been filled more than once. A new run may start with its NNUE."""
    settings = f"{TINY}ruleset=dutch max_plies=60 search_guided.buffer=1920"
    check_resumed(settings, tmp_path / LAST, 2, 2)
    trainer = check_resumed(settings, tmp_path / LAST, 5, 6)
    assert trainer.update * 256 > 1920
    trainer.save_policy(tmp_path / "start.safetensors")
    new = make(f"{settings} start={tmp_path / 'start.safetensors'}")
    nnues = [model.quantised_nnue().weights for model in (trainer.model, new.model)]
    assert nnues[0].any() and np.array_equal(*nnues)


def test_what_the_nnue_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The NNUE learns searched positions, and the boards after the legal actions of a minibatch.
    Without it, the loss is that of the network's policy and, weighted, of its values."""
    trainer = trained(
        12,
        "search_guided.nnue_replay_ratio=6 search_guided.replay_ratio=2 "
        "search_guided.value_weight=0.25",
    )
    worker = trainer.workers[0]
    nnue, buffer, learnt = worker.replica.model.nnue, worker.buffer, []

    def loss(*batch: np.ndarray) -> torch.Tensor:
        learnt.append(batch)
        return torch.zeros(())

    monkeypatch.setattr(nnue, "loss", loss)
    index = buffer.draw(np.random.default_rng(1), 100)
    total, (policy, value, *_) = worker.loss(index, worker.targets(index))
    assert total.item() == pytest.approx(policy.item() + 0.25 * value.item(), rel=1e-3)
    (after, valued), (searched, targets) = learnt
    legal = buffer.legal[index]
    assert sum(bin(bits).count("1") for bits in legal) >= len(after) > 200
    searched_before = set(zip(map(bytes, buffer.positions), chances(buffer.values), strict=True))
    assert set(zip(map(bytes, searched), targets, strict=True)) <= searched_before
    assert len(searched) == 300 and valued.min() >= 0 and valued.max() <= 1
    # Most boards after the actions that were played were searched, too, unless they were forced.
    assert len(set(map(bytes, after)) & set(map(bytes, buffer.positions))) > 20


def test_a_position_takes_65_bytes() -> None:
    """training/README.md says so; the file of a run holds its buffer."""
    buffer = trained(0, "").workers[0].buffer
    assert sum(array.nbytes for array in vars(buffer).values()) - 8 == 65 * len(buffer.legal)


@pytest.mark.slow
def test_alphabeta_learns_to_guide_itself(tmp_path: Path) -> None:
    """The run's checkpoint holds the network and the NNUE, and both make guided alpha-beta
    stronger."""
    settings = (
        "hidden=[64] search_guided.nodes=100 search_guided.buffer=20000 envs=128 minibatch=256"
    )
    trainer = make(f"{TINY}{settings} steps=40960 learning_rate=0.003")
    untrained, path = tmp_path / "untrained.safetensors", tmp_path / "net.safetensors"
    trainer.save_policy(untrained)
    while trainer.steps < 40960:
        trainer.train_update()
    trainer.save_policy(path)
    before, after = (load(f"guided:{file}:500n") for file in (untrained, path))
    assert play_match(after, before, pairs=50, seed=3).score.low > 0.8
