"""A folder whose parts are made once: a stopped command continues with those that are there."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self, TypeVar

from agents.files import hold
from bao_env.files import write_atomically

T = TypeVar("T")


class Resumable:
    """A folder of parts that were made with the same settings. As a context it is held.

    Args:
        path: the folder; it is created.
        settings: everything the parts depend on, as plain values for JSON.

    Raises:
        ValueError: the folder holds parts of other settings.
        agents.files.HeldError: another process works in the folder.
        OSError: the folder cannot be written.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.path = path
        self._settings = json.loads(json.dumps(settings))
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(hold(self.path))
            self._check()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def _check(self) -> None:
        file = self.path / "settings.json"
        if not file.exists():
            write_atomically(file, json.dumps(self._settings, indent=1) + "\n")
            return
        try:
            kept = json.loads(file.read_bytes())
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{file} is damaged ({error!s:.100}): choose another --out") from error
        if kept != self._settings:
            raise ValueError(
                f"{self.path} holds another run, with settings {kept!s:.300}, not "
                f"{self._settings!s:.300}: give the same ones, or choose another --out"
            )

    def part(self, name: str, read: Callable[[Path], T], make: Callable[[Path], object]) -> T:
        """Read a part; make it if it is missing or damaged.

        Args:
            name: name of the file.
            read: reads the file; raises ValueError or RecursionError if it is damaged.
            make: writes the file, atomically.
        """
        file = self.path / name
        if file.exists():
            try:
                return read(file)
            except (ValueError, RecursionError):
                pass
        make(file)
        return read(file)
