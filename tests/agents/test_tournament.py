"""Test tournaments: pairing, determinism, resuming, reports, invalid folders and arguments."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import types
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bao_agents.arena import tournament
from bao_agents.arena.match import play_match
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.report import markdown, markdown_table, to_dict
from bao_agents.arena.tournament import TournamentSettings, kept
from bao_agents.players.registry import load
from bao_agents.support.provenance import provenance
from bao_agents.support.resumable import keep_part
from bao_env.engine.ruleset import RULESETS
from bao_env.notation.transcript import parse_transcripts
from tests.conftest import Capsys, Fails, Says
from tests.processes import start
from tests.record import recorded_numbers


def settings(*players: str, **changes: Any) -> TournamentSettings:
    """Return the settings of a small tournament of zanzibar."""
    named = {name: name for name in players}
    defaults: Any = {"players": named, "pairs": 60, "ruleset": RULESETS["zanzibar"]}
    return TournamentSettings(**defaults | changes)


FIVE_PAIRS = settings("greedy", "random", pairs=5)
COMMAND = "tournament random greedy --pairs 5 --threads 1 --out "


def run(
    settings: TournamentSettings, folder: Path, processes: int = 1, games: bool = False, **ray: str
) -> dict[tuple[str, str], Pairs]:
    return tournament.run(settings, folder, processes, games, **ray)


def assert_same(one: dict[tuple[str, str], Pairs], other: dict[tuple[str, str], Pairs]) -> None:
    """Check that two tournaments have the same games."""
    assert one.keys() == other.keys()
    for names, pairs in one.items():
        np.testing.assert_array_equal(pairs.points, other[names].points)
        np.testing.assert_array_equal(pairs.plies, other[names].plies)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tournament, "LocalPool", ThreadPoolExecutor)


@pytest.mark.slow
def test_the_same_on_any_processes_with_its_games(tmp_path: Path) -> None:
    """Each game is kept with its players, and ends as it was counted."""
    asked = settings("random", "greedy", "alphabeta:2")
    one = run(asked, tmp_path / "one")
    two = run(asked, tmp_path / "two", processes=2, games=True)
    assert {pairs.points.shape for pairs in one.values()} == {(60, 2)}
    assert_same(one, two)
    file = tmp_path / "two" / "games" / "random--greedy" / "00050.txt"
    games = enumerate(parse_transcripts(file.read_text()))
    won = [game.stated_winner() == i % 2 for i, game in games]
    assert won == two["random", "greedy"].points[50:].reshape(-1).tolist()


def test_same_on_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    asked = settings("random", "greedy")
    here = run(asked, tmp_path / "here")
    there = run(asked, tmp_path / "there", ray_address="local")
    assert_same(here, there)


class FakeRay(types.ModuleType):
    """What the pool uses of Ray; it fails as it does when a process of Ray dies."""

    class exceptions:
        class RayError(Exception):
            pass

    def __init__(self, found: bool, cause: Exception | None) -> None:
        super().__init__("ray")
        self._found = found
        self._error = self.exceptions.RayError("The node died.\nAnd much more.")
        if cause:  # a RayTaskError
            self._error.cause = cause  # type: ignore[attr-defined]

    def init(self, *arguments: object, **options: object) -> None:
        if not self._found:
            raise ConnectionError("Could not find any running Ray instance.\nAnd much more.")

    def remote(self, **options: object) -> Any:
        raise self._error

    def shutdown(self) -> None:
        pass


@pytest.mark.parametrize(
    ("found", "cause", "status", "message"),
    [
        (
            False,
            None,
            2,
            "error: there is no Ray cluster at auto: Could not find any running Ray instance.",
        ),
        (True, None, 1, "error: a worker process died"),
        (True, ValueError("greedy failed"), 2, "error: greedy failed"),
    ],
)
def test_faults_of_ray_are_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fails: Fails,
    found: bool,
    cause: Exception | None,
    status: int,
    message: str,
) -> None:
    monkeypatch.setitem(sys.modules, "ray", FakeRay(found, cause))
    error = fails(f"{COMMAND}{tmp_path / 'out'} --ray auto", status=status)
    assert found or not (tmp_path / "out").exists()
    [line] = [line for line in error.splitlines() if "error" in line]
    assert line.startswith(message) and "much more" not in error


@pytest.mark.usefixtures("threads")
def test_resume_with_other_players_and_more_pairs(tmp_path: Path) -> None:
    pair = "greedy", "alphabeta:2"
    small = run(settings(*pair, pairs=25), tmp_path)
    large = run(settings(*pair, "random", pairs=35), tmp_path)
    np.testing.assert_array_equal(small[pair].points, large[pair].points[:25])
    assert len(large) == 3
    assert set(run(settings(*pair, pairs=35), tmp_path)) == {pair}


@pytest.mark.usefixtures("threads")
def test_tournament_of_two_is_a_match(tmp_path: Path) -> None:
    """It is played in three parts. The players make no random choices."""
    found = run(settings("greedy", "alphabeta:3", seed=7), tmp_path)
    match = play_match(load("greedy"), load("alphabeta:3"), pairs=60, seed=7)
    np.testing.assert_array_equal(found["greedy", "alphabeta:3"].points, match.points)


RESULT = json.dumps(
    {
        "points": [[1.0, 0.0]] * 5,
        "plies": [[30, 40]] * 5,
        "moves": [30, 40],
        "seconds": [0.25, 0.5],
        "faults": [[], ["crashed: exit status 1"]],
        "commits": ["older"],
    }
)


@pytest.mark.parametrize(
    ("change", "engine"),
    [
        ({"seed": 2}, {}),
        ({"opening_plies": 10}, {}),
        ({"balance": None}, {}),
        ({"ruleset": RULESETS["kibao"]}, {}),
        ({"pairs": 4}, {}),
        ({"players": {"greedy": "alphabeta:1", "random": "random"}}, {}),
        ({}, {"rules_version": 0}),
        ({}, {"engine_signature": ""}),
    ],
)
def test_results_of_other_settings_are_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any, engine: dict[str, Any]
) -> None:
    """Nor are those of another engine."""
    [part] = FIVE_PAIRS.parts()
    keep_part(FIVE_PAIRS.file_of(tmp_path, part), RESULT)
    assert kept(FIVE_PAIRS, tmp_path, [part])
    monkeypatch.setattr(tournament, "provenance", lambda rules: provenance(rules) | engine)
    other = replace(FIVE_PAIRS, **change)
    assert not kept(other, tmp_path, other.parts())


@pytest.mark.parametrize(
    "old, new",
    [
        (RESULT, "\xff\xfe" + RESULT),
        (RESULT, "[" * 100_000),
        ("[[1.0, 0.0], ", "["),
        ("[[30, ", "[[" + "9" * 40 + ", "),
        (": [30, ", ": [1" + "0" * 5000 + ", "),
        (": [30, ", ": [1e999, "),
        ("[[1.0, ", "[[NaN, "),
    ],
)
def test_damaged_results_are_not_taken(tmp_path: Path, old: str, new: str) -> None:
    [part] = FIVE_PAIRS.parts()
    file = FIVE_PAIRS.file_of(tmp_path, part)
    keep_part(file, RESULT)
    found = kept(FIVE_PAIRS, tmp_path, [part])[part]
    assert json.loads(found.to_json()) == json.loads(RESULT)
    keep_part(file, RESULT.replace(old, new, 1))
    assert not kept(FIVE_PAIRS, tmp_path, [part])


@pytest.mark.usefixtures("threads")
def test_command_line(tmp_path: Path, says: Says, fails: Fails) -> None:
    line = f"tournament random mean=greedy --pairs 20 --anchor random --threads 1 --out {tmp_path}"
    out = says(line)
    assert re.search(r"\| mean +\| +\+", out) and "Elo 0 is random" in out
    assert out.strip() == (tmp_path / "table.md").read_text().strip()
    report = json.loads((tmp_path / "table.json").read_text())
    assert [p["player"] for p in report["players"]] == ["mean", "random"]
    assert report["players"][1]["elo"] == 0 and report["pairings"][0]["games"] == 40
    assert (tmp_path / "elo.png").read_bytes().startswith(b"\x89PNG")

    made_with = report["settings"]["made_with"]
    assert made_with == provenance(RULESETS["zanzibar"])
    assert made_with["engine_signature"] == recorded_numbers("zanzibar")["signature"]
    assert report["commits"] == [made_with["commit"]]

    (file,) = (tmp_path / "results").rglob("*.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"commits": ["older"]}))
    assert "some results come from commit older, not" in fails(line, status=0)


def test_tables() -> None:
    results = {
        ("a", "b"): Pairs(
            points=np.array([[1, 1], [1, 0.5]]),
            plies=np.full((2, 2), 30),
            moves=np.array([1000, 1000]),
            seconds=np.array([0.1, 12.34]),
            faults=([], ["says: <b>", "late"]),
        ),
        ("c", "a"): Pairs(
            points=np.array([[0, 0], [1, 0]]),
            plies=np.full((2, 2), 50),
            moves=np.array([1000, 3000]),
            seconds=np.array([1.0, 0.3936]),
        ),
    }
    players = {"a": "random", "b": "greedy", "c": "mcts:2"}
    described = replace(FIVE_PAIRS, players=players, pairs=2).description
    text = " ".join(markdown(to_dict(results, described, anchor="b")).split())
    assert "8 games in pairs" in text and "40.0 plies a game" in text
    assert re.search(r"\| a \| \+\d+ \| [^|]+ \| 81\.2 \| 8 \| 0\.123 \|", text)
    assert "b lost 2 games by faults: says: &lt;b>" in text
    assert "| a\\|&lt;b> |" in markdown_table(["x"], [["a|<b>"]])
    assert "| b | +0 | | 12.5 | 4 | 12.3 |" in text and "| 2 c | 25.0 | | |" in text


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
    """Its games are played again without a fingerprint, and if the fingerprint changes."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def resume(attribute: str) -> int:
        """Return how many results are kept, and keep one."""
        (tmp_path / "own_player.py").write_text(OWN.format(attribute=attribute))
        sys.modules.pop("own_player", None)
        asked = replace(FIVE_PAIRS, players={"me": "own_player:make", "random": "random"})
        [part] = asked.parts()
        found = kept(asked, tmp_path, [part])
        keep_part(asked.file_of(tmp_path, part), RESULT)
        return len(found)

    assert resume("") == 0
    assert resume("") == 0
    assert "games of me are played again" in capsys.readouterr().err
    assert resume("agent.fingerprint = 'first'") == 0
    assert resume("agent.fingerprint = 'first'") == 1
    for changed in ("agent.fingerprint = 'second'", "agent.fingerprint = 'first'  # and more"):
        assert resume(changed) == 0
    with pytest.raises(ValueError, match="fingerprint of own_player:make is a int: expected a"):
        resume("agent.fingerprint = 3")


def test_player_that_changes_meanwhile_raises() -> None:
    [part] = FIVE_PAIRS.parts()
    assert len(part.play()) == 5
    with pytest.raises(ValueError, match="player random changed meanwhile"):
        replace(part, known={"random": "0123456789abcdef"}).play()


@pytest.mark.slow
@pytest.mark.usefixtures("threads")  # the tournaments that are killed have their own processes
def test_killed_and_continued(tmp_path: Path, says: Says, fails: Fails) -> None:
    """The results are those of a tournament left alone. While one runs, another is refused; when it
    is killed, its workers end."""
    alone, out = tmp_path / "alone", tmp_path / "out"
    line = "tournament random greedy mcts:60 --pairs 75 --threads 2 --out "
    says(f"{line}{alone}")
    line += str(out)

    def results(folder: Path) -> dict[Path, Any]:
        """Return the results by file."""
        files = {file: json.loads(file.read_text()) for file in folder.rglob("results/*/*.json")}
        return {f.relative_to(folder): (one["points"], one["plies"]) for f, one in files.items()}

    for how in (signal.SIGKILL, signal.SIGINT):
        before = results(out)
        with start(line) as process:
            try:
                while results(out) == before:
                    assert process.poll() is None
                    time.sleep(0.01)
                error = fails(line)
                assert f"is in use by process {process.pid} on" in error and error.count("\n") == 1
            finally:
                process.send_signal(how)
            process.communicate(timeout=60)  # until the workers have also closed stderr
    assert len(results(out)) < len(results(alone)) == 9
    says(line)
    assert results(out) == results(alone)
    tables = (json.loads((folder / "table.json").read_text()) for folder in (out, alone))
    np.testing.assert_equal(*(table["pairings"] for table in tables))


@pytest.mark.slow
def test_a_worker_that_is_killed_is_one_line(tmp_path: Path, fails: Fails) -> None:
    own = "import os\n\nclass Killed:\n    def act(self, positions, legal):\n        os._exit(9)\n"
    (tmp_path / "killing.py").write_text(own + "\ndef make(ruleset, seed):\n    return Killed()\n")
    line = f"tournament greedy killing:make --path {tmp_path} --pairs 2 --out {tmp_path}/out"
    error = fails(line, status=1)
    assert error.splitlines()[-1].startswith("error: a worker process died")


def test_a_script_on_stdin_is_told_why_its_workers_died(tmp_path: Path) -> None:
    """A spawned process imports the script that started it, which has no file here."""
    code = (
        "import sys; from bao_agents.cli.main import main; "
        f"sys.exit(main(['tournament', 'random', 'greedy', '--out', {str(tmp_path / 'out')!r}]))"
    )
    done = subprocess.run([sys.executable, "-"], input=code, capture_output=True, text=True)
    assert done.returncode == 1 and "out of memory" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert "error: a worker process died, because it cannot import the script" in last
    assert "<stdin>: save the script in a file" in last
