"""Plots of scores with error bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def errorbars(
    axes: Any, x: Sequence[float], scores: Sequence[Sequence[float]], **style: Any
) -> None:
    """Draw scores with their intervals.

    Args:
        axes: the matplotlib axes.
        x: places on the other axis.
        scores: a score and the ends of its interval for each place.
        style: options of ``axes.errorbar``; with ``horizontal=True`` scores run along the x axis.
    """
    score, low, high = np.array(scores, float).reshape(-1, 3).T
    errors = np.maximum(0, [score - low, high - score])
    style = {"fmt": "o-", "capsize": 3} | style
    if style.pop("horizontal", False):
        axes.errorbar(score, x, xerr=errors, **style)
    else:
        axes.errorbar(x, score, yerr=errors, **style)


def reference_lines(axes: Any, levels: Mapping[str, float]) -> None:
    """Draw a labelled horizontal line at each level."""
    for name, level in levels.items():
        axes.axhline(level, color="grey", linewidth=0.8, linestyle="--")
        edge = axes.get_yaxis_transform()
        axes.text(0.01, level, name, transform=edge, va="bottom", color="grey", size=8)
