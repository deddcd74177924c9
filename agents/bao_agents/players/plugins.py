"""Import users' code by its name, ``package.module:name``."""

from __future__ import annotations

import pkgutil
from typing import Any


def is_own(name: str) -> bool:
    """Return whether a name has the form of users' code, ``package.module:name``.

    ``@FILE`` may follow.
    """
    code, at, file = name.partition("@")
    module, _, function = code.partition(":")
    return bool(file or not at) and all(
        word.isidentifier() for word in [*module.split("."), function]
    )


def find(name: str) -> Any:
    """Import and return the object ``package.module:name``.

    Raises:
        ValueError: the object cannot be imported.
    """
    try:
        return pkgutil.resolve_name(name)
    except Exception as error:  # foreign code may raise anything
        raise ValueError(
            f"{name:.200} cannot be imported: {type(error).__name__}: {error!s:.200}; expected "
            "MODULE:NAME, with --path FOLDER for the module's folder, or that folder in PYTHONPATH"
        ) from error
