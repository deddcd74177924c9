"""Which tests run: slow ones on request, and none whose optional packages are not installed. What
the tests of several files are given."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from starlette.testclient import TestClient

OPTIONAL: Final = {
    "PIL": "picture",
    "cachetools": "play",
    "httpx2": "test",
    "importlinter": "test",
    "matplotlib": "train",
    "pydantic": "train",
    "pygame": "render",
    "safetensors": "train",
    "scipy": "train",
    "starlette": "play",
    "tabulate": "train",
    "tensorboard": "train",
    "torch": "train",
    "tqdm": "train",
    "uvicorn": "play",
}
"""Packages that the environments do without, and the extra in pyproject.toml that brings each."""

os.environ.setdefault("BAO_ENV_QUIET", "1")  # stderr is what a test looks at
os.environ.setdefault("OMP_NUM_THREADS", "1")  # more threads of torch would fight over the cores

MISSING: Final = {package for package in OPTIONAL if find_spec(package) is None}


def how_to_get(package: str) -> str:
    """Why a test is skipped."""
    return f"needs {package}: pip install -e '.[{OPTIONAL[package]}]'"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--slow`."""
    parser.addoption(
        "--slow", action="store_true", help="run the slow tests too, the others more thoroughly"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip slow tests, unless they are asked for all together or one by its name."""
    if config.getoption("slow") or any("::" in argument for argument in config.args):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow: --slow runs it"))


@pytest.fixture(scope="session")
def thorough(request: pytest.FixtureRequest) -> bool:
    """Whether there is time to draw many examples."""
    return bool(request.config.getoption("slow"))


@pytest.fixture(scope="module")
def client() -> TestClient:
    """Asks a server of the board; a file's tests share it."""
    from tests.play import make_client

    return make_client()


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first move of a bot on the board may have to wait for the compiler."""
    monkeypatch.setattr("agents.play.api.BOT_TIMEOUT", 600.0)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip a file of tests that cannot be imported for want of an optional package."""
    report = yield
    if report.failed:
        absent = re.findall(r"ModuleNotFoundError: No module named '(\w+)", str(report.longrepr))
        if absent and absent[-1] in MISSING:
            report.outcome = "skipped"
            report.longrepr = (str(collector.path), 0, f"Skipped: {how_to_get(absent[-1])}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Skip a test that comes to an optional package on its way."""
    try:
        return (yield)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in MISSING:
            pytest.skip(how_to_get(package))
        raise
