"""Write a review of a game as text: the mistakes, and the better moves."""

from __future__ import annotations

from collections.abc import Iterator

from bao_agents.analysis import Line, Reviewed, review
from bao_env.board import Board
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.game import SEAT_NAMES


def legend(opening_plies: int) -> str:
    """Return a text that explains the lines of a review, and the heads of their columns.

    Args:
        opening_plies: the number of opening plies, which were drawn at random.
    """
    drawn = " The opening moves were drawn at random, and are not judged." if opening_plies else ""
    return f"""\
Each line has the move, and who stood better before it: South's value, -1 to 1, or a proven winner.
? and ?? lose at least 0.3 and 0.6; ?! leaves a proven win unproven.
"better" gives a better move, its value, and how to go on.
"wins within 9" is proven; the quickest win may be shorter.{drawn}

   # seat   move      before the move"""


def lines(board: Board, player: str, opening_plies: int = 0) -> Iterator[str]:
    """Yield a review of a game: a line for each move, then how often each seat erred.

    Moves are numbered as in transcripts: a number covers a move of South and a move of North.

    Args:
        board: the game, at its end.
        player: the player that reviews the game.
        opening_plies: the number of opening plies, which were drawn at random.
    """
    before_move, judged = board.copy(), []
    while before_move.move_stack:
        before_move.pop()
    number, seat_before = 1, SOUTH
    for move in review(board, player):
        number += (seat_before, move.seat) == (NORTH, SOUTH)
        seat_before = move.seat
        is_judged = move.ply >= opening_plies
        text = before_move.move_text(move.played.action) + (move.mark if is_judged else "")
        verdict = _verdict(before_move, move) if is_judged else "opening"
        yield f"{number:4} {SEAT_NAMES[move.seat]:5}  {text:10}{verdict}"
        if is_judged:
            judged.append(move)
        before_move.push(move.played.action)
    for seat, name in enumerate(SEAT_NAMES):
        own = [move for move in judged if move.seat == seat]
        marks = [move.mark for move in own]
        counts = ((marks.count("?"), "mistake"), (marks.count("??"), "blunder"))
        words = ", ".join(f"{count} {word}{'s' * (count != 1)}" for count, word in counts)
        given_away = sum(move.gives_win_away for move in own)
        wins = f"{given_away} given away, {marks.count('?!')} left unproven"
        yield f"{name}: {words}; proven wins: {wins}"


def _verdict(board: Board, move: Reviewed) -> str:
    """Return the value of a position in words and, after a mistake, the better move."""
    sign = 1 if move.seat == SOUTH else -1
    proof, best = move.analysis.proof, move.analysis.lines[0]
    words = f"{sign * move.analysis.score:+.2f}"
    if proof.winner is not None and proof.plies:
        within = "in" if proof.is_shortest else "within"
        words = f"{SEAT_NAMES[proof.winner]} wins {within} {proof.plies}"
    if move.mark:
        loss = "gives the proven win away; " if move.gives_win_away else ""
        value = "" if best.proof.winner is not None else f"{sign * best.score:+.2f} "
        words = f"{words:21} {loss}better: {value}{_moves(board, best)}"
    return words


def _moves(board: Board, line: Line) -> str:
    """Return the first moves of a line as text."""
    texts, after = [], board.copy()
    for action in line.actions[:5]:
        texts.append(after.move_text(action))
        after.push(action)
    return " ".join(texts)
