"""Run ``bao curve``: plot how runs learn.

    bao curve runs/first runs/second --out both.pdf
    bao curve 'small=runs/small*' 'large=runs/large*'
    bao curve elo.csv          a table of bao rate --csv

The second form compares settings over seeds: a line is the mean over the runs of a setting, with
the 95% interval of that mean, and the table has the differences from the first setting. In the
other forms intervals are taken over the games. All forms print a table of the last values, and say
what was left out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bao_agents.cli.options import Run, picture_file
from bao_agents.support.figures import save_figure
from bao_agents.support.output import say
from bao_training.plot import X_AXES, Curves
from bao_training.run_settings import find_run
from bao_training.run_tables import read_lines

_TITLE = "bao curve"
"""The title in the metadata of a picture, which shows who has drawn it."""
_HEAD_BYTES = 4096
"""The title is within these first bytes of a .png file."""


def command(parser: argparse.ArgumentParser) -> Run:
    """Define ``bao curve``: plot how runs learn."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="folder of a run, or the CSV of bao rate; NAME=PATTERN draws the mean of all runs "
        "that match the pattern, with its 95%% interval over these runs",
    )
    parser.add_argument(
        "--out",
        type=picture_file,
        metavar="FILE",
        help="the picture: .png, .pdf or .svg (default: curves.png, in the folder of a single run; "
        "for a single CSV its name with -curves.png)",
    )
    parser.add_argument(
        "--metrics", nargs="+", default=[], metavar="COLUMN", help="columns of the CSV to draw"
    )
    parser.add_argument("--x", choices=X_AXES, default="steps", help="the x axis (default: steps)")
    parser.epilog = (
        "To compare the strength of a run's checkpoints:\nbao tournament runs/x/step-*.safetensors"
    )
    return _run


def _run(args: argparse.Namespace) -> None:
    file = args.out or _default_picture(args.runs)
    curves = Curves(read_lines(args.runs), args.metrics, args.x)
    replaced = " (in place of the earlier one)" if not args.out and file.exists() else ""
    say(curves.table(), sys.stdout)
    save_figure(curves.draw, file, _TITLE, {"drawn by": _TITLE})
    say(f"\n{file}{replaced}", sys.stdout)


def _default_picture(runs: Sequence[str]) -> Path:
    """Return the file of the picture of some runs: beside a single CSV, or in a single run.

    A picture with the name of the CSV may be another program's, or the report of ``bao rate``.

    Raises:
        ValueError: outside the folder of a run, there is a picture of this name that ``bao curve``
            has not drawn.
    """
    source = Path(runs[0]) if len(runs) == 1 else Path()
    file = (source if source.is_dir() else Path()) / "curves.png"
    if source.is_file():
        file = source.with_name(f"{source.stem}-curves.png")
    is_of_run = source.is_dir() and find_run(source)
    if file.is_file() and not is_of_run and not _is_own(file):
        raise ValueError(
            f"{file} exists, and bao curve has not drawn it: move it, or name another file (--out)"
        )
    return file


def _is_own(file: Path) -> bool:
    """Return whether ``bao curve`` has drawn a picture."""
    with file.open("rb") as picture:
        return f"Title\0{_TITLE}".encode() in picture.read(_HEAD_BYTES)
