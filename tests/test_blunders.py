"""How often players give won games away: the positions, the counts and the command."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import agents
from agents.arena.elo import wilson_interval
from agents.nets import checkpoint
from agents.nets.network import NetworkConfig, PolicyNetwork
from agents.search.solver.player import PROOF_PART, SolverAgent
from agents.search.solver.solved_positions import (
    SHIPPED,
    Solved,
    SolvedPositions,
    shipped_won_positions,
    solve,
)
from agents.search.solver.solver import Solver
from bao_env.bots import RandomAgent
from bao_env.cli import main as bao
from bao_env.engine.action import actions_of
from bao_env.engine.ruleset import RULESETS
from tests.positions import batch_of
from training import blunders
from training.config import ConfigError
from training.ppo import PpoTrainer
from training.sampling import Sample, random_play
from training.shares import Blunders
from training.train import load_config

KUJIFUNZA = RULESETS["kujifunza"]
NODES = 20_000


class Lowest:
    """Of the actions of some masks, always the one with the lowest number."""

    def __init__(self, masks: np.ndarray | None = None) -> None:
        self.masks = masks

    def act(self, positions: np.ndarray, masks: np.ndarray) -> np.ndarray:
        chosen = masks if self.masks is None else np.where(self.masks != 0, self.masks, masks)
        return np.array([actions_of(mask)[0] for mask in chosen])


def solve_sample(sample: Sample, **options: Any) -> Solved:
    return solve(sample.positions, sample.masks, KUJIFUNZA, source="random", nodes=NODES, **options)


@pytest.fixture(scope="module")
def found() -> Solved:
    """Solved positions of kujifunza."""
    return solve_sample(random_play(KUJIFUNZA, 100, plies=(12, 40), seed=1))


# --- the positions ------------------------------------------------------------------------------


def test_won_positions_are_those_that_are_won(found: Solved) -> None:
    counts = found.counts["mtaji"]
    assert list(found.counts) == ["mtaji"]  # there is no namua in kujifunza
    assert sum(counts.values()) == 100
    assert counts["won"] == len(found.known.won) > 30
    assert counts["lost"] > 20
    values, _ = Solver(KUJIFUNZA).values(found.known.won.positions, found.known.won.masks)
    assert (values == 1).all()
    assert (found.known.won.losing & ~found.known.won.masks == 0).all()
    assert (found.known.won.losing != found.known.won.masks).all()
    assert 0 < found.known.won.choices.mean() < 1
    assert found.known.won.plies.min() == 1
    assert found.known.won.plies.max() < 100


def test_the_solver_gives_nothing_away(found: Solved) -> None:
    assert not found.known.won.mistakes(SolverAgent(KUJIFUNZA, nodes=PROOF_PART * NODES)).any()


def test_a_player_that_always_errs(found: Solved) -> None:
    won = found.known.won
    counted = Blunders.count(won, won.mistakes(Lowest(won.losing)))
    assert counted.mistakes == counted.choices == won.choices.sum()
    assert counted.of_choices is not None
    assert counted.of_choices.rate == 1.0
    assert counted.moves == len(won)


def test_counts_by_hand() -> None:
    positions, masks = batch_of("kujifunza", 4, 3)
    lowest, last = (
        np.array([1 << actions_of(mask)[i] for mask in masks], np.uint64) for i in (0, -1)
    )
    assert (lowest != last).all()
    losing = np.array([lowest[0], last[1], 0, lowest[3] | last[3]], np.uint64)
    source = np.array(["random", "random", "random", "strong"])
    won = SolvedPositions(
        KUJIFUNZA, positions, masks, masks & ~losing, np.array([1, 3, 9, 3], np.int16), source
    )
    mistakes = won.mistakes(Lowest())
    assert mistakes.tolist() == [True, False, False, True]
    counted = Blunders.count(won, mistakes)
    assert counted == Blunders(moves=4, choices=3, mistakes=2)
    assert counted.of_moves == (0.5, *wilson_interval(0.5, 4))
    assert counted.of_choices == (2 / 3, *wilson_interval(2 / 3, 3))
    classes = blunders.classify(won, Lowest())
    assert classes["all"]["all"] == counted
    assert classes["source"] == {"random": Blunders(3, 2, 1), "strong": Blunders(1, 1, 1)}
    assert classes["stage"] == {"namua": Blunders(0, 0, 0), "mtaji": counted}
    assert [r for r in classes["plies"].values() if r.moves] == [
        Blunders(1, 1, 1),
        Blunders(2, 2, 1),
        Blunders(1, 0, 0),
    ]


def test_no_positions_at_all(found: Solved) -> None:
    none = found.known.won[:0]
    assert Blunders.count(none, none.mistakes(Lowest())) == Blunders(0, 0, 0)
    assert Blunders.count(none, none.mistakes(Lowest())).of_moves is None


def test_threads_and_the_cache_change_nothing(found: Solved, tmp_path: Path) -> None:
    sample = random_play(KUJIFUNZA, 100, plies=(12, 40), seed=1)
    progress: list[int] = []
    for threads in (1, 2):
        again = solve_sample(
            sample, threads=threads, cache=tmp_path / "cache", progress=progress.append
        )
        assert again.counts == found.counts
        for name, array in again.known.won.arrays().items():
            np.testing.assert_array_equal(array, found.known.won.arrays()[name])
    assert progress == [100, 100]
    assert len(list((tmp_path / "cache").iterdir())) == 1
    few = random_play(KUJIFUNZA, 4, plies=(20, 40), seed=2)
    once = solve_sample(few, cache=tmp_path / "few").counts
    (part,) = (tmp_path / "few").iterdir()
    whole = part.read_bytes()
    arrays = dict(np.load(part))
    illegal, short, real = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.savez(illegal, **arrays | {"winning": ~arrays["winning"]})
    np.savez(short, **{name: array[1:] for name, array in arrays.items()})
    np.savez(real, **arrays | {"winning": arrays["winning"].astype(float)})
    damaged = [file.getvalue() for file in (illegal, short, real)]
    for content in (b"", b"text", whole[:-200], whole[:300] + bytes(9) + whole[309:], *damaged):
        part.write_bytes(content)  # it is solved again
        assert solve_sample(few, cache=tmp_path / "few").counts == once
        assert part.read_bytes() == whole


# --- files --------------------------------------------------------------------------------------


def test_files_of_won_positions(found: Solved, tmp_path: Path) -> None:
    file = tmp_path / "won.npz"
    found.known.won.save(file)
    again = SolvedPositions.load(file, KUJIFUNZA)
    for name, array in again.arrays().items():
        np.testing.assert_array_equal(array, found.known.won.arrays()[name])
    with pytest.raises(ValueError, match="other rules than 'zanzibar'"):
        SolvedPositions.load(file, RULESETS["zanzibar"])
    np.savez(file, positions=np.zeros(3))
    for path in (file, tmp_path / "missing.npz", tmp_path):
        with pytest.raises(ValueError, match="no file of solved positions"):
            SolvedPositions.load(path, KUJIFUNZA)


@pytest.mark.parametrize("name", sorted(path.stem for path in SHIPPED.glob("*.npz")))
def test_shipped_positions_are_won(name: str, thorough: bool) -> None:
    ruleset = RULESETS[name]
    won = shipped_won_positions(ruleset)
    assert won is not None
    assert len(won) >= 500
    part = won[:: 1 if thorough else 100]
    judged = Solver(ruleset, nodes=200_000).judge(part.positions, part.masks)
    np.testing.assert_array_equal(judged.losing, part.losing)
    np.testing.assert_array_equal(judged.winning, part.masks & ~part.losing)
    assert shipped_won_positions(ruleset.replace(house=not ruleset.house)) is None


# --- the command --------------------------------------------------------------------------------

WORDS = ["--ruleset", "kujifunza", "--positions", "40", "--plies", "10", "40", "--games", "6"]
WORDS += ["--nodes", "10000", "--threads", "1"]


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["random", "alphabeta:2", *WORDS, "--cache", str(tmp_path / "cache")]
    files = {name: tmp_path / name for name in ("json", "plot", "won")}
    options = [word for name, file in files.items() for word in (f"--{name}", str(file))]
    assert bao(["blunders", *words, *options]) == 0
    out = capsys.readouterr().out
    for text in ("random play", "games of alphabeta:4", "own games of random", "perfect play"):
        assert text in out
    report = json.loads(files["json"].read_text())
    assert report["made_with"]["commit"]
    assert report["settings"]["seed"] == 1
    first, second = report["results"]
    assert (first["player"], second["player"]) == ("random", "alphabeta:2")
    everything = first["blunders"]["all"]["all"]
    for classes in first["blunders"].values():
        for key in ("moves", "choices", "mistakes"):
            assert sum(part[key] for part in classes.values()) == everything[key]
    assert everything["moves"] >= everything["choices"] >= everything["mistakes"] > 0
    assert everything["mistakes"] > second["blunders"]["all"]["all"]["mistakes"]
    assert 0 < first["against_perfect_play"]["games"] <= 6
    assert files["plot"].read_bytes().startswith(b"\x89PNG")
    won = SolvedPositions.load(files["won"], KUJIFUNZA)
    shared = [report["sources"][source]["mtaji"]["won"] for source in ("random", "strong")]
    assert len(won) == sum(shared)

    # One player alone, with two threads and without the cache: the same.
    words = ["random", *WORDS[:-1], "2", "--cache", str(tmp_path / "other")]
    assert bao(["blunders", *words, "--json", str(files["json"])]) == 0
    assert json.loads(files["json"].read_text())["results"] == [first]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gready"], "did you mean 'greedy'"),
        (["zanzibar"], "trained under"),
        (["greedy", "--plies", "500", "600"], "fewer than 40 different positions"),
    ],
)
def test_what_cannot_be_measured(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [*WORDS, *words[1:], "--cache", str(tmp_path)]
    assert bao(["blunders", words[0], *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["greedy", "--positions", "0"], "'0': expected a whole number of at least 1"),
        (["greedy", "--sources", "elsewhere"], "invalid choice"),
        ([], "nothing to do"),
    ],
)
def test_wrong_options(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert bao(["blunders", *words]) == 2
    assert message in capsys.readouterr().err


def test_ctrl_c_shows_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measure = blunders.measure

    def interrupted(spec: str, *rest: Any) -> Any:
        if spec == "greedy":
            raise KeyboardInterrupt
        return measure(spec, *rest)

    monkeypatch.setattr(blunders, "measure", interrupted)
    words = ["random", "greedy", *WORDS, "--cache", str(tmp_path)]
    assert bao(["blunders", *words, "--sources", "random"]) == 130
    captured = capsys.readouterr()
    assert "random" in captured.out
    assert "greedy" not in captured.out
    assert "the same command continues" in captured.err


# --- in training --------------------------------------------------------------------------------


def test_training_logs_it(found: Solved, tmp_path: Path) -> None:
    file = tmp_path / "won.npz"
    found.known.won.save(file)
    settings = ["ruleset=kujifunza", "steps=1024", "hidden=[16]", "envs=64", "rollout=16"]
    settings += ["minibatch=512", "evaluate_pairs=2"]
    trainer = PpoTrainer(*load_config(None, [*settings, f"blunder_positions={file}"]))
    share = trainer.evaluate()["blunders"]
    assert 0 < share < found.known.won.choices.mean()
    assert "blunders" not in PpoTrainer(*load_config(None, settings)).columns
    with pytest.raises(
        ConfigError, match="blunder_positions='missing': missing is no file of solved"
    ):
        PpoTrainer(*load_config(None, [*settings, "blunder_positions=missing"]))

    words = [part for s in [*settings, f"blunder_positions={file}"] for part in ("--set", s)]
    assert bao(["train", "--out", str(tmp_path), "--run", "r", *words]) == 0
    with open(tmp_path / "r" / "metrics.csv", newline="") as table:
        rows = list(csv.DictReader(table))
    assert 0 <= float(rows[-1]["blunders"]) <= 1


def test_the_curve_of_a_run(
    found: Solved, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row for each generation, the oldest first, with what the network does alone and with a
    search, and a picture."""
    run = tmp_path / "run"
    paths = [run / f"step-{steps}.safetensors" for steps in (500, 10_000)]
    for seed, path in enumerate(paths):
        torch.manual_seed(seed)
        network = PolicyNetwork(NetworkConfig(kind="moves", hidden=(16,)))
        torch.nn.init.normal_(network.head.weight)
        info = {"steps": int(path.stem[5:]), "seconds": 1.0}
        checkpoint.save(path, checkpoint.Checkpoint(network, KUJIFUNZA, info))
    found.known.won.save(tmp_path / "won.npz")
    options = ["--won", str(tmp_path / "won.npz"), "--threads", "1"]
    words = [str(run), "--blunders", *options, "--simulations", "4", "--against", "greedy"]
    assert bao(["curve", *words]) == 0
    rows = [line.strip("|").split("|") for line in capsys.readouterr().out.splitlines()[2:]]
    expected = [
        [
            f"{100 * found.known.won.mistakes(agents.load(name, ruleset=KUJIFUNZA)).mean():.2f}"
            for name in names
        ]
        for names in ([str(path), f"search:{path}:4"] for path in paths)
    ]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["500", *expected[0]],
        ["10,000", *expected[1]],
    ]
    assert (run / "blunders.png").read_bytes().startswith(b"\x89PNG")

    assert bao(["curve", str(tmp_path), "--blunders"]) == 2
    assert "fewer than two generations" in capsys.readouterr().err
    for path in paths:
        checkpoint.save(path, replace(checkpoint.load(path), ruleset=RULESETS["malawi"]))
    assert bao(["curve", str(run), "--blunders", "--threads", "1"]) == 2
    assert "no won positions of rule set malawi" in capsys.readouterr().err


def test_a_random_player_errs_as_often_as_its_chances_are(found: Solved) -> None:
    won = found.known.won
    bits = np.array([[int(m).bit_count() for m in masks] for masks in (won.losing, won.masks)])
    expected = float((bits[0] / bits[1]).mean())
    player = RandomAgent(1)
    seen = float(np.mean([won.mistakes(player).mean() for _ in range(30)]))
    assert seen == pytest.approx(expected, abs=0.03)
