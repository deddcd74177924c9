"""Run a network on one core, without calls into torch.

Most bytes of an encoding are zero, and each byte contributes to the first layer independently
(:mod:`bao_agents.nets.features`). So the first layer is a table with one line of sums for each
value of each byte. To evaluate an encoding, the lines of its nonzero bytes are added up. This is
like the first layer of an NNUE, but without incremental updates. The later layers multiply only the
weights of units above zero.

Players, searches and the games of TD learning use this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bao_agents.nets.features import ENCODING_SIZE, expand
from bao_agents.nets.head import OUTPUTS, logits_and_values
from bao_agents.nets.vectors import (
    WIDTH,
    add,
    add_product,
    jit_float,
    load_vector,
    store_vector,
)
from bao_agents.support.array_types import Float32Array, Int64Array, Uint8Array
from bao_env.engine.position import Index

if TYPE_CHECKING:  # torch is slow to import, and the compiled part does not need it
    from bao_agents.nets.network import PolicyNetwork

BYTE_VALUES = 65
"""The number of values that a byte of an encoding may have: 0 to 64 seeds."""


class Weights(NamedTuple):
    """A network with one or more hidden layers; layer 0 is the first, the last is the head.

    Units without weights pad each layer to whole vectors.
    """

    table: Float32Array
    """float32[(bytes of an encoding * BYTE_VALUES) * units of layer 0], the sums of layer 0 for
    each value of each byte, line after line."""
    widths: Int64Array
    """int64[L], the number of units of each layer, a multiple of
    :data:`bao_agents.nets.vectors.WIDTH`."""
    biases: Float32Array
    """float32[sum of widths], the biases of the units, layer after layer."""
    matrix: Float32Array
    """float32[...], for each unit of all layers but the head, its weights in the next layer."""


NO_WEIGHTS = Weights(
    table=np.zeros(0, np.float32),
    widths=np.zeros(1, np.int64),
    biases=np.zeros(0, np.float32),
    matrix=np.zeros(0, np.float32),
)
"""A network without units, for functions that take a network but do not run it."""


class NetworkWorkspace(NamedTuple):
    """The memory of :func:`forward`, for one thread."""

    lines: Int64Array
    """int64[ENCODING_SIZE + 1], the starts of the table's lines that an encoding adds up."""
    units: Float32Array
    """float32[widest layer], the units of the current layer."""
    next_units: Float32Array
    """float32[widest layer], the units of the next layer."""
    active: Int64Array
    """int64[widest layer + 1], the indices of the units that are above zero."""


@cache
def _features_of_bytes() -> Float32Array:
    """Return the features of each value of each byte, float32[bytes * BYTE_VALUES, F].

    The features of an encoding are the sum of its bytes' features.
    """
    values = np.arange(BYTE_VALUES, dtype=np.uint8)[:, None]
    encodings = np.kron(np.eye(ENCODING_SIZE, dtype=np.uint8), values)
    bfloat16 = expand(encodings).view(np.uint16)  # the upper half of a float32
    return (bfloat16.astype(np.uint32) << 16).view(np.float32)


def _table(weight: Float32Array) -> Float32Array:
    """Return the sums of the first layer for each value of each byte; see :class:`Weights`.

    Args:
        weight: float32[units, F].
    """
    features = _features_of_bytes()
    lines, columns = np.nonzero(features)
    nth = np.arange(len(lines)) - np.searchsorted(lines, lines)  # position within the line
    table = np.zeros((len(features), len(weight)), np.float32)
    for n in range(nth.max() + 1):
        line, column = lines[nth == n], columns[nth == n]
        # Exact in float64: only the sum is rounded, as torch does.
        table[line] += features[line, column, None].astype(np.float64) * weight.T[column]
    return table


def compile_if_faster(network: PolicyNetwork) -> Weights | None:
    """Return the current weights of a network, laid out for :func:`forward`.

    Returns:
        None if torch runs the network faster: on a GPU, or in bfloat16.
    """
    import torch

    weight = network.head.weight
    if weight.device.type != "cpu" or weight.dtype == torch.bfloat16:
        return None
    return compile_arrays(network.arrays())


def compile_arrays(arrays: Mapping[str, Float32Array]) -> Weights:
    """Return the weights of a network, laid out for :func:`forward`.

    Args:
        arrays: the network's weights, as :meth:`PolicyNetwork.arrays` returns them.
    """
    layers = list(arrays.values())
    biases, weights = [], []
    missing = 0
    for weight, bias in zip(layers[::2], layers[1::2], strict=True):
        before, missing = missing, -len(bias) % WIDTH
        biases.append(np.pad(bias, (0, missing)))
        weights.append(np.pad(weight, ((0, missing), (0, before))))
    return Weights(
        _table(weights[0]).ravel(),
        np.array([len(bias) for bias in biases]),
        np.concatenate(biases),
        np.concatenate([weight.T.ravel() for weight in weights[1:]]),
    )


def make_network_workspace(weights: Weights) -> NetworkWorkspace:
    """Make the memory of :func:`forward` for one thread."""
    widest = int(weights.widths.max())
    return NetworkWorkspace(
        np.zeros(ENCODING_SIZE + 1, np.int64),
        np.empty(widest, np.float32),
        np.empty(widest, np.float32),
        np.empty(widest + 1, np.int64),
    )


@jit_float
def forward(
    weights: Weights,
    encodings: Uint8Array,
    count: Index,
    workspace: NetworkWorkspace,
    out: Float32Array,
) -> None:
    """Compute the head's outputs; see :meth:`bao_agents.nets.network.PolicyNetwork.head_outputs`.

    Args:
        weights: the :class:`Weights`.
        encodings: uint8[R, ENCODING_SIZE].
        count: the number of encodings to evaluate.
        workspace: a :class:`NetworkWorkspace`.
        out: float32[R, 2], filled for the first ``count`` encodings.
    """
    table, widths, biases, matrix = weights.table, weights.widths, weights.biases, weights.matrix
    lines, units, next_units, active = workspace
    for r in range(count):
        width = widths[0]
        line_count = 0
        for byte in range(encodings.shape[1]):
            value = np.int64(encodings[r, byte])
            lines[line_count] = (byte * BYTE_VALUES + value) * width
            line_count += 1 if value != 0 else 0
        for j in range(0, width, WIDTH):
            total = load_vector(biases, j)
            for i in range(line_count):
                total = add(total, load_vector(table, lines[i] + j))
            store_vector(units, j, total)
        base, bias = np.int64(0), width
        for layer in range(1, len(widths)):
            before, width = width, widths[layer]
            active_count = 0
            for j in range(before):
                active[active_count] = j
                # A unit that is not a number is also active.
                active_count += 0 if units[j] <= np.float32(0.0) else 1
            for j in range(0, width, WIDTH):
                total = load_vector(biases, bias + j)
                for i in range(active_count):
                    unit = active[i]
                    total = add_product(
                        total, units[unit], load_vector(matrix, base + unit * width + j)
                    )
                store_vector(next_units, j, total)
            units, next_units = next_units, units
            base += before * width
            bias += width
        for j in range(OUTPUTS):
            out[r, j] = units[j]


def evaluate_network(
    network: PolicyNetwork, encodings: Uint8Array, weights: Weights | None = None
) -> tuple[Float32Array, Float32Array]:
    """Return the logits and values of a batch, as the network's ``forward`` does.

    Args:
        network: the network.
        encodings: uint8[R, ENCODING_SIZE].
        weights: the compiled network (:func:`compile_if_faster`); with None, torch runs it.

    Returns:
        float32[R] and float32[R], without gradients.
    """
    import torch

    with torch.inference_mode():
        if weights is None:
            logits, values = network(torch.from_numpy(encodings))
        else:
            outputs = np.empty((len(encodings), OUTPUTS), np.float32)
            workspace = make_network_workspace(weights)
            forward(weights, encodings, len(encodings), workspace, outputs)
            logits, values = logits_and_values(torch.from_numpy(outputs))
        return logits.float().cpu().numpy(), values.float().cpu().numpy()
