"""A folder whose parts are made once: a stopped command continues with those that are there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from bao_env.files import hold, write_atomically

T = TypeVar("T")


@contextmanager
def parts_of(folder: Path, settings: dict[str, Any]) -> Iterator[None]:
    """Hold a folder of parts that were made with the same settings, until the end of the block.

    Args:
        folder: the folder; it is created.
        settings: everything the parts depend on, as plain values for JSON.

    Raises:
        ValueError: the folder holds parts of other settings.
        bao_env.files.HeldError: another process works in the folder.
        OSError: the folder cannot be written.
    """
    text = json.dumps(settings, indent=1) + "\n"
    with hold(folder):
        file = folder / "settings.json"
        if not file.exists():
            write_atomically(file, text)
        try:
            kept = json.loads(file.read_bytes())
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{file} is damaged ({error!s:.100}): choose another --out") from error
        if kept != json.loads(text):
            raise ValueError(
                f"{folder} holds another run, with settings {kept!s:.300}, not {settings!s:.300}: "
                "give the same ones, or choose another --out"
            )
        yield


def made_once(file: Path, read: Callable[[Path], T], make: Callable[[Path], object]) -> T:
    """Read a part; make it if it is missing or damaged.

    Args:
        file: its file.
        read: reads the file; raises ValueError or RecursionError if it is damaged.
        make: writes the file, atomically.
    """
    if file.exists():
        try:
            return read(file)
        except (ValueError, RecursionError):
            pass
    make(file)
    return read(file)
