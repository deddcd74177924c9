"""Test that marks on pits can be seen and told apart with any colour vision."""

from __future__ import annotations

import numpy as np
import pytest

from bao_env.render.drawing import GRAIN, WOOD
from bao_env.render.marks import EDGE, MarkKind, arrow, ring
from bao_env.render.raster import rgb_array


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2.2."""
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(colour: str, background: str) -> float:
    low, high = sorted((luminance(colour), luminance(background)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("kind", MarkKind)
def test_marks_stand_out_from_wood_and_from_their_edge(kind: MarkKind) -> None:
    """The contrast is at least 3:1, as WCAG 1.4.11 requires."""
    assert min(contrast(kind.colour, wood) for wood in (WOOD, *GRAIN, EDGE)) >= 3


def test_no_two_marks_have_one_form() -> None:
    """In a single colour, each kind still gives a different picture; the page has the same
    shapes."""

    def form(kind: MarkKind) -> bytes:
        shapes = [*ring(kind, 100, 100, 27, False), *arrow(kind, 100, 100, 27, 1)]
        return bytes((rgb_array(shapes)[60:140, 60:140].max(axis=2) > 90).tobytes())

    assert len({form(kind) for kind in MarkKind}) == len(MarkKind)
