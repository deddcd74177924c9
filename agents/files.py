"""Files are replaced whole, or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Replace a file; whatever happens, ``path`` holds either the old content or the new.

    Args:
        path: the file; its folder must exist.
        data: the whole content; text is written as UTF-8.

    Raises:
        OSError: it cannot be written; the old file stays as it was.
    """
    path = Path(path)
    # In the same folder: a file cannot be renamed across file systems.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)  # so that the new name lasts, too
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
