"""Pictures in pixels: a drawing as a pygame surface, as an array, and in a window.

pygame is optional and imported when something is painted: ``pip install pygame``, or in a checkout
``pip install -e '.[render]'``. The shapes are those of :mod:`bao_env.render.drawing`, so a window
shows what the SVG shows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from gymnasium.error import DependencyNotInstalled

from bao_env.render.drawing import HEIGHT, WIDTH, Circle, Rect, Shape, Text

if TYPE_CHECKING:
    import pygame

IMAGE_WIDTH: Final = round(WIDTH)
"""Default width of an image in pixels: one pixel a unit of the drawing."""
_FINER: Final = 4
"""Shapes are painted this many times too large and averaged, which smooths their edges. pygame
averages exactly by powers of two; by 3, colours come out up to two levels darker."""


def _pygame() -> Any:
    """The module pygame.

    Raises:
        DependencyNotInstalled: it is missing.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # it greets on standard output
    try:
        import pygame
    except ImportError as error:
        raise DependencyNotInstalled(
            "this picture needs pygame: pip install pygame, or in a checkout "
            f"pip install -e '.[render]' ({error})"
        ) from error
    return pygame


def image_size(width: int = IMAGE_WIDTH) -> tuple[int, int]:
    """Width and height in pixels of an image ``width`` pixels wide."""
    return width, round(width * HEIGHT / WIDTH)


def paint(shapes: Iterable[Shape], *, width: int = IMAGE_WIDTH) -> pygame.Surface:
    """The shapes on a new surface of :func:`image_size`; needs neither a window nor a display.

    Raises:
        DependencyNotInstalled: pygame is missing.
    """
    pygame = _pygame()
    pygame.font.init()
    size = image_size(width)
    large = pygame.Surface((_FINER * size[0], _FINER * size[1]), 0, 32)
    brush = _Brush(pygame, large, _FINER * width / WIDTH)
    for shape in shapes:
        brush.paint(shape)
    return pygame.transform.smoothscale(large, size)


def rgb_array(shapes: Iterable[Shape], *, width: int = IMAGE_WIDTH) -> npt.NDArray[np.uint8]:
    """The shapes as an image, a fresh uint8[H, W, 3]: rows from the top; red, green, blue.

    Raises:
        DependencyNotInstalled: pygame is missing.
    """
    columns = _pygame().surfarray.array3d(paint(shapes, width=width))  # uint8[W, H, 3]
    return np.ascontiguousarray(columns.transpose(1, 0, 2))


class _Brush:
    """Paints shapes on a surface, ``scale`` pixels a unit."""

    def __init__(self, pygame: Any, surface: pygame.Surface, scale: float) -> None:
        self._pygame = pygame
        self._surface = surface
        self._scale = scale
        self._fonts: dict[float, Any] = {}

    def paint(self, shape: Shape) -> None:
        if isinstance(shape, Text):
            self._text(shape)
        elif isinstance(shape, Circle):
            self._outlined(self._disc, shape)
        else:
            self._outlined(self._box, shape)

    def _outlined(self, fill: Any, shape: Circle | Rect) -> None:
        """Fill a shape and draw its outline, which runs half inside the edge and half outside."""
        half = shape.width / 2
        if shape.fill == "none":
            fill(shape, half, shape.outline, max(1, round(shape.width * self._scale)))
            return
        if shape.width:
            fill(shape, half, shape.outline)
        fill(shape, -half, shape.fill)

    def _disc(self, shape: Circle, grown: float, colour: str, ring: int = 0) -> None:
        """A disc grown by ``grown`` units; a ``ring`` of pixels paints only its edge."""
        centre = round(shape.x * self._scale), round(shape.y * self._scale)
        radius = round((shape.radius + grown) * self._scale)
        self._pygame.draw.circle(self._surface, colour, centre, radius, ring)

    def _box(self, shape: Rect, grown: float, colour: str, ring: int = 0) -> None:
        """:meth:`_disc` for a rectangle."""
        left, top = round((shape.x - grown) * self._scale), round((shape.y - grown) * self._scale)
        right = round((shape.x + shape.w + grown) * self._scale)
        bottom = round((shape.y + shape.h + grown) * self._scale)
        corner = round((shape.corner + grown) * self._scale) if shape.corner else 0
        self._pygame.draw.rect(
            self._surface, colour, (left, top, right - left, bottom - top), ring, corner
        )

    def _text(self, shape: Text) -> None:
        font = self._fonts.get(shape.size)
        if font is None:  # the font that comes with pygame, so that every machine has the same
            folder = Path(self._pygame.__file__).parent
            path = str(folder / self._pygame.font.get_default_font())
            font = self._pygame.font.Font(path, round(shape.size * self._scale))
            self._fonts[shape.size] = font
        text = font.render(shape.text, True, shape.fill)
        left = shape.x * self._scale - text.get_width() / 2
        baseline = (shape.y + 0.35 * shape.size) * self._scale  # as in the SVG
        self._surface.blit(text, (round(left), round(baseline - font.get_ascent())))


class Window:
    """A window on the screen that shows drawings; it opens with the first of them.

    pygame has one window a process: environments that show at the same time share it. A copied or
    unpickled window is closed.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._clock: Any = None

    def __reduce__(self) -> tuple[type[Window], tuple[str]]:
        return Window, (self._title,)

    @property
    def is_open(self) -> bool:
        """Whether it has shown something since it was made or closed."""
        return self._clock is not None

    def show(self, shapes: Iterable[Shape], fps: float) -> None:
        """Draw, and wait until ``1 / fps`` seconds have passed since the last drawing.

        Raises:
            DependencyNotInstalled: pygame is missing.
            pygame.error: there is no screen.
        """
        pygame = _pygame()
        picture = paint(shapes)
        screen = pygame.display.get_surface()
        if screen is None or screen.get_size() != picture.get_size():
            os.environ.setdefault("SDL_NO_SIGNAL_HANDLERS", "1")  # or SDL swallows SIGTERM
            pygame.display.init()
            screen = pygame.display.set_mode(picture.get_size())
            pygame.display.set_caption(self._title)
        if self._clock is None:
            self._clock = pygame.time.Clock()
        screen.blit(picture, (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        self._clock.tick(fps)

    def close(self) -> None:
        """Close it, if it is open; the next drawing opens it again."""
        if self._clock is not None:
            self._clock = None
            _pygame().display.quit()
