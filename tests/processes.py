"""Run Python and the command ``bao`` in their own processes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def python(
    program: str, *, status: int = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in a fresh Python, and check its exit status."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stderr
    return done


def start(line: str) -> subprocess.Popen[str]:
    """Start ``bao`` with the words of a line."""
    return subprocess.Popen(
        [sys.executable, "-m", "bao_agents", *shlex.split(line)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
