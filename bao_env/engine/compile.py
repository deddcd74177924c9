"""Compile kernel functions with numba, and print a notice while that takes time.

A kernel function is plain Python on integers and arrays: no objects, exceptions or growing lists.
``NUMBA_DISABLE_JIT=1`` runs it uncompiled, for example in a debugger. The first compilation prints
a line to stderr, and another every 15 seconds; ``BAO_ENV_QUIET=1`` suppresses them.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event
from numba.core.caching import FunctionCache

F = TypeVar("F", bound=Callable[..., Any])

_EVERY = 15.0
"""Seconds between two lines of progress."""
_checked: set[Path] = set()
_functions: set[Callable[..., Any]] = set()
"""The functions compiled here."""
_lost: set[Callable[..., Any]] = set()
"""Functions whose compiled code could not be written to disk."""


class _Cache(FunctionCache):
    """Numba's cache of a function, made to survive a damaged file or a full disk."""

    def load_overload(self, *args: Any) -> Any:
        """Load a compiled function; None if it is not there."""
        try:
            return super().load_overload(*args)
        except Exception:  # the file may hold anything
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, *args: Any) -> None:
        """Keep a compiled function, if possible."""
        try:
            super().save_overload(*args)
        except OSError:
            _lost.add(self._py_func)


def is_kept() -> bool:
    """Return whether all that was compiled in this process is on disk for the next one."""
    return not _lost


class _Notice(event.Listener):
    """Print a line when this process starts to compile our functions, then lines of progress.

    Numba calls this when it compiles a function, not when it loads one from its cache.
    """

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
            tqdm = sys.modules.get("tqdm")
            if tqdm is None or not tqdm.tqdm._instances:  # no progress bar is shown
                _say(f"compiling, {len(self._compiled)} of at most {len(_functions)} functions")


def _say(text: str) -> None:
    if sys.stderr is not None and not os.environ.get("BAO_ENV_QUIET"):
        with suppress(OSError, ValueError):  # stderr is closed
            print(f"bao_env: {text}", file=sys.stderr, flush=True)


event.register("numba:compile", _Notice())
if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
    np.seterr(over="ignore")  # the kernel computes modulo 2^64; NumPy would warn


def _sources_digest(directory: Path) -> str:
    """Return a hash of the sources that a compiled function of ``directory`` may have inlined.

    They are the engine's files and, in this package and the package of ``directory``, every file
    with compiled functions and the files that it imports, which may hold its constants.
    """
    engine = Path(__file__).parent
    top = directory
    while (top.parent / "__init__.py").exists():
        top = top.parent
    sources = {*engine.glob("*.py"), *directory.glob("*.py")}
    for package in {engine.parent, top} if (top / "__init__.py").exists() else {engine.parent}:
        texts = {file: file.read_bytes() for file in package.rglob("*.py")}
        for file, text in texts.items():
            if re.search(rb"^ *@jit", text, re.MULTILINE):
                sources.add(file)
                for name in re.findall(rb"^from ([\w.]+) import", text, re.MULTILINE):
                    module = package.parent.joinpath(*name.decode().split(".")).with_suffix(".py")
                    sources.update({module} & texts.keys())
    digest = hashlib.sha256()
    for source in sorted(sources):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _drop_stale_cache(sources: Path, cache: Path) -> None:
    """Delete numba's cache files when any source they may hold has changed.

    Numba checks only the file of a function, not the files of the functions it calls. It would keep
    running an old kernel inside a new batch.

    Args:
        sources: the folder of the functions.
        cache: numba's folder for the compiled functions: ``__pycache__``, or another if that is not
            writable or ``NUMBA_CACHE_DIR`` is set. Each folder of sources has its own.
    """
    if cache in _checked:
        return
    _checked.add(cache)
    stamp = cache / "sources.digest"
    digest = _sources_digest(sources)
    try:
        if stamp.exists() and stamp.read_text() == digest:
            return
        for file in [*cache.glob("*.nbi"), *cache.glob("*.nbc")]:
            file.unlink(missing_ok=True)
        cache.mkdir(parents=True, exist_ok=True)
        stamp.write_text(digest)
    except OSError:
        pass  # numba cannot write there either


def jit(function: F, **options: Any) -> F:
    """Compile ``function`` with numba on its first call, cache it on disk, and release the GIL.

    ``options`` are passed on to numba.
    """
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    _functions.add(function)
    compiled = numba.njit(**options)(function)
    if compiled is not function:  # as with NUMBA_DISABLE_JIT
        try:
            compiled._cache = _Cache(function)
        except RuntimeError:  # no folder is writable
            _lost.add(function)
        else:
            sources = Path(function.__code__.co_filename).parent
            _drop_stale_cache(sources, Path(compiled.stats.cache_path))
    return cast(F, compiled)


def jit_inner(function: F, **options: Any) -> F:
    """Compile a function as :func:`jit` does, for functions that only compiled code calls.

    They compile faster because they get no Python wrapper: a call from Python raises TypeError.
    """
    compiled = jit(function, no_cpython_wrapper=True, **options)

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise TypeError(f"{function.__name__}() is for compiled code only: give it @jit")

    if compiled is not function:
        # Without these, numba would call the missing wrapper and crash.
        compiled._insert = lambda *args, **kwargs: None  # type: ignore[attr-defined]
        compiled._compile_for_args = refuse  # type: ignore[attr-defined]
    return compiled


def jit_inline(function: F) -> F:
    """Compile a function as :func:`jit_inner` does, for functions that a hot loop must inline.

    A loop that calls small functions would not vectorise otherwise. A call with many arrays as
    arguments would copy their descriptions.
    """
    return jit_inner(function, forceinline=True)
