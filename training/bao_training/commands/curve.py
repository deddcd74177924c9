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
from pathlib import Path

from bao_agents.cli.options import Run, picture_file
from bao_agents.support.figures import save_figure
from bao_agents.support.output import say
from bao_training.plot import X_AXES, Curves
from bao_training.run_tables import read_lines


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
        help="the picture: .png, .pdf or .svg (default: curves.png, in the folder of a single run)",
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
    curves = Curves(read_lines(args.runs), args.metrics, args.x)
    folder = Path(args.runs[0]) if len(args.runs) == 1 else Path()
    file = args.out or (folder if folder.is_dir() else Path()) / "curves.png"
    say(curves.table(), sys.stdout)
    save_figure(curves.draw, file)
    say(f"\n{file}", sys.stdout)
