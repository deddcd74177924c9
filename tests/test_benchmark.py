"""The benchmark of learners, and the plain PPO that it measures."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cleanrl_vector
import numpy as np
import pytest
from bao_training.cli import main as bao
from bao_training.lab.benchmark import command, runs, summary
from bao_training.lab.benchmark.learners import LEARNERS, Learner, Report
from bao_training.lab.benchmark.runs import BenchmarkSettings, Name

from bao_env.bots import GreedyAgent
from bao_env.engine.ruleset import get_ruleset
from tests.conftest import Capsys, Fails


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Add the learners ``fake``, a greedy player; ``poor``, which fails; and ``far``, which is not
    installed. Return the seeds that ``fake`` is trained with."""
    seeds: list[int] = []

    def fake(observation: str, seed: int, steps: int, report: Report) -> None:
        if steps > 1:  # not to warm up
            seeds.append(seed)
        for done in range(10, steps + 10, 10):
            report(done, GreedyAgent(get_ruleset("zanzibar")))

    def poor(observation: str, seed: int, steps: int, report: Report) -> None:
        raise RuntimeError("no such luck")

    for name, distribution, train in (
        ("fake", "numpy", fake),
        ("poor", "numpy", poor),
        ("far", "no_such_module", fake),
    ):
        learner = Learner(f"A {name}", distribution, ("board", "replies"), train)
        monkeypatch.setitem(LEARNERS, name, learner)
    monkeypatch.setattr(command, "LocalPool", ThreadPoolExecutor)
    return seeds


@pytest.mark.slow
def test_benchmark(trained: list[int], tmp_path: Path, capsys: Capsys, fails: Fails) -> None:
    """Runs are rated, kept and reported; one that fails or cannot start does not stop others."""
    options = ["--observations", "replies", "--steps", "100", "--precision", "300", "--pairs", "5"]
    command = ["lab", "benchmark", *options, "--out", str(tmp_path), "--learners", "fake"]
    error = fails(*command, "poor", "far", "--seeds", "4", status=1)
    assert "poor-replies-4: failed: RuntimeError: no such luck" in error
    assert "far is skipped: no_such_module is not installed" in error
    run = runs.load(tmp_path / "fake-replies-4.json")
    assert [point.steps for point in run.points] == [10, 20, 30, 50, 100]
    assert len({point.elo for point in run.points[:-1]}) == 1  # one player, one rating
    last = run.points[-1]
    assert last.low is not None and last.high is not None and last.low < 372 < last.high
    assert run.scores["greedy"]["score"] == 0.5 and run.scores["random"]["games"] == 10

    command += ["--seeds", "4", "5"]
    assert bao(command) == 0
    assert trained == [4, 5]
    assert "| A fake (`fake`) | `replies` |" in capsys.readouterr().out
    assert (tmp_path / "benchmark.png").read_bytes()[:4] == b"\x89PNG"
    error = fails(*command, "--steps", "200")
    assert "give the same ones, or choose another --out" in error
    (tmp_path / "fake-replies-4.json").write_text("{}")
    assert "is not a run of this benchmark (learner: Field required)" in fails(*command)


@pytest.mark.parametrize("past_selves", [True, False])
def test_plain_ppo_is_reproducible(past_selves: bool) -> None:
    reported: list[int] = []

    def train() -> np.ndarray:
        choose = cleanrl_vector.train(
            *("planes", 3, 300, lambda steps, player: reported.append(steps)),
            games=16,
            rollout=8,
            hidden=8,
            past_selves=past_selves,
        )
        boards = np.random.default_rng(0).random((50, 16, 4, 8)).astype(np.float32)
        return choose(boards, np.ones((50, 64), np.bool_))

    assert (train() == train()).all() and reported == 2 * [128, 256, 384]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "observation"),
    [
        ("ppo", "own-board"),
        ("alphazero", "moves"),
        ("sb3", "planes"),
        ("dqn", "captures"),
        ("torchrl-dqn", "planes"),
    ],
)
def test_real_learners(learner: str, observation: str, tmp_path: Path) -> None:
    pytest.importorskip(LEARNERS[learner].distribution.replace("-", "_"))
    run = runs.run(
        Name(learner, observation, 1),
        BenchmarkSettings(steps=5, pairs=5, precision=300.0),
        tmp_path,
    )
    assert run.points[-1].steps >= 1 and run.points[-1].seconds > 0.0
    [kept] = summary.load_runs(tmp_path)
    assert kept.model_dump_json() == run.model_dump_json()
