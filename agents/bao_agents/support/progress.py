"""Show the progress of long work."""

from __future__ import annotations

import sys
import time
from typing import Any

from tqdm import tqdm

LINE_SECONDS = 30.0
"""Seconds between two lines if there is no terminal."""


class Progress(tqdm):
    """Show a progress bar on a terminal, or a line now and then elsewhere. Use it like ``tqdm``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._on_terminal = sys.stderr.isatty()
        self._next_line = time.monotonic() + LINE_SECONDS
        super().__init__(*args, **kwargs)

    def display(self, msg: str | None = None, pos: int | None = None) -> bool:
        """Show ``msg``, or the progress."""
        if self._on_terminal:
            return bool(super().display(msg, pos))
        if msg != "" and time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_SECONDS
            print(msg or str(self), file=sys.stderr, flush=True)
        return False

    def close(self) -> None:
        """End the bar; without a terminal, show nothing more."""
        self.leave: bool = self._on_terminal and self.leave
        super().close()
