"""Decide how much memory the tables of a search may take."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from bao_agents.support.cores import group_folders
from bao_env.engine.argument_checks import as_integer

MEGABYTE = 1 << 20
MAX_MEGABYTES = 1 << 24
_SHARE = 4
"""A table takes at most one fourth of the free memory unless it has been given more."""
_UNKNOWN = 1 << 32
"""The bytes that count as free if the system does not report free memory."""


def check_memory(memory: object | None) -> int | None:
    """Validate a number of megabytes (2^20 bytes), and return it in bytes; None for None.

    Raises:
        TypeError: the number is not an integer.
        ValueError: the number is out of range, or more than this machine has free.
    """
    if memory is None:
        return None
    megabytes = as_integer(memory, "memory", 1, MAX_MEGABYTES)
    free = free_memory() // MEGABYTE
    if megabytes > free:
        raise ValueError(f"memory={megabytes}: only {free:,} megabytes are free: ask for no more")
    return megabytes * MEGABYTE


def default_memory() -> int:
    """Return the bytes that a table may take if no number is given."""
    return free_memory() // _SHARE


def free_memory() -> int:
    """Return the bytes that this process can still get, from the machine or its container."""
    return min([_free_here(), *_free_in_groups()])


def _free_here() -> int:
    with suppress(OSError, ValueError, IndexError):  # Linux
        words = Path("/proc/meminfo").read_text().split()
        return 1024 * int(words[words.index("MemAvailable:") + 1])
    with suppress(AttributeError, OSError, ValueError):  # macOS, which does not report free memory
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return _UNKNOWN


def _free_in_groups() -> list[int]:
    """Return the bytes left below the limit of each cgroup, version 2 or 1, of this process."""
    free = []
    for folder in group_folders("memory"):
        for limit_file, use_file in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            with suppress(OSError, ValueError):  # "max" for no limit
                limit = int((folder / limit_file).read_text())
                stat = (folder / "memory.stat").read_text().split()
                cached = int(stat[stat.index("inactive_file") + 1])  # freed on demand
                free.append(max(0, limit - int((folder / use_file).read_text()) + cached))
    return free
