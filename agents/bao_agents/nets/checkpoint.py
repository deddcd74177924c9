"""Save and load checkpoints: tensors and plain JSON in one safetensors file, never pickled.

The file's metadata entry ``bao_env`` is a JSON object::

    {"format": 2, "rules_version": 1, "observation_version": 1, "inputs_version": 1,
     "ruleset": {...}, "hidden": [256, 128], "info": {...}}

The network's tensors are named ``model.*``. They are float32 or, in small files, all float16. The
optional tensor ``nnue`` has the weights of an :class:`~bao_agents.evaluators.nnue.NNUE`. A
trainer's tensors have other names. ``hidden`` lists the units of the network's hidden layers.
``info`` may hold anything: step, seed, configuration. A file with other versions than this
package's is refused.

The header and the types and shapes of the network's tensors are checked before a tensor is read or
a network is built. A trainer's tensors are read only on request.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialize

from bao_agents.evaluators.nnue import NNUE, make_nnue
from bao_agents.nets.checkpoint_files import OWN_CODE, Version, shipped, version
from bao_agents.nets.features import INPUTS_VERSION
from bao_agents.nets.layers import shapes_of_layers
from bao_agents.support.array_types import Float32Array
from bao_agents.support.files import write_atomically
from bao_env.engine.ruleset import RULES_VERSION, Ruleset
from bao_env.observation.board import OBSERVATION_VERSION

if TYPE_CHECKING:
    from bao_agents.nets.network import PolicyNetwork

FORMAT = 2
_KEY = "bao_env"
_MODEL = "model."
_NNUE = "nnue"
_MAX_PARAMETERS = 1 << 28
"""The most parameters of a network, 1 GiB. A sparse file could claim any number."""
_LARGEST = 65504
"""The largest weight allowed: the largest float16. Sums of such weights stay finite."""
Arrays = dict[str, npt.NDArray[Any]]


class CheckpointError(ValueError):
    """The file is not a checkpoint that this version of the project can use."""


class OtherRulesError(CheckpointError):
    """The checkpoint was trained under other rules."""


@dataclass(frozen=True)
class Checkpoint:
    """A network, the rules that it was trained under, its trainer's notes, and perhaps an NNUE."""

    weights: Mapping[str, Float32Array]
    """The weights of the network, as :meth:`PolicyNetwork.arrays` returns them."""
    ruleset: Ruleset
    info: dict[str, Any] = field(default_factory=dict)
    """Plain values: step, seed, configuration."""
    arrays: Arrays = field(default_factory=dict)
    """A trainer's other arrays, by name; empty unless requested from :func:`load`."""
    nnue: NNUE | None = None
    """The evaluator of guided alpha-beta, if it was trained with the network."""

    @property
    def hidden(self) -> list[int]:
        """The units of the network's hidden layers."""
        biases = [array for array in self.weights.values() if array.ndim == 1]
        return [len(bias) for bias in biases[:-1]]  # the last layer is the head

    @cached_property
    def network(self) -> PolicyNetwork:
        """The network, with its own copy of the weights."""
        import torch  # slow to import, and guided alpha-beta does not need it

        from bao_agents.nets.network import PolicyNetwork

        with torch.device("cpu"):  # whatever the caller's default is
            network = PolicyNetwork(self.hidden)
        for name, tensor in network.state_dict().items():
            tensor.copy_(torch.from_numpy(self.weights[name]))
        return network.eval()


def save(path: str | os.PathLike[str], checkpoint: Checkpoint, *, half: bool = False) -> None:
    """Write a checkpoint. If this fails, ``path`` still holds the old file.

    Args:
        path: the file.
        checkpoint: the checkpoint.
        half: whether to round the network's weights to float16, which halves the file.

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
        "hidden": checkpoint.hidden,
        "info": checkpoint.info,
    }
    arrays = model_arrays(checkpoint)
    if half:
        arrays |= {name: a.astype(np.float16) for name, a in arrays.items() if name != _NNUE}
    arrays |= checkpoint.arrays
    tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    data = serialize(tensors, metadata={_KEY: json.dumps(header)})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)


def model_arrays(checkpoint: Checkpoint) -> Arrays:
    """Return the weights of the network and of the NNUE, by their names in the file."""
    arrays: Arrays = {_MODEL + name: array for name, array in checkpoint.weights.items()}
    return arrays if checkpoint.nnue is None else arrays | {_NNUE: checkpoint.nnue.weights}


def load(
    path: str | os.PathLike[str], ruleset: Ruleset | None = None, *, arrays: bool = False
) -> Checkpoint:
    """Read a checkpoint written by :func:`save`.

    Args:
        path: the file.
        ruleset: refuse a checkpoint trained under rules other than these.
        arrays: also read the trainer's arrays, whatever their number and size.

    Raises:
        FileNotFoundError: the file does not exist.
        CheckpointError: the file is not a checkpoint, is damaged, has another version or too large
            a network, or was trained under other rules; the message says which.
    """
    path = Path(path)
    with _open(path) as file:
        trained, names, info = _read_header(path, file)
        if ruleset is not None and trained != ruleset:
            message = f"{path} was trained under rule set {trained.contrast(ruleset)}"
            if ruleset.name in shipped():
                message += f"; the network of {ruleset.name} is {ruleset.name!r}"
            raise OtherRulesError(message)
        weights = {name: _read_weights(path, file, name) for name in names}
        trainer_arrays = {
            name: _read_tensor(path, file, name)
            for name in file.keys()  # noqa: SIM118
            if arrays and name != _NNUE and not name.startswith(_MODEL)
        }
        return Checkpoint(weights, trained, info, trainer_arrays, _read_nnue(path, file))


def load_shared(path: Path, ruleset: Ruleset) -> Checkpoint:
    """Read a checkpoint once, and keep it until its file changes or the memory is full.

    Callers share the checkpoint's network, and must not change it.

    Raises:
        OSError, ValueError: see :func:`load` and :func:`~.checkpoint_files.version`.
    """
    return _load_version(version(path), ruleset)


@lru_cache(maxsize=8)
def _load_version(version: Version, ruleset: Ruleset) -> Checkpoint:
    return load(version.path, ruleset)


def _open(path: Path) -> Any:
    """Open a file with safetensors, which checks that its parts fit its length."""
    if not path.exists():
        raise FileNotFoundError(f"no checkpoint at {path}")
    if not path.is_file():  # a pipe could block indefinitely
        raise CheckpointError(f"{path} is not a regular file: expected a .safetensors file")
    try:
        with path.open("rb"):  # safetensors reports an unreadable file as missing
            return safe_open(path, framework="numpy")
    except (SafetensorError, OSError, ValueError) as error:
        own = {".safetensors": "", ".py": f"; {OWN_CODE}"}.get(
            path.suffix, "; weights of your own are named MODULE:FUNCTION@FILE"
        )
        raise CheckpointError(
            f"{path} is not a bao_env checkpoint (a .safetensors file written by training): "
            f"{error!s:.300}{own}"
        ) from error


def _read_header(path: Path, file: Any) -> tuple[Ruleset, list[str], dict[str, Any]]:
    """Return the rule set, the names of the network's weights and the info, all checked.

    Raises:
        CheckpointError: see :func:`load`.
    """
    metadata = file.metadata() or {}
    if _KEY not in metadata:
        raise CheckpointError(
            f"{path} is not a bao_env checkpoint: its metadata has no entry {_KEY!r}"
        )
    try:
        header = json.loads(metadata[_KEY])
        _check_versions(header)
        ruleset = Ruleset.from_dict(header["ruleset"])
        layers = shapes_of_layers(header["hidden"])
        info = header["info"]
        if not isinstance(info, dict):
            raise TypeError(f"info is {info!r:.200}: expected an object")
        _check_tensors(file, layers)
    except (KeyError, TypeError, RecursionError, json.JSONDecodeError) as error:
        raise CheckpointError(
            f"{path}: its header is malformed: {type(error).__name__}: {error!s:.500}"
        ) from error
    except ValueError as error:  # from a check, whose message says what is wrong
        raise CheckpointError(f"{path}: {error!s:.500}") from error
    return ruleset, list(layers), info


def _check_versions(header: Mapping[str, Any]) -> None:
    """Check the versions in a header; raise ValueError if one is not ours."""
    for key, expected in (
        ("format", FORMAT),
        ("rules_version", RULES_VERSION),
        ("observation_version", OBSERVATION_VERSION),
        ("inputs_version", INPUTS_VERSION),
    ):
        number = header[key]
        if type(number) is not int or number != expected:
            raise ValueError(
                f"its {key} is {number!r:.200}; this version of bao_env reads only {expected}"
            )


def _check_tensors(file: Any, layers: Mapping[str, list[int]]) -> None:
    """Check the types, shapes and size of the network's tensors, before any of them is read.

    Raises:
        ValueError: they are not those of ``layers``, all float32 or all float16, or too large.
    """
    model = {}
    for name in file.keys():  # noqa: SIM118
        if name.startswith(_MODEL):
            tensor = file.get_slice(name)
            model[name] = tensor.get_dtype(), tensor.get_shape()
    expected = [
        {_MODEL + name: (dtype, shape) for name, shape in layers.items()}
        for dtype in ("F32", "F16")
    ]
    if model not in expected:
        raise ValueError("its tensors do not fit the network that it describes")
    if sum(math.prod(shape) for shape in layers.values()) > _MAX_PARAMETERS:
        raise ValueError(f"its network is too large: expected at most {_MAX_PARAMETERS} parameters")


def _read_weights(path: Path, file: Any, name: str) -> Float32Array:
    """Read one tensor of the network from an open file whose header has been checked."""
    array = _read_tensor(path, file, _MODEL + name)
    if not (np.abs(array) <= _LARGEST).all():  # also true if a weight is not a number
        raise CheckpointError(f"{path}: some weights of its network are NaN or beyond +-{_LARGEST}")
    return array.astype(np.float32)


def _read_nnue(path: Path, file: Any) -> NNUE | None:
    """Return the NNUE of an open file, if it has one."""
    if _NNUE not in file.keys():  # noqa: SIM118
        return None
    try:
        return make_nnue(_read_tensor(path, file, _NNUE))
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from error


def _read_tensor(path: Path, file: Any, name: str) -> npt.NDArray[Any]:
    """Read a tensor of an open file."""
    try:
        array: npt.NDArray[Any] = file.get_tensor(name)
    # Safetensors raises the last two for a type that numpy lacks.
    except (SafetensorError, OSError, MemoryError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged: tensor {name:.100}: {error!s:.300}") from error
    return array
