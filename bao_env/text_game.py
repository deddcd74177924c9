"""Bao as text, for language models: prompts with a board, answers read from free text, retries.

    game = TextGame()
    while not game.over:
        mistake = game.answer(ask_a_model(game.system(), game.prompt()))
        if mistake:
            ...  # the text to send next; after too many, the player forfeits the game

Holes have names, and a direction is named by the hole that it leads to: ``A6 towards A5``. So left
and right cannot be confused. A namua capture is named by the end of the row from which the captured
seeds are sown: ``A4 from A1``. The same position gives the same prompt.
"""

from __future__ import annotations

import re
import unicodedata

import numpy as np

from bao_env.board import Board
from bao_env.engine.action import pack_action, unpack_action
from bao_env.engine.layout import HOUSE, LEFT, RIGHT, SOUTH, ring_of_pit
from bao_env.engine.position import Position, Words, unpack
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.engine.starts import startable
from bao_env.game import SEAT_NAMES, Stage, legal_actions, stage_of
from bao_env.notation.moves import read_move, why_illegal
from bao_env.notation.positions import NotationError, hole_name, quoted
from bao_env.render.drawing import rows
from bao_env.text_rules import MOVE_LINE, rules_page

TAIL = 2000
"""Characters at the end of an answer that are read."""
_HOLE = r"[AaBb]?[1-8]"
_IN_WORDS = (
    rf"(?P<start>{_HOLE})\s*(?P<how>towards?|to|from|->|→)\s*(?:hole\s*)?(?P<other>{_HOLE})"
    r"(?P<play>\W{0,3}(?:and\s+)?plays?\s+(?:the\s+)?house|\s?[>+])?"
)
_MOVE = rf"(?:{_IN_WORDS}|(?P<short>{_HOLE}[LR<>]?[>+]?))"
_SURE = rf"(?:{_IN_WORDS}|(?P<short>{_HOLE}(?:[LR<>][>+]?|[>+])))"
"""A move that is not the mere name of a hole, with which a sentence may end."""
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"\bmove\W{{0,5}}[:=]\W{{0,20}}?{_MOVE}(?![\w<>+])",
        rf"\A{_MOVE}\Z",
        rf"(?<![\w<>+]){_SURE}\Z",
    )
)
"""Where a move is looked for, in this order; the last match counts."""
_TRIMMED = " \t\r\n.,;!*`'\"()[]{}$"

# --- positions and moves in words -----------------------------------------------------------------


def board_text(position: Position) -> str:
    """Return a position as text: each hole with its name, and what the seeds do not show."""
    lines = []
    for seat, pits in rows():
        cells = [f"{hole_name(seat, pit)}:{position.pits(seat)[pit]:2}" for pit in pits]
        lines.append("  ".join(cells))
    lines.append(f"Stores: South {position.store[0]}, North {position.store[1]}.")
    owners = [
        f"{SEAT_NAMES[seat]} owns the house {hole_name(seat, HOUSE)}."
        for seat in range(2)
        if position.owns_house[seat]
    ]
    lines.append(" ".join(owners or ["Nobody owns a house."]))
    mover = position.mover
    lines.append(f"{SEAT_NAMES[mover]} is to move, in {stage_of(position).value}.")
    if position.barred is not None:
        lines.append(f"Takasia bars {hole_name(mover, position.barred)}.")
    if position.pending is not None:
        lines.append(
            f"The capture at {hole_name(mover, position.pending)} waits for its end; "
            f"{position.pending_sown} seeds have been put down in this move."
        )
    return "\n".join(lines)


def _names_end(words: Words, ruleset: Ruleset) -> bool:
    """Return whether moves begin with captured seeds, so that they name an end of the row."""
    position = unpack(words)
    if position.pending is not None:
        return True
    capture = bool(startable(ruleset.kernel, words)[0])
    return capture and stage_of(position) is Stage.NAMUA


def _other_hole(pit: int, direction: int, names_end: bool) -> int:
    """Return the pit that names a direction: a neighbour, or an end of the front row."""
    if names_end:
        return 0 if direction == LEFT else 7
    step = 1 if (direction == RIGHT) == (pit < 8) else -1
    return ring_of_pit((ring_of_pit(pit) + step) & 15)


def say_move(words: Words, ruleset: Ruleset, action: int) -> str:
    """Return an action in words: ``A6 towards A5``, or ``a4 from a1, play the house``.

    Args:
        words: uint64[6], the position before the move; does not change.
        ruleset: the rules in force.
        action: the action, legal or not.
    """
    pit, direction, house = unpack_action(action)
    seat, names_end = unpack(words).mover, _names_end(words, ruleset)
    other = hole_name(seat, _other_hole(pit, direction, names_end))
    text = f"{hole_name(seat, pit)} {'from' if names_end else 'towards'} {other}"
    return text + ", play the house" * house


def say_moves(board: Board, last: int | None = None) -> str:
    """Return the moves of a game in words, with its players; only the ``last`` ones if given."""
    board, moves = board.copy(), list[str]()
    while board.move_stack and (last is None or len(moves) < last):
        action = board.pop()
        said = say_move(board.words, board.ruleset, action)
        moves.append(f"{board.ply + 1}. {SEAT_NAMES[board.turn]}: {said}")
    return "; ".join(reversed(moves))


# --- prompts --------------------------------------------------------------------------------------


def system_prompt(ruleset: str | Ruleset = "zanzibar") -> str:
    """Return the rules, and what an answer has to look like."""
    return (
        f"{rules_page(get_ruleset(ruleset))}\n\nWhen it is your turn, you see the position. You "
        "may think as long as you like, but end your answer with one line that names your move:\n"
        f"{MOVE_LINE}"
    )


def prompt(board: Board, *, legal: bool = True, history: int = 0) -> str:
    """Return the question for a move.

    Args:
        board: a game that is not over.
        legal: whether the legal moves are listed.
        history: the number of last moves to list.
    """
    parts = [board_text(board.position)]
    if history and board.move_stack:
        parts.append(f"Last moves: {say_moves(board, history)}.")
    if legal:
        moves = [say_move(board.words, board.ruleset, action) for action in board.legal_actions]
        parts.append(f"Your legal moves: {'; '.join(moves)}.")
    parts.append(f"You are {SEAT_NAMES[board.turn]}. What is your move?")
    return "\n".join(parts)


def try_again(mistake: str) -> str:
    """Return the answer to an answer that names no legal move."""
    return f"This is not a legal move: {mistake}. Answer again, and end with one line:\n{MOVE_LINE}"


# --- answers --------------------------------------------------------------------------------------


def read_answer(answer: str, words: Words, ruleset: Ruleset) -> int:
    """Return the legal action that an answer names.

    The last move after ``Move:`` counts, else a move at the very end. A move is given in
    words (:func:`say_move`), in Donkers' notation (``A6L``, ``8>``) or in that of kibao (``A6<``).
    Upper and lower case do not matter, and rows are the mover's.

    Args:
        answer: any text; only its end is read.
        words: uint64[6], the position.
        ruleset: the rules in force.

    Raises:
        NotationError: there is no move, or it is illegal; ``reason`` says why, without the legal
            moves.
    """
    end = unicodedata.normalize("NFKC", answer[-TAIL:]).strip(_TRIMMED)
    matches = next(filter(None, (list(form.finditer(end)) for form in _FORMS)), None)
    if matches is None:
        shown = f"{quoted(end.splitlines()[-1])} " if end else ""
        raise NotationError(f"the answer {shown}does not end with a move")
    found, position = matches[-1], unpack(words)
    if found["short"]:
        text = found["short"].upper()
        text = text if position.mover == SOUTH else text.replace("A", "a").replace("B", "b")
        return read_move(text, words, ruleset, strict=False)
    pit, other = _pit(found["start"]), _pit(found["other"])
    start, names_end = hole_name(position.mover, pit), _names_end(words, ruleset)
    others = [_other_hole(pit, direction, names_end) for direction in (LEFT, RIGHT)]
    names = [hole_name(position.mover, hole) for hole in others]
    if names_end != (found["how"].lower() == "from"):
        raise NotationError(
            "you must capture, and the captured seeds are sown from an end of your front row: "
            f"HOLE from {names[0]} or HOLE from {names[1]}"
            if names_end
            else "only a capture in namua is named by an end of the front row: expected "
            f"{start} towards {names[0]} or {names[1]}"
        )
    if other not in others:
        what = "an end of your front row" if names_end else f"a neighbour of {start}"
        raise NotationError(
            f"{hole_name(position.mover, other)} is not {what}; expected {' or '.join(names)}"
        )
    action = pack_action(pit, others.index(other), 1 if found["play"] else 0)
    if action not in legal_actions(words, ruleset):
        raise NotationError(str(why_illegal(words, ruleset, action)))
    return action


def _pit(hole: str) -> int:
    """Return the pit of a hole with or without its row; without, it is in the front row."""
    return int(hole[-1]) - 1 + 8 * (hole[0] in "Bb")


# --- games ----------------------------------------------------------------------------------------


def random_board(ruleset: str | Ruleset, plies: int, seed: int) -> Board:
    """Return a board after random legal moves; the same arguments give the same game."""
    rng = np.random.default_rng(seed)
    while True:
        board = Board(ruleset)
        while board.ply < plies and board.outcome() is None:
            board.push(int(rng.choice(board.legal_actions)))
        if board.outcome() is None:
            return board


class TextGame:
    """A game between two players who write.

    A player who has given ``retries + 1`` answers without a legal move in a row forfeits the game.

    Args:
        start: a rule set or its name; or a board, whose copy is played on.
        opening_plies: random moves before the game; none on a board.
        seed: the seed of those moves.
        legal: whether prompts list the legal moves.
        history: the number of last moves that prompts list.
        retries: further tries after an answer that names no legal move.
        max_plies: the game is a draw at this length.
    """

    def __init__(
        self,
        start: str | Ruleset | Board = "zanzibar",
        *,
        opening_plies: int = 0,
        seed: int = 0,
        legal: bool = True,
        history: int = 10,
        retries: int = 2,
        max_plies: int = 1000,
    ) -> None:
        if isinstance(start, Board):
            self.board = start.copy()
        else:
            self.board = random_board(start, opening_plies, seed)
        self.forfeited: int | None = None
        """The seat that has forfeited the game, if any."""
        self.illegal = [0, 0]
        """The answers of South and of North that named no legal move."""
        self._legal, self._history, self._retries = legal, history, retries
        self._max_plies = max_plies
        self._tries = 0

    @property
    def turn(self) -> int:
        """The seat to move, SOUTH or NORTH."""
        return self.board.turn

    @property
    def over(self) -> bool:
        """Whether the game has ended."""
        return self.winner is not None or self.board.ply >= self._max_plies

    @property
    def winner(self) -> int | None:
        """The seat that has won, by the rules or by a forfeit; None while there is none."""
        if self.forfeited is not None:
            return 1 - self.forfeited
        outcome = self.board.outcome()
        return None if outcome is None else outcome.winner

    @property
    def ending(self) -> str:
        """How the game ended, in words; empty while it runs."""
        if self.forfeited is not None:
            loser, winner = SEAT_NAMES[self.forfeited], SEAT_NAMES[1 - self.forfeited]
            return f"{winner} wins: {loser} named no legal move in {self._retries + 1} tries"
        outcome = self.board.outcome()
        if outcome is None and self.over:
            return f"a draw: {self._max_plies} moves"
        return "" if outcome is None else str(outcome)

    def system(self) -> str:
        """Return the rules, and what an answer has to look like."""
        return system_prompt(self.board.ruleset)

    def prompt(self) -> str:
        """Return the question for the player to move."""
        return prompt(self.board, legal=self._legal, history=self._history)

    def answer(self, text: str) -> str | None:
        """Play the move that an answer names.

        Returns:
            None if the move was played; otherwise what to tell the player, who may then answer
            again, unless the game has been forfeited.
        """
        try:
            action = read_answer(text, self.board.words, self.board.ruleset)
        except NotationError as error:
            self.illegal[self.turn] += 1
            self._tries += 1
            if self._tries > self._retries:
                self.forfeited = self.turn
            return try_again(str(error.reason))
        self._tries = 0
        self.board.push(action)
        return None

    def play(self, action: int) -> None:
        """Play an action for a player who does not write.

        Raises:
            IllegalMoveError: it cannot be played.
        """
        self.board.push(action)
