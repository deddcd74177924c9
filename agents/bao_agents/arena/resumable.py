"""Keep results across restarts: each part of long work has a file, and is not computed again.

A part's file name contains the part and a digest of everything else that its content depends on. So
parts made with other settings lie beside it, and are never mistaken for it.
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
        settings: everything else that its content depends on, as plain values for JSON.
        suffix: end of the file's name.
    """
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
    return folder / f"{name}-{digest}{suffix}"


def read_part(file: Path, read: Callable[[Path], T]) -> T | None:
    """Return the content of a part; None if it is missing or damaged.

    Args:
        file: its file.
        read: reads the file; raises ValueError or RecursionError if it is damaged.
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
