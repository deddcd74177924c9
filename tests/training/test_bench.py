"""Test the benchmarks and perft as programs."""

from __future__ import annotations

import json
import shlex
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from bao_agents.cli import bench_engine, bench_search, benchmark
from bao_agents.cli.bench_engine import aec_case, kernel_case, vector_case
from bao_agents.cli.bench_search import PLAYOUTS, alphabeta_case, mcts_case, sample
from bao_agents.cli.benchmark import Case
from bao_agents.search.limits import Limit
from bao_agents.support.provenance import current_commit
from bao_env.board import Board
from bao_env.engine.ruleset import RULESETS
from bao_env.envs.aec import raw_env
from tests.conftest import Says
from tests.record import recorded_numbers
from tests.training.runs import options


def test_bench_measures_and_prints_json(monkeypatch: pytest.MonkeyPatch, says: Says) -> None:
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
    assert made_with["command"].endswith("--threads 1 --json -")
    rules = RULESETS["zanzibar"]
    vector = vector_case(rules, 3, 1, np.float32, AutoresetMode.NEXT_STEP)
    monkeypatch.setattr(bench_engine, "BaoVectorEnv", env := MagicMock())
    vector_case(rules, 3, 2, np.uint8, AutoresetMode.SAME_STEP).play(2)
    assert env.return_value.step.call_count == 2
    settings = {"dtype": np.uint8, "autoreset_mode": AutoresetMode.SAME_STEP}
    env.assert_called_once_with(3, opponent=None, ruleset=rules, threads=2, **settings)
    aec = raw_env(ruleset=rules)
    monkeypatch.setattr(aec, "step", step := MagicMock(wraps=aec.step))
    monkeypatch.setattr(bench_engine, "raw_env", env := MagicMock(return_value=aec))
    aec_case(rules).play(200)  # several games
    env.assert_called_once_with(ruleset=rules)
    assert step.call_count == 200
    monkeypatch.setattr(bench_engine, "Engine", engine := MagicMock())
    engine.return_value.new_games.return_value = ["games"]
    kernel_case(rules, 3, 2).play(2)
    engine.assert_called_once_with(rules, 2)
    [[games, _, plies]] = engine.return_value.play_random.call_args_list[0][:1]
    assert (games, plies) == ("games", 2)
    monkeypatch.undo()
    assert kernel_case(rules, 3, 1).play(2) == vector.play(2) == aec_case(rules).play(6) == 6


def test_a_bench_counts_plies_a_second(monkeypatch: pytest.MonkeyPatch, says: Says) -> None:
    """A call takes 20 ms on the clock of this test, and 40 ms of processor time."""
    calls = list[int]()

    def play(count: int) -> int:
        calls.append(count)
        return 80_000 * count

    clock = SimpleNamespace(
        perf_counter=lambda: 0.02 * sum(calls), process_time=lambda: 0.04 * sum(calls)
    )
    timer = SimpleNamespace(autorange=lambda: (10, 4.0))  # ten calls in four seconds
    monkeypatch.setattr(benchmark, "time", clock)
    monkeypatch.setattr(benchmark, "timeit", SimpleNamespace(Timer=lambda work: timer))
    monkeypatch.setattr(bench_engine, "all_cases", lambda *_: [Case("mine", 8, 2, play)])
    table = says("bench engine --rounds 3 --seconds 2")
    assert calls == [1, 5, 5, 5]
    assert f"\ncommit {current_commit()}, " in table
    head, row = (line.split() for line in table.splitlines()[-2:])
    assert head == ["million", "plies", "a", "second", "batch", "threads", "rate", "per", "core"]
    assert row == ["mine", "8", "2", "4.000", "2.000"]


def test_search_bench_searches(monkeypatch: pytest.MonkeyPatch, says: Says) -> None:
    """The measured rates are possible: a search takes time, and visits positions."""
    rates = json.loads(says("bench search --positions 4 --rounds 1 --seconds 0.01 --json -"))
    assert rates["made_with"]["commit"] == current_commit()
    assert rates["made_with"]["command"].endswith("--seconds 0.01 --json -")
    searches = [f"alphabeta:{depth}, nodes" for depth in (4, 6, 8, 10)]
    assert [*rates["per_second"]] == [*searches, "mcts, random playouts"]
    assert all(1e3 < rate < 1e8 for rate in rates["per_second"].values())
    measured = MagicMock(side_effect=lambda cases, *_: [case.rates.append(7.0) for case in cases])
    monkeypatch.setattr(bench_search, "measure", measured)
    table = says("bench search --positions 4 --rounds 1")
    assert f"\ncommit {current_commit()}, " in table and "\none core, 4 positions\n" in table
    assert table.splitlines()[-1].split() == ["mcts,", "random", "playouts", "7"]
    rules = RULESETS["zanzibar"]
    monkeypatch.setattr(bench_search, "AlphaBetaAgent", agent := MagicMock())
    alphabeta_case(rules, sample(rules, 4), 5)
    agent.assert_called_once_with(rules, Limit(plies=5), threads=1)
    positions = sample(rules, 8)
    assert mcts_case(rules, positions).play(2) == 2 * 8 * PLAYOUTS
    monkeypatch.setattr(bench_search, "MctsAgent", agent := MagicMock())
    mcts_case(rules, positions).play(2)
    agent.assert_called_once_with(rules, Limit(nodes=PLAYOUTS), threads=1)
    assert [len(call.args[0]) for call in agent.return_value.act.call_args_list] == [8, 8]


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


def test_perft_command(monkeypatch: pytest.MonkeyPatch, says: Says) -> None:
    notes = list[str]()
    monkeypatch.setattr("bao_agents.cli.perft.say", notes.append)
    lines = says("bench perft 4 --divide").splitlines()
    divided = {line.split(": ")[0]: int(line.split(": ")[1]) for line in lines[:4]}
    assert list(divided) == ["A6L", "A6R", "A7L", "A7R"] and sum(divided.values()) == 124
    assert lines[4:] == ["perft(1) = 4", "perft(2) = 14", "perft(3) = 38", "perft(4) = 124"]
    first_moves = [f"{move}: 1" for move in divided]
    assert says("bench perft 1 --divide").splitlines() == [*first_moves, "perft(1) = 4"]
    end = "1,2,9,2,3,0,1,5/4,1,2,7,1,5,3,7/0,0,0,0,0,0,1,1/2,2,1,2,0,0,1,1 0,0 - S -"
    moves = Board.from_text(end).legal_moves
    counts = [len(Board.from_text(end, moves=[move]).legal_actions) for move in moves]
    assert 0 in counts  # these moves win
    sums = [f"perft(1) = {len(moves)}", f"perft(2) = {sum(counts)}"]
    for depth, split in ((1, [1] * len(moves)), (2, counts)):
        first_moves = [f"{move}: {count}" for move, count in zip(moves, split, strict=True)]
        lines = says(f"bench perft {depth} --divide --position '{end}'").splitlines()
        assert lines == [*first_moves, *sums[:depth]]
    assert all(0 <= float(note.removesuffix(" s")) < 60 for note in notes) and len(notes) == 4
