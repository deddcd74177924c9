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
    """Like :func:`jit`, for small functions that a loop must inline in order to vectorise."""
    return _compiled(function, forceinline=True)


def jit_float(function: F) -> F:
    """Like :func:`jit`, for sums and products of floats that may be reordered and fused."""
    return _compiled(function, fastmath={"contract", "reassoc", "nsz"})
