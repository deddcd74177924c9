"""Test that a forged ``last.safetensors`` is refused, or is a run that goes on.

A digest guards against damage, not against people, and compiled code checks no bounds. What was
found once is in refused/training.txt.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint import Checkpoint, CheckpointError, model_arrays
from bao_env.engine.batch import Engine
from bao_env.engine.position import PLY
from bao_env.engine.ruleset import RULESETS
from bao_training.saved import check_positions, digest
from bao_training.trainer import DivergedError
from tests.positions import mixed_batch
from tests.rulesets import EVERY_RULESET
from tests.training.runs import make

SMALL = "hidden=[4] envs=4 rollout=8 minibatch=16 workers=1 max_plies=200 ruleset=dutch "
SEARCH = "method=alphazero alphazero.search=alphabeta alphazero.nodes=20 alphazero.buffer=1000 "
INTEGERS = st.sampled_from([0, 1, 63, 64, 127, 255, 1 << 31, 1 << 62, 1 << 63, (1 << 64) - 1])
FLOATS = st.sampled_from([0.0, -1.0, 1e-40, 3e38, np.inf, np.nan])


@pytest.fixture(scope="module", params=["method=td ", SEARCH], ids=["td", "search"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a trainer, and its checkpoint after games have ended."""
    trainer, path = make(SMALL + request.param), tmp_path_factory.mktemp("run") / "last"
    for _ in range(40):
        trainer.train_update()
    trainer.save(path)
    return trainer, checkpoint.load(path, arrays=True)


def signed(saved: Checkpoint, arrays: checkpoint.Arrays) -> Checkpoint:
    """Return a checkpoint with other arrays, and their digest."""
    forged = replace(saved, arrays=arrays, info=dict(saved.info))
    forged.info["digest"] = digest(forged.info, arrays | model_arrays(forged))
    return forged


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_forged_runs_are_refused_or_go_on(run: Any, data: st.DataObject) -> None:
    trainer, saved = run
    arrays = dict(saved.arrays)
    names = sorted(name for name in arrays if not name.startswith("adam"))
    for name in data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)):
        array = arrays[name] = arrays[name].copy()
        flat = array.reshape(-1)
        where = data.draw(st.sampled_from(["all", "one", "swapped"]))
        if where == "swapped":
            flat[:] = np.roll(flat, data.draw(st.integers(1, 7)))
        else:
            number = data.draw(FLOATS if array.dtype.kind == "f" else INTEGERS)
            place = data.draw(st.integers(0, flat.size - 1))
            chosen = slice(None) if where == "all" else slice(place, place + 1)
            with np.errstate(over="ignore"):
                flat[chosen] = np.array(number).astype(array.dtype)
    try:
        trainer.restore(signed(saved, arrays))
        for _ in range(2):
            trainer.train_update()
    except (CheckpointError, DivergedError) as error:
        assert "\n" not in str(error) and len(str(error)) < 500


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
