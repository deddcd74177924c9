"""Print lines to stderr while functions are compiled for the first time, if it takes seconds.

Numba calls the listeners when it compiles a function, not when it loads one from its cache.
``BAO_ENV_QUIET=1`` suppresses the lines.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba.core import event

_PATIENCE = 2.0
"""Seconds of compiling before the first line; much less is not worth a line."""
_EVERY = 15.0
"""Seconds between two lines of progress."""
_functions: set[Callable[..., Any]] = set()


def announce(function: Callable[..., Any]) -> None:
    """Register a function of ours, so that lines are printed while it is being compiled."""
    _functions.add(function)


class _Notice(event.Listener):
    """Print a line when compiling our functions takes this process long, then lines of progress."""

    def __init__(self) -> None:
        self._compiled: set[Callable[..., Any]] = set()
        self._depth = 0
        """How many of our functions are being compiled now, each while its caller is compiled."""
        self._seconds = 0.0
        """For how long this process has compiled, until the last event."""
        self._last_event = 0.0
        self._said: float | None = None
        """How long it had compiled when the last line was printed."""

    def on_start(self, event: Any) -> None:
        """Handle the start of a compilation."""
        function = event.data["dispatcher"]
        if function.py_func in _functions:
            self._report(is_cached=function.stats.cache_path is not None)
            self._depth += 1

    def on_end(self, event: Any) -> None:
        """Handle the end of a compilation."""
        function = event.data["dispatcher"]
        if function.py_func in _functions:
            self._compiled.add(function.py_func)  # perhaps for one of several argument types
            self._report(is_cached=function.stats.cache_path is not None)
            self._depth -= 1

    def _report(self, *, is_cached: bool) -> None:
        """Count the time since the last event, and print a line if one is due."""
        now = time.monotonic()
        if self._depth:
            self._seconds += now - self._last_event
        self._last_event = now
        if self._said is None and self._seconds >= _PATIENCE:
            self._said = self._seconds
            _say(
                "compiling what is used here for the first time (bao warm-up compiles everything "
                "in advance)"
                if is_cached
                else "compiling, at every start: no cache folder is writable; set NUMBA_CACHE_DIR"
            )
        elif self._said is not None and self._seconds >= self._said + _EVERY:
            self._said = self._seconds
            _say(f"compiling, {len(self._compiled)} of at most {len(_functions)} functions")


class _DebugLog(event.Listener):
    """Keep numba's 50,000 debug lines out of a program's log while our functions are compiled.

    A level that the program has given to the logger ``numba`` stays.
    """

    def __init__(self) -> None:
        self._logger = logging.getLogger("numba")
        self._depth = 0
        """How many of our functions are being compiled now, each while its caller is compiled."""
        self._raised = False

    def on_start(self, event: Any) -> None:
        """Handle the start of a compilation."""
        if event.data["dispatcher"].py_func in _functions:
            self._depth += 1
            if self._logger.level == logging.NOTSET:
                self._logger.setLevel(logging.WARNING)
                self._raised = True

    def on_end(self, event: Any) -> None:
        """Handle the end of a compilation."""
        if event.data["dispatcher"].py_func in _functions:
            self._depth -= 1
            if self._raised and not self._depth:
                self._logger.setLevel(logging.NOTSET)
                self._raised = False


def _say(text: str) -> None:
    if sys.stderr is None or os.environ.get("BAO_ENV_QUIET"):
        return
    with suppress(OSError, ValueError):  # stderr is closed
        print(f"bao_env: {text}", file=sys.stderr, flush=True)


event.register("numba:compile", _Notice())
event.register("numba:compile", _DebugLog())
