"""Questions about positions with exact answers, for training and measuring language models.

    bao questions questions.jsonl --count 1000

There are five kinds: the board after a move, what a move captures, the legal moves, the first rule
that forbids a move, and who wins with perfect play, as the solver has proved it. Kinds, rule sets
and levels come equally often, as far as random games have them. The same options give the same
file. Each line is a JSON object; :func:`score` judges an answer to it.

The level is 1 to 5. For the board and the captures it grows with the laps of the move (1, 2 to 3, 4
to 7, 8 to 15, more), for the legal moves with their number (1, 2, 3 to 4, 5 to 8, more), for the
winner with the plies of the proof (to 2, 4, 6, 10, 20), for the rule with what must be looked at.
"""

from __future__ import annotations

import argparse
import json
import re
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bao_agents.progress import Progress
from bao_agents.search.solver.solver import Solver
from bao_env.board import Board
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.ruleset import RULESETS, Ruleset
from bao_env.files import write_atomically
from bao_env.game import SEAT_NAMES, Stage
from bao_env.notation.moves import why_illegal
from bao_env.notation.positions import hole_name
from bao_env.options import Run, add_options, at_least, new_file
from bao_env.text_game import board_text, say_move
from bao_env.text_rules import rules_page
from bao_env.trace import EventKind, trace_move

LEVELS = 5
NODES = 20_000
"""Positions that the solver may visit for a proof."""
_PATIENCE = 25
"""Random games without a new question after which missing levels are given up."""

_TRIED = 16
"""Actions of a position among which a question on a rule chooses."""
_LONGEST = 20
"""Most plies of a proof: longer ones would take long to check."""

_LAPS = (1, 3, 7, 15)
_MOVES = (1, 2, 4, 8)
_PLIES = (2, 4, 6, 10)
"""The upper bounds of levels 1 to 4."""

_NO_CHOICE = "Donkers 2.5b, 1.5a"
_LONE_KICHWA = "Donkers 2.4a, 3.5b"
_RULES = {
    "Dutch I.a": (5, "another capture waits for its end"),
    _NO_CHOICE: (5, "it plays the house, but the move has no such choice"),
    "Donkers 1.5a": (5, "the move never ends"),
    "Donkers 2.3, 2.4": (1, "in namua a move starts in the front row"),
    "": (1, "the hole is empty"),
    "Donkers 1.4b": (3, "at this hole captured seeds are sown from the other end"),
    "Donkers 1.7a": (3, "a capture is possible, and this is none"),
    "Donkers 4.1": (4, "takasia bars the hole"),
    "Donkers 3.3": (2, "the hole has a single seed, in mtaji"),
    _LONE_KICHWA: (4, "the only filled front hole may not go to the back row"),
    "Donkers 3.5a": (2, "a takasa may not start in the back row while a front hole has two seeds"),
    "Donkers 2.4b": (4, "a takasa may not start from the house"),
    "Donkers 2.4c": (2, "the hole has a single seed, in namua"),
    "Dutch II": (5, "the hole is the only one that is threatened"),
}
"""The rules that forbid moves, in their order: the level, and the rule in words."""
_LETTERS = dict(zip(_RULES, "ABCDEFGHIJKLMN", strict=True))


class Question(NamedTuple):
    """A question and its answer."""

    kind: str
    """``board``, ``captures``, ``legal``, ``rule`` or ``winner``."""
    ruleset: str
    level: int
    """1 to 5."""
    stage: str
    """``namua`` or ``mtaji``."""
    position: str
    """The position text."""
    move: str
    """The move in question, in words; empty if there is none."""
    prompt: str
    answer: str


# --- the kinds: each makes a question of a position, or None --------------------------------------


def _question(kind: str, board: Board, level: int, move: str, asked: str, answer: str) -> Question:
    """Return a question; ``asked`` is its last paragraph."""
    rules = board.ruleset
    prompt = f"{rules_page(rules)}\n\n{board_text(board.position)}\n\n{asked}"
    return Question(kind, rules.name, level, board.stage.value, board.text(), move, prompt, answer)


def _on_a_move(kind: str, board: Board, rng: np.random.Generator) -> Question | None:
    """Ask for the board after a random legal move, or for what it captures."""
    action = int(rng.choice(board.legal_actions))
    events = trace_move(board.words, board.ruleset, action)
    if any(event.kind is EventKind.FRONT_ROW_EMPTY for event in events):
        return None
    laps = sum(event.kind is EventKind.SOW for event in events)
    move = say_move(board.words, board.ruleset, action)
    asked = f"{SEAT_NAMES[board.turn]} plays {move}. "
    if kind == "board":
        south, north = events[-1].counts
        rows = (south[:8], south[8:], north[:8], north[8:], events[-1].store)
        answer = " / ".join(" ".join(map(str, row)) for row in rows)
        asked += (
            "What is the board after the move? Give the seeds of A1 to A8, of B1 to B8, of a1 to "
            "a8, of b1 to b8, and of South's and North's store, as numbers, in one line:\n"
            "Answer: A1 A2 ... A8 / B1 ... B8 / a1 ... a8 / b1 ... b8 / South North"
        )
    else:
        taken = [
            f"{hole_name(event.seat, event.pits[0])} {event.seeds}"
            for event in events
            if event.kind is EventKind.CAPTURE
        ]
        if not taken and rng.random() < 0.8:  # a takasa: too easy to come often
            return None
        answer = ", ".join(taken) or "nothing"
        asked += (
            "Which holes does the move capture, in their order, and how many seeds of each? Give "
            "each hole and its seeds, with commas between them, or the word nothing, in one line:\n"
            "Answer: HOLE SEEDS, HOLE SEEDS"
        )
    return _question(kind, board, 1 + bisect_left(_LAPS, laps), move, asked, answer)


def _on_legal_moves(board: Board) -> Question:
    """Ask for the legal moves."""
    moves = [say_move(board.words, board.ruleset, action) for action in board.legal_actions]
    asked = (
        "Which moves are legal? Name all of them, with semicolons between them, in one line:\n"
        "Answer: MOVE; MOVE"
    )
    level = 1 + bisect_left(_MOVES, len(moves))
    return _question("legal", board, level, "", asked, "; ".join(moves))


def rule_of(board: Board, action: int) -> str:
    """Return the row of :data:`_RULES` that forbids an action; empty for an empty hole."""
    words, rule = why_illegal(board.words, board.ruleset, action)
    if words.endswith(" is empty"):
        return ""
    same = {"Donkers 2.4a": _LONE_KICHWA, "Donkers 3.5b": _LONE_KICHWA, "Dutch I.b": "Donkers 2.4c"}
    return same.get(rule, rule)


def _absent(ruleset: Ruleset) -> set[str]:
    """Return the rules of :data:`_RULES` that a rule set does not have."""
    absent = {"Donkers 4.1"} if ruleset.takasia != "zanzibar" else set()
    absent |= {"Dutch II"} if ruleset.takasia != "dutch" else set()
    absent |= {"Dutch I.a"} if ruleset.capture_side != "free" else set()
    absent |= {_LONE_KICHWA} if ruleset.lone_kichwa_takasa == "loses" else set()
    absent |= {"Donkers 2.4b"} if not ruleset.house else set()
    namua = {"Donkers 2.3, 2.4", "Donkers 1.4b", "Donkers 2.4b", "Donkers 2.4c"}
    return absent | (namua if not ruleset.opening_store else set())


def _on_a_rule(
    board: Board, rng: np.random.Generator, made: Counter[tuple[object, ...]]
) -> Question | None:
    """Ask which rule forbids a move: of those that forbid one here, the rarest answer so far."""
    legal = set(board.legal_actions)
    illegal = {}
    for action in map(int, rng.permutation(NUM_ACTIONS)[:_TRIED]):
        if action not in legal:
            rule = rule_of(board, action)
            if rule == _NO_CHOICE or not action & 1:  # else the words on the house are one too many
                illegal[rule] = action
    if not illegal:
        return None
    rule = min(illegal, key=lambda rule: (made["rule", _LETTERS[rule]], rule))
    move = say_move(board.words, board.ruleset, illegal[rule])
    reasons = "\n".join(
        f"{_LETTERS[name]}: {words}"
        for name, (_, words) in _RULES.items()
        if name not in _absent(board.ruleset)
    )
    asked = (
        f"{SEAT_NAMES[board.turn]} may not play {move}. Which is the first reason in this list "
        f"that applies?\n{reasons}\nGive its letter in one line:\nAnswer: LETTER"
    )
    return _question("rule", board, _RULES[rule][0], move, asked, _LETTERS[rule])


def _on_the_winner(board: Board, solver: Solver) -> Question | None:
    """Ask who wins, if the solver can prove it."""
    if board.stage is Stage.NAMUA and board.position.store[board.turn] > 4:
        return None
    solver.clear()
    found = solver.solve(board.words)
    if found.winner is None or found.plies is None or found.plies > _LONGEST:
        return None
    asked = "Who wins if both play perfectly, South or North? Answer in one line:\nAnswer: PLAYER"
    level = 1 + bisect_left(_PLIES, found.plies)
    return _question("winner", board, level, "", asked, SEAT_NAMES[found.winner])


KINDS = ("board", "captures", "legal", "rule", "winner")

# --- making them ----------------------------------------------------------------------------------


def make_questions(
    count: int,
    rulesets: Sequence[Ruleset],
    seed: int,
    kinds: Sequence[str] = KINDS,
    progress: Callable[[int], object] = lambda made: None,
) -> list[Question]:
    """Return questions, no two of them alike, in a random order.

    Args:
        count: their number; fewer if random games do not have so many.
        rulesets: the rule sets, in equal shares.
        seed: the same arguments and seed give the same questions.
        kinds: the kinds, in equal shares.
        progress: called with the number of questions that have just been made.
    """
    questions: list[Question] = []
    for i, ruleset in enumerate(rulesets):
        part = (count * (i + 1)) // len(rulesets) - (count * i) // len(rulesets)
        for question in _of_ruleset(part, ruleset, seed, kinds):
            questions.append(question)
            progress(1)
    order = np.random.default_rng(seed).permutation(len(questions))
    return [questions[i] for i in order]


def _of_ruleset(
    count: int, ruleset: Ruleset, seed: int, kinds: Sequence[str]
) -> Iterator[Question]:
    """Yield the questions of one rule set.

    Each kind has its share, and in it each level. Where games do not have enough of a level, the
    other levels make up for it.
    """
    rng = np.random.default_rng([seed, zlib.crc32(ruleset.name.encode())])
    solver = Solver(ruleset, nodes=NODES, table_bits=12)
    left = {kind: count // len(kinds) + (i < count % len(kinds)) for i, kind in enumerate(kinds)}
    shares = {kind: -(-number // LEVELS) for kind, number in left.items()}
    made: Counter[tuple[object, ...]] = Counter()
    seen = set()
    for by_level in (True, False):
        idle = 0
        while any(left.values()) and idle < _PATIENCE:
            idle += 1
            for board in _random_game(ruleset, rng):
                kind = str(rng.choice([kind for kind in kinds if left[kind]]))
                question = _ask(kind, board, rng, solver, made)
                if question is None or (kind, question.position, question.move) in seen:
                    continue
                cell, share = _cell(question, shares[kind])
                if by_level and made[cell] >= share:
                    continue
                seen.add((kind, question.position, question.move))
                made[cell] += 1
                left[kind] -= 1
                idle = 0
                yield question
                if not any(left.values()):
                    return


def _random_game(ruleset: Ruleset, rng: np.random.Generator) -> Iterator[Board]:
    """Yield the board before each move of a random game."""
    board = Board(ruleset, int(rng.integers(2)))
    while board.outcome() is None:
        yield board
        board.push(int(rng.choice(board.legal_actions)))


def _cell(question: Question, share: int) -> tuple[tuple[object, ...], int]:
    """Return the group of questions that one belongs to, and how many of it are wanted.

    Args:
        question: the question.
        share: how many are wanted of its kind and level.
    """
    kind = question.kind
    if kind == "rule":  # a rule set has about ten that forbid moves in its games
        return (kind, question.answer), -(-share // 2)
    if kind == "winner":  # the player to move wins half of them
        mover = question.position.split()[3]
        return (kind, question.level, question.answer[0] == mover), -(-share // 2)
    return (kind, question.level), share


def _ask(
    kind: str,
    board: Board,
    rng: np.random.Generator,
    solver: Solver,
    made: Counter[tuple[object, ...]],
) -> Question | None:
    """Return a question of a kind; None if the position is not fit for one."""
    match kind:
        case "legal":
            return _on_legal_moves(board)
        case "rule":
            return _on_a_rule(board, rng, made)
        case "winner":
            return _on_the_winner(board, solver)
    return _on_a_move(kind, board, rng)


# --- judging answers ------------------------------------------------------------------------------

_MOVE = re.compile(r"([ab][1-8])\W+(towards|from)\W+([ab][1-8])(\W+play\W+the\W+house)?")
_READERS: dict[str, Callable[[str], object]] = {
    "board": lambda text: re.findall(r"\d+", text),
    "captures": lambda text: re.findall(r"([ab][1-8])\W+(\d+)|(nothing)", text),
    "legal": lambda text: {(*m[:3], bool(m[3])) for m in _MOVE.findall(text)},
    "rule": lambda text: re.findall(r"\b[a-n]\b", text),
    "winner": lambda text: re.findall(r"south|north", text),
}
"""What counts in an answer of each kind, in lower case."""


def score(question: Mapping[str, Any], answer: str) -> float:
    """Return 1.0 if an answer is right, else 0.0.

    Args:
        question: a line of the file, with ``kind`` and ``answer``.
        answer: any text; what follows the last ``Answer:`` counts, to the end of the line.
    """
    given = re.findall(r"answer\W{0,5}:\W*([^\n]*)", answer[-4000:].lower())
    read = _READERS[question["kind"]]
    return float(bool(given) and read(given[-1]) == read(question["answer"].lower()))


# --- the command ----------------------------------------------------------------------------------


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao questions``: write questions with exact answers."""
    parser.add_argument("file", type=new_file, metavar="FILE", help="the file, as JSON lines")
    parser.add_argument(
        "--count", type=at_least(1), default=1000, help="number of questions (default: 1000)"
    )
    parser.add_argument(
        "--kinds",
        nargs="+",
        choices=KINDS,
        default=list(KINDS),
        help="kinds of questions (default: all)",
    )
    add_options(parser, "seed", ruleset=None)
    parser.epilog = "Without --ruleset, all rule sets have equal shares."
    return _run


def _run(args: argparse.Namespace) -> None:
    rulesets = [args.ruleset] if args.ruleset else list(RULESETS.values())
    kinds = [kind for kind in KINDS if kind in args.kinds]
    with Progress(total=args.count, unit="question") as bar:
        questions = make_questions(args.count, rulesets, args.seed, kinds, bar.update)
    lines = [json.dumps(question._asdict()) + "\n" for question in questions]
    write_atomically(args.file, "".join(lines))
    print(f"{args.file}: {len(questions):,} questions")
