"""Test the inputs of networks: encodings against the board and the rules, and features."""

from __future__ import annotations

import hashlib

import numpy as np

from bao_agents.nets.captures import BEST_CAPTURE, IS_STUCK
from bao_agents.nets.encoding import encode
from bao_agents.nets.features import (
    CAPTURES_AT,
    ENCODING_SIZE,
    INPUTS_VERSION,
    STARTS_AT,
    expand,
)
from bao_env import RULESETS
from bao_env.compiled.compile import jit
from bao_env.engine.action import actions_of
from bao_env.engine.kernel import legal_of, play
from bao_env.engine.position import META, movers, turn_of, unpack
from bao_env.engine.start_encoding import start_of
from bao_env.observation import OBSERVATION_SIZE, observe
from tests.positions import draw, pack_texts, seeds_of
from tests.rulesets import EVERY_RULESET

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
"""Positions in namua and mtaji, for both players, with houses, a barred pit, and captures whose
side is still to be chosen."""

BYTE_VALUES = 65
"""Values of a byte: 0 to 64 seeds."""

DIGESTS = {1: ("61757f9714051949", "050a82f0a0c9fe7f")}
"""Digests of the encodings and of the features of each INPUTS_VERSION."""


@jit
def _start_of(meta: np.uint64, action: np.uint64) -> np.uint64:
    return start_of(meta, True, action)


def encode_texts() -> np.ndarray:
    """Encode POSITIONS, rule set by rule set, without padding."""
    parts = []
    for name, texts in POSITIONS.items():
        arrays = pack_texts(list(texts), RULESETS[name])
        encodings, legal_actions, _ = encode(RULESETS[name].kernel, *arrays)
        parts.append(encodings[: len(legal_actions)])
    return np.concatenate(parts)


def each_byte_alone() -> np.ndarray:
    """Return an encoding for each value of each byte, the other bytes zero."""
    encodings = np.zeros((ENCODING_SIZE, BYTE_VALUES, ENCODING_SIZE), np.uint8)
    for byte in range(ENCODING_SIZE):
        encodings[byte, :, byte] = np.arange(BYTE_VALUES)
    return encodings.reshape(-1, ENCODING_SIZE)


def digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


@EVERY_RULESET
def test_encoding_of_an_action(ruleset: str) -> None:
    """An encoding shows the board after the action, and the best reply, found by playing all
    replies.

    It also shows the seeds that each start captures, whether the reply wins, and whether there is
    no reply.
    """
    rules = RULESETS[ruleset].kernel
    positions, legal = draw(ruleset)
    encodings, legal_actions, _ = encode(rules, positions, legal)
    assert not encodings[len(legal_actions) :].any()
    viewers = movers(positions).astype(np.int8)
    observation = np.empty((1, OBSERVATION_SIZE), np.uint8)
    wins = stuck = several = 0
    for encoding, legal_action in zip(encodings[: len(legal_actions)], legal_actions, strict=True):
        i, action = divmod(int(legal_action), 64)
        position = positions[i].copy()
        won = play(rules, position, np.uint64(action))
        observe(position[None], observation, viewers[i : i + 1])
        np.testing.assert_array_equal(encoding[:CAPTURES_AT], observation[0])
        if won:
            assert encoding[CAPTURES_AT:].tolist() == [0, 0, 1] + [0] * 32
            continue
        if unpack(position).pending is not None:
            continue  # a mover who must choose a side makes the reply, too
        side = 1 - turn_of(position)
        best = win = 0
        by_start = np.zeros(32, int)
        replies = actions_of(legal_of(rules, position))
        for action in replies:
            reply = position.copy()
            win |= int(play(rules, reply, np.uint64(action))) == 1
            captured = seeds_of(position, side) - seeds_of(reply, side)
            pit = unpack(reply).pending
            if pit is not None:  # the capture waits, its seeds still in their pit
                captured += unpack(reply).front[side][7 - pit]
            best = max(best, captured)
            if captured:
                start = int(_start_of(position[META], np.uint64(action)))
                by_start[start] = max(by_start[start], captured + 1)
                several += 1
        assert encoding[CAPTURES_AT:STARTS_AT].tolist() == [best, win, not replies]
        np.testing.assert_array_equal(
            encoding[STARTS_AT:], by_start
        )  # the larger count of both choices
        wins += win
        stuck += not replies
    assert (wins > 3 or ruleset == "dutch") and several > 300


def test_inputs_have_a_version() -> None:
    encodings = encode_texts()
    captures = encodings[:, CAPTURES_AT:]
    assert captures[:, BEST_CAPTURE].any() and captures[:, IS_STUCK].any()
    digests = digest(encodings), digest(expand(np.concatenate([each_byte_alone(), encodings])))
    assert digests == DIGESTS.get(INPUTS_VERSION), (
        f"the inputs of networks have changed: raise INPUTS_VERSION in nets/features.py, "
        f"and note {digests} here under the new version"
    )
