"""Draw all plots in one style, and save them for papers as PNG, PDF or SVG.

The colours are those of Okabe and Ito (https://jfly.uni-koeln.de/color/), which people with any
kind of colour vision can tell apart. Each has its own marker.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bao_agents.support.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKERS = "osD^vPX"
SUFFIXES = (".png", ".pdf", ".svg")


def look(i: int) -> dict[str, Any]:
    """Return the colour and marker of item i in a plot."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}


def save_figure(figure: Figure, file: Path) -> None:
    """Write a figure in the format of the file's suffix.

    Raises:
        OSError: the file cannot be written.
    """
    picture = io.BytesIO()
    figure.savefig(picture, format=file.suffix.lower()[1:], dpi=150)
    write_atomically(file, picture.getvalue())


def errorbars(
    axes: Any, y: Sequence[float], scores: Sequence[Sequence[float]], **style: Any
) -> None:
    """Draw scores along the x axis, with their intervals.

    Args:
        axes: the matplotlib axes.
        y: their places on the y axis.
        scores: a score and the ends of its interval for each place.
        style: options of ``axes.errorbar``.
    """
    score, low, high = np.array(scores, float).reshape(-1, 3).T
    errors = np.maximum(0, [score - low, high - score])
    axes.errorbar(score, y, xerr=errors, **{"capsize": 3} | style)
