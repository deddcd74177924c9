"""Draw all plots in one style, and save them for papers as PNG, PDF or SVG.

matplotlib is imported only when a plot is drawn, and draws with its default settings. The user's
settings (a matplotlibrc, ``MPLBACKEND``) may need LaTeX or a notebook, which may be missing.

The colours are the palette of Okabe and Ito (https://jfly.uni-koeln.de/color/), which people with
any kind of colour vision can distinguish. Each colour has its own marker.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bao_agents.support.files import write_atomically
from bao_agents.support.output import say

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKERS = "osD^vPX"
SUFFIXES = (".png", ".pdf", ".svg")


def line_style(i: int) -> dict[str, Any]:
    """Return the colour and marker of line i in a plot."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}


def save_figure(
    draw: Callable[[], Figure], file: Path, title: str = "", facts: Mapping[str, str] | None = None
) -> None:
    """Draw a plot, and write it in the format of the file's suffix.

    Args:
        draw: the function that draws the plot; it may import matplotlib.
        file: the file.
        title: whose results the plot shows, for the file's metadata.
        facts: how the results were made, for the metadata too
            (:func:`bao_agents.support.provenance.facts`). None writes no metadata.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
        OSError: the file cannot be written.
    """
    suffix = file.suffix.lower()
    text = "\n".join(f"{key}: {value}" for key, value in (facts or {}).items() if value)
    description = "Subject" if suffix == ".pdf" else "Description"
    metadata = {"Title": title, description: text} if facts else None
    picture = io.BytesIO()
    with _own_settings():
        draw().savefig(picture, format=suffix[1:], dpi=150, metadata=metadata)
    write_atomically(file, picture.getvalue())


def try_to_save_figure(
    draw: Callable[[], Figure], file: Path, title: str = "", facts: Mapping[str, str] | None = None
) -> None:
    """Draw and write a plot that is not essential; see :func:`save_figure`.

    If that fails for any reason, a line on stderr says why, and no error is raised.
    """
    try:
        save_figure(draw, file, title, facts)
    except ModuleNotFoundError as error:
        say(f"note: no {file.name}: {error.name} is not installed (pip install 'bao_env[train]')")
    except Exception as error:  # noqa: BLE001 (matplotlib may raise anything)
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        say(f"note: no {file.name}: it could not be drawn ({reason:.200})")


@contextmanager
def _own_settings() -> Iterator[None]:
    """Import matplotlib, and let it draw with its default settings inside the block."""
    is_new = "matplotlib" not in sys.modules
    backend = os.environ.pop("MPLBACKEND", None)  # a missing backend makes the import fail
    try:
        import matplotlib
    finally:
        if backend is not None:
            os.environ["MPLBACKEND"] = backend
    if is_new and backend is not None:
        with suppress(ValueError):  # the caller's pyplot takes it from here
            matplotlib.rcParams["backend"] = backend
    defaults: Any = dict(matplotlib.rcParamsDefault)
    del defaults["backend"]
    with matplotlib.rc_context(defaults):
        yield


def errorbars(
    axes: Any, y: Sequence[float], scores: Sequence[Sequence[float]], **style: Any
) -> None:
    """Draw scores along the x axis, with their intervals.

    Args:
        axes: the matplotlib axes.
        y: the scores' places on the y axis.
        scores: for each place, a score and the ends of its interval.
        style: options of ``axes.errorbar``.
    """
    score, low, high = np.array(scores, float).reshape(-1, 3).T
    errors = np.maximum(0, [score - low, high - score])
    axes.errorbar(score, y, xerr=errors, **{"capsize": 3} | style)
