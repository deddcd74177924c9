"""Test opponents by name."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from bao_env import BaoEnv
from bao_env.bots import get_agent
from tests.positions import draw

pytestmark = pytest.mark.filterwarnings("error")


def test_unknown_opponents_raise_without_players(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bao_env.player_packages.entry_points", lambda group: ())
    with pytest.raises(ValueError, match=r"unknown opponent 'gredy' \(did you mean 'greedy'\?\)"):
        BaoEnv("gredy")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def load(name, **_): return 5", "load returned 5: expected an agent"),
        ("other = None", "failed: AttributeError: .*no attribute 'load'"),
        ("raise SystemExit('end')", "failed: SystemExit: end"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_package_that_fails_is_named(
    code: str, message: str, first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The players of other packages are still available."""
    module = f"failing{abs(hash(code))}"
    (tmp_path / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    group = "bao_env.players"
    ours = EntryPoint("agents", "bao_agents.players.registry:load_ours", group)
    entries = [EntryPoint("failing-package", f"{module}:load", group), ours][:: 1 if first else -1]
    monkeypatch.setattr("bao_env.player_packages.entry_points", lambda group: entries)
    assert get_agent("alphabeta:2").act(*draw("zanzibar", 2)).shape
    expected = f"unknown player 'nobody'.*package failing-package .*{message}"
    with pytest.raises(ValueError, match=expected):
        get_agent("nobody")
