"""Test the NNUE and the tables of alpha-beta: computed, and learnt, as documented."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from bao_agents.evaluators.nnue import (
    PATTERNS,
    SIGNS,
    UNITS,
    WEIGHT_LIMIT,
    WEIGHT_SCALE,
    make_nnue,
    nnue_value,
    output,
)
from bao_agents.evaluators.pairs import COARSE, FINE, PAIRS, PHASES, TABLES
from bao_agents.evaluators.tables import (
    CELLS,
    LIMIT,
    SCALE,
    PairTables,
    tables_value,
)
from bao_agents.nets.checkpoint import Checkpoint
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.limits import Limit
from bao_env.engine.layout import HOUSE
from bao_env.engine.position import Rows, unpack
from bao_env.engine.ruleset import RULESETS
from bao_training.nnue_model import NNUEModel, list_patterns
from tests.networks import make_network
from tests.positions import draw, mixed_batch
from tests.searches import minimax, tables_evaluator


def level(seeds: int) -> int:
    """Return the level of a count, as documented."""
    return seeds if seeds <= 12 else 12 + sum(seeds > highest for highest in (13, 16, 21))


def literal_patterns(packed: np.ndarray, bits: int, rounded: Callable[[int], int]) -> list[int]:
    """Return the patterns of a position, from its seeds one by one."""
    position = unpack(packed)
    mover, opponent = position.mover, 1 - position.mover
    phase = min((sum(position.store) + 13) // 14, PHASES - 1)
    tables = list(range(8))
    if position.owns_house[opponent]:
        tables[7 - HOUSE] = 9
    if position.owns_house[mover]:
        tables[HOUSE] = 8
    mine, theirs = position.front[mover], position.front[opponent]
    pairs = [(tables[i], mine[i], theirs[7 - i]) for i in range(8)]
    for first, seat in ((10, mover), (14, opponent)):
        ring = position.back[seat][::-1]  # the ring continues from right to left
        pairs += [(first + i, ring[2 * i], ring[2 * i + 1]) for i in range(4)]
    return [
        ((phase * TABLES + table << bits) + rounded(second) << bits) + rounded(first)
        for table, first, second in pairs
    ]


@pytest.mark.parametrize("name", RULESETS)
def test_patterns_and_values_are_those_of_literal_evaluators(name: str) -> None:
    positions, rng = mixed_batch(RULESETS[name], 200, seed=1), np.random.default_rng(1)
    cells = rng.integers(-2000, 2000, CELLS).astype(np.int16)
    weights = rng.integers(-900, 900, (PATTERNS, UNITS)).astype(np.int16)
    coarse_patterns = np.empty((len(positions), PAIRS), np.int32)
    list_patterns(positions, coarse_patterns)
    for position, coarse in zip(positions, coarse_patterns, strict=True):
        of_tables = literal_patterns(position, FINE, lambda seeds: min(seeds, 31))
        value = max(-LIMIT, min(LIMIT, cells[of_tables].astype(int).sum()))
        assert tables_value(PairTables(cells), Rows.of(position)) == value
        assert coarse.tolist() == literal_patterns(position, COARSE, level)
        total = weights[coarse].astype(int).sum(axis=0)
        value = total[0]
        for unit in range(1, UNITS):
            value += max(total[unit], 0) * (1 if unit < UNITS // 2 else -1)
        assert output(weights, tuple(coarse.tolist())) == value
        value = max(-LIMIT, min(LIMIT, int(value) * SCALE // WEIGHT_SCALE))
        assert nnue_value(make_nnue(weights), Rows.of(position)) == value


def test_guided_search_reads_it() -> None:
    """Full search does not read the NNUE, because many published figures are measured against
    it."""
    ruleset, nnue = RULESETS["zanzibar"], some_nnue().quantised()
    guide = Checkpoint(make_network((8,)).arrays(), ruleset, nnue=nnue)
    guided = AlphaBetaAgent(ruleset, Limit(plies=2), guide=guide, threads=1)
    full = AlphaBetaAgent(ruleset, Limit(plies=2), threads=1)
    tables = tables_evaluator(ruleset)
    for position in draw(ruleset, 20, 12)[0]:
        for agent, evaluator in (guided, tables._replace(nnue=nnue)), (full, tables):
            value, _ = minimax(ruleset.kernel, evaluator, position, 2, extends=agent is guided)
            assert agent.search(position).value == value


def some_nnue() -> NNUEModel:
    """Return an NNUE in which every weight is random."""
    torch.manual_seed(3)
    nnue = NNUEModel()
    for parameter in nnue.parameters():
        torch.nn.init.normal_(parameter, std=0.05)
    return nnue


def logits_by_torch(nnue: NNUEModel, positions: np.ndarray) -> torch.Tensor:
    """Return the logits of positions, with their gradient by torch."""
    patterns = np.empty((len(positions), PAIRS), np.int32)
    list_patterns(positions, patterns)
    total = nnue.merged()[torch.from_numpy(patterns).long()].sum(dim=1)
    return total[:, 0] + total[:, 1:].relu() @ torch.tensor(SIGNS[1:], dtype=torch.float32)


def test_what_is_learnt_is_what_the_search_reads() -> None:
    model, positions = some_nnue(), mixed_batch(RULESETS["zanzibar"], 50, seed=1)
    new_vectors = NNUEModel().merged().detach()
    assert (new_vectors[:, 0] == 0).all() and (new_vectors[:, 1:] != 0).all()
    assert 0.03 < new_vectors.std() < 0.06 and 0.001 < new_vectors.mean() < 0.02
    nnue = model.quantised()
    values = [int(nnue_value(nnue, Rows.of(position))) for position in positions]
    np.testing.assert_allclose(
        values, logits_by_torch(model, positions).detach().numpy() * SCALE, atol=8
    )
    assert (NNUEModel(nnue).quantised().weights == nnue.weights).all()
    assert nnue.weights.ctypes.data % 64 == 0  # the processor's cache has lines of 64 bytes
    with torch.no_grad():
        model.weight[0, 0, 0, :2] = torch.tensor([9.0, -9.0])
    assert model.quantised().weights[0, :2].tolist() == [WEIGHT_LIMIT, -WEIGHT_LIMIT]
    with pytest.raises(ValueError, match=f"beyond {WEIGHT_LIMIT}"):
        make_nnue(nnue.weights * 0 + np.int16(WEIGHT_LIMIT + 1))


def test_the_compiled_loss_and_gradient_are_those_of_torch() -> None:
    nnue, positions = some_nnue(), mixed_batch(RULESETS["zanzibar"], 300, seed=2)
    chances = np.random.default_rng(1).random(len(positions), np.float32)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        logits_by_torch(nnue, positions), torch.from_numpy(chances), reduction="sum"
    )
    loss = nnue.loss(positions, chances)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    gradients, torch_gradients = (
        torch.autograd.grad(2 * sum_of_losses, list(nnue.parameters()))
        for sum_of_losses in (loss, expected)
    )
    for gradient, torch_gradient in zip(gradients, torch_gradients, strict=True):
        np.testing.assert_allclose(gradient.numpy(), torch_gradient.numpy(), atol=1e-4)
