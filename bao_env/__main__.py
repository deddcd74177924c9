"""The command line of ``python -m bao_env``: replay games, explain moves, show boards."""

from __future__ import annotations

import argparse
import codecs
import sys
from collections.abc import Sequence
from pathlib import Path

from bao_env.board import Board
from bao_env.notation.moves import SPELLINGS
from bao_env.notation.positions import NotationError, action_to_move, format_position
from bao_env.notation.transcript import MAX_TEXT, Transcript, parse_transcripts, replay
from bao_env.render.svg import svg_board
from bao_env.render.text import ascii_board
from bao_env.rule_files import RULESET_HELP, ruleset_argument
from bao_env.trace import EventKind

_OPENING = "0,0,0,0,6,2,2,0/0,0,0,0,0,0,0,0/0,0,0,0,6,2,2,0/0,0,0,0,0,0,0,0 22,22 SN S -"
_EXAMPLES = f"""\
examples:
  python -m bao_env replay game.txt
  python -m bao_env replay --spelling kibao --ruleset kibao game.txt
  python -m bao_env explain "{_OPENING}" "7L*"
  python -m bao_env show "{_OPENING}"

A position is one argument, so put it between quotes; bao_env/RULES.md describes its fields.
A move is a canonical name (A6L, the mover's own rows) or what players write (6L*, b7R, 8>).
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code: 0, or 1 after a message to stderr.

    Args:
        arguments: the arguments after the program's name; None means those of ``sys.argv``.
    """
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bao_env",
        description="Check and explain Bao games, positions and moves written as text.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser(
        "replay", help="check every move of the games in a file and print where they end"
    )
    command.add_argument("file", metavar="FILE", help="a transcript, or several in one file")
    _add_ruleset(command, None, "the rules (default: the rules that the head names, or zanzibar)")
    command.add_argument("--spelling", choices=SPELLINGS, help="default: found from the signs")
    command.add_argument(
        "--any-stars", action="store_true", help="accept missing and wrong stars of takasa moves"
    )
    command.add_argument("--svg", metavar="FILE", help="also write the last final board as SVG")
    command.set_defaults(run=_replay)

    command = commands.add_parser("explain", help="print what a move does, event by event")
    command.add_argument("position", metavar="POSITION", help="a position text, between quotes")
    command.add_argument("move", metavar="MOVE", help="such as A6L, 6L*, b7R or 8>")
    _add_ruleset(command, "zanzibar", "the rules (default: zanzibar)")
    command.set_defaults(run=_explain)

    command = commands.add_parser("show", help="print a position as a board, with its legal moves")
    command.add_argument("position", metavar="POSITION", help="a position text, between quotes")
    _add_ruleset(command, "zanzibar", "the rules (default: zanzibar)")
    command.add_argument("--svg", metavar="FILE", help="also write the board as a picture")
    command.set_defaults(run=_show)
    return parser


def _add_ruleset(command: argparse.ArgumentParser, default: str | None, text: str) -> None:
    command.add_argument(
        "--ruleset",
        type=ruleset_argument,
        default=default,
        metavar="RULES",
        help=f"{text}: {RULESET_HELP}",
    )


def _read(file: str) -> list[Transcript]:
    """Read the games of a file; NotationError if it is too long, not ASCII, or has no game."""
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


def _replay(options: argparse.Namespace) -> None:
    for index, game in enumerate(_read(options.file)):
        played = replay(
            game, options.ruleset, spelling=options.spelling, strict=not options.any_stars
        )
        last = played.positions[-1] if played.positions else played.start
        winner = game.get("winner") or game.get("result")
        if played.outcome is not None:
            result = str(played.outcome)
        elif winner:
            result = f"unfinished; the head says: {winner}"
        else:
            result = "unfinished"
        if index:
            print()
        names = " - ".join(filter(None, (game.get("south"), game.get("north"))))
        print(f"{game.get('title') or names or 'game'}: {len(played.actions)} moves, all legal")
        print(ascii_board(last, status=str(played.outcome) if played.outcome else None))
        print(f"position: {format_position(last)}")
        print(f"result: {result}")
        if options.svg:
            Path(options.svg).write_text(svg_board(last), encoding="ascii")


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


def _show(options: argparse.Namespace) -> None:
    board = Board.from_text(options.position, options.ruleset)
    print(board)
    print(f"position: {board.text()}")
    moves = [
        f"{action_to_move(action)} ({board.move_text(action)})" for action in board.legal_actions
    ]
    print(f"legal: {' '.join(moves) or 'none'}")
    if options.svg:
        Path(options.svg).write_text(svg_board(board.position), encoding="ascii")


if __name__ == "__main__":
    sys.exit(main())
