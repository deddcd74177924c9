"""Test the command ``bao``: its table, shared options, errors and Ctrl-C."""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bao_agents.cli import main as cli
from bao_agents.cli.main import COMMANDS
from bao_agents.cli.main import main as bao
from bao_agents.support import progress
from bao_env.notation.transcript import parse_transcripts
from tests.conftest import Capsys, Fails
from tests.processes import python


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: Capsys) -> None:
    assert bao([*name.split(), "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: bao {name}") and "--quiet" in text
    assert max(map(len, text.splitlines())) <= 100 and "in elo" not in text


def test_overview(capsys: Capsys) -> None:
    assert bao(["--help"]) == 0
    out = capsys.readouterr().out
    assert bao([]) == 0 and capsys.readouterr().out == out
    listed = [line.split()[0] for line in out.splitlines() if line.startswith("  ")]
    assert listed == [name.split()[0] for name in COMMANDS] and len(set(listed)) <= 14
    assert bao(["--version"]) == 0


def test_the_environment_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TQDM_DISABLE", "0")
    before = dict(os.environ)
    assert bao(["players", "--quiet"]) == 0
    assert dict(os.environ) == before


@pytest.mark.parametrize("line", ["players", "replay game"])
def test_output_is_not_limited_to_ascii(line: str, tmp_path: Path) -> None:
    """What the terminal cannot show becomes an escape."""
    (tmp_path / "runs" / "Ba\u0175o").mkdir(parents=True)
    (tmp_path / "runs" / "Ba\u0175o" / "last.safetensors").touch()
    (tmp_path / "game").write_text("south: Ba\u0175o\n1: 7L*;", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "bao_training", *line.split()],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii() and r"Ba\u0175o" in done.stdout


@pytest.mark.parametrize(
    ("line", "heavy"), [("--help", {"numba", "torch", "bao_env"}), ("train --help", {"torch"})]
)
def test_help_is_quick(line: str, heavy: set[str]) -> None:
    """The help imports no large package."""
    program = f"import sys; from bao_agents.cli.main import main; main({line.split()})"
    python(f"{program}; assert not {heavy} & sys.modules.keys()")


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


def test_missing_user_module_is_not_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> Any:
        raise ModuleNotFoundError(name="mine")

    monkeypatch.setattr(cli, "find", find)
    with pytest.raises(ModuleNotFoundError):
        bao(["train"])


def test_ctrl_c(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    def stopped(args: argparse.Namespace) -> None:
        raise KeyboardInterrupt("the same command continues")

    monkeypatch.setattr(cli, "find", lambda name: lambda parser: stopped)
    assert bao(["replay"]) == 130
    assert capsys.readouterr().err == "\nstopped: the same command continues\n"


def test_closed_output_is_no_error() -> None:
    """It happens with ``bao --help | head``."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "bao_training", "bench", "perft", "3"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
def test_results_that_cannot_be_printed_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And those that cannot be written are printed: nobody plays the games again."""
    games, results = tmp_path / "games.txt", tmp_path / "results.json"
    line = f"match random greedy --pairs 1 --games {games} --json {results}"
    with io.TextIOWrapper(open("/dev/full", "wb", buffering=0), write_through=True) as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert bao(line.split()) == 2
    assert len(parse_transcripts(games.read_text())) == 2
    assert len(json.loads(results.read_text())["results"]) == 1
    said = io.StringIO()
    monkeypatch.setattr(sys, "stdout", said)
    monkeypatch.setattr("os.fsync", lambda file: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        bao(line.split())
    assert "random" in said.getvalue()


def test_progress_without_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    now = time.monotonic()
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now))
    with progress.Progress(total=3, desc="work") as bar:
        bar.update()
        assert capsys.readouterr().err == ""
        now += progress.LINE_SECONDS
        bar.refresh()
    said = capsys.readouterr().err
    assert said.startswith("work:") and said.count("\n") == 1 and "\r" not in said


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="Windows has no endless file")
def test_an_endless_file_is_not_read(fails: Fails) -> None:
    assert "/dev/zero: a device, not a file of games" in fails("replay /dev/zero")
