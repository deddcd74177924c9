"""Test TD(lambda): returns against their definition, how actions are chosen, what is recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from bao_agents.nets.answers import LINE_PLIES, LINES_AT, NUMBERS
from bao_agents.nets.compiled import compile_network
from bao_agents.nets.encoding import encode
from bao_agents.nets.exchanges import SUMMARY_SIZE, WIN
from bao_agents.nets.features import (
    ANSWERS_AT,
    REPLIES_FEATURES,
    REPLIES_SIZE,
    SUMMARY_AT,
    expand,
)
from bao_agents.nets.head import HAS_LOST, HAS_WON, OPPONENT_NEXT, SAME_NEXT
from bao_agents.nets.network import Inputs, NetworkConfig, PolicyNetwork
from bao_agents.nets.policy import NetworkAgent
from bao_env import RULESETS
from bao_env.engine.action import actions_of
from bao_env.engine.batch import Engine
from bao_env.engine.kernel import play
from bao_env.engine.position import movers
from bao_env.engine.sampling import random_states
from bao_env.envs.afterstates import Afterstates, list_afterstates
from bao_env.observation import OBSERVATION_SIZE, observe
from bao_env.observation.observer import get_observer
from bao_env.observation.planes import STEPS
from bao_training.config import ConfigError
from bao_training.td import choose_actions, lambda_returns
from tests.positions import random_play
from tests.training import check_resumed, make

SMALL = "method=td envs=16 rollout=8 minibatch=64 hidden=[8] workers=2 "


@pytest.mark.parametrize("gamma, lam", [(1.0, 0.7), (0.9, 1.0), (1.0, 0.0)])
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


@pytest.mark.parametrize("noise, exploration", [(0.0, 0.0), (0.5, 0.0), (0.0, 1.0), (0.5, 0.2)])
def test_how_actions_are_chosen(noise: float, exploration: float) -> None:
    """The best action, one drawn from the softmax of value / noise, or a random one."""
    size = 60_000
    values = np.tile(np.array([0.1, 0.6, -0.4], np.float32), size)
    legal = np.full(size, 1 << 3 | 1 << 20 | 1 << 63, np.uint64)
    chosen, actions = np.empty((2, size), np.int64)
    best = np.empty(size, np.float32)
    indptr = np.arange(0, 3 * size + 1, 3)
    numbers = np.float32(noise), np.float32(exploration)
    rng = random_states(size, 1)
    choose_actions(values, indptr, legal, *numbers, rng, chosen, actions, best)
    assert (best == np.float32(0.6)).all()
    picks = chosen - indptr[:-1]
    np.testing.assert_array_equal(actions, np.array([3, 20, 63])[picks])
    shares = np.exp(values[:3] / noise) if noise else np.array([0.0, 1.0, 0.0])
    expected = exploration / 3 + (1 - exploration) * shares / shares.sum()
    np.testing.assert_allclose(np.bincount(picks, minlength=3) / size, expected, atol=0.01)


def board_features(row: np.ndarray) -> list[float]:
    """Return the features of the board in the first 52 bytes of an encoding."""
    steps = (float(pit >= step) for step in STEPS for pit in row[:32])
    return [*(row[:34] / 8), *steps, *row[34:52]]


def summarise(columns: np.ndarray, legal: int) -> tuple[list[int], int]:
    """Return the summary of the exchanges in 256 columns, and the action with the best balance."""
    actions = actions_of(legal)
    captured, wins, replies, reply_wins = columns.reshape(4, 64)[:, actions].astype(int)
    captured_or_won = np.where(wins, WIN, captured)
    reply = np.where(reply_wins, WIN, replies)
    balance = captured_or_won - reply
    order = np.argsort(-balance, kind="stable")
    best, second = (balance[order[i]] if len(order) > i else 0 for i in (0, 1))
    at_best = [captured_or_won[order[0]], reply[order[0]]] if actions else [0, 0]
    numbers = [
        len(actions),
        (captured > 0).sum(),
        (reply_wins == 0).sum(),
        (reply == 0).sum(),
        (captured_or_won > reply).sum(),
        max(captured, default=0),
        max(captured_or_won[reply == 0], default=0),
        max(best, 0),
        max(-best, 0),
        *at_best,
        max(second, 0),
        max(-second, 0),
    ]
    return numbers, actions[order[0]] if actions else -1


@pytest.mark.parametrize("ruleset", RULESETS)
def test_encodings_for_replies_are_afterstates(ruleset: str) -> None:
    """They are the observations of the player who moves next, as the environment lists them."""
    rules = RULESETS[ruleset]
    positions, masks = (array[:300] for array in random_play(ruleset))
    encodings, legal_actions, indptr = encode(rules.kernel, positions, masks, "afterstate+replies")
    observer = get_observer("replies", rules, np.uint8)
    after = list_afterstates(Engine(rules), observer, positions, masks)
    np.testing.assert_array_equal(legal_actions & 63, after.actions)
    np.testing.assert_array_equal(indptr, after.indptr)
    count = len(legal_actions)
    ends = encodings[:count, -1]
    going = after.results == 0
    seen = encodings[:count, :SUMMARY_AT]
    np.testing.assert_array_equal(seen[going], after.observations[going])
    np.testing.assert_array_equal(ends == HAS_WON, after.results == 1)
    np.testing.assert_array_equal(ends == HAS_LOST, after.results == -1)
    np.testing.assert_array_equal(ends == OPPONENT_NEXT, going & (after.signs == -1))
    np.testing.assert_array_equal(ends == SAME_NEXT, going & (after.signs == 1))
    assert (after.results == 1).sum() > 3

    features = torch.from_numpy(expand(encodings[:50])).view(torch.bfloat16).float().numpy()
    assert features.shape == (50, REPLIES_FEATURES)
    for row, found in zip(encodings[:50].astype(int), features, strict=True):
        columns = row[52:SUMMARY_AT].reshape(4, 64)
        boards_at, lines_at = ANSWERS_AT + NUMBERS, ANSWERS_AT + LINES_AT
        expected = [
            *board_features(row),
            *(columns[0] / 8),
            *columns[1],
            *(columns[2] / 8),
            *columns[3],
            *(columns[0] > 0),
            *(columns[2] > 0),
            *(float(number >= step) for number in row[SUMMARY_AT:boards_at] for step in STEPS),
            *board_features(row[boards_at:]),
            *board_features(row[boards_at + 52 :]),
            *(float(number >= step) for number in row[lines_at:-1] for step in STEPS),
        ]
        np.testing.assert_array_equal(found, np.array(expected, np.float32))


@pytest.mark.parametrize("ruleset", RULESETS)
def test_summaries_of_exchanges(ruleset: str) -> None:
    rules = RULESETS[ruleset]
    positions, masks = (array[:300] for array in random_play(ruleset))
    encodings, *_ = encode(rules.kernel, positions, masks, "afterstate+replies")
    after = list_afterstates(
        Engine(rules), get_observer("replies", rules, np.uint8), positions, masks
    )
    for row, legal in zip(encodings, after.legal, strict=False):
        assert row[SUMMARY_AT:ANSWERS_AT].tolist() == summarise(row[52:SUMMARY_AT], legal)[0]


def line_after(engine: Engine, after: Afterstates, action: tuple[int, int]) -> list[list[int]]:
    """Return the summaries of the plies that follow an action and the answer to it."""
    observer = get_observer("replies", engine.ruleset, np.uint8)
    k, answer = action
    words, mask = after.positions[k : k + 1].copy(), after.legal[k : k + 1].copy()
    winner, seen = np.full(1, -1, np.int8), np.empty((1, SUMMARY_AT), np.uint8)
    summaries: list[list[int]] = []
    while answer >= 0 and len(summaries) < LINE_PLIES:
        engine.step(words, np.array([answer]), mask, winner)
        if not mask[0]:
            break
        observer.fill(words, mask, movers(words).astype(np.int8), seen)
        numbers, answer = summarise(seen[0, 52:], mask[0])
        summaries.append([int(number) for number in numbers])
    return summaries


@pytest.mark.parametrize("ruleset", RULESETS)
def test_answers(ruleset: str) -> None:
    """They follow from the exchanges after each action, as the environment lists them."""
    rules = RULESETS[ruleset]
    engine, observer = Engine(rules), get_observer("replies", rules, np.uint8)
    positions, masks = (array[:300] for array in random_play(ruleset))
    encodings, *_ = encode(rules.kernel, positions, masks, "afterstate+replies")
    boards = list_afterstates(engine, observer, positions, masks)
    after = list_afterstates(engine, observer, boards.positions, boards.legal)
    viewers = movers(after.positions).astype(np.int8)
    seen = np.empty((1, OBSERVATION_SIZE), np.uint8)
    turns = wins = losses = 0
    for row, low, high in zip(encodings, after.indptr, after.indptr[1:], strict=False):
        if low == high:  # the game is over
            assert not row[ANSWERS_AT:-1].any()
            continue
        found = []
        for k in range(low, high):
            numbers, answer = summarise(after.observations[k, 52:], after.legal[k])
            gain = int(row[52 + after.actions[k]])
            balance = gain + int(after.signs[k]) * (numbers[7] - numbers[8])
            if after.results[k] == 1:
                balance = WIN
            found.append((min(max(balance, -WIN), WIN), numbers, k, answer))
            turns += after.signs[k] == 1
        balances = [balance for balance, *_ in found]
        found.sort(key=lambda item: -item[0])
        best, numbers, k, answer = found[0]
        second, second_numbers = found[1][:2] if len(found) > 1 else (0, [0] * SUMMARY_SIZE)
        assert row[ANSWERS_AT : ANSWERS_AT + NUMBERS].tolist() == [
            max(best, 0),
            max(-best, 0),
            max(second, 0),
            max(-second, 0),
            sum(balance > 0 for balance in balances),
            sum(balance >= 0 for balance in balances),
            *numbers,
            *second_numbers,
        ]
        words, viewer = after.positions[k : k + 1].copy(), viewers[k : k + 1]
        lines_at = ANSWERS_AT + LINES_AT
        first, following = row[ANSWERS_AT + NUMBERS : lines_at].reshape(2, OBSERVATION_SIZE)
        observe(words, seen, viewer)
        np.testing.assert_array_equal(first, seen[0])
        if answer < 0:
            assert not following.any()
        else:
            play(rules.kernel, words[0], np.uint64(answer))
            observe(words, seen, viewer)
            np.testing.assert_array_equal(following, seen[0])
        lines = row[lines_at:-1].reshape(LINE_PLIES, 2, SUMMARY_SIZE)
        for i in range(2):
            expected = line_after(engine, after, found[i][2:]) if i < len(found) else []
            ended = [[0] * SUMMARY_SIZE] * (LINE_PLIES - len(expected))
            assert lines[:, i].tolist() == expected + ended
        wins += best == WIN
        losses += best < 0
    assert wins > 10 and losses > 10 and (turns > 10) == (ruleset == "dutch")


def test_values_are_those_of_who_chooses() -> None:
    torch.manual_seed(1)
    network = PolicyNetwork(NetworkConfig("afterstate+replies", (8,)))
    encodings = torch.zeros((4, REPLIES_SIZE), dtype=torch.uint8)
    encodings[:, -1] = torch.tensor([OPPONENT_NEXT, SAME_NEXT, HAS_WON, HAS_LOST])
    torch.nn.init.normal_(network.head.weight)
    with torch.inference_mode():
        _, values = network(Inputs(encodings, torch.zeros(0, dtype=torch.int64)))
    assert values[0] == -values[1] != 0
    assert values[2:].tolist() == [1.0, -1.0]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", ["afterstate", "afterstate+replies"])
def test_what_a_worker_records(kind: str, compiled: bool) -> None:
    """The network values each recorded action as high as it was when it was chosen."""
    trainer = make(f"{SMALL}network_kind={kind} bfloat16=false max_plies=60")
    torch.nn.init.normal_(trainer.network.head.weight, std=0.3)
    worker = trainer.workers[0]
    worker.replica.sync_weights(trainer.network)
    worker.collect(0.5, compile_network(trainer.network) if compiled else None)
    roll = worker.rollout
    flat = torch.from_numpy(roll.encodings.reshape(-1, roll.encodings.shape[-1]))
    with torch.inference_mode():
        _, values = trainer.network(Inputs(flat, torch.zeros(0, dtype=torch.int64)))
    expected = (roll.best[:-1] - roll.costs).reshape(-1)
    np.testing.assert_allclose(values, expected, atol=1e-5)
    assert (roll.costs >= 0).all() and (roll.costs > 0).any()


def test_the_policy_is_the_values() -> None:
    trainer = make(SMALL + "network_kind=afterstate")
    trainer.train_update()
    agent = NetworkAgent(trainer.network, trainer.ruleset)
    positions, masks = (array[:50] for array in random_play("zanzibar"))
    output = agent.evaluate(positions, masks)
    np.testing.assert_allclose(output.logits, 6 * output.values, rtol=1e-5)


def test_a_board_network_is_refused() -> None:
    with pytest.raises(ConfigError, match="td needs a network that values each legal action"):
        make("method=td network_kind=position")


def test_resumed_run_is_the_same_run(tmp_path: Path) -> None:
    settings = SMALL + "network_kind=afterstate+replies steps=512"
    check_resumed(settings, tmp_path / "half.safetensors", 2, 2)


@pytest.mark.slow
def test_it_learns() -> None:
    settings = "network_kind=afterstate+replies hidden=[64] envs=256 minibatch=1024"
    trainer = make(f"method=td {settings} steps=100000 gamma=1.0")
    while trainer.steps < trainer.config.steps:
        trainer.train_update()
    assert trainer.evaluate()["score_against_greedy"] > 0.85
