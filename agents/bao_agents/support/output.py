"""Write words that a program can do without: progress, notices, the report of an error."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

_failed: set[TextIO] = set()
"""Streams that could not be written."""


@contextmanager
def optional(stream: TextIO | None) -> Iterator[None]:
    """Go on if the block, which only writes to a stream, cannot write to it.

    The reader may be gone, the terminal closed or the disk full, and a signal handler may have
    interrupted another write. Then what was written is lost. There may be no stream at all: None.
    """
    try:
        yield
        if stream is not None:
            stream.flush()
    except (OSError, ValueError, RuntimeError):  # a closed stream, or a call inside another
        if stream is not None:
            _failed.add(stream)


def say(text: str, stream: TextIO | None = None) -> None:
    """Print a line above the progress bars, if it can be written; on stderr by default."""
    stream = stream or sys.stderr
    with optional(stream):
        if stream is not None and "tqdm" in sys.modules:
            sys.modules["tqdm"].tqdm.write(text, stream)
        elif stream is not None:
            print(text, file=stream)


@atexit.register
def _give_up() -> None:
    """Discard what is left in streams: Python would fail to write it, and exit with status 120."""
    for stream in _failed:
        with suppress(ValueError):  # it is closed, or has no file
            try:
                stream.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
