"""Play Bao as text with language models: prompt with a board, read answers from free text, retry.

    game = TextGame(Board())
    while not game.ending:
        mistake = game.answer(ask_a_model(game.system(), game.prompt()))
        if mistake:
            ...  # the text to send next; after too many, the player forfeits the game

A move names its hole and the hole that its direction leads to: ``A6 towards A5``. So left and right
cannot be confused. A namua capture names the end of the row from which the captured seeds are sown:
``A4 from A1``. The same position gives the same prompt.
"""

from __future__ import annotations

import re
import unicodedata

import numpy as np

from bao_env.board import Board
from bao_env.engine.action import unpack_action
from bao_env.engine.layout import HOUSE, SOUTH, ring_of_pit
from bao_env.engine.position import Position, Words, unpack
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.engine.starts import startable
from bao_env.game import SEAT_NAMES, Stage, stage_of
from bao_env.notation.moves import read_move
from bao_env.notation.positions import NotationError, hole_name, quoted
from bao_env.render.drawing import rows, status_line
from bao_env.text_rules import rules_page

TAIL = 2000
"""Characters at the end of an answer that are read."""
_SYSTEM = """{}

When it is your turn, you see the position. You may think as long as you like, but end your answer \
with one line that names your move:
Move: HOLE towards HOLE"""
_TRY_AGAIN = """This is not a legal move: {}. Answer again, and end with one line:
Move: HOLE towards HOLE"""
_HOLE = "[AB]?[1-8]"
_IN_WORDS = (
    rf"(?P<start>{_HOLE})\s*(?P<how>TOWARDS?|TO|FROM|->|→)\s*(?:HOLE\s*)?(?P<other>{_HOLE})"
    r"(?P<play>\W{0,3}(?:AND\s+)?PLAYS?\s+(?:THE\s+)?HOUSE|\s?[>+])?"
)
_MOVE = rf"(?:{_IN_WORDS}|(?P<short>{_HOLE}[LR<>]?[>+]?))"
_FORMS = (
    rf"\bMOVE\W{{0,5}}[:=]\W{{0,20}}?{_MOVE}(?![\w<>+])",
    rf"\A{_MOVE}\Z",
    # Not just the name of a hole: a sentence may end with one.
    rf"(?<![\w<>+])(?:{_IN_WORDS}|(?P<short>{_HOLE}(?:[LR<>][>+]?|[>+])))\Z",
)
"""Patterns that find a move in an upper-case answer, tried in this order; the last match counts."""
_TRIMMED = " \t\r\n.,;!*`'\"()[]{}$"

# --- positions and moves in words -----------------------------------------------------------------


def board_text(position: Position) -> str:
    """Return a position as text: each hole with its name, and what the seeds do not show."""
    lines = []
    for seat, pits in rows():
        cells = [f"{hole_name(seat, pit)}:{position.pits(seat)[pit]:2}" for pit in pits]
        lines.append("  ".join(cells))
    for seat, name in enumerate(SEAT_NAMES):
        house = f"owns the house {hole_name(seat, HOUSE)}"
        lines.append(
            f"{name}: {position.store[seat]} in store, "
            f"{house if position.owns_house[seat] else 'owns no house'}"
        )
    return "\n".join([*lines, status_line(position, None)])


def _other_holes(words: Words, ruleset: Ruleset, pit: int) -> tuple[str, list[str]]:
    """Return how a hole's two directions, left and right, are named: ``towards`` its neighbours.

    Captured seeds that are sown first come ``from`` an end of the front row.
    """
    position = unpack(words)
    namua = stage_of(position) is Stage.NAMUA
    if position.pending is not None or (namua and startable(ruleset.kernel, words)[0]):
        how, others = "from", [0, 7]
    else:
        ring, step = ring_of_pit(pit), 1 if pit < 8 else -1
        how, others = "towards", [ring_of_pit((ring + way) & 15) for way in (-step, step)]
    return how, [hole_name(position.mover, other) for other in others]


def say_move(words: Words, ruleset: Ruleset, action: int) -> str:
    """Return an action in words: ``A6 towards A5``, or ``a4 from a1, play the house``.

    Args:
        words: uint64[6], the position before the move; does not change.
        ruleset: the rules in force.
        action: the action, legal or not.
    """
    pit, direction, house = unpack_action(action)
    how, others = _other_holes(words, ruleset, pit)
    start = hole_name(unpack(words).mover, pit)
    return f"{start} {how} {others[direction]}" + ", play the house" * house


# --- prompts --------------------------------------------------------------------------------------


def system_prompt(ruleset: str | Ruleset = "zanzibar") -> str:
    """Return the rules, and what an answer has to look like."""
    return _SYSTEM.format(rules_page(get_ruleset(ruleset)))


def prompt(board: Board, *, legal: bool = True) -> str:
    """Return the question for a move; it lists the legal moves if ``legal`` is set."""
    asked = f"You are {SEAT_NAMES[board.turn]}. What is your move?"
    if legal:
        moves = [say_move(board.words, board.ruleset, action) for action in board.legal_actions]
        asked = f"Your legal moves: {'; '.join(moves)}.\n{asked}"
    return f"{board_text(board.position)}\n{asked}"


def try_again(mistake: NotationError) -> str:
    """Return the reply to an answer without a legal move."""
    return _TRY_AGAIN.format(mistake.reason)


# --- answers --------------------------------------------------------------------------------------


def read_answer(answer: str, words: Words, ruleset: Ruleset) -> int:
    """Return the legal action that an answer names.

    The last move after ``Move:`` counts, else a move at the very end. A move is given in words
    (:func:`say_move`), in Donkers' notation (``A6L``, ``8>``) or in that of kibao (``A6<``). Upper
    and lower case do not matter, and rows are the mover's.

    Args:
        answer: any text; only its end is read.
        words: uint64[6], the position.
        ruleset: the rules in force.

    Raises:
        NotationError: there is no move, or it is illegal; ``reason`` says why, without the legal
            moves.
    """
    end = unicodedata.normalize("NFKC", answer[-TAIL:]).strip(_TRIMMED)
    upper = end.upper()
    found = next(filter(None, ([*re.finditer(form, upper)] for form in _FORMS)), None)
    if found is None:
        shown = f"{quoted(end.splitlines()[-1])} " if end else ""
        raise NotationError(f"the answer {shown}does not end with a move")
    match, mover = found[-1], unpack(words).mover
    letters = str.upper if mover == SOUTH else str.lower
    if match["short"]:
        # Rows in the mover's letters; L and R are capitals.
        text = re.sub("[AB]", lambda row: letters(row[0]), match["short"])
        return read_move(text, words, ruleset, strict=False)
    start, other = (letters(hole.rjust(2, "A")) for hole in (match["start"], match["other"]))
    pit = int(start[1]) - 1 + 8 * (start[0] in "Bb")
    how, others = _other_holes(words, ruleset, pit)
    if (match["how"] == "FROM") != (how == "from") or other not in others:
        end_of_row = ", the end of the row where the captured seeds are sown from"
        raise NotationError(
            f"expected {start} {how} {others[0]} or {others[1]}{end_of_row * (how == 'from')}"
        )
    text = f"{start}{'LR'[others.index(other)]}{'>' * bool(match['play'])}"
    return read_move(text, words, ruleset, spelling="donkers", strict=False)


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
        board: the start, for example of :func:`random_board`; a copy of it is played on.
        legal: whether prompts list the legal moves.
        history: the number of last moves that prompts list.
        retries: further tries after an answer without a legal move.
    """

    def __init__(
        self, board: Board, *, legal: bool = True, history: int = 10, retries: int = 2
    ) -> None:
        self.board = board.copy()
        self.moves: list[str] = []
        """The moves of the game, with their players, in words."""
        self.illegal = [0, 0]
        """The number of answers of South and of North without a legal move."""
        self.winner: int | None = None
        """The seat that has won, by the rules or by a forfeit."""
        self.ending = ""
        """How the game ended, in words; empty while it runs."""
        self._legal, self._history, self._retries = legal, history, retries
        self._tries = 0

    def system(self) -> str:
        """Return the rules, and what an answer has to look like."""
        return system_prompt(self.board.ruleset)

    def prompt(self) -> str:
        """Return the question for the player to move."""
        asked = prompt(self.board, legal=self._legal)
        last = self.moves[-self._history :] if self._history else []
        return f"Last moves: {'; '.join(last)}.\n\n{asked}" if last else asked

    def answer(self, text: str) -> str | None:
        """Play the move that an answer names.

        Returns:
            None if the move was played; otherwise what to tell the player, who may then answer
            again, unless the game has been forfeited.
        """
        try:
            action = read_answer(text, self.board.words, self.board.ruleset)
        except NotationError as mistake:
            self.illegal[self.board.turn] += 1
            self._tries += 1
            if self._tries > self._retries:
                self.forfeit()
            return try_again(mistake)
        self._tries = 0
        self.play(action)
        return None

    def play(self, action: int) -> None:
        """Play an action for a player who does not write.

        Raises:
            IllegalMoveError: it cannot be played.
        """
        words, player = self.board.words, SEAT_NAMES[self.board.turn]
        self.board.push(action)
        self.moves.append(f"{player} {say_move(words, self.board.ruleset, action)}")
        outcome = self.board.outcome()
        if outcome is not None:
            self.winner, self.ending = outcome.winner, str(outcome)

    def forfeit(self) -> None:
        """Let the player to move lose the game."""
        self.winner = 1 - self.board.turn
        self.ending = f"{SEAT_NAMES[self.winner]} wins: {SEAT_NAMES[self.board.turn]} forfeits"
