"""Test TD(lambda): returns against their definition, how actions are chosen, what is recorded."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

from bao_agents.nets.compiled import compile_arrays
from bao_agents.nets.player import NetworkAgent
from bao_env.engine.sampling import random_states
from bao_training.td import choose_actions, lambda_returns
from bao_training.trainer import DivergedError, plies_per_game
from bao_training.worker import Games
from tests.positions import draw
from tests.training.runs import make, weights

SMALL = "method=td envs=16 rollout=8 minibatch=64 hidden=[8] workers=2 "


@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 0.7), (0.9, 1.0), (1.0, 0.0)])
def test_lambda_returns_follow_their_definition(gamma: float, lam: float) -> None:
    rng = np.random.default_rng(1)
    steps, games = 12, 40
    rewards = rng.choice([-1.0, 1.0], (steps, games)).astype(np.float32)
    best = rng.uniform(-1, 1, (steps + 1, games)).astype(np.float32)
    costs = rng.choice([0.0, 0.05, 0.5], (steps, games)).astype(np.float32)
    dones = rng.random((steps, games)) < 0.15
    turn_passed = rng.random((steps, games)) < 0.8
    out = np.empty((steps, games), np.float32)
    limit = np.float32(0.1)
    lambda_returns(
        rewards, best, costs, dones, turn_passed, np.float32(gamma), np.float32(lam), limit, out
    )

    def n_step(t: int, n: int, b: int) -> float:
        """Return the n-step return: n actions, then the value of the best one."""
        sign = 1.0
        for k in range(t, t + n):
            if dones[k, b]:
                return sign * rewards[k, b]
            sign *= gamma * (-1.0 if turn_passed[k, b] else 1.0)
        return sign * best[t + n, b]

    for b in range(games):
        for t in range(steps):
            last = t + 1  # the longest return ends with the game, the rollout or a costly action
            while last < steps and not dones[last - 1, b] and costs[last, b] <= 0.1:
                last += 1
            longest = last - t
            expected = lam ** (longest - 1) * n_step(t, longest, b)
            expected += sum((1 - lam) * lam ** (n - 1) * n_step(t, n, b) for n in range(1, longest))
            assert out[t, b] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("noise", "exploration"), [(0.0, 0.0), (0.5, 0.0), (0.0, 1.0), (0.5, 0.2)])
def test_how_actions_are_chosen(noise: float, exploration: float) -> None:
    """The action is the best one, one drawn from the softmax of value / noise, or a random one."""
    size = 60_000
    values = np.tile(np.array([0.1, 0.6, -0.4], np.float32), size)
    legal = np.full(size, 1 << 3 | 1 << 20 | 1 << 63, np.uint64)
    indices, actions = np.empty((2, size), np.int64)
    best_values = np.empty(size, np.float32)
    indptr = np.arange(0, 3 * size + 1, 3)
    numbers = np.float32(noise), np.float32(exploration)
    rng = random_states(size, 1)
    choose_actions(values, indptr, legal, *numbers, rng, indices, actions, best_values)
    assert (best_values == np.float32(0.6)).all()
    picks = indices - indptr[:-1]
    np.testing.assert_array_equal(actions, np.array([3, 20, 63])[picks])
    shares = np.exp(values[:3] / noise) if noise else np.array([0.0, 1.0, 0.0])
    expected = exploration / 3 + (1 - exploration) * shares / shares.sum()
    np.testing.assert_allclose(np.bincount(picks, minlength=3) / size, expected, atol=0.01)


@pytest.mark.parametrize("compiled", [False, True])
def test_what_a_worker_records(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The network gives each recorded action the value that it had when it was chosen. Rewards and
    ends are those of the games."""
    trainer = make(f"{SMALL}bfloat16=false max_plies=60")
    torch.nn.init.normal_(trainer.network.head.weight, std=0.3)
    worker = trainer.workers[0]
    worker.replica.sync_weights(trainer.model)
    worker.play(0.5, compile_arrays(trainer.network.arrays()) if compiled else None)
    roll = worker.rollout
    flat = torch.from_numpy(roll.encodings.reshape(-1, roll.encodings.shape[-1]))
    with torch.inference_mode():
        _, values = trainer.network(flat)
    expected = (roll.best_values[:-1] - roll.costs).reshape(-1)
    np.testing.assert_allclose(values, expected, atol=1e-5)
    assert (roll.costs >= 0).all() and (roll.costs > 0).any()
    steps: list[tuple[np.ndarray, ...]] = []
    play = Games.step

    def step(games: Games, actions: np.ndarray) -> None:
        before = games.seats.copy()
        play(games, actions)
        steps.append((before, games.seats.copy(), games.winners.copy(), games.plies.copy()))

    monkeypatch.setattr(Games, "step", step)
    winning_seats = set()
    for _ in range(16):
        totals, ended, plies_of_ended = worker.play(0.5), 0, 0
        for t, games in enumerate(steps):
            for b, (before, after, winner, plies) in enumerate(zip(*games, strict=True)):
                is_over = winner >= 0 or plies == 60
                reward = 0 if winner < 0 else 1 if winner == before else -1
                recorded = roll.rewards[t, b], roll.dones[t, b], roll.turn_passed[t, b]
                assert recorded == (reward, is_over, before != after)
                ended, plies_of_ended = ended + is_over, plies_of_ended + plies * is_over
                winning_seats.add(int(winner))
        assert totals.tolist() == [ended, plies_of_ended]
        steps.clear()
    assert winning_seats == {-1, 0, 1}


def test_the_columns_of_an_update() -> None:
    """Without a learning rate, they are those of the rollouts and of an unchanged network."""
    rates = "learning_rate=0 final_learning_rate=0"
    trainer = make(f"{SMALL}bfloat16=false td.epochs=3 max_plies=60 {rates}")
    norms, take_step = list[float](), trainer.optimizer_step

    def note_norm() -> float:
        norms.append(take_step())
        return norms[-1]

    trainer.optimizer_step = note_norm
    torch.nn.init.normal_(trainer.network.head.weight, std=0.3)
    for worker in trainer.workers:
        worker.replica.sync_weights(trainer.model)
    start = time.perf_counter()
    row = trainer.train_update()
    assert 0 < row["seconds"] <= time.perf_counter() - start
    assert row["steps_per_second"] == pytest.approx(128 / row["seconds"])
    assert len(norms) == 6 and row["gradient_norm"] == pytest.approx(np.mean(norms))
    errors, variances = list[np.ndarray](), list[tuple[float, float]]()
    for roll in (worker.rollout for worker in trainer.workers):
        encodings = torch.from_numpy(roll.encodings.reshape(-1, roll.encodings.shape[-1]))
        with torch.inference_mode():
            values = trainer.network(encodings)[1].numpy().reshape(roll.returns.shape)
        errors.append(roll.returns - values)
        variances.append((errors[-1].var(), roll.returns.var()))
    left, total = np.sum(variances, axis=0)
    assert row["explained_variance"] == pytest.approx(1 - left / total, abs=1e-4)
    assert row["value_loss"] == pytest.approx(np.square(errors).mean(), rel=1e-4)
    assert plies_per_game([np.array([2, 30]), np.array([1, 12])]) == {"plies_per_game": 14.0}
    assert plies_per_game([np.array([0, 0]), np.array([0, 0])]) == {}


def test_a_gradient_is_the_sum_of_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks and workers share a minibatch, and nothing is left of the minibatch before."""
    monkeypatch.setattr("bao_training.worker._MAX_CHUNK", 10)
    trainer = make(f"{SMALL}bfloat16=false")
    worker = trainer.workers[0]
    worker.play(0.5)
    worker.draw_minibatches(2)
    sums = [worker.gradient(minibatch, 64) for minibatch in (0, 1)]
    [decisions] = worker.minibatches[1:]
    encodings = worker.rollout.encodings.reshape(64, -1)[decisions]
    _, values = trainer.network(torch.from_numpy(encodings))
    errors = values - torch.from_numpy(worker.rollout.returns.reshape(-1)[decisions])
    expected = torch.autograd.grad(errors.square().sum() / 64, list(trainer.network.parameters()))
    torch.testing.assert_close(worker.replica.gradients, list(expected))
    assert len(decisions) == 32 and sums[1] == pytest.approx([errors.square().sum().item()])


def test_a_gradient_that_is_not_finite_changes_nothing() -> None:
    trainer = make(SMALL)
    before = weights(trainer)
    trainer.workers[1].replica.gradients[0][0, 0] = torch.nan
    with pytest.raises(DivergedError, match="diverged: the gradient of update 1 is not finite"):
        trainer.optimizer_step()
    assert weights(trainer) == before


def test_games_begin_before_they_are_cut_short() -> None:
    trainer = make("method=td envs=512 rollout=4 minibatch=64 hidden=[8] max_plies=10")
    plies = {ply for worker in trainer.workers for ply in worker.games.plies.tolist()}
    assert plies == set(range(10))


def test_random_numbers_depend_on_seed_update_and_worker() -> None:
    def draws(seed: int, update: int) -> list[float]:
        torch.manual_seed(update)  # the caller's random numbers have no effect
        trainer = make(f"{SMALL}seed={seed}")
        for worker in trainer.workers:
            worker.games.start_update(update)
        generators = [worker.games.generator for worker in trainer.workers]
        first_weight = trainer.network.trunk[0].weight[0, 0].item()
        return [first_weight, *(generator.random() for generator in generators)]

    (weight, *numbers), second_update, other_seed = draws(1, 0), draws(1, 1), draws(2, 0)
    assert draws(1, 0) == [weight, *numbers] and second_update[0] == weight != other_seed[0]
    assert len({*numbers, *second_update[1:], *other_seed[1:]}) == 6


def test_the_policy_is_the_values() -> None:
    """They are learnt while exploration falls evenly, here over four updates, and the learning rate
    along a half cosine."""
    rates = "learning_rate=0.004 final_learning_rate=0.002"
    trainer = make(f"{SMALL}steps=512 td.exploration=0.5 td.final_exploration=0.1 {rates}")
    rows = [trainer.train_update() for _ in range(3)]
    assert [row["exploration"] for row in rows] == pytest.approx([0.5, 0.4, 0.3])
    fallen = [0.004, 0.003 + 0.001 * 0.5**0.5, 0.003]
    assert [row["learning_rate"] for row in rows] == pytest.approx(fallen)
    agent = NetworkAgent(trainer.network, trainer.ruleset)
    positions, legal = draw("zanzibar", 50)
    output = agent.evaluate(positions, legal)
    np.testing.assert_allclose(output.logits, 6 * output.values, rtol=1e-5)


@pytest.mark.slow
def test_it_learns() -> None:
    settings = "hidden=[64] envs=256 minibatch=1024"
    trainer = make(f"method=td {settings} steps=100000 gamma=1.0")
    while trainer.steps < trainer.config.steps:
        trainer.train_update()
    assert trainer.measure()["score_against_greedy"] > 0.85
