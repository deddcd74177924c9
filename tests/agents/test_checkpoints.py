"""Test checkpoints: networks play as they were saved; invalid files raise errors."""

from __future__ import annotations

import json
import os
import resource
import socket
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import bao_agents
from bao_agents.arena.match import play_match
from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint import Checkpoint, CheckpointError
from bao_agents.nets.checkpoint_files import CHECKPOINTS, shipped
from bao_agents.nets.network import PolicyNetwork
from bao_agents.nets.policy import NetworkAgent
from bao_agents.search.gumbel.player import SearchAgent
from bao_agents.search.gumbel.search import GumbelSearch
from bao_env import RULESETS, Board
from tests.networks import make_network
from tests.positions import random_play


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "net.safetensors"
    checkpoint.save(path, Checkpoint(make_network(), RULESETS["zanzibar"], {"steps": 5}))
    return path


def test_checkpoint_plays_as_its_network(saved: Path) -> None:
    positions, masks = random_play("zanzibar")
    loaded = checkpoint.load(saved)
    assert loaded.info == {"steps": 5} and loaded.ruleset == RULESETS["zanzibar"]
    chosen = bao_agents.load(saved).act(positions, masks)
    policy = NetworkAgent(loaded.network, loaded.ruleset).evaluate(positions, masks)
    for i in range(len(positions)):
        part = slice(policy.indptr[i], policy.indptr[i + 1])
        assert chosen[i] == policy.legal_actions[part][policy.logits[part].argmax()] % 64
    assert len(set(chosen)) > 5


def test_half_precision_plays_alike(saved: Path) -> None:
    whole = checkpoint.load(saved)
    checkpoint.save(saved, whole, half=True)
    half = checkpoint.load(saved)
    for name, tensor in half.network.state_dict().items():
        torch.testing.assert_close(tensor, whole.network.state_dict()[name].half().float())


def test_shipped_checkpoints_play() -> None:
    """They play by name, alone and with a search, only under their rules; none exceeds 2 MB."""
    for name in shipped():
        assert (CHECKPOINTS / f"{name}.safetensors").stat().st_size <= 2_000_000
        board = Board(name)
        assert bao_agents.load(name, ruleset=name).choose(board) in board.legal_actions
        player = bao_agents.load(f"search:{name}:16", ruleset=name)
        assert player.choose(board) in board.legal_actions
        with pytest.raises(CheckpointError, match="was trained under rule set"):
            bao_agents.load(name, ruleset="kibao" if name != "kibao" else "zanzibar")
    match = play_match(
        bao_agents.load("search:zanzibar:16"), bao_agents.load("greedy"), pairs=20, seed=1
    )
    assert match.score.low > 0.8


@pytest.mark.parametrize(
    "factor, message",
    [
        (1e30, "weights that are not numbers or beyond 65504"),
        (np.nan, "weights that are not numbers or beyond 65504"),
    ],
)
def test_weights_out_of_range_raise(saved: Path, factor: float, message: str) -> None:
    loaded = checkpoint.load(saved)
    for parameter in loaded.network.parameters():
        parameter.data *= factor
    checkpoint.save(saved, loaded)
    with pytest.raises(CheckpointError, match=message):
        bao_agents.load(saved)


def test_network_that_is_not_finite_does_not_play(saved: Path) -> None:
    positions, masks = random_play("zanzibar")
    network, ruleset = checkpoint.load(saved).network, RULESETS["zanzibar"]
    network.head.bias.data.fill_(torch.nan)
    rules = ruleset.kernel
    for play in (
        NetworkAgent(network, ruleset).act,
        SearchAgent(network, ruleset, 8, threads=1).act,
        lambda positions, _: GumbelSearch(rules, network, 200, 8).search(positions),
    ):
        with pytest.raises(ValueError, match="outputs are not finite"):
            play(positions, masks)


def split(path: Path) -> tuple[dict, bytes]:
    """Return the header of a safetensors file, and the rest."""
    data = path.read_bytes()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:end]), data[end:]


def read_header(path: Path) -> dict:
    """Return the header of a checkpoint."""
    return json.loads(split(path)[0]["__metadata__"]["bao_env"])


def rewrite(path: Path, header: object) -> None:
    """Give a checkpoint another header."""
    save_file(load_file(path), path, metadata={"bao_env": json.dumps(header)})


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"format": 2}, "has format 2; this version of bao_env reads 1"),
        ({"format": True}, "has format True"),
        ({"rules_version": 99}, "has rules_version 99"),
        ({"observation_version": 0}, "has observation_version 0"),
        ({"inputs_version": 0}, "has inputs_version 0; this version of bao_env reads 1"),
        ({"inputs_version": [1]}, r"has inputs_version \[1\]"),
        ({"hidden": [60000, 60000]}, "do not fit the network"),
        ({"hidden": [65536] * 64}, "do not fit the network"),
        ({"hidden": [-1]}, "1 to 64 layers of 1 to 65536"),
        ({"hidden": []}, "1 to 64 layers of 1 to 65536"),
        ({"hidden": 64}, "expected 1 to 64 layers"),
        ({"hidden": ["x" * 2_000_000]}, "expected 1 to 64 layers"),
        ({"ruleset": {"name": "x", "house_minimum": 3}}, "unknown rule switch 'house_minimum'"),
        ({"ruleset": {"opening_front": 5}}, "expected eight counts of seeds"),
        ({"ruleset": {"opening_front": [0] * 10_000}}, "opening_front"),
        ({"info": [["steps", 5]]}, "not as expected"),
    ],
)
def test_invalid_header_raises(saved: Path, changes: dict, message: str) -> None:
    rewrite(saved, read_header(saved) | changes)
    with pytest.raises(CheckpointError, match=message) as refused:
        checkpoint.load(saved)
    assert len(str(refused.value)) < 600 + len(str(saved))


def test_rules_of_the_same_name_that_differ_raise(saved: Path) -> None:
    longer = replace(RULESETS["zanzibar"], sow_limit=2000)
    with pytest.raises(CheckpointError, match="sow_limit=1000, not 2000"):
        bao_agents.load(saved, ruleset=longer)


def test_hostile_files_raise(saved: Path, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple:
            return (Path.touch, (tmp_path / "pwned",))

    bad = tmp_path / "bad.safetensors"
    torch.save({"model": Evil()}, bad)
    for content in (bad.read_bytes(), b"", b"text" * 25):
        bad.write_bytes(content)
        with pytest.raises(CheckpointError):
            checkpoint.load(bad)
    assert not (tmp_path / "pwned").exists()
    for metadata, message in (
        (None, "has no entry"),
        ({"bao_env": "[" * 100_000}, "recursion depth"),
        ({"bao_env": "{"}, "JSONDecodeError"),
        ({"bao_env": "[]"}, "not as expected: TypeError"),
    ):
        save_file(load_file(saved), bad, metadata=metadata)
        with pytest.raises(CheckpointError, match=message):
            checkpoint.load(bad)
    with pytest.raises(FileNotFoundError):
        checkpoint.load(tmp_path / "nothing")


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
    made = path.with_name("made.safetensors")
    with open(made, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + tensors)
        file.truncate(8 + len(text) + offsets[1])
    return made


def most_memory() -> int:
    """Return the most bytes that this process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_large_files_are_not_read(saved: Path) -> None:
    """A trainer's tensor may have 3 GiB; the network's must fit."""
    before = most_memory()
    huge = with_tensor(saved, "buffer", "F32", 3 << 28, 4)
    bao_agents.load(huge)
    with pytest.raises(CheckpointError, match="do not fit the network"):
        checkpoint.load(with_tensor(saved, "model.extra", "F32", 3 << 28, 4))
    assert most_memory() - before < 1 << 30
    with pytest.raises(CheckpointError, match="float8"):  # numpy lacks it
        checkpoint.load(with_tensor(saved, "extra", "F8_E4M3", 12, 1), arrays=True)


def test_network_that_is_too_large_raises(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = sum(p.numel() for p in checkpoint.load(saved).network.parameters())
    monkeypatch.setattr(checkpoint, "_MAX_PARAMETERS", parameters)
    checkpoint.load(saved)
    monkeypatch.setattr(checkpoint, "_MAX_PARAMETERS", parameters - 1)
    with pytest.raises(CheckpointError, match="its network is too large"):
        checkpoint.load(saved)


def test_error_of_our_own_is_not_a_damaged_file(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PolicyNetwork, "eval", None)
    with pytest.raises(TypeError, match="not callable"):
        checkpoint.load(saved)


def test_special_files_raise(tmp_path: Path) -> None:
    """Reading a pipe into which nobody writes would never end."""
    pipe, plug = tmp_path / "pipe.safetensors", tmp_path / "plug.safetensors"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(plug))
        for path in (pipe, plug, Path("/dev/null"), tmp_path):
            with pytest.raises(CheckpointError, match=r"expected a \.safetensors file"):
                checkpoint.load(path)
            with pytest.raises(ValueError, match=r"there is no such file|has no checkpoint"):
                bao_agents.load(path)
            with pytest.raises(ValueError, match="there is no checkpoint"):
                bao_agents.load(f"search:{path}:4")


def test_names_that_no_file_can_have_raise(tmp_path: Path) -> None:
    for name in ("x" * 5000, f"{tmp_path}/{'x' * 300}.safetensors", "a\0b"):
        with pytest.raises(ValueError, match=r"unknown player|there is no such file"):
            bao_agents.load(name)


ARRAYS: checkpoint.Arrays = {
    "adam.0.step": np.ones(1, np.float32),
    "worker.0.rng": np.arange(3, dtype=np.uint64),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a checkpoint with a trainer's arrays; tests damage copies of it."""
    path = tmp_path_factory.mktemp("damaged") / "whole.safetensors"
    made = Checkpoint(make_network((4,)), RULESETS["zanzibar"], {"steps": 5}, ARRAYS)
    checkpoint.save(path, made)
    return path


def test_arrays_of_a_trainer(whole: Path) -> None:
    """They are read only on request."""
    loaded = checkpoint.load(whole, arrays=True)
    assert (loaded.ruleset, loaded.info) == (RULESETS["zanzibar"], {"steps": 5})
    assert checkpoint.load(whole).arrays == {}
    assert loaded.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(loaded.arrays[name], array, strict=True)


def check_loads_or_raises(path: Path) -> None:
    """Check that reading raises a CheckpointError of moderate length, or that the network plays."""
    try:
        found = checkpoint.load(path, arrays=True)
    except CheckpointError as error:
        assert len(str(error)) < 600 + len(str(path))
        return
    board = Board(found.ruleset)
    try:
        chosen = bao_agents.load(path, ruleset=found.ruleset).choose(board)
    except ValueError as error:
        assert "not finite" in str(error)
    else:
        assert chosen in board.legal_actions


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_damaged_checkpoints_raise_or_play(whole: Path, data: st.DataObject) -> None:
    damaged = bytearray(whole.read_bytes())
    header = 8 + struct.unpack("<Q", damaged[:8])[0]
    for _ in range(data.draw(st.integers(1, 4))):
        end = data.draw(st.sampled_from([8, header, len(damaged)]))
        damaged[data.draw(st.integers(0, end - 1))] = data.draw(st.integers(0, 255))
    path = whole.with_name("damaged.safetensors")
    path.write_bytes(damaged[: data.draw(st.sampled_from([len(damaged), header, header + 9]))])
    check_loads_or_raises(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(st.sampled_from(["hidden", "name", "x"]), children, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_changed_headers_raise_or_play(whole: Path, data: st.DataObject) -> None:
    """An entry of the header or of the rules is missing or has any type."""
    header = read_header(whole)
    tables = [header, header["ruleset"]]
    table = data.draw(st.sampled_from(tables))
    key = data.draw(st.sampled_from(sorted(table)))
    if data.draw(st.booleans()):
        table[key] = data.draw(JSON)
    else:
        del table[key]
    path = whole.with_name("odd.safetensors")
    save_file(load_file(whole), path, metadata={"bao_env": json.dumps(header)})
    check_loads_or_raises(path)
