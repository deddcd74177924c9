"""Tournaments: pairing, determinism, resuming, what is kept and what is refused."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from agents.arena import executors, round_robin
from agents.arena.elo import score_pairs
from agents.arena.match import play_match
from agents.arena.ratings import rate
from agents.arena.report import Standing, markdown
from agents.arena.round_robin import UNIT_PAIRS, Settings, TournamentError, units
from agents.registry import load
from bao_env.engine.ruleset import RULESETS
from bao_env.notation.transcript import parse_transcripts, replay
from training import tournament


def settings(*players: str, **changes: object) -> Settings:
    options = {"pairs": 60, "ruleset": RULESETS["zanzibar"]} | changes
    return Settings(players={name: name for name in players}, **options)


def run(settings: Settings, folder: Path, processes: int = 1, games: bool = False) -> Standing:
    return round_robin.run(settings, folder, processes, games)


def test_units_cover_every_pairing_once() -> None:
    asked = settings("a", "b", "c", pairs=120, pairs_of={"c": 30})
    found = list(units(asked))
    assert len({unit.key for unit in found}) == len(found)
    pairs = {}
    for unit in found:
        pairs[unit.first, unit.second] = pairs.get((unit.first, unit.second), 0) + unit.pairs
        assert unit.pairs <= UNIT_PAIRS
    assert pairs == {("a", "b"): 120, ("a", "c"): 30, ("b", "c"): 30}


@pytest.mark.slow
def test_same_whatever_the_processes(tmp_path: Path) -> None:
    """One process or two, one run or a run that was stopped: the same games."""
    asked = settings("random", "greedy", "alphabeta:2")
    one = run(asked, tmp_path / "one")
    two = run(asked, tmp_path / "two", processes=2, games=True)
    for names, points in one.results.items():
        np.testing.assert_array_equal(points, two.results[names])
        assert points.shape == (60, 2)

    # Stopped after three units, in the middle of writing a fourth.
    path = tmp_path / "one" / "results.jsonl"
    lines = path.read_text().splitlines()
    assert len(lines) == 6
    path.write_text("\n".join(lines[:3]) + "\n" + lines[3][:40])
    resumed = run(asked, tmp_path / "one")
    for names, points in one.results.items():
        np.testing.assert_array_equal(points, resumed.results[names])
    kept = [
        line for line in path.read_text().splitlines() if line.startswith("{") and line[-1] == "}"
    ]
    assert kept[:3] == lines[:3] and len(kept) == 6  # what was there is not played again

    # Every game is kept, says who played, and ends as it was counted.
    file = tmp_path / "two" / "games" / "random--greedy" / "0001.txt"
    games = parse_transcripts(file.read_text())
    assert len(games) == 2 * (60 - UNIT_PAIRS)
    points = two.results["random", "greedy"][UNIT_PAIRS:].reshape(-1)
    for i, game in enumerate(games):
        outcome = replay(game).outcome
        assert outcome is not None
        assert game.get("south") == ("random", "greedy")[i % 2]
        assert points[i] == (outcome.winner == i % 2)


def test_same_on_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    asked = settings("random", "greedy", "alphabeta:2")
    here = run(asked, tmp_path / "here")
    there = round_robin.run(asked, tmp_path / "there", 1, False, ray_address="local")
    assert set(here.results) == set(there.results)
    for names, points in here.results.items():
        np.testing.assert_array_equal(points, there.results[names])


def test_a_cluster_imports_from_the_checkout() -> None:
    assert (executors.ROOT / "agents" / "arena" / "executors.py").samefile(executors.__file__)


def test_no_cluster_at_the_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ray")
    words = ["random", "greedy", "--pairs", "5", "--ray", "127.0.0.1:1", "--out", str(tmp_path)]
    assert tournament.main(words) == 2
    assert "no Ray cluster at 127.0.0.1:1" in capsys.readouterr().err


def test_without_ray(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    words = ["random", "greedy", "--pairs", "5", "--ray", "--out", str(tmp_path / "new")]
    assert tournament.main(words) == 2
    assert "Ray is not installed: pip install ray" in capsys.readouterr().err


@pytest.mark.slow
def test_players_and_pairs_may_be_added(tmp_path: Path) -> None:
    small = run(settings("greedy", "alphabeta:2", pairs=50), tmp_path)
    large = run(settings("greedy", "alphabeta:2", "random", pairs=60), tmp_path)
    np.testing.assert_array_equal(
        small.results["greedy", "alphabeta:2"], large.results["greedy", "alphabeta:2"][:50]
    )
    assert set(large.results) == {
        ("greedy", "alphabeta:2"),
        ("greedy", "random"),
        ("alphabeta:2", "random"),
    }
    # Whoever is left out is not forgotten: their results are still there.
    again = run(settings("greedy", "alphabeta:2", pairs=60), tmp_path)
    impostor = {"greedy": "greedy", "random": "mcts:2"}
    with pytest.raises(TournamentError, match="player random differ"):
        run(Settings(players=impostor, ruleset=RULESETS["zanzibar"], pairs=60), tmp_path)
    assert set(again.results) == {("greedy", "alphabeta:2")}


def test_both_seats_and_openings_are_the_arenas(tmp_path: Path) -> None:
    """Between players that draw nothing, a tournament is a match in the arena."""
    standing = run(settings("greedy", "alphabeta:3", pairs=50, seed=7), tmp_path)
    match = play_match(load("greedy"), load("alphabeta:3"), pairs=50, seed=7)
    np.testing.assert_array_equal(standing.results["greedy", "alphabeta:3"], match.points)


@pytest.mark.slow
def test_other_tournaments_are_refused(tmp_path: Path) -> None:
    asked = settings("greedy", "random", pairs=5)
    run(asked, tmp_path)
    for changes, message in (
        ({"seed": 2}, "seed differ"),
        ({"opening_plies": 10}, "opening_plies differ"),
        ({"ruleset": RULESETS["kibao"]}, "ruleset differ"),
    ):
        with pytest.raises(TournamentError, match=message):
            run(settings("greedy", "random", pairs=5, **changes), tmp_path)
    other = Settings(
        players={"greedy": "mcts:2", "random": "random"}, ruleset=asked.ruleset, pairs=5
    )
    with pytest.raises(TournamentError, match="player greedy differ"):
        run(other, tmp_path)
    path = tmp_path / "results.jsonl"
    whole = path.read_text()
    path.write_text(whole.replace('"points"', '"pints"'))
    with pytest.raises(TournamentError, match="line 1: not a result"):
        run(asked, tmp_path)
    path.write_text(whole)
    (tmp_path / "tournament.json").write_text("[]")
    with pytest.raises(TournamentError, match="does not describe a tournament"):
        run(asked, tmp_path)
    (tmp_path / "tournament.json").unlink()
    with pytest.raises(TournamentError, match=r"without their tournament\.json"):
        run(asked, tmp_path)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "ladder"
    arguments = ["random", "mean=greedy", "--pairs", "20", "--out", str(folder)]
    assert tournament.main([*arguments, "--anchor", "random", "--processes", "1"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"\| mean +\| +\+", out) and "Elo 0 is random" in out
    assert out.strip() == (folder / "table.md").read_text().strip()
    report = json.loads((folder / "table.json").read_text())
    assert [p["player"] for p in report["players"]] == ["mean", "random"]
    assert report["players"][1]["elo"] == 0 and report["pairings"][0]["games"] == 40
    assert (folder / "elo.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "words, message",
    [
        (["random"], "needs two players"),
        (["random", "random"], "two players are called 'random'"),
        (["random", "="], "expected PLAYER or NAME=PLAYER"),
        (["random", "gredy"], "unknown player 'gredy'"),
        (["random", "greedy", "--anchor", "me"], "--anchor me: no player"),
        (["random", "greedy", "--pairs-of", "me=3"], "no player is called 'me'"),
        (["random", "greedy", "--pairs-of", "greedy=x"], "expected NAME=N"),
        (
            ["random", "greedy", "--opening-plies", "1"],
            "fewer than 500 different",
        ),
    ],
)
def test_mistakes_on_the_command_line(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tournament.main([*words, "--out", str(tmp_path / "new")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()  # nothing was begun


def cells(line: str) -> list[str]:
    """The cells of a line of a Markdown table."""
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_tables() -> None:
    standing = Standing(
        results={
            ("a", "b"): np.array([[1, 1], [1, 0.5]]),
            ("c", "a"): np.array([[0, 0], [1, 0]]),
        },
        milliseconds={"a": 0.1234, "b": 12.34, "c": 1.0},
        mean_plies=40.0,
    )
    described = settings("a", "b", "c").to_dict()
    text = markdown(standing, rate(standing.results, anchor="b"), described)
    assert "8 games in pairs" in text
    table, cross = ([cells(line) for line in part.splitlines()] for part in text.split("percent:"))
    row = next(row for row in table if row[0] == "a")
    assert row[1].startswith("+") and row[3:] == ["81.2%", "8", "0.123"]
    assert ["b", "+0", "", "12.5%", "4", "12.3"] in table
    assert any(row[0] == "c" and sorted(row[1:]) == ["", "", "25.0"] for row in cross)
    assert score_pairs(standing.results["a", "b"]).rate == 0.875
