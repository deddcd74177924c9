"""``bao export``: the ONNX file has the network's outputs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from bao_agents.export import features
from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint import Checkpoint
from bao_agents.nets.checkpoint_files import CHECKPOINTS
from bao_agents.nets.policy import NetworkAgent
from bao_training.cli import main as bao

from bao_env.engine.ruleset import RULESETS, Ruleset
from tests.conftest import Capsys
from tests.networks import make_network
from tests.positions import random_play


@pytest.mark.parametrize(
    ("kind", "architecture", "ruleset"),
    [
        ("board", "mlp", "zanzibar"),
        ("moves", "mlp", "dutch"),
        ("moves", "residual", "kujifunza"),
        ("replies", "mlp", "dutch"),
    ],
)
def test_exported_network_has_the_same_outputs(
    kind: str, architecture: str, ruleset: str, tmp_path: Path
) -> None:
    network = make_network(kind, (32, 32), architecture)
    rules = RULESETS[ruleset]
    checkpoint.save(tmp_path / "network.safetensors", Checkpoint(network, rules))
    file = tmp_path / "network.onnx"
    assert bao(["export", str(tmp_path / "network.safetensors"), str(file)]) == 0
    metadata = {entry.key: entry.value for entry in onnx.load(file).metadata_props}
    assert Ruleset.from_dict(json.loads(metadata["ruleset"])) == rules
    assert metadata["kind"] == kind and "375..406" in metadata["features"]

    session = onnxruntime.InferenceSession(file)
    assert [node.name for node in session.get_outputs()] == ["logits", "value"]
    for plies in range(0, 60, 6):  # 2,000 positions
        positions, legal = random_play(ruleset, plies)
        expected = NetworkAgent(network, rules).evaluate(positions, legal)
        rows, legal_actions, indptr = features(positions, legal, rules, kind)
        logits, values = session.run(None, {"features": rows})
        if kind == "board":
            logits = logits[legal_actions >> 6, legal_actions & 63]
        np.testing.assert_array_equal(legal_actions, expected.legal_actions)
        np.testing.assert_array_equal(indptr, expected.indptr)
        np.testing.assert_allclose(logits, expected.logits, atol=1e-4)
        np.testing.assert_allclose(values, expected.values, atol=1e-4)


def test_shipped_networks_and_their_names(tmp_path: Path, capsys: Capsys) -> None:
    file = tmp_path / "zanzibar.onnx"
    assert bao(["export", "zanzibar", str(file)]) == 0
    assert "kind replies for zanzibar" in capsys.readouterr().out
    half = (CHECKPOINTS / "zanzibar.safetensors").stat().st_size
    assert file.stat().st_size < 2.1 * half, "every number once, as float32"
    assert bao(["export", "nothing", str(file)]) == 2
    assert "no checkpoint at nothing" in capsys.readouterr().err
