"""Read the tables of runs: the metrics of training, and ratings of checkpoints."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from glob import glob
from pathlib import Path
from typing import NamedTuple

from bao_agents.nets.checkpoint_files import beside
from bao_env.files import read_text
from bao_env.suggestions import did_you_mean
from bao_training.run_settings import read_note

_CHECKPOINT = r"(?<![^/:@])(step-\d+(\.safetensors)?|final\.safetensors)(?![^:])|\d+\.[^\d/]+$"
"""Pattern of the part of a player's name that differs between the checkpoints of a run: a file.
Folders such as ``runs/s1`` and ``runs/s2`` are different runs."""
_NUMBER = r"\d+[^\d/]*$"
"""Pattern of this part in the text after ``@``."""

Rows = Sequence[Mapping[str, str]]
"""The rows of a table, each a mapping from column names to cells."""


class Line(NamedTuple):
    """A line of the picture."""

    name: str
    runs: Mapping[str, Rows]
    """The table of each run. The key is the path that it was read from, with a player's name if the
    file has several players."""


def read_lines(words: Sequence[str]) -> list[Line]:
    """Return the lines of a picture.

    Args:
        words: a run's folder or a CSV file, a pattern (``glob``) of them, or ``NAME=PATTERN`` for
            the mean over the runs that match. What exists is neither a pattern nor has it a NAME:
            a run may be called ``lr=0.1``.

    Raises:
        OSError, ValueError: a word names no run, or a file cannot be read.
    """
    lines = []
    for word in words:
        name, pattern, paths = "", word, _matches(word)
        if not paths and "=" in word:
            name, _, pattern = word.partition("=")
            paths = _matches(pattern)
        if not paths:
            raise ValueError(
                f"{word!r:.200}: no such run, or it cannot be read"
                f"{did_you_mean(pattern, beside(pattern))}; expected a folder or a CSV file"
            )
        runs = {source: rows for path in paths for source, rows in read_runs(Path(path)).items()}
        lines += [Line(name, runs)] if name else [Line(run, {run: runs[run]}) for run in runs]
    return lines


def _matches(pattern: str) -> list[str]:
    """Return the paths that match a pattern, or the pattern itself if it is the path of a file."""
    if os.path.exists(pattern):
        return [pattern]
    with suppress(RecursionError):  # glob calls itself for every slash
        return sorted(glob(pattern))
    return []


def read_runs(path: Path) -> dict[str, Rows]:
    """Return the table of a run's folder, with its rules, or of each run in a CSV file of ratings.

    The ratings of ``runs/a/step-2000`` and ``runs/a/step-4000`` are one table, and so are those of
    ``mine:player@weights/9.pt`` and ``mine:player@weights/12.pt``.

    Raises:
        OSError, ValueError: the file cannot be read, or is not a CSV table in UTF-8.
    """
    file = path / "metrics.csv" if path.is_dir() else path
    if path.is_dir() and not file.exists():
        raise ValueError(f"{path} has no metrics.csv: expected the folder of a run")
    rules = _rules_of(path)
    runs: dict[str, list[dict[str, str]]] = {}
    try:
        for row in csv.DictReader(read_text(file).splitlines()):
            row |= {"ruleset": rules} if rules else {}
            player = row.get("spec") or row.get("player") or ""
            runs.setdefault(_run_of(player), []).append(row)
    except csv.Error as error:
        raise ValueError(f"{file} is not a CSV table ({error!s:.100})") from error
    if len(runs) < 2:
        return {str(path): rows for rows in runs.values() or [[]]}
    return {f"{path}, {name}": rows for name, rows in runs.items()}


def _run_of(player: str) -> str:
    """Return a player's name without the part that differs between the checkpoints of a run."""
    code, at, file = player.rpartition("@")
    pattern = f"{_CHECKPOINT}|{_NUMBER}" if at else _CHECKPOINT
    run, count = re.subn(pattern, "", file, count=1)
    # The folder of a run is its final checkpoint.
    return (code + at + run).rstrip("/@-_") if count else player


def _rules_of(folder: Path) -> str:
    """Return the rules of a run, by its run.json; an empty string if it does not say."""
    with suppress(ValueError, TypeError, KeyError, AttributeError):
        config = read_note(folder)["config"]
        own_rules = f"{config['ruleset']} with changes" if config["rules"] else config["ruleset"]
        return str(config["rules"].get("name", own_rules))
    return ""
