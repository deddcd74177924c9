"""Replace files atomically."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Replace a file; at any moment ``path`` holds either the old content or the new.

    Args:
        path: the file; its folder must exist. If it is a symbolic link, its target is replaced.
        data: the whole content; text is written as UTF-8.

    Raises:
        OSError: it cannot be written, or is something other than a file, for example a device; what
            was there stays as it was. The error names the file.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise OSError(f"{path} exists and is no regular file: choose another name")
    # In the same folder: a file cannot be renamed across file systems.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        if error.errno:  # the caller does not know the temporary file
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)  # so that the new name lasts, too
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
