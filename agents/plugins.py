"""Somebody's own code, by its name ``package.module:name``."""

from __future__ import annotations

import pkgutil
from typing import Any


def is_own(name: object) -> bool:
    """Whether a name is of somebody's own code, rather than of something that comes with us."""
    return isinstance(name, str) and ":" in name


def find(name: str) -> Any:
    """What ``package.module:name`` names; its module is imported.

    Raises:
        ValueError: it cannot be imported.
    """
    try:
        return pkgutil.resolve_name(name)
    except Exception as error:  # whatever somebody's own code raises
        raise ValueError(
            f"{name} cannot be imported: {type(error).__name__}: {error}; expected MODULE:NAME, "
            "with the module's folder in PYTHONPATH"
        ) from error
