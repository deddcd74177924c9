"""Paint a drawing in pixels: as a pygame surface, as an array, or in a window.

pygame is optional (``pip install 'bao_env[render]'``), and it is imported only for painting.
pygame's SDL paints the SVG, so a window shows what the SVG shows.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import DependencyNotInstalled

from bao_env.render.drawing import WIDTH
from bao_env.render.shapes import Shape, Text
from bao_env.render.svg import svg_document

if TYPE_CHECKING:
    import pygame


def import_pygame() -> Any:
    """Import pygame.

    Raises:
        DependencyNotInstalled: pygame is missing.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # otherwise pygame prints a greeting
    try:
        import pygame
    except ImportError as error:
        raise DependencyNotInstalled(
            f"this picture needs pygame-ce: pip install 'bao_env[render]' ({error})"
        ) from error
    return pygame


def check_render_mode(render_mode: str | None, modes: Sequence[str]) -> str | None:
    """Return ``render_mode`` if it can be used.

    Raises:
        ValueError: ``render_mode`` is neither None nor one of ``modes``.
        DependencyNotInstalled: the mode needs pygame, which is missing.
    """
    if render_mode is not None and render_mode not in modes:
        raise ValueError(f"render_mode={render_mode!r}: expected None or one of {', '.join(modes)}")
    if render_mode in ("human", "rgb_array"):
        import_pygame()
    return render_mode


def paint(shapes: Iterable[Shape], scale: float = 1) -> pygame.Surface:
    """Paint shapes on a new surface, which needs neither window nor display.

    A unit of the drawing is ``scale`` pixels. Labels are painted last, on top of all other shapes.

    Raises:
        DependencyNotInstalled: pygame is missing.
    """
    pygame = import_pygame()
    shapes = list(shapes)
    plain = (shape for shape in shapes if not isinstance(shape, Text))
    svg = svg_document(plain, round(scale * WIDTH))
    surface = pygame.image.load(io.BytesIO(svg.encode()), "board.svg")
    # SDL does not paint text. pygame's own font is the same on every machine.
    pygame.font.init()
    path = str(Path(pygame.__file__).parent / pygame.font.get_default_font())
    texts = [shape for shape in shapes if isinstance(shape, Text)]
    sizes = {text.size for text in texts}
    fonts = {size: pygame.font.Font(path, round(scale * size)) for size in sizes}
    for text in texts:
        font = fonts[text.size]
        image = font.render(text.text, True, text.fill)
        left = scale * text.x - image.get_width() / 2
        baseline = scale * (text.y + 0.35 * text.size)  # as in the SVG
        surface.blit(image, (round(left), round(baseline - font.get_ascent())))
    return surface


def rgb_array(shapes: Iterable[Shape], scale: float = 1) -> npt.NDArray[np.uint8]:
    """Paint shapes as a new array, uint8[H, W, 3], with rows from the top and red, green, blue.

    ``scale`` is as for :func:`paint`.

    Raises:
        DependencyNotInstalled: pygame is missing.
    """
    columns = import_pygame().surfarray.array3d(paint(shapes, scale))  # uint8[W, H, 3]
    return np.ascontiguousarray(columns.transpose(1, 0, 2))


class Window:
    """A window on the screen that shows drawings; it opens with the first drawing.

    pygame has one window per process, so environments that show at the same time share it. A
    copied or unpickled window is closed.
    """

    def __init__(self) -> None:
        self._clock: Any = None

    def __reduce__(self) -> tuple[type[Window], tuple[()]]:
        return Window, ()

    def show(self, shapes: Iterable[Shape], fps: float) -> None:
        """Show a drawing, ``1 / fps`` seconds or more after the last one.

        Raises:
            DependencyNotInstalled: pygame is missing.
            pygame.error: there is no screen.
        """
        pygame = import_pygame()
        picture = paint(shapes)
        screen = pygame.display.get_surface()
        if screen is None or screen.get_size() != picture.get_size():
            os.environ.setdefault("SDL_NO_SIGNAL_HANDLERS", "1")  # otherwise SDL catches SIGTERM
            pygame.display.init()
            screen = pygame.display.set_mode(picture.get_size())
            pygame.display.set_caption("Bao")
        if self._clock is None:
            self._clock = pygame.time.Clock()
        screen.blit(picture, (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        self._clock.tick(fps)

    def close(self) -> None:
        """Close the window, if it is open; the next drawing opens it again."""
        if self._clock is not None:
            self._clock = None
            import_pygame().display.quit()
