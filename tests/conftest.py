"""Define shared fixtures, and the options --slow and --seed."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from starlette.testclient import TestClient

Says = Callable[[str], str]
"""The type of the fixture ``says``."""
Fails = Callable[..., str]
"""The type of the fixture ``fails``."""
Capsys = pytest.CaptureFixture[str]
"""The type of the fixture ``capsys``."""

pytest.register_assert_rewrite("tests.record")  # its assertions then show differences
os.environ.setdefault("BAO_ENV_QUIET", "1")  # some tests compare stderr
os.environ.setdefault("OMP_NUM_THREADS", "1")  # more threads of torch would fight over the cores
settings.register_profile("tests", deadline=None)  # a busy machine may take long for anything
settings.load_profile("tests")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell script:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # processes of tests inherit it


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--slow` and `--seed`."""
    parser.addoption("--slow", action="store_true", help="run slow tests, and others longer")
    parser.addoption("--seed", type=int, help="run only random tests, with this seed")


@pytest.hookimpl(trylast=True)  # after hypothesis has marked its tests
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select random tests by `--seed`; skip slow tests without `--slow`, unless a test is named."""
    if config.getoption("seed") is not None:
        items[:] = [
            item
            for item in items
            if "seed" in getattr(item, "fixturenames", ()) or item.get_closest_marker("hypothesis")
        ]
    if config.getoption("slow") or any("::" in argument for argument in config.args):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow: --slow runs it"))


@pytest.fixture(scope="session")
def thorough(request: pytest.FixtureRequest) -> bool:
    """Return whether there is time to draw many examples."""
    return bool(request.config.getoption("slow"))


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    """Return the seed for a test of random games; always 0 without `--seed`."""
    return request.config.getoption("seed") or 0


@pytest.fixture
def says(capsys: Capsys) -> Says:
    """Run ``bao`` with the words of a line, check that it succeeds, and return its stdout."""
    from bao_agents.cli.main import main

    def run(line: str) -> str:
        assert main(shlex.split(line.replace(os.sep, "/"))) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def fails(capsys: Capsys) -> Fails:
    """Run ``bao`` with the words of a line, check its exit status, and return its stderr."""
    from bao_agents.cli.main import main

    def run(line: str, status: int = 2) -> str:
        assert main(shlex.split(line.replace(os.sep, "/"))) == status
        output = capsys.readouterr()
        assert status != 2 or not output.out
        return output.err

    return run


@pytest.fixture(scope="module")
def client() -> TestClient:
    """Return a client of a board server; the tests of a file share it."""
    from tests.play import make_client

    return make_client()


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the board wait for a bot's first move, which may have to compile."""
    monkeypatch.setattr("bao_agents.play.api.BOT_TIMEOUT", 600.0)


@pytest.fixture
def headless(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Draw pictures without a screen, and without waiting between frames."""
    from bao_env import BaoEnv, raw_env

    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    for metadata in (raw_env.metadata, BaoEnv.metadata):
        monkeypatch.setitem(metadata, "render_fps", 10_000)
    yield
    if "pygame" in sys.modules:
        sys.modules["pygame"].display.quit()
