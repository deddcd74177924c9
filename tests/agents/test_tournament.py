"""Test tournaments: pairing, determinism, resuming, reports, invalid folders and arguments."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import types
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bao_agents.arena import event as events
from bao_agents.arena import scheduler
from bao_agents.arena.elo import Sprt
from bao_agents.arena.event import Event
from bao_agents.arena.openings import draw_openings
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.plan import Gauntlet, Part, Plan, Results, RoundRobin, cut, pairings
from bao_agents.arena.report import cells, crosstable, markdown_table, match_row, standings
from bao_agents.arena.scheduler import LocalPool, Workers, play
from bao_agents.cli.main import main as bao
from bao_agents.cli.tournament import COLUMNS
from bao_agents.players.fingerprint import fingerprint
from bao_agents.players.registry import load
from bao_agents.support.progress import Progress
from bao_agents.support.provenance import provenance
from bao_env.engine.ruleset import RULESETS
from tests.conftest import Capsys, Fails, Says
from tests.processes import start
from tests.record import recorded_numbers

RULES = RULESETS["zanzibar"]
TWO = {"greedy": "greedy", "random": "random"}
FIVE_PAIRS = RoundRobin([*TWO], 5)
COMMAND = "tournament random greedy --pairs 5 --threads 1 --out "


def event(folder: Path | None = None, **changes: Any) -> Event:
    """Return a small event of greedy and random, with some fields changed."""
    defaults: dict[str, Any] = {
        "players": TWO,
        "ruleset": RULES,
        "openings": draw_openings(RULES, 5, 8, seed=1),
        "seed": 1,
        "folder": folder,
    }
    fields = defaults | changes
    known = {
        spec: fingerprint(spec, load(spec, ruleset=fields["ruleset"]), fields["ruleset"])
        for spec in fields["players"].values()
    }
    return Event(known=known, **fields)


def run(
    names: Sequence[str], pairs: int, folder: Path, processes: int = 1, ray: str | None = None
) -> dict[tuple[str, str], Pairs]:
    """Play a tournament in a folder."""
    openings = draw_openings(RULES, pairs, 8, seed=7)
    asked = event(folder, players={name: name for name in names}, openings=openings)
    results: dict[Part, Pairs] = {}
    with Workers(processes, ray) as workers, Progress(disable=True) as bar:
        play(asked, RoundRobin(names, pairs), workers, bar, results)
    return pairings(results)


def assert_same(one: dict[tuple[str, str], Pairs], other: dict[tuple[str, str], Pairs]) -> None:
    """Check that two tournaments have the same games."""
    assert one.keys() == other.keys()
    for names, pairs in one.items():
        np.testing.assert_array_equal(pairs.points, other[names].points)
        np.testing.assert_array_equal(pairs.plies, other[names].plies)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "LocalPool", ThreadPoolExecutor)


@pytest.mark.slow
def test_the_same_on_any_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["random", "greedy", "alphabeta:2"]
    one = run(names, 60, tmp_path / "one")
    monkeypatch.setattr(scheduler, "START_SECONDS", 0.0)
    two = run(names, 60, tmp_path / "two", processes=2)
    assert {pairs.points.shape for pairs in one.values()} == {(60, 2)}
    assert_same(one, two)


def test_same_on_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    names = ["random", "greedy"]
    assert_same(run(names, 60, tmp_path / "here"), run(names, 60, tmp_path / "there", ray="local"))


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
    small = run(pair, 25, tmp_path)
    large = run([*pair, "random"], 35, tmp_path)
    np.testing.assert_array_equal(small[pair].points, large[pair].points[:25])
    assert len(large) == 3
    assert set(run(pair, 35, tmp_path)) == {pair}


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
        ({"openings": draw_openings("zanzibar", 5, 8, seed=2)}, {}),
        ({"ruleset": RULESETS["kibao"]}, {}),
        ({"players": {"greedy": "alphabeta:1", "random": "random"}}, {}),
        ({"keep_games": True}, {}),
        ({}, {"rules_version": 0}),
        ({}, {"engine_signature": ""}),
    ],
)
def test_results_of_other_settings_are_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any, engine: dict[str, Any]
) -> None:
    """Nor are those of another engine."""
    [part] = FIVE_PAIRS.next_round({})
    event(tmp_path).keep(part, Pairs.from_json(RESULT))
    kept = event(tmp_path).read(part)
    assert kept is not None and json.loads(kept.to_json()) == json.loads(RESULT) | {"games": []}
    monkeypatch.setattr(events, "provenance", lambda rules: provenance(rules) | engine)
    assert event(tmp_path, **change).read(part) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[0.25, ", "[1e308, "),
        ("[30, 40], ", ""),  # of one game fewer
    ],
)
def test_what_cannot_be_shown_or_added_is_not_taken(tmp_path: Path, old: str, new: str) -> None:
    """test_files_from_others draws other damage."""
    assert old in RESULT
    with pytest.raises(ValueError, match=r"validation error|expected as many"):
        Pairs.from_json(RESULT.replace(old, new, 1))


@pytest.mark.usefixtures("threads")
def test_command_line(tmp_path: Path, says: Says, fails: Fails) -> None:
    line = f"tournament random mean=greedy --pairs 20 --anchor random --threads 1 --out {tmp_path}"
    out = says(line)
    assert re.search(r"\nmean +\d+", out) and "Elo 0 is random" in out
    assert re.search(r"\n\| mean +\| +\d+ \(", (tmp_path / "table.md").read_text())
    report = json.loads((tmp_path / "table.json").read_text())
    assert [p["player"] for p in report["results"]] == ["mean", "random"]
    assert report["results"][1]["elo"] == 0 and report["pairings"][0]["games"] == 40
    assert (tmp_path / "elo.png").read_bytes().startswith(b"\x89PNG")

    made_with = report["made_with"]
    assert made_with == provenance(RULESETS["zanzibar"])
    assert made_with["engine_signature"] == recorded_numbers("zanzibar")["signature"]
    assert report["commits"] == [made_with["commit"]]

    (file,) = (tmp_path / "results").rglob("*.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"commits": ["older"]}))
    assert "some results come from commit older, not" in says(line)


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
    rows = standings(results, anchor="b")
    assert [row["mean_plies"] for row in rows] == [40.0, 50.0, 30.0]
    assert rows[-1]["faults"] == ["says: <b>", "late"]
    text = " ".join(markdown_table(*cells(rows, COLUMNS)).split())
    assert re.search(r"\| a \| \d+ \([^|]+\) \| 8 \| 6 \| 1 \| 1 \| 81\.2 \| 0\.123 \|", text)
    assert "| b | 0 | 4 | 0 | 1 | 3 | 12.5 | 12.3 |" in text
    found = [match_row(*names, pairs) for names, pairs in results.items()]
    assert "| 2 c | 25.0 | | |" in " ".join(crosstable(rows, found).split())
    assert "| a\\|&lt;b> |" in markdown_table(["x"], [["a|<b>"]])


def test_a_sweep_has_a_bound_and_its_winner_no_interval() -> None:
    sweep = Pairs(points=np.ones((6, 2)), plies=np.full((6, 2), 30))
    rows = standings({("a", "b"): sweep})
    shown = {
        row["player"]: markdown_table(*cells([row], ["elo"]), "plain").split("\n")[1:]
        for row in rows
    }
    assert sorted(map(str, shown.values()))[0].startswith("['0']")
    [bound] = [cell for cell in shown.values() if cell != ["0"]]
    assert re.fullmatch(r"(above|below) -?\d+", bound[0])


class Knockout(Plan):
    """A new plan is one class: who scores more goes on; at a tie, who was drawn first."""

    def __init__(self, names: Sequence[str], pairs: int) -> None:
        self.names, self.pairs = names, pairs

    def next_round(self, results: Results) -> list[Part]:
        left = [*self.names]
        for (first, second), pairs in pairings(results).items():
            left.remove(second if pairs.score.rate >= 0.5 else first)
        met = {part[:2] for part in results}
        couples = zip(left[::2], left[1::2], strict=False)
        return [part for two in couples if two not in met for part in cut(*two, self.pairs)]


def test_a_knockout_is_a_plan(tmp_path: Path) -> None:
    """With drawn results; and it is played as any other plan."""
    plan = Knockout("abcde", 30)
    results: dict[Part, Pairs] = {}
    met = []
    while parts := plan.next_round(results):
        met.append([part[:2] for part in parts])
        for part in parts:
            better = float(part.first < part.second)  # the earlier letter wins
            results[part] = Pairs(points=np.full((len(part.numbers), 2), better))
    ab, cd, ac, ae = ("a", "b"), ("c", "d"), ("a", "c"), ("a", "e")
    assert met == [[ab, ab, cd, cd], [ac, ac], [ae, ae]]
    names = ["random", "greedy", "alphabeta:1"]
    asked = event(players={name: name for name in names})
    played: dict[Part, Pairs] = {}
    with Workers(1) as workers, Progress(disable=True) as bar:
        play(asked, Knockout(names, 5), workers, bar, played)
    assert [*pairings(played)] == [("random", "greedy"), ("greedy", "alphabeta:1")]


def test_a_gauntlet_stops_where_it_is_decided() -> None:
    """Against each opponent in turn, by the results without a gap."""
    plan = Gauntlet("me", ["even", "weak"], 400, Sprt(0, 100))
    results: dict[Part, Pairs] = {}
    points = {"even": [1.0, 0.0], "weak": [1.0, 1.0]}
    while parts := plan.next_round(results):
        assert {part.second for part in parts} == {["even", "weak"][len(pairings(results))]}
        assert sum(len(part.numbers) for part in parts) == 400
        for part in parts:
            results[part] = Pairs(points=np.tile(points[part.second], (len(part.numbers), 1)))
            if plan.is_decided(results):
                break
    assert {names: len(pairs) for names, pairs in pairings(results).items()} == {
        ("me", "even"): 50,
        ("me", "weak"): 50,
    }


@pytest.mark.slow
def test_a_pool_ends_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    """Also if it ends while calls run, and others have been cancelled."""
    for _ in range(3):
        with LocalPool(2) as pool:
            running = [pool.submit(time.sleep, 0.01) for _ in range(40)]
            running[0].result()
            for future in running:
                future.cancel()
        time.sleep(0.3)
    assert capfd.readouterr().err == ""


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

    def resume(attribute: str) -> bool:
        """Return whether results are kept, and keep some."""
        (tmp_path / "own_player.py").write_text(OWN.format(attribute=attribute))
        sys.modules.pop("own_player", None)
        asked = event(tmp_path, players={"greedy": "own_player:make", "random": "random"})
        [part] = FIVE_PAIRS.next_round({})
        found = asked.read(part)
        asked.keep(part, Pairs.from_json(RESULT))
        return found is not None

    assert resume("") == 0
    assert resume("") == 0
    line = f"tournament me=own_player:make random --pairs 1 --threads 1 --out {tmp_path}"
    assert bao(line.split()) == 0
    assert "games of me are played again" in capsys.readouterr().err
    assert resume("agent.fingerprint = 'first'") == 0
    assert resume("agent.fingerprint = 'first'") == 1
    for changed in ("agent.fingerprint = 'second'", "agent.fingerprint = 'first'  # and more"):
        assert resume(changed) == 0
    with pytest.raises(ValueError, match="fingerprint of own_player:make is a int: expected a"):
        resume("agent.fingerprint = 3")


def test_player_that_changes_meanwhile_raises() -> None:
    [part] = FIVE_PAIRS.next_round({})
    asked = event()
    assert len(asked.play(part)) == 5
    with pytest.raises(ValueError, match="player random changed meanwhile"):
        replace(asked, known={"random": "0123456789abcdef"}).play(part)


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
    one, other = (json.loads((folder / "table.json").read_text()) for folder in (out, alone))
    assert [row["elo"] for row in one["results"]] == [row["elo"] for row in other["results"]]


@pytest.mark.slow
def test_a_worker_that_is_killed_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Fails
) -> None:
    own = """
import multiprocessing, os
from bao_env.bots import GreedyAgent

class Killed(GreedyAgent):
    def act(self, positions, legal):
        if multiprocessing.parent_process():
            os._exit(9)
        return super().act(positions, legal)

def make(ruleset, seed):
    return Killed()
"""
    (tmp_path / "killing.py").write_text(own)
    monkeypatch.setattr(scheduler, "START_SECONDS", -1.0)
    line = f"tournament greedy killing:make --path {tmp_path} --threads 2 --pairs 2"
    error = fails(f"{line} --out {tmp_path}/out", status=1)
    assert error.splitlines()[-1].startswith("error: a worker process died")


def test_a_script_on_stdin_is_told_why_its_workers_died(tmp_path: Path) -> None:
    """A spawned process imports the script that started it, which has no file here."""
    code = (
        "import sys; from bao_agents.arena import scheduler; scheduler.START_SECONDS = -1.0; "
        "from bao_agents.cli.main import main; "
        f"sys.exit(main(['tournament', 'random', 'greedy', '--out', {str(tmp_path / 'out')!r}]))"
    )
    done = subprocess.run([sys.executable, "-"], input=code, capture_output=True, text=True)
    assert done.returncode == 1 and "out of memory" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert "error: a worker process died, because it cannot import the script" in last
    assert "<stdin>: save the script in a file" in last
