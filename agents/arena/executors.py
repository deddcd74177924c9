"""Executors for the units of a tournament: local processes, or a Ray cluster.

Both follow :mod:`concurrent.futures` and can also stop running work.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
"""The checkout."""


def end_with_parent() -> None:
    """End this worker process as soon as its parent process has ended for any reason."""
    parent = parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _start_worker() -> None:
    """Ignore Ctrl-C, which the parent handles; do not outlive the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


class LocalPool(ProcessPoolExecutor):
    """Processes on this machine, one core each.

    Args:
        processes: the number of processes.
    """

    def __init__(self, processes: int) -> None:
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, "1")  # the workers inherit it
        super().__init__(processes, mp_context=get_context("spawn"), initializer=_start_worker)

    def stop(self) -> None:
        """End the processes immediately; running work is lost."""
        for process in list((self._processes or {}).values()):
            process.terminate()


class RayPool(Executor):
    """The cores of a Ray cluster. Each of its machines must have this checkout at the same path.

    Args:
        address: the cluster's address, ``host:port``. ``local`` starts a new one on this machine.
            Empty takes the one that Ray finds (``RAY_ADDRESS``, or one on this machine), else
            starts a new one.

    Raises:
        ValueError: Ray is not installed.
        ConnectionError: there is no cluster at the address.
    """

    def __init__(self, address: str) -> None:
        try:
            import ray
        except ModuleNotFoundError as error:
            raise ValueError("Ray is not installed: pip install ray") from error
        host, colon, port = address.rpartition(":")
        if colon and port.isdigit():  # Ray itself would try for minutes
            try:
                socket.create_connection((host, int(port)), timeout=5.0).close()
            except OSError as error:
                raise ConnectionError(f"there is no Ray cluster at {address}: {error}") from error
        ray.init(
            address or None,
            runtime_env={"env_vars": {"PYTHONPATH": str(ROOT)}},
            logging_level="WARNING",
        )
        self._ray = ray
        self._units: list[Any] = []

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See :class:`concurrent.futures.Executor`; a call takes one core."""
        unit = self._ray.remote(num_cpus=1)(function).remote(*args, **kwargs)
        self._units.append(unit)
        return unit.future()

    def stop(self) -> None:
        """Cancel running and waiting work."""
        for unit in self._units:
            self._ray.cancel(unit, force=True)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster; a cluster that was started for this pool ends."""
        self._ray.shutdown()
