"""Test the benchmarks and perft as programs."""

from __future__ import annotations

import json

import pytest
from bao_training.bench import first_step
from bao_training.cli import main as bao

from tests.conftest import Capsys
from tests.make_golden import pinned


def test_bench_measures_and_prints_json(capsys: Capsys) -> None:
    arguments = ["--rounds", "1", "--seconds", "0.01", "--batches", "8", "--threads", "1"]
    assert bao(["bench", *arguments, "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["signature"] == pinned("zanzibar")["signature"]
    names = [case["name"] for case in report["cases"]]
    assert names == [
        "kernel",
        "vector float32, SAME_STEP",
        "vector float32, NEXT_STEP",
        "vector uint8, NEXT_STEP",
        "AEC raw_env",
    ]
    assert all(case["plies_per_second"] > 100 for case in report["cases"])


def test_training_bench_prints_a_table(capsys: Capsys) -> None:

    settings = ["--set", "envs=64", "--set", "minibatch=512", "--set", "hidden=[16]"]
    assert bao(["bench", "train", *settings, "--updates", "2", "--threads", "1"]) == 0
    assert "position 16" in capsys.readouterr().out
    assert bao(["bench", "train", "--set", "env=3"]) == 2
    assert "unknown key 'env'; did you mean 'envs'?" in capsys.readouterr().err


def test_training_bench_tells_search_from_network(capsys: Capsys) -> None:

    settings = [
        "method=alphazero",
        "network_kind=afterstate",
        "envs=32",
        "rollout=4",
        "minibatch=128",
        "hidden=[16]",
    ]
    settings += ["alphazero.simulations=3", "alphazero.buffer=4000", "max_plies=100"]
    arguments = [part for setting in settings for part in ("--set", setting)]
    assert (
        bao(["bench", "train", *arguments, "--updates", "2", "--threads", "1", "--json", "-"]) == 0
    )
    (row,) = json.loads(capsys.readouterr().out)["results"]
    assert set(row["shares"]) == {"search", "network", "learn", "rest"}
    assert sum(row["shares"].values()) == pytest.approx(1.0)
    assert row["shares"]["search"] > 0.05 and row["shares"]["network"] > 0.0
    assert row["simulations_per_second"] == pytest.approx(3 * row["steps_per_second"])


def test_perft_command(capsys: Capsys) -> None:
    assert bao(["perft", "4", "--divide"]) == 0
    lines = capsys.readouterr().out.splitlines()
    divided = {line.split(": ")[0]: int(line.split(": ")[1]) for line in lines[:4]}
    assert list(divided) == ["A6L", "A6R", "A7L", "A7R"] and sum(divided.values()) == 124
    assert lines[4:] == ["perft(1) = 4", "perft(2) = 14", "perft(3) = 38", "perft(4) = 124"]
    assert bao(["perft", "3", "--position", "nonsense"]) == 2
    assert "error" in capsys.readouterr().err


@pytest.mark.slow
def test_first_step(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    name = "raw_env()"
    monkeypatch.setattr(first_step, "CASES", {name: first_step.CASES[name]})
    assert bao(["bench", "first-step"]) == 0
    row = capsys.readouterr().out.splitlines()[-1].split()
    assert row[0] == name and float(row[1]) > 0.0 and int(row[2]) > 0
