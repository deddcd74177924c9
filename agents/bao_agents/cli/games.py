"""Run the commands ``bao replay``, ``bao explain`` and ``bao show``."""

from __future__ import annotations

import argparse
import codecs
from collections.abc import Iterator
from pathlib import Path

from gymnasium.error import DependencyNotInstalled

from bao_agents.cli.files import write_atomically
from bao_agents.cli.options import Run, add_options, new_file
from bao_env.board import Board
from bao_env.notation.moves import SPELLINGS
from bao_env.notation.positions import NotationError, action_to_move, format_position
from bao_env.notation.transcript import MAX_TEXT, Transcript, parse_transcripts, replay
from bao_env.trace import EventKind

_EXAMPLE = """\
example:
  bao {} "0,0,0,0,6,2,2,0/0,0,0,0,0,0,0,0/0,0,0,0,6,2,2,0/0,0,0,0,0,0,0,0 22,22 SN S -"{}

bao_env/RULES.md describes the fields of a position. A move is a canonical name (A6L, the mover's
own rows) or what players write (6L*, b7R, 8>).
"""


def replay_command(parser: argparse.ArgumentParser) -> Run:
    """``bao replay``: check every move of the games in a file and print where they end."""
    parser.add_argument("file", metavar="FILE", help="a file of one or more transcripts")
    add_options(parser, ruleset=None)
    parser.add_argument(
        "--spelling",
        choices=SPELLINGS,
        help="spelling of the moves (default: recognised by their signs)",
    )
    parser.add_argument(
        "--any-stars", action="store_true", help="accept missing and wrong stars of takasa moves"
    )
    parser.add_argument(
        "--svg", type=new_file, metavar="FILE", help="also draw the final board, as SVG"
    )
    parser.add_argument(
        "--gif", type=new_file, metavar="FILE", help="also draw the game, as an animated GIF"
    )
    parser.epilog = "--svg and --gif draw the last game of the file."
    return _replay


def explain_command(parser: argparse.ArgumentParser) -> Run:
    """``bao explain``: print what a move does, event by event."""
    parser.add_argument("position", metavar="POSITION", help="a position text, between quotes")
    parser.add_argument("move", metavar="MOVE", help="such as A6L, 6L*, b7R or 8>")
    add_options(parser, "ruleset")
    parser.add_argument(
        "--gif", type=new_file, metavar="FILE", help="also draw the move, as an animated GIF"
    )
    parser.epilog = _EXAMPLE.format("explain", ' "7L*"')
    return _explain


def show_command(parser: argparse.ArgumentParser) -> Run:
    """``bao show``: print a position as a board, with its legal moves."""
    parser.add_argument("position", metavar="POSITION", help="a position text, between quotes")
    add_options(parser, "ruleset")
    parser.add_argument(
        "--svg", type=new_file, metavar="FILE", help="also draw it, with its legal moves, as SVG"
    )
    parser.epilog = _EXAMPLE.format("show", "")
    return _show


def _read(file: str) -> list[Transcript]:
    """Read the games of a file; raise NotationError if it is too long, not ASCII or empty."""
    with Path(file).open("rb") as stream:
        data = stream.read(MAX_TEXT + 1).removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise NotationError(
            f"the byte 0x{data[error.start]:02x} is not ASCII", file=file, line=line
        ) from None
    games = parse_transcripts(text, file)
    if not games:
        raise NotationError("no game in this file", file=file)
    return games


def replay_games(options: argparse.Namespace) -> Iterator[tuple[Transcript, Board]]:
    """Yield the games of ``bao replay``, each with its last board; raise NotationError if wrong."""
    for game in _read(options.file):
        played = replay(
            game, options.ruleset, spelling=options.spelling, strict=not options.any_stars
        )
        yield game, Board.from_text(format_position(played.start), played.ruleset, played.actions)


def _replay(options: argparse.Namespace) -> None:
    for index, (game, board) in enumerate(replay_games(options)):
        winner = game.get("winner") or game.get("result")
        unfinished = f"unfinished; the header says: {winner}" if winner else "unfinished"
        if index:
            print()
        names = " - ".join(filter(None, (game.get("south"), game.get("north"))))
        print(f"{game.get('title') or names or 'game'}: {len(board.move_stack)} moves, all legal")
        print(board)
        print(f"position: {board.text()}")
        print(f"result: {board.outcome() or unfinished}")
    if options.svg:
        write_atomically(options.svg, board.svg())
    if options.gif:
        _write_gif(options.gif, board)


def _write_gif(file: str, board: Board, *, words: bool = False) -> None:
    """Draw a game; raise ValueError if a package for it is not installed."""
    try:
        from bao_agents.cli.animation import write_gif

        write_gif(file, board, words=words)
    except (ModuleNotFoundError, DependencyNotInstalled) as error:
        raise ValueError("--gif needs more packages: pip install 'bao_env[render]'") from error
    print(f"{file}: {Path(file).stat().st_size / 1e6:.2f} MB")


def _explain(options: argparse.Namespace) -> None:
    board = Board.from_text(options.position, options.ruleset)
    events = board.trace(options.move)
    print(board)
    for number, event in enumerate(events, start=1):
        print(f"{number:4}. {event}")
    if events[-1].kind is not EventKind.INFINITE:
        board.push(options.move)
        print(board)
        print(f"position: {board.text()}")
        if options.gif:
            _write_gif(options.gif, board, words=True)


def _show(options: argparse.Namespace) -> None:
    board = Board.from_text(options.position, options.ruleset)
    print(board)
    print(f"position: {board.text()}")
    moves = [
        f"{action_to_move(action)} ({board.move_text(action)})" for action in board.legal_actions
    ]
    print(f"legal: {' '.join(moves) or 'none'}")
    if options.svg:
        write_atomically(options.svg, board.svg(legal=True))
