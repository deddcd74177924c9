"""Show the progress of long work."""

from __future__ import annotations

import sys
import time
from typing import Any

from tqdm import tqdm

from bao_agents.support.output import optional

LINE_SECONDS = 30.0
"""Seconds between two progress lines if there is no terminal."""


class Progress(tqdm):
    """Show a progress bar on a terminal, or a line now and then elsewhere. Use it like ``tqdm``.

    If the stream cannot be written, the work goes on without progress.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._on_terminal = False
        self._next_line = time.monotonic() + LINE_SECONDS
        if sys.stderr is None:
            kwargs["disable"] = True
        with optional(sys.stderr):
            self._on_terminal = sys.stderr is not None and sys.stderr.isatty()
        super().__init__(*args, **kwargs)

    def display(self, msg: str | None = None, pos: int | None = None) -> bool:
        """Show ``msg``, or the progress."""
        with optional(sys.stderr):
            if self._on_terminal:
                return bool(super().display(msg, pos))
            if msg != "" and time.monotonic() >= self._next_line:
                self._next_line = time.monotonic() + LINE_SECONDS
                print(msg or str(self), file=sys.stderr)
        return False

    def clear(self, nolock: bool = False) -> None:
        """Remove the bar from a terminal."""
        if self._on_terminal:
            with self.get_lock(), optional(sys.stderr):
                super().clear(nolock=True)

    def close(self) -> None:
        """End the bar; show its last state on a terminal only."""
        self.leave: bool = self._on_terminal and self.leave
        with optional(sys.stderr):
            super().close()
