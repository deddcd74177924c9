"""What a table of the pages is made of, and how a ``bao`` command measures a part of it."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bao_agents.arena.elo import wilson_interval
from bao_agents.cli.main import main as bao


@dataclass(frozen=True)
class Part:
    """A part of a table, which is measured at once."""

    command: str
    """What measures it: a command, or a call of a function of this folder."""
    minutes: float
    """The minutes of one core that it takes."""
    measure: Callable[[Path], Any]
    """Measures it in a folder, where it may keep unfinished work, and returns plain values."""


@dataclass(frozen=True)
class Table:
    """A table of a page."""

    parts: tuple[Part, ...]
    lines: Callable[[list[Any]], list[list[str]]]
    """Returns the cells, the heads first, given the results of the parts."""
    files: tuple[str, ...] = ()
    """The shipped files that decide the numbers, as the pages name them: ``guides/kibao``."""


def run_bao(line: str, folder: Path, *more: str) -> None:
    """Run a ``bao`` command in a folder; what it prints goes to stderr.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed.
        RuntimeError: the command failed.
    """
    with chdir(folder), redirect_stdout(sys.stderr):
        status = bao([*shlex.split(line)[1:], *more])
    if status == 130:
        raise KeyboardInterrupt
    if status:
        raise RuntimeError(f"{line}: exit status {status}")


def json_of(line: str, folder: Path, *more: str) -> Any:
    """Run a ``bao`` command in a folder, and return the JSON that it writes."""
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary, "results.json")
        run_bao(line, folder, "--json", str(file), *more)
        return json.loads(file.read_text(encoding="utf-8"))


def interval(rate: float, low: float, high: float) -> str:
    """Return a share and its 95% interval as a cell, in percent."""
    return f"{100 * rate:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def share(count: int, trials: int) -> str:
    """Return a share of independent trials, with its 95% interval, as a cell."""
    return interval(count / trials, *wilson_interval(count / trials, trials))


def rows_of(first_cells: Iterable[str], results: list[list[str]]) -> list[list[str]]:
    """Return the rows of a table, given the first cell of each and its other cells."""
    return [[first, *cells] for first, cells in zip(first_cells, results, strict=True)]


def match(line: str, minutes: float) -> Part:
    """Return a part that plays a match; its result is a cell for each opponent.

    Its games are kept as they end, so a match goes on where it was.
    """

    def play(folder: Path) -> list[str]:
        games = re.sub(r"[^\w.]+", "-", line)
        rows = json_of(line, folder, "--out", games)["results"]
        return [interval(row["score"], row["score_low"], row["score_high"]) for row in rows]

    return Part(line, minutes, play)
