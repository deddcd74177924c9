"""Tell the mistakes of a game, and the better moves, in lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from bao_agents.analysis import Line, Reviewed, review
from bao_env.board import Board
from bao_env.game import SEAT_NAMES

LEGEND = """\
Each line has the move, and who stood better before it: South's value, -1 to 1, or a proven winner.
? and ?? lose at least 0.3 and 0.6; ?! leaves a proven win for an open game.
"better" has the better move, its value, and how to go on.
"wins within 9" is proved, but may be quicker. Opening moves were drawn at random: no judgement."""


def lines(board: Board, player: str, opening_plies: int = 0) -> Iterator[str]:
    """Yield a review of a game: a line for each move, then the number of mistakes.

    Args:
        board: the game, at its end.
        player: the player that reviews.
        opening_plies: the first plies that nobody chose.
    """
    shown, marks = board.copy(), []
    while shown.move_stack:
        shown.pop()
    for found in review(board, player):
        chosen = found.ply >= opening_plies
        text = shown.move_text(found.played.action) + (found.mark if chosen else "")
        verdict = _verdict(shown, found) if chosen else "opening"
        yield f"{found.ply + 1:4} {SEAT_NAMES[found.seat]:5}  {text:10}{verdict}"
        if chosen:
            marks.append((found.seat, found.mark, found.gives_win_away))
        shown.push(found.played.action)
    for seat, name in enumerate(SEAT_NAMES):
        mistakes, blunders = (sum(one[:2] == (seat, mark) for one in marks) for mark in ("?", "??"))
        away = sum(given for one, _, given in marks if one == seat)
        counts = (mistakes, "mistake"), (blunders, "blunder"), (away, "proven win")
        words = ", ".join(f"{count} {word}{'s' * (count != 1)}" for count, word in counts)
        yield f"{name}: {words} given away"


def _verdict(board: Board, found: Reviewed) -> str:
    """Return the value of a position in words and, after a mistake, the better move."""
    south = 1 if found.seat == 0 else -1
    proof, best = found.analysis.proof, found.analysis.lines[0]
    words = f"{south * found.analysis.score:+.2f}"
    if proof.winner is not None and proof.plies:
        how = "in" if proof.is_shortest else "within"
        words = f"{SEAT_NAMES[proof.winner]} wins {how} {proof.plies}"
    if found.mark:
        given = "gives the proven win away; " if found.gives_win_away else ""
        value = "" if best.proof.winner is not None else f"{south * best.score:+.2f} "
        words = f"{words:15} {given}better: {value}{_moves(board, best)}"
    return words


def _moves(board: Board, line: Line) -> str:
    texts, shown = [], board.copy()
    for action in line.actions[:5]:
        texts.append(shown.move_text(action))
        shown.push(action)
    return " ".join(texts)
