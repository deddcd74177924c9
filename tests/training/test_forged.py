"""Test that the positions of a saved run are those of running games."""

from __future__ import annotations

import numpy as np

from bao_env.engine.batch import Engine
from bao_env.engine.position import PLY
from bao_env.engine.ruleset import RULESETS
from bao_training.saved import check_positions
from tests.positions import mixed_batch
from tests.rulesets import EVERY_RULESET


@EVERY_RULESET
def test_only_running_games_are_positions(ruleset: str) -> None:
    """Those of real games pass; each bit that is flipped in one makes it another or is refused."""
    engine = Engine(ruleset)
    positions = mixed_batch(RULESETS[ruleset], 200, seed=1)
    legal, winners = np.zeros(len(positions), np.uint64), np.full(len(positions), -1, np.int8)
    engine.find_legal(positions, legal, winners)
    positions, legal = positions[winners < 0], legal[winners < 0]
    check_positions(positions, legal, engine)
    refused = 0
    for bit in range(64 * PLY):
        changed = positions[bit % len(positions)][None].copy()
        changed[0, bit // 64] ^= np.uint64(1 << bit % 64)
        try:
            check_positions(changed, legal[bit % len(positions)][None], engine)
        except ValueError:
            refused += 1
    assert refused > 300
