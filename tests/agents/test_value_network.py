"""Test the value network of guided alpha-beta: compiled code computes it; it can be fitted."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bao_agents.search.alphabeta.evaluation import (
    CELLS,
    LIMIT,
    PAIRS,
    PHASES,
    SCALE,
    TABLES,
    Tables,
    evaluate_by_tables,
    load_tables,
    table_features,
)
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.alphabeta.value_network import (
    FITTED,
    ROW_SCALE,
    ROWS,
    UNITS,
    evaluate_by_network,
    load_network,
    network_features,
    network_of,
    output,
)
from bao_env.engine.layout import HOUSE
from bao_env.engine.position import Packed, unpack
from bao_env.engine.ruleset import RULESETS
from bao_training.fit import evaluations as fit
from tests.conftest import Capsys
from tests.networks import make_network
from tests.positions import draw, mixed_batch


def level(seeds: int) -> int:
    """Return the level of a count, as documented."""
    return seeds if seeds <= 12 else 12 + sum(seeds > most for most in (13, 16, 21))


def literal_cells(words: np.ndarray, bits: int, rounded: Callable[[int], int]) -> list[int]:
    """Return the cells of a position, from its seeds one by one."""
    position = unpack(words)
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
    named, found = (np.empty((len(positions), PAIRS), np.int32) for _ in range(2))
    table_features(positions, named)
    network_features(positions, found)
    for words, of_tables, of_network in zip(positions, named, found, strict=True):
        assert of_tables.tolist() == literal_cells(words, 5, lambda seeds: min(seeds, 31))
        value = max(-LIMIT, min(LIMIT, cells[of_tables].astype(int).sum()))
        assert evaluate_by_tables(Tables(cells), Packed.of(words)) == value
        assert of_network.tolist() == literal_cells(words, 4, level)
        total = rows[of_network].astype(int).sum(axis=0)
        value = total[0]
        for unit in range(1, UNITS):
            value += max(total[unit], 0) * (1 if unit < UNITS // 2 else -1)
        assert output(rows, tuple(of_network.tolist())) == value
        value = max(-LIMIT, min(LIMIT, int(value) * SCALE // ROW_SCALE))
        assert evaluate_by_network(network_of(rows), Packed.of(words)) == value


def test_which_rule_sets_have_a_network() -> None:
    """Rules that users define have none."""
    found = {name: load_network(ruleset) for name, ruleset in RULESETS.items()}
    assert found["kujifunza"] is None
    assert load_network(RULESETS["zanzibar"].replace(name="mine")) is None
    shipped = [network.rows for network in found.values() if network is not None]
    assert len({rows.tobytes() for rows in shipped}) == len(shipped) >= len(FITTED) == 4
    assert all(rows.ctypes.data % 64 == 0 for rows in shipped)


def test_guided_search_reads_it_and_full_search_does_not() -> None:
    """The full search is the yardstick of many figures: its evaluation stays the tables'."""
    ruleset = RULESETS["zanzibar"]
    policy, network = make_network(), load_network(ruleset)
    assert network is not None
    batch, _ = draw(ruleset, 5, 12)
    rows, cells = network.rows, load_tables(ruleset).cells

    def values(**settings: Any) -> list[int]:
        agent = AlphaBetaAgent(ruleset, depth=2, threads=1, **settings)
        return [agent.search(words).value for words in batch]

    assert values(network=policy) == values(network=policy, weights=rows)
    assert values(network=policy) != values(network=policy, weights=cells)
    assert values() == values(weights=cells) != values(weights=rows)


@pytest.mark.parametrize("kind", fit.SHAPES)
def test_what_is_fitted_is_what_the_search_reads(kind: str) -> None:
    torch.manual_seed(3)
    evaluator = fit.Evaluator(fit.SHAPES[kind])
    torch.nn.init.normal_(evaluator.pairs.weight, std=0.05)
    torch.nn.init.normal_(evaluator.pits.weight, std=0.05)
    positions = mixed_batch(RULESETS["zanzibar"], 50, seed=1)
    with torch.inference_mode():
        logits = evaluator(torch.from_numpy(evaluator.features(positions))).numpy()
    weights = evaluator.weights()
    values = [
        evaluate_by_tables(Tables(weights), Packed.of(words))
        if kind == "tables"
        else evaluate_by_network(network_of(weights), Packed.of(words))
        for words in positions
    ]
    np.testing.assert_allclose(values, logits * SCALE, atol=8)


@pytest.fixture
def fit_network(tmp_path: Path) -> Callable[..., None]:
    """Return a function that fits a network in its own folder; later arguments win."""

    def run(ruleset: str, *more: str) -> None:
        words = ["network", ruleset, "--parts", "1", "--games", "100", "--depth", "1"]
        words += ["--out", str(tmp_path), "--file", str(tmp_path / "rows.npz")]
        parser = argparse.ArgumentParser()
        fit.command(parser)(parser.parse_args([*words, *more]))

    return run


def test_a_fit_needs_positions(fit_network: Callable[..., None]) -> None:
    with pytest.raises(ValueError, match="add --games"):
        fit_network("kujifunza")
    with pytest.raises(ValueError, match="expected 0 to 1"):
        fit_network("kujifunza", "--search-share", "2")


def test_a_network_teaches_only_once_it_is_fitted(
    fit_network: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(fit, "load_network", lambda ruleset: None)
        with pytest.raises(ValueError, match="has no network yet"):
            fit_network("zanzibar", "--teacher", "network")
    with pytest.raises(ValueError, match="add --games"):  # it has played
        fit_network("zanzibar", "--teacher", "network")
    assert [path.name[:7] for path in (tmp_path / "zanzibar").glob("*.npz")] == ["network"]


@pytest.mark.slow
def test_fitting_learns_and_goes_on_where_it_was_stopped(
    fit_network: Callable[..., None], tmp_path: Path, capsys: Capsys
) -> None:
    more = ["--parts", "2", "--games", "600", "--depth", "2", "--epochs", "6"]
    runs = []
    for _ in range(2):
        fit_network("zanzibar", *more)
        with np.load(tmp_path / "rows.npz") as archive:
            rows = archive["zanzibar"]
        network_of(rows)
        games = {path: path.stat().st_mtime_ns for path in (tmp_path / "zanzibar").glob("*.npz")}
        runs.append((games, rows.tobytes()))
    assert float(capsys.readouterr().out.split("log loss ")[1].split()[0]) < 0.95
    assert len(runs[0][0]) == 2 and runs[0] == runs[1]
