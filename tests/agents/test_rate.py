"""Test the rating of a player on a ladder: the fit, the plan of the games, the command line."""

from __future__ import annotations

import csv
import json
import math
import re
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bao_agents.arena import scheduler
from bao_agents.arena.elo import Z95, rate_against, score_pairs
from bao_agents.arena.event import Event
from bao_agents.arena.ladder import DEFAULT, Ladder, load_ladder, shipped
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.placement import OnLadder
from bao_agents.arena.plan import PART_PAIRS, Gauntlet, Part
from bao_agents.arena.scheduler import Workers
from bao_agents.cli import games, rate
from bao_agents.cli.games import Played
from bao_agents.cli.main import main as bao
from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint_files import CHECKPOINTS
from bao_agents.players import registry
from bao_agents.support.progress import Progress
from bao_env.engine.ruleset import RULESETS
from bao_env.notation.transcript import parse_transcripts
from docs.make_ladder import make_ladder
from tests.conftest import Capsys, Fails, Says

OPENINGS = 60
MINE = """
from pathlib import Path

import numpy as np

from bao_agents.players.faults import PlayerFault

class Lowest:
    def act(self, positions, legal):
        lowest = legal & (~legal + np.uint64(1))
        return np.log2(np.maximum(lowest, np.uint64(1)).astype(float)).astype(np.int64)

class Broken:
    def __init__(self, error):
        self.error = error

    def act(self, positions, legal):
        raise self.error

def lowest(ruleset, seed, file=None):
    assert file is None or Path(file).read_text() == "weights"
    return Lowest()

def broken(ruleset, seed):
    return Broken(TypeError("my mistake"))

def exits(ruleset, seed):
    return Broken(SystemExit(0))

def late(ruleset, seed):
    return Broken(PlayerFault("me", "gave up"))
"""


def drawn_points(rng: np.random.Generator, elo: float, opponents: np.ndarray) -> np.ndarray:
    """Draw the points of a player of this rating by the model, float64[pairs, 2]."""
    chance = 1 / (1 + 10 ** ((opponents - elo) / 400))
    return (rng.random((len(opponents), 2)) < chance[:, None]).astype(float)


def small_ladder() -> Ladder:
    """Return the shipped ladder with three quick anchors and fewer openings."""
    plain = load_ladder().model_dump() | {"name": "small"}
    plain["openings"] = plain["openings"][:OPENINGS]
    quick = ("random", "greedy", "alphabeta:1")
    plain["anchors"] = [anchor for anchor in plain["anchors"] if anchor["player"] in quick]
    return Ladder.model_validate(plain)


SMALL = small_ladder()


@pytest.fixture
def ladder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of a ladder of three quick bots; processes are threads."""
    monkeypatch.setattr(scheduler, "LocalPool", ThreadPoolExecutor)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    (tmp_path / "mine.py").write_text(MINE)
    path = tmp_path / "small.json"
    path.write_text(SMALL.model_dump_json())
    return path


# --- the fit ------------------------------------------------------------------------------------


def test_placement_against_one_opponent_is_an_ordinary_match() -> None:
    rng = np.random.default_rng(0)
    points = rng.choice([0.0, 0.5, 1.0], (80, 2), p=[0.25, 0.05, 0.7])
    placement = rate_against(np.full(80, 500.0), np.arange(80), points)
    expected = [500.0 + elo for elo in score_pairs(points).elo]
    assert [placement.elo, placement.low, placement.high] == pytest.approx(expected, abs=1e-6)


def test_the_scale_interval_has_the_error_of_the_opponent() -> None:
    plan = OnLadder(SMALL, "me", "mine:lowest")
    anchor = SMALL.anchors[2]
    points = drawn_points(np.random.default_rng(0), 700.0, np.full(20, anchor.elo))
    results = {Part("me", anchor.player, tuple(range(20))): Pairs(points=points)}
    placement, error = plan.placement(results), (anchor.high - anchor.low) / 2
    low, high = placement.elo - placement.low, placement.high - placement.elo
    expected = placement.elo - math.hypot(low, error), placement.elo + math.hypot(high, error)
    assert error > 5 and plan.scale_interval(results) == pytest.approx(expected)
    sweep = {part: Pairs(points=np.ones((20, 2))) for part in results}
    assert plan.scale_interval(sweep) is None


# --- the plan -----------------------------------------------------------------------------------


def simulate(plan: OnLadder, elo: float) -> dict[Part, Pairs]:
    """Return the results of a rating, drawn from the model.

    A round at most doubles the pairs, and begins with the slowest anchors.
    """
    rng = np.random.default_rng(0)
    elos = {anchor.player: anchor.elo for anchor in plan.ladder.anchors}
    times = {anchor.player: anchor.ms_a_move for anchor in plan.ladder.anchors}
    results: dict[Part, Pairs] = {}
    while parts := plan.next_round(results):
        sizes = [len(part.numbers) for part in parts]
        opponents_met = [part.second for part in parts]
        assert 1 <= min(sizes) <= max(sizes) <= PART_PAIRS
        assert sum(sizes) < max(20, sum(map(len, results.values()))) + len({*opponents_met})
        assert not results or opponents_met == sorted(
            opponents_met, key=times.__getitem__, reverse=True
        )
        for part in parts:
            opponents = np.full(len(part.numbers), elos[part.second])
            results[part] = Pairs(points=drawn_points(rng, elo, opponents))
    return results


def test_no_game_is_played_twice() -> None:
    """For a precision that cannot be reached, the plan plays every opening against every anchor
    except the player itself."""
    results = simulate(OnLadder(SMALL, "greedy", "greedy", precision=1.0), 333.0)
    games = {(part.second, opening) for part in results for opening in part.numbers}
    assert len(games) == sum(map(len, results.values())) == 2 * OPENINGS
    assert {part.second for part in results} == {"random", "alphabeta:1"}


def test_nearest_anchors_are_played() -> None:
    """The first round begins in the middle of the ladder, in case there is time for no more."""
    plan, same, other_seed = (
        OnLadder(load_ladder(), "me", "mine:lowest", seed=seed) for seed in (1, 1, 2)
    )
    first = plan.next_round({})
    assert first == same.next_round({}) != other_seed.next_round({})
    elos = {anchor.player: anchor.elo for anchor in plan.ladder.anchors}
    middle = float(np.mean([*elos.values()]))
    away = [abs(elos[part.second] - middle) for part in first]
    near = {part.second for part in first}
    assert sum(len(part.numbers) for part in first) == len(near) * math.ceil(20 / len(near))
    assert away == sorted(away) and away[0] == min(abs(elo - middle) for elo in elos.values())
    results = simulate(plan, 1500.0)
    assert plan.placement(results).margin <= 30.0
    near_pairs = [
        len(pairs) for part, pairs in results.items() if abs(elos[part.second] - 1500) < 350
    ]
    assert sum(near_pairs) > 0.7 * sum(map(len, results.values()))
    assert "random" not in {part.second for part in results}


def test_the_clock_starts_with_the_first_game(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that is cut short does not count."""
    clock = 0.0

    def wait(seconds: float) -> None:
        nonlocal clock
        clock += seconds

    def slow(event: Event, part: Part, threads: int, progress: Callable[[int], None]) -> Pairs:
        for _ in range(2):
            wait(1)
            progress(1)
        return Pairs(points=np.array([[1.0, 0.0]]))

    monkeypatch.setattr(scheduler, "time", SimpleNamespace(monotonic=lambda: clock))
    monkeypatch.setattr(registry, "warm_up", lambda *player: wait(5))
    monkeypatch.setattr(Event, "play", slow)
    names = {name: name for name in ("greedy", "random")}
    event = Event(names, RULESETS["zanzibar"], SMALL.starts, seed=1)
    results: dict[Part, Pairs] = {}
    with Workers(1) as workers, Progress(disable=True) as bar, pytest.raises(TimeoutError):
        scheduler.play(event, Gauntlet("greedy", ["random"], 16), workers, bar, results, 5)
    assert [len(pairs) for pairs in results.values()] == [1, 1]
    assert clock == 15.0  # it takes ten seconds until both players are ready


@pytest.mark.parametrize("pairs", [4, 5])
def test_a_few_games_are_no_rating(pairs: int) -> None:
    draw = Pairs(points=np.full((pairs, 2), 0.5), plies=np.full((pairs, 2), 9))
    played = Played({Part("greedy", "random", tuple(range(pairs))): draw})
    plan = OnLadder(SMALL, "greedy", "greedy")
    row = rate.to_dict("me", plan, played, None)
    assert row["games"] == 2 * pairs
    ends = [row[name] for name in ("elo", "elo_low", "elo_high", "scale_low", "scale_high")]
    if pairs == 4:
        assert row["rating"] == "8 games are too few" and ends == [None] * 5
    else:
        assert row["rating"].startswith("0 Elo (95% interval -") and None not in ends
        assert (ends[3], ends[4]) == plan.scale_interval(played.results)


def test_a_rating_may_be_precise_as_the_time_is_up() -> None:
    plan = OnLadder(SMALL, "me", "mine:lowest", precision=100.0)
    for precision, ended in ((100.0, "precise"), (10.0, "time is up")):
        played = Played(simulate(plan, 333.0), "time is up")
        for pairs in played.results.values():
            object.__setattr__(pairs, "plies", np.full(pairs.points.shape, 9))
        row = rate.to_dict("me", replace(plan, precision=precision), played, None)
        assert row["ended"] == ended


# --- the ladder ---------------------------------------------------------------------------------


def test_a_ladder_is_made_from_a_tournament(tmp_path: Path, says: Says) -> None:
    """The error names an anchor that plays differently now."""
    says(f"tournament random greedy --pairs 9 --anchor random --threads 1 --out {tmp_path}")
    report = json.loads((tmp_path / "table.json").read_text())
    new_ladder, file = make_ladder("new", report, 20), tmp_path / "new.json"
    file.write_text(new_ladder.model_dump_json())
    assert (
        load_ladder(str(file)).model_dump() == new_ladder.model_dump()
        and new_ladder.changed() == []
    )
    assert [round(row["elo"], 1) for row in report["results"][::-1]] == new_ladder.ratings.tolist()
    widths = [anchor.high - anchor.low for anchor in new_ladder.anchors]
    assert 2 * Z95 * np.sqrt(np.diag(new_ladder.covariance)) == pytest.approx(widths)
    for mark in ("answers", "fingerprint"):
        greedy = new_ladder.anchors[1].model_copy(update={mark: "0" * 16})
        assert new_ladder.model_copy(update={"anchors": (greedy,)}).changed() == ["greedy"]


def test_errors_of_anchors_are_correlated() -> None:
    """As in a round robin in which the rating of the anchor at 0 is exact."""
    elos, estimated = SMALL.ratings, SMALL.ratings != 0.0
    games = np.array([anchor.games for anchor in SMALL.anchors])
    chances = 1 / (1 + 10 ** ((elos - elos[:, None]) / 400))
    links = np.minimum.outer(games, games) * chances * (1 - chances)
    np.fill_diagonal(links, 0.0)
    inverse = np.linalg.inv((np.diag(links.sum(axis=1)) - links)[np.ix_(estimated, estimated)])
    widths = np.array([anchor.high - anchor.low for anchor in SMALL.anchors])[estimated]
    scale = widths / 2 / Z95 / np.sqrt(np.diag(inverse))
    expected = np.zeros((len(elos), len(elos)))
    expected[np.ix_(estimated, estimated)] = inverse * np.outer(scale, scale)
    assert len(elos) == 3 and pytest.approx(expected, abs=1e-6) == SMALL.covariance


def test_quick_anchors_play_as_when_they_were_rated() -> None:
    assert SMALL.changed() == []


@pytest.mark.slow
def test_shipped_anchors_play_as_when_they_were_rated() -> None:
    """If an anchor plays differently, the ratings are void: make a new ladder with a new number."""
    ladder = load_ladder()
    assert DEFAULT in shipped() and ladder.name == DEFAULT and ladder.changed() == []
    assert len({position.tobytes() for position in ladder.starts.positions}) >= 500


# --- the command line ---------------------------------------------------------------------------


def test_rate_a_bot(ladder: Path, tmp_path: Path, says: Says) -> None:
    """The printed command gives the same report again, with any number of workers."""
    file = tmp_path / "out.json"
    line = f"rate me=greedy --ladder {ladder} --precision 120 --threads 2 --json {file}"
    out, text = says(line), file.read_text()
    assert f"- command: `bao {line}`\n" in out
    games = tmp_path / "games"
    says(line.replace("--threads 2", f"--threads 1 --games {games}"))
    played = parse_transcripts(games.read_text())
    assert all("me" in (game.get("south"), game.get("north")) for game in played)
    document, same_document = (json.loads(json_text) for json_text in (text, file.read_text()))
    [row], [same_row] = document["results"], same_document["results"]
    for key in ("elo", "elo_low", "elo_high", "games", "pairs_by_points", "mean_plies"):
        assert row[key] == same_row[key]
    low, high = row["elo_low"], row["elo_high"]
    assert f"# me: {row['elo']:.0f} Elo (95% interval {low:.0f} to {high:.0f})" in out
    assert low <= 376 <= high and row["ended"] == "precise"
    assert row["games"] == sum(anchor_row["games"] for anchor_row in row["against"])
    for anchor_row in row["against"]:
        chance = 1 / (1 + 10 ** ((anchor_row["opponent_elo"] - row["elo"]) / 400))
        assert anchor_row["expected"] == pytest.approx(chance)
    for text in (
        "ladder: small, anchors rated",
        "numba",
        document["made_with"]["commit"],
        "seed: 1",
    ):
        assert text in out


def test_an_unknown_player_is_refused_before_the_engine_compiles(
    monkeypatch: pytest.MonkeyPatch, fails: Fails
) -> None:
    """The check of a ladder compiles the engine, so a typing mistake comes first."""
    monkeypatch.setattr(rate, "load_ladder", lambda name: pytest.fail("the ladder is loaded"))
    assert "no such file" in fails("rate runs/none")


def test_the_options_reach_the_plan(
    ladder: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    """Seeds are made from an anchor's number, and from no name of the rated player."""
    played = list[Any]()
    monkeypatch.setattr(rate, "play_plans", lambda *arguments: played.append(arguments))
    says(f"rate me=random --ladder {ladder} --threads 1")
    says(f"rate me=random --ladder {ladder} --precision 9 --seed 5 --seconds 7 --threads 1")
    limits = []
    for _, events, _, seconds in played:
        [(event, plan)] = events.values()
        assert event.keys == {"random": (0,), "greedy": (1,), "alphabeta:1": (2,), "me": ()}
        limits.append((plan.precision, plan.seed, event.seed, seconds))
    assert limits == [(30.0, 1, 1, 100.0), (9.0, 5, 5, 7.0)]


def test_families(
    ladder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    """The checkpoints of a run, in order, become a CSV that ``bao curve`` draws.

    They may be gone when they are reported. Each has a bar with its name.
    """
    labels = list[str]()

    def play_and_remove(
        event: Event, plan: OnLadder, workers: Workers, bar: Progress, *args: Any
    ) -> None:
        labels.append(bar.desc)
        scheduler.play(event, plan, workers, bar, *args)
        Path(plan.spec).unlink(missing_ok=True)

    monkeypatch.setattr(games, "play", play_and_remove)
    network = checkpoint.load(CHECKPOINTS / "zanzibar.safetensors")
    for steps in ("90", "1000"):
        info = network.info | {"steps": int(steps)}
        checkpoint.save(tmp_path / f"step-{steps}.safetensors", replace(network, info=info))
        (tmp_path / f"w_{steps}.pt").write_text("weights")
    monkeypatch.chdir(tmp_path)
    line = f"rate step-*.safetensors greedy mine:lowest@w_*.pt --path . --ladder {ladder} "
    (tmp_path / "elo.csv").write_text(says(line + "--precision 300 --threads 1 --csv -"))
    with (tmp_path / "elo.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["steps"] for row in rows] == ["90", "1000", "", "90", "1000"]
    assert [row["player"] for row in rows][2:4] == ["greedy", "mine:lowest@w_90.pt"]
    assert all(row["ruleset"] == "zanzibar" and row["seed"] == "1" for row in rows)
    assert labels[2] == "greedy" and len(set(labels)) == len(rows)
    assert says("curve elo.csv --metrics elo --out elo.png").count("\n") >= 3


@pytest.mark.parametrize("steps", [math.nan, [1], True])
def test_steps_of_a_foreign_checkpoint_are_a_number_or_unknown(steps: Any, tmp_path: Path) -> None:
    """JSON cannot hold all that a checkpoint can say, and the report comes after the games."""
    network = checkpoint.load(CHECKPOINTS / "zanzibar.safetensors")
    file = tmp_path / "foreign.safetensors"
    checkpoint.save(file, replace(network, info={"steps": steps}))
    assert rate.steps_of(str(file)) is None


@pytest.mark.parametrize(
    ("limit", "why"),
    [("precision 2", "no openings left"), ("seconds 0.001", "time is up")],
)
def test_ends_without_the_precision(ladder: Path, says: Says, limit: str, why: str) -> None:
    """The first games count, however long they take."""
    out = says(f"rate greedy alphabeta:1 --ladder {ladder} --threads 1 --{limit}")
    assert out.count("| greedy ") == out.count("| alphabeta:1 ") == 1
    option = limit.split()[0]
    note = rf"less precise than \+-\d+ Elo \({why}\): give a larger --{option}\b"
    assert len(re.findall(note, out)) == 2
    assert "--json also writes intervals that include their errors" in " ".join(out.split())


def test_a_name_of_an_anchor_is_taken(ladder: Path, fails: Fails) -> None:
    assert "give alphabeta:3 another name" in fails(f"rate random=alphabeta:3 --ladder {ladder}")


@pytest.mark.parametrize(
    ("player", "cause"),
    [("broken", "TypeError: my mistake"), ("exits", "RuntimeError: act() raised SystemExit: 0")],
)
def test_player_that_fails(
    player: str, cause: str, ladder: Path, tmp_path: Path, fails: Fails
) -> None:
    """Not the one who was named first, and met it."""
    error = fails(f"rate mine:{player} --ladder {ladder} --path {tmp_path} --threads 1")
    assert f"mine:{player} against " in error
    assert f": player mine:{player} failed: {cause}" in error
    error = fails(f"match random mine:{player} --pairs 1 --path {tmp_path}")
    assert f"random against mine:{player}: player mine:{player} failed: {cause}" in error


def test_a_fault_in_each_position_stops_no_match(tmp_path: Path, ladder: Path, says: Says) -> None:
    """Nor does the one in the move that compiles, before the first game."""
    says(f"match mine:late random --pairs 2 --path {tmp_path} --json {tmp_path / 'json'}")
    [row] = json.loads((tmp_path / "json").read_text())["results"]
    assert row["lost"] == 4 and row["faults"] == ["gave up"] * 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reports_what_there_is(
    number: signal.Signals,
    ladder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capsys,
) -> None:
    play, parts = Event.play, iter(range(3))

    def stopped(*arguments: Any) -> Pairs:
        if next(parts) == 2:
            signal.raise_signal(number)
        return play(*arguments)

    monkeypatch.setattr(Event, "play", stopped)
    line = f"rate greedy --ladder {ladder} --threads 1 --out {tmp_path / 'out'}"
    assert bao(line.split()) == 130
    printed = capsys.readouterr()
    assert "ended: stopped" in printed.out
    assert f"run the same command to continue from {tmp_path / 'out'}" in printed.err
