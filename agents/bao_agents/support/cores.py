"""Count the cores that this process may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
"""The folder where Linux shows the limits of control groups, such as containers."""
PROCESS = Path("/proc/self/cgroup")
"""The file that lists the control groups of this process."""


def cores() -> int:
    """Return how many cores this process may use, at least 1.

    The number is the smallest that ``taskset``, a container's set of cores, a container's quota of
    processor time and ``SLURM_CPUS_PER_TASK`` allow.
    """
    count = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        count = len(os.sched_getaffinity(0))
    slurm_cores = os.environ.get("SLURM_CPUS_PER_TASK", "")
    count = min(count, int(slurm_cores) or count) if slurm_cores.isdecimal() else count
    return max(1, min([count, *_quotas()]))


def _quotas() -> Iterator[int]:
    """Yield the number of cores that each control group of this process and its parents allow."""
    for folder in group_folders("cpu"):
        for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
            with suppress(OSError, ValueError):  # "50000 100000"; "max" or -1 for no quota
                quota, period = " ".join((folder / name).read_text() for name in names).split()
                if int(quota) > 0:
                    yield int(quota) // int(period)


def group_folders(controller: str) -> Iterator[Path]:
    """Yield the folders of the control groups of this process and of their parents.

    Args:
        controller: the kind of limits, such as ``cpu`` or ``memory``.
    """
    groups = PROCESS.read_text().splitlines() if PROCESS.exists() else []
    for line in groups:  # "0::/a/b" in version 2, "4:cpu,cpuacct:/a/b" in version 1
        _, controllers, path = line.split(":", 2)
        mounted = CGROUPS / (controller if controller in controllers.split(",") else "")
        group = mounted / path.strip("/")
        yield from (group, *group.parents)
