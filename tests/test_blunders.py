"""How often players give won games away: won positions, counts, the command, training."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents
from agents.arena.elo import wilson_interval
from agents.nets import checkpoint
from agents.nets.network import NetworkConfig, PolicyNetwork
from agents.search.solver.player import PROOF_PART, SolverAgent
from agents.search.solver.solver import Solver
from bao_env.engine.action import actions_of
from bao_env.engine.ruleset import RULESETS
from tests.positions import batch_of
from training import blunder_curve, blunders, train
from training.config import ConfigError
from training.ppo import PpoTrainer
from training.sampling import random_play
from training.train import load_config
from training.won_positions import SHIPPED, Blunders, Solved, WonPositions, shipped, solve

KUJIFUNZA = RULESETS["kujifunza"]
NODES = 20_000


class Lowest:
    """Always takes the legal action with the lowest number."""

    def act(self, positions: np.ndarray, masks: np.ndarray) -> np.ndarray:
        return np.array([actions_of(mask)[0] for mask in masks])


@pytest.fixture(scope="module")
def found() -> Solved:
    """Solve positions of kujifunza."""
    return solve(random_play(KUJIFUNZA, 100, plies=(12, 40), seed=1), KUJIFUNZA, nodes=NODES)


# --- the positions ------------------------------------------------------------------------------


def test_won_positions_are_won(found: Solved) -> None:
    counts = found.counts["mtaji"]
    assert list(found.counts) == ["mtaji"]  # there is no namua in kujifunza
    assert sum(counts.values()) == 100
    assert counts["won"] == len(found.won) > 30 and counts["lost"] > 20
    values, _ = Solver(KUJIFUNZA).values(found.won.positions, found.won.masks)
    assert (values == 1).all()
    assert (found.won.losing & ~found.won.masks == 0).all()
    assert (found.won.losing != found.won.masks).all()
    assert 0 < found.won.choices.mean() < 1
    assert found.won.plies.min() == 1 and found.won.plies.max() < 100
    assert not found.won.mistakes(SolverAgent(KUJIFUNZA, nodes=PROOF_PART * NODES)).any()


def test_counts_by_hand() -> None:
    positions, masks = batch_of("kujifunza", 4, 3)
    lowest, last = (
        np.array([1 << actions_of(mask)[i] for mask in masks], np.uint64) for i in (0, -1)
    )
    losing = np.array([lowest[0], last[1], 0, lowest[3] | last[3]], np.uint64)
    won = WonPositions(KUJIFUNZA, positions, masks, losing, np.array([1, 3, 9, 3], np.int16))
    mistakes = won.mistakes(Lowest())
    assert mistakes.tolist() == [True, False, False, True]
    counted = won.blunders(mistakes)
    assert counted == Blunders(moves=4, choices=3, mistakes=2)
    assert counted.of_moves == (0.5, *wilson_interval(0.5, 4))
    assert counted.of_choices == (2 / 3, *wilson_interval(2 / 3, 3))
    classes = blunders.classify({"random": won[:3], "strong": won[3:]}, Lowest())
    assert classes["all"]["all"] == counted
    assert classes["source"] == {"random": Blunders(3, 2, 1), "strong": Blunders(1, 1, 1)}
    assert classes["stage"] == {"namua": Blunders(0, 0, 0), "mtaji": counted}
    by_plies = [r for r in classes["plies"].values() if r.moves]
    assert by_plies == [Blunders(1, 1, 1), Blunders(2, 2, 1), Blunders(1, 0, 0)]
    assert won[:0].blunders(mistakes[:0]).of_moves is None


def test_threads_and_the_cache_change_nothing(found: Solved, tmp_path: Path) -> None:
    """A damaged file of the cache is replaced."""
    sample = random_play(KUJIFUNZA, 100, plies=(12, 40), seed=1)
    progress: list[int] = []
    for threads in (1, 2, 1):
        again = solve(
            sample,
            KUJIFUNZA,
            nodes=NODES,
            threads=threads,
            cache=tmp_path,
            progress=progress.append,
        )
        assert again.counts == found.counts
        for name, array in again.won.arrays().items():
            np.testing.assert_array_equal(array, found.won.arrays()[name])
        [file] = tmp_path.iterdir()
        if threads == 2:
            file.write_bytes(b"")
    assert progress == [100, 100, 100]


# --- files --------------------------------------------------------------------------------------


def test_files_of_won_positions(found: Solved, tmp_path: Path) -> None:
    file = tmp_path / "won.npz"
    found.won.save(file)
    again = WonPositions.load(file, KUJIFUNZA)
    for name, array in again.arrays().items():
        np.testing.assert_array_equal(array, found.won.arrays()[name])
    with pytest.raises(ValueError, match="other rules than 'zanzibar'"):
        WonPositions.load(file, RULESETS["zanzibar"])
    np.savez(file, positions=np.zeros(3))
    for path in (file, tmp_path / "missing.npz", tmp_path):
        with pytest.raises(ValueError, match="no file of won positions"):
            WonPositions.load(path, KUJIFUNZA)


@pytest.mark.parametrize("name", sorted(path.stem for path in SHIPPED.glob("*.npz")))
def test_shipped_positions_are_won(name: str, thorough: bool) -> None:
    ruleset = RULESETS[name]
    won = shipped(ruleset)
    assert won is not None
    assert len(won) >= 500
    part = won[:: 1 if thorough else 100]
    judged = Solver(ruleset, nodes=200_000).judge(part.positions, part.masks)
    np.testing.assert_array_equal(judged.losing, part.losing)
    np.testing.assert_array_equal(judged.winning, part.masks & ~part.losing)
    assert shipped(ruleset.replace(house=not ruleset.house)) is None


# --- the command --------------------------------------------------------------------------------

WORDS = ["--ruleset", "kujifunza", "--positions", "40", "--plies", "10", "40", "--games", "6"]
WORDS += ["--nodes", "10000", "--threads", "1"]


@pytest.mark.slow
def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["random", "alphabeta:2", *WORDS, "--cache", str(tmp_path / "cache")]
    files = {name: tmp_path / name for name in ("json", "plot", "won")}
    assert blunders.main([*words, *(w for n, f in files.items() for w in (f"--{n}", str(f)))]) == 0
    out = capsys.readouterr().out
    for text in ("random play", "games of alphabeta:4", "own games of random", "perfect play"):
        assert text in out
    report = json.loads(files["json"].read_text())
    assert report["made_with"]["commit"] and report["settings"]["seed"] == 1
    first, second = report["results"]
    total = first["blunders"]["all"]["all"]
    for classes in first["blunders"].values():
        for key in ("moves", "choices", "mistakes"):
            assert sum(part[key] for part in classes.values()) == total[key]
    assert total["moves"] >= total["choices"] >= total["mistakes"] > 0
    assert total["mistakes"] > second["blunders"]["all"]["all"]["mistakes"]
    assert 0 < first["against_perfect_play"]["games"] <= 6
    assert files["plot"].read_bytes().startswith(b"\x89PNG")
    won = WonPositions.load(files["won"], KUJIFUNZA)
    sources = ("random", "strong")
    assert len(won) == sum(report["sources"][source]["mtaji"]["won"] for source in sources)

    # One player alone, with two threads and without the cache, has the same result.
    words = ["random", *WORDS[:-1], "2", "--cache", str(tmp_path / "other")]
    assert blunders.main([*words, "--json", str(files["json"])]) == 0
    assert json.loads(files["json"].read_text())["results"] == [first]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gready"], "did you mean 'greedy'"),
        (["zanzibar"], "trained under"),
        (["greedy", "--plies", "500", "600"], "fewer than 40 different positions"),
        (["greedy", "--positions", "0"], "must be positive"),
        (["greedy", "--sources", "elsewhere"], "invalid choice"),
        ([], "nothing to do"),
    ],
)
def test_invalid_arguments(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status: object = blunders.main([*WORDS, "--cache", str(tmp_path), *words])
    except SystemExit as error:
        status = error.code
    assert status == 2 and message in capsys.readouterr().err


def test_ctrl_c_prints_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measure = blunders.measure

    def interrupted(spec: str, *rest: Any) -> blunders.PlayerBlunders:
        if spec == "greedy":
            raise KeyboardInterrupt
        return measure(spec, *rest)

    monkeypatch.setattr(blunders, "measure", interrupted)
    words = ["random", "greedy", *WORDS, "--cache", str(tmp_path)]
    assert blunders.main([*words, "--sources", "random"]) == 130
    captured = capsys.readouterr()
    assert "random" in captured.out and "greedy" not in captured.out
    assert "the same command continues" in captured.err


# --- in training --------------------------------------------------------------------------------


def test_training_logs_regret(found: Solved, tmp_path: Path) -> None:
    file = tmp_path / "won.npz"
    found.won.save(file)
    settings = ["ruleset=kujifunza", "steps=1024", "hidden=[16]", "envs=64", "rollout=16"]
    settings += ["minibatch=512", "evaluate_pairs=2"]
    assert "blunders" not in PpoTrainer(*load_config(None, settings)).columns
    with pytest.raises(ConfigError, match="blunder_positions='missing': missing is no file of won"):
        PpoTrainer(*load_config(None, [*settings, "blunder_positions=missing"]))
    words = [part for s in [*settings, f"blunder_positions={file}"] for part in ("--set", s)]
    assert train.main(["--runs", str(tmp_path), "--run", "r", *words]) == 0
    with open(tmp_path / "r" / "metrics.csv", newline="") as table:
        rows = list(csv.DictReader(table))
    assert 0 < float(rows[-1]["blunders"]) < found.won.choices.mean()


def test_curve_of_a_run(found: Solved, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It has a row for each generation, of the network alone and with a search, and a plot."""
    run, won = tmp_path / "run", tmp_path / "won.npz"
    found.won.save(won)
    for steps in (500, 10_000):
        network = PolicyNetwork(NetworkConfig(kind="moves", hidden=(16,)))
        info = {"steps": steps, "seconds": 1.0}
        path = run / f"step-{steps}.safetensors"
        checkpoint.save(path, checkpoint.Checkpoint(network, KUJIFUNZA, info))
    words = [str(run), "--threads", "1"]
    options = ["--won", str(won), "--simulations", "4", "--against", "greedy"]
    assert blunder_curve.main([*words, *options]) == 0
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[1].strip() for row in rows] == ["500", "10,000"]
    share = found.won.mistakes(agents.load(path, ruleset=KUJIFUNZA)).mean()
    assert rows[1][2].strip() == f"{100 * share:.2f}"
    assert (run / "blunders.png").read_bytes().startswith(b"\x89PNG")

    assert blunder_curve.main([str(tmp_path)]) == 2
    assert "fewer than two generations" in capsys.readouterr().err
    for path in run.glob("*.safetensors"):
        checkpoint.save(path, replace(checkpoint.load(path), ruleset=RULESETS["malawi"]))
    assert blunder_curve.main(words) == 2
    assert "no won positions of rule set malawi" in capsys.readouterr().err
