"""Learn the rows of numbers by which guided alpha-beta evaluates positions.

During training, the row of a pair of pits is a sum of three: one for the pair, and one for each of
its two pits, so that rare pairs learn from others. The search reads their sums
(:meth:`ValueRows.weights`).

A position selects 16 of 18,432 rows, so a compiled function computes their gradient, several times
as fast as torch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bao_agents.evaluators.pairs import (
    LEVEL_BITS,
    PAIRS,
    PHASES,
    ROW_LIMIT,
    ROW_SCALE,
    ROWS,
    TABLES,
    UNITS,
    list_rows,
)
from bao_agents.support.array_types import Float32Array, Int16Array, Int32Array
from bao_agents.support.vectors import add, jit_float, load_vector, store_vector
from bao_env.engine.position import PackedPositions


class ValueRows(nn.Module):
    """The rows during training.

    Args:
        weights: rows to start with, int16[ROWS, UNITS], as :meth:`weights` returns them.
    """

    def __init__(self, weights: Int16Array | None = None) -> None:
        super().__init__()
        tables, levels = PHASES * TABLES, 1 << LEVEL_BITS
        self.pairs = nn.Parameter(torch.zeros(tables, levels, levels, UNITS))
        self.first = nn.Parameter(torch.zeros(tables, 1, levels, UNITS))
        self.second = nn.Parameter(torch.zeros(tables, levels, 1, UNITS))
        with torch.no_grad():
            if weights is not None:
                rows = torch.from_numpy(weights).float() / ROW_SCALE
                self.pairs.copy_(rows.view_as(self.pairs))
                return
            for pits in (self.first, self.second):
                pits[..., 1:].normal_(0.1 / (2 * PAIRS), 0.03)

    def sums(self) -> Tensor:
        """Return the rows, float[ROWS, UNITS]."""
        return (self.pairs + self.first + self.second).view(ROWS, UNITS)

    def weights(self) -> Int16Array:
        """Return the rows as the search reads them, int16[ROWS, UNITS]; see
        :data:`bao_agents.evaluators.pairs.ROW_SCALE`."""
        rows = self.sums().detach().float().cpu().numpy() * ROW_SCALE
        return rows.round().clip(-ROW_LIMIT, ROW_LIMIT).astype(np.int16)

    def loss(self, positions: PackedPositions, chances: Float32Array) -> Tensor:
        """Return the cross-entropy to the movers' chances of winning, summed over positions.

        Args:
            positions: uint64[B, 6].
            chances: float32[B], 0 to 1.
        """
        rows = np.empty((len(positions), PAIRS), np.int32)
        list_rows(positions, rows)
        loss: Tensor = _RowsLoss.apply(self.sums(), rows, chances)
        return loss


class _RowsLoss(torch.autograd.Function):
    """The loss of :meth:`ValueRows.loss`, with its gradient."""

    @staticmethod
    def forward(ctx: Any, sums: Tensor, rows: Int32Array, chances: Float32Array) -> Tensor:
        table = sums.detach().float().cpu().numpy().reshape(-1)
        gradient = np.zeros_like(table)
        loss = _loss_and_gradient(table, rows, chances, gradient, np.empty(UNITS, np.float32))
        ctx.gradient = torch.from_numpy(gradient).view_as(sums).to(sums)
        return sums.new_tensor(loss)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None, None]:
        return ctx.gradient * outer[0], None, None


@jit_float
def _loss_and_gradient(table, rows, chances, gradient, units):
    """Return the loss of :meth:`ValueRows.loss`.

    Args:
        table: float32[ROWS * UNITS].
        rows: int32[B, PAIRS], the rows of each position.
        chances: float32[B].
        gradient: float32[ROWS * UNITS], to which the loss's gradient is added.
        units: float32[UNITS], memory.
    """
    loss = 0.0
    half, none = UNITS // 2, np.float32(0.0)
    for b in range(rows.shape[0]):
        total = load_vector(table, np.int64(rows[b, 0]) * UNITS)
        for i in range(1, PAIRS):
            total = add(total, load_vector(table, np.int64(rows[b, i]) * UNITS))
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
            at = np.int64(rows[b, i]) * UNITS
            store_vector(gradient, at, add(load_vector(gradient, at), step))
    return loss
