"""Run every test that draws at random, again and again with fresh seeds, until the time is up.

    python -m tests.soak 60                                  # for an hour
    python -m tests.soak 60 tests/test_kernel.py             # with the tests of some files
    python -m pytest --slow --seed 17 --hypothesis-seed 17   # again, as it was with seed 17

The tests are those of hypothesis and those with the fixture ``seed``. A failure, a crash and a hang
print the seed; the soak continues and ends with status 1.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from pathlib import Path

_HANGS_AFTER = 7200.0
"""Seconds for one round."""


def _status(seed: int, paths: list[str]) -> int | str:
    """Run one round; returns pytest's exit status, or what happened instead."""
    options = ["--slow", f"--seed={seed}", f"--hypothesis-seed={seed}", "-q", *paths]
    try:
        return subprocess.run(
            [sys.executable, "-m", "pytest", *options],
            cwd=Path(__file__).parent.parent,
            timeout=_HANGS_AFTER,
        ).returncode
    except subprocess.TimeoutExpired:
        return f"no end after {_HANGS_AFTER:g} s"


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m tests.soak``."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("minutes", type=float, metavar="MINUTES")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files of tests; default: all")
    parser.add_argument("--seed", type=int, help="of the first round; default: another each time")
    args = parser.parse_args(argv)
    seed = random.SystemRandom().randrange(1 << 31) if args.seed is None else args.seed
    end = time.monotonic() + 60 * args.minutes
    failed = []
    while True:
        status = _status(seed, args.paths)
        if status:
            failed.append(seed)
        print(f"seed {seed}: {f'FAILED ({status})' if status else 'passed'}", flush=True)
        seed += 1
        if time.monotonic() >= end:
            break
    if failed:
        print("failed seeds:", *failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
