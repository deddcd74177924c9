"""Count the cores that this process may use."""

from __future__ import annotations

import os


def cores() -> int:
    """Return how many cores this process may use, at least 1.

    That is its share of the machine: by ``taskset`` or a container's set of cores, or
    ``SLURM_CPUS_PER_TASK`` if that is less.
    """
    count = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        count = len(os.sched_getaffinity(0))
    asked = os.environ.get("SLURM_CPUS_PER_TASK", "")
    return min(count, int(asked) or count) if asked.isdecimal() else count
