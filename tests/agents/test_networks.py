"""Test networks: outputs of the head, compiled networks, and what players make of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import bao_agents
from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint import Checkpoint
from bao_agents.nets.compiled import (
    BYTE_VALUES,
    _features_of_bytes,
    compile_arrays,
    compile_if_faster,
    evaluate_network,
    forward,
    make_network_workspace,
)
from bao_agents.nets.encoding import encode
from bao_agents.nets.features import ENCODING_SIZE
from bao_agents.nets.head import OUTPUTS, TRUST, logits_and_values
from bao_agents.nets.layers import shapes_of_layers
from bao_agents.nets.network import PolicyNetwork
from bao_agents.nets.player import NetworkAgent
from bao_agents.support.array_types import Uint8Array
from bao_env import RULESETS
from bao_env.board import Board
from tests.networks import make_network
from tests.positions import draw

SHIPPED = Path(bao_agents.__file__).parent / "checkpoints"
ZANZIBAR = RULESETS["zanzibar"].kernel


def inputs(count: int) -> Tensor:
    """Encode the actions of some positions."""
    positions, legal = draw("zanzibar", count)
    return torch.from_numpy(encode(ZANZIBAR, positions, legal)[0])


def test_head() -> None:
    """The logits of actions follow their values but give them no gradient."""
    outputs = torch.randn(200, 2, requires_grad=True)
    logits, values = logits_and_values(outputs)
    torch.testing.assert_close(values, outputs[:, 1].tanh())
    torch.testing.assert_close(logits, outputs[:, 0] + TRUST * values)
    logits.sum().backward()
    assert outputs.grad is not None and outputs.grad.tolist() == [[1.0, 0.0]] * 200


@pytest.mark.parametrize("hidden", [(24,), (33, 16), (40, 8, 12)])
def test_compiled_network_has_the_same_outputs(hidden: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    network = make_network(hidden).double()
    for parameter in network.parameters():
        if parameter.ndim == 1:  # biases begin at zero, which would hide their loss
            torch.nn.init.normal_(parameter, std=0.5)
    encodings = rng.integers(0, BYTE_VALUES, (64, ENCODING_SIZE)).astype(np.uint8)
    encodings[rng.random(encodings.shape) < np.linspace(0, 1, 64)[:, None]] = 0
    encodings = np.concatenate([encodings, inputs(200).numpy()])
    weights = compile_arrays(network.arrays())
    out = np.full((len(encodings), OUTPUTS), np.nan, np.float32)
    forward(weights, encodings, len(encodings) - 1, make_network_workspace(weights), out)
    expected = network.head_outputs(torch.from_numpy(encodings)).detach().numpy()
    np.testing.assert_allclose(out[:-1], expected[:-1], rtol=1e-4, atol=1e-4)
    assert np.isnan(out[-1]).all()  # the row after the counted ones
    out[:] = np.nan
    plain: Any = forward  # in Python, as a debugger runs it
    plain.py_func(weights, encodings, 5, make_network_workspace(weights), out)
    np.testing.assert_allclose(out[:5], expected[:5], rtol=1e-4, atol=1e-4)


def test_a_new_network_hardly_prefers_an_action() -> None:
    head = PolicyNetwork([16]).head
    norms = head.weight.norm(dim=1).tolist()
    assert norms == pytest.approx([0.01] * len(norms)) and not head.bias.any()


def test_a_network_says_what_it_thinks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "network.safetensors"
    network = make_network()
    checkpoint.save(file, Checkpoint(network.arrays(), RULESETS["zanzibar"]))
    board = Board()
    for _ in range(8):  # then five actions are legal
        board.push(board.legal_actions[0])
    positions, legal = board.batch()
    logits, values, _, _ = NetworkAgent(network, RULESETS["zanzibar"]).evaluate(positions, legal)
    chances = np.exp(logits) / np.exp(logits).sum()
    opinions = bao_agents.load(file).analyse(board)
    assert opinions is not None and bao_agents.load(file).choose(board) == opinions[0].action
    by_action = sorted(opinions)
    assert [opinion.action for opinion in by_action] == board.legal_actions
    probabilities = [opinion.probability or 0.0 for opinion in by_action]
    np.testing.assert_allclose(probabilities, chances, rtol=1e-5)
    np.testing.assert_allclose([opinion.score for opinion in by_action], values, rtol=1e-5)
    agent = NetworkAgent(network, RULESETS["zanzibar"])
    outputs = agent.evaluate(positions, legal)
    beyond = outputs._replace(values=np.array([1.5, -1.5, 0.5, 1, -1], np.float32))
    monkeypatch.setattr(agent, "evaluate", lambda *_: beyond)
    assert [opinion.score for opinion in sorted(agent.analyse(board))] == [1, -1, 0.5, 1, -1]


@pytest.mark.parametrize("hidden", [[1], [65536], [1] * 64])
def test_layers_and_units_have_bounds(hidden: list[int]) -> None:
    *_, head = shapes_of_layers(hidden).values()
    assert head == [OUTPUTS] and len(shapes_of_layers(hidden)) == 2 * len(hidden) + 2
    for wrong in ([], [0], [65537], [1] * 65, [True]):
        with pytest.raises(ValueError, match="expected 1 to 64 layers of 1 to 65536 units"):
            PolicyNetwork(wrong)


def test_torch_runs_networks_in_bfloat16() -> None:
    """There it is faster than compiled code."""
    assert compile_if_faster(make_network()) is not None
    assert compile_if_faster(make_network().bfloat16()) is None


@contextmanager
def another_dtype() -> Iterator[None]:
    """Make float64 the default."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("player", ["zanzibar", "guided:2"])
def test_players_do_not_use_the_callers_defaults(player: str) -> None:
    batch = draw("zanzibar", 20)
    expected = bao_agents.load(player, threads=1).act(*batch)
    network, encodings = make_network(), inputs(20)
    outputs = network.head_outputs(encodings)
    exact = make_network().double().head_outputs(encodings)
    torch.testing.assert_close(outputs, exact, rtol=1e-4, atol=1e-4)
    for context in (torch.autocast("cpu"), another_dtype(), torch.device("meta")):
        _features_of_bytes.cache_clear()
        with context:
            np.testing.assert_array_equal(bao_agents.load(player, threads=1).act(*batch), expected)
            assert torch.equal(network.head_outputs(encodings), outputs)


@pytest.mark.parametrize("ruleset", RULESETS)
@pytest.mark.parametrize("folder", ["", "guides/"])
def test_a_position_alone_is_cheap_and_gets_the_same_action(
    ruleset: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network reads only the rows of that position and, in torch, a few more."""
    positions, legal = draw(ruleset, 200)
    loaded = checkpoint.load(SHIPPED / f"{folder}{ruleset}.safetensors")
    agent = NetworkAgent(loaded.network, loaded.ruleset)
    rows: list[int] = []

    def counted(network: PolicyNetwork, encodings: Uint8Array, *weights: Any) -> Any:
        rows.append(len(encodings))
        return evaluate_network(network, encodings, *weights)

    monkeypatch.setattr("bao_agents.nets.player.evaluate_network", counted)
    counts = [bits.bit_count() for bits in legal.tolist()]
    alone = [agent.act(positions[i : i + 1], legal[i : i + 1])[0] for i in range(200)]
    assert rows == counts
    np.testing.assert_array_equal(agent.act(positions, legal), alone)
    monkeypatch.setattr("bao_agents.nets.player.compile_if_faster", lambda _: None)
    in_torch = NetworkAgent(loaded.network, loaded.ruleset)
    rows.clear()
    slowly = [in_torch.act(positions[i : i + 1], legal[i : i + 1])[0] for i in range(50)]
    assert slowly == alone[:50]
    assert all(row_count - count < 8 for row_count, count in zip(rows, counts, strict=False))
