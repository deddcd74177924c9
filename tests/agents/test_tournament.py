"""Test events: plans, workers, kept results and their resuming, and the command of tournaments."""

from __future__ import annotations

import hashlib
import io
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import Pipe, current_process
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, PropertyMock, call
from zlib import crc32

import numpy as np
import pytest

from bao_agents.arena import event as events
from bao_agents.arena import pools, scheduler
from bao_agents.arena.elo import Sprt, score_pairs
from bao_agents.arena.event import Event
from bao_agents.arena.openings import draw_openings
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.plan import Gauntlet, Part, Plan, Results, RoundRobin, cut, pairings
from bao_agents.arena.pools import LocalPool, RayPool
from bao_agents.arena.report import (
    cells,
    crosstable,
    in_words,
    markdown_table,
    match_row,
    standings,
    summary,
)
from bao_agents.arena.resumable import part_file
from bao_agents.arena.scheduler import Timer, Workers, play
from bao_agents.cli.main import main as bao
from bao_agents.cli.tournament import COLUMNS
from bao_agents.nets.checkpoint_files import CHECKPOINTS
from bao_agents.players import registry
from bao_agents.players.fingerprint import fingerprint
from bao_agents.players.names import PlayerName
from bao_agents.players.registry import load
from bao_agents.search.limits import Clock
from bao_agents.support.progress import Progress
from bao_agents.support.provenance import current_commit, provenance
from bao_env.engine.ruleset import RULESETS
from tests.conftest import Capsys, Fails, Says
from tests.processes import start

RULES = RULESETS["zanzibar"]
PART = Part("greedy", "random", (0, 1, 2, 3, 4))


def event(folder: Path | None = None, *players: str, pairs: int = 5, **changes: Any) -> Event:
    """Return a small event, of greedy and random by default, with some fields changed."""
    fields: dict[str, Any] = {
        "players": {name: name for name in players or ("greedy", "random")},
        "ruleset": RULES,
        "openings": draw_openings(RULES, pairs, 8, seed=1),
        "seed": 1,
        "folder": folder,
    }
    fields |= changes
    return Event(fingerprints=dict.fromkeys(fields["players"].values(), ""), **fields)


def run(event_to_play: Event, plan: Plan, workers: Workers | None = None) -> dict[Any, list[Any]]:
    """Play a plan; return the points and lengths of the games of each pairing."""
    results: dict[Part, Pairs] = {}
    with workers or Workers(1) as ready, Progress(disable=True) as bar:
        play(event_to_play, plan, ready, bar, results)
    pairing_results = pairings(results).items()
    return {
        names: [pairs.points.tolist(), pairs.plies.tolist()] for names, pairs in pairing_results
    }


def drawn(part: Part, *points: float) -> Pairs:
    """Return the results of a part in which all pairs of games have these points."""
    return Pairs(points=np.tile(points, (len(part.numbers), 1)))


# --- plans ----------------------------------------------------------------------------------------


class Knockout(Plan):
    """A plan, written as a single class: the player with more points goes on; at a tie, the one who
    was drawn first."""

    def __init__(self, names: Sequence[str], pairs: int) -> None:
        self.names, self.pairs = names, pairs

    def next_round(self, results: Results) -> list[Part]:
        left = [*self.names]
        for (first, second), pairs in pairings(results).items():
            left.remove(second if pairs.score.rate >= 0.5 else first)
        met = {part[:2] for part in results}
        couples = zip(left[::2], left[1::2], strict=False)
        return [part for two in couples if two not in met for part in cut(*two, self.pairs)]


def test_a_knockout_is_a_plan() -> None:
    """The results are invented: the earlier letter wins."""
    plan = Knockout("abcde", 30)
    results: dict[Part, Pairs] = {}
    met = []
    while parts := plan.next_round(results):
        met.append(["".join(part[:2]) for part in parts])
        for part in parts:
            results[part] = drawn(part, *[float(part.first < part.second)] * 2)
    assert met == [["ab", "ab", "cd", "cd"], ["ac", "ac"], ["ae", "ae"]]


def test_a_gauntlet_stops_where_it_is_decided() -> None:
    """The player meets one opponent after another; only results without a gap count."""
    plan = Gauntlet("me", ["even", "weak"], 400, Sprt(0, 100))
    results: dict[Part, Pairs] = {}
    for opponent, points in (("even", [1.0, 0.0]), ("weak", [1.0, 1.0])):
        parts = plan.next_round(results)
        assert sum(len(part.numbers) for part in parts) == 400
        for part in parts:
            assert part.second == opponent
            results[part] = drawn(part, *points)
            if plan.is_decided(results):
                break
    assert [len(pairs) for pairs in pairings(results).values()] == [52, 52]
    assert plan.next_round(results) == []
    assert plan.is_stopped("even", results)
    assert not replace(plan, pairs=52).is_stopped("even", results)
    all_pairs = Part("me", "even", tuple(range(400)))
    weak_results = {part: pairs for part, pairs in results.items() if part.second == "weak"}
    assert not plan.is_stopped("even", {all_pairs: drawn(all_pairs, 1.0, 0.0)} | weak_results)
    for pairs, is_due in ((49, False), (50, True)):
        part = Part("me", "even", tuple(range(pairs)))
        assert plan.is_decided({part: drawn(part, 1.0, 1.0)}) == is_due


def test_more_openings_only_add_parts() -> None:
    few, many = (RoundRobin("abc", pairs).next_round({}) for pairs in (50, 60))
    assert {*few} < {*many} and len(many) == 9
    few, many = (Gauntlet("a", "b", pairs).next_round({}) for pairs in (100, 300))
    assert {*few[:-1]} < {*many}
    sizes = [len(part.numbers) for part in many]
    assert sizes == [1] * 16 + [2] * 8 + [4] * 8 + [8] * 8 + [16] * 8 + [25, 19]


# --- workers --------------------------------------------------------------------------------------


class Backwards(Workers):
    """Workers of which the last one always ends first."""

    def play(
        self, event: Event, parts: Sequence[Part], bar: Progress, timer: Timer
    ) -> Iterator[tuple[Part, Pairs]]:
        yield from reversed([*super().play(event, parts, bar, timer)])


@pytest.mark.parametrize(
    "kind",
    ["backwards", "threads", pytest.param("processes", marks=pytest.mark.slow), "ray"],
)
def test_workers_change_nothing(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Neither the number of workers nor their order of ending changes results, even if a test stops
    the games."""
    if kind == "ray":
        pytest.importorskip("ray")
    if kind == "threads":
        monkeypatch.setattr(scheduler, "LocalPool", ThreadPoolExecutor)
    names = ["random", "greedy", "alphabeta:3"]
    played_event = event(None, *names, pairs=60)
    for plan in (RoundRobin(names, 60), Gauntlet(names[1], names[2:], 60, Sprt(0, 100))):
        expected = run(played_event, plan)
        with monkeypatch.context() as soon:
            soon.setattr(scheduler, "SECONDS_BEFORE_POOL", 0.0)
            ray = "local" if kind == "ray" else None
            workers = Backwards(1) if kind == "backwards" else Workers(2, ray)
            assert run(played_event, plan, workers) == expected
    assert [len(points) for points, _ in expected.values()] == [
        52
    ]  # the first multiple of 4 from 50 on


def test_the_time_of_a_pool_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins when the processes are ready. Parts that have not begun by its end are dropped."""
    monkeypatch.setattr(scheduler, "LocalPool", MagicMock())
    with Workers(2) as workers:
        workers._start_pool(["random"], RULES)
        pool: Any = workers._pool
    assert pool.submit.return_value.result.call_count == 2
    with monkeypatch.context() as failing:
        failing.setattr(registry, "warm_up", warm_up := MagicMock(side_effect=ValueError))
        failing.setattr(scheduler, "wait_for_others", wait := MagicMock())
        scheduler._get_ready(["random", "greedy"], RULES)
    assert warm_up.call_count == 2 and wait.call_count == 1
    futures = [Future[Any](), Future[Any]()]
    pool.submit.side_effect = futures
    timer = MagicMock()
    type(timer).left = PropertyMock(side_effect=[0.0])  # it is asked once
    parts = cut("a", "b", 200)[:2]
    with pytest.raises(TimeoutError, match="the time is up"):
        [*scheduler._play_in_pool(pool, event(), parts, MagicMock(), timer)]
    assert all(future.cancelled() for future in futures)


class RayError(Exception):
    """An error like those of Ray, when one of its processes dies or a call there fails with a
    cause."""

    def __init__(self, cause: Exception | None = None) -> None:
        super().__init__("The node died.\nAnd much more.")
        if cause:
            self.cause = cause


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [
        ("init", ConnectionError("none found.\nAnd much more."), "no Ray cluster at auto: none"),
        ("remote", RayError(), "a worker process died"),
        ("remote", RayError(ValueError("greedy failed")), "greedy failed"),
    ],
)
def test_faults_of_ray_are_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fails: Fails,
    where: str,
    error: Exception,
    message: str,
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    ray: Any = MagicMock()
    ray.exceptions.RayError = RayError
    setattr(ray, where, fail)
    monkeypatch.setitem(sys.modules, "ray", ray)
    status = 1 if "died" in message else 2
    message_printed = fails(
        f"tournament random greedy --pairs 5 --ray auto --out {tmp_path}", status=status
    )
    assert message in message_printed and "much more" not in message_printed


def test_ray_is_asked_for_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address with a port is tried first, because Ray itself would try for minutes."""
    ray, connect = MagicMock(), MagicMock()
    ray.exceptions.RayError = RayError
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr("bao_agents.arena.pools.socket.create_connection", connect)
    monkeypatch.setattr(sys, "path", ["a", "b"])
    for variable in ("auto", ""):
        monkeypatch.setenv("RAY_ADDRESS", variable)
        for address in ("host:6379", "named:head", ""):
            with RayPool(address) as pool:
                pool.submit(max, 1, 2)
    addresses = ["host:6379", "named:head", "auto", "host:6379", "named:head", None]
    paths = {"env_vars": {"PYTHONPATH": os.pathsep.join("ab")}}
    options = {"runtime_env": paths, "logging_level": "WARNING"}
    assert ray.init.call_args_list == [call(address, **options) for address in addresses]
    assert connect.call_args_list == [call(("host", 6379), timeout=5.0)] * 2
    assert ray.remote.call_args_list == [call(num_cpus=1)] * 6 and ray.shutdown.call_count == 6


def test_a_worker_ends_with_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves Ctrl-C to its parent, and waits at the barrier for the others."""
    exits, barrier, handle = queue.Queue[int](), MagicMock(), MagicMock()
    monkeypatch.setattr(pools, "_pool_barrier", None)
    monkeypatch.setattr("bao_agents.arena.pools.signal.signal", handle)
    monkeypatch.setattr("bao_agents.arena.pools.os._exit", exits.put)
    threads = set(threading.enumerate())
    receiver, sender = Pipe(duplex=False)
    pools._start_worker(receiver, barrier)
    assert all(thread.daemon for thread in set(threading.enumerate()) - threads)
    with pytest.raises(queue.Empty):
        exits.get(timeout=0.05)
    sender.close()
    assert exits.get(timeout=10) == 1
    handle.assert_called_once_with(signal.SIGINT, signal.SIG_IGN)
    pools.wait_for_others()
    barrier.wait.assert_called_once_with()


def test_a_pool_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, process = LocalPool(1), MagicMock()
    monkeypatch.setattr(pool, "shutdown", shutdown := MagicMock())
    monkeypatch.setattr(pool, "_processes", {1: process})
    with pool:
        pass
    shutdown.assert_called_once_with(wait=False, cancel_futures=True)
    process.terminate.assert_called_once_with()
    assert pool._sender.closed


@pytest.mark.slow
def test_a_pool_ends_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    """A pool prints nothing even if it ends while calls run and others have been cancelled."""
    for _ in range(3):
        with LocalPool(2) as pool:
            running = [pool.submit(time.sleep, 0.01) for _ in range(40)]
            running[0].result()
            for future in running:
                future.cancel()
        time.sleep(0.3)
    assert capfd.readouterr().err == ""


def test_a_script_on_stdin_is_told_why_its_workers_died(tmp_path: Path) -> None:
    """A spawned process imports the script that started it; this script has no file."""
    code = (
        "import sys; from bao_agents.arena import scheduler; scheduler.SECONDS_BEFORE_POOL = -1.0; "
        "from bao_agents.cli.main import main; "
        "line = 'tournament random greedy --threads 2 --out'.split(); "
        f"sys.exit(main([*line, {str(tmp_path / 'out')!r}]))"
    )
    done = subprocess.run([sys.executable, "-"], input=code, capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and "<stdin>: save the script in a file" in last
    assert "error: a worker process died, because it cannot import the script" in last


def test_an_event_in_a_daemon_starts_no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker of ``multiprocessing.Pool`` must not have children."""
    monkeypatch.setattr(scheduler, "SECONDS_BEFORE_POOL", 0.0)
    monkeypatch.setattr(current_process(), "daemon", True)
    plan = RoundRobin(["random", "greedy"], 5)
    assert run(event(), plan, Workers(2)) == run(event(), plan)


def test_a_pool_leaves_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool's processes compute in one thread each, unless the user says otherwise."""
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    before = dict(os.environ)
    with LocalPool(1) as pool:
        threads = [pool.submit(os.getenv, f"{name}_NUM_THREADS") for name in ("MKL", "OMP")]
        assert [future.result() for future in threads] == ["1", "3"]
    assert dict(os.environ) == before


# --- kept results ---------------------------------------------------------------------------------


RESULT = json.dumps(
    {
        "points": [[1.0, 0.0]] * 5,
        "plies": [[30, 40]] * 5,
        "moves": [0, 40],
        "seconds": [0.25, 0.5],
        "faults": [[], ["crashed: exit status 1"]],
        "commits": ["older"],
        "games": [],
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
        ({"clock": Clock(10.0)}, {}),
        ({}, {"rules_version": 0}),
        ({}, {"engine_signature": ""}),
    ],
)
def test_results_of_other_settings_are_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any, engine: dict[str, Any]
) -> None:
    """Results of another engine are not reused either. More players or openings change nothing."""
    event(tmp_path).keep(PART, Pairs.from_json(RESULT))
    stored = event(tmp_path, "random", "greedy", "alphabeta:1", pairs=9).read(PART)
    assert stored is not None and json.loads(stored.to_json()) == json.loads(RESULT)
    monkeypatch.setattr(events, "provenance", lambda rules: provenance(rules) | engine)
    assert event(tmp_path, **change).read(PART) is None


@pytest.mark.parametrize("is_old", [False, True], ids=["now", "earlier version"])
def test_results_of_a_moved_checkpoint_are_taken(
    is_old: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions kept them under the checkpoint's path."""

    def with_player(file: Path) -> Event:
        return event(tmp_path, players={"greedy": f"guided:{file}:8n", "random": "random"})

    file, moved = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    shutil.copy(CHECKPOINTS / "zanzibar.safetensors", file)
    with monkeypatch.context() as earlier:
        if is_old:
            earlier.setattr(PlayerName, "with_file", lambda name, text: name.text)
        with_player(file).keep(PART, Pairs.from_json(RESULT))
    assert with_player(file).read(PART) is not None
    file.rename(moved)
    assert (with_player(moved).read(PART) is None) == is_old


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[0.25, ", "[1000000001.0, "),
        ("[0, 40]", f"[0, {10**12 + 1}]"),
        ("[1.0, ", "[1.5, "),
        ("[1.0, ", "[0.75, "),
        ("[30, 40], ", ""),
    ],
)
def test_what_cannot_be_added_is_not_taken(old: str, new: str) -> None:
    """test_files_from_others draws other kinds of damage."""
    with pytest.raises(ValueError, match=r"validation error|expected one length"):
        Pairs.from_json(RESULT.replace(old, new, 1))


def test_games_of_a_player_without_a_fingerprint_are_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """A fingerprint also covers the player's code."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def own(mark: str) -> Event:
        code = f"class Own(GreedyAgent):\n    fingerprint = {mark}\n"
        code += "def make(ruleset, seed): return Own()\n"
        (tmp_path / "own.py").write_text(f"from bao_env.bots import GreedyAgent\n{code}")
        sys.modules.pop("own", None)
        own_event = event(tmp_path, players={"greedy": "own:make", "random": "random"})
        fingerprints = {"random": "", "own:make": fingerprint("own:make", load("own:make"), RULES)}
        return replace(own_event, fingerprints=fingerprints)

    marks = {own(mark).fingerprints["own:make"] for mark in ("'one'", "'two'", "'one'  # and more")}
    assert len(marks) == 3 and {len(mark or "") for mark in marks} == {16}
    with pytest.raises(ValueError, match="fingerprint of own:make is a int: expected a"):
        own("3")
    own_event = own("None")
    own_event.keep(PART, Pairs.from_json(RESULT))
    assert own_event.read(PART) is None
    assert bao(f"tournament me=own:make random --pairs 1 --threads 1 --out {tmp_path}".split()) == 0
    assert "games of me are played again" in capsys.readouterr().err
    assert bao(f"tournament greedy random --pairs 1 --threads 1 --out {tmp_path}".split()) == 0
    assert "played again" not in capsys.readouterr().err


def test_players_get_the_threads_and_seeds_of_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program gets one thread, and its seed when it has started. Seeds do not depend on a name
    that has numbers of its own. Other players compile before the games."""
    loaded, warmed = list[Any](), list[Any]()

    def note(player: Any, **settings: Any) -> Any:
        loaded.append(settings)
        return load(player, **settings)

    monkeypatch.setattr(registry, "load", note)
    monkeypatch.setattr(registry, "warm_up", lambda *player: warmed.append(player))
    for keys in ({}, {"greedy": (7,), "random": ()}):
        event(keys=keys).play(PART, threads=3)
    for seeds, key in zip(
        (loaded[:2], loaded[2:]), ([crc32(b"greedy"), crc32(b"random")], [7]), strict=True
    ):
        expected = np.random.SeedSequence([1, *key, 0]).generate_state(2).tolist()
        assert seeds == [{"ruleset": RULES, "seed": seed, "threads": 3} for seed in expected]
    assert warmed == [("greedy", RULES), ("random", RULES)] * 2
    assert event().play(PART).commits == {current_commit()}  # as in a pool
    assert [settings["threads"] for settings in loaded[4:]] == [1, 1]
    del loaded[4:]
    events.program(0, "greedy", RULES)
    events.program.cache_clear()
    assert loaded[4:] == [{"ruleset": RULES, "threads": 1}]


def test_a_bar_counts_the_games(tmp_path: Path) -> None:
    """Those that were kept count at once."""
    for pairs in (5, 5, 9):
        new_event, results = event(tmp_path, pairs=pairs), dict[Part, Pairs]()
        with Workers(1) as workers, Progress(file=io.StringIO()) as bar:
            play(new_event, RoundRobin(["greedy", "random"], pairs), workers, bar, results)
            assert (bar.n, bar.total) == (2 * pairs, 2 * pairs)


def test_the_file_of_a_part_is_named_after_its_settings() -> None:
    """The order of keys does not matter, and another version must find the same file."""
    digest = hashlib.sha256(b'[{"a": 2, "b": 1}]').hexdigest()[:16]
    assert part_file(Path("c"), "d", [{"b": 1, "a": 2}], ".json") == Path(f"c/d-{digest}.json")


def test_player_that_changes_meanwhile_raises() -> None:
    with pytest.raises(ValueError, match="player random has changed since"):
        replace(event(), fingerprints={"random": "0123456789abcdef"}).play(PART)


@pytest.mark.slow
def test_killed_and_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says, fails: Fails
) -> None:
    """The results are those of an undisturbed tournament. While one runs, another is refused; when
    it is killed, its workers end."""
    monkeypatch.setattr(
        scheduler, "LocalPool", ThreadPoolExecutor
    )  # in this process, not in the killed ones
    alone, out = tmp_path / "alone", tmp_path / "out"
    line = "tournament random greedy mcts:60 --pairs 75 --threads 2 --out "
    says(f"{line}{alone}")
    line += str(out)

    def results(folder: Path) -> dict[Path, Any]:
        """Return the results by file."""
        files = {file: json.loads(file.read_text()) for file in folder.rglob("results/*/*.json")}
        return {
            f.relative_to(folder): (result["points"], result["plies"])
            for f, result in files.items()
        }

    for signal_number in (signal.SIGKILL, signal.SIGINT):
        before = results(out)
        with start(line) as process:
            try:
                while results(out) == before:
                    assert process.poll() is None
                    time.sleep(0.01)
                error = fails(line)
                assert f"is in use by process {process.pid} on" in error and error.count("\n") == 1
            finally:
                process.send_signal(signal_number)
            process.communicate(timeout=60)  # until the workers have also closed stderr
    assert len(results(out)) < len(results(alone)) == 9
    says(line)
    assert results(out) == results(alone)


# --- the report -----------------------------------------------------------------------------------


def test_command_line(tmp_path: Path, says: Says) -> None:
    line = "tournament random mean=greedy --pairs 20 --anchor random --threads 1 "
    line += f"--out {tmp_path} --games {tmp_path / 'games'}"
    out, games = says(line), (tmp_path / "games").read_text()
    assert re.search(r"\nmean +\d+", out) and "| mean " in (tmp_path / "table.md").read_text()
    report = json.loads((tmp_path / "table.json").read_text())
    assert [row["player"] for row in report["results"]] == ["mean", "random"]
    assert report["results"][1]["elo"] == 0 and report["pairings"][0]["games"] == 40
    assert report["zero"] == "random" and f"Elo 0 is {report['zero']}; " in out
    assert (tmp_path / "elo.png").read_bytes().startswith(b"\x89PNG")
    made_with = report["made_with"]
    assert made_with.items() >= provenance(RULES, seed=1).items()
    assert made_with["command"] == f"bao {line}"
    (file,) = (tmp_path / "results").rglob("*.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"commits": ["older"]}))
    assert "Some games were played by other versions of the code, older; this is" in says(line)
    assert (tmp_path / "games").read_text() == games
    for style, row in (
        ("markdown", r"\n\nScore of .+\n\n.+\n.+\n.+\n\| 2 random +\|"),
        ("latex", r" 2 random +&"),
    ):
        assert re.search(row, says(f"{line} --format {style}"))


def test_a_replaced_report_is_named(tmp_path: Path, fails: Fails) -> None:
    """The same command replaces its own without a word."""
    line = f"tournament random greedy --pairs 2 --balance 100 --threads 1 --out {tmp_path}"
    assert "replace" not in fails(line, status=0) + fails(line, status=0)
    note = f"note: these reports replace those in {tmp_path} of `bao {line}`"
    assert note in fails(f"{line} --seed 2", status=0)
    assert "replace" not in fails(f"{line} --anchor nobody")


def test_tables() -> None:
    results = {
        ("a", "b"): Pairs(
            points=np.array([[1, 1], [1, 0.5]]),
            plies=np.full((2, 2), 30),
            moves=np.array([1000, 1000]),
            seconds=np.array([0.1, 12.34]),
            faults=([], ["says: <b>", "late"]),
            games=("a game",),
        ),
        ("c", "a"): Pairs(
            points=np.array([[0, 0], [1, 0]]),
            plies=np.full((2, 2), 50),
            moves=np.array([1000, 3000]),
            seconds=np.array([1.0, 0.3936]),
        ),
    }
    pairs = results["a", "b"]
    assert pairs.swapped().swapped().to_json() == pairs.to_json()
    assert (pairs + pairs).faults == ([], ["says: <b>", "late"] * 2)
    assert (pairs.swapped() + pairs.swapped()).faults == (["says: <b>", "late"] * 2, [])
    rows = standings(results, anchor="b")
    assert [row["mean_plies"] for row in rows] == [40.0, 50.0, 30.0]
    assert rows[-1]["faults"] == ["says: <b>", "late"]
    row = match_row("a", "b", results["a", "b"])
    estimates = re.compile("elo|score_|south_score|los$")
    assert {key: value for key, value in row.items() if not estimates.match(key)} == {
        "player": "a",
        "opponent": "b",
        "games": 4,
        "won": 3,
        "drawn": 1,
        "lost": 0,
        "score": 0.875,
        "ms_a_move": 0.1,
        "mean_plies": 30.0,
        "pairs_by_points": (0, 0, 0, 1, 1),
        "faults": [],
        "opponent_ms_a_move": 12.34,
        "opponent_faults": ["says: <b>", "late"],
    }
    text = " ".join(markdown_table(*cells(rows, COLUMNS)).split())
    assert re.search(r"\| a \| \d+ \([^|]+\) \| 8 \| 6 \| 1 \| 1 \| 81\.2 \| 0\.123 \|", text)
    assert "| b | 0 | 4 | 0 | 1 | 3 | 12.5 | 12.3 |" in text
    pairing_rows = [match_row(*names, pairs) for names, pairs in results.items()]
    cross = crosstable(rows, pairing_rows)
    cross_rows = [["1 a", "", "75.0", "87.5"], ["2 c", "25.0", "", ""], ["3 b", "12.5", "", ""]]
    assert cross == (["", "1", "2", "3"], cross_rows)
    assert re.search(r"\n\|:-+\|-+:\|-+:\|-+:\|\n", markdown_table(*cross))
    south = score_pairs(np.array([[1, 0], [1, 0.5]]))  # two won, one drawn, one lost
    low, high = f"{100 * south.low:.1f}", f"{100 * south.high:.1f}"
    assert in_words(results["a", "b"]) == f"30.0 plies a game; South scores 62.5% ({low} to {high})"
    assert summary(results["a", "b"]) == {
        "mean_plies": 30.0,
        "south_score": 0.625,
        "south_score_low": south.low,
        "south_score_high": south.high,
    }
    assert "| a\\|&lt;b> |" in markdown_table(["x"], [["a|<b>"]])


def test_a_sweep_has_a_bound_and_its_winner_no_interval() -> None:
    sweep = Pairs(points=np.ones((6, 2)), plies=np.full((6, 2), 30))
    [won, lost] = cells(standings({("a", "b"): sweep}), ["elo"])[1]
    assert re.fullmatch(r"0 below -\d+", f"{won[0]} {lost[0]}")


@pytest.mark.parametrize(
    ("row", "column", "text"),
    [
        ({"elo": -0.2, "elo_low": -0.4, "elo_high": -0.1}, "elo", "0\n0 to 0"),  # without a sign
        ({"elo": 100.4, "elo_low": 50.6, "elo_high": None}, "elo", "100"),
        ({"elo": None, "elo_low": 50.6, "elo_high": None}, "elo", "above 51"),
        ({"elo": None, "elo_low": None, "elo_high": -50.6}, "elo", "below -51"),
        ({"elo": None, "rating": "6 games are too few"}, "elo", "6 games are too few"),
        ({"steps": None, "rating": "6 games are too few"}, "steps", ""),
        ({"games": 12345}, "games", "12,345"),
        ({"score": 0.5, "score_low": 0.25, "score_high": 0.625}, "score", "50.0\n25.0 to 62.5"),
        ({"score": 0.5, "score_low": 0.5, "score_high": 0.5}, "score", "50.0"),
        ({"opponent_ms_a_move": 0.1234}, "opponent_ms_a_move", "0.123"),
        ({"ms_a_move": 1.0}, "ms_a_move", "1.0"),
    ],
)
def test_cells(row: dict[str, Any], column: str, text: str) -> None:
    assert cells([row], [column])[1] == [[text]]
