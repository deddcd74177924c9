"""Run ``bao replay``: print games, positions and moves as boards and words, and review games."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from functools import partial

from gymnasium.error import DependencyNotInstalled

from bao_agents.analysis import PLAYER
from bao_agents.cli.options import (
    Run,
    add_options,
    add_player_options,
    picture_file,
    refuse_unused,
)
from bao_agents.cli.review_text import legend, lines
from bao_agents.players.registry import parse
from bao_agents.support.files import write_atomically
from bao_env.board import Board
from bao_env.engine.ruleset import Ruleset
from bao_env.files import read_text
from bao_env.notation.events import EventKind
from bao_env.notation.game_record import parse_rules
from bao_env.notation.moves import SPELLINGS
from bao_env.notation.positions import NotationError, action_to_move
from bao_env.notation.transcript import Transcript, parse_transcripts
from bao_env.render.raster import import_pygame

_EXAMPLES = """\
examples:
  bao replay game.txt --review     check a file's games, and mark the mistakes
  bao replay start --move 7L*      explain what a move does, event by event
  bao replay start --png bao.png   draw the opening, or any position text

bao_env/RULES.md describes the text of a position. A move is a canonical name
(A6L, the mover's own rows) or what players write (6L*, b7R, 8>). Pictures show
the last board or game."""
_PICTURES = {
    "svg": "the board, as SVG",
    "png": "the board, as PNG",
    "pdf": "the board, as a PDF made of pixels; --svg is sharp at any size",
    "gif": "the moves, as an animated GIF",
}
"""What each picture option draws; an option's name is also the suffix of its file."""


def command(parser: argparse.ArgumentParser) -> Run:
    """Define ``bao replay``: show games, a position, or what a move does."""
    parser.add_argument(
        "what",
        nargs="+",
        metavar="GAMES_OR_POSITION",
        help="files of transcripts, or the text of a position in quotes; start is the opening",
    )
    add_options(parser, ruleset=None)
    parser.add_argument("--move", metavar="MOVE", help="explain this move of the position")
    parser.add_argument(
        "--review",
        action="store_true",
        help="analyse every move of the games, and mark the mistakes",
    )
    parser.add_argument(
        "--player",
        default=PLAYER,
        help="the player that reviews the games (default: %(default)s)",
        metavar="PLAYER",
    )
    parser.add_argument(
        "--spelling",
        choices=SPELLINGS,
        help="notation of the moves (default: recognised by its signs)",
    )
    parser.add_argument(
        "--any-stars", action="store_true", help="accept takasa moves with missing or wrong stars"
    )
    for kind, drawing in _PICTURES.items():
        file = partial(picture_file, suffixes=(f".{kind}",))
        parser.add_argument(f"--{kind}", type=file, metavar="FILE", help=f"also draw {drawing}")
    add_player_options(parser)
    parser.epilog = _EXAMPLES
    return _run


def _run(options: argparse.Namespace) -> None:
    files = [word for word in options.what if not _is_position(word)]
    if options.move and (files or len(options.what) > 1):
        raise ValueError(
            "--move explains a move of one position: give the text of a position, and no files"
        )
    if not files:
        refuse_unused(options, "with a position", "review", "player", "spelling", "any_stars")
    if options.review:
        parse(options.player)  # now, because the games are printed before they are reviewed
    else:
        refuse_unused(options, "without --review", "player")
    _check_packages(options)
    for index, word in enumerate(options.what):
        if index:
            print()
        if word in files:
            board = _show_games(word, options)
        elif options.move:
            board = _explain(Board.from_text(word, options.ruleset or "zanzibar"), options)
        else:
            board = _show_position(Board.from_text(word, options.ruleset or "zanzibar"))
    _draw(board, options, legal=not files and not options.move)


def _is_position(word: str) -> bool:
    """Return whether a word is a position text, and not a file."""
    return not os.path.exists(word) and (word == "start" or "," in word)


def _read(file: str) -> list[Transcript]:
    """Read the games of a file; raise NotationError if it has none or does not exist."""
    try:
        games = parse_transcripts(read_text(file), file)
    except FileNotFoundError as error:
        raise NotationError(
            "there is no such file, and the text of a position has commas", file=file
        ) from error
    if not games:
        raise NotationError("no game in this file", file=file)
    return games


def _show_games(file: str, options: argparse.Namespace) -> Board:
    """Print the games of a file, with reviews if the options ask for them; return the last board.

    Raises:
        NotationError: a game is wrong; the games before it have been printed.
    """
    for index, game in enumerate(_read(file)):
        board = Board.from_transcript(
            game, options.ruleset, spelling=options.spelling, strict=not options.any_stars
        )
        winner = game.get("winner") or game.get("result")
        unfinished = f"unfinished; the header says: {winner}" if winner else "unfinished"
        if index:
            print()
        names = " - ".join(filter(None, (game.get("south"), game.get("north"))))
        count = len(board.move_stack)
        moves = f"{count} {'move' if count == 1 else 'moves'}"
        print(f"{game.get('title') or names or 'game'}: {moves}, all legal")
        stated = _stated_rules(game)
        if stated is not None and stated != board.ruleset:
            print(f"rules: {board.ruleset.contrast(stated)}, which the header says")
        print(board)
        print(f"position: {board.text()}")
        print(f"result: {board.outcome() or unfinished}")
        if options.review:
            opening_plies = board.record().opening_plies
            print(f"\n{legend(opening_plies)}")
            for line in lines(board, options.player, opening_plies):
                print(line, flush=True)
    return board


def _stated_rules(game: Transcript) -> Ruleset | None:
    """Return the rules that the header of a game names; None if it names none that are known."""
    if not (game.get("ruleset") or game.get("rules")):
        return None
    with suppress(NotationError):
        return parse_rules(game.head)
    return None


def _show_position(board: Board) -> Board:
    """Print a position as a board, with its legal moves; return the board."""
    print(board)
    print(f"position: {board.text()}")
    moves = []
    for action in board.legal_actions:
        name, text = action_to_move(action), board.move_text(action)
        moves.append(name if name == text else f"{name} ({text})")
    print(f"legal: {' '.join(moves) or 'none'}")
    return board


def _explain(board: Board, options: argparse.Namespace) -> Board:
    """Print what a move does, event by event; return the board after it."""
    events = board.trace(options.move)
    if options.gif and events[-1].kind is EventKind.INFINITE:
        raise ValueError(f"--gif: the move {options.move} never ends, so it cannot be drawn")
    print(board)
    for number, event in enumerate(events, start=1):
        print(f"{number:4}. {event}")
    if events[-1].kind is not EventKind.INFINITE:
        board.push(options.move)
        print(board)
        print(f"position: {board.text()}")
    return board


def _check_packages(options: argparse.Namespace) -> None:
    """Check that pictures in pixels can be drawn, before anything is printed.

    Raises:
        ValueError: a package for them is not installed.
    """
    for file in filter(None, (options.png, options.pdf, options.gif)):
        try:
            import PIL  # noqa: F401

            import_pygame()
        except (ModuleNotFoundError, DependencyNotInstalled) as error:
            raise ValueError(
                f"{file} needs more packages: pip install 'bao_env[render]'"
            ) from error


def _draw(board: Board, options: argparse.Namespace, *, legal: bool) -> None:
    """Draw a board, or the game that led to it, into the files that the options name."""
    if options.svg:
        write_atomically(options.svg, board.svg(legal=legal))
    for file in filter(None, (options.png, options.pdf, options.gif)):
        from bao_agents.cli.animation import write_gif, write_image

        if file == options.gif:
            write_gif(file, board, words=bool(options.move))
        else:
            write_image(file, board.shapes(legal=legal))
    for file in filter(None, (options.svg, options.png, options.pdf, options.gif)):
        print(f"{file}: {file.stat().st_size / 1e6:.2f} MB")
