"""Test users' networks and methods, named ``module:name``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bao_agents
from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint import CheckpointError
from bao_agents.nets.network import ARCHITECTURES
from bao_training.config import ConfigError
from bao_training.train import METHODS
from tests.conftest import Fails, Says
from tests.training import make, options

README = (Path(__file__).parent.parent / "training" / "README.md").read_text(encoding="utf-8")
MODULE = (
    README.split("```python\n")[1].split("```")[0]
    + """

from pydantic import Field
from bao_training.ppo import PpoConfig

CALLS = []


class OwnConfig(PpoConfig):
    times: int = Field(3, ge=1)
    '''How often.'''


class Mine(Reinforce):
    config_class = OwnConfig

    def train_update(self):
        row = super().train_update()
        CALLS.append((self.method_config.times, row["clip_fraction"]))
        return row


number = 7
"""
)
"""The network and the method of the documentation, and a method with settings."""
TINY = (
    "network_kind=afterstate steps=2048 hidden=[16,8] envs=64 rollout=16 minibatch=512 "
    "evaluate_pairs=2 checkpoint_every=0 "
)


def forget(name: str) -> None:
    """Make this process forget the module."""
    tables: tuple[dict[str, Any], ...] = (ARCHITECTURES, METHODS)
    for table in tables:
        for key in [key for key in table if key.startswith(name)]:
            del table[key]
    sys.modules.pop(name, None)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the name of a new module in the current folder, not yet imported."""
    name = "own_code_of_a_test"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield name
    forget(name)


def run(settings: str) -> str:
    """Return the command for a tiny run."""
    return f"train {options(TINY + settings)} --run own"


@pytest.mark.slow
def test_an_own_network_trains_and_is_loaded_only_when_allowed(
    own: str, says: Says, fails: Fails
) -> None:
    net, path = f"{own}:Net", "runs/own/final.safetensors"
    says(run(f"architecture={net}"))
    forget(own)
    with pytest.raises(CheckpointError, match=rf"is not imported .*--allow {net}"):
        bao_agents.load(path)
    match = f"match {path} random --pairs 2"
    assert f"--allow {net}" in fails(match)
    assert f"--set architecture={net}" in fails("train --run own --resume")
    assert own not in sys.modules
    assert "random" in says(f"{match} --allow {net}")
    assert type(checkpoint.load(path).network.trunk).__name__ == "Net"
    forget(own)
    says(run(f"architecture={net}") + " --resume")


@pytest.mark.slow
def test_an_own_method_trains_and_resumes(own: str, says: Says, fails: Fails) -> None:
    settings = f"method={own}:Mine Mine.times=5"
    says(run(settings))
    assert set(sys.modules[own].CALLS) == {(5, 0.0)}
    forget(own)
    refused = fails("train --run own --resume")
    assert "is imported only if a file or --set names it" in refused
    assert own not in sys.modules
    says(run(settings) + " --resume")
    with pytest.raises(ConfigError, match=r"Mine.times=0 should be greater"):
        make(f"{settings} Mine.times=0")


@pytest.mark.parametrize(
    "setting, message",
    [
        ("architecture=nowhere_at_all:Net", "ModuleNotFoundError.*PYTHONPATH"),
        ("architecture={own}:Missing", "no attribute 'Missing'"),
        ("architecture={own}:number", "is 7: expected a module's class"),
        ("architecture=os:system", "expected a module's class"),
        ("method={own}:Net", "expected a bao_training.trainer.Trainer"),
    ],
)
def test_what_cannot_be_used_is_refused(own: str, setting: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(setting.format(own=own))
