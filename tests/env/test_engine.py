"""Test the engine on a batch: invalid arrays, threads, processes and the cache."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from bao_env import Engine, game
from bao_env.compiled import threads
from bao_env.engine import batch
from bao_env.engine.position import PLY
from bao_env.engine.sampling import random_states
from tests.processes import python

SIZE = 600  # more than one block, so that two threads share it

Arrays = dict[str, Any]


def games(engine: Engine, size: int = SIZE) -> Arrays:
    """Return the arguments of the engine's calls for a batch of openings."""
    positions, legal, winners = engine.new_games(size)
    return {
        "positions": positions,
        "legal": legal,
        "winners": winners,
        "actions": np.full(size, 20),
        "rng": random_states(size, 1),
        "plies": 30,
    }


CALLS = {
    "find_legal": ("positions", "legal", "winners"),
    "step": ("positions", "actions", "legal", "winners"),
    "play_random": ("positions", "legal", "winners", "rng", "plies"),
}


def call(engine: Engine, name: str, arrays: Arrays, **options: Any) -> Any:
    """Call a method of the engine, and return its result."""
    return getattr(engine, name)(*(arrays[key] for key in CALLS[name]), **options)


@pytest.mark.parametrize("method", CALLS)
def test_an_empty_batch(method: str) -> None:
    engine = Engine(threads=2)
    call(engine, method, games(engine, 0))


def test_a_second_thread_raises() -> None:
    """The second thread's games stay as they were, and afterwards the engine is free again."""
    engine = Engine()
    mine, theirs = games(engine), games(engine)

    def meanwhile(part: slice) -> None:
        with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="another thread"):
            pool.submit(call, engine, "step", theirs).result()

    call(engine, "step", mine, on_part_done=meanwhile)
    np.testing.assert_array_equal(theirs["positions"], games(engine)["positions"])
    mine["positions"][:], mine["legal"][:], mine["winners"][:] = engine.new_games(SIZE)
    call(engine, "play_random", mine | {"plies": 3})
    assert (mine["positions"][:, PLY] == 3).all()


def test_ctrl_c_has_its_chance_between_random_plies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plies are played in pieces, which do not change the games."""
    engine, pieces = Engine(), list[int]()
    at_once, one_by_one = games(engine), games(engine)

    def run(size: int, work: Any) -> None:
        pieces.append(size)
        work(slice(0, size))

    with monkeypatch.context() as patched:
        patched.setattr(engine, "run_in_blocks", run)
        ended = call(engine, "play_random", at_once | {"plies": 500})
    assert pieces == [SIZE] * 3
    ends = [call(engine, "play_random", one_by_one | {"plies": n}) for n in (218, 218, 64)]
    assert ended == sum(ends) and min(ends) > SIZE / 4
    np.testing.assert_array_equal(at_once["positions"], one_by_one["positions"])


def test_threads_share_whole_blocks() -> None:
    parts: list[slice] = []
    call(Engine(threads=2), "step", games(Engine(), 1100), on_part_done=parts.append)
    assert {(part.start, part.stop) for part in parts} == {(0, 512), (512, 1100)}


def test_an_error_leaves_no_thread_at_work() -> None:
    engine = Engine(threads=2)
    started, done = threading.Event(), threading.Event()

    def part_done(part: slice) -> None:
        if part.start == 0:
            started.wait()
            raise KeyboardInterrupt
        started.set()
        time.sleep(0.2)
        done.set()

    with pytest.raises(KeyboardInterrupt):
        call(engine, "step", games(engine), on_part_done=part_done)
    assert done.is_set()


def test_threads_end_with_their_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, serve = SimpleQueue[None](), threads._serve

    def serve_and_note(jobs: SimpleQueue[threads.Job | None]) -> None:
        serve(jobs)
        ended.put(None)

    monkeypatch.setattr(threads, "_serve", serve_and_note)
    engine = Engine(threads=9)
    call(engine, "step", games(engine))
    del engine
    for _ in range(8):
        ended.get(timeout=30)


def test_only_long_calls_release_the_gil() -> None:
    """A thread that makes many brief calls would keep the others waiting."""
    options: list[Any] = [batch.step_batch, game._advance]
    assert [function.targetoptions["nogil"] for function in options] == [True, False]


def test_compiled_functions_count_no_references_to_arrays() -> None:
    """Counting them would slow down every function that receives an array."""
    function: Any = batch.step_batch
    assert not function.targetoptions["_nrt"]


def test_functions_for_compiled_code_refuse_python() -> None:
    inner: Any = batch._restart_finished
    with pytest.raises(TypeError, match=r"^_restart_finished\(\) has no Python wrapper"):
        inner(*[np.zeros(1)] * 5)


def _play_in_a_fork(engine: Engine, arrays: Arrays, queue: Any) -> None:
    call(engine, "play_random", arrays)
    queue.put(arrays["positions"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_an_engine_with_threads_works_in_a_forked_process() -> None:
    """The engine plays there as an engine with one thread does."""
    engine = Engine(threads=2)
    arrays = games(engine)
    call(engine, "play_random", arrays)  # now it has a pool of threads
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_play_in_a_fork, args=(engine, arrays, queue), daemon=True)
    child.start()
    try:
        played = queue.get(timeout=30)
    finally:
        child.kill()
    call(Engine(), "play_random", arrays)
    np.testing.assert_array_equal(played, arrays["positions"])


@pytest.mark.slow
def test_stale_kernels_are_dropped_wherever_the_cache_is(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    header = "from bao_env.compiled.compile import jit\n"
    outer = "from package.inner import rule\n\n@jit\ndef play():\n    return rule()\n"
    (package / "outer.py").write_text(header + outer)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    for rule, hits in (1, 0), (1, 1), (2, 0):
        (package / "inner.py").write_text(f"{header}\n@jit\ndef rule():\n    return {rule}\n")
        command = "from package.outer import play; print(play(), len(play.stats.cache_hits))"
        run = python(
            command,
            NUMBA_CACHE_DIR=str(tmp_path / "cache"),
            PYTHONPATH=path,
            PYTHONDONTWRITEBYTECODE="1",  # Python would miss a change within a second
        )
        assert run.stdout.split() == [str(rule), str(hits)]
    assert list((tmp_path / "cache").rglob("*.nbc"))


@pytest.mark.parametrize("first", ["", "import numba; "])
def test_settings_of_numba_in_the_current_folder_do_nothing(tmp_path: Path, first: str) -> None:
    """Numba's index files are pickles, and any folder may contain a settings file that names their
    place."""
    (tmp_path / ".numba_config.yaml").write_text("cache_dir: planted")
    own = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}

    def settings(**variables: str) -> list[str]:
        names = "CACHE_DIR", "CACHE_LOCATOR_CLASSES", "CHROME_TRACE", "ANNOTATE"
        program = (
            f"{first}import bao_env; from numba.core import config; "
            f"print(*(getattr(config, name) for name in {names}))"
        )
        command = [sys.executable, "-c", program]
        environment = own | variables
        return subprocess.check_output(command, cwd=tmp_path, env=environment, text=True).split()

    assert settings() == ["0"]
    users = str(tmp_path / "users")
    assert settings(NUMBA_CACHE_DIR=users) == [users, "0"]
    assert {path.name for path in tmp_path.iterdir()} == {".numba_config.yaml", "users"}


PROGRAM = """
import os
from numba.core import config
import numba
config.THREADING_LAYER, config.CACHE_DIR, config.NUMBA_NUM_THREADS = "omp", "cache", 1
import bao_env
numba.njit(lambda: 1)()
print(config.THREADING_LAYER, config.CACHE_DIR, config.NUMBA_NUM_THREADS)
print([name for name in os.environ if name.startswith("NUMBA_")])
"""


def test_settings_of_numba_in_the_program_stay() -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    for program in (PROGRAM, PROGRAM.replace("import os", "import os, bao_env")):
        printed = subprocess.check_output([sys.executable, "-c", program], env=own, text=True)
        assert printed.splitlines() == ["omp cache 1", "[]"]
