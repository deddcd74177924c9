"""Test the rating of a player on a ladder: the fit, the plan of the games, the command line."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bao_agents.arena import scheduler
from bao_agents.arena.elo import place, score_pairs
from bao_agents.arena.event import Event
from bao_agents.arena.ladder import DEFAULT, Ladder, load_ladder, shipped
from bao_agents.arena.openings import draw_openings
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.placement import OnLadder
from bao_agents.arena.plan import Gauntlet, Part
from bao_agents.arena.scheduler import Workers
from bao_agents.cli import rate
from bao_agents.cli.games import Played
from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint_files import CHECKPOINTS
from bao_agents.players import registry
from bao_agents.support.progress import Progress
from bao_agents.support.provenance import provenance
from bao_env.engine.ruleset import RULESETS, Ruleset
from docs.make_ladder import make_ladder
from tests.conftest import Fails, Says

OPENINGS = 60
BOTS = {"random": 0.0, "greedy": 333.0, "alphabeta:1": 700.0}
MINE = """
import numpy as np

class Lowest:
    def act(self, positions, legal):
        lowest = legal & (~legal + np.uint64(1))
        return np.log2(np.maximum(lowest, np.uint64(1)).astype(float)).astype(np.int64)

class Broken:
    def act(self, positions, legal):
        raise TypeError("my mistake")

def lowest(ruleset, seed, file=None):
    assert file is None or open(file).read() == "weights"
    return Lowest()

def broken(ruleset, seed):
    return Broken()
"""


def drawn_points(rng: np.random.Generator, elo: float, opponents: np.ndarray) -> np.ndarray:
    """Draw the points of a player of this rating by the model, float64[pairs, 2]."""
    chance = 1 / (1 + 10 ** ((opponents - elo) / 400))
    return (rng.random((len(opponents), 2)) < chance[:, None]).astype(float)


@pytest.fixture(scope="session")
def report() -> dict[str, Any]:
    """Return the ``table.json`` of a tournament of three quick bots."""
    rules = RULESETS["zanzibar"]
    played = {"games": 36, "ms_a_move": 0.01}
    rows = [
        {"player": name, "elo": elo, "elo_low": elo - 9, "elo_high": elo + 9, **played}
        for name, elo in BOTS.items()
    ]
    return {
        "made_with": provenance(rules),
        "players": {name: name for name in BOTS},
        "ruleset": rules.to_dict(),
        "pairs": 9,
        "opening_plies": 8,
        "balance": None,
        "seed": 1,
        "anchor": "random",
        "results": rows,
    }


@pytest.fixture(scope="session")
def small(report: dict[str, Any]) -> Ladder:
    """Make a ladder of three quick bots."""
    return make_ladder("small", report, OPENINGS)


@pytest.fixture
def ladder_file(small: Ladder, tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    path.write_text(small.model_dump_json())
    return path


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "LocalPool", ThreadPoolExecutor)  # processes start slowly


# --- the fit ------------------------------------------------------------------------------------


def test_placement_against_one_opponent_is_an_ordinary_match() -> None:
    rng = np.random.default_rng(0)
    points = rng.choice([0.0, 0.5, 1.0], (80, 2), p=[0.25, 0.05, 0.7])
    found = place(np.full(80, 500.0), np.arange(80), points)
    expected = [500.0 + elo for elo in score_pairs(points).elo]
    assert [found.elo, found.low, found.high] == pytest.approx(expected, abs=1e-6)


def test_games_of_one_opening_count_as_one_observation() -> None:
    """The same results again, from the same openings, do not change the interval."""
    rng = np.random.default_rng(2)
    opponents, openings = np.full(200, 300.0), np.arange(200)
    points = np.tile(drawn_points(rng, 400.0, opponents[:100]), (2, 1))
    once = place(opponents[:100], openings[:100], points[:100]).margin
    assert place(opponents, openings % 100, points).margin == pytest.approx(once, rel=0.02)
    apart = place(opponents, openings, points).margin
    assert apart == pytest.approx(once / math.sqrt(2), rel=0.02)


@pytest.mark.parametrize("won", [True, False])
def test_clean_sweep_is_a_bound(won: bool) -> None:
    """Wilson's interval of 60 games won out of 60 ends at 60 / (60 + 1.96 ** 2)."""
    found = place(np.full(30, 1000.0), np.arange(30), np.full((30, 2), float(won)))
    sign, word = (1, "above") if won else (-1, "below")
    nearer, farther = (found.low, found.high)[::sign]
    assert farther == found.elo == sign * math.inf and found.margin == math.inf
    bound = 1000 + sign * 400 * math.log10(60 / 1.959964**2)
    assert nearer == pytest.approx(bound, abs=0.1)
    assert str(found) == f"{word} {bound:.0f} Elo (95 %)"


# --- the plan -----------------------------------------------------------------------------------


def wide_ladder(small: Ladder, openings: int = OPENINGS) -> Ladder:
    """Make a ladder of eight anchors, 250 Elo apart; only their ratings matter."""
    plain = small.model_dump()
    [first, *_] = plain["anchors"]
    plain["anchors"] = [
        first | {"player": f"alphabeta:{i + 1}", "elo": 250.0 * i} for i in range(8)
    ]
    plain["openings"] = (plain["openings"] * 20)[:openings]
    return Ladder.model_validate(plain)


def simulate(plan: OnLadder, elo: float, seed: int = 0) -> dict[Part, Pairs]:
    """Return the results of a rating, drawn from the model."""
    rng = np.random.default_rng(seed)
    results: dict[Part, Pairs] = {}
    while parts := plan.next_round(results):
        for part in parts:
            [elo_of] = [a.elo for a in plan.ladder.anchors if a.player == part.second]
            opponents = np.full(len(part.numbers), elo_of)
            results[part] = Pairs(points=drawn_points(rng, elo, opponents))
    return results


def pairs_against(results: dict[Part, Pairs], anchor: str) -> int:
    return sum(len(part.numbers) for part in results if part.second == anchor)


def test_no_game_is_played_twice(small: Ladder) -> None:
    """A precision that is out of reach takes every opening against every anchor once."""
    results = simulate(OnLadder(wide_ladder(small), "me", precision=1.0), 900.0)
    games = {(part.second, opening) for part in results for opening in part.numbers}
    assert len(games) == sum(map(len, results.values())) == 8 * OPENINGS


def test_nearest_anchors_are_played(small: Ladder) -> None:
    """The first round begins in the middle of the ladder, for who has no time for more."""
    plan = OnLadder(wide_ladder(small, 500), "me")
    elos = {anchor.player: anchor.elo for anchor in plan.ladder.anchors}
    first = [elos[part.second] for part in plan.next_round({})]
    assert set(first[:2]) == {750.0, 1000.0}
    results = simulate(plan, 1500.0)
    assert plan.placement(results).margin <= 30.0
    pairs = [pairs_against(results, name) for name in elos]
    assert sum(pairs[5:8]) > 0.7 * sum(pairs) and pairs[0] == 0


def test_anchor_does_not_meet_itself(small: Ladder) -> None:
    results = simulate(OnLadder(small, "greedy", precision=1.0), 333.0)
    assert [pairs_against(results, name) for name in BOTS] == [OPENINGS, 0, OPENINGS]


def test_seed_decides_the_plan(small: Ladder) -> None:
    ladder = wide_ladder(small)
    one, same, other = (OnLadder(ladder, "me", seed=seed).next_round({}) for seed in (3, 3, 4))
    assert one == same != other


# --- the ladder ---------------------------------------------------------------------------------


def test_ladder_file_round_trip(small: Ladder, ladder_file: Path) -> None:
    """An anchor that plays differently is named."""
    again = load_ladder(str(ladder_file))
    drawn = draw_openings("zanzibar", OPENINGS, 8, seed=2, balance=None)
    np.testing.assert_array_equal(again.starts.positions, drawn.positions)
    assert again.model_dump() == small.model_dump() and again.changed() == []
    greedy = small.anchors[1].model_copy(update={"answers": "0" * 16})
    other = small.model_copy(update={"anchors": (small.anchors[0], greedy)})
    assert other.changed() == ["greedy"]


def test_shipped_ladder() -> None:
    ladder = load_ladder()
    assert DEFAULT in shipped() and ladder.name == DEFAULT
    assert ladder.anchors[0].player == "random" and ladder.anchors[0].elo == 0.0
    assert (np.diff(ladder.ratings) > 0).all()
    assert all(registry.parse(anchor.player).path is None for anchor in ladder.anchors)
    assert len({position.tobytes() for position in ladder.starts.positions}) >= 500


@pytest.mark.slow
def test_shipped_anchors_play_as_when_they_were_rated() -> None:
    """If one does not, the ratings are void: make a new ladder with a new number."""
    assert load_ladder().changed() == []


# --- the command line ---------------------------------------------------------------------------


@pytest.mark.usefixtures("threads")
def test_rate_a_bot(ladder_file: Path, tmp_path: Path, says: Says) -> None:
    """The report is that of the printed command, on any number of workers."""
    file = tmp_path / "out.json"

    def rated(line: str) -> tuple[str, dict[str, Any]]:
        out = says(f"{line} --json {file}")
        [result] = json.loads(file.read_text())["results"]
        for row in (result, *result["against"]):
            row["ms_a_move"] = 0
        return out, result

    out, found = rated(
        f"rate greedy --ladder {ladder_file} --precision 120 --threads 2 --path {tmp_path}"
    )
    printed = out.partition("- command: `bao ")[2].partition("`")[0]
    assert printed.endswith(f" --threads 2 --path {tmp_path} --json {file}")
    assert rated(printed.replace("--threads 2", "--threads 1"))[1] == found
    assert out.startswith(
        f"# greedy: {found['elo']:.0f} Elo (95 % interval {found['elo_low']:.0f} to"
    )
    assert found["elo_low"] <= 333 <= found["elo_high"] and found["ended"] == "precise"
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines()[4:]]
    for name, elo, games, won, drawn, lost, score, expected in (row for row in rows if row):
        assert float(elo) == BOTS[name]
        assert int(games) == int(won) + int(drawn) + int(lost) > 0
        assert float(score) == pytest.approx(
            100 * (int(won) + int(drawn) / 2) / int(games), abs=0.05
        )
        chance = 100 / (1 + 10 ** ((BOTS[name] - found["elo"]) / 400))
        assert float(expected) == pytest.approx(chance, abs=0.05)
    assert found["games"] == sum(int(row[2]) for row in rows if row)
    commit = json.loads(file.read_text())["made_with"]["commit"]
    for text in ("small", "numba", commit, "seed: 1"):
        assert text in out


@pytest.mark.usefixtures("threads")
def test_families(
    ladder_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    """The checkpoints of a run, in order, become a CSV that ``bao curve`` draws."""
    run = tmp_path / "mine"
    run.mkdir()
    whole = checkpoint.load(CHECKPOINTS / "zanzibar.safetensors")
    for steps in (90, 1000):
        info = whole.info | {"steps": steps}
        checkpoint.save(run / f"step-{steps}.safetensors", replace(whole, info=info))
    monkeypatch.chdir(tmp_path)
    line = f"rate mine/step-*.safetensors greedy --ladder {ladder_file} --precision 300 --threads 1"
    text = says(f"{line} --csv -")
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["player"] for row in rows] == ["mine/step-90", "mine/step-1000", "greedy"]
    assert [row["steps"] for row in rows] == ["90", "1000", ""]
    assert all(row["ruleset"] == "zanzibar" and row["seed"] == "1" for row in rows)
    (tmp_path / "elo.csv").write_text(text)
    assert says("curve elo.csv --metrics elo --out elo.png").count("\n") >= 3
    assert says(line).count("| mine/step-") == 2

    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    for name in ("w_9.pt", "w_10.pt"):
        (tmp_path / name).write_text("weights")
    line = f"rate mine:lowest@w_*.pt --path . --ladder {ladder_file} --seconds 0.001 --threads 1"
    rows = list(csv.DictReader(says(f"{line} --csv -").splitlines()))
    assert [(row["player"], row["steps"]) for row in rows] == [
        ("mine:lowest@w_9.pt", "9"),
        ("mine:lowest@w_10.pt", "10"),
    ]


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(
    ("limit", "why"),
    [("precision 2", "no openings left"), ("seconds 0.001", "time is up")],
)
def test_ends_without_the_precision(ladder_file: Path, says: Says, limit: str, why: str) -> None:
    """The first games count, however long they take."""
    out = says(f"rate greedy --ladder {ladder_file} --threads 1 --{limit}")
    assert "# greedy: " in out and f"ended: {why}" in out
    assert re.search(rf"{why} before \+-\d+ Elo was reached", out)


class Slow:
    """Tasks whose players take long to get ready, and then some time for each game."""

    def __init__(self, ready: float, game: float) -> None:
        self.ready, self.game = ready, game

    def warm_up(self, spec: str, ruleset: Ruleset) -> None:
        time.sleep(self.ready)

    def play(self, threads: int, progress: Callable[[int], None]) -> Pairs:
        for _ in range(2):
            time.sleep(self.game)
            progress(1)
        return Pairs(points=np.array([[1.0, 0.0]]), plies=np.array([[9, 9]]))


def test_the_clock_starts_with_the_first_game(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that is cut short counts nothing."""
    slow = Slow(ready=0.5, game=0.1)
    monkeypatch.setattr(registry, "warm_up", slow.warm_up)
    monkeypatch.setattr(Event, "play", lambda event, part, *how: slow.play(*how))
    rules = RULESETS["zanzibar"]
    names = {name: name for name in ("greedy", "random")}
    event = Event(names, rules, draw_openings(rules, 20, 4, 1, None), seed=1)
    results: dict[Part, Pairs] = {}
    with Workers(1) as workers, Progress(disable=True) as bar, pytest.raises(TimeoutError):
        scheduler.play(event, Gauntlet("greedy", ["random"], 16), workers, bar, results, 0.5)
    assert [len(pairs) for pairs in results.values()] == [1, 1]


def test_a_few_games_are_no_rating(small: Ladder) -> None:
    plan = OnLadder(small, "greedy")
    first, second = (Part("greedy", name, (0, 1, 2)) for name in ("random", "alphabeta:1"))
    draw = Pairs(points=np.full((3, 2), 0.5), plies=np.full((3, 2), 9))
    row = rate.to_dict("me", plan, Played({first: draw}))
    assert row["rating"] == "6 games are too few" and row["games"] == 6
    assert row["elo"] is row["elo_low"] is row["elo_high"] is None
    row = rate.to_dict("me", plan, Played({first: draw, second: draw}))
    assert row["elo_low"] < row["elo"] < row["elo_high"]


@pytest.mark.usefixtures("threads")
def test_player_that_fails(
    ladder_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Fails
) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    error = fails(f"rate mine:broken --ladder {ladder_file} --path {tmp_path} --threads 1")
    assert re.search("mine:broken failed against .*: TypeError: my mistake", error, re.S)


IMPATIENT = """
import sys
from bao_agents.support import progress
from bao_agents.cli.main import main

progress.LINE_SECONDS = 0.1
sys.exit(main(sys.argv[1:]))
"""
"""The command, which says more often how far it is."""


@pytest.mark.slow
def test_ctrl_c_prints_what_there_is(ladder_file: Path, tmp_path: Path) -> None:
    """The worker process finds the player's module, which is in another folder."""
    source = MINE.replace("lowest = l", "import time; time.sleep(0.02); lowest = l")
    (tmp_path / "slow.py").write_text(source)
    line = f"rate slow:lowest --path {tmp_path} --ladder {ladder_file} --precision 1 --threads 1"
    process = subprocess.Popen(
        [sys.executable, "-c", IMPATIENT, *line.split()],
        cwd=Path(rate.__file__).parents[1],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    seen = ""
    while not re.search(r"/(?!40)\d+ \[", seen):  # the second round has begun
        letter = process.stderr.read(1)
        assert letter, seen
        seen += letter
    os.killpg(process.pid, signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert process.returncode == 130 and "ended: stopped" in out, seen + error
