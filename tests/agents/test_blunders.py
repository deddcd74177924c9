"""Test how often players give won games away: the positions, the counts and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bao_agents.arena.elo import wilson_interval
from bao_agents.cli.main import main
from bao_agents.exact.blunders import Blunders, classify
from bao_agents.exact.exact_values import solve_sample
from bao_agents.exact.sampling import Sample
from bao_agents.exact.solved_positions import (
    SHIPPED,
    SolvedPositions,
    find,
    shipped_won_positions,
    without_sides,
)
from bao_agents.nets.checkpoint_files import CHECKPOINTS
from bao_agents.players.player import NamedPlayer
from bao_agents.players.registry import load
from bao_agents.search.limits import Limit
from bao_agents.search.solver.player import PROOF_PART, SolverAgent
from bao_agents.search.solver.solver import Solver
from bao_agents.support.provenance import digest
from bao_env.engine.action import actions_of
from bao_env.engine.ruleset import RULESETS
from bao_training.evaluation import Opponent
from tests.conftest import Capsys, Says
from tests.play import Lowest
from tests.positions import draw
from tests.training.runs import make, metrics, options

KUJIFUNZA = RULESETS["kujifunza"]
NODES = 20_000


@pytest.fixture(scope="module")
def solved() -> SolvedPositions:
    """Solved positions of kujifunza."""
    sample = Sample(*draw(KUJIFUNZA, 100, (12, 40), seed=1))
    return solve_sample(sample, "random", Solver(KUJIFUNZA, nodes=NODES, threads=None))


# --- the positions ------------------------------------------------------------------------------


def test_the_solver_gives_nothing_away(solved: SolvedPositions) -> None:
    assert not solved.won.mistakes(SolverAgent(KUJIFUNZA, Limit(nodes=PROOF_PART * NODES))).any()


DISTANCES = {1: "1", 2: "2 to 3", 3: "2 to 3", 4: "4 to 7", 7: "4 to 7", 8: "8 to 15"}
DISTANCES |= {15: "8 to 15", 16: "16 and more", 999: "16 and more"}
"""The class of a number of plies."""


def test_counts_by_hand() -> None:
    positions, legal = draw("kujifunza", 4, 3)
    lowest, last = (
        np.array([1 << actions_of(bits)[i] for bits in legal], np.uint64) for i in (0, -1)
    )
    assert (lowest != last).all()
    losing = np.array([lowest[0], last[1], 0, lowest[3] | last[3]], np.uint64)
    source = np.array(["random", "random", "random", "strong"])
    won = SolvedPositions(
        KUJIFUNZA, positions, legal, legal & ~losing, np.array([1, 3, 9, 3], np.int16), source
    )
    mistakes = won.mistakes(Lowest())
    assert mistakes.tolist() == [True, False, False, True]
    counted = Blunders.count(won, mistakes)
    assert counted == Blunders(moves=4, choices=3, mistakes=2)
    assert counted.of_moves == (0.5, *wilson_interval(0.5, 4))
    assert counted.of_choices == (2 / 3, *wilson_interval(2 / 3, 3))
    classes = classify(won, mistakes)
    assert classes["all"]["all"] == counted
    assert classes["source"] == {"random": Blunders(3, 2, 1), "strong": Blunders(1, 1, 1)}
    assert classes["stage"] == {"namua": Blunders(0, 0, 0), "mtaji": counted}
    assert classes["stage"]["namua"].of_moves is None
    assert [r for r in classes["plies"].values() if r.moves] == [
        Blunders(1, 1, 1),
        Blunders(2, 2, 1),
        Blunders(1, 0, 0),
    ]
    assert counted.of_moves is not None
    assert counted.of_choices is not None
    assert counted.to_dict() == {
        "moves": 4,
        "choices": 3,
        "mistakes": 2,
        "of_moves": counted.of_moves._asdict(),
        "of_choices": counted.of_choices._asdict(),
    }
    assert Blunders(1, 0, 0).to_dict()["of_choices"] is None
    for plies, name in DISTANCES.items():
        by_plies = classify(replace(won, plies=np.full(4, plies, np.int16)), mistakes)["plies"]
        assert [key for key, part in by_plies.items() if part.moves] == [name]
    keeps = replace(won[:1], legal=np.array([3], np.uint64), winning=np.array([1], np.uint64))
    assert not keeps.mistakes(Lowest()).any()  # it plays action 0, which wins


@pytest.mark.parametrize("name", sorted(path.stem for path in SHIPPED.glob("*.npz")))
def test_shipped_positions_are_won(name: str, thorough: bool, seed: int) -> None:
    """The test solves some of the positions, chosen by the seed. None repeats another."""
    ruleset = RULESETS[name]
    won = shipped_won_positions(ruleset)
    assert won is not None and len(won) >= 500
    assert len({*without_sides(won.positions)}) == len(won)
    every = 1 if thorough else 100
    part = won[seed % every :: every]
    judged = Solver(ruleset, nodes=200_000).judge(part.positions, part.legal)
    np.testing.assert_array_equal(judged.losing, part.losing)
    np.testing.assert_array_equal(judged.winning, part.legal & ~part.losing)
    assert shipped_won_positions(ruleset.replace(house=not ruleset.house)) is None


# --- the command --------------------------------------------------------------------------------


def test_the_command(solved: SolvedPositions, tmp_path: Path, says: Says) -> None:
    solved.save(tmp_path / "solved.npz")
    file = tmp_path / "json"
    line = "blunders random alphabeta:2 --ruleset kujifunza --threads 1"
    out = says(f"{line} --positions {tmp_path}/solved.npz --json {file}")
    report = json.loads(file.read_text())
    assert report["made_with"]["command"].endswith(f"--json {file}")
    first, second = report["results"]
    mark = digest(tmp_path / "solved.npz")
    assert report["positions"].endswith(f" of {tmp_path}/solved.npz, digest {mark}")
    assert (first["player"], second["player"]) == ("random", "alphabeta:2")
    everything = first["blunders"]["all"]["all"]
    assert everything["moves"] == len(solved.won)
    for classes in first["blunders"].values():
        for key in ("moves", "choices", "mistakes"):
            assert sum(part[key] for part in classes.values()) == everything[key]
    assert everything["mistakes"] > second["blunders"]["all"]["all"]["mistakes"]
    [printed] = [line.split() for line in out.splitlines() if line.startswith("random  ")]
    assert printed[1] == f"{everything['moves']:,}"
    for column, name in ((2, "moves"), (4, "choices")):
        percentage = 100 * everything["mistakes"] / everything[name]
        assert float(printed[column]) == pytest.approx(percentage, abs=0.06)
    assert max(map(len, out.splitlines())) <= 80
    assert "of kujifunza" in says(f"{line} --csv -")  # the positions shipped for these rules
    table = says(f"{line} --positions {tmp_path}/solved.npz --format markdown")
    assert table.startswith("Won games given away, kujifunza\n") and "\n| random " in table


def test_the_report_names_the_networks_that_played(
    solved: SolvedPositions, tmp_path: Path, says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of one may be gone when another has played."""
    solved.save(tmp_path / "solved.npz")
    network = tmp_path / "mine.safetensors"
    network.write_bytes((CHECKPOINTS / "kujifunza.safetensors").read_bytes())
    mark = digest(network)

    def classify_and_remove(*args: Any) -> dict[str, dict[str, Blunders]]:
        network.unlink(missing_ok=True)
        return classify(*args)

    loaded = list[Any]()

    def note(*player: Any, **settings: Any) -> NamedPlayer:
        loaded.append(settings)
        return load(*player, **settings)

    monkeypatch.setattr("bao_agents.players.registry.load", note)
    monkeypatch.setattr("bao_agents.cli.blunders.classify", classify_and_remove)
    line = f"blunders random {network} --ruleset kujifunza --positions {tmp_path}/solved.npz"
    report = json.loads(says(f"{line} --threads 1 --seed 5 --json -"))
    assert loaded == [{"ruleset": KUJIFUNZA, "seed": 5, "threads": 1}] * 2
    assert report["made_with"]["networks"] == {str(network): mark}
    assert [result["fingerprint"] for result in report["results"]] == ["", mark]


def test_faults_are_told_and_ctrl_c_keeps_the_results_so_far(
    solved: SolvedPositions, tmp_path: Path, capsys: Capsys
) -> None:
    solved.save(tmp_path / "solved.npz")
    (tmp_path / "faulty.py").write_text(
        "from bao_agents.players.faults import PlayerFault\n"
        "class Faulty:\n"
        "    def __init__(self, error): self.error = error\n"
        "    def act(self, positions, legal): raise self.error\n"
        "def late(ruleset, seed): return Faulty(PlayerFault('late', 'out of time'))\n"
        "def exits(ruleset, seed): return Faulty(SystemExit(0))\n"
        "def stopped(ruleset, seed): return Faulty(KeyboardInterrupt())\n"
    )
    options = ["--ruleset=kujifunza", f"--positions={tmp_path}/solved.npz", f"--path={tmp_path}"]
    players = ["faulty:late", "faulty:stopped", "random"]
    assert main(["blunders", *players, *options, f"--json={tmp_path}/json"]) == 130
    out, err = capsys.readouterr()
    rows = [line.split()[:2] for line in out.splitlines() if line.startswith("faulty:")]
    assert rows == [["faulty:late", str(len(solved.won))]]
    assert (
        f"faulty:late had faults in {len(solved.won)} positions, which count as mistakes where one "
        "is possible: out of time\n"
    ) in err
    assert main(["blunders", "faulty:exits", *options]) == 2
    assert (
        "error: faulty:exits failed: RuntimeError: act() raised SystemExit: 0\n"
        in capsys.readouterr().err
    )
    [result] = json.loads((tmp_path / "json").read_text())["results"]
    assert result["player"] == "faulty:late"
    assert result["faults"] == ["out of time"] * len(solved.won)


def test_a_path_is_no_shipped_name(tmp_path: Path) -> None:
    for name in ("mine", "mine.npz"):
        (tmp_path / name).touch()
    assert find(tmp_path / "mine") == tmp_path / "mine"
    assert find("./kujifunza") == Path("kujifunza") and find("kujifunza").is_file()


# --- in training --------------------------------------------------------------------------------


def test_training_logs_it(solved: SolvedPositions, tmp_path: Path, says: Says) -> None:
    file = tmp_path / "won.npz"
    solved.won.save(file)
    settings = "ruleset=kujifunza steps=1024 hidden=[16] envs=64 rollout=16 "
    settings += "minibatch=512 evaluate_pairs=2 "
    logging = f"{settings}blunder_positions={file}"
    trainer = make(logging)
    row = trainer.measure()
    assert 0 < row["blunders"] < solved.won.choices.mean()
    interval = row["blunders_low"], row["blunders_high"]
    assert interval == wilson_interval(row["blunders"], len(solved.won.choices))
    score = trainer.evaluation.scores[Opponent("greedy")]
    ends = tuple(row[f"score_against_greedy{end}"] for end in ("", "_low", "_high"))
    assert ends == (score.rate, score.low, score.high)
    assert "blunders" not in make(settings).columns
    says(f"train --out {tmp_path} --run r {options(logging)}")
    assert 0 <= float(metrics(tmp_path)[-1]["blunders"]) <= 1
