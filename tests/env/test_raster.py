"""Test pictures in pixels, the window, and the render modes of the environments."""

from __future__ import annotations

import copy
import io
import pickle
import signal
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pygame
import pytest

from bao_env.board import Board
from bao_env.engine.action import actions_of
from bao_env.envs.aec import raw_env
from bao_env.envs.single import BaoEnv
from bao_env.envs.vector import BaoVectorEnv
from bao_env.render import svg_board
from bao_env.render.drawing import HEIGHT, WIDTH, drawing
from bao_env.render.marks import MarkKind, action_marks
from bao_env.render.raster import rgb_array
from bao_env.render.shapes import Rect, Text
from tests.conftest import Capsys
from tests.positions import OPENING
from tests.processes import python

pytestmark = [pytest.mark.filterwarnings("error"), pytest.mark.usefixtures("headless")]

MIDDLE = "0,8,0,8,1,1,4,2/2,2,0,1,1,0,1,1/1,0,0,0,0,4,1,3/2,2,2,2,1,0,0,0 7,7 - S -"


def shapes_of(text: str) -> list[Any]:
    return drawing(Board.from_text(text).position)


def image_of(text: str) -> Any:
    return rgb_array(shapes_of(text))


def shown() -> Any:
    """Return what the window shows, uint8[H, W, 3], or None."""
    screen = pygame.display.get_surface()
    return None if screen is None else pygame.surfarray.array3d(screen).transpose(1, 0, 2)


# --- the image ----------------------------------------------------------------------------------


def test_all_but_texts_is_the_svg() -> None:
    """SDL paints the same document as a browser, without the labels."""
    shapes = [shape for shape in shapes_of(MIDDLE) if not isinstance(shape, Text)]
    svg = svg_board(Board.from_text(MIDDLE).position, width=820)
    image = pygame.image.load(io.BytesIO(svg.encode()), "board.svg")
    expected = pygame.surfarray.array3d(image).transpose(1, 0, 2)
    assert np.array_equal(rgb_array(shapes), expected)


@pytest.mark.parametrize("scale", [1, 2])
def test_labels_are_centred(scale: int) -> None:
    paper = Rect(0, 0, WIDTH, HEIGHT, 0, "#000000")
    image = rgb_array([Text(300, 200, "888", 40, "#ffffff"), paper], scale).max(axis=2)
    rows, columns = np.nonzero(image > 128)
    assert (columns.min() + columns.max()) / 2 == pytest.approx(scale * 300, abs=2)
    assert (rows.min() + rows.max()) / 2 == pytest.approx(scale * 200, abs=3 * scale)
    assert 22 * scale < np.ptp(rows) < 38 * scale
    assert len(np.unique(image)) > 9  # smooth edges


# --- the window ---------------------------------------------------------------------------------


def test_a_window_leaves_signals_alone() -> None:
    """By default SDL would turn SIGTERM into an event that nobody reads."""
    program = (
        "import signal; from bao_env import raw_env\n"
        "game = raw_env(render_mode='human'); game.metadata['render_fps'] = 10_000; game.reset()\n"
        "signal.raise_signal(signal.SIGTERM); game.render()"
    )
    python(program, status=-signal.SIGTERM)


# --- the environments ---------------------------------------------------------------------------


def make(kind: str, **arguments: Any) -> Any:
    return raw_env(**arguments) if kind == "aec" else BaoEnv(None, opening_plies=0, **arguments)


def picture(action: int) -> Any:
    """Return the board after an action, which is marked."""
    board = Board()
    marks = action_marks(MarkKind.LAST, board.packed, board.ruleset, [action])
    board.push(action)
    return rgb_array(drawing(board.position, marks=marks))


BOTH = pytest.mark.parametrize("kind", ["aec", "single"])


def first_legal(positions: Any, legal: Any) -> list[int]:
    return [actions_of(bits)[0] for bits in legal]


@pytest.mark.parametrize("opponent", [None, first_legal])
def test_games_side_by_side_look_as_each_alone(opponent: Any, seed: int) -> None:
    """The pictures agree even after illegal actions, at the end, and where the next games have
    begun.

    An image needs no display.
    """
    arguments: Any = {"opponent": opponent, "opening_plies": 0, "max_plies": 4}
    arguments |= {"render_mode": "rgb_array", "seat": opponent and "north"}
    arguments |= {"ruleset": "kujifunza" if opponent else "zanzibar", "first_player": "south"}
    games, rng = BaoVectorEnv(2, **arguments), np.random.default_rng(seed)
    alone, over = [BaoEnv(**arguments), BaoEnv(**arguments)], [True, True]
    games.reset(seed=seed)
    for step in range(8):
        actions = games.sample_legal_actions()
        actions[rng.random(2) < 0.1] = 1
        if step:
            games.step(actions)
        for i, game in enumerate(alone):
            if over[i]:
                game.reset()
            over[i] = not over[i] and any(game.step(actions[i])[2:4])
        np.testing.assert_equal(games.render(), tuple(game.render() for game in alone))
    assert not pygame.display.get_init()


@BOTH
def test_human(kind: str, capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each picture is shown, and a pause follows."""
    calls: list[Any] = []
    monkeypatch.setattr(pygame.event, "pump", lambda: calls.append("pump"))
    monkeypatch.setattr(pygame.display, "flip", lambda: calls.append(shown()))
    monkeypatch.setattr(pygame.time, "Clock", lambda: SimpleNamespace(tick=calls.append))
    game = make(kind, render_mode="human")
    assert shown() is None
    for _ in range(2):  # the second time after closing
        game.reset(seed=0)
        assert np.array_equal(shown(), image_of(OPENING))
        assert pygame.display.get_caption()[0] == "Bao"
        game.step(20)
        assert np.array_equal(shown(), picture(20))
        assert game.render() is None
        images = [image_of(OPENING), picture(20), picture(20)]
        expected = [call for image in images for call in ("pump", image, 10_000)]
        np.testing.assert_equal(calls, expected)
        calls.clear()
        game.close()
        assert not pygame.display.get_init()
        game.close()
    assert capsys.readouterr().out == ""


@BOTH
@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda game: pickle.loads(pickle.dumps(game))]
)
def test_copies_with_an_open_window(kind: str, duplicate: Callable[[Any], Any]) -> None:
    game = make(kind, render_mode="human")
    game.reset()
    twin = duplicate(game)
    twin.close()
    assert shown() is not None  # the window belongs to the first environment
    twin.step(20)
    assert np.array_equal(shown(), picture(20))
    assert game.position.ply == 0
    game.close()
