"""Import users' code by name, ``package.module:name``."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

ERRORS = (Exception, SystemExit)
"""What users' code may raise. An uncaught SystemExit would end the command without a word."""


def find(name: str) -> Any:
    """Import and return the object ``package.module:name``.

    Raises:
        ValueError: the object cannot be imported, or the module is in two folders of
            :data:`sys.path`; the message says why, and what to do.
    """
    module, _, function = name.partition(":")
    try:
        imported = getattr(importlib.import_module(module), function)
    except ERRORS as error:
        advice = (
            "expected MODULE:NAME, with --path FOLDER for the module's folder, or that folder in "
            "PYTHONPATH"
        )
        if module.endswith(".py"):
            advice = f"leave out .py: {module.removesuffix('.py')}:{function}"
        if isinstance(error, AttributeError) and module in sys.modules:
            advice = _where(module)
        if isinstance(error, SystemExit):
            advice = f"put the main code of {module} below if __name__ == '__main__'"
        raise ValueError(
            f"{name:.200} cannot be imported: {type(error).__name__}: {error!s:.200}; {advice}"
        ) from error
    if _hidden(module):  # it may be the one that is meant
        raise ValueError(f"{name:.200} may be either of two: {_where(module)}")
    return imported


def _where(module: str) -> str:
    """Say which file a module was imported from and which other file, if any, it shadows."""
    file = getattr(sys.modules[module], "__file__", None)
    origin = f"{module} was imported from {file or 'Python itself'}"
    if hidden := _hidden(module):
        return f"{origin}, not from {hidden}: rename that file"
    return f"{origin}: expected it to define that name"


def _hidden(module: str) -> Path | None:
    """Return another file of an imported module's name in the folders of sys.path; None if none."""
    file = getattr(sys.modules[module], "__file__", None)
    for folder in sys.path:
        hidden = Path(folder, *module.split(".")).with_suffix(".py").absolute()
        if hidden.is_file() and not (file and os.path.exists(file) and hidden.samefile(file)):
            return hidden
    return None


def needs_file(make: Any) -> bool:
    """Return whether the signature of users' code requires ``file=``."""
    with suppress(TypeError, ValueError):  # it has no signature
        file = inspect.signature(make).parameters.get("file")
        return file is not None and file.default is file.empty
    return False


def check_parameters(name: str, make: Any, parameters: Sequence[str]) -> None:
    """Check that users' code can be called with these parameters.

    Raises:
        ValueError: it cannot; the message says why.
    """
    try:
        inspect.signature(make).bind(**dict.fromkeys(parameters))
    except ValueError:  # it has no signature
        return
    except TypeError as error:
        words = ", ".join(parameters)
        raise ValueError(
            f"player {name:.200} cannot be called with {words} ({error!s:.200}): expected a "
            f"function ({words}) that returns an object with act(positions, legal)"
        ) from error


def source(name: str, file: str = "") -> bytes:
    """Return the content of the source file of ``package.module:name``, then of ``file``."""
    module = inspect.getsourcefile(importlib.import_module(name.partition(":")[0]))
    return b"".join(Path(path).read_bytes() for path in (module, file) if path)
