"""The benchmarks and perft as programs, and the signature of the engine's behaviour."""

from __future__ import annotations

import json

import pytest

from bao_env import bench, perft
from bao_env.bench import signature
from bao_env.engine.ruleset import RULESETS
from tests.make_golden import pinned


@pytest.mark.parametrize("name", RULESETS)
def test_behaviour_signature(name: str) -> None:
    """A change here is a change of the rules or of the encoding: raise RULES_VERSION with it."""
    assert signature(name) == pinned(name)["signature"]


def test_bench_measures_and_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--rounds", "1", "--seconds", "0.01", "--batches", "8", "--threads", "1"]
    assert bench.main([*arguments, "--no-peers", "--json"]) == 0
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


def test_training_bench_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    from training import bench as training_bench  # needs torch, as the engine's tests do not

    settings = ["--set", "envs=64", "--set", "minibatch=512", "--set", "hidden=[16]"]
    assert training_bench.main([*settings, "--updates", "2", "--workers", "1"]) == 0
    assert "board 16" in capsys.readouterr().out
    assert training_bench.main(["--set", "env=3"]) == 2
    assert "unknown key 'env'" in capsys.readouterr().err


def test_perft_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert perft.main(["4", "--divide"]) == 0
    lines = capsys.readouterr().out.splitlines()
    divided = {line.split(": ")[0]: int(line.split(": ")[1]) for line in lines[:4]}
    assert list(divided) == ["A6L", "A6R", "A7L", "A7R"] and sum(divided.values()) == 124
    assert lines[4:] == ["perft(1) = 4", "perft(2) = 14", "perft(3) = 38", "perft(4) = 124"]
    with pytest.raises(SystemExit):
        perft.main(["3", "--position", "nonsense"])
    assert "error" in capsys.readouterr().err
