"""Count the cores that this process may use."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
"""Where Linux shows the limits of containers."""


def cores() -> int:
    """Return how many cores this process may use, at least 1.

    That is its share of the machine: by ``taskset``, a container's set of cores or its quota of
    processor time, or ``SLURM_CPUS_PER_TASK`` if that is less.
    """
    count = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        count = len(os.sched_getaffinity(0))
    asked = os.environ.get("SLURM_CPUS_PER_TASK", "")
    count = min(count, int(asked) or count) if asked.isdecimal() else count
    return max(1, min(count, _quota(count)))


def _quota(most: int) -> int:
    """Return the whole cores that a container's quota allows; ``most`` without a quota."""
    with suppress(OSError, ValueError):  # version 2: "50000 100000", or "max 100000"
        quota, period = (CGROUPS / "cpu.max").read_text().split()
        return int(quota) // int(period)
    with suppress(OSError, ValueError):  # version 1: -1 without a quota
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        spent, each = (int((CGROUPS / "cpu" / name).read_text()) for name in names)
        return spent // each if spent > 0 else most
    return most
