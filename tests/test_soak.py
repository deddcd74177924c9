"""The standing watch notices what goes wrong."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests import attacks, soak
from tests.attacks import Attack


def _harmless(rng: random.Random, folder: Path) -> None:
    (folder / "file").write_text(str(rng.random()))


def _raises(rng: random.Random, folder: Path) -> None:
    raise AssertionError(f"planted {rng.randrange(1000)}")


def _crashes(rng: random.Random, folder: Path) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _hangs(rng: random.Random, folder: Path) -> None:
    if os.fork() == 0:
        time.sleep(1000)  # whatever it started ends with it
    time.sleep(1000)


@pytest.mark.parametrize(
    ("function", "seconds", "expected"),
    [(_crashes, 60, "died of SIGSEGV"), (_hangs, 6, "not finished after 6 s")],
)
@pytest.mark.slow
def test_crashes_and_hangs_are_noticed(
    function: attacks.Run, seconds: float, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = soak.watch({"planted": Attack(function, seconds)}, 0, seed=5)
    assert counts == {"planted": soak.Count(1, 1)}
    assert f"planted --seed 5): {expected}" in capsys.readouterr().out


def test_errors_are_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = {"good": Attack(_harmless, 60), "bad": Attack(_raises, 60)}
    monkeypatch.setattr(soak, "ATTACKS", planted)
    assert soak.main(["0", "--only", "bad", "--seed", "3"]) == 1
    out = capsys.readouterr().out
    assert "python -m tests.soak 0 --only bad --seed 3" in out
    assert f"AssertionError: planted {random.Random(3).randrange(1000)}" in out
    assert out.splitlines()[-1].split() == ["|", "bad", "|", "1", "|", "1", "|"]
    assert soak.main(["0", "--only", "good"]) == 0
    assert "FAILED" not in capsys.readouterr().out
