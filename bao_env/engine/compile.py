"""The one decorator under which kernel functions compile, and a word to whoever waits for it.

A kernel function is plain Python on integers and arrays: no objects, exceptions or growing lists.
``NUMBA_DISABLE_JIT=1`` runs it uncompiled, for example in a debugger. If compiling takes a while,
one line on stderr says so; ``BAO_ENV_QUIET=1`` keeps it back.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba
from numba.core import event

F = TypeVar("F", bound=Callable[..., Any])

_checked: set[Path] = set()
_functions: set[Callable[..., Any]] = set()
"""All functions that are compiled here."""
_PATIENCE: Final = 1.0
"""Seconds of compiling before it is mentioned."""


class _Notice(event.Listener):
    """Says once that this process compiles, when that has taken a while.

    Numba calls it when it compiles, under a lock of its own, and not when it loads from the cache.
    A function compiles those that it calls before it is done itself.
    """

    def __init__(self) -> None:
        self._under_way: list[Any] = []
        """The function asked for, and those under way inside it."""
        self._begun = 0.0
        self._seconds = 0.0
        """Spent before the one that is under way."""
        self._said = False

    def on_start(self, event: Any) -> None:
        """A function begins to compile."""
        if not self._under_way:
            self._begun = time.perf_counter()
        self._under_way.append(event.data["dispatcher"])
        waited = self._seconds + time.perf_counter() - self._begun
        if not self._said and waited > _PATIENCE and self._under_way[0].py_func in _functions:
            self._said = True
            _say(self._under_way[0].stats.cache_path)

    def on_end(self, event: Any) -> None:
        """The last one that began has ended."""
        function = self._under_way.pop()
        if not self._under_way and function.py_func in _functions:
            self._seconds += time.perf_counter() - self._begun


def _say(cache: str | None) -> None:
    """Tell people what takes so long.

    Args:
        cache: where the compiled functions are kept; None if nowhere.
    """
    if cache is None:
        why = (
            "at every start, as there is no folder to keep it in: set NUMBA_CACHE_DIR to one that "
            "can be written"
        )
    else:
        why = "once, then it is kept; python -m bao_env.warm_up does all of it beforehand"
    if sys.stderr is not None and not os.environ.get("BAO_ENV_QUIET"):
        with suppress(OSError, ValueError):  # stderr is closed
            print(f"bao_env: compiling the engine ({why})", file=sys.stderr, flush=True)


event.register("numba:compile", _Notice())


def _sources_digest(directory: Path) -> str:
    """Hash of every source that a compiled function of ``directory`` may have inlined: those of
    this package, and of the whole package that the directory is in."""
    digest = hashlib.sha256()
    top = directory
    while (top.parent / "__init__.py").exists():
        top = top.parent
    sources = {*Path(__file__).parent.parent.rglob("*.py"), *directory.glob("*.py")}
    if (top / "__init__.py").exists():
        sources.update(top.rglob("*.py"))
    for source in sorted(sources):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _drop_stale_cache(sources: Path, cache: Path) -> None:
    """Delete numba's cache files when any source they may hold has changed.

    Numba looks only at the file that a function is in, not at the files it calls into. It would
    keep running yesterday's kernel inside today's batch.

    Args:
        sources: the folder of the functions.
        cache: where numba keeps them compiled: ``__pycache__``, or elsewhere if that cannot be
            written or ``NUMBA_CACHE_DIR`` says so. Each folder of sources has its own.
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
        pass  # nothing can be written there, by numba neither


def _compiled(function: F, **options: Any) -> F:
    """A function that numba compiles on its first call and keeps on disk, where it can."""
    options |= {"nogil": True, "error_model": "numpy"}
    _functions.add(function)
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # there is no folder that can be written
        return cast(F, numba.njit(**options)(function))
    if compiled is not function:  # as with NUMBA_DISABLE_JIT
        sources = Path(function.__code__.co_filename).parent
        _drop_stale_cache(sources, Path(compiled.stats.cache_path))
    return cast(F, compiled)


def jit(function: F) -> F:
    """Compile ``function`` with numba on its first call; cached on disk, releases the GIL."""
    return _compiled(function)


def jit_inline(function: F) -> F:
    """Like :func:`jit`, for functions that a hot loop must inline.

    They are small ones, without which it would not vectorise, and those that are handed many
    arrays, whose descriptions each call would copy.
    """
    return _compiled(function, forceinline=True)
