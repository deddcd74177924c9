"""Give a folder one writer at a time, and say what is wrong with a file."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import ValidationError


class HeldError(ValueError):
    """Another process is writing into the folder."""


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Hold the lock on ``folder`` until the end of the block.

    The operating system releases the lock of a process that has ended for any reason.

    Args:
        folder: the folder; it is made if it is missing.

    Raises:
        HeldError: another process holds it; the message says which.
        OSError: the folder cannot be made or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    holder = folder / ".holder"
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        try:
            who = holder.read_text(encoding="utf-8", errors="replace").strip()[:200]
        except OSError:
            who = "another process"
        raise HeldError(
            f"{folder} is in use by {who}: wait until it has ended, or choose another folder"
        ) from None
    try:
        now = datetime.now().isoformat(" ", "seconds")
        holder.write_text(f"process {os.getpid()} on {platform.node()}, since {now}\n")
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def fault(error: ValidationError) -> str:
    """Return the place of the first fault in a file's content, and what is wrong there."""
    first = error.errors()[0]
    return ": ".join(map(str, (*first["loc"], first["msg"])))
