"""Networks: what the head says, compiled or not, and other architectures than the shipped one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import agents
from agents.nets import checkpoint
from agents.nets.checkpoint import Checkpoint, CheckpointError
from agents.nets.compiled import (
    BYTE_VALUES,
    NotCompilableError,
    compile_network,
    forward,
    is_compilable,
    make_network_workspace,
)
from agents.nets.encoding import encode
from agents.nets.features import ENCODING_SIZE
from agents.nets.head import TRUST, action_logit, expected_result, logits_and_values, num_outputs
from agents.nets.network import ARCHITECTURES, KINDS, Inputs, NetworkConfig, PolicyNetwork
from agents.nets.policy import NetworkAgent
from agents.search.gumbel.player import SearchAgent
from agents.search.gumbel.search import GumbelSearch
from bao_env.engine.batch import Engine, random_states
from bao_env.engine.ruleset import RULESETS, KernelRules


def some_positions(size: int = 64) -> tuple[KernelRules, np.ndarray, np.ndarray]:
    engine = Engine()
    opening, mask = engine.opening()
    positions, masks = np.tile(opening, (size, 1)), np.full(size, mask)
    winners = np.full(size, -1, np.int8)
    engine.play_random(positions, masks, winners, random_states(size, 4), 30)
    return engine.rules, positions, masks


def make_network(
    kind: str = "moves", hidden: tuple[int, ...] = (32, 16), architecture: str = "mlp"
) -> PolicyNetwork:
    """An untrained network with an opinion."""
    torch.manual_seed(3)
    network = PolicyNetwork(NetworkConfig(kind, hidden, architecture))
    nn.init.normal_(network.head.weight, std=0.3)
    return network.eval()


def inputs(network: PolicyNetwork, size: int) -> tuple[Inputs, np.ndarray]:
    """What a network reads of some positions, and their indptr."""
    encodings, legal_actions, indptr = encode(*some_positions(size), network.config.per_action)
    return Inputs(torch.from_numpy(encodings), torch.from_numpy(legal_actions)), indptr


@pytest.mark.parametrize("kind", KINDS)
def test_what_goes_in_and_out(kind: str) -> None:
    """A board network's logits are of the actions of its position; a moves network's of each."""
    network = make_network(kind)
    batch, indptr = inputs(network, 8)
    logits, values = network(batch)
    assert len(logits) == len(batch.encodings if kind == "moves" else batch.legal_actions)
    assert len(values) == len(batch.encodings)
    assert (values.abs() <= 1).all()
    rules, positions, masks = some_positions(8)
    encodings, legal_actions, _ = encode(rules, positions[3:4], masks[3:4], kind == "moves")
    alone, _ = network(Inputs(torch.from_numpy(encodings), torch.from_numpy(legal_actions)))
    torch.testing.assert_close(logits[indptr[3] : indptr[4]], alone[: len(legal_actions)])


def test_the_head_in_torch_and_compiled() -> None:
    torch.manual_seed(1)
    outputs = torch.randn(200, 2) * 3
    logits, values = logits_and_values(outputs, torch.zeros(0, dtype=torch.int64), True)
    for (preference, output), logit, value in zip(outputs.numpy(), logits, values, strict=True):
        expected = expected_result(output)
        assert expected == pytest.approx(float(value), abs=1e-6)
        assert action_logit(preference, expected) == pytest.approx(float(logit), abs=1e-5)
    np.testing.assert_allclose(logits, outputs[:, 0] + TRUST * outputs[:, 1].tanh())
    outputs = torch.randn(3, num_outputs(False))
    logits, values = logits_and_values(outputs, torch.tensor([5, 63, 64, 2 * 64 + 7]), False)
    places = [(0, 5), (0, 63), (1, 0), (2, 7)]
    torch.testing.assert_close(logits, torch.stack([outputs[place] for place in places]))
    for output, value in zip(outputs[:, 64].numpy(), values, strict=True):
        assert expected_result(output) == pytest.approx(float(value), abs=1e-6)


def test_a_logit_does_not_teach_the_value_that_it_trusts() -> None:
    outputs = torch.randn(5, 2, requires_grad=True)
    logits, _ = logits_and_values(outputs, torch.zeros(0, dtype=torch.int64), True)
    logits.sum().backward()
    assert outputs.grad is not None and outputs.grad.tolist() == [[1.0, 0.0]] * 5


@pytest.mark.parametrize("hidden", [(24,), (33, 16), (40, 8, 12)])
@pytest.mark.parametrize("kind", KINDS)
def test_the_compiled_network_says_the_same(kind: str, hidden: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    made = make_network(kind, hidden).double()
    for parameter in made.parameters():
        if parameter.ndim == 1:  # biases begin at zero, which would hide their loss
            torch.nn.init.normal_(parameter, std=0.5)
    encodings = rng.integers(0, BYTE_VALUES, (64, ENCODING_SIZE)).astype(np.uint8)
    encodings[rng.random(encodings.shape) < np.linspace(0, 1, 64)[:, None]] = 0
    rules, positions, masks = some_positions()
    encodings = np.concatenate(
        [encodings, encode(rules, positions, masks, made.config.per_action)[0]]
    )
    weights = compile_network(made)
    out = np.full((len(encodings), 2 if kind == "moves" else 65), np.nan, np.float32)
    forward(weights, encodings, len(encodings) - 1, make_network_workspace(weights), out)
    expected = made.head_outputs(torch.from_numpy(encodings)).detach().numpy()
    np.testing.assert_allclose(out[:-1], expected[:-1], rtol=1e-4, atol=1e-4)
    assert np.isnan(out[-1]).all()  # beyond the count


class Normed(nn.Module):
    """A trunk that cannot be compiled: normalised layers, and one skipped over."""

    def __init__(self, features: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.first = nn.Linear(features, hidden[0])
        self.norm = nn.LayerNorm(hidden[0])
        self.inner = nn.Linear(hidden[0], hidden[0])
        self.last = nn.Linear(hidden[0], hidden[-1])

    def forward(self, features: Tensor) -> Tensor:
        x = self.norm(self.first(features)).relu()
        return self.last(x + self.inner(x).relu()).tanh()


class Doubled(nn.Linear):
    """Not the layer that it passes for."""

    def forward(self, features: Tensor) -> Tensor:
        return 2 * super().forward(features)


class OtherNetwork(PolicyNetwork):
    def head_outputs(self, encodings: Tensor) -> Tensor:
        return -super().head_outputs(encodings)


def replaced(place: int | str, module: nn.Module) -> PolicyNetwork:
    """A network with another module in one place of its trunk, or as ``trunk`` or ``head``."""
    network = make_network()
    if isinstance(place, str):
        setattr(network, place, module)
    else:
        assert isinstance(network.trunk, nn.Sequential)
        network.trunk[place] = module
    return network


@pytest.mark.parametrize(
    "network, found",
    [
        (lambda: replaced(1, nn.Tanh()), "Tanh() as module 1"),
        (lambda: replaced(1, nn.LayerNorm(32)), "LayerNorm("),
        (lambda: replaced(2, nn.Identity()), "Identity() as module 2"),
        (lambda: replaced(2, nn.Linear(32, 16, bias=False)), "bias=False"),
        (lambda: replaced(2, Doubled(32, 16)), "Doubled("),
        (lambda: replaced(2, nn.Linear(31, 16)), "in_features=31"),
        (lambda: replaced("head", nn.Bilinear(1, 1, 1)), "Bilinear("),
        (lambda: replaced("trunk", nn.Sequential(nn.Linear(2, 2), nn.ReLU())), "Sequential"),
        (lambda: replaced("trunk", Normed(2, (2,))), "the trunk Normed"),
        (lambda: OtherNetwork(NetworkConfig(hidden=(8,))), "OtherNetwork"),
    ],
)
def test_only_what_is_understood_is_compiled(
    network: Callable[[], PolicyNetwork], found: str
) -> None:
    made = network()
    assert not is_compilable(made)
    for make in (
        lambda: compile_network(made),
        lambda: GumbelSearch(RULESETS["zanzibar"].kernel_rules(), made, 1, 4, lock_step=False),
    ):
        with pytest.raises(NotCompilableError, match="in lock step") as refused:
            make()
        assert found in str(refused.value).split("found ")[1]
    assert is_compilable(make_network())


OTHERS = [("normed", (32, 16)), ("residual", (32, 32, 32))]
"""Other architectures than the shipped one, and their hidden units."""


@pytest.fixture
def normed(monkeypatch: pytest.MonkeyPatch) -> str:
    """An architecture of one's own, entered in the table."""
    monkeypatch.setitem(ARCHITECTURES, "normed", Normed)
    return "normed"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("architecture", "hidden"), OTHERS)
@pytest.mark.usefixtures("normed")
def test_another_architecture_learns(architecture: str, hidden: tuple[int, ...], kind: str) -> None:
    """Forward and backward: the loss of fixed targets falls, and every parameter takes part."""
    network = make_network(kind, hidden, architecture).train()
    batch, _ = inputs(network, 16)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    losses = []
    for _ in range(20):
        logits, values = network(batch)
        loss = (values - 0.5).square().mean() + (logits - 1.0).square().mean()
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad is not None and p.grad.any() for p in network.parameters())
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_residual_layers_are_alike() -> None:
    with pytest.raises(ValueError, match="as many units in each layer"):
        make_network(hidden=(32, 16), architecture="residual")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("architecture", "hidden"), OTHERS)
@pytest.mark.usefixtures("normed")
def test_another_architecture_is_saved_and_plays(
    architecture: str, hidden: tuple[int, ...], kind: str, tmp_path: Path
) -> None:
    path = tmp_path / "own.safetensors"
    network = make_network(kind, hidden, architecture)
    checkpoint.save(path, Checkpoint(network, RULESETS["zanzibar"]))
    loaded = checkpoint.load(path).network
    assert loaded.config == network.config == NetworkConfig(kind, hidden, architecture)
    rules, positions, masks = some_positions(40)
    ruleset = RULESETS["zanzibar"]
    for player, same in (
        (agents.load(path), NetworkAgent(network, ruleset)),
        (agents.load(f"search:{path}:8"), SearchAgent(network, ruleset, 8, threads=1)),
    ):
        chosen = player.act(positions, masks)
        assert chosen.tolist() == same.act(positions, masks).tolist()
        legal = np.flatnonzero(masks)
        assert all(int(masks[i]) >> int(chosen[i]) & 1 for i in legal) and len(legal) > 30
        assert len(set(chosen)) > 5
    # In lock step of itself, since it cannot be compiled.
    searches = [GumbelSearch(rules, network, 40, 8, lock_step=how) for how in (None, True)]
    found, expected = (search.search(positions) for search in searches)
    np.testing.assert_array_equal(found.policies, expected.policies)
    assert searches[0].network_seconds > 0


def test_an_unknown_architecture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="architecture='normed': expected one of mlp"):
        NetworkConfig(architecture="normed")
    path = tmp_path / "own.safetensors"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ARCHITECTURES, "normed", Normed)
        network = make_network(architecture="normed")
        checkpoint.save(path, Checkpoint(network, RULESETS["zanzibar"]))
    with pytest.raises(CheckpointError, match="architecture='normed': expected one of mlp"):
        checkpoint.load(path)
