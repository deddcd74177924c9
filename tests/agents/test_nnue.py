"""Test the value network of guided alpha-beta: it is computed, and learnt, as documented."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from bao_agents.evaluators.learning import ValueRows
from bao_agents.evaluators.nnue import evaluate_by_network, network_of, output
from bao_agents.evaluators.pairs import (
    PAIRS,
    PHASES,
    ROW_SCALE,
    ROWS,
    SIGNS,
    TABLES,
    UNITS,
    list_rows,
)
from bao_agents.evaluators.tables import (
    CELLS,
    LIMIT,
    SCALE,
    Tables,
    evaluate_by_tables,
    load_tables,
)
from bao_agents.nets.network import PolicyNetwork
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_env.engine.layout import HOUSE
from bao_env.engine.position import Packed, unpack
from bao_env.engine.ruleset import RULESETS
from tests.positions import draw, mixed_batch


def level(seeds: int) -> int:
    """Return the level of a count, as documented."""
    return seeds if seeds <= 12 else 12 + sum(seeds > most for most in (13, 16, 21))


def literal_cells(packed: np.ndarray, bits: int, rounded: Callable[[int], int]) -> list[int]:
    """Return the cells of a position, from its seeds one by one."""
    position = unpack(packed)
    mover, other = position.mover, 1 - position.mover
    phase = min((sum(position.store) + 13) // 14, PHASES - 1)
    tables = list(range(8))
    if position.owns_house[other]:
        tables[7 - HOUSE] = 9
    if position.owns_house[mover]:
        tables[HOUSE] = 8
    mine, theirs = position.front[mover], position.front[other]
    pairs = [(tables[i], mine[i], theirs[7 - i]) for i in range(8)]
    for first, seat in ((10, mover), (14, other)):
        ring = position.back[seat][::-1]  # the ring continues from right to left
        pairs += [(first + i, ring[2 * i], ring[2 * i + 1]) for i in range(4)]
    return [
        ((phase * TABLES + table << bits) + rounded(second) << bits) + rounded(first)
        for table, first, second in pairs
    ]


@pytest.mark.parametrize("name", RULESETS)
def test_cells_and_values_are_those_of_literal_evaluators(name: str) -> None:
    positions, rng = mixed_batch(RULESETS[name], 200, seed=1), np.random.default_rng(1)
    cells = rng.integers(-2000, 2000, CELLS).astype(np.int16)
    rows = rng.integers(-900, 900, (ROWS, UNITS)).astype(np.int16)
    found = np.empty((len(positions), PAIRS), np.int32)
    list_rows(positions, found)
    for position, of_network in zip(positions, found, strict=True):
        of_tables = literal_cells(position, 5, lambda seeds: min(seeds, 31))
        value = max(-LIMIT, min(LIMIT, cells[of_tables].astype(int).sum()))
        assert evaluate_by_tables(Tables(cells), Packed.of(position)) == value
        assert of_network.tolist() == literal_cells(position, 4, level)
        total = rows[of_network].astype(int).sum(axis=0)
        value = total[0]
        for unit in range(1, UNITS):
            value += max(total[unit], 0) * (1 if unit < UNITS // 2 else -1)
        assert output(rows, tuple(of_network.tolist())) == value
        value = max(-LIMIT, min(LIMIT, int(value) * SCALE // ROW_SCALE))
        assert evaluate_by_network(network_of(rows), Packed.of(position)) == value


def test_guided_search_reads_it_and_full_search_does_not() -> None:
    """The full search is the yardstick of many figures: its evaluation stays the tables'."""
    ruleset = RULESETS["zanzibar"]
    torch.manual_seed(3)
    policy, without = PolicyNetwork([8], rows=True), PolicyNetwork([8])
    batch, _ = draw(ruleset, 5, 12)
    assert policy.rows is not None
    rows, cells = policy.rows.weights(), load_tables(ruleset).cells

    def values(**settings: Any) -> list[int]:
        agent = AlphaBetaAgent(ruleset, depth=2, threads=1, **settings)
        return [agent.search(position).value for position in batch]

    assert values(network=policy) == values(network=policy, weights=rows)
    assert values(network=policy) != values(network=policy, weights=cells)
    assert values(network=without) == values(network=without, weights=cells)
    assert values() == values(weights=cells) != values(weights=rows)


def some_rows() -> ValueRows:
    """Return rows in which every number is random."""
    torch.manual_seed(3)
    rows = ValueRows()
    for parameter in rows.parameters():
        torch.nn.init.normal_(parameter, std=0.05)
    return rows


def logits_by_torch(rows: ValueRows, positions: np.ndarray) -> torch.Tensor:
    """Return the logits of positions, with their gradient by torch."""
    cells = np.empty((len(positions), PAIRS), np.int32)
    list_rows(positions, cells)
    total = rows.sums()[torch.from_numpy(cells).long()].sum(dim=1)
    return total[:, 0] + total[:, 1:].relu() @ torch.tensor(SIGNS[1:], dtype=torch.float32)


def test_what_is_learnt_is_what_the_search_reads() -> None:
    rows, positions = some_rows(), mixed_batch(RULESETS["zanzibar"], 50, seed=1)
    network = network_of(rows.weights())
    values = [evaluate_by_network(network, Packed.of(position)) for position in positions]
    np.testing.assert_allclose(
        values, logits_by_torch(rows, positions).detach().numpy() * SCALE, atol=8
    )
    again = ValueRows(rows.weights())
    assert (again.weights() == rows.weights()).all()


def test_the_compiled_loss_and_gradient_are_those_of_torch() -> None:
    rows, positions = some_rows(), mixed_batch(RULESETS["zanzibar"], 300, seed=2)
    chances = np.random.default_rng(1).random(len(positions), np.float32)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        logits_by_torch(rows, positions), torch.from_numpy(chances), reduction="sum"
    )
    loss = rows.loss(positions, chances)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    ours, theirs = (
        torch.autograd.grad(2 * one, list(rows.parameters())) for one in (loss, expected)
    )
    for mine, wanted in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.numpy(), wanted.numpy(), atol=1e-4)
