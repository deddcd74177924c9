"""Compare the compiled kernel with the reference, the conformance cases and, in batches, itself."""

from __future__ import annotations

import json
import random
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bao_env
from bao_env.engine.batch import Engine
from bao_env.engine.layout import NUM_SEEDS, SOUTH
from bao_env.engine.position import to_packed, unpack
from bao_env.engine.ruleset import CHOICES, RULESETS, KernelRules, Ruleset
from bao_env.engine.sampling import random_actions, random_states
from bao_env.game import legal_actions, make_move
from bao_env.notation import action_to_move, format_position, parse_position
from tests import reference
from tests.positions import random_games, random_position

VARIANTS = {
    "short dutch moves": RULESETS["dutch"].replace(sow_limit=80, house_lost_below_min=True),
    "odd mixture": RULESETS["malawi"].replace(
        lone_house="side",
        singleton_takasa="singletons",
        lone_kichwa_takasa="loses",
        takasia="dutch",
    ),
}
"""Rules besides the named rule sets; :func:`random_mixture` draws others."""
DRAWN = 600
"""The number of conformance positions that come from random games; the others were chosen."""
CONFORMANCE = sorted((Path(__file__).parents[1] / "data" / "conformance").iterdir())
EVERY_VARIANT = pytest.mark.parametrize(
    "rules", [*RULESETS.values(), *VARIANTS.values()], ids=[*RULESETS, *VARIANTS]
)


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
    """Kernel and reference agree with the specification, which has a position per line, with all
    its moves."""
    rules = RULESETS[file.stem]
    cases = [json.loads(line) for line in file.read_text(encoding="ascii").splitlines()]
    assert len(cases) > DRAWN
    for number, case in enumerate(cases):
        moves = kernel_moves(rules, case["position"])
        assert moves == case["moves"], case["position"]
        if thorough or number % 6 == 0 or number >= DRAWN:
            assert moves == reference_moves(rules, case["position"]), case["position"]


def random_mixture(rng: random.Random) -> Ruleset:
    """Draw a value for every switch, so that all pairs of values occur sooner or later."""
    switches: dict[str, Any] = {
        "house_min": rng.choice([2, 3, 6, 8]),
        "capture_limit": rng.choice([2, 8, 15, 16, 17, 63]),
        "sow_limit": rng.choice([64, 200, 1000]),
    }
    for field in fields(Ruleset):
        if isinstance(field.default, bool):
            switches[field.name] = rng.random() < 0.5
        elif field.name in CHOICES:
            switches[field.name] = rng.choice(CHOICES[field.name])
    opening = rng.choice(list(RULESETS.values()))
    for name in ("opening_front", "opening_back", "opening_store"):
        switches[name] = getattr(opening, name)
    assert {*switches} | {"name"} == {field.name for field in fields(Ruleset)}
    try:
        return Ruleset("mixture", **switches)
    except ValueError:  # two switches contradict each other
        return random_mixture(rng)


def test_mixtures_of_switches_match_the_reference(thorough: bool, seed: int) -> None:
    """The test fails if the kernel or the reference forgets a switch, alone or in combination."""
    rng = random.Random(seed)
    for _ in range(1_500 if thorough else 150):
        rules = random_mixture(rng)
        for text in [*islice(random_games(rng, rules), 30)] + [
            random_position(rng, rules) for _ in range(30)
        ]:
            assert kernel_moves(rules, text) == reference_moves(rules, text), (text, rules)


def test_the_rules_name_every_switch() -> None:
    page = (Path(bao_env.__file__).parent / "RULES.md").read_text(encoding="utf-8")
    assert [switch for switch in KernelRules._fields if switch not in page] == []


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
