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


def _exits(rng: random.Random, folder: Path) -> None:
    os._exit(3)


def _hangs(rng: random.Random, folder: Path) -> None:
    if os.fork() == 0:
        time.sleep(1000)  # whatever it started ends with it
    time.sleep(1000)


@pytest.mark.parametrize(
    ("function", "seconds", "expected"),
    [
        (_harmless, 60, ""),
        (_raises, 60, f"AssertionError: planted {random.Random(5).randrange(1000)}"),
        (_crashes, 60, "died of SIGSEGV"),
        (_exits, 60, "exit status 3"),
        (_hangs, 8, "not finished after 8 s"),
    ],
)
@pytest.mark.slow
def test_a_planted_failure_is_noticed(
    function: attacks.Run, seconds: float, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = soak.watch({"planted": Attack(function, seconds)}, 0, seed=5)
    assert counts == {"planted": soak.Count(1, 1 if expected else 0)}
    out = capsys.readouterr().out
    if expected:
        assert "python -m tests.soak 0 --only planted --seed 5" in out and expected in out
    else:
        assert "FAILED" not in out


def test_status_and_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        soak, "ATTACKS", {"good": Attack(_harmless, 60), "bad": Attack(_raises, 60)}
    )
    assert soak.main(["0", "--only", "bad", "--seed", "3"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].split() == ["|", "bad", "|", "1", "|", "1", "|"]
    assert soak.main(["0", "--only", "good"]) == 0
