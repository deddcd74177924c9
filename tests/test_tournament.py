"""Tournaments: pairing, determinism, resuming, what is kept and what is refused."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bao_env
from agents.arena import executors, round_robin
from agents.arena.elo import score_pairs
from agents.arena.match import play_match
from agents.arena.openings import draw_openings
from agents.arena.ratings import rate
from agents.arena.report import Standing, markdown
from agents.arena.round_robin import UNIT_PAIRS, TournamentError, TournamentSettings, units
from agents.provenance import provenance
from agents.registry import load
from bao_env.engine.ruleset import RULES_VERSION, RULESETS
from bao_env.notation.transcript import parse_transcripts, replay
from tests.make_golden import pinned
from training import evaluate, tournament


def settings(*players: str, **changes: object) -> TournamentSettings:
    options = {"pairs": 60, "ruleset": RULESETS["zanzibar"]} | changes
    return TournamentSettings(players={name: name for name in players}, **options)


def run(
    settings: TournamentSettings, folder: Path, processes: int = 1, games: bool = False
) -> Standing:
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
        run(TournamentSettings(players=impostor, ruleset=RULESETS["zanzibar"], pairs=60), tmp_path)
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
    other = TournamentSettings(
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
            ["random", "greedy", "--opening-plies", "1", "--pairs", "50"],
            "fewer than 50 different",
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
    described = TournamentSettings(
        players={"a": "random", "b": "greedy", "c": "mcts:2"}, ruleset=RULESETS["zanzibar"], pairs=2
    ).description
    text = markdown(standing, rate(standing.results, anchor="b"), described)
    assert "8 games in pairs" in text
    table, cross = ([cells(line) for line in part.splitlines()] for part in text.split("percent:"))
    row = next(row for row in table if row[0] == "a")
    assert row[1].startswith("+") and row[3:] == ["81.2%", "8", "0.123"]
    assert ["b", "+0", "", "12.5%", "4", "12.3"] in table
    assert any(row[0] == "c" and sorted(row[1:]) == ["", "", "25.0"] for row in cross)
    assert score_pairs(standing.results["a", "b"]).rate == 0.875


@pytest.mark.slow
def test_results_say_what_made_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["random", "greedy", "--pairs", "5", "--processes", "1", "--out", str(tmp_path)]
    assert tournament.main(words) == 0
    report = json.loads((tmp_path / "table.json").read_text())
    kept = json.loads((tmp_path / "tournament.json").read_text())
    made_with = report["settings"]["made_with"]
    assert made_with == kept["made_with"] == provenance(RULESETS["zanzibar"])
    assert made_with["rules_version"] == RULES_VERSION
    assert made_with["engine_signature"] == pinned("zanzibar")["signature"]
    assert made_with["packages"]["bao_env"] == bao_env.__version__
    assert made_with["packages"]["numpy"] == np.__version__
    assert report["commits"] == [made_with["commit"]]

    assert evaluate.main(["greedy", "--pairs", "2", "--json", str(tmp_path / "e.json")]) == 0
    assert json.loads((tmp_path / "e.json").read_text())["made_with"] == made_with

    # Other code: noted if only the commit differs, refused if the rules do.
    kept["made_with"]["commit"] = "older"
    (tmp_path / "tournament.json").write_text(json.dumps(kept))
    capsys.readouterr()
    assert tournament.main(words) == 0
    assert "the last results are of commit older" in capsys.readouterr().err
    for key in ("engine_signature", "rules_version"):
        other = kept | {"made_with": kept["made_with"] | {key: 0}}
        (tmp_path / "tournament.json").write_text(json.dumps(other))
        assert tournament.main(words) == 2
        assert f"({key} differ)" in capsys.readouterr().err
    (tmp_path / "tournament.json").write_text(json.dumps(kept | {"format": 1}))
    assert tournament.main(words) == 2
    assert "has format 1" in capsys.readouterr().err


OWN = """
from bao_env.bots import GreedyAgent, RandomAgent

def make(ruleset, seed):
    agent = {kind}
    {attribute}
    return agent
"""


@pytest.mark.slow
def test_a_player_of_somebodys_own_that_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a fingerprint its games are played again, with one a change is refused."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)  # for the workers
    monkeypatch.syspath_prepend(tmp_path)

    def play(kind: str, attribute: str = "") -> int:
        source = tmp_path / "someones_player.py"
        source.write_text(OWN.format(kind=kind, attribute=attribute))
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        sys.modules.pop("someones_player", None)
        words = ["me=someones_player:make", "random", "greedy", "--pairs", "20"]
        return tournament.main([*words, "--processes", "1", "--out", str(tmp_path / "out")])

    def score() -> tuple[float, list[str]]:
        """Of it against random, and the lines in which it does not take part."""
        report = json.loads((tmp_path / "out" / "table.json").read_text())
        lines = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
        assert len(lines) == 3
        return report["pairings"][0]["score"], [line for line in lines if '"me"' not in line]

    assert play("GreedyAgent(ruleset)") == 0
    strong, others = score()
    capsys.readouterr()
    assert play("RandomAgent(seed)") == 0
    assert "games of me are played again" in capsys.readouterr().err
    assert score()[0] < strong - 0.2
    assert score()[1] == others  # these were not played again

    assert play("RandomAgent(seed)", "agent.fingerprint = 'first'") == 0
    assert "games of me are played again" in capsys.readouterr().err
    assert play("RandomAgent(seed)", "agent.fingerprint = 'first'") == 0
    assert "again" not in capsys.readouterr().err
    for changed in ("agent.fingerprint = 'second'", "agent.fingerprint = 'first'  # and more"):
        assert play("GreedyAgent(ruleset)", changed) == 2
        assert "(player me differ)" in capsys.readouterr().err
    assert play("RandomAgent(seed)", "agent.fingerprint = 3") == 2
    assert "fingerprint of someones_player:make is a int: expected a text" in (
        capsys.readouterr().err
    )


def test_a_checkpoint_that_changes_meanwhile(tmp_path: Path) -> None:
    asked = settings("greedy", "random", pairs=5)
    openings = draw_openings(asked.ruleset, 5, 8, 1)
    [unit] = units(asked)
    now = asked.description["known"]
    assert round_robin.play_unit(asked, unit, openings, False, now)["first"] == "greedy"
    before = now | {"random": ["random", "0123456789abcdef"]}
    with pytest.raises(TournamentError, match=r"player random .* changed while"):
        round_robin.play_unit(asked, unit, openings, False, before)


@pytest.mark.parametrize(
    "change",
    [
        lambda line: b"\xff\xfe" + line,
        lambda line: b"[" * 100_000,
        lambda line: line.replace(b'"plies": [[', b'"plies": [[' + b"9" * 40 + b", "),
        lambda line: re.sub(rb'"moves": \[\d+', b'"moves": [1' + b"0" * 5000, line),
        lambda line: re.sub(rb'"moves": \[\d+', b'"moves": [1e999', line),
        lambda line: re.sub(rb'"moves": \[', b'"moves": [-', line),
        lambda line: re.sub(rb'"points": \[\[[\d.]+', b'"points": [[NaN', line),
        lambda line: re.sub(rb'"seconds": \[', b'"seconds": [-', line),
        lambda line: re.sub(rb'"seconds": \[[\d.]+', b'"seconds": [Infinity', line),
        lambda line: line.replace(b'"unit": 0', b'"unit": []'),
        lambda line: line.replace(b'"first": "random"', b'"first": {}'),
        lambda line: b"7",
    ],
)
def test_damaged_results(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    line = {
        "first": "random",
        "second": "greedy",
        "unit": 0,
        "points": [[1.0, 0.0]],
        "plies": [[30, 40]],
        "moves": [30, 40],
        "seconds": [0.25, 0.5],
        "commit": "unknown",
    }
    path = tmp_path / "results.jsonl"
    whole = json.dumps(line).encode()
    path.write_bytes(whole + b"\n" + whole[:40])
    assert round_robin.read_results(path) == [line]
    path.write_bytes(whole + b"\n" + change(whole) + b"\n")
    with pytest.raises(TournamentError, match="line 2: not a result"):
        round_robin.read_results(path)


@pytest.mark.parametrize(
    "text", [b"\xff\xfe", b"[" * 100_000, b'{"format": 2, "known": [1]}', b"1"]
)
def test_a_damaged_description(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "tournament.json").write_bytes(text)
    with pytest.raises(TournamentError, match="does not describe a tournament") as caught:
        round_robin.prepare(tmp_path, settings("greedy", "random", pairs=5))
    assert len(str(caught.value)) < 500


@pytest.mark.slow
def test_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    words = ["random", "greedy", "--pairs", "5", "--processes", "1", "--out", str(tmp_path / "t")]
    with monkeypatch.context() as patch:
        real = round_robin.prepare

        def prepare(*arguments):
            found = real(*arguments)
            patch.setattr(os, "fsync", full)
            return found

        patch.setattr(round_robin, "prepare", prepare)
        assert tournament.main(words) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert tournament.main(words) == 0
    (tmp_path / "t" / "table.json").unlink()
    (tmp_path / "t" / "table.json").mkdir()  # cannot be replaced by a file
    assert tournament.main(words) == 2
    assert "error: " in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert tournament.main([*words[:-1], str(tmp_path / "file")]) == 2
    assert "error: " in capsys.readouterr().err


def children(process: int) -> list[int]:
    """The processes that it started and that still run."""
    found = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True)
    return [int(word) for word in found.stdout.split()]


def running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # One that has ended stays in the table until its new parent asks for it.
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True
    )
    return bool(state.stdout.strip()) and not state.stdout.startswith("Z")


def wait_until(what: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@pytest.mark.slow
def test_one_tournament_in_a_folder(tmp_path: Path) -> None:
    """The second is told; when the first is killed, its workers end, and the second may begin."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "training.tournament", "--out", str(out), "--processes", "2"]
    environment = os.environ | {"PYTHONPATH": str(executors.ROOT)}
    slow = [*command, "a=mcts:100000", "b=mcts:100001", "--pairs", "100"]
    quick = [*command, "random", "greedy", "--pairs", "5"]
    with subprocess.Popen(slow, env=environment, stderr=subprocess.DEVNULL) as first:
        try:
            wait_until(lambda: (out / "tournament.json").exists(), 120)
            wait_until(lambda: len(children(first.pid)) >= 3, 60)  # one is multiprocessing's own
            time.sleep(3.0)  # so that they play
            second = subprocess.run(quick, env=environment, capture_output=True, text=True)
            assert second.returncode == 2
            assert f"is in use by process {first.pid} on" in second.stderr
            assert second.stderr.count("\n") == 1
            workers = children(first.pid)
        finally:
            first.send_signal(signal.SIGKILL)
    wait_until(lambda: not any(map(running, workers)), 10)
    third = subprocess.run(quick, env=environment, capture_output=True, text=True)
    assert third.returncode == 0, third.stderr
