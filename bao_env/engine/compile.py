"""The one decorator under which kernel functions compile.

A kernel function is plain Python on integers and arrays: no objects, exceptions or growing lists.
``NUMBA_DISABLE_JIT=1`` runs it uncompiled, for example in a debugger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])

_checked: set[Path] = set()


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


def _drop_stale_cache(directory: Path) -> None:
    """Delete numba's cache files in ``directory`` when any source they may hold has changed.

    Numba looks only at the file that a function is in, not at the files it calls into. It would
    keep running yesterday's kernel inside today's batch.
    """
    if directory in _checked:
        return
    _checked.add(directory)
    cache = directory / "__pycache__"
    stamp = cache / "sources.digest"
    digest = _sources_digest(directory)
    try:
        if stamp.exists() and stamp.read_text() == digest:
            return
        for file in [*cache.glob("*.nbi"), *cache.glob("*.nbc")]:
            file.unlink(missing_ok=True)
        cache.mkdir(exist_ok=True)
        stamp.write_text(digest)
    except OSError:
        pass  # a read-only installation: its sources do not change either


def jit(function: F) -> F:
    """Compile ``function`` with numba on its first call; cached on disk, releases the GIL."""
    _drop_stale_cache(Path(function.__code__.co_filename).parent)
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def jit_inline(function: F) -> F:
    """Like :func:`jit`, for small functions that a loop must inline in order to vectorise."""
    _drop_stale_cache(Path(function.__code__.co_filename).parent)
    compiled = numba.njit(cache=True, nogil=True, error_model="numpy", forceinline=True)(function)
    return cast(F, compiled)


def jit_float(function: F) -> F:
    """Like :func:`jit`, for sums and products of floats that may be reordered and fused."""
    _drop_stale_cache(Path(function.__code__.co_filename).parent)
    compiled = numba.njit(
        cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"}
    )(function)
    return cast(F, compiled)
