"""Test programs as players: ours, an example in plain Python, and hostile ones."""

from __future__ import annotations

import copy
import importlib
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest

from bao_agents.arena import event as events
from bao_agents.arena import scheduler
from bao_agents.arena.event import Event
from bao_agents.arena.openings import draw_openings
from bao_agents.arena.pairs import play_match
from bao_agents.arena.plan import FIRST_PARTS, cut
from bao_agents.cli.engine import EngineProtocol
from bao_agents.cli.main import main
from bao_agents.players import pipe
from bao_agents.players.faults import PlayerFault
from bao_agents.players.pipe import PipeAgent
from bao_agents.players.registry import load, parse
from bao_agents.search.limits import Clock, Limit
from bao_agents.support.cores import cores
from bao_env.board import Board
from bao_env.engine.ruleset import RULESETS, Ruleset
from bao_env.envs.single import BaoEnv
from tests.conftest import Fails, Says
from tests.processes import ROOT, start

EXAMPLE = f"{sys.executable} {ROOT / 'training' / 'examples' / 'engine_bot.py'}"
OURS = f"{sys.executable} -m bao_agents engine"
ZANZIBAR = RULESETS["zanzibar"]

READY = "import sys, time; line = sys.stdin.readline\nwhile line() != 'isready\\n': pass\n"
PLAY = READY + "print('ready', flush=True); line(); legal = line().split()[1:]; line()\n"
HOSTILE = {
    "late": (
        "import time\nwhile time.process_time() < 0.2: pass\n"  # this time is not counted
        + PLAY
        + "print('info', flush=True)\n"
        + "begun = time.process_time()\nwhile time.process_time() < begun + 0.2: pass\n"
        "time.sleep(60)",
        # It gets as much processor time as the machine has to spare.
        r"gave no answer within 0\.5 s, and used 0\.(?!00)[0-3]\d s of processor time$",
    ),
    "mute": (
        "import time; time.sleep(60)",
        r"gave no answer within 0\.5 s, and used 0\... s of processor time: does it flush every",
    ),
    "chatty": (PLAY + "while True: print('info', 'x' * 50)", "gave no answer within 0.5 s"),
    "twice": (
        PLAY + "print('move ' + legal[0] + '\\nmove ' + legal[0], flush=True); line(); line()",
        "wrote 'move 20' when no answer was due",
    ),
    "illegal": (PLAY + "print('move 63', flush=True); line()", "chose action 63, which is illegal"),
    "none": (PLAY + "print('move none', flush=True); line()", "found no move$"),
    "words": (PLAY + "print('move A5L', flush=True); line()", "'move A5L': expected move N"),
    "long": (
        PLAY + "sys.stdout.buffer.write(bytes(10**9))",
        r"wrote a line of more than 4096 bytes: '\\x00",
    ),
    "utf16": (
        READY + "sys.stdout.buffer.write('ready\\n'.encode('utf-16')); sys.stdout.flush(); line()",
        r"wrote '\\\\xff\\\\xfer\\x00",
    ),
    "unflushed": (
        PLAY + "print('move ' + legal[0]); time.sleep(60)",
        "gave no answer within 0.5 s, and .*: does it flush every line",
    ),
    "killed": (PLAY + "import os; os.kill(os.getpid(), 9)", r"crashed: signal 9 \(Killed\)$"),
    "dies": (PLAY + "sys.exit(3)", "crashed: exit status 3"),
    "unfinished": (PLAY + "sys.stdout.write('info bye')", "ended: exit status 0"),
    "closes": (PLAY + "import os; os.close(1); time.sleep(60)", "closed its output"),
    "deaf": (
        READY + "import os; os.close(0); print('ready', flush=True); time.sleep(60)",
        "closed its input$",
    ),
    "refuses": (
        READY + "print('error only\\x1b[2J kibao', flush=True); line()",
        r"cannot continue: only\\x1b\[2J kibao",
    ),
    "forks": (
        PLAY + "import os; pid = os.fork()\nif not pid: os.setsid(); time.sleep(20)\nsys.exit(0)",
        "ended: exit status 0|gave no answer",
    ),
    "stubborn": (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        + PLAY
        + "while True: time.sleep(1)",
        "gave no answer",
    ),
}


def first_moves(agent: PipeAgent, count: int = 1) -> list[int]:
    """Return the agent's actions in copies of the first position."""
    board = Board()
    positions = np.repeat(board.packed[None], count, axis=0)
    return agent.act(positions, np.repeat(board.batch()[1], count)).tolist()


def children() -> set[str]:
    """Return the processes that this one has started, including zombies."""
    return set(Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split())


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_programs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program gets one short error that names it, and leaves nothing behind."""
    code, message = HOSTILE[name]
    file = tmp_path / "bot.py"
    file.write_text(code)
    monkeypatch.setattr(pipe, "PROGRAM_START_SECONDS", 0.5 if name == "mute" else 30.0)
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    Board().text()  # compiles
    processes, files = children(), len([*Path("/proc/self/fd").iterdir()])
    threads = set(threading.enumerate())
    start = time.monotonic()
    with pytest.raises(ValueError, match=message) as error:
        first_moves(PipeAgent(f"{sys.executable} {file}", ZANZIBAR, seconds=0.5), 2)
    assert str(error.value).startswith(f"player pipe:{sys.executable}"[:40])
    assert len(str(error.value)) < 400 and str(error.value).isprintable()
    assert time.monotonic() - start < 30
    assert (children(), len([*Path("/proc/self/fd").iterdir()])) == (processes, files)
    assert threads.issuperset(threading.enumerate())


FRAGILE = (
    READY
    + "print('name a\\x1b[2J|<b>\\nready', flush=True)\n"
    + "for _ in range(3):\n"
    + "    while not (text := line()).startswith('position'): text or sys.exit(0)\n"
    + "    legal = line().split()[1:]; line()\n"
    + "    if _ < 2: print('move', legal[0], flush=True)\n"
    + "print('Traceback', file=sys.stderr); sys.exit(3)\n"
)
"""A program that plays two moves and crashes at the third."""


def test_a_fault_loses_one_game(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program is started again for the next game, and prints its traceback only once. Its name
    cannot harm the terminal or a table."""
    monkeypatch.setattr(pipe, "QUIET_SECONDS", 0.2)  # it is ready only once
    file = tmp_path / "bot.py"
    file.write_text(FRAGILE)
    bot, results = f"bot=pipe:{sys.executable} {file}", str(tmp_path / "match.json")
    assert main(["match", bot, "random", "--pairs=2", "--threads=1", "--json", results]) == 0
    out, err = capfd.readouterr()
    assert err.count("Traceback") == 1 and err.count("crashed; from now on") == 1
    [row] = json.loads((tmp_path / "match.json").read_text())["results"]
    faults = row["faults"]
    assert row["games"] == 4 and 0 < len(faults) <= row["lost"] and not row["opponent_faults"]
    assert set(faults) == {"crashed: exit status 3"}
    games = "1 game" if len(faults) == 1 else f"{len(faults)} games"
    assert f"bot lost {games} by faults: crashed: exit status 3" in out
    assert load(f"pipe:{sys.executable} {file}").name == r"a\x1b[2J|<b>"


def test_silence_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report does not wait for the time limit; a program that has written anything is not
    reported."""
    monkeypatch.setattr(pipe, "QUIET_SECONDS", 2.0)  # a busy machine starts a program slowly
    file = tmp_path / "bot.py"
    for says_something, count in (("", 1), ("print('info', flush=True); ", 0)):
        file.write_text(f"import time; {says_something}time.sleep(2.5)\n{PLAY}")
        agent = PipeAgent(f"{sys.executable} {file}", ZANZIBAR)
        agent.close()
        assert (
            capsys.readouterr().err.count(f'waiting for "ready" from pipe:{sys.executable}')
            == count
        )


def test_time_limit() -> None:
    for name, limit, command in (
        ("pipe:bao engine alphabeta:9ms", (60.0, 0.0), "bao engine alphabeta:9ms"),
        ("pipe:2s:a 'b\nc'", (2.0, 0.0), "a 'b\nc'"),
        ("pipe:50ms+1s:5ms:x", (0.05, 1.0), "5ms:x"),
    ):
        parts = parse(name).parts
        assert (pipe.read_time(name, parts.get("TIME")), parts["COMMAND"]) == (limit, command)


@pytest.mark.parametrize(
    ("limit", "order"),
    [
        (None, "movetime 200"),
        (Limit(nodes=5), "movetime 200"),
        (Limit(seconds=1.2), "movetime 1200"),
        (Limit.by_clock(Clock(2.0, 3.0)), "clock 2000 3000"),
    ],
)
def test_margin(limit: Limit | None, order: str, tmp_path: Path) -> None:
    """The host waits for longer than the time that it tells the program. What the program used
    before the move is not counted."""
    file = tmp_path / "bot.py"
    file.write_text(
        "import time\nwhile time.process_time() < 0.3: pass\n"
        + PLAY.replace("; line()\n", "; words = line()\n")
        + f"time.sleep(0.4)\nif words == 'go {order}\\n': print('move', legal[0], flush=True)\n"
        + "line()"
    )
    agent = load(f"pipe:200ms+30s:{sys.executable} {file}")
    agent._agent.close()
    agent.get_ready()  # before a clock runs
    started = children()
    assert agent.act(*Board().batch(), limit=limit).tolist() == Board().legal_actions[:1]
    assert children() == started
    assert sys.platform != "linux" or 0.0 <= agent.processor_seconds() < 0.3


def test_a_program_is_told_its_settings(tmp_path: Path) -> None:
    """The program repeats what it was told as its version. Its name has at most 40 characters. It
    is asked to quit, and its children are killed."""
    file = tmp_path / "bot.py"
    file.write_text(
        "import os, sys, time; settings = []; child = os.fork()\n"
        "if not child: time.sleep(60)\n"
        "while (line := sys.stdin.readline()) != 'isready\\n': settings.append(line.strip())\n"
        "print('name', 50 * 'x'); print('version', *settings); print('ready', flush=True)\n"
        "open(sys.argv[1], 'w').write(f'{child} {sys.stdin.read()}')"
    )
    end = tmp_path / "end"
    command = f"{sys.executable} {file} {end}"
    agents = PipeAgent(command, ZANZIBAR, 7, threads=3, memory=50), PipeAgent(command, ZANZIBAR)
    assert [agent.fingerprint for agent in agents] == [
        "bao 1 ruleset zanzibar seed 7 threads 3 memory 50",
        f"bao 1 ruleset zanzibar seed 0 threads {cores()}",
    ]
    assert agents[0].name == 40 * "x"
    agents[0].close()
    child, word = end.read_text().split()
    assert word == "quit"
    wait_for_end(int(child))


@pytest.mark.parametrize("spec", ["alphabeta:500n", "zanzibar"])
def test_our_players_answer_as_in_this_process(spec: str) -> None:
    """A player that remembers games is told their numbers, because games are played side by
    side."""
    player, program = load(spec), load(f"pipe:{OURS} {spec}")
    match = play_match(player, load("greedy"), pairs=4, seed=1)
    program_match = play_match(program, load("greedy"), pairs=4, seed=1)
    np.testing.assert_array_equal(match.plies, program_match.plies)
    np.testing.assert_array_equal(match.points, program_match.points)
    assert program.name == spec


def test_rules_of_your_own() -> None:
    rules = Ruleset(name="mine", house_min=4)
    match = play_match(
        load("greedy", ruleset=rules),
        load(f"pipe:{OURS} greedy", ruleset=rules),
        ruleset=rules,
        pairs=3,
    )
    assert match.score.pair_counts == (0, 0, 3, 0, 0)
    agent = PipeAgent(f"{OURS} greedy", ZANZIBAR)
    board = Board()
    with pytest.raises(ValueError, match="cannot continue: the host plays by other rules"):
        agent.act(board.packed[None], np.array([1 << board.legal_actions[0]], np.uint64))
    with pytest.raises(ValueError, match="cannot continue: unknown player 'nobody'"):
        PipeAgent(f"{OURS} nobody", ZANZIBAR)


def test_a_program_plays_all_parts_of_a_match(tmp_path: Path, says: Says) -> None:
    """The program is told a seed for each part, so it plays as if started again for each."""
    games, starts = tmp_path / "games", tmp_path / "starts"
    file = tmp_path / "bot.py"
    file.write_text(
        f"open({str(starts)!r}, 'a').write('once ')\n"
        + (ROOT / "training" / "examples" / "engine_bot.py").read_text()
    )
    spec = f"pipe:{sys.executable} {file}"
    line = f"match 'front={spec}' random --pairs 60 --seed 3 --threads 1 --games {games}"
    says(line)
    assert starts.read_text() == "once once "  # the first one only says what it is
    assert events.program.cache_info().currsize == 0  # they have ended
    event = Event(
        {"front": spec, "random": "random"},
        ZANZIBAR,
        draw_openings("zanzibar", 60, 8, seed=3),
        seed=3,
        keep_games=True,
    )
    transcripts = ""
    for part in cut("front", "random", 60, FIRST_PARTS):
        transcripts += "\n".join([*event.play(part).games, ""])
        events.program.cache_clear()
    assert games.read_text() + "\n" == transcripts


def test_opponent_in_an_environment() -> None:
    """A copy of the environment has its own program."""
    env = BaoEnv(opponent=f"pipe:{EXAMPLE}")
    env.reset(seed=1)
    copied = copy.deepcopy(env)
    for environment in (env, copied):
        environment.step(environment.action_masks().argmax())
        environment.close()


def test_tournament_on_two_processes_and_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    """The version shows that the program is the same, so its games are not played again."""
    line = f"tournament 'front=pipe:{EXAMPLE}' greedy random --pairs 30 --out {tmp_path}"
    monkeypatch.setattr(scheduler, "SECONDS_BEFORE_POOL", -1.0)
    says(f"{line} --threads 2")
    monkeypatch.setattr(Event, "play", lambda *_: 1 / 0)
    says(f"{line} --threads 1")
    report = json.loads((tmp_path / "table.json").read_text())
    assert [row["games"] for row in report["pairings"]] == [60, 60, 60]


def engine(player: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*shlex.split(OURS), player], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def asked(ruleset: str) -> str:
    """Return what a host writes up to the first move."""
    board = Board(ruleset)
    legal = " ".join(map(str, board.legal_actions))
    return f"bao 1\nruleset {ruleset}\nisready\nposition {board.text()}\nlegal {legal}\ngo\n"


ASK = asked("zanzibar")


def test_a_program_reports_one_version(tmp_path: Path, fails: Fails) -> None:
    file = tmp_path / "bot.py"
    file.write_text(PLAY.replace("'ready'", "'version', time.time(), '\\nready'"))
    line = f"match 'pipe:{sys.executable} {file}' random --pairs 1 --threads 1 --balance 100"
    assert fails(line).endswith("a program reports should stay the same while its play does\n")


def test_our_engine_needs_an_input(monkeypatch: pytest.MonkeyPatch, fails: Fails) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert "its standard input, which is closed" in fails("engine greedy")


def test_our_engine_hears_while_it_thinks() -> None:
    with engine("alphabeta:4000ms") as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(ASK)
        process.stdin.flush()
        while process.stdout.readline() != "ready\n":
            pass
        time.sleep(0.5)
        process.stdin.write("isready\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("quit\n")
        process.stdin.flush()
        quit_time = time.monotonic()
        assert process.stdout.read() == "" and time.monotonic() - quit_time < 2.0
        assert process.wait() == 0


TIMED = """
from bao_agents.search.limits import Limit
from bao_env import GreedyAgent
asked = []
class player(GreedyAgent):
    limit = Limit(seconds=3)
    def __init__(self, ruleset, seed): super().__init__(ruleset)
    def act(self, positions, legal, *, limit=None):
        asked.append((limit or self.limit).seconds)
        return super().act(positions, legal)
"""
"""A player that notes the seconds that it may use."""


def test_our_engine_keeps_the_time_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine answers in less than the host's time, whatever limit the player's name has."""
    lines: list[str] = []
    ours = EngineProtocol("alphabeta:3000ms", lines.append)
    ours.serve(iter(ASK.replace("go\n", "go movetime 50\n").splitlines()))
    start = time.monotonic()
    ours.serve(iter(["go movetime 300"]))
    assert time.monotonic() - start < 2.0
    assert [line.split()[0] for line in lines[-2:]] == ["move", "move"]
    (tmp_path / "timed.py").write_text(TIMED)
    monkeypatch.syspath_prepend(tmp_path)
    users = EngineProtocol("timed:player", lines.append, overhead=0.2)
    requests = "go movetime 1000\ngo movetime 9000\ngo clock 2000 300\n"
    users.serve(iter(ASK.replace("go\n", requests).splitlines()))
    seconds = importlib.import_module("timed").asked[-3:]
    assert seconds == [pytest.approx(0.78), 3, pytest.approx(2 * (1.76 / 12 + 0.8 * 0.1))]


FAILING = """
import bao_env
class player(bao_env.GreedyAgent):
    def __init__(self, ruleset, seed): super().__init__(ruleset)
    def act(self, positions, legal):
        if (positions != bao_env.Board().packed).any(): raise ValueError("lost the thread")
        return super().act(positions, legal)
"""
"""A player that knows no position but the first."""


def test_a_player_that_fails_in_our_engine_loses_one_game(tmp_path: Path) -> None:
    """Its error would else stop the match, and so the tournament of a class."""
    (tmp_path / "failing.py").write_text(FAILING)
    program = load(f"pipe:{OURS} failing:player --path {tmp_path}")
    match = play_match(load("greedy"), program, pairs=1, seed=1)
    assert match.points.tolist() == [[1.0, 1.0]]


def test_our_engine_answers_what_a_file_asks() -> None:
    """The engine answers commands from a file. test_rules_of_your_own shows that errors reach the
    host."""
    lines: list[str] = []
    ours = EngineProtocol("greedy", lines.append)
    ours.serve(iter((ASK + asked("kujifunza")).splitlines()))
    words = [word for line in lines if (word := line.split()[0]) in ("info", "ready", "move")]
    assert (
        words == ["info", "ready", "move"] * 2
    )  # each answer comes when the player for it is loaded
    ours.serve(iter(["bao 1"]))
    with pytest.raises(ValueError, match="bao 2: expected version 1 of the protocol"):
        ours.serve(iter(["bao 2"]))
    with pytest.raises(ValueError, match="go came too early"):
        ours.serve(iter(["seed 2", "go"]))
    with pytest.raises(ValueError, match="this one is nested too deeply"):
        ours.serve(iter(["ruleset " + '{"house":' * 100_000]))


def test_our_engine_loads_its_player_with_the_settings_of_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A number has as many bits as the host's: seeds, games and actions."""
    lines, loaded = list[str](), list[tuple[str, dict[str, object]]]()

    def note(spec: str, **settings: object) -> object:
        loaded.append((spec, settings))
        return load(spec, ruleset="kibao")

    monkeypatch.setattr("bao_agents.cli.engine.load", note)
    ours = EngineProtocol("greedy", lines.append)
    ours.serve(iter(["ruleset kibao", "seed 5", "threads 2", "memory 30", "isready"]))
    settings = {"ruleset": RULESETS["kibao"], "seed": 5, "threads": 2, "memory": 30}
    assert loaded == [("greedy", settings)] * 2
    assert [line for line in lines if "version" not in line] == [
        "info loading",
        "name greedy",
        "ready",
    ]
    for word, bits in (("seed", 64), ("game", 63), ("legal", 6)):
        ours.serve(iter([f"{word} {2**bits - 1}"]))
        with pytest.raises(ValueError, match=f"{word} {2**bits}: expected a number from 0 to 2"):
            ours.serve(iter([f"{word} {2**bits}"]))


@pytest.mark.parametrize(("option", "seconds"), [([], 0.005), (["--overhead", "70"], 0.07)])
def test_the_overhead_is_in_milliseconds(
    option: list[str], seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bao_agents.cli.engine.EngineProtocol", protocol := MagicMock())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(fileno=lambda: 0))
    assert main(["engine", "greedy", *option]) == 0
    assert (protocol.call_args.args[0], protocol.call_args.args[2]) == ("greedy", seconds)
    protocol.return_value.serve.assert_called_once()


@pytest.mark.parametrize(
    ("settings", "answers"),
    [
        ([], ["ready", "move 20"]),
        (["seed 5"], ["move 20", "info loading", "name mine", "ready"]),
    ],
)
def test_our_engine_is_ready_with_its_settings(
    settings: list[str], answers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it thinks, it answers at once only if there are no new settings."""
    lines, thinking, was_asked = list[str](), threading.Event(), threading.Event()

    def choose(board: Board, *limit: Limit | None, **game: int | None) -> int:
        if limit:  # a host has asked for a move
            thinking.set()
            assert was_asked.wait(60)
        return 20

    def requests() -> Iterator[str]:
        yield from ASK.splitlines()
        assert thinking.wait(60)
        yield from [*settings, "isready"]
        was_asked.set()

    player = SimpleNamespace(choose=choose, limit=None, remembers=False)
    monkeypatch.setattr("bao_agents.cli.engine.load", lambda spec, **settings: player)
    monkeypatch.setattr("bao_agents.cli.engine.fingerprint", lambda *player: None)
    EngineProtocol("mine", lines.append).serve(requests())
    assert lines == ["info loading", "name mine", "ready", *answers]


def test_our_engine_answers_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its player then loses one game, as in a match without a program."""

    def choose(*board: object, **game: object) -> int:
        raise PlayerFault("mine", "out of time")

    lines, player = list[str](), SimpleNamespace(choose=choose, limit=None, remembers=False)
    monkeypatch.setattr("bao_agents.cli.engine.load", lambda spec, **settings: player)
    monkeypatch.setattr("bao_agents.cli.engine.fingerprint", lambda *player: None)
    EngineProtocol("mine", lines.append).serve(iter(ASK.splitlines()))
    assert lines[-3:] == ["ready", "info out of time", "move none"]


def test_our_engine_ends_if_its_player_cannot_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only an error before the first game, of the player's packages, is told to the host."""
    lines, choose = list[str](), MagicMock(side_effect=[20, ImportError("no torch")])
    player = SimpleNamespace(choose=choose, limit=None, remembers=False)
    monkeypatch.setattr("bao_agents.cli.engine.load", lambda spec, **settings: player)
    monkeypatch.setattr("bao_agents.cli.engine.fingerprint", lambda *player: None)
    with pytest.raises(RuntimeError, match="no torch"):
        EngineProtocol("mine", lines.append).serve(iter(ASK.splitlines()))
    assert lines[-1] == "ready"


@pytest.mark.parametrize(
    ("commit", "mark", "most_games", "facts"),
    [
        ("abc", "", None, ["version abc", "remembers"]),
        ("abc", "mark", 8, ["version abc mark", "remembers 8"]),
        ("abc", None, 0, []),
        ("unknown", "mark", 0, []),
        ("abc-dirty", "mark", 0, []),
    ],
)
def test_our_engine_says_what_it_is(
    commit: str,
    mark: str | None,
    most_games: int | None,
    facts: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a version, a host plays the games again. Here no games means a player without
    memory."""
    lines, players = list[str](), list[MagicMock]()

    def load(spec: str, **settings: object) -> MagicMock:
        assert settings == {"ruleset": ZANZIBAR, "seed": 0, "threads": None, "memory": None}
        players.append(MagicMock(remembers=most_games != 0, most_games=most_games))
        return players[-1]

    monkeypatch.setattr("bao_agents.cli.engine.load", load)
    monkeypatch.setattr("bao_agents.cli.engine.current_commit", lambda: commit)
    monkeypatch.setattr("bao_agents.cli.engine.fingerprint", lambda *player: mark)
    daemons = list[bool]()

    def requests() -> Iterator[str]:
        daemons.append(threading.current_thread().daemon)  # an error must not wait for the host
        yield "isready"

    ours, board = EngineProtocol("mine", lines.append), Board()
    ours.serve(requests())
    assert daemons == [True]
    assert lines == ["info loading", "name mine", *facts, "ready"]
    players[0].choose.assert_called_once_with(board)
    players[1].choose.return_value, players[1].limit = 20, None
    legal = " ".join(map(str, board.legal_actions))
    for game in (2**63 - 1, None):
        lines_of_game = [] if game is None else [f"game {game}"]
        ours.serve(iter([*lines_of_game, f"position {board.text()}", f"legal {legal}", "go"]))
        players[1].choose.assert_called_with(board, None, game=game)
    assert lines[-1] == "move 20"


def test_a_program_ends_with_its_host(tmp_path: Path) -> None:
    """Even a stubborn program, which ignores SIGTERM and the end of its input, ends with its
    host."""
    file, pid_file = tmp_path / "stubborn.py", tmp_path / "pid"
    note_pid = f"import os; open({str(pid_file)!r}, 'w').write(str(os.getpid()))\n"
    file.write_text(note_pid + HOSTILE["stubborn"][0])
    host = f"""
import time
from bao_agents.players.pipe import PipeAgent
from bao_env.engine.ruleset import RULESETS
agent = PipeAgent({f"{sys.executable} {file}"!r}, RULESETS["zanzibar"])
print("ready", flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", host], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        pid = int(pid_file.read_text())
        os.kill(pid, 0)
        process.kill()
    wait_for_end(pid)


def wait_for_end(pid: int) -> None:
    """Wait until a process has ended."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail(f"process {pid} goes on")


def test_ctrl_c(tmp_path: Path) -> None:
    """Ctrl-C takes two seconds and also stops the program, even a stubborn one."""
    file = tmp_path / "stubborn.py"
    file.write_text(
        f"import os; open({str(tmp_path / 'pid')!r}, 'a').write(str(os.getpid()) + ' ')\n"
        + HOSTILE["stubborn"][0]
    )
    process = start(f"match 'pipe:{sys.executable} {file}' greedy --pairs 2")
    started = 2  # the first one only says what it is
    while not (tmp_path / "pid").exists() or len((tmp_path / "pid").read_text().split()) < started:
        time.sleep(0.1)
        assert process.poll() is None
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    signal_time = time.monotonic()
    _, error = process.communicate(timeout=20)
    assert time.monotonic() - signal_time < 8 and "stopped" in error and process.returncode == 130
    for pid in (tmp_path / "pid").read_text().split():
        wait_for_end(int(pid))
