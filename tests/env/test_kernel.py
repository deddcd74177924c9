"""Compare the compiled kernel with the reference, the conformance cases and, in batches, itself."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

import bao_env
from bao_env.engine.batch import Engine
from bao_env.engine.layout import NUM_SEEDS, SOUTH
from bao_env.engine.position import to_packed, unpack
from bao_env.engine.ruleset import CHOICES, KERNEL_SWITCHES, RULESETS, Ruleset
from bao_env.engine.sampling import random_actions, random_states
from bao_env.game import legal_actions, make_move
from bao_env.notation import action_to_move, format_position, parse_position
from tests import reference
from tests.positions import random_position

# Switches set one by one, so that each is also checked outside its own rule set.
VARIANTS = {
    "short moves": RULESETS["zanzibar"].replace(sow_limit=64),
    "short dutch moves": RULESETS["dutch"].replace(sow_limit=80),
    "single seeds are spared": RULESETS["zanzibar"].replace(takasia_spares_singletons=True),
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
DRAWN = 600
"""The number of conformance positions that come from random games; the others are chosen."""
CONFORMANCE = sorted((Path(__file__).parents[1] / "data" / "conformance").iterdir())
EVERY_VARIANT = pytest.mark.parametrize(
    "rules", [*RULESETS.values(), *VARIANTS.values()], ids=[*RULESETS, *VARIANTS]
)


def test_every_switch_is_tried() -> None:
    """Each value of a word and each other switch occurs in the rules and in a rule set that is
    compared below, so a switch that the kernel or the reference forgets fails there."""
    tried = [*RULESETS.values(), *VARIANTS.values()]
    page = (Path(bao_env.__file__).parent / "RULES.md").read_text(encoding="utf-8")
    for switch in KERNEL_SWITCHES:
        values = {getattr(rules, switch) for rules in tried}
        assert values >= {*CHOICES.get(switch, ())} and len(values) > 1, switch
        assert switch in page, switch


def reference_moves(rules: Ruleset, text: str) -> dict[str, str]:
    """Return the position or winner after each legal move, by its name."""
    moves = reference.legal_moves(text, rules)
    return {action_to_move(action): after for action, after in moves.items()}


def kernel_moves(rules: Ruleset, text: str) -> dict[str, str]:
    """Return what `reference_moves` returns, computed by the scalar kernel."""
    packed = to_packed(parse_position(text, rules))
    moves = {}
    for action in legal_actions(packed, rules):
        after = packed.copy()
        outcome = make_move(after, rules, action)[1]
        position = unpack(after)
        seeds = position.pits(0) + position.pits(1) + position.store
        assert sum(seeds) == NUM_SEEDS and min(seeds) >= 0
        name = action_to_move(action)
        moves[name] = format_position(position)
        if outcome:
            moves[name] = "S wins" if outcome.winner == SOUTH else "N wins"
    return moves


@pytest.mark.parametrize("file", CONFORMANCE, ids=[file.stem for file in CONFORMANCE])
def test_conformance(file: Path, thorough: bool) -> None:
    """Kernel and reference agree with the specification: a position a line, with all its moves."""
    rules = RULESETS[file.stem]
    cases = [json.loads(line) for line in file.read_text(encoding="ascii").splitlines()]
    assert len(cases) > DRAWN
    for number, case in enumerate(cases):
        moves = kernel_moves(rules, case["position"])
        assert moves == case["moves"], case["position"]
        if thorough or number % 6 == 0 or number >= DRAWN:
            assert moves == reference_moves(rules, case["position"]), case["position"]


@EVERY_VARIANT
def test_random_positions_match_the_reference(rules: Ruleset, thorough: bool, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(4_000 if thorough else 400):
        text = random_position(rng, rules)
        assert kernel_moves(rules, text) == reference_moves(rules, text), text


@EVERY_VARIANT
def test_random_games_match_the_reference(rules: Ruleset, thorough: bool, seed: int) -> None:
    rng = random.Random(seed)
    text = reference.opening(rules)
    for _ in range(1_000 if thorough else 250):
        moves = kernel_moves(rules, text)
        assert moves == reference_moves(rules, text), text
        text = rng.choice(list(moves.values()))
        if text in reference.WINS.values():
            text = reference.opening(rules)


@EVERY_VARIANT
def test_batch_equals_scalar(rules: Ruleset, seed: int) -> None:
    """A game does not depend on its block, lane or thread."""
    engine = Engine(rules, threads=2)
    size = 1100  # three blocks, the last one short
    positions, legal, winners = engine.new_games(size)
    rng = random_states(size, seed)
    actions = np.empty(size, np.int64)
    for _ in range(40):
        random_actions(legal, rng, actions)
        expected = positions.copy(), np.zeros_like(legal), winners.copy()
        for i in np.flatnonzero(legal):
            expected[1][i], outcome = make_move(expected[0][i], rules, actions[i])
            if outcome and outcome.winner is not None:
                expected[2][i] = outcome.winner
        engine.step(positions, actions, legal, winners)
        np.testing.assert_equal((positions, legal, winners), expected)
    assert (winners >= 0).any() and (legal != 0).any()
