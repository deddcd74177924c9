"""Keep results across restarts: each part of long work has a file, and is not computed again.

A file's name contains the part's name, and a digest of all settings on which the content depends.
So parts made with different settings have different files, and are never confused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bao_agents.support.files import write_atomically

T = TypeVar("T")


def part_file(folder: Path, name: str, settings: object, suffix: str) -> Path:
    """Return the file of a part.

    Args:
        folder: folder of the parts.
        name: name of the part.
        settings: all settings on which the content depends, as plain values for JSON.
        suffix: suffix of the file's name.
    """
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
    return folder / f"{name}-{digest}{suffix}"


def read_part(file: Path, read: Callable[[Path], T]) -> T | None:
    """Return the content of a part; None if it is missing or damaged.

    Args:
        file: the part's file.
        read: the function that reads it; it raises ValueError or RecursionError if the file is
            damaged.
    """
    try:
        return read(file) if file.exists() else None
    except (ValueError, RecursionError):
        return None


def keep_part(file: Path, content: str | bytes) -> None:
    """Write a part, and create its folder if missing; a killed process leaves no partial file.

    Raises:
        OSError: it cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, content)
