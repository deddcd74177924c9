"""Tournaments: pairing, determinism, resuming, reports, invalid folders and arguments."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bao_agents.arena import round_robin, scheduler
from bao_agents.arena.match import play_match
from bao_agents.arena.openings import draw_openings
from bao_agents.arena.report import Standing, markdown, to_dict
from bao_agents.arena.round_robin import (
    PART_PAIRS,
    Part,
    TournamentError,
    TournamentSettings,
    prepare,
)
from bao_agents.provenance import provenance
from bao_agents.registry import load
from bao_training.cli import main as bao

from bao_env.engine.ruleset import RULESETS
from bao_env.notation.transcript import parse_transcripts, replay
from tests.conftest import Capsys, Fails
from tests.make_golden import pinned


def settings(*players: str, **changes: Any) -> TournamentSettings:
    """Return the settings of a small tournament of zanzibar."""
    named = {name: name for name in players}
    defaults: Any = {"players": named, "pairs": 60, "ruleset": RULESETS["zanzibar"]}
    return TournamentSettings(**defaults | changes)


FIVE_PAIRS = settings("greedy", "random", pairs=5)
COMMAND = ["tournament", "random", "greedy", "--pairs", "5", "--threads", "1", "--out"]


def run(
    settings: TournamentSettings, folder: Path, processes: int = 1, games: bool = False, **ray: str
) -> Standing:
    return round_robin.run(settings, folder, processes, games, **ray)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_robin, "LocalPool", ThreadPoolExecutor)


def test_parts() -> None:
    """They cover each pairing once, in parts."""
    asked = settings("random", "greedy", "mcts:2", pairs=120, pairs_of={"mcts:2": 30})
    openings = draw_openings("zanzibar", 120, 8, seed=1, balance=None)
    units = dict(asked.units(openings))
    assert PART_PAIRS == 50 and list(units) == [
        Part("random", "greedy", 0, 50),
        Part("random", "greedy", 1, 50),
        Part("random", "greedy", 2, 20),
        Part("random", "mcts:2", 0, 30),
        Part("greedy", "mcts:2", 0, 30),
    ]
    last = units[Part("random", "greedy", 2, 20)]
    np.testing.assert_array_equal(last.openings.positions, openings[100:].positions)


@pytest.mark.slow
def test_resumed_tournament_is_the_same_on_any_processes(tmp_path: Path) -> None:
    asked = settings("random", "greedy", "alphabeta:2")
    one = run(asked, tmp_path / "one")
    two = run(asked, tmp_path / "two", processes=2, games=True)

    # Stopped after three units, in the middle of writing a fourth.
    path = tmp_path / "one" / "results.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:3]) + "\n" + lines[3][:40])
    resumed = run(asked, tmp_path / "one")
    kept = [line for line in path.read_text().splitlines() if line.endswith("}")]
    assert len(kept) == len(lines) == 6 and kept[:3] == lines[:3]  # not played again
    assert {points.shape for points in one.results.values()} == {(60, 2)}
    for other in (two, resumed):
        np.testing.assert_equal(other.results, one.results)

    # Each game is kept with its players, and ends as it was counted.
    file = tmp_path / "two" / "games" / "random--greedy" / "0001.txt"
    games = parse_transcripts(file.read_text())
    assert len(games) == 2 * (60 - PART_PAIRS)
    points = two.results["random", "greedy"][PART_PAIRS:].reshape(-1)
    for i, game in enumerate(games):
        outcome = replay(game).outcome
        assert outcome is not None and points[i] == (outcome.winner == i % 2)
        assert game.get("south") == ("random", "greedy")[i % 2]


def test_same_on_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    asked = settings("random", "greedy")
    here = run(asked, tmp_path / "here")
    there = run(asked, tmp_path / "there", ray_address="local")
    np.testing.assert_equal(here.results, there.results)


def test_no_cluster_at_the_address(tmp_path: Path, fails: Fails) -> None:
    pytest.importorskip("ray")
    error = fails(*COMMAND, str(tmp_path), "--ray", "127.0.0.1:1")
    assert "no Ray cluster at 127.0.0.1:1" in error


def test_without_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Fails) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    error = fails(*COMMAND, str(tmp_path), "--ray")
    assert "Ray is not installed: pip install ray" in error


@pytest.mark.usefixtures("threads")
def test_resume_with_other_players_and_more_pairs(tmp_path: Path) -> None:
    pair = "greedy", "alphabeta:2"
    small = run(settings(*pair, pairs=50), tmp_path)
    large = run(settings(*pair, "random"), tmp_path)
    np.testing.assert_array_equal(small.results[pair], large.results[pair][:50])
    assert len(large.results) == 3
    assert set(run(settings(*pair), tmp_path).results) == {pair}
    # A player that is left out is still known.
    impostor = settings(players={"greedy": "greedy", "random": "mcts:2"})
    with pytest.raises(TournamentError, match="player random differ"):
        run(impostor, tmp_path)


@pytest.mark.usefixtures("threads")
def test_tournament_of_two_is_a_match(tmp_path: Path) -> None:
    """Between players without random choices."""
    standing = run(settings("greedy", "alphabeta:3", pairs=50, seed=7), tmp_path)
    match = play_match(load("greedy"), load("alphabeta:3"), pairs=50, seed=7)
    np.testing.assert_array_equal(standing.results["greedy", "alphabeta:3"], match.points)


def other_code(kept: Any, key: str) -> Any:
    """Return the description of a tournament that was made with other code."""
    return kept | {"made_with": kept["made_with"] | {key: 0}}


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda _: b"\xff\xfe", "does not describe a tournament"),
        (lambda _: b"[" * 100_000, "does not describe a tournament"),
        (lambda _: b"1", "does not describe a tournament"),
        (lambda kept: kept | {"known": [1]}, "does not describe a tournament"),
        (
            lambda kept: kept | {"format": 1},
            r"tournament .*\(format: .* be 2\)",
        ),
        (lambda kept: other_code(kept, "engine_signature"), r"\(engine_signature differ\)"),
        (lambda kept: other_code(kept, "rules_version"), r"\(rules_version differ\)"),
        (lambda kept: kept | {"seed": 2}, r"\(seed differ\)"),
        (lambda kept: kept | {"opening_plies": 10}, r"\(opening_plies differ\)"),
        (lambda kept: kept | {"ruleset": RULESETS["kibao"].to_dict()}, r"\(ruleset differ\)"),
        (
            lambda kept: kept | {"known": {"greedy": ["mcts:2", ""]}},
            r"another tournament \(player greedy differ\)",
        ),
        (lambda _: None, r"without their tournament\.json"),
    ],
)
def test_other_description_raises(tmp_path: Path, change: Any, message: str) -> None:
    prepare(tmp_path, FIVE_PAIRS)
    (tmp_path / "results.jsonl").touch()
    path = tmp_path / "tournament.json"
    changed = change(json.loads(path.read_text()))
    path.unlink()
    if changed is not None:
        path.write_bytes(changed if isinstance(changed, bytes) else json.dumps(changed).encode())
    with pytest.raises(TournamentError, match=message) as caught:
        prepare(tmp_path, FIVE_PAIRS)
    assert len(str(caught.value)) < 500


LINE = json.dumps(
    {
        "first": "random",
        "second": "greedy",
        "unit": 0,
        "points": [[1.0, 0.0]],
        "plies": [[30, 40]],
        "moves": [30, 40],
        "seconds": [0.25, 0.5],
        "commit": "unknown",
    }
).encode()
"""A result."""


@pytest.mark.parametrize(
    "old, new",
    [
        (LINE, b"\xff\xfe" + LINE),
        (LINE, b"[" * 100_000),
        (LINE, b"7"),
        (b"points", b"pints"),
        (b"[[30, ", b"[[" + b"9" * 40 + b", "),
        (b": [30, ", b": [1" + b"0" * 5000 + b", "),
        (b": [30, ", b": [1e999, "),
        (b": [30, ", b": [-30, "),
        (b"[[1.0, ", b"[[NaN, "),
        (b"[0.25, ", b"[Infinity, "),
        (b'"unit": 0', b'"unit": []'),
        (b'"first": "random"', b'"first": {}'),
    ],
)
def test_invalid_results_raise(tmp_path: Path, old: bytes, new: bytes) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(LINE + b"\n" + LINE[:40])  # what a crash has cut short is ignored
    [(part, result)] = round_robin.read_results(path).items()
    assert part == ("random", "greedy", 0, 1)
    assert result.model_dump() == json.loads(LINE)
    path.write_bytes(LINE + b"\n" + LINE.replace(old, new) + b"\n")
    with pytest.raises(TournamentError, match="line 2: not a result"):
        round_robin.read_results(path)


@pytest.mark.usefixtures("threads")
def test_command_line(tmp_path: Path, capsys: Capsys) -> None:
    words = ["tournament", "random", "mean=greedy", "--pairs", "20", "--anchor", "random"]
    words += ["--threads", "1", "--out", str(tmp_path)]
    assert bao(words) == 0
    out = capsys.readouterr().out
    assert re.search(r"\| mean +\| +\+", out) and "Elo 0 is random" in out
    assert out.strip() == (tmp_path / "table.md").read_text().strip()
    report = json.loads((tmp_path / "table.json").read_text())
    assert [p["player"] for p in report["players"]] == ["mean", "random"]
    assert report["players"][1]["elo"] == 0 and report["pairings"][0]["games"] == 40
    assert (tmp_path / "elo.png").read_bytes().startswith(b"\x89PNG")

    kept = json.loads((tmp_path / "tournament.json").read_text())
    made_with = report["settings"]["made_with"]
    assert made_with == kept["made_with"] == provenance(RULESETS["zanzibar"])
    assert made_with["engine_signature"] == pinned("zanzibar")["signature"]
    assert report["commits"] == [made_with["commit"]]

    kept["made_with"]["commit"] = "older"
    (tmp_path / "tournament.json").write_text(json.dumps(kept))
    assert bao(words) == 0
    assert "the last results are of commit older" in capsys.readouterr().err


def test_tables() -> None:
    standing = Standing(
        results={
            ("a", "b"): np.array([[1, 1], [1, 0.5]]),
            ("c", "a"): np.array([[0, 0], [1, 0]]),
        },
        milliseconds={"a": 0.1234, "b": 12.34, "c": 1.0},
        mean_plies=40.0,
    )
    players = {"a": "random", "b": "greedy", "c": "mcts:2"}
    described = replace(FIVE_PAIRS, players=players, pairs=2).description
    text = " ".join(markdown(to_dict(standing, described, anchor="b")).split())
    assert "8 games in pairs" in text
    assert re.search(r"\| a \| \+\d+ \| [^|]+ \| 81\.2% \| 8 \| 0\.123 \|", text)
    assert "| b | +0 | | 12.5% | 4 | 12.3 |" in text and "| 2 c | 25.0 | | |" in text


OWN = """
from bao_env.bots import GreedyAgent

def make(ruleset, seed):
    agent = GreedyAgent(ruleset)
    {attribute}
    return agent
"""


def test_resume_with_an_own_player(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """Without a fingerprint its games are played again; with one, a change raises."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    mine = LINE.replace(b"greedy", b"me")

    def resume(attribute: str) -> int:
        """Return how many of two results are kept."""
        (tmp_path / "own_player.py").write_text(OWN.format(attribute=attribute))
        sys.modules.pop("own_player", None)
        (tmp_path / "results.jsonl").write_bytes(mine + b"\n" + LINE + b"\n")
        asked = replace(FIVE_PAIRS, players={"me": "own_player:make", "random": "random"})
        return len(prepare(tmp_path, asked))

    prepare(tmp_path, FIVE_PAIRS)
    assert resume("") == 2
    assert resume("") == 1
    assert "games of me are played again" in capsys.readouterr().err
    assert resume("agent.fingerprint = 'first'") == 1
    assert resume("agent.fingerprint = 'first'") == 2
    for changed in ("agent.fingerprint = 'second'", "agent.fingerprint = 'first'  # and more"):
        with pytest.raises(TournamentError, match=r"\(player me differ\)"):
            resume(changed)
    with pytest.raises(ValueError, match="fingerprint of own_player:make is a int: expected a"):
        resume("agent.fingerprint = 3")


def test_player_that_changes_meanwhile_raises() -> None:
    [(_, unit)] = FIVE_PAIRS.units(draw_openings("zanzibar", 5, 8, 1))
    assert len(scheduler.play_unit(unit).points) == 5
    with pytest.raises(ValueError, match="player random changed meanwhile"):
        scheduler.play_unit(replace(unit, known={"random": "0123456789abcdef"}))


@pytest.mark.usefixtures("threads")
def test_files_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Fails
) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    prepare(tmp_path, FIVE_PAIRS)
    with monkeypatch.context() as patch:
        patch.setattr(round_robin, "prepare", lambda *_: {})
        patch.setattr(os, "fsync", fail)
        assert "No space left on device" in fails(*COMMAND, str(tmp_path))
    (tmp_path / "table.json").mkdir()  # no file can replace it
    assert "error: " in fails(*COMMAND, str(tmp_path))


@pytest.mark.slow
def test_folder_in_use(tmp_path: Path, fails: Fails) -> None:
    """When the first tournament is killed, its workers end, and a second one may begin."""
    out = tmp_path / "out"
    program = [sys.executable, "-m", "bao_training"]
    command = [*program, "tournament", "--out", str(out), "--threads", "2"]
    with subprocess.Popen(
        [*command, "a=mcts:200", "b=mcts:201", "--pairs", "1000"],
        stderr=subprocess.PIPE,
    ) as first:
        try:
            while not (out / "results.jsonl").exists():
                assert first.poll() is None
                time.sleep(0.05)
            error = fails(*COMMAND, str(out))
            assert f"is in use by process {first.pid} on" in error and error.count("\n") == 1
        finally:
            first.kill()
        first.communicate(timeout=20)  # until the workers have closed stderr, too
    assert bao([*COMMAND, str(out)]) == 0


@pytest.mark.slow
def test_a_worker_that_is_killed_is_one_line(tmp_path: Path, fails: Fails) -> None:
    own = "import os\n\nclass Killed:\n    def act(self, positions, masks):\n        os._exit(9)\n"
    (tmp_path / "killing.py").write_text(own + "\ndef make(ruleset, seed):\n    return Killed()\n")
    words = ["tournament", "greedy", "killing:make", "--path", str(tmp_path), "--pairs", "2"]
    error = fails(*words, "--out", str(tmp_path / "out"), status=1)
    assert error.splitlines()[-1].startswith("error: a worker process has ended")
