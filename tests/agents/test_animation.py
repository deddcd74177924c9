"""Test the animated pictures of games and moves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor

from bao_agents.cli.animation import frames, write_gif
from bao_env.board import Board
from bao_env.engine.ruleset import RULESETS
from bao_env.render.drawing import drawing
from bao_env.render.marks import MarkKind
from bao_env.render.shapes import Circle, Text
from tests.conftest import Says
from tests.processes import ROOT
from tests.rulesets import every_ruleset

MOVE = (
    "0,0,1,0,7,0,2,0/0,0,0,0,0,0,0,0/1,0,0,0,7,2,2,0/0,0,0,0,0,0,0,0 21,21 SN S -",
    "zanzibar",
    "3R",
)
"""The move of the README's picture: a capture and a relay."""


@every_ruleset("zanzibar")
def test_every_frame_has_all_seeds(ruleset: str) -> None:
    board = Board(ruleset)
    for ply in range(24):
        if board.outcome() is not None:
            break
        legal = board.legal_actions
        board.push(legal[ply % len(legal)])
    drawn_frames = list(frames(board))
    assert len(drawn_frames) > 100
    for shapes, milliseconds in drawn_frames:
        assert sum(isinstance(s, Circle) and s.radius == 5 for s in shapes) == 64
        assert milliseconds >= 20  # browsers slow down faster frames


def test_replay_draws_the_game(tmp_path: Path, says: Says) -> None:
    file, game = tmp_path / "game.gif", tmp_path / "game.txt"
    game.write_text("1: 6L* 5L;")
    assert "2 moves, all legal" in says(f"replay {game} --gif {file}")
    with Image.open(file) as picture:
        assert picture.size == (820, 406) and frames_of(picture) > 10
        assert picture.info["loop"] == 0  # for ever
        pixels = np.asarray(picture.convert("RGB")).astype(int)
    gold = ImageColor.getrgb(MarkKind.LEGAL.colour)  # the name of the player to move
    assert np.abs(pixels - gold).sum(axis=2).min() < 12


def test_a_film_takes_the_time_of_its_frames(tmp_path: Path) -> None:
    board, file, times = Board.from_text("start", moves=["7L*"]), tmp_path / "move.gif", []
    write_gif(file, board, words=True)
    with Image.open(file) as picture:
        for number in range(frames_of(picture)):
            picture.seek(number)
            times.append(picture.info["duration"])
    assert sum(times) == sum(time for _, time in frames(board, words=True))


def test_only_a_move_is_told_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    with_words, game = list[bool](), tmp_path / "game.txt"
    game.write_text("1: 6L* 5L;")

    def note(file: Path, board: Board, *, words: bool = False) -> None:
        with_words.append(words)
        file.touch()

    monkeypatch.setattr("bao_agents.cli.animation.write_gif", note)
    for game_or_move in ("start --move 7L*", game):
        says(f"replay {game_or_move} --gif {tmp_path}/new.gif")
    assert with_words == [True, False]


def test_frames_take_their_time() -> None:
    """The move enters a seed, captures, and sows two seeds and then three; its last event and the
    choice of a side have no frame without words."""
    board = Board.from_text(*MOVE)
    entry, captured, lift, sown = [160], [260, 200], [160], 90
    moved = [*entry, *captured, *[sown] * 2, *lift, *[sown] * 3]
    assert [time for _, time in frames(board)] == [1200, *moved, 450]
    with_words = [1160, 1260, 200, 1000, 1090, 90, 1160, 1090, 90, 90, 1000]
    assert [time for _, time in frames(board, words=True)] == [1200, *with_words, 450]
    sentences = [event.sentence for event in Board.from_text(*MOVE[:2]).trace("3R")]
    sentences_of_frames = [sentences[number] for number in (0, 1, 1, 2, 3, 3, 4, 5, 5, 5, 6, 6)]
    for words, texts in ((True, sentences_of_frames), (False, ["South: 3R"] * (len(moved) + 1))):
        for (shapes, _), text in zip([*frames(board, words=words)][1:], texts, strict=True):
            assert text in [shape.text for shape in shapes if isinstance(shape, Text)]


@pytest.mark.parametrize("ruleset", RULESETS)
def test_a_film_begins_with_the_board_of_its_rules(ruleset: str) -> None:
    board = Board(ruleset)
    opening = drawing(board.position, house=board.ruleset.house)
    board.push(board.legal_actions[0])
    assert next(frames(board)) == (opening, 1200)


def frames_of(picture: Image.Image) -> int:
    """Return the number of frames of an animation."""
    return int(getattr(picture, "n_frames", 1))


def test_picture_in_the_readme() -> None:
    """``bao replay POSITION --move 3R --gif agents/move.gif`` makes the picture; POSITION is
    above."""
    file = ROOT / "agents" / "move.gif"
    assert file.relative_to(ROOT).as_posix() in (ROOT / "README.md").read_text(encoding="utf-8")
    drawn_frames = list(frames(Board.from_text(*MOVE), words=True))
    with Image.open(file) as picture:
        assert 8 < frames_of(picture) <= len(drawn_frames)  # equal frames in a row count as one
