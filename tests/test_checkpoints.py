"""Checkpoints: networks that play as they were saved, and files that are refused."""

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

import agents
from agents.arena.match import play_match
from agents.nets import checkpoint
from agents.nets.checkpoint import Checkpoint, CheckpointError
from agents.nets.features import INPUTS_VERSION
from agents.nets.network import NetworkConfig, PolicyNetwork, num_parameters
from agents.nets.policy import NetworkAgent
from agents.registry import CHECKPOINTS, shipped
from agents.search.gumbel.player import SearchAgent
from agents.search.gumbel.search import GumbelSearch
from bao_env import Board
from bao_env.engine.action import mask_of
from bao_env.engine.ruleset import RULESETS
from tests.positions import random_play


@pytest.fixture(params=["board", "moves"])
def saved(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    torch.manual_seed(1)
    network = PolicyNetwork(NetworkConfig(kind=request.param, hidden=(24, 16)))
    torch.nn.init.normal_(network.head.weight)
    path = tmp_path / "net.safetensors"
    checkpoint.save(path, Checkpoint(network, RULESETS["zanzibar"], {"steps": 5}))
    return path


def test_a_checkpoint_plays_as_its_network(saved: Path) -> None:
    positions, masks = random_play("zanzibar")
    loaded = checkpoint.load(saved)
    assert loaded.info == {"steps": 5} and loaded.ruleset == RULESETS["zanzibar"]
    player = agents.load(saved)
    chosen = player.act(positions, masks)
    policy = NetworkAgent(loaded.network, loaded.ruleset).evaluate(positions, masks)
    for i in range(len(positions)):
        part = slice(policy.indptr[i], policy.indptr[i + 1])
        assert chosen[i] == policy.legal_actions[part][policy.logits[part].argmax()] % 64
    assert len(set(chosen)) > 5
    board = Board()
    assert player.choose(board) in board.legal_actions


def test_shipped_checkpoints_play() -> None:
    """By name, alone and with a search, under their own rules only; none is larger than 5 MB."""
    assert "zanzibar" in shipped()
    for name in shipped():
        assert (CHECKPOINTS / f"{name}.safetensors").stat().st_size <= 5_000_000
        board = Board(name)
        assert agents.load(name, ruleset=name).choose(board) in board.legal_actions
        player = agents.load(f"search:{name}:16", ruleset=name)
        assert player.choose(board) in board.legal_actions
        with pytest.raises(CheckpointError, match="was trained under rule set"):
            agents.load(name, ruleset="kibao" if name != "kibao" else "zanzibar")
    match = play_match(agents.load("search:zanzibar:16"), agents.load("greedy"), pairs=20, seed=1)
    assert match.score.low > 0.8


def test_a_network_is_asked_only_what_it_can_read(saved: Path) -> None:
    positions, masks = random_play("zanzibar")
    loaded = checkpoint.load(saved)
    agent = NetworkAgent(loaded.network, loaded.ruleset)
    with pytest.raises(ValueError, match="masks: expected"):
        agent.evaluate(positions[:1], masks)
    nothing = agent.evaluate(positions[:0], masks[:0])
    assert [len(part) for part in nothing] == [0, 0, 0, 1]
    search = GumbelSearch(loaded.ruleset.kernel_rules(), loaded.network, 200, 4)
    with pytest.raises(TypeError, match="positions: expected"):
        search.search(positions.astype(float))
    with pytest.raises(ValueError, match="rng: expected"):
        search.search(positions, np.ones(1, np.uint64))


def test_a_network_too_large_for_floats_is_refused(saved: Path) -> None:
    """All its weights are finite; what it computes with them is not."""
    loaded = checkpoint.load(saved)
    with torch.no_grad():
        for parameter in loaded.network.parameters():
            parameter.mul_(1e30)
    checkpoint.save(saved, loaded)
    with pytest.raises(CheckpointError, match="outputs are not finite: its weights are too large"):
        agents.load(saved)


def test_a_network_that_is_not_finite_does_not_play(saved: Path) -> None:
    positions, masks = random_play("zanzibar")
    network, ruleset = checkpoint.load(saved).network, RULESETS["zanzibar"]
    with torch.no_grad():
        network.head.bias.fill_(torch.nan)
    rules = ruleset.kernel_rules()
    for play in (
        NetworkAgent(network, ruleset).act,
        NetworkAgent(network, ruleset, sample=True).act,
        SearchAgent(network, ruleset, 8, threads=1).act,
        lambda positions, _: GumbelSearch(rules, network, 200, 8, lock_step=True).search(positions),
    ):
        with pytest.raises(ValueError, match="outputs are not finite"):
            play(positions, masks)


def test_sampling_is_seeded(saved: Path) -> None:
    positions, masks = random_play("zanzibar")
    network, rules = checkpoint.load(saved).network, RULESETS["zanzibar"]
    draws = [
        NetworkAgent(network, rules, sample=True, seed=seed).act(positions, masks).tolist()
        for seed in (1, 1, 2)
    ]
    assert draws[0] == draws[1] != draws[2]
    assert all(int(m) >> a & 1 for m, a in zip(masks, draws[2], strict=True))


def read_header(path: Path) -> dict:
    """The header of a checkpoint."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        return json.loads(json.loads(file.read(size))["__metadata__"]["bao_env"])


def rewrite(path: Path, header: dict) -> None:
    """Give a checkpoint another header."""
    save_file(load_file(path), path, metadata={"bao_env": json.dumps(header)})


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"format": 2}, "has format 2; this version of bao_env reads 1"),
        ({"rules_version": 99}, "has rules_version 99"),
        ({"observation_version": 0}, "has observation_version 0"),
        ({"inputs_version": 2}, "has inputs_version 2; this version of bao_env reads 1"),
        ({"network": {"architecture": "x"}}, "architecture='x': expected one of mlp"),
        ({"network": {"kind": "board", "hidden": [60000, 60000]}}, "do not fit the network"),
        ({"network": {"kind": "board", "hidden": [-1]}}, "1 to 65536"),
        ({"network": {"depth": 3}}, "not as expected"),
        ({"ruleset": {"name": "x", "house_minimum": 3}}, "unknown rule switch 'house_minimum'"),
        ({"info": None}, "not as expected"),
        ({"info": [["steps", 5]]}, "not as expected"),
        ({"format": True}, "has format True"),
        ({"rules_version": [[]]}, "has rules_version"),
        ({"network": {"hidden": [True]}}, "1 to 64 layers of 1 to 65536"),
        ({"network": {"hidden": [8.0]}}, "1 to 64 layers of 1 to 65536"),
        ({"network": {"hidden": [10**30]}}, "1 to 64 layers of 1 to 65536"),
        ({"network": {"hidden": []}}, "1 to 64 layers of 1 to 65536"),
        ({"network": {"hidden": "64"}}, "expected a list of whole numbers"),
        ({"network": {"hidden": 64}}, "expected a list of whole numbers"),
        ({"network": {"kind": 5}}, "kind=5: expected one of board, moves"),
        ({"network": {"kind": ["board"]}}, "expected one of board, moves"),
        ({"network": {"architecture": {}}}, "architecture={}: expected one of mlp"),
        ({"network": {"kind": "x" * 2_000_000}}, "expected one of board, moves"),
        ({"network": {"x" * 2_000_000: 1}}, "not as expected"),
        ({"network": [1]}, "not as expected"),
        ({"network": None}, "not as expected"),
        ({"network": {"hidden": [65536] * 64}}, "do not fit the network"),
        ({"ruleset": "zanzibar"}, "not as expected"),
        ({"ruleset": {"name": 5}}, "name=5: expected a str"),
        ({"ruleset": {"opening_front": 5}}, "not as expected"),
        ({"ruleset": {"opening_front": [True] * 8}}, "expected eight counts"),
        ({"ruleset": {"opening_front": [0] * 10_000}}, "opening_front"),
    ],
)
def test_unfit_headers_are_refused(saved: Path, changes: dict, message: str) -> None:
    rewrite(saved, read_header(saved) | changes)
    for read in (checkpoint.load, checkpoint.describe):
        with pytest.raises(CheckpointError, match=message) as refused:
            read(saved)
        assert len(str(refused.value)) < 600 + len(str(saved))


def test_older_headers_are_read(saved: Path) -> None:
    """From before they had a version of what the network reads, and an architecture."""
    header = read_header(saved)
    assert header.pop("inputs_version") == INPUTS_VERSION == 1
    assert header["network"].pop("architecture") == "mlp"
    network = checkpoint.load(saved).network
    rewrite(saved, header)
    older = checkpoint.load(saved).network
    assert older.config == network.config
    torch.testing.assert_close(older.state_dict(), network.state_dict())


def test_older_headers_are_refused_once_the_inputs_change(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = read_header(saved)
    del header["inputs_version"]
    rewrite(saved, header)
    monkeypatch.setattr(checkpoint, "INPUTS_VERSION", 2)
    with pytest.raises(CheckpointError, match=r"has inputs_version 1; .* reads 2"):
        checkpoint.load(saved)


def test_other_rules_are_refused_by_name(saved: Path) -> None:
    with pytest.raises(CheckpointError, match="trained under rule set 'zanzibar', not 'kibao'"):
        agents.load(saved, ruleset="kibao")
    longer = replace(RULESETS["zanzibar"], sow_limit=2000)
    with pytest.raises(CheckpointError, match="sow_limit=1000, not 2000"):
        agents.load(saved, ruleset=longer)


def test_hostile_files_are_refused(saved: Path, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple:
            return (Path.touch, (tmp_path / "pwned",))

    data = saved.read_bytes()
    tensors = load_file(saved)
    tensors["model.head.bias"][0] = np.nan
    bad = tmp_path / "bad.safetensors"
    torch.save({"model": Evil()}, bad)
    files = {"pickle": bad.read_bytes(), "empty": b"", "short": data[: len(data) // 2]}
    files |= {"huge header": struct.pack("<Q", 1 << 60) + data[8:], "text": b"hello, world" * 9}
    for name, content in files.items():
        bad.write_bytes(content)
        with pytest.raises(CheckpointError):
            checkpoint.load(bad)
        assert not (tmp_path / "pwned").exists(), name
    save_file(tensors, bad, metadata={"bao_env": "[" * 100_000})
    with pytest.raises(CheckpointError):
        checkpoint.load(bad)
    save_file(tensors, bad)
    with pytest.raises(CheckpointError, match="has no entry"):
        checkpoint.load(bad)
    with pytest.raises(CheckpointError, match="is a folder"):
        checkpoint.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        checkpoint.load(tmp_path / "nothing")


def with_tensors(path: Path, tensors: dict[str, list[int]]) -> Path:
    """A copy of a checkpoint with further tensors of zeros, which take no space on the disk."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    end = len(data) - 8 - size
    for name, shape in tensors.items():
        start, end = end, end + 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    made = path.with_name("made.safetensors")
    with open(made, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data[8 + size :])
        file.truncate(8 + len(text) + end)
    return made


def most_memory() -> int:
    """The most bytes that this process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_a_trainers_arrays_are_read_only_when_asked_for(saved: Path) -> None:
    loaded = checkpoint.load(saved)
    moments: checkpoint.Arrays = {
        "adam.0.step": np.ones(1, np.float32),
        "worker.0.rng": np.arange(3, dtype=np.uint64),
    }
    checkpoint.save(saved, replace(loaded, arrays=moments))
    contents = checkpoint.describe(saved)
    assert (contents.ruleset, contents.info) == (loaded.ruleset, loaded.info)
    assert contents.config == loaded.network.config
    assert contents.tensors["worker.0.rng"] == (np.dtype(np.uint64), (3,))
    weights = {f"model.{name}" for name in loaded.network.state_dict()}
    assert contents.tensors.keys() == weights | moments.keys()
    assert checkpoint.load(saved).arrays == {}
    found = checkpoint.load(saved, arrays=True).arrays
    assert found.keys() == moments.keys()
    for name, array in moments.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


def test_large_files_are_not_read(saved: Path) -> None:
    """One of 3 GiB plays, if the rest of it is the trainer's; if it is the network's, it is
    refused by what its header says."""
    before = most_memory()
    huge = with_tensors(saved, {"buffer": [3 << 28]})
    agents.load(huge)
    assert checkpoint.describe(huge).tensors["buffer"] == (np.dtype(np.float32), (3 << 28,))
    with pytest.raises(CheckpointError, match="do not fit the network"):
        checkpoint.load(with_tensors(saved, {"model.extra": [3 << 28]}))
    assert most_memory() - before < 1 << 30


def test_a_network_larger_than_the_memory_is_refused(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sysconf", lambda name: 100)
    with pytest.raises(CheckpointError, match=r"takes 0\.0 GB; this machine has 0\.0"):
        checkpoint.load(saved)


def test_parameters_are_counted_without_a_network() -> None:
    for kind in ("board", "moves"):
        config = NetworkConfig(kind, (24, 16))
        assert num_parameters(config) == sum(p.numel() for p in PolicyNetwork(config).parameters())
    before = most_memory()
    assert num_parameters(NetworkConfig(hidden=(65536,) * 64)) > 63 * 65536**2
    assert most_memory() - before < 1 << 30


def test_types_that_numpy_lacks_are_refused(saved: Path) -> None:
    made = with_tensors(saved, {"extra": [6]})
    data = made.read_bytes()
    old, new = b'"dtype": "F32", "shape": [6]', b'"dtype":"BF16","shape": [12]'
    assert data.count(old) == 1 and len(old) == len(new)
    made.write_bytes(data.replace(old, new))
    with pytest.raises(CheckpointError, match="'extra' is of type BF16"):
        checkpoint.describe(made)


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    """A pipe that nobody writes into would be waited for without end."""
    pipe, plug = tmp_path / "pipe.safetensors", tmp_path / "plug.safetensors"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(plug))
        for path in (pipe, plug, Path("/dev/null"), tmp_path):
            for read in (checkpoint.load, checkpoint.describe):
                with pytest.raises(CheckpointError, match=r"expected a \.safetensors file"):
                    read(path)
            with pytest.raises(ValueError, match="unknown player"):
                agents.load(path)
            with pytest.raises(ValueError, match="there is no checkpoint"):
                agents.load(f"search:{path}:4")


def test_names_that_no_file_can_have(tmp_path: Path) -> None:
    for name in ("x" * 5000, f"{tmp_path}/{'x' * 300}.safetensors", "a\0b"):
        with pytest.raises(ValueError, match="unknown player"):
            agents.load(name)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with a trainer's arrays, to be damaged."""
    torch.manual_seed(2)
    path = tmp_path_factory.mktemp("damaged") / "whole.safetensors"
    network = PolicyNetwork(NetworkConfig("moves", (4,)))
    arrays = {"adam.0.step": np.ones(1, np.float32)}
    checkpoint.save(path, Checkpoint(network, RULESETS["zanzibar"], {"steps": 5}, arrays))
    return path


def loads_or_is_refused(path: Path) -> None:
    """Reading raises a CheckpointError of moderate length, or gives a network that plays."""
    try:
        found = checkpoint.load(path, arrays=True)
    except CheckpointError as error:
        assert len(str(error)) < 600 + len(str(path))
        return
    assert checkpoint.describe(path).config == found.network.config
    board = Board(found.ruleset)
    masks = np.array([mask_of(board.legal_actions)], np.uint64)
    try:
        chosen = NetworkAgent(found.network, found.ruleset).act(board.words[None], masks)
    except ValueError as error:
        assert "not finite" in str(error)
    else:
        assert chosen[0] in board.legal_actions


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_damaged_checkpoints_are_refused_or_play(whole: Path, data: st.DataObject) -> None:
    damaged = bytearray(whole.read_bytes())
    header = 8 + struct.unpack("<Q", damaged[:8])[0]
    for _ in range(data.draw(st.integers(1, 4))):
        end = data.draw(st.sampled_from([8, header, len(damaged)]))
        damaged[data.draw(st.integers(0, end - 1))] = data.draw(st.integers(0, 255))
    path = whole.with_name("damaged.safetensors")
    path.write_bytes(damaged[: data.draw(st.sampled_from([len(damaged), header, header + 9]))])
    loads_or_is_refused(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(st.sampled_from(["kind", "hidden", "name", "x"]), children, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_odd_headers_are_refused_or_play(whole: Path, data: st.DataObject) -> None:
    """Any entry may be missing or of any type, also in the rules and the network's shape."""
    header = read_header(whole)
    tables = [header, header["network"], header["ruleset"]]
    table = data.draw(st.sampled_from(tables))
    key = data.draw(st.sampled_from(sorted(table)))
    if data.draw(st.booleans()):
        table[key] = data.draw(JSON)
    else:
        del table[key]
    path = whole.with_name("odd.safetensors")
    save_file(load_file(whole), path, metadata={"bao_env": json.dumps(header)})
    loads_or_is_refused(path)


def test_numbers_must_be_finite(saved: Path) -> None:
    loaded = checkpoint.load(saved)
    with torch.no_grad():
        loaded.network.head.bias[0] = torch.nan
    checkpoint.save(saved, loaded)
    with pytest.raises(CheckpointError, match="not finite"):
        checkpoint.load(saved)


def test_a_failed_write_leaves_the_old_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def fail(*args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        checkpoint.save(saved, checkpoint.load(saved))
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]
