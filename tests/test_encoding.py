"""What a network reads: encodings held against the board and the literal rules, and features."""

from __future__ import annotations

import hashlib

import numpy as np
import torch

from agents.nets.captures import BEST_CAPTURE, IS_STUCK
from agents.nets.encoding import encode, encode_successors
from agents.nets.features import (
    CAPTURES_AT,
    ENCODING_SIZE,
    FEATURES,
    INPUTS_VERSION,
    STARTS_AT,
    expand,
)
from bao_env.engine.action import start_of
from bao_env.engine.batch import Engine
from bao_env.engine.kernel import legal_mask, play
from bao_env.engine.position import META, WORDS, Packed, pack, unpack
from bao_env.engine.ruleset import RULESETS
from bao_env.engine.sampling import random_states
from bao_env.engine.successors import ACTION, MAX_SUCCESSORS, RESULT, SUCCESSOR_WORDS, successors
from bao_env.notation import format_position, parse_position
from bao_env.observation import OBSERVATION_SIZE, observe
from tests import reference

POSITIONS = {
    "zanzibar": (
        "0,0,0,0,6,0,3,0/0,0,0,0,0,0,1,2/0,0,0,0,6,0,3,0/0,0,0,0,0,0,1,2 20,20 SN S -",
        "2,3,0,1,9,2,1,2/4,3,0,6,2,1,0,5/0,0,4,0,0,0,0,1/0,0,0,0,0,0,1,2 7,8 - N -",
        "2,3,0,7,1,8,0,3/5,7,3,2,2,3,4,4/0,0,0,0,0,0,1,0/1,0,0,1,2,1,2,2 0,0 - S A2",
        "0,0,1,1,0,1,0,1/0,0,0,0,1,0,0,1/0,0,7,1,34,0,0,14/0,0,0,0,0,2,0,0 0,0 N N -",
        "0,0,5,5,3,5,0,0/7,3,5,5,4,9,2,4/0,0,0,1,1,1,0,0/1,0,0,1,1,0,1,0 0,0 SN S -",
    ),
    "dutch": (
        "0,0,5,3,0,2,0,4/1,3,1,2,1,1,1,0/1,1,3,1,9,2,3,0/2,5,1,4,1,3,4,0 0,0 - N - A3:14",
        "1,1,0,0,11,0,0,1/1,1,0,0,0,0,0,0/0,3,0,0,1,1,4,0/1,1,1,1,1,1,0,0 16,17 S N -",
        "1,0,3,1,9,0,1,0/0,0,0,0,0,0,0,0/0,1,1,1,8,0,0,1/0,0,0,0,0,0,0,0 18,19 SN S - A5:6",
    ),
}
"""Namua and mtaji, both players, houses, a barred hole, captures that wait for their side."""

BYTE_VALUES = 65
"""Values of a byte: 0 to 64 seeds."""

DIGESTS = {
    # version: (digest of the encodings, digest of the features)
    1: ("de3add131d5e1510", "a820805538d893b4"),
}
"""What networks of each INPUTS_VERSION read, so that nobody changes it unawares."""


def some_positions(size: int = 64, name: str = "zanzibar") -> tuple[Engine, np.ndarray, np.ndarray]:
    engine = Engine(name)
    opening, mask = engine.opening()
    positions, masks = np.tile(opening, (size, 1)), np.full(size, mask)
    winners = np.full(size, -1, np.int8)
    engine.play_random(positions, masks, winners, random_states(size, 4), 30)
    return engine, positions, masks


def encode_texts(per_action: bool) -> np.ndarray:
    """The encodings of POSITIONS, of all rule sets one after another, without padding."""
    parts = []
    for name, texts in POSITIONS.items():
        rules = RULESETS[name].kernel_rules()
        words = np.empty((len(texts), WORDS), np.uint64)
        for k, text in enumerate(texts):
            pack(parse_position(text, RULESETS[name]), words[k])
        masks = np.array([legal_mask(rules, position) for position in words], np.uint64)
        encodings, legal_actions, _ = encode(rules, words, masks, per_action)
        parts.append(encodings[: len(legal_actions) if per_action else len(texts)])
    return np.concatenate(parts)


def each_byte_alone() -> np.ndarray:
    """An encoding for each value of each byte, the other bytes zero."""
    encodings = np.zeros((ENCODING_SIZE, BYTE_VALUES, ENCODING_SIZE), np.uint8)
    for byte in range(ENCODING_SIZE):
        encodings[byte, :, byte] = np.arange(BYTE_VALUES)
    return encodings.reshape(-1, ENCODING_SIZE)


def features(encodings: np.ndarray) -> np.ndarray:
    """Features as float32."""
    return torch.from_numpy(expand(encodings)).view(torch.bfloat16).float().numpy()


def digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def test_a_position_is_the_board_and_its_legal_actions() -> None:
    engine, positions, masks = some_positions()
    encodings, legal_actions, indptr = encode(engine.rules, positions, masks, False)
    expected = [i * 64 + a for i, m in enumerate(masks) for a in range(64) if int(m) >> a & 1]
    assert legal_actions.tolist() == expected
    assert indptr[-1] == len(expected) and np.diff(indptr).tolist() == [
        int(m).bit_count() for m in masks
    ]
    seen = np.zeros((len(positions), OBSERVATION_SIZE), np.uint8)
    observe(positions, seen)
    np.testing.assert_array_equal(encodings[: len(positions), :CAPTURES_AT], seen)
    assert not encodings[len(positions) :].any()


def test_an_action_is_the_board_after_it() -> None:
    engine, positions, masks = some_positions()
    encodings, legal_actions, _ = encode(engine.rules, positions, masks, True)
    for encoding, legal_action in zip(encodings[: len(legal_actions)], legal_actions, strict=True):
        words = positions[legal_action >> 6].copy()
        viewer = np.array([unpack(words).mover], np.int8)
        play(engine.rules, words, np.uint64(legal_action & 63))
        seen = np.empty((1, OBSERVATION_SIZE), np.uint8)
        observe(words[None], seen, viewer)
        np.testing.assert_array_equal(encoding[:CAPTURES_AT], seen[0])


def test_captures_are_those_of_the_best_reply() -> None:
    """By the literal reference: seeds captured by each start, a win at once, or no move at all."""
    engine, positions, masks = some_positions(128)
    encodings, legal_actions, _ = encode(engine.rules, positions, masks, True)
    wins = stuck = several = 0
    for encoding, legal_action in zip(encodings[: len(legal_actions)], legal_actions, strict=True):
        words = positions[legal_action >> 6].copy()
        if play(engine.rules, words, np.uint64(legal_action & 63)):
            assert encoding[CAPTURES_AT:].tolist() == [0, 0, 1] + [0] * 32
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
        assert encoding[CAPTURES_AT:STARTS_AT].tolist() == [best, win, not replies]
        np.testing.assert_array_equal(encoding[STARTS_AT:], said)  # most, where a house may be kept
        wins += win
        stuck += not replies
    assert wins > 3 and several > 300


def test_a_search_reads_what_a_batch_reads() -> None:
    """From successors as from positions and actions; what is decided is left out."""
    compared = lost = 0
    for name in ("zanzibar", "dutch", "kujifunza"):
        engine, positions, masks = some_positions(100, name)
        boards, _, _ = encode(engine.rules, positions, masks, False)
        after, legal_actions, _ = encode(engine.rules, positions, masks, True)
        by_action = dict(zip(legal_actions.tolist(), after, strict=False))
        found = np.zeros((MAX_SUCCESSORS + 1, ENCODING_SIZE), np.uint8)
        for i, words in enumerate(positions):
            children = np.zeros((MAX_SUCCESSORS, SUCCESSOR_WORDS), np.uint64)
            count = successors(engine.rules, Packed.of(words), children, 0)
            assert encode_successors(engine.rules, 0, words, children, 0, count, found, 1) == 2
            np.testing.assert_array_equal(found[1], boards[i])
            before = children[:count, RESULT].copy()
            end = encode_successors(engine.rules, 1, words, children, 0, count, found, 1)
            k = 1
            for e in range(count):
                encoding = by_action[i * 64 + int(children[e, ACTION])]
                if children[e, RESULT] == 0:
                    np.testing.assert_array_equal(found[k], encoding)
                    k += 1
                    compared += 1
                elif before[e] == 0:
                    assert encoding[CAPTURES_AT + IS_STUCK] == 1
                    lost += 1
            assert k == end
    assert compared > 500 and lost > 3


def test_features_are_additive() -> None:
    """Those of an encoding are the sum of those of its bytes, as compiled networks take it."""
    assert not features(np.zeros((1, ENCODING_SIZE), np.uint8)).any()
    of_bytes = features(each_byte_alone()).reshape(ENCODING_SIZE, BYTE_VALUES, FEATURES)
    drawn = np.random.default_rng(1).integers(0, BYTE_VALUES, (200, ENCODING_SIZE)).astype(np.uint8)
    encodings = np.concatenate([drawn, encode_texts(False), encode_texts(True)])
    expected = np.array([of_bytes[np.arange(ENCODING_SIZE), e].sum(axis=0) for e in encodings])
    np.testing.assert_array_equal(features(encodings), expected)
    assert of_bytes.any(axis=(0, 1)).all()  # no feature is idle


def test_what_is_read_has_a_version() -> None:
    encodings = np.concatenate([encode_texts(False), encode_texts(True)])
    captures = encodings[:, CAPTURES_AT:]
    assert captures[:, BEST_CAPTURE].any() and captures[:, IS_STUCK].any()
    found = digest(encodings), digest(expand(np.concatenate([each_byte_alone(), encodings])))
    assert found == DIGESTS.get(INPUTS_VERSION), (
        f"what a network reads has changed: raise INPUTS_VERSION in agents/nets/features.py, say "
        f"there what changed, and note {found} here under the new version"
    )
