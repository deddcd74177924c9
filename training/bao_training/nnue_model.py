"""Learn the weights of the NNUE with which guided alpha-beta evaluates positions.

As in nnue-pytorch, the trainer of Stockfish's NNUE, weights are factorised in training. The vector
of a pattern is the sum of three vectors: one for its two counts together, and a *virtual* one for
each count, so that rare patterns learn from others. The search reads the sums, as integers
(:meth:`NNUEModel.quantised`).

A position has only 16 of the 18,432 patterns, so a compiled function computes the gradient, several
times as fast as torch.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bao_agents.evaluators.nnue import (
    NNUE,
    PATTERNS,
    UNITS,
    WEIGHT_LIMIT,
    WEIGHT_SCALE,
    make_nnue,
)
from bao_agents.evaluators.pairs import COARSE, PAIRS, PHASES, TABLES, patterns_of
from bao_agents.nets.vectors import add, jit_float, load_vector, store_vector
from bao_agents.support.array_types import Float32Array, Int32Array
from bao_env.compiled.compile import jit
from bao_env.engine.position import PackedPositions, load_rows_at


class NNUEModel(nn.Module):
    """An :class:`NNUE` in training.

    Args:
        start: the NNUE to start with; by default, random weights.
    """

    def __init__(self, start: NNUE | None = None) -> None:
        super().__init__()
        tables, levels = PHASES * TABLES, 1 << COARSE
        zeros = partial(torch.zeros, dtype=torch.float32)
        self.weight: nn.Parameter = nn.Parameter(zeros(tables, levels, levels, UNITS))
        self.virtual_first: nn.Parameter = nn.Parameter(zeros(tables, 1, levels, UNITS))
        self.virtual_second: nn.Parameter = nn.Parameter(zeros(tables, levels, 1, UNITS))
        with torch.no_grad():
            if start is not None:
                weight = torch.from_numpy(start.weights).float() / WEIGHT_SCALE
                self.weight.copy_(weight.view_as(self.weight))
                return
            for virtual in (self.virtual_first, self.virtual_second):
                virtual[..., 1:].normal_(0.1 / (2 * PAIRS), 0.03)

    def merged(self) -> Tensor:
        """Return float[PATTERNS, UNITS], the vectors of all patterns in logits, with gradient."""
        return (self.weight + self.virtual_first + self.virtual_second).view(PATTERNS, UNITS)

    def quantised(self) -> NNUE:
        """Return the NNUE that the search reads: the merged weights as integers."""
        limit = WEIGHT_LIMIT / WEIGHT_SCALE
        weights = self.merged().detach().cpu().numpy().clip(-limit, limit) * WEIGHT_SCALE
        return make_nnue(weights.round().astype(np.int16))

    def loss(self, positions: PackedPositions, chances: Float32Array) -> Tensor:
        """Return the cross-entropy to the given chances of winning, summed over positions.

        Args:
            positions: uint64[B, 6].
            chances: float32[B], the chances of the players to move, 0 to 1.
        """
        patterns = np.empty((len(positions), PAIRS), np.int32)
        list_patterns(positions, patterns)
        loss: Tensor = _Loss.apply(self.merged(), patterns, chances)
        return loss


@jit
def list_patterns(positions: PackedPositions, out: Int32Array) -> None:
    """List the coarse patterns of positions.

    Args:
        positions: uint64[B, 6].
        out: int32[B, PAIRS], filled.
    """
    for g in range(positions.shape[0]):
        patterns = patterns_of(load_rows_at(positions, g), COARSE)
        for i in range(PAIRS):
            out[g, i] = patterns[i]


class _Loss(torch.autograd.Function):
    """The loss of :meth:`NNUEModel.loss`, with its gradient."""

    @staticmethod
    def forward(ctx: Any, merged: Tensor, patterns: Int32Array, chances: Float32Array) -> Tensor:
        weights = merged.detach().cpu().numpy().reshape(-1)
        gradient = np.zeros_like(weights)
        loss = _loss_and_gradient(weights, patterns, chances, gradient, np.empty(UNITS, np.float32))
        ctx.gradient = torch.from_numpy(gradient).view_as(merged).to(merged)
        return merged.new_tensor(loss)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None, None]:
        return ctx.gradient * outer[0], None, None


@jit_float
def _loss_and_gradient(
    weights: Float32Array,
    patterns: Int32Array,
    chances: Float32Array,
    gradient: Float32Array,
    units: Float32Array,
) -> float:
    """Return the loss of :meth:`NNUEModel.loss`, and add its gradient to ``gradient``.

    Args:
        weights: float32[PATTERNS * UNITS].
        patterns: int32[B, PAIRS], the patterns of each position.
        chances: float32[B].
        gradient: float32[PATTERNS * UNITS], to which the loss's gradient is added.
        units: float32[UNITS], scratch memory.
    """
    loss = 0.0
    half, none = UNITS // 2, np.float32(0.0)
    for b in range(patterns.shape[0]):
        total = load_vector(weights, np.int64(patterns[b, 0]) * UNITS)
        for i in range(1, PAIRS):
            total = add(total, load_vector(weights, np.int64(patterns[b, i]) * UNITS))
        store_vector(units, 0, total)
        logit = units[0]
        for j in range(1, half):
            logit += max(units[j], none)
        for j in range(half, UNITS):
            logit -= max(units[j], none)
        chance = np.float32(1.0) / (np.float32(1.0) + np.exp(-logit))
        error = chance - chances[b]
        loss += max(logit, none) - logit * chances[b] + np.log1p(np.exp(-abs(logit)))
        units[0] = error
        for j in range(1, half):
            units[j] = error if units[j] > none else none
        for j in range(half, UNITS):
            units[j] = -error if units[j] > none else none
        step = load_vector(units, 0)
        for i in range(PAIRS):
            offset = np.int64(patterns[b, i]) * UNITS
            store_vector(gradient, offset, add(load_vector(gradient, offset), step))
    return loss
