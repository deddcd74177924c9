"""Define the shapes that make up every picture of the board."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Circle:
    """A filled circle, with an outline if ``width`` is not 0."""

    x: float
    y: float
    radius: float
    fill: str
    outline: str = "none"
    width: float = 0
    dash: float = 0
    """Length of the dashes of the outline, and of the gaps; 0 for a line without gaps."""


@dataclass(frozen=True)
class Rect:
    """A filled rectangle with rounded corners, outlined if ``width`` is not 0."""

    x: float
    y: float
    w: float
    h: float
    corner: float
    fill: str
    outline: str = "none"
    width: float = 0
    dash: float = 0
    """See :class:`Circle`."""


@dataclass(frozen=True)
class Polygon:
    """A filled polygon, outlined if ``width`` is not 0."""

    points: tuple[tuple[float, float], ...]
    fill: str
    outline: str = "none"
    width: float = 0


@dataclass(frozen=True)
class Text:
    """A label centred at ``x``, with its middle at ``y``."""

    x: float
    y: float
    text: str
    size: float
    fill: str


Shape = Circle | Rect | Polygon | Text
