"""Legal actions as flat arrays: what they list, how they are drawn, what the network reads."""

from __future__ import annotations

import numpy as np
import torch

from agents.nets.encoding import encode
from agents.nets.legal_actions import (
    best_legal_actions,
    find_legal_actions,
    gather_encodings,
    sample_actions,
)
from agents.nets.network import Inputs, NetworkConfig, PolicyNetwork
from bao_env.engine.batch import Engine, random_states
from bao_env.engine.kernel import play, start_of
from bao_env.engine.position import META, unpack
from bao_env.engine.ruleset import RULESETS
from bao_env.notation import format_position
from bao_env.observation import observe
from tests import reference


def some_positions(size: int = 64) -> tuple[Engine, np.ndarray, np.ndarray]:
    engine = Engine()
    opening, mask = engine.opening()
    positions, masks = np.tile(opening, (size, 1)), np.full(size, mask)
    winners = np.full(size, -1, np.int8)
    engine.play_random(positions, masks, winners, random_states(size, 4), 30)
    return engine, positions, masks


def test_options_are_the_legal_actions() -> None:
    engine, positions, masks = some_positions()
    rows, legal_actions, indptr = encode(engine.rules, positions, masks, False)
    expected = [i * 64 + a for i, m in enumerate(masks) for a in range(64) if int(m) >> a & 1]
    assert legal_actions.tolist() == expected
    assert indptr[-1] == len(expected) and np.diff(indptr).tolist() == [
        int(m).bit_count() for m in masks
    ]
    seen = np.zeros((len(rows), 52), np.uint8)
    observe(positions, seen[: len(positions)])
    np.testing.assert_array_equal(rows[:, :52], seen)


def test_a_row_of_an_option_is_the_board_after_it() -> None:
    engine, positions, masks = some_positions()
    rows, legal_actions, _ = encode(engine.rules, positions, masks, True)
    for row, legal_action in zip(rows[: len(legal_actions)], legal_actions, strict=True):
        words = positions[legal_action >> 6].copy()
        viewer = np.array([unpack(words).mover], np.int8)
        play(engine.rules, words, np.uint64(legal_action & 63))
        seen = np.empty((1, 52), np.uint8)
        observe(words[None], seen, viewer)
        np.testing.assert_array_equal(row[:52], seen[0])


def test_the_outlook_is_the_best_reply() -> None:
    """By the literal reference: seeds captured by each start, a win at once, or no move at all."""
    engine, positions, masks = some_positions(128)
    rows, legal_actions, _ = encode(engine.rules, positions, masks, True)
    wins = stuck = several = 0
    for row, legal_action in zip(rows[: len(legal_actions)], legal_actions, strict=True):
        words = positions[legal_action >> 6].copy()
        if play(engine.rules, words, np.uint64(legal_action & 63)):
            assert row[52:].tolist() == [0, 0, 1] + [0] * 32
            continue
        position = unpack(words)
        side = 1 - position.mover
        before = sum(position.pits(side)) + position.store[side]
        best = win = 0
        said = np.zeros(32, int)
        replies = reference.legal_moves(format_position(position), RULESETS["zanzibar"])
        after_win = f"{'SN'[position.mover]} wins"
        for action, text in replies.items():
            reply = words.copy()
            win |= int(play(engine.rules, reply, np.uint64(action))) == 1
            if text == after_win:
                left = unpack(reply)
                captured = before - sum(left.pits(side)) - left.store[side]
            else:
                counts = [sum(map(int, line.split(","))) for line in text.split()[0].split("/")]
                store = int(text.split()[1].split(",")[side])
                captured = before - counts[2 * side] - counts[2 * side + 1] - store
            best = max(best, captured)
            if captured:
                start = int(start_of(words[META], True, np.uint64(action)))
                said[start] = max(said[start], captured + 1)
                several += 1
        assert row[52:55].tolist() == [best, win, not replies]
        np.testing.assert_array_equal(row[55:], said)  # the most, where the house may be kept
        wins += win
        stuck += not replies
    assert wins > 3 and several > 300


def test_draws_follow_the_softmax() -> None:
    size = 40_000
    masks = np.full(size, 0b1011 << 7, np.uint64)
    indptr = 3 * np.arange(size + 1)
    logits = np.tile(np.log([0.2, 0.5, 0.3]).astype(np.float32), size)
    values = np.tile(np.array([1.0, -1.0, 0.0], np.float32), size)
    actions, log_probs = np.empty(size, np.int64), np.empty(size, np.float32)
    expected = np.empty(size, np.float32)
    rng = random_states(size, 0)
    sample_actions(logits, values, indptr, masks, True, rng, actions, log_probs, expected)
    for action, p in ((7, 0.2), (8, 0.5), (10, 0.3)):
        drawn = actions == action
        assert abs(drawn.mean() - p) < 5 * np.sqrt(p * (1 - p) / size)
        np.testing.assert_allclose(log_probs[drawn], np.log(p), atol=1e-5)
    np.testing.assert_allclose(expected, 0.2 - 0.5, atol=1e-5)


def test_best_option_and_games_that_are_over() -> None:
    masks = np.array([0b1010, 0, 0b100, 0b11], np.uint64)
    indptr = np.array([0, 2, 2, 3, 5])
    actions = np.full(4, 9)
    best_legal_actions(np.array([1, 2, 0, 5, 5], np.float32), indptr, masks, actions)
    assert actions.tolist() == [3, 0, 2, 0]


def test_find_options_finds_the_actions() -> None:
    masks = np.array([0b1010, 0b100, 1 << 63 | 1], np.uint64)
    indptr, legal_actions, chosen = find_legal_actions(masks, np.array([3, 2, 63]))
    assert indptr.tolist() == [0, 2, 3, 5]
    assert legal_actions.tolist() == [1, 3, 64 + 2, 128, 128 + 63]
    assert chosen.tolist() == [1, 2, 4]


def test_gather_rows() -> None:
    source = np.arange(20, dtype=np.uint8).reshape(10, 2)
    out = np.empty((3, 2), np.uint8)
    gather_encodings(source, np.array([7, 1]), np.array([1, 2]), out)
    assert out.tolist() == [[14, 15], [2, 3], [4, 5]]


def test_networks_read_what_they_say() -> None:
    """A board network's logits are per action of its position; a moves network's per row."""
    engine, positions, masks = some_positions(8)
    for kind in ("board", "moves"):
        network = PolicyNetwork(NetworkConfig(kind=kind, hidden=(16,)))
        torch.nn.init.normal_(network.head.weight)
        rows, legal_actions, indptr = encode(
            engine.rules, positions, masks, network.config.per_action
        )
        logits, values = network(Inputs(torch.from_numpy(rows), torch.from_numpy(legal_actions)))
        assert len(logits) == (len(rows) if kind == "moves" else len(legal_actions))
        assert len(values) == len(rows)
        assert (values.abs() <= 1).all()
        rows, legal_actions, _ = encode(
            engine.rules, positions[3:4], masks[3:4], network.config.per_action
        )
        alone, _ = network(Inputs(torch.from_numpy(rows), torch.from_numpy(legal_actions)))
        torch.testing.assert_close(logits[indptr[3] : indptr[4]], alone[: len(legal_actions)])
