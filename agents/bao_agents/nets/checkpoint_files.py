"""Find and name checkpoint files. This module does not need torch."""

from __future__ import annotations

import json
import os
import re
import stat
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from bao_env.engine.ruleset import Ruleset

CHECKPOINTS = Path(__file__).parents[1] / "checkpoints"
"""Folder of the shipped checkpoints; they are loaded by name, without the suffix."""
GUIDES = CHECKPOINTS / "guides"
"""Folder of the small networks that guide alpha-beta, one per rule set and named after it."""
OWN_CODE = "name your own code MODULE:FUNCTION, with --path FOLDER for the module's folder"
"""What to do, for errors about a Python file in place of a checkpoint."""

_MAX_HEADER = 1 << 20


def shipped() -> list[str]:
    """Return the names of the shipped checkpoints."""
    return sorted(path.stem for path in CHECKPOINTS.glob("*.safetensors"))


def find_checkpoint(name: str) -> Path | None:
    """Return the path of a checkpoint's file; None if there is none.

    Args:
        name: the file's path, a shipped name, or the folder of a run. In a folder the file
            is ``final``, else ``last``, else the checkpoint with the highest step.

    Raises:
        ValueError: the working folder has a run with the name of a shipped checkpoint.
    """
    if name in shipped():
        if os.path.isdir(name) and find_checkpoint(f".{os.sep}{name}"):
            raise ValueError(
                f"{name} is a shipped checkpoint, and a run in this folder: name the run "
                f".{os.sep}{name}, or go to another folder"
            )
        return CHECKPOINTS / f"{name}.safetensors"
    if os.path.isdir(name):
        files = {path.stem: path for path in Path(name).glob("*.safetensors") if path.is_file()}
        steps = [stem for stem in files if re.fullmatch("step-[0-9]+", stem)]
        newest = ["final", "last", *sorted(steps, key=lambda stem: int(stem[5:]), reverse=True)]
        return next((files[stem] for stem in newest if stem in files), None)
    return Path(name) if os.path.isfile(name) else None  # also False if the path is invalid


def beside(name: str) -> list[str]:
    """Return the runs and the checkpoint files in the folder that contains a path, sorted.

    For a name without a folder these are the ones in ``runs/``.
    """
    folder = os.path.dirname(name) or "runs"
    paths = Path(folder).glob("*") if os.path.isdir(folder) else ()
    return sorted(
        str(path)
        for path in paths
        if path.suffix == ".safetensors" or (path.is_dir() and find_checkpoint(str(path)))
    )


def title(path: Path) -> str:
    """Return a checkpoint's name for tables: the name of its run or of its file.

    ``runs/quick/final.safetensors`` is ``quick``, ``runs/quick/step-600000.safetensors`` is
    ``quick/step-600000``, and any other file is called by its own name.
    """
    run = path.absolute().parent.name
    if path.stem == "final":
        return run
    return f"{run}/{path.stem}" if re.fullmatch("last|step-[0-9]+", path.stem) else path.stem


def find_guide(ruleset: str) -> Path:
    """Return the file of a rule set's guide.

    Raises:
        ValueError: the rule set has no guide.
    """
    path = GUIDES / f"{ruleset}.safetensors"
    guides = sorted(path.stem for path in GUIDES.glob("*.safetensors"))
    if ruleset not in guides:
        raise ValueError(
            f"rule set {ruleset!r} has no guide: name a checkpoint, guided:CHECKPOINT:100ms; "
            f"guides are shipped for {', '.join(guides)}"
        )
    return path


class Version(NamedTuple):
    """What identifies the current content of a file, even if another file has been moved there."""

    path: Path
    size: int
    modified: int
    """Time of the last change of its content, in nanoseconds; copies may keep it."""
    changed: int
    """Time of the last change of its entry in the file system, in nanoseconds."""
    number: int
    """Its number in the file system."""


def version(path: Path) -> Version:
    """Return the version of a file.

    Raises:
        OSError: the file does not exist.
        ValueError: the path is a folder, a pipe or a device.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path} is not a regular file: expected a checkpoint")
    times = status.st_mtime_ns, status.st_ctime_ns
    return Version(path, status.st_size, *times, status.st_ino)


def trained_under(path: Path) -> Ruleset | None:
    """Return the rule set of a checkpoint; None if the file cannot be read as one."""
    try:
        return _read_rules(version(path))
    except (OSError, KeyError, TypeError, ValueError, RecursionError):
        return None


@lru_cache(maxsize=256)
def _read_rules(version: Version) -> Ruleset:
    with version.path.open("rb") as file:  # the length of the header, the header, the tensors
        header = file.read(min(int.from_bytes(file.read(8), "little"), _MAX_HEADER))
    metadata = json.loads(json.loads(header)["__metadata__"]["bao_env"])
    return Ruleset.from_dict(metadata["ruleset"])
