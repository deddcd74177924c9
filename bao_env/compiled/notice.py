"""Print lines to stderr while functions are compiled for the first time, which takes seconds.

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

_EVERY = 15.0
"""Seconds between two lines of progress."""
_functions: set[Callable[..., Any]] = set()


def announce(function: Callable[..., Any]) -> None:
    """Register a function of ours, so that lines are printed while it is being compiled."""
    _functions.add(function)


class _Notice(event.Listener):
    """Print a line when this process starts to compile our functions, then lines of progress."""

    def __init__(self) -> None:
        self._compiled: set[Callable[..., Any]] = set()
        self._said: float | None = None

    def on_start(self, event: Any) -> None:
        """Handle the start of a compilation."""
        function = event.data["dispatcher"]
        if self._said is None and function.py_func in _functions:
            self._said = time.monotonic()
            often = "first use only; bao warm-up compiles everything in advance"
            if function.stats.cache_path is None:
                often = "at every start: no cache folder is writable; set NUMBA_CACHE_DIR"
            _say(f"compiling the engine ({often})")

    def on_end(self, event: Any) -> None:
        """Handle the end of a compilation."""
        function = event.data["dispatcher"].py_func
        if function in _functions:
            self._compiled.add(function)  # perhaps for one of several argument types
        if self._said is not None and time.monotonic() >= self._said + _EVERY:
            self._said = time.monotonic()
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
