"""Run functions in processes of this machine or of a Ray cluster."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Any

_pool_barrier: Barrier | None = None
"""The barrier at which the processes of a :class:`LocalPool` wait for each other."""


def _start_worker(parent: Connection, barrier: Barrier) -> None:
    """Ignore Ctrl-C, which the parent handles; exit as soon as the connection closes.

    The connection closes when the parent closes it, or ends for any reason.
    """
    global _pool_barrier
    _pool_barrier = barrier
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end_with_parent() -> None:
        with suppress(EOFError, OSError):
            parent.recv()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


@contextmanager
def _one_thread_in_children() -> Iterator[None]:
    """Make one thread the default of each process that starts within the block."""
    unset = [name for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS") if name not in os.environ]
    os.environ |= dict.fromkeys(unset, "1")
    try:
        yield
    finally:
        for name in unset:
            os.environ.pop(name, None)


def wait_for_others() -> None:
    """Wait until all processes of a :class:`LocalPool` call this; return at once elsewhere."""
    if _pool_barrier is not None:
        _pool_barrier.wait()


class LocalPool(ProcessPoolExecutor):
    """Run calls in processes on this machine, one core each.

    At the end of the ``with`` block the processes end immediately, and running work is lost.

    Args:
        processes: the number of processes.
    """

    def __init__(self, processes: int) -> None:
        context = get_context("spawn")
        receiver, self._sender = context.Pipe(duplex=False)
        super().__init__(
            processes,
            mp_context=context,
            initializer=_start_worker,
            initargs=(receiver, context.Barrier(processes)),
        )

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See :class:`concurrent.futures.Executor`; the first call starts the processes."""
        with _one_thread_in_children():
            return super().submit(function, *args, **kwargs)

    def __exit__(self, *exception: object) -> None:
        processes = list((self._processes or {}).values())
        # Cancel first: the pool's thread must not see processes end while a future still waits.
        self.shutdown(wait=False, cancel_futures=True)
        self._sender.close()
        for process in processes:
            process.terminate()


class RayPool(Executor):
    """Run calls on the cores of a Ray cluster.

    Its machines must have the same packages at the same paths. At the end of the ``with`` block,
    running work is lost, and a cluster that was started for this pool ends.

    Args:
        address: the cluster's address, ``host:port``. ``local`` starts a new cluster on this
            machine. An empty string takes the cluster that Ray finds (``RAY_ADDRESS``, or one on
            this machine), or else starts a new one.

    Raises:
        ValueError: Ray is not installed.
        ConnectionError: there is no cluster at the address.
        BrokenExecutor: a process of Ray itself has died; raised at the end of the ``with`` block.
        ValueError: a function raised it; raised at the end of the ``with`` block.
    """

    def __init__(self, address: str) -> None:
        try:
            import ray
        except ModuleNotFoundError as error:
            raise ValueError("Ray is not installed: pip install ray") from error
        address = address or os.environ.get("RAY_ADDRESS", "")
        host, colon, port = address.rpartition(":")
        try:
            if colon and port.isdigit():  # fail fast: Ray itself would try for minutes
                socket.create_connection((host, int(port)), timeout=5.0).close()
            ray.init(
                address or None,
                # So its processes can import what this process can: a checkout, users' modules.
                runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}},
                logging_level="WARNING",
            )
        except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            where = f"at {address}" if address else "on this machine"
            reason = (str(error).splitlines() or [""])[0]
            raise ConnectionError(f"there is no Ray cluster {where}: {reason:.200}") from error
        self._ray = ray

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._ray.shutdown()
        if isinstance(error, self._ray.exceptions.RayError):
            cause = getattr(error, "cause", error)  # a RayTaskError itself prints a whole traceback
            if isinstance(cause, ValueError):  # raised by the function
                raise cause from None
            raise BrokenExecutor(str(cause).partition("\n")[0]) from error

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See :class:`concurrent.futures.Executor`; a call takes one core."""
        return self._ray.remote(num_cpus=1)(function).remote(*args, **kwargs).future()
