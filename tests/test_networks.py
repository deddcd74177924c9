"""Test networks: outputs of the head, compiled networks, and other architectures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import bao_agents
from bao_agents.array_types import Uint8Array
from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint import Checkpoint
from bao_agents.nets.compiled import (
    BYTE_VALUES,
    compile_network,
    evaluate,
    forward,
    is_compilable,
    make_network_workspace,
)
from bao_agents.nets.encoding import encode
from bao_agents.nets.head import TRUST, logits_and_values, num_outputs
from bao_agents.nets.network import ARCHITECTURES, Inputs, NetworkConfig, PolicyNetwork
from bao_agents.nets.policy import NetworkAgent
from bao_agents.search.gumbel.player import SearchAgent
from bao_agents.search.gumbel.search import GumbelSearch
from bao_env import RULESETS
from bao_env.board import Board
from bao_env.engine.action import mask_of
from bao_env.engine.masks import is_legal
from tests.networks import EVERY_KIND, make_network
from tests.positions import STUCK, random_play

SHIPPED = Path(bao_agents.__file__).parent / "checkpoints"
NONE = torch.zeros(0)
ZANZIBAR = RULESETS["zanzibar"].kernel


def inputs(network: PolicyNetwork, count: int) -> Inputs:
    """Encode some positions for a network."""
    positions, masks = (array[:count] for array in random_play("zanzibar"))
    encodings, legal_actions, _ = encode(ZANZIBAR, positions, masks, network.config.kind)
    return Inputs(torch.from_numpy(encodings), torch.from_numpy(legal_actions))


def test_head() -> None:
    """The logits of actions follow their values but give them no gradient."""
    outputs = torch.randn(200, 2, requires_grad=True)
    logits, values = logits_and_values(outputs, NONE.long(), "afterstate", NONE)
    torch.testing.assert_close(values, outputs[:, 1].tanh())
    torch.testing.assert_close(logits, outputs[:, 0] + TRUST * values)
    logits.sum().backward()
    assert outputs.grad is not None and outputs.grad.tolist() == [[1.0, 0.0]] * 200
    outputs = torch.randn(3, num_outputs(False))
    legal_actions = torch.tensor([5, 63, 64, 2 * 64 + 7])
    logits, values = logits_and_values(outputs, legal_actions, "position", NONE)
    torch.testing.assert_close(logits, outputs[[0, 0, 1, 2], [5, 63, 0, 7]])
    torch.testing.assert_close(values, outputs[:, 64].tanh())


@pytest.mark.parametrize("hidden", [(24,), (33, 16), (40, 8, 12)])
@EVERY_KIND
def test_compiled_network_has_the_same_outputs(kind: str, hidden: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    made = make_network(kind, hidden).double()
    for parameter in made.parameters():
        if parameter.ndim == 1:  # biases begin at zero, which would hide their loss
            torch.nn.init.normal_(parameter, std=0.5)
    encodings = rng.integers(0, BYTE_VALUES, (64, made.encoding_size)).astype(np.uint8)
    encodings[rng.random(encodings.shape) < np.linspace(0, 1, 64)[:, None]] = 0
    real = inputs(made, 200).encodings.numpy()
    encodings = np.concatenate([encodings, real])
    weights = compile_network(made)
    out = np.full((len(encodings), num_outputs(made.config.per_action)), np.nan, np.float32)
    forward(weights, encodings, len(encodings) - 1, make_network_workspace(weights), out)
    expected = made.head_outputs(torch.from_numpy(encodings)).detach().numpy()
    np.testing.assert_allclose(out[:-1], expected[:-1], rtol=1e-4, atol=1e-4)
    assert np.isnan(out[-1]).all()  # beyond the count


class Normed(nn.Module):
    """A trunk that cannot be compiled, with a normalised layer and a skipped one."""

    def __init__(self, features: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.first = nn.Linear(features, hidden[0])
        self.norm = nn.LayerNorm(hidden[0])
        self.inner = nn.Linear(hidden[0], hidden[0])
        self.last = nn.Linear(hidden[0], hidden[-1])

    def forward(self, features: Tensor) -> Tensor:
        x = self.norm(self.first(features)).relu()
        last: Tensor = self.last(x + self.inner(x).relu())
        return last.tanh()


class Doubled(nn.Linear):
    """A layer that does not compute what its class says."""

    def forward(self, features: Tensor) -> Tensor:
        return 2 * super().forward(features)


class OtherNetwork(PolicyNetwork):
    def head_outputs(self, encodings: Tensor) -> Tensor:
        return -super().head_outputs(encodings)


def replaced(place: str, module: nn.Module) -> PolicyNetwork:
    """Replace a module of a network."""
    network = make_network()
    network.set_submodule(place, module)
    return network


@pytest.mark.parametrize(
    "network, found",
    [
        (replaced("trunk.1", nn.Tanh()), "(1): Tanh()"),
        (replaced("trunk.2", nn.Identity()), "(2): Identity()"),
        (replaced("trunk.2", nn.Linear(32, 16, bias=False)), "bias=False"),
        (replaced("trunk.2", Doubled(32, 16)), "Doubled("),
        (replaced("trunk.2", nn.Linear(31, 16)), "in_features=31"),
        (replaced("head", nn.Bilinear(1, 1, 1)), "Bilinear("),
        (replaced("trunk", nn.Sequential(nn.Linear(2, 2), nn.ReLU())), "Sequential"),
        (replaced("trunk", Normed(2, (2,))), "(trunk): Normed"),
        (OtherNetwork(NetworkConfig(hidden=(8,))), "OtherNetwork"),
    ],
)
def test_network_that_cannot_be_compiled_raises(network: PolicyNetwork, found: str) -> None:
    assert not is_compilable(network) and is_compilable(make_network())
    with pytest.raises(ValueError, match="in lock step") as refused:
        GumbelSearch(ZANZIBAR, network, 1, 4, lock_step=False)
    assert found in str(refused.value).split("found ")[1]


OTHERS = [("normed", (32, 16)), ("residual", (32, 32, 32))]
"""Architectures besides the shipped one, and their hidden units."""


@pytest.fixture
def normed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the user's architecture to the table."""
    monkeypatch.setitem(ARCHITECTURES, "normed", Normed)


@EVERY_KIND
@pytest.mark.parametrize(("architecture", "hidden"), OTHERS)
@pytest.mark.usefixtures("normed")
def test_other_architecture_learns(architecture: str, hidden: tuple[int, ...], kind: str) -> None:
    """The loss of fixed targets falls, and every parameter has a gradient."""
    network = make_network(kind, hidden, architecture).train()
    batch = inputs(network, 16)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    losses = []
    for _ in range(40):
        logits, values = network(batch)
        loss = (values - 0.5).square().mean() + (logits - 1.0).square().mean()
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad is not None and p.grad.any() for p in network.parameters())
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_residual_layers_of_different_sizes_raise() -> None:
    with pytest.raises(ValueError, match="the same number of units"):
        make_network(hidden=(32, 16), architecture="residual")


@EVERY_KIND
@pytest.mark.parametrize(("architecture", "hidden"), OTHERS)
@pytest.mark.usefixtures("normed")
def test_other_architecture_is_saved_and_plays(
    architecture: str, hidden: tuple[int, ...], kind: str, tmp_path: Path
) -> None:
    path, ruleset = tmp_path / "own.safetensors", RULESETS["zanzibar"]
    network = make_network(kind, hidden, architecture)
    checkpoint.save(path, Checkpoint(network, ruleset))
    loaded = checkpoint.load(path).network
    assert loaded.config == network.config == NetworkConfig(kind, hidden, architecture)
    positions, masks = random_play("zanzibar")
    for player, same in (
        (bao_agents.load(path), NetworkAgent(network, ruleset)),
        (bao_agents.load(f"search:{path}:8"), SearchAgent(network, ruleset, 8, threads=1)),
    ):
        chosen = player.act(positions, masks)
        assert chosen.tolist() == same.act(positions, masks).tolist()
        assert is_legal(chosen, masks).all()
        assert len(set(chosen)) > 5
    search = GumbelSearch(ZANZIBAR, network, 200, 8)
    search.search(positions)
    assert search.network_seconds > 0  # in lock step: it cannot be compiled


@EVERY_KIND
def test_players_with_a_network_evaluate_a_board(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "network.safetensors"
    network = make_network(kind)
    checkpoint.save(file, Checkpoint(network, RULESETS["zanzibar"]))
    board = Board()
    for _ in range(3):
        board.push(board.legal_actions[0])
    words, legal = board.words[None], np.array([mask_of(board.legal_actions)], np.uint64)
    logits, values, _, _ = NetworkAgent(network, RULESETS["zanzibar"]).evaluate(words, legal)
    shares = np.exp(logits) / np.exp(logits).sum()
    for name in (str(file), f"search:{file}:8", f"guided:{file}:2"):
        policy, value = bao_agents.load(name).evaluate(board)
        assert list(policy) == board.legal_actions
        np.testing.assert_allclose(list(policy.values()), shares, rtol=1e-5)
        assert value == pytest.approx(float(values @ shares if kind != "position" else values[0]))
    with pytest.raises(ValueError, match="'kibao' is not the network's, 'zanzibar'"):
        bao_agents.load(file).evaluate(Board(ruleset="kibao"))
    with pytest.raises(ValueError, match="the game is over"):
        bao_agents.load(file).evaluate(Board.from_text(STUCK))
    with pytest.raises(ValueError, match="player greedy has no network"):
        bao_agents.load("greedy").evaluate(board)


@pytest.mark.parametrize("ruleset", RULESETS)
@pytest.mark.parametrize("folder", ["", "guides/"])
def test_a_position_alone_is_cheap_and_gets_the_same_action(
    ruleset: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network reads the rows of that position and, in torch, few more."""
    positions, masks = (array[:200] for array in random_play(ruleset))
    loaded = checkpoint.load(SHIPPED / f"{folder}{ruleset}.safetensors")
    agent = NetworkAgent(loaded.network, loaded.ruleset)
    rows: list[int] = []

    def counted(network: PolicyNetwork, encodings: Uint8Array, *rest: Any) -> Any:
        rows.append(len(encodings))
        return evaluate(network, encodings, *rest)

    monkeypatch.setattr("bao_agents.nets.policy.evaluate", counted)
    counts = [mask.bit_count() for mask in masks.tolist()]
    alone = [agent.act(positions[i : i + 1], masks[i : i + 1])[0] for i in range(200)]
    assert rows == counts
    np.testing.assert_array_equal(agent.act(positions, masks), alone)
    monkeypatch.setattr("bao_agents.nets.policy.compile_if_faster", lambda _: None)
    in_torch = NetworkAgent(loaded.network, loaded.ruleset)
    rows.clear()
    slowly = [in_torch.act(positions[i : i + 1], masks[i : i + 1])[0] for i in range(50)]
    assert slowly == alone[:50]
    assert all(read - count < 8 for read, count in zip(rows, counts, strict=False))


@EVERY_KIND
def test_weights_that_are_not_numbers_are_noticed(kind: str) -> None:
    """Also by the compiled network, which leaves out units that are not above zero."""
    positions, masks = (array[:50] for array in random_play("zanzibar"))
    network = make_network(kind)
    with torch.no_grad():
        network.trunk[0].bias[3] = torch.nan  # type: ignore[index]
    with pytest.raises(ValueError, match="the network's outputs are not finite"):
        NetworkAgent(network, RULESETS["zanzibar"]).act(positions, masks)
