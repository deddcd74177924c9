"""Draw moves as an animated GIF, seed by seed, and boards in pixels.

``bao replay GAME --gif FILE`` draws a game. ``bao replay POSITION --move MOVE --gif FILE`` draws
one move, with a sentence for each event. Both play each move seed by seed on the drawing of the
board, as the web board does. They need pygame and Pillow: ``pip install 'bao_env[render]'``.
"""

from __future__ import annotations

import dataclasses
import io
import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from bao_agents.support.files import write_atomically
from bao_agents.support.progress import Progress
from bao_env.board import Board, EventKind, MoveEvent
from bao_env.engine.position import Position
from bao_env.game import SEAT_NAMES
from bao_env.render.drawing import Hollow, drawing, hollows, seed
from bao_env.render.marks import Mark, MarkKind, action_marks
from bao_env.render.raster import rgb_array
from bao_env.render.shapes import Shape

_COLOURS = 128
_READING_TIME = 1000
"""Minimum number of milliseconds that the sentence of an event is shown."""
_LIFTS = {EventKind.LIFT, EventKind.ENDELEA, EventKind.HOUSE_PLAYED}
_HOLLOWS = {(hollow.seat, hollow.pit): hollow for hollow in hollows()}

Frame = tuple[list[Shape], int]
"""The shapes of a frame, and the milliseconds for which it is shown."""


def frames(board: Board, *, words: bool = False) -> Iterator[Frame]:
    """Yield the frames of a game.

    Args:
        board: the game at its end.
        words: whether to describe each event in a sentence, and leave time to read it.
    """
    actions = board.move_stack
    board = board.copy()
    while board.move_stack:
        board.pop()
    draw = partial(drawing, house=board.ruleset.house)
    yield draw(board.position), 1200
    for action in actions:
        text = f"{SEAT_NAMES[board.turn]}: {board.move_text(action)}"
        position = board.position
        for event in board.trace(action):
            if words:
                text = event.sentence
            event_frames = list(_event_frames(draw, position, event, text))
            if words:
                shapes, time = event_frames[0] if event_frames else (draw(position, status=text), 0)
                event_frames[:1] = [(shapes, time + _READING_TIME)]
            yield from event_frames
            position = _with_seeds(position, event.counts, event.store)
        marks = action_marks(MarkKind.LAST, board.packed, board.ruleset, [action])
        board.push(action)
        outcome = board.outcome()
        status = str(outcome) if outcome else text
        yield draw(board.position, marks=marks, status=status), 4000 if outcome else 450


def _with_seeds(
    position: Position, counts: Iterable[Iterable[int]], store: tuple[int, int]
) -> Position:
    """Return a position with other numbers of seeds in its pits and stores.

    The mover stays the same until the move ends, and houses keep their owners.

    Args:
        position: the position.
        counts: the seeds in pits 0..15 of South, then of North.
        store: the seeds in the stores of South and North.
    """
    south, north = map(tuple, counts)
    front, back = (south[:8], north[:8]), (south[8:], north[8:])
    return dataclasses.replace(position, front=front, back=back, store=store, barred=None)


def _event_frames(
    draw: Callable[..., list[Shape]], position: Position, event: MoveEvent, text: str
) -> Iterator[Frame]:
    """Yield the frames of an event; ``draw`` is :func:`drawing` for the game's rules."""
    after = _with_seeds(position, event.counts, event.store)
    if event.kind is EventKind.SOW:
        counts = [list(position.pits(seat)) for seat in (0, 1)]
        for i, pit in enumerate(event.pits):
            counts[event.seat][pit] += 1
            sown = _with_seeds(position, counts, position.store)
            hand = len(event.pits) - 1 - i + event.hand
            yield _frame(draw, sown, event.seat, pit, hand, text), 90
    elif event.kind in _LIFTS or event.kind is EventKind.STORE_SEED:
        yield _frame(draw, after, event.seat, event.pits[0], event.hand, text), 160
    elif event.kind is EventKind.CAPTURE:
        prey = Mark(MarkKind.PREY, event.seat, event.pits[0])
        yield draw(position, marks=[prey], status=text), 260
        yield _frame(draw, after, *prey[1:3], event.hand, text), 200


def _frame(
    draw: Callable[..., list[Shape]], position: Position, seat: int, pit: int, hand: int, text: str
) -> list[Shape]:
    """Draw a position with a hand above one of its pits."""
    shapes = draw(position, marks=[Mark(MarkKind.NOW, seat, pit)], status=text)
    return shapes + _hand(_HOLLOWS[seat, pit], hand)


def _hand(hollow: Hollow, count: int) -> list[Shape]:
    """Draw the seeds in the hand, above a pit."""
    shapes: list[Shape] = []
    for i in range(count):
        distance, angle = 4.5 * math.sqrt(i), 2.4 * i
        x = hollow.x + distance * math.cos(angle)
        shapes += seed(x, hollow.y - 16 + distance * math.sin(angle), i % 4)
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


def _with_every_colour(timed: Iterable[Frame]) -> Iterator[list[Shape]]:
    """Yield each frame that has a colour which no earlier frame has."""
    colours: set[str] = set()
    for shapes, _ in timed:
        new = {shape.fill for shape in shapes} | {getattr(shape, "outline", "") for shape in shapes}
        if not new <= colours:
            colours |= new
            yield shapes


def write_gif(path: str | Path, board: Board, *, words: bool = False) -> None:
    """Write a game as an animated GIF.

    Args:
        path: the file to write.
        board: the game at its end.
        words: see :func:`frames`.

    Raises:
        OSError: the file cannot be written.
    """
    timed = list(frames(board, words=words))
    # All frames share one palette, so that parts that do not move do not flicker.
    samples = np.concatenate([rgb_array(shapes) for shapes in _with_every_colour(timed)])
    palette = Image.fromarray(samples).quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE)
    images = []
    for shapes, _ in Progress(timed, desc="drawing", unit="frame"):
        image = Image.fromarray(rgb_array(shapes))
        images.append(image.quantize(palette=palette, dither=Image.Dither.NONE))
    animation = io.BytesIO()
    images[0].save(
        animation,
        format="GIF",
        save_all=True,
        append_images=images[1:],
        duration=[time for _, time in timed],
        loop=0,
        optimize=True,
    )
    write_atomically(path, animation.getvalue())
