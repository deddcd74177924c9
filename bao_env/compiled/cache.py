"""Cache compiled functions on disk until a source file that they may include has changed."""

from __future__ import annotations

import functools
import hashlib
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator

not_kept: set[Callable[..., Any]] = set()
"""Functions of this process whose compiled code could not be written to disk."""


def keep(compiled: Any) -> None:
    """Let numba cache a compiled function on disk, if a folder is writable."""
    try:
        compiled._cache = _Cache(compiled.py_func)
    except RuntimeError:  # no folder is writable
        not_kept.add(compiled.py_func)


class _ChosenFolder(UserProvidedCacheLocator):
    """Find the cache in the folder of ``NUMBA_CACHE_DIR``, even if the folder is read-only.

    Numba itself would not read from a read-only folder. A container image may have one.
    """

    def ensure_cache_path(self) -> None:
        """Raise OSError if the folder does not exist and cannot be made."""
        if not Path(self.get_cache_path()).is_dir():
            super().ensure_cache_path()


class _Files(CompileResultCacheImpl):
    _locator_classes = [_ChosenFolder, *CompileResultCacheImpl._locator_classes]  # noqa: RUF012


class _Cache(FunctionCache):
    """Numba's cache of a function, made safe for functions that call others and for full disks.

    Numba only checks whether the file of the function itself has changed. After a change in another
    file, it would keep running the old code of a kernel function inside its caller. Numba also
    raises an error if a cache file is damaged.
    """

    _impl_class = _Files

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        file = self._cache_file
        if not getattr(sys, "frozen", False):  # a frozen program has no sources
            file._source_stamp = _sources_digest(Path(function.__code__.co_filename).parent)
        try:
            fresh = bool(file._load_index())
        except Exception:  # noqa: BLE001 (the file may hold anything)
            fresh = False
        if not fresh:  # numba writes the new index first, and must not find old code then
            for old in Path(self._cache_path).glob(f"{self._impl.filename_base}.*.nbc"):
                with suppress(OSError):
                    old.unlink()

    def load_overload(self, *args: Any) -> Any:
        """Return the compiled function, or None if it cannot be loaded."""
        try:
            return super().load_overload(*args)
        except Exception:  # noqa: BLE001 (the file may hold anything)
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, *args: Any) -> None:
        """Write a compiled function to disk, if possible."""
        try:
            super().save_overload(*args)
        except OSError:
            not_kept.add(self._py_func)


@functools.cache
def _sources_digest(directory: Path) -> str:
    """Return a hash of the sources that a compiled function of ``directory`` may have inlined.

    These are the engine's files, the files of ``directory``, and the files that
    :func:`_compiled_sources` returns for this package and for the package of ``directory``.
    """
    package = Path(__file__).parent.parent
    top = directory
    while (top.parent / "__init__.py").exists():
        top = top.parent
    sources = {*(package / "engine").glob("*.py"), *directory.glob("*.py")}
    sources.update(_compiled_sources(package))
    if (top / "__init__.py").exists():
        sources.update(_compiled_sources(top))
    digest = hashlib.sha256()
    for source in sorted(sources):
        digest.update(source.read_bytes())
    return digest.hexdigest()


@functools.cache
def _compiled_sources(package: Path) -> set[Path]:
    """Return the files of a package that have compiled functions, and the files these import.

    Imported files count too, because compiled code contains the constants defined in them.
    """
    texts = {file: file.read_bytes() for file in package.rglob("*.py")}
    sources = set()
    for file, text in texts.items():
        if re.search(rb"^ *@jit", text, re.MULTILINE):
            sources.add(file)
            for name in re.findall(rb"^from ([\w.]+) import", text, re.MULTILINE):
                module = package.parent.joinpath(*name.decode().split(".")).with_suffix(".py")
                sources.update({module} & texts.keys())
    return sources
