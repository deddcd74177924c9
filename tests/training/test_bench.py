"""Test the benchmarks and perft as programs."""

from __future__ import annotations

import json
import shlex

import pytest

from bao_agents.cli.bench_search import PLAYOUTS, mcts_case, sample
from bao_agents.support.provenance import current_commit
from bao_env.engine.ruleset import RULESETS
from tests.conftest import Says
from tests.record import recorded_numbers
from tests.training.runs import options


def test_bench_measures_and_prints_json(says: Says) -> None:
    output = says("bench engine --rounds 1 --seconds 0.01 --batches 8 --threads 1 --json -")
    report = json.loads(output)
    made_with = report["made_with"]
    assert made_with["engine_signature"] == recorded_numbers("zanzibar")["signature"]
    assert made_with["commit"] == current_commit() and made_with["machine"]["cores"]
    names = [case["name"] for case in report["cases"]]
    assert names == [
        "kernel",
        "vector float32, SAME_STEP",
        "vector float32, NEXT_STEP",
        "vector uint8, NEXT_STEP",
        "AEC raw_env",
    ]
    assert all(case["plies_per_second"] > 100 for case in report["cases"])


def test_search_bench_searches(says: Says) -> None:
    """The measured rates are possible: a search takes time, and visits positions."""
    rates = json.loads(says("bench search --positions 4 --rounds 1 --seconds 0.01 --json -"))
    assert rates["made_with"]["commit"] == current_commit()
    assert {"alphabeta:4, nodes", "mcts, random playouts"} <= {*rates["per_second"]}
    assert all(1e3 < rate < 1e8 for rate in rates["per_second"].values())
    rules = RULESETS["zanzibar"]
    assert mcts_case(rules, sample(rules, 4)).play(2) == 2 * 4 * PLAYOUTS


def test_training_bench_prints_a_table(says: Says) -> None:
    settings = options("method=td envs=32 rollout=4 minibatch=128 hidden=[16,8]")
    command = f"bench train {settings} --updates 2 --threads 1 2"
    table = says(command)
    assert f"\ncommit {current_commit()}, " in table
    report = json.loads(says(f"{command} --json -"))
    words = shlex.split(f"bao {command} --json -")
    assert shlex.split(report["made_with"]["command"]) == words
    rows = [[*result.values()] for result in report["results"]]
    rows += [
        [network, *(int(cell.replace(",", "")) for cell in cells)]
        for network, *cells in map(str.split, table.splitlines()[-2:])
    ]
    for row, workers in zip(rows, (1, 2, 1, 2), strict=True):
        assert row[:2] == ["16x8", workers] and row[2] > 0
        assert row[3] == pytest.approx(row[2] / workers, abs=1)


def test_perft_command(says: Says) -> None:
    lines = says("bench perft 4 --divide").splitlines()
    divided = {line.split(": ")[0]: int(line.split(": ")[1]) for line in lines[:4]}
    assert list(divided) == ["A6L", "A6R", "A7L", "A7R"] and sum(divided.values()) == 124
    assert lines[4:] == ["perft(1) = 4", "perft(2) = 14", "perft(3) = 38", "perft(4) = 124"]
