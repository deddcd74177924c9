"""Draw moves as an animated GIF, seed by seed, and boards in pixels.

``bao replay GAME --gif FILE`` draws a game, and ``bao replay POSITION --move MOVE --gif FILE`` one
move with the words of its events. Both show the trace of each move on the drawing of the board, as
the web board does. They need pygame and Pillow: ``pip install 'bao_env[render]'``.
"""

from __future__ import annotations

import dataclasses
import io
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from PIL import Image

from bao_agents.support.files import write_atomically
from bao_agents.support.progress import Progress
from bao_env.board import Board, EventKind, MoveEvent
from bao_env.engine.position import Position
from bao_env.game import SEAT_NAMES
from bao_env.render.drawing import Place, drawing, places, seed
from bao_env.render.marks import Mark, MarkKind, action_marks
from bao_env.render.raster import rgb_array
from bao_env.render.shapes import Shape

_COLOURS = 128
_READING_TIME = 1000
"""The least milliseconds that the words of an event stay."""
_LIFTS = {EventKind.LIFT, EventKind.ENDELEA, EventKind.HOUSE_PLAYED}
_PLACES = {(place.seat, place.pit): place for place in places()}

Frame = tuple[list[Shape], int]
"""The shapes, and the milliseconds for which they are shown."""


def frames(board: Board, *, words: bool = False) -> Iterator[Frame]:
    """Yield the frames of a game, given by the board at its end.

    ``words`` says each event in a sentence, and leaves time to read it.
    """
    actions = board.move_stack
    board = board.copy()
    while board.move_stack:
        board.pop()
    yield drawing(board.position), 1200
    for action in actions:
        text = f"{SEAT_NAMES[board.turn]}: {board.move_text(action)}"
        position = board.position
        for event in board.trace(action):
            if words:
                text = event.sentence
            shown = list(_event_frames(position, event, text))
            if words:
                shapes, time = shown[0] if shown else (drawing(position, status=text), 0)
                shown[:1] = [(shapes, time + _READING_TIME)]
            yield from shown
            position = _with_seeds(position, event.counts, event.store)
        marks = action_marks(MarkKind.LAST, board.packed, board.ruleset, [action])
        board.push(action)
        outcome = board.outcome()
        status = str(outcome) if outcome else text
        yield drawing(board.position, marks=marks, status=status), 4000 if outcome else 450


def _with_seeds(
    position: Position, counts: Iterable[Iterable[int]], store: tuple[int, int]
) -> Position:
    """Return a position with other seeds in its pits, 0..15 of South and of North, and stores.

    Until the move ends, the mover stays the same, and houses keep their owners.
    """
    south, north = map(tuple, counts)
    front, back = (south[:8], north[:8]), (south[8:], north[8:])
    return dataclasses.replace(position, front=front, back=back, store=store, barred=None)


def _event_frames(position: Position, event: MoveEvent, text: str) -> Iterator[Frame]:
    after = _with_seeds(position, event.counts, event.store)
    if event.kind is EventKind.SOW:
        counts = [list(position.pits(seat)) for seat in (0, 1)]
        for i, pit in enumerate(event.pits):
            counts[event.seat][pit] += 1
            sown = _with_seeds(position, counts, position.store)
            hand = len(event.pits) - 1 - i + event.hand
            yield _frame(sown, event.seat, pit, hand, text), 90
    elif event.kind in _LIFTS or event.kind is EventKind.STORE_SEED:
        yield _frame(after, event.seat, event.pits[0], event.hand, text), 160
    elif event.kind is EventKind.CAPTURE:
        prey = Mark(MarkKind.PREY, event.seat, event.pits[0])
        yield drawing(position, marks=[prey], status=text), 260
        yield _frame(after, *prey[1:3], event.hand, text), 200


def _frame(position: Position, seat: int, pit: int, hand: int, text: str) -> list[Shape]:
    """Draw a position with a hand above one of its pits."""
    shapes = drawing(position, marks=[Mark(MarkKind.NOW, seat, pit)], status=text)
    return shapes + _hand(_PLACES[seat, pit], hand)


def _hand(place: Place, count: int) -> list[Shape]:
    """Draw the seeds in the hand, above a pit."""
    shapes: list[Shape] = []
    for i in range(count):
        distance, angle = 4.5 * math.sqrt(i), 2.4 * i
        x = place.x + distance * math.cos(angle)
        shapes += seed(x, place.y - 16 + distance * math.sin(angle), i % 4)
    return shapes


def write_image(path: Path, shapes: list[Shape]) -> None:
    """Write a drawing as PNG or PDF, sharp enough for print.

    Raises:
        OSError: the file cannot be written.
    """
    picture = io.BytesIO()
    image = Image.fromarray(rgb_array(shapes, scale=3))
    image.save(picture, format=path.suffix[1:], resolution=300)
    write_atomically(path, picture.getvalue())


def write_gif(path: str | Path, board: Board, *, words: bool = False) -> None:
    """Write a game as an animated GIF.

    Args:
        path: the file to write.
        board: the game at its end.
        words: see :func:`frames`.

    Raises:
        OSError: the file cannot be written.
    """
    shown = list(frames(board, words=words))
    # One palette for all frames keeps still parts from flickering. The middle frame has a mark.
    middle = Image.fromarray(rgb_array(shown[len(shown) // 2][0]))
    palette = middle.quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE)
    images = []
    for shapes, _ in Progress(shown, desc="drawing", unit="frame"):
        image = Image.fromarray(rgb_array(shapes))
        images.append(image.quantize(palette=palette, dither=Image.Dither.NONE))
    animation = io.BytesIO()
    images[0].save(
        animation,
        format="GIF",
        save_all=True,
        append_images=images[1:],
        duration=[time for _, time in shown],
        loop=0,
        optimize=True,
    )
    write_atomically(path, animation.getvalue())
