"""Test checkpoints: networks play as they were saved; invalid files raise errors."""

from __future__ import annotations

import json
import os
import resource
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import bao_agents
from bao_agents.arena.pairs import play_match
from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint import Checkpoint, CheckpointError
from bao_agents.nets.checkpoint_files import CHECKPOINTS, beside, shipped
from bao_agents.nets.player import NetworkAgent
from bao_env import RULESETS, Board
from tests.networks import make_network
from tests.positions import draw


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "net.safetensors"
    checkpoint.save(path, Checkpoint(make_network().arrays(), RULESETS["zanzibar"], {"steps": 5}))
    return path


def test_weights_in_another_memory_order_come_back(tmp_path: Path) -> None:
    network, path = make_network(), tmp_path / "net.safetensors"
    for parameter in network.parameters():
        parameter.data = parameter.data.T.contiguous().T if parameter.ndim == 2 else parameter.data
    checkpoint.save(path, Checkpoint(network.arrays(), RULESETS["zanzibar"]))
    loaded = checkpoint.load(path).network.state_dict()
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, loaded[name]), name


def test_half_precision_plays_alike(saved: Path) -> None:
    """The largest number of half precision is the largest weight."""
    full = checkpoint.load(saved)
    full.network.head.bias.data[:] = torch.tensor([65504.0, -65504.0])
    full = replace(full, weights=full.network.arrays())
    checkpoint.save(saved, full, half=True)
    rounded = checkpoint.load(saved)
    assert rounded.info == full.info == {"steps": 5} and rounded.ruleset == RULESETS["zanzibar"]
    for name, tensor in rounded.network.state_dict().items():
        torch.testing.assert_close(tensor, full.network.state_dict()[name].half().float())


def test_a_file_that_takes_the_place_of_another_is_read(saved: Path, tmp_path: Path) -> None:
    """Unpacking and copying may keep the time of a file, and networks of one shape have one
    size."""
    first = checkpoint.load_shared(saved, RULESETS["zanzibar"])
    newer, times = tmp_path / "other.safetensors", saved.stat()
    checkpoint.save(newer, Checkpoint(first.weights, first.ruleset, {"steps": 6}))
    os.utime(newer, ns=(times.st_atime_ns, times.st_mtime_ns))
    newer.replace(saved)
    assert saved.stat().st_size == times.st_size
    assert checkpoint.load_shared(saved, first.ruleset).info == {"steps": 6}


def test_runs_and_files_beside_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        "runs/quick/final.safetensors",
        "runs/b.safetensors",
        "runs/c/d",
        "e/f.safetensors",
    ):
        file = Path(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    runs = [str(Path("runs", name)) for name in ("b.safetensors", "quick")]
    assert beside("quik") == beside(str(Path("runs", "quik"))) == runs
    assert beside(str(Path("e", "g"))) == [str(Path("e", "f.safetensors"))]
    assert beside(str(Path("none", "g"))) == []


def test_shipped_checkpoints_play() -> None:
    """Shipped checkpoints play by name, alone and as guides; none exceeds 2 MB."""
    for name in shipped():
        assert (CHECKPOINTS / f"{name}.safetensors").stat().st_size <= 2_000_000
        board = Board(name)
        assert bao_agents.load(name, ruleset=name).choose(board) in board.legal_actions
        player = bao_agents.load(f"guided:{name}:100n", ruleset=name)
        assert player.choose(board) in board.legal_actions
    match = play_match(
        bao_agents.load("guided:zanzibar:100n"), bao_agents.load("greedy"), pairs=20, seed=1
    )
    assert match.score.low > 0.8


def test_network_that_is_not_finite_does_not_play(saved: Path) -> None:
    positions, legal = draw("zanzibar")
    network, ruleset = checkpoint.load(saved).network, RULESETS["zanzibar"]
    # The compiled network leaves out units that are not above zero.
    network.get_parameter("trunk.0.bias").data[3] = torch.nan
    with pytest.raises(ValueError, match="outputs are not finite"):
        NetworkAgent(network, ruleset).act(positions, legal)


def split(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return the header of a safetensors file, and the rest."""
    data = path.read_bytes()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:end]), data[end:]


def with_tensor(path: Path, name: str, dtype: str, count: int, size: int) -> Path:
    """Copy a checkpoint and add a tensor of zeros, which take no disk space.

    Args:
        path: the checkpoint.
        name: the tensor's name.
        dtype: its type, as safetensors writes it.
        count: the number of its elements.
        size: the bytes of an element.
    """
    header, tensors = split(path)
    offsets = [len(tensors), len(tensors) + count * size]
    header[name] = {"dtype": dtype, "shape": [count], "data_offsets": offsets}
    text = json.dumps(header).encode()
    forged = path.with_name("made.safetensors")
    with forged.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + tensors)
        file.truncate(8 + len(text) + offsets[1])
    return forged


def most_memory() -> int:
    """Return the most bytes that this process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_large_files_are_not_read(saved: Path) -> None:
    """A trainer's tensor may have 3 GiB, and is not read; the network's tensors must fit the
    network."""
    before = most_memory()
    huge = with_tensor(saved, "buffer", "F32", 3 << 28, 4)
    bao_agents.load(huge)
    with pytest.raises(CheckpointError, match="do not fit the network"):
        checkpoint.load(with_tensor(saved, "model.extra", "F32", 3 << 28, 4))
    assert most_memory() - before < 1 << 30
    with pytest.raises(CheckpointError, match="float8"):  # numpy lacks it
        checkpoint.load(with_tensor(saved, "extra", "F8_E4M3", 12, 1), arrays=True)
