"""Checkpoints: tensors and plain JSON in one safetensors file. Nothing is ever unpickled.

The file's metadata entry ``bao_env`` is a JSON object::

    {"format": 1, "rules_version": 1, "observation_version": 1, "inputs_version": 1,
     "ruleset": {...}, "network": {...}, "info": {...}}

and its tensors are the network's, named ``model.*``, beside whatever a trainer keeps
under other names. ``network`` is a :class:`~agents.nets.network.NetworkConfig`. ``info`` is free:
step, seed, configuration. Other versions than this package's are refused. Files from before there
was an ``inputs_version`` or an ``architecture`` are of version 1 and of architecture ``mlp``.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialize

from agents.nets.features import INPUTS_VERSION
from agents.nets.network import NetworkConfig, PolicyNetwork
from bao_env.engine.ruleset import RULES_VERSION, Ruleset
from bao_env.observation.board import OBSERVATION_VERSION

FORMAT: Final = 1
_KEY: Final = "bao_env"
_MODEL: Final = "model."
_MAX_HEADER: Final = 4 << 20

Arrays = dict[str, npt.NDArray[Any]]


class CheckpointError(ValueError):
    """A file is no checkpoint of this project, or one that this version cannot use."""


@dataclass(frozen=True)
class Checkpoint:
    """A network, the rules it was trained under, and what its trainer noted."""

    network: PolicyNetwork
    ruleset: Ruleset
    info: dict[str, Any] = field(default_factory=dict)
    """Plain values: step, seed, configuration."""
    arrays: Arrays = field(default_factory=dict)
    """A trainer's other arrays, by name."""


def save(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint; whatever happens, ``path`` holds either the old file or the new one.

    Raises:
        OSError: the file cannot be written.
    """
    path = Path(path)
    header = {
        "format": FORMAT,
        "rules_version": RULES_VERSION,
        "observation_version": OBSERVATION_VERSION,
        "inputs_version": INPUTS_VERSION,
        "ruleset": checkpoint.ruleset.to_dict(),
        "network": asdict(checkpoint.network.config),
        "info": checkpoint.info,
    }
    tensors = {
        _MODEL + name: tensor.detach().cpu().numpy()
        for name, tensor in checkpoint.network.state_dict().items()
    }
    tensors |= {name: np.ascontiguousarray(array) for name, array in checkpoint.arrays.items()}
    data = serialize(tensors, metadata={_KEY: json.dumps(header)})
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def load(path: str | os.PathLike[str], ruleset: Ruleset | None = None) -> Checkpoint:
    """Read a checkpoint written by :func:`save`.

    Args:
        path: the file.
        ruleset: refuse a checkpoint trained under other rules than these.

    Raises:
        FileNotFoundError: there is no such file.
        CheckpointError: it is no checkpoint, is damaged, has another version, or was trained
            under other rules; the message says which.
    """
    path = Path(path)
    if path.is_dir():
        raise CheckpointError(f"{path} is a folder; expected a .safetensors file in it")
    if not path.exists():
        raise FileNotFoundError(f"no checkpoint at {path}")
    header = _read_header(path)
    trained, config, info = _check_header(path, header)
    if ruleset is not None and trained != ruleset:
        raise CheckpointError(
            f"{path} was trained under rule set {trained.name!r}, not {ruleset.name!r}"
            + (_differences(trained, ruleset) if trained.name == ruleset.name else "")
        )
    try:
        with safe_open(path, framework="numpy") as file:
            arrays: Arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    state = {
        name.removeprefix(_MODEL): array
        for name, array in arrays.items()
        if name.startswith(_MODEL)
    }
    with torch.device("meta"):  # allocates nothing, whatever sizes the header claims
        expected = {name: tuple(t.shape) for name, t in PolicyNetwork(config).state_dict().items()}
    if {name: array.shape for name, array in state.items()} != expected:
        raise CheckpointError(f"{path}: its tensors do not fit the network that it describes")
    if not all(a.dtype == np.float32 and np.isfinite(a).all() for a in state.values()):
        raise CheckpointError(f"{path}: its network has numbers that are not finite float32")
    network = PolicyNetwork(config)
    network.load_state_dict({name: torch.from_numpy(a.copy()) for name, a in state.items()})
    network.eval()
    rest = {name: array for name, array in arrays.items() if not name.startswith(_MODEL)}
    return Checkpoint(network, trained, info, rest)


def _read_header(path: Path) -> Mapping[str, Any]:
    """The JSON object of the file's metadata."""
    refused = f"{path} is no bao_env checkpoint (a .safetensors file written by training)"
    with open(path, "rb") as raw:
        prefix = raw.read(8)
    if len(prefix) < 8 or struct.unpack("<Q", prefix)[0] > _MAX_HEADER:
        raise CheckpointError(refused)
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{refused}: {error}") from error
    if _KEY not in metadata:
        raise CheckpointError(f"{refused}: it has no entry {_KEY!r}")
    try:
        header = json.loads(metadata[_KEY])
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: its header is no JSON: {error}") from error
    if not isinstance(header, dict):
        raise CheckpointError(f"{path}: its header is no JSON object")
    return header


def _check_header(
    path: Path, header: Mapping[str, Any]
) -> tuple[Ruleset, NetworkConfig, dict[str, Any]]:
    """Rule set, network shape and info of a header."""
    for key, expected in (
        ("format", FORMAT),
        ("rules_version", RULES_VERSION),
        ("observation_version", OBSERVATION_VERSION),
        ("inputs_version", INPUTS_VERSION),
    ):
        found = header.get(key, 1 if key == "inputs_version" else None)
        if found != expected:
            raise CheckpointError(
                f"{path} has {key} {found!r}; this version of bao_env reads {expected}"
            )
    try:
        ruleset = Ruleset.from_dict(header["ruleset"])
        config = NetworkConfig(**header["network"])
        info = dict(header["info"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: its header is not as expected: {error}") from error
    return ruleset, config, info


def _differences(trained: Ruleset, wanted: Ruleset) -> str:
    """The switches in which two rule sets of the same name differ."""
    ours, theirs = trained.to_dict(), wanted.to_dict()
    parts = [
        f"{key}={ours[key]!r}, not {theirs[key]!r}" for key in ours if ours[key] != theirs[key]
    ]
    return f" ({'; '.join(parts)})"
