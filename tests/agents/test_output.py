"""Test that output which cannot be written stops no work and changes no exit status."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.processes import ROOT

WORK = """
import signal, sys
from bao_agents.support import progress
from bao_agents.support.output import say

progress.LINE_SECONDS = 0.0
signal.signal(signal.SIGTERM, lambda *_: say("stopping"))
for _ in progress.Progress(range(3), mininterval=0.0):
    say("one line")
    say("another", sys.stdout)
    signal.raise_signal(signal.SIGTERM)
sys.exit(7)
"""


@contextmanager
def unwritable(kind: str) -> Iterator[int | None]:
    """Open a pipe or a terminal whose reader is gone, or a full disk."""
    if kind == "closed":
        yield None
        return
    if kind == "full disk":
        file = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, file = os.pipe() if kind == "pipe" else os.openpty()
        os.close(reader)
    yield file
    os.close(file)


@pytest.mark.skipif(os.name == "nt", reason="needs terminals and /dev/full")
@pytest.mark.parametrize("kind", ["pipe", "terminal", "full disk", "closed"])
def test_output_that_cannot_be_written(kind: str) -> None:
    with unwritable(kind) as file:
        close = " >&- 2>&-" if file is None else ""
        command = f'exec "$0" -c "$1"{close}'
        done = subprocess.run(
            ["sh", "-c", command, sys.executable, WORK],
            cwd=ROOT,
            env=os.environ | {"PYTHONUNBUFFERED": ""},
            stdout=file,
            stderr=file,
        )
    assert done.returncode == 7
