"""Test the notice that functions are being compiled, and a cache that is damaged or cannot be
written.

``tests/wheel/run --warm-up train`` tests ``bao warm-up``, because that compiles for minutes.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.processes import python

pytestmark = pytest.mark.slow


def run(code: str, cache: Path, quiet: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python in its own process, which prints notices."""
    return python(code, NUMBA_CACHE_DIR=str(cache), BAO_ENV_QUIET=quiet)


LEGAL = (
    "import numpy as np; from bao_env.engine.masks import is_legal; "
    "print(is_legal(np.array([1]), np.array([2], np.uint64)).sum())"
)
"""Code that compiles little, and prints 1."""

HASTE = "import itertools, time; time.monotonic = itertools.count(0, 5).__next__"
"""Code after which the clock gains 5 s each time it is read, so that notices are printed."""


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


@pytest.mark.parametrize(("suffix", "length"), [("nbi", 40), ("nbc", 0)])
def test_damaged_cache_is_written_again(suffix: str, length: int, tmp_path: Path) -> None:
    run(LEGAL, tmp_path)
    [file] = tmp_path.rglob(f"*is_legal*.{suffix}")
    file.write_bytes(file.read_bytes()[:length])
    second, third = (run(f"{HASTE}; {LEGAL}", tmp_path) for _ in range(2))
    assert second.stdout == "1\n" and "compiling" in second.stderr
    assert third.stdout == second.stdout and third.stderr == ""


REFUSE = (
    "from numba.core.caching import _CacheLocator; _CacheLocator.ensure_cache_path = "
    "lambda self: open('/')"
)
"""Code after which no folder is writable; root could write anywhere."""


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
