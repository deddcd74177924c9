"""Test search-guided training: the buffer, its targets, determinism, exact resume, learning."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from bao_agents import load
from bao_agents.arena.elo import score_pairs
from bao_agents.arena.pairs import play_match
from bao_agents.nets.checkpoint import Checkpoint
from bao_agents.nets.legal_actions import probabilities
from bao_agents.nets.player import NetworkAgent
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.limits import Limit
from bao_env.engine.action import actions_of
from bao_env.engine.kernel import legal_of, play
from bao_env.engine.masks import is_legal
from bao_env.engine.position import PLY, movers, turn_of
from bao_training.plot import CURVES
from bao_training.replay_buffer import ReplayBuffer
from bao_training.run_settings import LAST
from bao_training.search_guided import chances
from tests.positions import draw
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
    for array, started in zip(trainer.network.parameters(), new.network.parameters(), strict=True):
        assert torch.equal(array, started)


def test_what_is_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The NNUE learns searched positions, and the boards after the legal actions of a minibatch,
    with the network's values. The loss is that of the NNUE, of the network's policy and, weighted,
    of its values, which are to be a mean of the search's value and of the game's result."""
    trainer = trained(
        12,
        "search_guided.nnue_replay_ratio=6 search_guided.replay_ratio=2 "
        "search_guided.value_weight=0.25 search_guided.search_value=0.25 bfloat16=false",
    )
    worker = trainer.workers[0]
    nnue, buffer, learnt = worker.replica.model.nnue, worker.buffer, []

    def loss(*batch: np.ndarray) -> torch.Tensor:
        learnt.append(batch)
        return torch.tensor(float(len(batch[0])))

    monkeypatch.setattr(nnue, "loss", loss)
    index = buffer.draw(np.random.default_rng(1), 100)
    targets = worker.targets(index)
    mean = 0.25 * buffer.values[index] + 0.75 * buffer.results[index]
    np.testing.assert_allclose(targets.values, mean, rtol=1e-6)
    assert targets.actions.tolist() == buffer.actions[index].tolist()
    total, (policy, value, *_, of_nnue) = worker.loss(index, targets)
    assert of_nnue == 2  # the sum of two means
    assert total.item() == pytest.approx(policy.item() + 0.25 * value.item() + 2, rel=1e-3)
    (after, valued), (searched, chances_searched) = learnt
    agent, rules = NetworkAgent(trainer.network, trainer.ruleset), trainer.ruleset.kernel
    output = agent.evaluate(buffer.positions[index], buffer.legal[index])
    losses = np.zeros((len(index), 2))
    for i, slot in enumerate(index):
        mine = slice(output.indptr[i], output.indptr[i + 1])
        rank = actions_of(buffer.legal[slot]).index(buffer.actions[slot])
        losses[i, 0] = -np.log(probabilities(output.logits[mine])[rank])
        losses[i, 1] = (output.values[mine][rank] - mean[i]) ** 2
    assert [policy.item(), value.item()] == pytest.approx(losses.mean(axis=0), rel=1e-3)
    boards, expected = [], []
    for action, network_value in zip(output.legal_actions, output.values, strict=True):
        before = buffer.positions[index[action >> 6]]
        board = before.copy()
        if play(rules, board, np.uint64(action & 63)) == 0 and legal_of(rules, board):
            boards.append(bytes(board))
            sign = 1 if turn_of(board) == turn_of(before) else -1
            expected.append((1 + sign * network_value) / 2)
    assert [*map(bytes, after)] == boards and len(boards) > 200
    np.testing.assert_allclose(valued, expected, atol=1e-5)
    searched_before = set(zip(map(bytes, buffer.positions), chances(buffer.values), strict=True))
    assert set(zip(map(bytes, searched), chances_searched, strict=True)) <= searched_before
    assert len(searched) == 300
    # Most boards after the actions that were played were searched, too, unless they were forced.
    assert len(set(map(bytes, after)) & set(map(bytes, buffer.positions))) > 20


def test_what_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is guided alpha-beta with the network and the NNUE of the run."""
    trainer = make(f"{TINY} search_guided.nodes=37")
    worker = trainer.workers[0]
    searches: list[tuple[Any, ...]] = []

    def search(*arguments: Any, **options: Any) -> AlphaBetaAgent:
        searches.append((*arguments, options.pop("guide"), options))
        return AlphaBetaAgent(*arguments, guide=searches[-1][2], **options)

    monkeypatch.setattr("bao_training.search_guided.AlphaBetaAgent", search)
    worker.play()
    [(ruleset, limit, guide, options)] = searches
    assert (ruleset, limit, options) == (trainer.ruleset, Limit(nodes=37), {"threads": 1})
    assert np.array_equal(guide.nnue.weights, trainer.model.quantised_nnue().weights)
    for name, array in trainer.network.arrays().items():
        assert np.array_equal(guide.weights[name], array)


def test_how_often_it_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes 0.6 gradient steps an update, once each worker has four shares of a minibatch."""
    trainer = make(f"{TINY} search_guided.replay_ratio=0.3")
    steps, settled = list[int](), 4 * 64 - 1

    def take_steps(minibatches: int) -> dict[str, float]:
        steps.append(minibatches)
        return {}

    monkeypatch.setattr(ReplayBuffer, "count_settled", lambda _: settled)
    monkeypatch.setattr(trainer, "take_steps", take_steps)
    for update in range(20):
        trainer.update, settled, before = update, settled + (update == 10), len(steps)
        row = trainer.learn()
        assert row == ({} if len(steps) > before else {"gradient_norm": 0.0})
    assert steps == [1] * 6 and len(trainer.workers) == 2
    for worker in trainer.workers:
        worker.play()
        worker.buffer.results[:] = 1.0
        worker.draw_minibatches(3)
        assert [len(part) for part in worker.minibatches] == [64, 64, 64]


def test_how_it_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The network plays alone and guides alpha-beta, in the same games in each evaluation."""
    trainer = make(f"{TINY} ruleset=dutch")
    matches: list[tuple[Any, ...]] = []
    score = score_pairs(np.array([[1.0, 0.5], [1.0, 1.0]]))

    def match(player: Any, opponent: Any, **options: Any) -> SimpleNamespace:
        matches.append((player, opponent.name, options))
        return SimpleNamespace(score=score)

    monkeypatch.setattr("bao_training.evaluation.play_match", match)
    row = trainer.measure()
    first, matches[:] = matches[:], []
    assert trainer.measure() == row
    names = ["greedy", "alphabeta:2", "alphabeta:4", "alphabeta:2000n"]
    assert [name for _, name, _ in first] == names
    *alone, guided = (player for player, _, _ in first)
    assert all(isinstance(player, NetworkAgent) for player in alone)
    assert isinstance(guided, AlphaBetaAgent) and guided.limit == Limit(nodes=2000)
    positions, legal = draw("dutch", 20, 12)
    guide = Checkpoint(
        trainer.network.arrays(), trainer.ruleset, nnue=trainer.model.quantised_nnue()
    )
    expected = AlphaBetaAgent("dutch", Limit(nodes=2000), guide=guide).act(positions, legal)
    np.testing.assert_array_equal(guided.act(positions, legal), expected)
    columns = [f"score_against_{name}" for name in names[:3]] + [f"guided_score_against_{names[3]}"]
    assert [*row] == [column + end for column in columns for end in ("", "_low", "_high")]
    assert [*row.values()] == [score.rate, score.low, score.high] * 4
    options = [options for _, _, options in first]
    assert options == [options[0]] * 4 == [options for _, _, options in matches]
    assert options[0] == {"ruleset": trainer.ruleset, "pairs": 10, "seed": options[0]["seed"]}
    assert {*CURVES} - {"elo", "blunders"} <= {*trainer.columns, *make("method=td").columns}


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
