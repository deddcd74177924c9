"""Share one run's workers among several processes, started by ``torchrun``.

The number of workers does not depend on the number of processes; each process has an equal share.
Every process gathers the results of all workers, in the workers' order, and the sum of their
gradients. So every process takes the same step and holds the same network. Without torchrun a run
is one process, and the functions here do nothing.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from bao_agents.support import files

_TIMEOUT = timedelta(minutes=30)
"""The longest time that a process waits for the others, while the first one evaluates or saves."""


class ProcessLost(RuntimeError):
    """Raised if another process of the run has ended or cannot be reached."""


@contextmanager
def _together() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise ProcessLost(f"another process of this run is gone: {error}") from error


def has_a_gpu_each() -> bool:
    """Return whether this machine has a GPU for each of the processes that torchrun started."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1")) <= torch.cuda.device_count()


@contextmanager
def process_group() -> Iterator[None]:
    """Join the processes that torchrun has started, if any, and leave them at the end."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        yield
        return
    on_gpus = torch.cuda.is_available() and has_a_gpu_each()
    if on_gpus:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    # gloo carries objects and flags, NCCL gradients on a GPU.
    dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpus else "gloo", timeout=_TIMEOUT)
    try:
        yield
    finally:
        gc.collect()  # tensors that outlive the group make some exits abort
        dist.destroy_process_group()


def world_size() -> int:
    """Return the number of processes of the run."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """Return the number of this process; process 0 writes files and messages."""
    return dist.get_rank() if dist.is_initialized() else 0


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Keep other runs from writing into ``folder`` until the end of the block.

    The first process holds the folder for all.

    Raises:
        HeldError: another run holds it.
        OSError: the folder cannot be made or written.
    """
    with ExitStack() as stack:
        problem: Exception | None = None
        if rank() == 0:
            try:
                stack.enter_context(files.hold(folder, "*"))
            except (files.HeldError, OSError) as error:
                problem = error
        if any_rank(problem is not None)[0]:
            raise problem or files.HeldError(f"the first process cannot lock {folder}")
        yield


def gather(results: list[Any]) -> list[Any]:
    """Return the results of all processes' workers, in the order of the workers.

    Raises:
        ProcessLost: another process has ended. The functions below also raise it.
    """
    if world_size() == 1:
        return results
    parts: list[Any] = [None] * world_size()
    with _together():
        dist.all_gather_object(parts, results)
    return [result for part in parts for result in part]


def all_reduce_sum(tensors: Sequence[Tensor]) -> None:
    """Replace each tensor by its sum over all processes."""
    if world_size() == 1:
        return
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    with _together():
        dist.all_reduce(flat)
    for tensor, part in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
        tensor.copy_(part.view_as(tensor))


def any_rank(*flags: bool) -> list[bool]:
    """Return, for each flag, whether any process has set it."""
    return [any(flag) for flag in zip(*gather([flags]), strict=True)]
