"""Check that a run fits into memory, and let the process keep the memory that it has.

Training allocates the same large tensors again and again. glibc returns large blocks to the system
as soon as they are freed, and the system maps and zeroes every page before its next use. That took
a fifth of the training time when measured.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import torch
from bao_agents.nets.network import num_parameters

from bao_training.config import ConfigError, MethodConfig, TrainConfig

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8


def keep_freed_memory() -> None:
    """Ask glibc, where there is one, to reuse freed memory in all threads.

    Call it before threads start, so that they share one arena.
    """
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):  # another C library
            mallopt = ctypes.CDLL("libc.so.6").mallopt
            mallopt(_M_ARENA_MAX, 1)
            mallopt(_M_MMAP_THRESHOLD, 1 << 30)
            mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def free_memory(device: torch.device) -> int:
    """Return the bytes that this process can still get on a device; without Linux, all of the
    CPU's memory."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        found = re.search(r"MemAvailable: *(\d+) kB", Path("/proc/meminfo").read_text())
    except OSError:
        found = None
    if found:
        return int(found[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_memory(
    config: TrainConfig, method_config: MethodConfig, device: torch.device, workers: int
) -> None:
    """Refuse a run that cannot fit into memory, before any of it is built.

    The estimate is low: it leaves out activations and search trees.

    Args:
        config, method_config: the settings.
        device: the device of the network.
        workers: the number of workers in this process.

    Raises:
        ConfigError: the run needs more memory than is free.
    """
    numbers = num_parameters(config.network_config())
    # Weights, gradients and Adam's two means; each worker's gradients and, at least, bfloat16 copy.
    network = numbers * (16 + 6 * workers)
    games = method_config.memory(config) * workers // config.workers
    needs = Counter({device: network})
    needs[torch.device("cpu")] += games
    for place, needed in needs.items():
        free = free_memory(place)
        if needed > free:
            raise ConfigError(
                f"this run needs at least {needed / 1e9:.1f} GB of memory ({place.type}), "
                f"{network / 1e9:.1f} for the network and its optimiser; {free / 1e9:.1f} GB are "
                "free: choose fewer units in hidden, fewer envs, or a shorter rollout or buffer"
            )
