"""Test the notice that functions are being compiled, and a cache that is damaged or cannot be
written.

``bao warm-up`` compiles for minutes: ``tests/wheel/run --warm-up train`` runs all of it.
"""

from __future__ import annotations

import logging
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bao_agents.players.registry import PLAYERS
from bao_env.board import Board
from bao_env.compiled import notice
from bao_env.observation.observer import OBSERVATIONS
from bao_training.commands import warm_up
from tests.conftest import Capsys, Fails, Says
from tests.processes import python

SLOW = pytest.mark.slow


def run(code: str, cache: Path, quiet: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python in its own process, which prints notices."""
    return python(code, NUMBA_CACHE_DIR=str(cache), BAO_ENV_QUIET=quiet)


LEGAL = (
    "import numpy as np; from bao_env.engine.masks import are_legal; "
    "print(int(are_legal(np.array([1]), np.array([2], np.uint64))))"
)
"""Code that compiles little, and prints 1."""

HASTE = "import itertools, time; time.monotonic = itertools.count(0, 5).__next__"
"""Code after which the clock gains 5 s each time it is read, so that notices are printed."""


FUNCTIONS: list[Callable[[], None]] = [lambda: None for _ in range(4)]
"""Functions that are never compiled. Only the first three are announced."""


@pytest.fixture
def send(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that sends the events of compiling, each with its time."""
    monkeypatch.delenv("BAO_ENV_QUIET", raising=False)
    monkeypatch.setattr(notice, "_functions", set())
    for function in FUNCTIONS[:3]:
        notice.announce(function)

    def send(listener: Any, *events: tuple[float, str, int], folder: str | None = "cache") -> None:
        for seconds, kind, number in events:
            monkeypatch.setattr(time, "monotonic", lambda seconds=seconds: seconds)
            stats = SimpleNamespace(cache_path=folder)
            dispatcher = SimpleNamespace(py_func=FUNCTIONS[number], stats=stats)
            getattr(listener, f"on_{kind}")(SimpleNamespace(data={"dispatcher": dispatcher}))

    return send


def test_notices_come_after_seconds_of_compiling(
    send: Callable[..., None], capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first comes after 2 s, the others 15 s apart; other functions do not count."""
    listener = notice._Notice()
    send(listener, (100, "start", 0), (101, "start", 1), (101.5, "end", 1))
    send(listener, (101.75, "start", 3), (101.875, "end", 3))
    assert capsys.readouterr().err == ""
    send(listener, (102, "end", 0))
    assert capsys.readouterr().err == (
        "bao_env: compiling what is used here for the first time (bao warm-up compiles everything "
        "in advance)\n"
    )
    send(listener, (500, "start", 0), (501, "end", 0), (600, "start", 0), (613, "start", 1))
    assert capsys.readouterr().err == ""  # 16 s of compiling
    send(listener, (614, "end", 1))
    assert capsys.readouterr().err == "bao_env: compiling, 2 of at most 3 functions\n"
    send(listener, (615, "end", 0))
    assert capsys.readouterr().err == ""
    send(notice._Notice(), (0, "start", 0), (2, "end", 0), folder=None)
    assert capsys.readouterr().err == (
        "bao_env: compiling, at every start: no cache folder is writable; set NUMBA_CACHE_DIR\n"
    )
    monkeypatch.setenv("BAO_ENV_QUIET", "1")
    send(notice._Notice(), (0, "start", 0), (2, "end", 0))
    monkeypatch.setenv("BAO_ENV_QUIET", "")
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", None)
        send(notice._Notice(), (0, "start", 0), (2, "end", 0))
    assert capsys.readouterr() == ("", "")


def test_numbas_debug_lines_stay_out_of_a_log(send: Callable[..., None]) -> None:
    listener, logger = notice._DebugLog(), logging.Logger("numba", logging.NOTSET)
    listener._logger = logger

    def levels(*events: tuple[str, int]) -> list[int]:
        levels_after = []
        for kind, number in events:
            send(listener, (0, kind, number))
            levels_after.append(logger.level)
        return levels_after

    nested = ("start", 3), ("start", 0), ("start", 1), ("end", 1), ("end", 3), ("end", 0)
    warned = [logging.NOTSET, *[logging.WARNING] * 4, logging.NOTSET]
    assert levels(*nested) == warned == levels(*nested)
    logger.setLevel(logging.DEBUG)  # the program's own level
    assert levels(*nested) == [logging.DEBUG] * 6
    listener = notice._DebugLog()
    listener._logger = logger
    assert levels(*nested) == [logging.DEBUG] * 6


def test_what_bao_warm_up_runs(monkeypatch: pytest.MonkeyPatch, says: Says, fails: Fails) -> None:
    """Every player that is named without a file chooses a move, which is told in words."""
    monkeypatch.setenv("BAO_ENV_QUIET", "1")
    observed, traced, updates = list[str](), list[str](), list[str]()

    def player(name: str) -> SimpleNamespace:
        return SimpleNamespace(choose=lambda board: name)

    monkeypatch.setattr(warm_up, "games", observed.append)
    monkeypatch.setattr(warm_up, "training", lambda: updates.append("all"))
    monkeypatch.setattr(warm_up, "load", player)
    monkeypatch.setattr(Board, "trace", lambda board, move: traced.append(move))
    says("warm-up")
    assert observed == [*OBSERVATIONS] and updates == ["all"]
    left_out = {name for name in PLAYERS if name not in traced}
    assert traced and all(re.match(r"runs/|pipe:|package\.", name) for name in left_out)
    monkeypatch.setattr(warm_up, "not_kept", {test_what_bao_warm_up_runs})
    assert "set NUMBA_CACHE_DIR to a writable folder" in fails("warm-up")
    assert len(observed) == len(OBSERVATIONS)  # it fails at once


@SLOW
def test_compiling_prints_notices(tmp_path: Path) -> None:
    code = f"{HASTE}; import bao_env; bao_env.Board().push('A6L')"
    cold, warm = (run(code, tmp_path / "cache").stderr for _ in range(2))
    first, *progress = cold.splitlines()
    assert first.startswith("bao_env: compiling what is used here for the first time (bao warm-up")
    counts = [(int(line.split()[2]), int(line.split()[6])) for line in progress]
    expected = [f"bao_env: compiling, {done} of at most {of} functions" for done, of in counts]
    assert progress == expected and counts and counts == sorted(counts)
    assert all(done <= of for done, of in counts)
    assert len(counts) < counts[-1][0]  # 15 s apart, and so not one for each function
    assert warm == ""
    assert run(f"import time; time.monotonic = int; {LEGAL}", tmp_path / "brief").stderr == ""
    logged = f"{HASTE}; import logging; logging.basicConfig(level=logging.DEBUG); {LEGAL}"
    assert run(logged, tmp_path / "other cache", quiet="1").stderr == ""


@SLOW
@pytest.mark.parametrize(("suffix", "length"), [("nbi", 40), ("nbc", 0)])
def test_damaged_cache_is_written_again(suffix: str, length: int, tmp_path: Path) -> None:
    run(LEGAL, tmp_path)
    [file] = tmp_path.rglob(f"*are_legal*.{suffix}")
    file.write_bytes(file.read_bytes()[:length])
    second, third = (run(f"{HASTE}; {LEGAL}", tmp_path) for _ in range(2))
    assert second.stdout == "1\n" and "compiling" in second.stderr
    assert third.stdout == second.stdout and third.stderr == ""


REFUSE = (
    "from numba.core.caching import _CacheLocator; _CacheLocator.ensure_cache_path = "
    "lambda self: open('/')"
)
"""Code after which no folder is writable; root could write anywhere."""


@SLOW
def test_a_cache_that_cannot_be_written_is_read(tmp_path: Path) -> None:
    """In a container the cache is part of the image, and the home folder is empty."""
    cache, home = tmp_path / "cache", tmp_path / "home"
    home.mkdir()
    run(LEGAL, cache)
    folders = [cache, *(path for path in cache.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    done = python(
        f"{REFUSE}\n{HASTE}; {LEGAL}", HOME=str(home), NUMBA_CACHE_DIR=str(cache), BAO_ENV_QUIET=""
    )
    assert (done.stdout, done.stderr) == ("1\n", "") and not list(home.iterdir())
    for folder in folders:
        folder.chmod(0o755)


@SLOW
@pytest.mark.parametrize(
    "refuse",
    [  # a full disk, on which Python must not write its own cache; and no writable folder
        "import resource as r, sys; sys.dont_write_bytecode = True; "
        "r.setrlimit(r.RLIMIT_FSIZE, (200, r.RLIM_INFINITY))",
        REFUSE,
    ],
)
def test_what_cannot_be_kept_is_played_all_the_same(refuse: str, tmp_path: Path) -> None:
    warm_up = "from bao_training.commands.warm_up import _run; _run(None)"
    done = run(f"{refuse}\n{LEGAL}\ntry: {warm_up}\nexcept OSError as e: print(e)", tmp_path)
    assert done.stdout.startswith("1\ncompiled code cannot be cached; set NUMBA_CACHE_DIR")
