"""The compiled kernel against the literal reference, the recorded cases and itself."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bao_env.engine import kernel
from bao_env.engine.batch import Engine, random_actions, random_states
from bao_env.engine.layout import NORTH, NUM_SEEDS, SOUTH
from bao_env.engine.position import META, PLY, WORDS, pack, packed_opening, unpack
from bao_env.engine.ruleset import RULESETS, Ruleset
from bao_env.notation import action_to_move, format_position, parse_position
from tests import reference
from tests.make_golden import conformance_cases, perft_numbers, pinned
from tests.positions import random_position

# Switches set one by one, so that each is also checked outside its own rule set.
VARIANTS = {
    "short moves": RULESETS["zanzibar"].replace(sow_limit=64),
    "short dutch moves": RULESETS["dutch"].replace(sow_limit=80),
    "endless moves": RULESETS["kujifunza"].replace(sow_limit=5000),
    "footnote 2": RULESETS["dutch"].replace(house_lost_below_min=True),
    "kibao stop, dutch captures": RULESETS["kibao"].replace(
        capture_side="free", endelea_turns=True, capture_limit=63, takasia="zanzibar"
    ),
    "odd mixture": RULESETS["malawi"].replace(
        lone_house="side",
        singleton_takasa="singletons",
        lone_kichwa_takasa="loses",
        takasia="dutch",
    ),
}


def kernel_moves(ruleset: Ruleset, text: str) -> dict[int, str]:
    """All legal actions of a position text and what follows each, by the scalar kernel."""
    rules = ruleset.kernel_rules()
    words = np.zeros(WORDS, np.uint64)
    pack(parse_position(text, ruleset), words)
    mask = int(kernel.legal_mask(rules, words))
    mover = unpack(words).mover
    moves = {}
    for action in range(64):
        if mask >> action & 1:
            after = words.copy()
            result = int(kernel.play(rules, after, np.uint64(action)))
            position = unpack(after)
            seeds = position.pits(0) + position.pits(1) + position.store
            assert sum(seeds) == NUM_SEEDS and min(seeds) >= 0
            if result:
                winner = mover if result == 1 else 1 - mover
            elif not kernel.legal_mask(rules, after):
                winner = 1 - position.mover
            else:
                moves[action] = format_position(position)
                continue
            moves[action] = f"{'SN'[winner]} wins"
    return moves


@pytest.mark.parametrize("name", RULESETS)
def test_conformance(name: str) -> None:
    cases = conformance_cases(name)
    assert len(cases) >= 600
    for case in cases:
        moves = kernel_moves(RULESETS[name], case["position"])
        named = {action_to_move(action): after for action, after in moves.items()}
        assert named == case["moves"], case["position"]


@pytest.mark.parametrize("name", [*RULESETS, *VARIANTS])
def test_random_positions_match_the_reference(name: str, thorough: bool) -> None:
    """With --slow 20,000 positions on the default rule set, fewer on the others."""
    count = (20_000 if name == "zanzibar" else 3_000) if thorough else 700
    ruleset = RULESETS.get(name) or VARIANTS[name]
    rng = random.Random(f"positions of {name}")
    for _ in range(count):
        text = random_position(rng, ruleset)
        assert kernel_moves(ruleset, text) == reference.legal_moves(text, ruleset), text


@pytest.mark.parametrize("name", [*RULESETS, *VARIANTS])
def test_random_games_match_the_reference(name: str, thorough: bool) -> None:
    """With --slow 3,000 plies on the default rule set, fewer on the others."""
    count = (3_000 if name == "zanzibar" else 700) if thorough else 400
    ruleset = RULESETS.get(name) or VARIANTS[name]
    rng = random.Random(f"games of {name}")
    words = packed_opening(ruleset)
    plies = 0
    while plies < count:
        text = format_position(unpack(words))
        moves = kernel_moves(ruleset, text)
        assert moves == reference.legal_moves(text, ruleset), text
        action = rng.choice(list(moves))
        if moves[action].endswith("wins"):
            words = packed_opening(ruleset)
        else:
            kernel.play(ruleset.kernel_rules(), words, np.uint64(action))
            assert format_position(unpack(words)) == moves[action]
        plies += 1


@pytest.mark.parametrize("name", [*RULESETS, *VARIANTS])
def test_batch_equals_scalar(name: str) -> None:
    """Whatever the block, the lane or the thread, a game goes as it does alone."""
    ruleset = RULESETS.get(name) or VARIANTS[name]
    rules = ruleset.kernel_rules()
    engine = Engine(ruleset, threads=2)
    size = 1100  # three blocks, the last one short
    opening, mask = engine.opening()
    positions = np.tile(opening, (size, 1))
    masks = np.full(size, mask)
    winners = np.full(size, -1, np.int8)
    rng = random_states(size, 7)
    actions = np.empty(size, np.int64)
    for _ in range(60):
        random_actions(masks, rng, actions)
        expected = positions.copy()
        results = np.array(
            [
                int(kernel.play(rules, words, np.uint64(action))) if mask else 0
                for words, action, mask in zip(expected, actions, masks, strict=True)
            ]
        )
        expected[masks == 0] = positions[masks == 0]
        movers = positions[:, META] >> np.uint64(18) & np.uint64(1)
        live = masks != 0
        engine.step(positions, actions, masks, winners)
        np.testing.assert_array_equal(positions, expected)
        for i in np.flatnonzero(live):
            if results[i]:
                assert masks[i] == 0 and winners[i] == (
                    movers[i] if results[i] == 1 else 1 - movers[i]
                )
            else:
                assert masks[i] == kernel.legal_mask(rules, positions[i])
                if not masks[i]:
                    assert winners[i] == 1 - unpack(positions[i]).mover
    assert (winners >= 0).any() and (masks != 0).any()


def test_random_play_does_not_depend_on_threads() -> None:
    outcomes = []
    for threads in (1, 2, 3):
        engine = Engine("zanzibar", threads)
        opening, mask = engine.opening()
        positions = np.tile(opening, (2000, 1))
        masks, winners = np.full(2000, mask), np.full(2000, -1, np.int8)
        ended = engine.play_random(positions, masks, winners, random_states(2000, 3), 70)
        outcomes.append((ended, positions.tobytes(), masks.tobytes()))
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert outcomes[0][0] > 1000


def test_illegal_action_changes_nothing() -> None:
    engine = Engine()
    opening, mask = engine.opening()
    positions = np.tile(opening, (4, 1))
    masks, winners = np.full(4, mask), np.full(4, -1, np.int8)
    legal = int(mask).bit_length() - 1
    for bad in (0, -1, 64, 1000):
        before = positions.copy(), masks.copy(), winners.copy()
        with pytest.raises(
            ValueError, match=rf"action {bad} is illegal in game 2; legal there: \["
        ):
            engine.step(positions, np.array([legal, legal, bad, legal]), masks, winners)
        for now, then in zip((positions, masks, winners), before, strict=True):
            np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize("name", RULESETS)
def test_perft(name: str) -> None:
    """Of the opening, to all pinned depths; zanzibar's numbers agree with other programs'."""
    numbers = pinned(name)["perft"]
    assert len(numbers) >= 6
    assert perft_numbers(RULESETS[name], len(numbers)) == numbers


@pytest.mark.parametrize("name", [*RULESETS, *VARIANTS])
@pytest.mark.parametrize("seat", [SOUTH, NORTH])
def test_the_opening_is_the_reference_s(name: str, seat: int) -> None:
    ruleset = RULESETS.get(name) or VARIANTS[name]
    text = format_position(unpack(packed_opening(ruleset, seat)))
    assert text == reference.opening(ruleset, "SN"[seat])


def test_an_endless_move_is_illegal(thorough: bool) -> None:
    """Donkers 1.5a: legal under a limit it stays within, illegal under a smaller one."""
    rng = random.Random(5)
    patient = RULESETS["kujifunza"].replace(sow_limit=2000)
    struck_out = 0
    for _ in range(3000 if thorough else 1000):
        text = random_position(rng, patient)
        struck_out += len(kernel_moves(patient, text)) > len(
            kernel_moves(patient.replace(sow_limit=100), text)
        )
    assert struck_out > (10 if thorough else 3)


def test_plies_are_counted() -> None:
    words = packed_opening(RULESETS["zanzibar"], SOUTH)
    kernel.play(RULESETS["zanzibar"].kernel_rules(), words, np.uint64(20))
    assert words[PLY] == 1
