"""The benchmark of learners: a run, resuming, the report, skipped libraries and mistakes."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from agents.arena.elo import score_pairs
from agents.arena.ladder import Ladder
from bao_env.bots import Agent, GreedyAgent
from bao_env.engine.ruleset import get_ruleset
from training.examples import cleanrl_vector
from training.lab.benchmark import __main__ as benchmark
from training.lab.benchmark import learners, runs, summary
from training.lab.benchmark.learners import LEARNERS, Learner, Report
from training.lab.benchmark.runs import BenchmarkSettings, Name, Point, Run

SETTINGS = BenchmarkSettings(steps=100, precision=300.0, pairs=5)
OPTIONS = ["--steps", "100", "--precision", "300", "--pairs", "5"]


class Threads(ThreadPoolExecutor):
    """In place of processes, which would not know the learners of a test."""

    def stop(self) -> None:
        """Nothing to end."""


def rated(player: Agent, ladder: Ladder, precision: float, steps: int, seconds: float) -> Point:
    """A rating without games."""
    return Point(steps=steps, seconds=seconds, elo=333.0, low=300.0, high=None, games=0)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Adds the learners ``fake``, a greedy player that notes what it was asked for, and ``poor``,
    which fails. Ratings take no time."""
    asked: list[tuple[str, int]] = []

    def fake(observation: str, seed: int, steps: int, report: Report) -> None:
        if steps > 1:  # not to warm up
            asked.append((observation, seed))
        for done in range(10, steps + 10, 10):
            report(done, GreedyAgent(get_ruleset("zanzibar")))

    def poor(observation: str, seed: int, steps: int, report: Report) -> None:
        raise RuntimeError("no such luck")

    for name, train in (("fake", fake), ("poor", poor)):
        learner = Learner(f"A {name}", "numpy", "numpy", ("board", "replies"), train)
        monkeypatch.setitem(LEARNERS, name, learner)
    monkeypatch.setattr(benchmark, "LocalPool", Threads)
    monkeypatch.setattr(runs, "rated", rated)
    return asked


def made_up(learner: str, observation: str, seed: int, elo: float) -> Run:
    """A finished run."""
    points = [
        Point(steps=25 * i, seconds=0.5 * i, elo=elo * i / 4, low=None, high=elo + 9, games=2)
        for i in (1, 2, 4)
    ]
    score = score_pairs(np.array([[1.0, 1.0], [1.0, 0.0]])).to_dict()
    return Run(
        learner=learner,
        observation=observation,
        seed=seed,
        settings=SETTINGS,
        points=tuple(points),
        scores=dict.fromkeys(runs.BOTS, score),
        ladder="bao-ladder-1",
        package="numpy 2",
        machine={},
        made_with={},
    )


def write(folder: Path, run: Run) -> None:
    """Keep a run as the benchmark does."""
    name = Name(run.learner, run.observation, run.seed)
    runs.file_of(folder, name).write_text(run.model_dump_json())


@pytest.mark.slow
def test_a_run_is_rated_and_resumed(
    trained: list[tuple[str, int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--learners", "fake", "--seeds", "4", *OPTIONS, "--out", str(tmp_path)]
    assert benchmark.main([*words, "--observations", "replies"]) == 0
    run = runs.load(tmp_path / "fake-replies-4.json")
    assert [point.steps for point in run.points] == [10, 20, 30, 50, 100]
    assert run.scores["greedy"]["score"] == 0.5 and run.scores["random"]["games"] == 10
    assert run.made_with["engine_signature"] and run.package.startswith("numpy ")
    assert run.points[-1].seconds < 1.0  # the games took longer
    assert "| A fake (`fake`) | `replies` |" in capsys.readouterr().out
    assert (tmp_path / "benchmark.png").read_bytes()[:4] == b"\x89PNG"

    assert benchmark.main(words) == 0
    assert trained == [("replies", 4), ("board", 4)]


def test_the_same_player_gets_the_same_rating() -> None:
    ladder = runs.load_ladder()
    player = GreedyAgent(ladder.ruleset)
    first, second = (runs.rated(player, ladder, 300.0, 7, 0.5) for _ in range(2))
    assert first == second and first.steps == 7 and first.games >= 40
    assert first.low is not None and first.high is not None
    assert first.low < 372 < first.high  # its rating on the ladder


def test_one_failure_does_not_stop_the_others(
    trained: list[tuple[str, int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--learners", "poor", "fake", "--observations", "board", "--seeds", "1"]
    assert benchmark.main([*words, *OPTIONS, "--out", str(tmp_path)]) == 1
    assert "poor-board-1: failed: RuntimeError: no such luck" in capsys.readouterr().err
    assert [path.name for path in tmp_path.glob("*-*-*.json")] == ["fake-board-1.json"]


def test_the_report_has_medians_and_ranges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed, elo in ((1, 400.0), (2, 500.0), (3, 440.0)):
        write(tmp_path, made_up("sb3", "replies", seed, elo))
    write(tmp_path, made_up("ppo", "moves", 1, 700.0))
    assert benchmark.main(["--report", "--out", str(tmp_path)]) == 0
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in capsys.readouterr().out.splitlines()
    ]
    assert rows[2][1:6] == ["`moves`", "1", "100", "2", "700"]
    assert rows[3][1:6] == ["`replies`", "3", "100", "2", "440 (400 to 500)"]
    assert rows[3][6:] == ["75.0"] * 3
    assert (tmp_path / "table.md").exists() and (tmp_path / "benchmark.png").exists()


def test_a_missing_library_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(
        LEARNERS,
        "far",
        Learner("Far", "no_such_module", "far-rl", ("board",), LEARNERS["ppo"].train),
    )
    assert benchmark.main(["--learners", "far", "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "far is skipped: far-rl is not installed; to train it, pip install far-rl" in error
    assert "there is nothing to train" in error and "(far: board)" in error


def test_other_settings_and_damaged_files_are_refused(
    trained: list[tuple[str, int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert benchmark.main(["--report", "--out", str(tmp_path)]) == 2
    assert "holds no finished run" in capsys.readouterr().err
    write(tmp_path, made_up("fake", "board", 1, 100.0))
    words = [
        "--learners",
        "fake",
        "--observations",
        "board",
        "--seeds",
        "1",
        "--out",
        str(tmp_path),
    ]
    assert benchmark.main([*words, *OPTIONS, "--steps", "200"]) == 2
    assert "give the same options, or choose another --out" in capsys.readouterr().err
    (tmp_path / "fake-board-1.json").write_text(json.dumps({"learner": "fake"}))
    assert benchmark.main([*words, *OPTIONS]) == 2
    assert "is not a run of this benchmark (observation: Field required)" in capsys.readouterr().err
    assert not trained


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--steps", "0"], "must be positive"),
        (["--seeds", "-1"], "--seeds not negative"),
        (["--learners", "keras"], "invalid choice: 'keras'"),
    ],
)
def test_wrong_options(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        benchmark.main(words)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("past_selves", [True, False])
def test_plain_ppo_is_reproducible(past_selves: bool) -> None:
    told: list[int] = []

    def train() -> np.ndarray:
        choose = cleanrl_vector.train(
            *("planes", 3, 300, lambda steps, player: told.append(steps)),
            games=16,
            rollout=8,
            hidden=8,
            past_selves=past_selves,
        )
        boards = np.random.default_rng(0).random((50, 16, 4, 8)).astype(np.float32)
        chosen = choose(boards, np.ones((50, 64), np.bool_))
        assert chosen.shape == (50,)
        return chosen

    assert (train() == train()).all() and told == 2 * [128, 256, 384]


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
    pytest.importorskip(LEARNERS[learner].module)
    run = runs.run(
        Name(learner, observation, 1),
        BenchmarkSettings(steps=5, pairs=5, precision=300.0),
        tmp_path,
    )
    assert run.points[-1].steps >= 1 and run.points[-1].seconds > 0.0
    assert [kept.model_dump_json() for kept in summary.load_runs(tmp_path)] == [
        run.model_dump_json()
    ]


def test_every_learner_reads_something_we_know() -> None:
    known = {*learners.OBSERVATIONS, *learners.ENCODINGS}
    for learner in LEARNERS.values():
        assert learner.observations and known.issuperset(learner.observations)
