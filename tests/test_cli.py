"""Test the command ``bao``: its table, shared options, errors and Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import errno
import gc
import io
import math
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
import webbrowser
from concurrent.futures import BrokenExecutor
from pathlib import Path
from subprocess import PIPE
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from bao_agents.cli import main as cli
from bao_agents.cli import play
from bao_agents.cli.main import COMMANDS
from bao_agents.cli.main import main as bao
from bao_agents.cli.options import new_file, write_json
from bao_agents.cli.play import open_page
from bao_agents.support import progress
from bao_agents.support.provenance import current_commit
from bao_env import RULESETS, __version__
from tests.conftest import Capsys, Says
from tests.processes import python


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: Capsys) -> None:
    assert bao([*name.split(), "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: bao {name}") and "--quiet" in text
    assert max(map(len, text.splitlines())) <= 80 and "in elo" not in text


def test_overview(capsys: Capsys) -> None:
    assert bao(["--help"]) == 0
    out = capsys.readouterr().out
    assert bao([]) == 0 and capsys.readouterr().out == out
    listed = [line.split()[0] for line in out.splitlines() if line.startswith("  ")]
    assert listed == [name.split()[0] for name in COMMANDS] and len(set(listed)) <= 14


def test_the_version_names_the_commit(capsys: Capsys) -> None:
    assert bao(["--version"]) == 0
    assert capsys.readouterr().out == f"bao_env {__version__}, commit {current_commit()}\n"


def test_the_environment_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TQDM_DISABLE", "0")
    before = dict(os.environ)
    assert bao(["players", "--quiet"]) == 0
    assert dict(os.environ) == before


def test_an_abbreviated_option_is_refused(capsys: Capsys) -> None:
    """``--qui`` would be accepted, but hide no progress bar."""
    assert bao(["players", "--qui"]) == 2
    error = "error: unrecognized arguments: --qui (did you mean '--quiet'?)\n"
    assert capsys.readouterr().err == error


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_the_defaults(name: str) -> None:
    """A default that a text repeats is the default that applies."""
    parser = argparse.ArgumentParser()
    cli.find(name)(parser)
    for action in parser._actions:
        default_in_text = re.search(r"\(default: ([^%].*?)\)", action.help or "")
        if default_in_text and action.default not in (None, []):
            values = action.default if isinstance(action.default, tuple) else (action.default,)
            words = zip(values, default_in_text[1].split(), strict=True)
            assert all(type(value)(word) == value for value, word in words), action


@pytest.mark.parametrize(
    ("words", "lowest", "highest"),
    [
        ("bench engine --batches", 1, 2**63 - 1),
        ("bench engine --threads", 1, 2**63 - 1),
        ("bench engine --rounds", 1, 2**63 - 1),
        ("bench engine --seconds", 0.001, None),
        ("bench search --positions", 4, 2**63 - 1),
        ("bench perft", 1, 2**63 - 1),
        ("engine greedy --overhead", 0, 2**63 - 1),
        ("match greedy --pairs", 1, 2**63 - 1),
        ("match greedy --opening-plies", 0, 40),
        ("match greedy --seed", 0, 2**63 - 1),
        ("match greedy --threads", 1, 1024),
        ("play --port", 0, 2**63 - 1),
        ("rate greedy --precision", 0.1, None),
        ("rate greedy --seconds", 0.001, None),
        ("solve --seconds", 0.001, None),
        ("solve --nodes", 1, 2**63 - 1),
        ("solve --memory", 1, 2**63 - 1),
        ("solve --sample", 1, 2**63 - 1),
        ("solve --plies 0", 0, 2**63 - 1),
    ],
)
def test_a_number_has_its_bounds(words: str, lowest: float, highest: int | None) -> None:
    too_small = lowest - 1 if isinstance(lowest, int) else lowest / 2
    too_large = [] if highest is None else [highest + 1]
    for number in (lowest, *([] if highest is None else [highest])):
        cli.parse([*words.split(), str(number)])
    for number in (too_small, *too_large):
        with pytest.raises(ValueError, match=f"'{number}': expected a"):
            cli.parse([*words.split(), str(number)])


def test_no_result_is_written_that_json_cannot_hold(capsys: Capsys) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json("-", {"elo": math.nan})
    assert capsys.readouterr().out == ""


def test_output_is_not_limited_to_ascii(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A character that the terminal cannot show is printed as an escape."""
    game, output = tmp_path / "game", io.BytesIO()
    game.write_text("south: Ba\u0175o\n1: 7L*;", encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, "ascii", write_through=True))
    assert bao(["replay", str(game)]) == 0
    assert rb"Ba\u0175o" in output.getvalue()


@pytest.mark.parametrize(
    ("package", "advice"),
    [
        ("torch", "this needs torch: pip install 'bao_env[train]'"),
        ("uvicorn.config", "this needs uvicorn: pip install 'bao_env[play]'"),
    ],
)
def test_a_missing_extra_is_named(
    package: str, advice: str, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    def find(name: str) -> Any:
        raise ModuleNotFoundError(name=package)

    monkeypatch.setattr(cli, "find", find)
    assert bao(["train"]) == 2
    assert capsys.readouterr().err == f"error: {advice}\n"


@pytest.mark.parametrize(
    "line",
    [
        "match random greedy --openings own.toml --csv own.toml",
        "match random greedy --ruleset own.toml --json=own.toml",
        "rate greedy --ladder own.toml --games ./own.toml",
        "blunders random --positions own.toml --csv own.toml",
        "match new=own.toml random --json own.toml",
        "match random greedy --json new --games new",
    ],
)
def test_results_replace_nothing_that_the_command_names(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text("house_min = 8")
    assert bao(line.split()) == 2
    assert "names this file twice" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["own.toml"]
    assert Path("own.toml").read_text() == "house_min = 8"


@pytest.mark.parametrize(
    "line",
    [
        "match mine:f@bot random --csv bot",
        "match a=guided:bot:5ms random --json ./bot",
        "match 'pipe:sh bot' random --games=bot",
        "replay bot.svg --svg bot.svg",
        "match random greedy --csv net.safetensors",
        "bench engine --json net.safetensors",
    ],
)
def test_results_replace_no_file_of_a_player(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """A word that is missing after an option makes the next one its file."""
    monkeypatch.chdir(tmp_path)
    for name in ("bot", "bot.svg", "net.safetensors"):
        Path(name).write_text(name)
    assert bao(shlex.split(line)) == 2
    assert "replace it: choose another name" in capsys.readouterr().err
    assert all(file.read_text() == file.name for file in tmp_path.iterdir())


def test_a_folder_that_takes_no_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: (path, mode) != (str(tmp_path), os.W_OK))
    with pytest.raises(argparse.ArgumentTypeError, match="no files can be written in the folder"):
        new_file(str(tmp_path / "new"))
    for name in ("x", "x" * 200):
        assert new_file(name) == name
    with pytest.raises(argparse.ArgumentTypeError, match="a file name of at most 200 bytes"):
        new_file("x" * 201)


@pytest.mark.parametrize("name", ["match random greedy --pairs 1", "blunders random"])
@pytest.mark.parametrize("options", ["--json - --format latex", "--csv - --json -"])
def test_only_one_form_of_the_results_is_printed(
    name: str, options: str, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    assert bao([*name.split(), *options.split()]) == 2
    out, err = capsys.readouterr()
    assert not out and ("only one of them can be printed" in err or "has no effect" in err)


@pytest.mark.parametrize(
    ("words", "number"),
    [
        (["solve", ""], 1),
        (["bench", "perft", "2", "--divide="], 2),
        (["match", "a", "--ray", ""], 3),
    ],
)
def test_an_empty_argument_is_refused(words: list[str], number: int, capsys: Capsys) -> None:
    """A variable that is not set must not let the command solve the opening, for example."""
    assert bao(words) == 2
    assert f"argument {number} of bao {words[0]}" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--json d/table.md", "--csv d/table.json --out ./d"])
def test_results_replace_no_report_of_the_command(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    assert bao(f"match random greedy --pairs 1 --out d {option}".split()) == 2
    assert "--out writes a report there" in capsys.readouterr().err
    assert not [*Path("d").iterdir()]


@pytest.mark.parametrize("name", ["table.md", "table.json", "elo.png"])
def test_an_event_replaces_no_report_of_others(name: str, tmp_path: Path, capsys: Capsys) -> None:
    """It replaces its own, even if they are all that is left of the event."""
    line = ["match", "random", "greedy", "--pairs", "1", "--out", str(tmp_path)]
    (tmp_path / "results" / "mine").mkdir(parents=True)
    for foreign in (tmp_path / name, tmp_path / "results" / "mine" / "1.json"):
        foreign.write_text("foreign")
    assert bao(line) == 2
    assert f"{tmp_path / name} exists, but {tmp_path} holds no games" in capsys.readouterr().err
    assert {file.name for file in tmp_path.iterdir()} == {name, "results"}
    assert (tmp_path / name).read_text() == "foreign"
    (tmp_path / name).unlink()
    for _ in range(2):
        assert bao(line) == 0
        shutil.rmtree(tmp_path / "results")


DRAWING = {
    "tournament random greedy --pairs 1 --threads 1 --out t": "t/table.json t/table.md t/elo.png",
    "train --out . --run n --set steps=2048 --set envs=32 --set rollout=16 --set hidden=[16] "
    "--set minibatch=512 --set evaluate_pairs=1": "n/final.safetensors n/curves.png",
    "curve n/metrics.csv --metrics value_loss --out c.svg": "c.svg",
    "replay start --svg b.svg": "b.svg",
    "replay start --move 7L* --gif b.gif --pdf b.pdf": "b.gif b.pdf",
}
"""Commands that draw, and the files that each writes."""


@pytest.mark.parametrize(
    ("package", "commands", "lost"),
    [
        ("starlette", "tournament train curve replay", ""),
        ("matplotlib", "tournament train curve replay", "t/elo.png n/curves.png c.svg"),
        ("torch", "tournament train", "n/final.safetensors n/curves.png"),
        ("PIL", "tournament replay", "t/elo.png b.gif b.pdf"),
        ("pygame", "replay", "b.gif b.pdf"),
    ],
)
def test_results_do_not_need_pictures(
    package: str, commands: str, lost: str, tmp_path: Path
) -> None:
    """One package is missing, and matplotlib is set to LaTeX and to the backend of a notebook."""
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\n")
    lines = [line for line in DRAWING if line.split()[0] in commands]
    program = f"""
import os, sys
sys.modules[{package!r}] = None  # its import fails
os.chdir({str(tmp_path)!r})
from bao_agents.cli.main import main
for line in {lines!r}:
    print("status", main([*line.split(), "--quiet"]), file=sys.stderr)
"""
    run = python(program, MPLBACKEND="module://missing", MATPLOTLIBRC=str(tmp_path))
    assert package not in ("PIL", "pygame") or "A4 was empty" not in run.stdout
    for line, status in zip(
        lines, re.findall("^status (.)", run.stderr, re.MULTILINE), strict=True
    ):
        missing = [name for name in DRAWING[line].split() if not (tmp_path / name).exists()]
        assert missing == [name for name in DRAWING[line].split() if name in lost.split()], run
        needed = {*missing} - {"t/elo.png", "n/curves.png"}
        assert (line, status) == (line, "2" if needed else "0")
    assert ("pip install 'bao_env[" in run.stderr) == bool(lost)


def test_missing_user_module_is_not_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> Any:
        raise ModuleNotFoundError(name="mine")

    monkeypatch.setattr(cli, "find", find)
    with pytest.raises(ModuleNotFoundError):
        bao(["train"])


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (MemoryError(), 2, "error: not enough memory\n"),
        (MemoryError("the table"), 2, "error: not enough memory: the table\n"),
        (OSError(2, "No such file", "mine"), 2, "error: mine: No such file\n"),
        (OSError("no disk"), 2, "error: no disk\n"),
        (BrokenExecutor(), 1, "error: a worker process died, possibly because memory ran out: "),
        (SystemExit(3), 3, ""),
    ],
)
def test_an_error_has_its_status(
    error: BaseException,
    status: int,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capsys,
) -> None:
    def fail(args: argparse.Namespace) -> None:
        raise error

    monkeypatch.setattr(cli, "find", lambda name: lambda parser: fail)
    assert bao(["replay"]) == status
    assert capsys.readouterr().err.startswith(text)


@pytest.mark.parametrize("status", [None, 0, 3])
def test_a_command_returns_its_status(status: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "find", lambda name: lambda parser: lambda args: status)
    assert bao(["replay"]) == (status or 0)


def test_an_error_of_the_code_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(args: argparse.Namespace) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(cli, "find", lambda name: lambda parser: fail)
    with pytest.raises(RuntimeError, match="a mistake"):
        bao(["replay"])


def test_ctrl_c(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    def stopped(args: argparse.Namespace) -> None:
        raise KeyboardInterrupt("the same command continues")

    monkeypatch.setattr(cli, "find", lambda name: lambda parser: stopped)
    assert bao(["replay"]) == 130
    assert capsys.readouterr().err == "\nstopped: the same command continues\n"


def test_closed_output_is_no_error() -> None:
    """The reader of the output ends early, as with ``bao --help | head``."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-u", "-m", "bao_agents", "--help"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device is always full")
@pytest.mark.parametrize(
    "line", ["bench perft 2", "engine greedy", "match greedy 'pipe:{} engine random' --pairs 1"]
)
def test_results_do_not_need_notices(line: str) -> None:
    """Notices beside a result may be lost; if the result itself cannot be written, one line reports
    the error."""
    bao = [sys.executable, "-m", "bao_agents"]
    command = [*bao, *shlex.split(line.format(shlex.join(bao)))]
    hello = "isready\nseed 2\nisready\n"
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(command, input=hello, stdout=PIPE, stderr=full, text=True)
        buffered = os.environ | {"PYTHONUNBUFFERED": ""}
        error = subprocess.run(
            command, input=hello, stdout=full, stderr=PIPE, text=True, env=buffered
        )
    assert result.returncode == 0 and result.stdout.count("\n") > 1
    assert error.returncode == 2 and "Traceback" not in error.stderr
    assert error.stderr.endswith("error: [Errno 28] No space left on device\n")


def answers(port: int) -> bool:
    """Return whether a server listens on a port of this machine."""
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device is always full")
def test_the_board_needs_nobody_who_reads() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "bao_agents", "play", "--no-browser", "--port", f"{port}"]
    with Path("/dev/full").open("w") as full:
        server = subprocess.Popen(command, stdout=full, stderr=full)
    try:
        deadline = time.monotonic() + 60
        while not answers(port):
            assert server.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        server.kill()
        server.wait()


def test_a_notebook_is_told_where_to_play(capsys: Capsys) -> None:
    async def cell() -> int:
        return bao(["play", "--port", "0"])

    assert asyncio.run(cell()) == 2
    assert "error: a notebook cannot serve the board: run bao play in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "[::1]"),
        ("192.168.1.5", "192.168.1.5"),
    ],
)
def test_the_board_is_served_as_the_options_say(
    host: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    """The page opens at an address of this machine; the board answers under the machine's name."""
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    makers = {
        target: MagicMock()
        for target in ("play.roster.Roster", "play.server.create_app", "play.server.make_server")
    }
    for target, maker in makers.items():
        monkeypatch.setattr(f"bao_agents.{target}", maker)
    listener, timer, serve = MagicMock(), MagicMock(), MagicMock()
    listener.getsockname.return_value = ("address", 8020)
    monkeypatch.setattr(play, "_listen", lambda *address: listener)
    monkeypatch.setattr(play, "_serve", serve)
    monkeypatch.setattr("threading.Timer", timer)
    out = says(f"play greedy --host {host} --port 0 --name proxy --ruleset kibao --seed 5")
    roster, app, server = makers.values()
    page, is_open = f"http://{name}:8020/", host in ("0.0.0.0", "::")
    assert f"The board is at {page} (Ctrl-C stops it)\n" in out
    assert (f"On other machines, open http://{socket.gethostname()}:8020/" in out) == is_open
    roster.assert_called_once_with([Path("runs")], 5, players=["greedy"], ruleset=RULESETS["kibao"])
    app.assert_called_once_with(
        roster.return_value, [socket.gethostname() if is_open else host], ["proxy"]
    )
    serve.assert_called_once_with(server.return_value, listener, owns_process=False)
    assert timer.call_args.args[1:] == (open_page, [page])
    says(f"play --host {host} --no-browser --checkpoints {tmp_path}")
    assert timer.call_count == 1 and roster.call_args.args == ([tmp_path], 0)


def test_a_host_has_its_family_of_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.create_server", create_server := MagicMock())
    for host, family in (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)):
        play._listen(host, 65535)
        create_server.assert_called_with((host, 65535), family=family)
    with pytest.raises(ValueError, match="a port of at most 65535"):
        play._listen("::1", 65536)
    create_server.side_effect = OSError(errno.EADDRINUSE, "Address already in use")
    with pytest.raises(ValueError, match="already in use; --port gives the board another port"):
        play._listen("::1", 8017)


@pytest.mark.parametrize("owns_process", [False, True])
def test_python_is_as_before_when_the_board_ends(
    owns_process: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile, the server's thread runs soon, and games compile in another thread."""
    exits, during, interval = list[int](), list[Any](), sys.getswitchinterval()
    compiling = MagicMock(side_effect=lambda: during.append(threading.current_thread().daemon))

    async def serve(*, sockets: list[Any]) -> None:
        end = time.monotonic() + 10
        while not (is_frozen := gc.get_freeze_count() > 0) and time.monotonic() < end:
            await asyncio.sleep(0.01)
        during.extend([sockets, sys.getswitchinterval(), is_frozen])

    monkeypatch.setattr("bao_agents.play.seated_game.compile_moves", compiling)
    monkeypatch.setattr("os._exit", exits.append)
    server, listener = MagicMock(serve=serve), MagicMock()
    play._serve(server, listener, owns_process=owns_process)
    assert during == [True, [listener], 0.0005, True] and exits == [0] * owns_process
    assert sys.getswitchinterval() == interval and gc.get_freeze_count() == 0


@pytest.mark.parametrize(("name", "is_opened"), [("/usr/bin/w3m", False), ("firefox", True)])
def test_only_graphical_browsers_are_opened(
    name: str, is_opened: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = MagicMock(spec=webbrowser.GenericBrowser)
    browser.name = name
    monkeypatch.setattr(webbrowser, "get", lambda: browser)
    open_page("http://127.0.0.1:8017/")
    assert browser.open.called == is_opened


def test_progress_without_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    seconds = time.monotonic()
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: seconds))
    with progress.Progress(total=3, desc="work") as bar:
        bar.update()
        assert capsys.readouterr().err == ""
        seconds += progress.LINE_SECONDS
        bar.refresh()
    text = capsys.readouterr().err
    assert text.startswith("work:") and text.count("\n") == 1 and "\r" not in text
