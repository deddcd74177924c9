"""Write progress, notices and errors, without ending the program if they cannot be written."""

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
    """Ignore errors of the block's writes to a stream; the text is then lost.

    The reader may be gone, the terminal closed or the disk full, or a signal handler may have
    interrupted another write. ``stream`` is None for a program that has no such stream.
    """
    try:
        yield
        if stream is not None:
            stream.flush()
    except (OSError, ValueError, RuntimeError):  # a closed stream, or a write inside a write
        if stream is not None:
            _failed.add(stream)


def say(text: str, stream: TextIO | None = None) -> None:
    """Print a line above the progress bars, on stderr by default; ignore a failed write."""
    stream = stream or sys.stderr
    with optional(stream):
        if stream is not None and "tqdm" in sys.modules:
            sys.modules["tqdm"].tqdm.write(text, stream)
        elif stream is not None:
            print(text, file=stream)


@atexit.register
def _give_up() -> None:
    """Discard unwritten text, because Python would fail to write it at exit (status 120)."""
    for stream in _failed:
        with suppress(ValueError):  # it is closed, or has no file
            try:
                stream.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
