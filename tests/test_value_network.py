"""The value network of guided alpha-beta: compiled code against a literal network, and fitting."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents.arena.openings import draw_openings
from agents.nets.network import NetworkConfig, PolicyNetwork
from agents.search.alphabeta.evaluation import LIMIT, PHASES, SCALE, TABLES, load_weights
from agents.search.alphabeta.player import AlphaBetaAgent
from agents.search.alphabeta.value_network import (
    LEVELS,
    PAIRS,
    ROW_LIMIT,
    ROW_SCALE,
    ROWS,
    UNITS,
    check_rows,
    evaluate_by_network,
    in_cache_lines,
    load_rows,
    network_features,
    output,
)
from bao_env.engine.layout import HOUSE
from bao_env.engine.position import Packed, unpack
from bao_env.engine.ruleset import RULESETS, Ruleset
from tests.positions import pack_texts, random_position
from training import fit_value_network


def random_rows(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-900, 900, (ROWS, UNITS)).astype(np.int16)


def some_positions(ruleset: Ruleset, count: int) -> np.ndarray:
    """Return random packed positions."""
    rng = random.Random(count)
    return pack_texts([random_position(rng, ruleset) for _ in range(count)], ruleset)[0]


def level(seeds: int) -> int:
    """Return the level of a count, as documented."""
    if seeds <= 12:
        return seeds
    return 12 if seeds == 13 else 13 if seeds <= 16 else 14 if seeds <= 21 else 15


def literal_rows(words: np.ndarray) -> list[int]:
    """Return the rows of a position, from its seeds one by one."""
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
        ring = position.back[seat][::-1]  # the ring goes on from right to left
        pairs += [(first + i, ring[2 * i], ring[2 * i + 1]) for i in range(4)]
    return [
        ((phase * TABLES + table) * LEVELS + level(second)) * LEVELS + level(first)
        for table, first, second in pairs
    ]


@pytest.mark.parametrize("name", RULESETS)
def test_rows_and_values_are_those_of_a_literal_network(name: str) -> None:
    positions = some_positions(RULESETS[name], 200)
    rows = random_rows(1)
    found = np.empty((len(positions), PAIRS), np.int32)
    network_features(positions, found)
    cached = in_cache_lines(rows)
    for words, features in zip(positions, found, strict=True):
        assert features.tolist() == literal_rows(words)
        total = rows[features].astype(int).sum(axis=0)
        value = total[0]
        for unit in range(1, UNITS):
            value += max(total[unit], 0) * (1 if unit < UNITS // 2 else -1)
        assert output(rows, tuple(features.tolist())) == value
        value = max(-LIMIT, min(LIMIT, int(value) * SCALE // ROW_SCALE))
        assert evaluate_by_network(cached, Packed.of(words)) == value


def test_invalid_rows_raise() -> None:
    with pytest.raises(ValueError, match=r"expected int16\[18432, 32\]"):
        AlphaBetaAgent(depth=1, weights=np.zeros((ROWS - 1, UNITS), np.int16))
    rows = np.zeros((ROWS, UNITS), np.int16)
    rows[5, 5] = ROW_LIMIT + 1
    with pytest.raises(ValueError, match="must fit an int16"):
        check_rows(rows)


def test_shipped_rows() -> None:
    """Each rule set has its own but kujifunza; rules of one's own have none."""
    found = {name: load_rows(ruleset) for name, ruleset in RULESETS.items()}
    assert [name for name, rows in found.items() if rows is None] == ["kujifunza"]
    shipped = [rows for rows in found.values() if rows is not None]
    assert len({rows.tobytes() for rows in shipped}) == len(shipped)
    assert all(rows.ctypes.data % 64 == 0 for rows in shipped)
    assert load_rows(RULESETS["zanzibar"].replace(name="mine")) is None


def test_guided_search_reads_it_and_full_search_does_not() -> None:
    """Published figures are measured against the full search, which keeps its tables."""
    ruleset = RULESETS["zanzibar"]
    torch.manual_seed(1)
    policy = PolicyNetwork(NetworkConfig(kind="moves", hidden=(16, 8))).eval()
    batch = draw_openings(ruleset, 5, 12, 3, balance=None).positions
    rows, tables = load_rows(ruleset), load_weights(ruleset)

    def values(**settings: Any) -> list[int]:
        agent = AlphaBetaAgent(ruleset, depth=2, threads=1, **settings)
        return [agent.search(words).value for words in batch]

    assert values(network=policy) == values(network=policy, weights=rows)
    assert values(network=policy) != values(network=policy, weights=tables)
    assert values() == values(weights=tables)


def test_the_fitted_network_is_what_the_search_reads() -> None:
    torch.manual_seed(3)
    network = fit_value_network.Network()
    torch.nn.init.normal_(network.pairs.weight, std=0.05)
    positions = some_positions(RULESETS["zanzibar"], 50)
    features = np.empty((len(positions), PAIRS), np.int32)
    network_features(positions, features)
    with torch.inference_mode():
        logits = network(torch.from_numpy(features)).numpy()
    rows = in_cache_lines(network.rows())
    values = [evaluate_by_network(rows, Packed.of(words)) for words in positions]
    np.testing.assert_allclose(values, logits * SCALE, atol=4)


def test_fit_raises_without_a_teacher_or_positions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["zanzibar", "--teacher", "network", "--parts", "1", "--games", "100"]
    arguments += ["--depth", "1", "--out", str(tmp_path), "--file", str(tmp_path / "rows.npz")]
    with monkeypatch.context() as patch:
        patch.setattr(fit_value_network, "load_rows", lambda ruleset: None)
        assert fit_value_network.main(arguments) == 2
    assert "has no network yet" in capsys.readouterr().err
    assert fit_value_network.main(arguments) == 2
    assert "add --games" in capsys.readouterr().err  # it has played
    assert [path.name[:7] for path in (tmp_path / "zanzibar").glob("*.npz")] == ["network"]
    with pytest.raises(SystemExit):
        fit_value_network.main([*arguments, "--search-share", "2"])


@pytest.mark.slow
def test_fit_learns_and_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["zanzibar", "--parts", "2", "--games", "600", "--depth", "2", "--epochs", "6"]
    arguments += ["--out", str(tmp_path), "--file", str(tmp_path / "rows.npz")]
    fits = []
    for _ in range(2):
        assert fit_value_network.main(arguments) == 0
        assert float(capsys.readouterr().out.split("log loss ")[1].split()[0]) < 0.95
        with np.load(tmp_path / "rows.npz") as archive:
            check_rows(archive["zanzibar"])
            parts = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*.npz")}
            fits.append((archive["zanzibar"].tobytes(), parts))
    assert fits[0] == fits[1] and len(fits[0][1]) == 2
