"""A network compiled for one core: what it says of a few rows, without a call into torch.

Most of a row is empty pits, and each byte of it touches the first layer by itself. So the first
layer is a table, one line of sums for each value of each byte, of which a row adds up its
twenty or so; chess programs call such a network efficiently updatable (NNUE). The
later layers multiply only what the units before them let through.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from agents.nets.features import ENCODING_SIZE, expand
from bao_env.engine.compile import jit_float

if TYPE_CHECKING:  # torch is slow to import, and this file's compiled part needs none of it
    from agents.nets.network import PolicyNetwork

VALUES: Final = 65
"""Values that a byte of a row may have: 0 to 64 seeds."""


class Weights(NamedTuple):
    """A network with one or more hidden layers; layer 0 is the first, the last is the head."""

    table: npt.NDArray[np.float32]
    """float32[1 + ENCODING_SIZE * VALUES, units of layer 0], its sums for each value of each byte
    of an encoding; line 0 is zero."""
    widths: npt.NDArray[np.int64]
    """int64[L], the units of each layer."""
    biases: npt.NDArray[np.float32]
    """float32[sum of widths], layer after layer."""
    matrix: npt.NDArray[np.float32]
    """float32[...], for each unit of all layers but the head its weights in the next layer."""


class NetworkWorkspace(NamedTuple):
    """What :func:`forward` works in."""

    lines: npt.NDArray[np.int64]
    """int64[ENCODING_SIZE + 4], the lines of the table that a row adds up."""
    units: npt.NDArray[np.float32]
    """float32[widest layer]."""
    following: npt.NDArray[np.float32]
    """float32[widest layer]."""
    opened: npt.NDArray[np.int64]
    """int64[widest layer + 1], the units that are above zero."""


@cache
def _probes() -> Any:
    """float32[1 + ENCODING_SIZE * VALUES, FEATURES], the features of each value of each byte."""
    rows = np.zeros((1 + ENCODING_SIZE * VALUES, ENCODING_SIZE), np.uint8)
    for byte in range(ENCODING_SIZE):
        rows[1 + byte * VALUES : 1 + (byte + 1) * VALUES, byte] = np.arange(VALUES)
    import torch

    return torch.from_numpy(expand(rows)).view(torch.bfloat16).float()


def compile_network(network: PolicyNetwork) -> Weights:
    """The weights of a network as they are now, laid out for :func:`forward`."""
    import torch

    state = {name: t.detach().cpu().float() for name, t in network.state_dict().items()}
    names = [name.removesuffix(".weight") for name in state if name.endswith(".weight")]
    return Weights(
        (_probes() @ state[f"{names[0]}.weight"].T).numpy(),
        np.array([len(state[f"{name}.bias"]) for name in names]),
        torch.cat([state[f"{name}.bias"] for name in names]).numpy(),
        torch.cat([state[f"{name}.weight"].T.flatten() for name in names[1:]]).numpy(),
    )


def make_network_workspace(weights: Weights) -> NetworkWorkspace:
    """Room for one thread."""
    widest = int(weights.widths.max())
    return NetworkWorkspace(
        np.zeros(ENCODING_SIZE + 4, np.int64),
        np.empty(widest, np.float32),
        np.empty(widest, np.float32),
        np.empty(widest + 1, np.int64),
    )


@jit_float
def forward(weights, rows, count, room, out):
    """The head's outputs, float32: see :meth:`agents.nets.network.PolicyNetwork.head_outputs`.

    Args:
        weights: the :class:`Weights`.
        rows: uint8[R, ENCODING_SIZE].
        count: how many of them to judge.
        room: a :class:`NetworkWorkspace`.
        out: float32[R, 65 or 2], filled.
    """
    table = weights.table
    lines, units, following, opened = room
    for r in range(count):
        found = 0
        for byte in range(rows.shape[1]):
            value = np.int64(rows[r, byte])
            lines[found] = 1 + byte * VALUES + value
            found += 1 if value != 0 else 0
        while found & 3:  # four at a time; line 0 adds nothing
            lines[found] = 0
            found += 1
        width = table.shape[1]
        for j in range(width):
            units[j] = weights.biases[j]
        for i in range(0, found, 4):
            a, b = table[lines[i]], table[lines[i + 1]]
            c, d = table[lines[i + 2]], table[lines[i + 3]]
            for j in range(width):
                units[j] += (a[j] + b[j]) + (c[j] + d[j])
        base = 0
        biases = weights.biases[width:]
        for layer in range(1, len(weights.widths)):
            found = 0
            for j in range(width):
                opened[found] = j
                found += 1 if units[j] > np.float32(0.0) else 0
            before, width = width, weights.widths[layer]
            matrix = weights.matrix[base : base + before * width].reshape(before, width)
            for j in range(width):
                following[j] = biases[j]
            whole = found & ~3
            for i in range(0, whole, 4):
                p, q = units[opened[i]], units[opened[i + 1]]
                s, t = units[opened[i + 2]], units[opened[i + 3]]
                a, b = matrix[opened[i]], matrix[opened[i + 1]]
                c, d = matrix[opened[i + 2]], matrix[opened[i + 3]]
                for j in range(width):
                    following[j] += (p * a[j] + q * b[j]) + (s * c[j] + t * d[j])
            for i in range(whole, found):
                p, a = units[opened[i]], matrix[opened[i]]
                for j in range(width):
                    following[j] += p * a[j]
            units, following = following, units
            base += before * width
            biases = biases[width:]
        for j in range(width):
            out[r, j] = units[j]
