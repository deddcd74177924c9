"""Read untrusted files: refuse devices, pipes and files that are too long."""

from __future__ import annotations

import errno
import os
from io import BufferedReader
from pathlib import Path

MAX_BYTES = 256 << 20
"""The default limit on a file's length."""


def open_regular(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a file to read its bytes.

    Raises:
        OSError: the file cannot be read, or is not a regular file but, for example, a device.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return path.open("rb")


def read_bytes(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> bytes:
    """Return the content of a file.

    Args:
        path: the file.
        max_bytes: the largest number of bytes that it may have.

    Raises:
        OSError: the file cannot be read, or is not a regular file but, for example, a device.
        ValueError: the file is longer than ``max_bytes``; the message names the file.
    """
    with open_regular(path) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ValueError(f"{path} is too long: expected at most {max_bytes} bytes")
    return data


def read_text(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> str:
    """Return the text of a file in UTF-8, without a byte order mark; see :func:`read_bytes`.

    Raises:
        ValueError: also if the file is not UTF-8; the message names the file and the line.
    """
    data = read_bytes(path, max_bytes)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}, line {line}: the byte 0x{data[error.start]:02x} is not UTF-8: save the file "
            "as UTF-8"
        ) from None
