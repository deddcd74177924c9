"""Extend ``bao replay`` with ``--review``: find the mistakes of a game, and the better moves."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from bao_agents.analysis import PLAYER, Line, Reviewed, review
from bao_agents.cli import games
from bao_agents.cli.options import Run
from bao_env.board import Board
from bao_env.game import SEAT_NAMES


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao replay``: check every move of the games in a file, draw the last one, review all."""
    replay = games.replay_command(parser)
    parser.add_argument(
        "--review", action="store_true", help="analyse every move, and mark the mistakes"
    )
    parser.add_argument(
        "--player", default=PLAYER, help="the player that reviews (%(default)s)", metavar="PLAYER"
    )

    def run(options: argparse.Namespace) -> None:
        replay(options)
        if options.review:
            for _, board in games.replay_games(options):
                print()
                for line in lines(board, options.player):
                    print(line, flush=True)

    return run


def lines(board: Board, player: str) -> Iterator[str]:
    """Yield a review of a game: a line for each move, then the number of mistakes.

    A line has the ply, the move, South's expected result before it (-1 to 1) or the proven winner,
    and what would have been better.
    """
    shown, marks = board.copy(), []
    while shown.move_stack:
        shown.pop()
    for found in review(board, player):
        text = shown.move_text(found.played.action) + found.mark
        yield f"{found.ply + 1:4} {SEAT_NAMES[found.seat]:5}  {text:10}{_verdict(shown, found)}"
        marks.append((found.seat, found.mark, found.gives_win_away))
        shown.push(found.played.action)
    for seat, name in enumerate(SEAT_NAMES):
        mistakes, blunders = (sum(one[:2] == (seat, mark) for one in marks) for mark in ("?", "??"))
        away = sum(given for one, _, given in marks if one == seat)
        yield f"{name}: {mistakes} mistakes, {blunders} blunders, {away} proven wins given away"


def _verdict(board: Board, found: Reviewed) -> str:
    """Return the value of a position in words and, after a mistake, the better move."""
    score = found.analysis.score if found.seat == 0 else -found.analysis.score
    proof, best = found.analysis.proof, found.analysis.lines[0]
    words = f"{score:+.2f}"
    if proof.winner is not None and proof.plies:
        how = "in" if proof.is_shortest else "within"
        words = f"{SEAT_NAMES[proof.winner]} wins {how} {proof.plies}"
    if found.mark:
        given = "gives the proven win away; " if found.gives_win_away else ""
        words = f"{words:15} {given}better: {_moves(board, best)}"
    return words


def _moves(board: Board, line: Line) -> str:
    texts, shown = [], board.copy()
    for action in line.actions[:5]:
        texts.append(shown.move_text(action))
        shown.push(action)
    return " ".join(texts)
