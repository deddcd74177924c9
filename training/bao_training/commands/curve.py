"""Run ``bao curve``: plot how runs learn.

    bao curve runs/first runs/second --out both.pdf
    bao curve 'small=runs/small*' 'large=runs/large*'
    bao curve elo.csv          a table of bao rate --csv

The second form compares settings over seeds: a line is the mean, and its band reaches from the
lowest to the highest run. Otherwise the band is the 95% interval of the games. All print a table
of the last values, and what was left out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bao_agents.cli.options import Run, picture_file
from bao_agents.support.figures import save_figure
from bao_agents.support.output import say
from bao_training.plot import X_AXES, draw_curves, read_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao curve``: plot how runs learn."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="folder of a run, or the CSV of bao rate; NAME=PATTERN is the mean of the runs that "
        "match, in a band from the lowest to the highest",
    )
    parser.add_argument(
        "--out",
        type=picture_file,
        metavar="FILE",
        help="the picture: .png, .pdf or .svg (default: curves.png, in the folder of a single run)",
    )
    parser.add_argument(
        "--metrics", nargs="+", default=[], metavar="COLUMN", help="columns of the CSV to draw"
    )
    parser.add_argument("--x", choices=X_AXES, default="steps", help="the x axis (default: steps)")
    parser.epilog = (
        "bao tournament runs/x/step-*.safetensors tells the strength of a run's\ngenerations."
    )
    return _run


def _run(args: argparse.Namespace) -> None:
    lines = read_lines(args.runs)
    only = Path(args.runs[0])
    file = args.out or (only if args.runs[1:] == [] and only.is_dir() else Path()) / "curves.png"

    def draw() -> Figure:
        figure, table = draw_curves(lines, args.metrics, args.x)
        say(table, sys.stdout)
        return figure

    save_figure(draw, file)
    say(f"\n{file}", sys.stdout)
